/* GPT-2: centred norms, biases throughout, a plain feed-forward block, learned positions in place
 * of rope. Its projections are stored as [columns, rows] (transformers calls them Conv1D), query,
 * key and value in one of them; GGUF files have them the usual way round. The published files were
 * written without the prefix, and with the causal mask of every layer. */
#include <math.h>

#include "frontend/decoder.h"
#include "frontend/families.h"

/* Two fields that few models set; a third one asks for the same scores in another order. */
static void read_scores(const fe_config *config, fe_model *model) {
  bool scaled = fe_config_bool(config, "scale_attn_weights", true);
  bool by_layer = fe_config_bool(config, "scale_attn_by_inverse_layer_idx", false);
  fe_config_bool(config, "reorder_and_upcast_attn", false);
  for (uint32_t i = 0; i < model->layers; i++) {
    double scale = scaled ? 1.0 / sqrt((double)model->key_head) : 1.0;
    model->layer[i].attention_scale = by_layer ? scale / (i + 1) : scale;
  }
}

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.intermediate = 4,
                                        .positions = 1024,
                                        .eps = 1e-5,
                                        .norm = FE_NORM_LAYER,
                                        .activation = "gelu_new",
                                        .tied = true,
                                        .plain = true,
                                        .no_rope = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  read_scores(config, model);
  fe_decoder_add(model, FE_ROLE(FE_POSITIONS) | FE_ATTENTION_BIASES | FE_PLAIN_BIASES);
  return fe_config_status(config);
}

static void place(const fe_model *model, fe_role role, bool gguf, fe_place *place) {
  bool projection =
      (role >= FE_Q && role <= FE_V) || role == FE_O || role == FE_UP || role == FE_DOWN;
  fe_place_fused_qkv(model, role, place);
  if (projection && !gguf) fe_place_transpose(place);
}

#define QKV "transformer.h.%d.attn.c_attn.weight", "blk.%d.attn_qkv.weight"
#define QKV_BIAS "transformer.h.%d.attn.c_attn.bias", "blk.%d.attn_qkv.bias"

static const fe_name names[] = {{FE_EMBED, "transformer.wte.weight", NULL},
                                {FE_POSITIONS, "transformer.wpe.weight", NULL},
                                {FE_ATTENTION_NORM, "transformer.h.%d.ln_1.weight", NULL},
                                {FE_ATTENTION_NORM_BIAS, "transformer.h.%d.ln_1.bias", NULL},
                                {FE_Q, QKV},
                                {FE_K, QKV},
                                {FE_V, QKV},
                                {FE_Q_BIAS, QKV_BIAS},
                                {FE_K_BIAS, QKV_BIAS},
                                {FE_V_BIAS, QKV_BIAS},
                                {FE_O, "transformer.h.%d.attn.c_proj.weight", NULL},
                                {FE_O_BIAS, "transformer.h.%d.attn.c_proj.bias", NULL},
                                {FE_MLP_NORM, "transformer.h.%d.ln_2.weight", NULL},
                                {FE_MLP_NORM_BIAS, "transformer.h.%d.ln_2.bias", NULL},
                                {FE_UP, "transformer.h.%d.mlp.c_fc.weight", NULL},
                                {FE_UP_BIAS, "transformer.h.%d.mlp.c_fc.bias", NULL},
                                {FE_DOWN, "transformer.h.%d.mlp.c_proj.weight", NULL},
                                {FE_DOWN_BIAS, "transformer.h.%d.mlp.c_proj.bias", NULL},
                                {FE_FINAL_NORM, "transformer.ln_f.weight", NULL},
                                {FE_FINAL_NORM_BIAS, "transformer.ln_f.bias", NULL},
                                {FE_ROLE_COUNT, NULL, NULL}};

static const char *const buffers[] = {".attn.bias", ".attn.masked_bias", NULL};
static const char *const hf_types[] = {"gpt2", NULL};
static const char *const architectures[] = {"gpt2", NULL};

const fe_family fe_family_gpt2 = {
    .name = "gpt2",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "GPT-2, DistilGPT2",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
    .prefix = "transformer.",
    .buffers = buffers,
    .place = place,
};
