/* What decoder-only families of the Llama kind have in common: attention with rope, a gated MLP,
 * RMS norms before both. A family says where it differs. */
#ifndef STELE_FE_DECODER_H
#define STELE_FE_DECODER_H

#include "frontend/config.h"

#define FE_ROLE(role) ((uint64_t)1 << (role))

/* Values of fields that a configuration may leave out. */
typedef struct fe_decoder_defaults {
  uint32_t head;      /* elements of a head, 0: hidden size / heads */
  uint32_t positions; /* max_position_embeddings */
  double theta, eps;
  uint32_t gguf_pairing; /* enum stele_pairing that GGUF files of the family are stored for */
} fe_decoder_defaults;

/* Reads the dimensions, the activation, tied or not, rope and layers, all with full attention;
 * sets the roles that every such model has. */
stele_status fe_decoder_describe(const fe_config *config, fe_model *model,
                                 const fe_decoder_defaults *defaults,
                                 stele_sink *sink) STELE_MUST_USE;

/* Adds roles that only some models have: those for which config.json sets the flag; in a GGUF
 * file, which has no such flags, those that its first layer has. */
void fe_decoder_optional(const fe_config *config, fe_model *model, const char *flag,
                         uint64_t roles);

/* For families that have a window only where use_sliding_window says so: without it,
 * sliding_window counts as read; with it, both stay for fe_config_status to complain about. */
void fe_decoder_unused_window(const fe_config *config);

/* The `has` of a family whose layers all have model->roles. */
bool fe_decoder_has(const fe_model *model, fe_role role, int32_t layer, uint64_t *out_rows,
                    uint64_t *out_columns);

/* The name of a role's tensor in either kind of file, in the arena; NULL without memory. */
const char *fe_role_name(base_arena *arena, bool gguf, fe_role role, int32_t layer);

#endif
