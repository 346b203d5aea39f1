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
#define ROLE(name, ...) FE_##name,
#include "frontend/roles.def"
#undef ROLE
  FE_ROLE_COUNT
} fe_role;

/* Where the rows of a weight are in stored tensors, which are seen as matrices: all dimensions but
 * the last are rows; a vector, stored or not, is a column. Rows of the weight come in blocks of
 * `block` (0: all are one). Block b is in part b where there are several parts, else in the only
 * one, from its row stride * b on. Row i of a block is row first + i * step of that place;
 * transposed: column first + i * step, its elements down the rows. */
typedef struct fe_view {
  uint64_t block, first, stride, step;
  bool transposed;
} fe_view;

typedef struct fe_weight {
  const char *name; /* names the weight in IR and artefact: the tensor's, of a part "TENSOR:q" */
  uint32_t role;    /* fe_role */
  int32_t layer;    /* -1 outside layers */
  uint32_t scheme;
  uint32_t experts;       /* so many matrices of rows / experts rows, 0: one */
  uint64_t rows, columns; /* vectors: one row */
  bool vector;
  const uint8_t *data; /* rows * row bytes, plain, in the mapped file; NULL: not in one piece */
  const fe_tensor *const *parts;
  uint32_t part_count; /* 0: in no file, every number is `plus` */
  fe_view view;
  float plus; /* added to every number; if not 0, the scheme is F32 */
} fe_weight;

/* The rows from `row` on that lie behind one another in a file as they are; NULL when the row must
 * be put together. */
const uint8_t *fe_weight_run(const fe_weight *weight, uint64_t row, uint64_t *out_rows);

/* Rows first to first + count, in the weight's scheme: in the file where they are in one piece,
 * else in the buffer, which has room for them. */
const uint8_t *fe_weight_rows(const fe_weight *weight, uint64_t first, uint64_t count,
                              uint8_t *buffer);

/* One kind of rope. */
typedef struct fe_rope {
  uint32_t rotary;  /* elements of a head that turn */
  uint32_t offset;  /* the first of them */
  uint32_t pairing; /* enum stele_pairing of program.h: 0 halves, 1 interleaved */
  uint32_t rule;    /* enum stele_rope_rule */
  double base, factor, attention_factor;
  uint32_t original;
  double *inv_freq;                    /* [rotary / 2], scaling applied (rule fixed) */
  float *short_factors, *long_factors; /* [rotary / 2] (rule long) */
} fe_rope;

enum fe_norm { FE_NORM_RMS = 0, FE_NORM_LAYER = 1 };

enum fe_head_norm {                          /* of queries and keys, where a layer has the roles */
                    FE_HEAD_NORM_SHARED = 0, /* each head by itself, one weight for all */
                    FE_HEAD_NORM_OWN = 1,    /* each head by itself, each its own weight */
                    FE_HEAD_NORM_WHOLE = 2   /* all heads as one vector */
};

/* Per layer; families with differing layers fill them differently. A layer is
 *   x += residual_scale * post(o(attention(norm(x)))), then
 *   x += residual_scale * post(mlp(norm(x)))
 * or, parallel,
 *   x += o(attention(norm(x))) + mlp(its own norm, if it has one, else the same, of x)
 * where a norm that the layer has no role for is left out. The mlp is gated with GATE, plain
 * without, of experts with ROUTER (and SHARED_UP, beside them). */
typedef struct fe_layer {
  uint32_t group_kind; /* enum stele_group_kind */
  uint32_t window;     /* tokens of a window or chunk, 0: none */
  int32_t rope;        /* index into fe_model.ropes, -1: none */
  uint64_t roles;      /* a bit per fe_role (1 << role) that the layer has */
  bool parallel;
  double attention_scale;
  double query_scale, query_floor; /* queries are multiplied by 1 + query_scale * log(1 +
                                      floor((position + 1) / query_floor)); 0: not */
} fe_layer;

/* What layers with experts have in common. */
typedef struct fe_experts {
  uint32_t count, used; /* 0: no layer has any */
  uint32_t inner;       /* rows of an expert's gate and up */
  uint32_t shared_inner;
  uint32_t rule; /* enum stele_route of program.h */
  bool normalise;
  double scale;
  uint32_t groups, used_groups; /* 0: all experts may be chosen from */
  bool scale_input;
  uint32_t function; /* enum stele_function */
  double alpha, limit;
} fe_experts;

/* Latent attention. The cache then has one head of kv_rank + rope numbers (key_head), of which the
 * first kv_rank are the value (value_head). */
typedef struct fe_latent {
  uint32_t kv_rank;           /* 0: no layer has it */
  uint32_t q_rank;            /* 0: queries are projected at once */
  uint32_t nope, rope, value; /* elements of a head */
} fe_latent;

typedef struct fe_model {
  base_arena arena;   /* owns all that is below */
  const char *path;   /* as given */
  const char *family; /* "llama" */
  const char *name;   /* from the files, or the last part of the path */

  uint32_t vocab, hidden, layers, heads, kv_heads, key_head, value_head, intermediate;
  uint32_t ignored_layers;  /* behind the others in the files, not part of the decoder */
  uint32_t model_positions; /* the model's own maximum, 0: unknown */
  uint32_t function;        /* enum stele_function of program.h */
  uint32_t norm;            /* enum fe_norm */
  uint32_t head_norm;       /* enum fe_head_norm */
  bool tied;                /* the embedding is also the output matrix */
  double norm_eps, embed_scale, soft_cap;
  double residual_scale, logit_scale; /* 1: none */
  double logit_soft_cap;              /* 0: none */
  uint32_t positions_offset;          /* row of the learned positions that position 0 has */
  fe_experts experts;
  fe_latent latent;
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

  uint64_t roles; /* a bit per fe_role that the model has outside of layers */
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

/* Where the files of one format have a weight. */
typedef struct fe_place {
  const char *name; /* as in roles.def; NULL: in no file, every number is `plus` */
  uint32_t dim_count;
  uint64_t dims[FE_MAX_DIMS]; /* of a part */
  fe_view view;
  float plus;
} fe_place;

/* A tensor's names in a family where they aren't those of roles.def. NULL: as there. */
typedef struct fe_name {
  fe_role role;
  const char *hf, *gguf;
} fe_name;

/* A family reads its configuration into the dimensions, lists its layers and ropes and says which
 * roles its tensors have. Common fields have common readers (decoder.h). */
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
  const fe_name *names; /* a row with the role FE_ROLE_COUNT at the end; NULL: all as usual */
  const char *prefix;   /* of names in Hugging Face files, which some of them leave out; or NULL */
  const char *const
      *buffers; /* ends of names of tensors that are never read: what older files carry
                   along though it follows from the configuration. NULL at the end */
  /* Changes a weight's place from the usual one, a tensor of its own; NULL: all are usual. */
  void (*place)(const fe_model *model, fe_role role, bool gguf, fe_place *place);
} fe_family;

const fe_family *const *fe_families(size_t *out_count);

#endif
