/* What decoder-only families have in common: the readers of their fields, the shapes of their
 * tensors, the usual ways of storing several weights in one tensor. A family says where it
 * differs. */
#ifndef STELE_FE_DECODER_H
#define STELE_FE_DECODER_H

#include "frontend/config.h"

#define FE_ROLE(role) ((uint64_t)1 << (role))

/* Sets of roles that come together. */
#define FE_QKV_BIASES (FE_ROLE(FE_Q_BIAS) | FE_ROLE(FE_K_BIAS) | FE_ROLE(FE_V_BIAS))
#define FE_ATTENTION_BIASES (FE_QKV_BIASES | FE_ROLE(FE_O_BIAS))
#define FE_MLP_BIASES (FE_ROLE(FE_GATE_BIAS) | FE_ROLE(FE_UP_BIAS) | FE_ROLE(FE_DOWN_BIAS))
#define FE_PLAIN_BIASES (FE_ROLE(FE_UP_BIAS) | FE_ROLE(FE_DOWN_BIAS))
#define FE_NORM_BIASES \
  (FE_ROLE(FE_ATTENTION_NORM_BIAS) | FE_ROLE(FE_MLP_NORM_BIAS) | FE_ROLE(FE_FINAL_NORM_BIAS))
#define FE_HEAD_NORMS (FE_ROLE(FE_Q_NORM) | FE_ROLE(FE_K_NORM))
#define FE_DENSE_MLP (FE_ROLE(FE_GATE) | FE_ROLE(FE_UP) | FE_ROLE(FE_DOWN))
#define FE_EXPERT_MLP \
  (FE_ROLE(FE_ROUTER) | FE_ROLE(FE_EXPERT_GATE) | FE_ROLE(FE_EXPERT_UP) | FE_ROLE(FE_EXPERT_DOWN))
#define FE_SHARED_MLP (FE_ROLE(FE_SHARED_GATE) | FE_ROLE(FE_SHARED_UP) | FE_ROLE(FE_SHARED_DOWN))

/* Values of fields that a configuration may leave out, and what is fixed in a family. */
typedef struct fe_decoder_defaults {
  uint32_t head;         /* elements of a head, 0: hidden size / heads */
  uint32_t kv_heads;     /* 0: as many as heads */
  uint32_t intermediate; /* times the hidden size; 0: the field must be there */
  uint32_t positions;    /* max_position_embeddings */
  double theta, eps;
  double partial;         /* partial_rotary_factor; 0: all of a head turns, and must */
  uint32_t pairing;       /* enum stele_pairing of Hugging Face files */
  uint32_t gguf_pairing;  /* ... that GGUF files of the family are stored for */
  uint32_t norm;          /* enum fe_norm; LAYER: with biases, and the field layer_norm_eps */
  const char *activation; /* NULL: "silu" */
  bool tied;              /* tie_word_embeddings */
  bool plain;             /* the MLP has no gate */
  bool no_rope;           /* no rope at all */
  bool yarn_exact;        /* "truncate" is false where it is not said */
} fe_decoder_defaults;

/* Reads the dimensions, the activation, tied or not, rope and layers, all with full attention;
 * sets the roles that every such model has. */
stele_status fe_decoder_describe(const fe_config *config, fe_model *model,
                                 const fe_decoder_defaults *defaults,
                                 stele_sink *sink) STELE_MUST_USE;

/* Roles of the model and of all of its layers. */
void fe_decoder_add(fe_model *model, uint64_t roles);
void fe_decoder_drop(fe_model *model, uint64_t roles);

/* Adds roles that only some models have: those for which config.json sets the flag (which has the
 * fallback where it is not there); in a GGUF file, which has no such flags, those that its first
 * layer has. */
void fe_decoder_optional(const fe_config *config, fe_model *model, const char *flag, bool fallback,
                         uint64_t roles);

/* Soft caps of scores and of logits, with what a silent configuration means (0: none); null means
 * none in any case. */
void fe_decoder_soft_caps(const fe_config *config, fe_model *model, double scores, double logits);

