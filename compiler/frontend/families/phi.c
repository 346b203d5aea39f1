/* Phi-1, Phi-1.5, Phi-2: attention and a plain feed-forward block side by side behind one centred
 * norm, biases throughout, the head's included; a part of each head turns. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.positions = 2048,
                                        .theta = 1e4,
                                        .eps = 1e-5,
                                        .partial = 0.5,
                                        .gguf_pairing = STELE_PAIR_HALVES,
                                        .norm = FE_NORM_LAYER,
                                        .activation = "gelu_new",
                                        .plain = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  for (uint32_t i = 0; i < model->layers; i++) model->layer[i].parallel = true;
  fe_decoder_drop(model, FE_ROLE(FE_MLP_NORM) | FE_ROLE(FE_MLP_NORM_BIAS));
  fe_decoder_add(model, FE_ATTENTION_BIASES | FE_PLAIN_BIASES | FE_ROLE(FE_HEAD_BIAS));
  fe_decoder_optional(config, model, "qk_layernorm", false,
                      FE_HEAD_NORMS | FE_ROLE(FE_Q_NORM_BIAS) | FE_ROLE(FE_K_NORM_BIAS));
  return fe_config_status(config);
}

static const fe_name names[] = {
    {FE_Q_NORM, "model.layers.%d.self_attn.q_layernorm.weight", NULL},
    {FE_K_NORM, "model.layers.%d.self_attn.k_layernorm.weight", NULL},
    {FE_Q_NORM_BIAS, "model.layers.%d.self_attn.q_layernorm.bias", NULL},
    {FE_K_NORM_BIAS, "model.layers.%d.self_attn.k_layernorm.bias", NULL},
    {FE_O, "model.layers.%d.self_attn.dense.weight", NULL},
    {FE_O_BIAS, "model.layers.%d.self_attn.dense.bias", NULL},
    {FE_UP, "model.layers.%d.mlp.fc1.weight", NULL},
    {FE_UP_BIAS, "model.layers.%d.mlp.fc1.bias", NULL},
    {FE_DOWN, "model.layers.%d.mlp.fc2.weight", NULL},
    {FE_DOWN_BIAS, "model.layers.%d.mlp.fc2.bias", NULL},
    {FE_FINAL_NORM, "model.final_layernorm.weight", NULL},
    {FE_FINAL_NORM_BIAS, "model.final_layernorm.bias", NULL},
    {FE_ROLE_COUNT, NULL, NULL}};

static const char *const hf_types[] = {"phi", NULL};
static const char *const architectures[] = {"phi2", NULL};

const fe_family fe_family_phi = {
    .name = "phi",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Phi-1, Phi-1.5, Phi-2",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
};
