/* GPT-NeoX, Pythia: attention and a plain feed-forward block side by side (or, in some, one after
 * the other), each behind a centred norm of its own; a quarter of each head turns. Query, key and
 * value are in one tensor, head by head; GGUF files have them one after the other. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.positions = 2048,
                                        .theta = 1e4,
                                        .eps = 1e-5,
                                        .partial = 0.25,
                                        .gguf_pairing = STELE_PAIR_HALVES,
                                        .norm = FE_NORM_LAYER,
                                        .activation = "gelu",
                                        .plain = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  bool parallel = fe_config_bool(config, "use_parallel_residual", true);
  for (uint32_t i = 0; i < model->layers; i++) model->layer[i].parallel = parallel;
  fe_decoder_add(model, FE_PLAIN_BIASES);
  fe_decoder_optional(config, model, "attention_bias", true, FE_ATTENTION_BIASES);
  return fe_config_status(config);
}

static void place(const fe_model *model, fe_role role, bool gguf, fe_place *place) {
  if (gguf)
    fe_place_fused_qkv(model, role, place);
  else
    fe_place_heads_qkv(model, role, place);
}

#define LAYER "gpt_neox.layers.%d."
#define QKV LAYER "attention.query_key_value.weight", "blk.%d.attn_qkv.weight"
#define QKV_BIAS LAYER "attention.query_key_value.bias", "blk.%d.attn_qkv.bias"

static const fe_name names[] = {{FE_EMBED, "gpt_neox.embed_in.weight", NULL},
                                {FE_ATTENTION_NORM, LAYER "input_layernorm.weight", NULL},
                                {FE_ATTENTION_NORM_BIAS, LAYER "input_layernorm.bias", NULL},
                                {FE_Q, QKV},
                                {FE_K, QKV},
                                {FE_V, QKV},
                                {FE_Q_BIAS, QKV_BIAS},
                                {FE_K_BIAS, QKV_BIAS},
                                {FE_V_BIAS, QKV_BIAS},
                                {FE_O, LAYER "attention.dense.weight", NULL},
                                {FE_O_BIAS, LAYER "attention.dense.bias", NULL},
                                {FE_MLP_NORM, LAYER "post_attention_layernorm.weight", NULL},
                                {FE_MLP_NORM_BIAS, LAYER "post_attention_layernorm.bias", NULL},
                                {FE_UP, LAYER "mlp.dense_h_to_4h.weight", NULL},
                                {FE_UP_BIAS, LAYER "mlp.dense_h_to_4h.bias", NULL},
                                {FE_DOWN, LAYER "mlp.dense_4h_to_h.weight", NULL},
                                {FE_DOWN_BIAS, LAYER "mlp.dense_4h_to_h.bias", NULL},
                                {FE_FINAL_NORM, "gpt_neox.final_layer_norm.weight", NULL},
                                {FE_FINAL_NORM_BIAS, "gpt_neox.final_layer_norm.bias", NULL},
                                {FE_HEAD, "embed_out.weight", NULL},
                                {FE_ROLE_COUNT, NULL, NULL}};

static const char *const buffers[] = {".attention.bias", ".attention.masked_bias", NULL};
static const char *const hf_types[] = {"gpt_neox", NULL};
static const char *const architectures[] = {"gptneox", NULL};

const fe_family fe_family_gpt_neox = {
    .name = "gpt_neox",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "GPT-NeoX, Pythia",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
    .buffers = buffers,
    .place = place,
};