/* Scores times query_pre_attn_scalar ** -0.5, where that is missing of 256. GGUF files do not have
 * it: it is the size of a head, but in the largest model, which has so many layers, the hidden size
 * divided by the heads. */
void fe_decoder_query_scalar(const fe_config *config, fe_model *model, uint32_t largest_layers);

/* The activation of a field, by its usual names. */
uint32_t fe_decoder_function(const fe_config *config, const char *field, const char *fallback);

/* How many experts there are and how many a token has; rows of an expert by moe_intermediate_size,
 * without it by intermediate_size. All else is the model's own: softmax, not normalised, scale 1,
 * the model's activation. Which layers have them is for the family to say. */
void fe_decoder_experts(const fe_config *config, fe_model *model, uint32_t used_fallback);

/* ---- layers that differ ---------------------------------------------------------------- */

#define FE_NEVER 0u
#define FE_ALWAYS UINT32_MAX

/* Windows: layer_types says which layers have one; without it, all but every `full_every`-th
 * (FE_NEVER: none is full, FE_ALWAYS: all are). A window has the field's tokens, or the fallback's
 * (0: the field must be there if a layer has a window). */
void fe_decoder_windows(const fe_config *config, fe_model *model, uint32_t full_every,
                        uint32_t fallback);

/* Chunks in the same way: "chunked_attention", attention_chunk_size. */
void fe_decoder_chunks(const fe_config *config, fe_model *model, uint32_t full_every,
                       uint32_t fallback);

/* For families that have a window only where use_sliding_window says so, in the layers from
 * max_window_layers on (or as layer_types says). */
void fe_decoder_window_flag(const fe_config *config, fe_model *model, uint32_t fallback_layers);

/* Layers without rope: those with 0 in no_rope_layers; without the field, every `interval`-th. */
void fe_decoder_no_rope(const fe_config *config, fe_model *model, uint32_t interval);

/* ---- shapes and places ----------------------------------------------------------------- */

bool fe_role_in_layers(fe_role role);
bool fe_role_is_vector(fe_role role);
bool fe_role_is_norm(fe_role role); /* the weight of one, not its bias */

/* The `has` of a family whose tensors have the usual shapes. */
bool fe_decoder_has(const fe_model *model, fe_role role, int32_t layer, uint64_t *out_rows,
                    uint64_t *out_columns);

/* Where the model's files have a weight that `has` has; names of layers are still patterns. */
fe_place fe_place_of(const fe_model *model, const fe_family *family, fe_role role, int32_t layer,
                     bool gguf);

/* How many parts the place of a weight of so many rows (of a vector: numbers) has: where the name
 * counts them, one for each block. */
uint32_t fe_place_parts(const fe_place *place, uint64_t rows);

/* The name of a part of a place (its `expert`-th), in the arena; NULL without memory. */
const char *fe_place_name(base_arena *arena, const char *pattern, int32_t layer, uint32_t expert);

/* The name of a role's tensor in either kind of file, of a model whose family is known. */
const char *fe_role_name(base_arena *arena, const fe_model *model, bool gguf, fe_role role,
                         int32_t layer);

/* Whether the files have a tensor of that role, outside of layers or in the first. */
bool fe_model_stores(const fe_model *model, bool gguf, fe_role role);

/* A tensor that has Q, K and V one after the other; in which each head has its q, k and v; that has
 * gate and up one after the other. For other roles they leave the place alone. */
void fe_place_fused_qkv(const fe_model *model, fe_role role, fe_place *place);
void fe_place_heads_qkv(const fe_model *model, fe_role role, fe_place *place);
void fe_place_fused_gate_up(const fe_model *model, fe_role role, fe_place *place);

/* Norms whose weights Hugging Face files have less one, GGUF files whole. */
void fe_place_norm_less_one(const fe_model *model, fe_role role, bool gguf, fe_place *place);

/* Of latent attention: the key's two parts in one tensor; what unfolds keys and values in one, or,
 * in GGUF files, by head. */
void fe_place_latent(const fe_model *model, fe_role role, bool gguf, fe_place *place);

/* The tensor is stored as [columns, rows]. */
void fe_place_transpose(fe_place *place);

#endif
