/* Front-ends: model files in, one typed description out. Both formats and all families meet in
 * fe_model; nothing after this point knows where a model came from.
 *
 * All files are untrusted: every offset, count and product is checked before use, and an error
 * names the file, the tensor or field, what was found and what was expected. This library needs
 * neither LLVM nor MLIR. */
#ifndef STELE_FRONTEND_H
#define STELE_FRONTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "stele/artifact.h"

struct fe_config; /* config.h */
struct fe_gguf;   /* gguf.h */

/* ---- stored tensors ------------------------------------------------------------------- */

#define FE_MAX_DIMS 4

/* A tensor as a file has it. dims are outermost first: a matrix is [rows, columns], its columns
 * are contiguous (GGUF's order is turned round when it is read). */
typedef struct fe_tensor {
  const char *name;
  uint32_t scheme; /* enum stele_scheme; UINT32_MAX: a type that is not supported */
  uint32_t dim_count;
  uint64_t dims[FE_MAX_DIMS];
  const uint8_t *data; /* in the mapped file */
  size_t bytes;
  bool used;        /* a weight of the description names it */
  const char *type; /* as the file names it: "BF16", "Q6_K" */
} fe_tensor;

/* The tensors of one model, sorted by name. */
typedef struct fe_tensors {
  fe_tensor *list;
  size_t count;
} fe_tensors;
fe_tensor *fe_tensors_find(const fe_tensors *tensors, const char *name);

/* ---- the description ------------------------------------------------------------------ */

/* What a weight is for; the generic IR builder looks weights up by role. */
typedef enum fe_role {
#define ROLE(name, scope, hf, gguf) FE_##name,
#include "frontend/roles.def"
#undef ROLE
  FE_ROLE_COUNT
} fe_role;

typedef struct fe_weight {
  const char *name; /* as in the files: names the weight in IR and artefact */
  uint32_t role;    /* fe_role */
  int32_t layer;    /* -1 outside layers */
  uint32_t scheme;
  uint64_t rows, columns; /* vectors: one row */
  const uint8_t *data;    /* rows * row bytes, plain, in the mapped file */
} fe_weight;

/* One kind of rope. */
typedef struct fe_rope {
  uint32_t rotary;  /* elements of a head that turn */
  uint32_t offset;  /* the first of them */
  uint32_t pairing; /* enum stele_pairing of program.h: 0 halves, 1 interleaved */
  uint32_t rule;    /* enum stele_rope_rule */
  double base, factor, attention_factor;
  uint32_t original;
  double *inv_freq; /* [rotary / 2], scaling applied (rule fixed) */
} fe_rope;

/* Per layer; families with differing layers fill them differently. */
typedef struct fe_layer {
  uint32_t group_kind; /* enum stele_group_kind */
  uint32_t window;     /* tokens of a window or chunk, 0: none */
  int32_t rope;        /* index into fe_model.ropes, -1: none */
} fe_layer;

typedef struct fe_model {
  base_arena arena;   /* owns all that is below */
  const char *path;   /* as given */
  const char *family; /* "llama" */
  const char *name;   /* from the files, or the last part of the path */

  uint32_t vocab, hidden, layers, heads, kv_heads, key_head, value_head, intermediate;
  uint32_t model_positions; /* the model's own maximum, 0: unknown */
  uint32_t function;        /* enum stele_function of program.h */
  bool tied;                /* the embedding is also the output matrix */
  double norm_eps, embed_scale, attention_scale, soft_cap, logit_soft_cap;
  fe_layer *layer; /* [layers] */
  fe_rope *ropes;
  uint32_t rope_count;
  uint32_t weight_scheme_class; /* the scheme of most matrix bytes, for people */

  fe_weight *weights; /* embedding first, then layer by layer, then the head */
  uint32_t weight_count;
  fe_tensors tensors;

  int32_t *stop_ids;
  uint32_t stop_count;
  const char *stop_source;         /* "generation_config.json eos_token_id" */
  int32_t bos_id;                  /* -1: none */
  const char *generation_defaults; /* JSON text or NULL */
  const char *chat_template;       /* or NULL */

  /* Where the tokenizer is: exactly one of the two, or none. */
  const char *tokenizer_json; /* path of tokenizer.json, or NULL */
  const char *tokenizer_config_json;
  const struct fe_gguf *gguf; /* metadata of the GGUF file, or NULL */

  base_map *maps; /* files kept mapped */
  uint32_t map_count;

  uint64_t roles; /* a bit per fe_role (1 << role): what every layer, or the model, has */
} fe_model;

/* The weight of a role in a layer (-1 outside layers), NULL when the model has none. */
const fe_weight *fe_model_weight(const fe_model *model, fe_role role, int32_t layer);

/* Opens a model: a directory (Hugging Face) or a file (GGUF). Checks the whole tensor list before
 * returning: the message lists every missing, unexpected and misshapen tensor. The caller owns
 * *out_model; destroy accepts NULL. */
stele_status fe_model_open(const char *path, stele_sink *sink, fe_model **out_model) STELE_MUST_USE;
void fe_model_destroy(fe_model *model);

/* The tokenizer blob of an opened model (runtime/text/tokenizer.h), appended to out; nothing is
 * appended when the model has no tokenizer. */
stele_status fe_tokenizer_blob(const fe_model *model, stele_sink *sink,
                               base_buffer *out) STELE_MUST_USE;

/* ---- families -------------------------------------------------------------------------- */

/* A family reads its configuration into the dimensions, lists its layers and ropes and says which
 * roles its tensors have. Common fields have common readers (config.h). */
typedef struct fe_family {
  const char *name;                      /* "llama" */
  const char *const *hf_types;           /* values of model_type, NULL at the end */
  const char *const *gguf_architectures; /* NULL at the end */
  const char *summary;
  /* Fills the dimensions, ropes and layers from a configuration (already brought to one form for
   * both formats and both ages of config.json). */
  stele_status (*describe)(const struct fe_config *config, fe_model *model, stele_sink *sink);
  /* Says whether the model has a tensor of this role in this layer, and its shape. */
  bool (*has)(const fe_model *model, fe_role role, int32_t layer, uint64_t *out_rows,
              uint64_t *out_columns);
} fe_family;

const fe_family *const *fe_families(size_t *out_count);

#endif
