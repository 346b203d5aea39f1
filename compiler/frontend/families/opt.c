/* OPT: centred norms, biases, a plain feed-forward block with ReLU, and learned positions, of which
 * the first token has the third. Norms behind instead of before (350M, which also embeds in fewer
 * numbers than it computes with) are refused by name. GGUF files have no such architecture. */
#include "frontend/decoder.h"
#include "frontend/families.h"

static void check_projection(const fe_config *config, const fe_model *model) {
  uint32_t width = fe_config_count(config, "word_embed_proj_dim", model->hidden);
  if (width != model->hidden)
    fe_config_bad(config, "word_embed_proj_dim",
                  "is %u, which is not supported; only 'hidden_size' is, which is %u", width,
                  model->hidden);
}

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.positions = 2048,
                                        .eps = 1e-5,
                                        .norm = FE_NORM_LAYER,
                                        .activation = "relu",
                                        .tied = true,
                                        .plain = true,
                                        .no_rope = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  check_projection(config, model);
  model->positions_offset = 2;
  fe_decoder_add(model, FE_ROLE(FE_POSITIONS));
  fe_decoder_optional(config, model, "enable_bias", true, FE_ATTENTION_BIASES | FE_PLAIN_BIASES);
  if (fe_config_bool(config, "_remove_final_layer_norm", false))
    fe_decoder_drop(model, FE_ROLE(FE_FINAL_NORM) | FE_ROLE(FE_FINAL_NORM_BIAS));
  return fe_config_status(config);
}

#define LAYER "model.decoder.layers.%d."

static const fe_name names[] = {{FE_EMBED, "model.decoder.embed_tokens.weight", NULL},
                                {FE_POSITIONS, "model.decoder.embed_positions.weight", NULL},
                                {FE_ATTENTION_NORM, LAYER "self_attn_layer_norm.weight", NULL},
                                {FE_ATTENTION_NORM_BIAS, LAYER "self_attn_layer_norm.bias", NULL},
                                {FE_Q, LAYER "self_attn.q_proj.weight", NULL},
                                {FE_K, LAYER "self_attn.k_proj.weight", NULL},
                                {FE_V, LAYER "self_attn.v_proj.weight", NULL},
                                {FE_Q_BIAS, LAYER "self_attn.q_proj.bias", NULL},
                                {FE_K_BIAS, LAYER "self_attn.k_proj.bias", NULL},
                                {FE_V_BIAS, LAYER "self_attn.v_proj.bias", NULL},
                                {FE_O, LAYER "self_attn.out_proj.weight", NULL},
                                {FE_O_BIAS, LAYER "self_attn.out_proj.bias", NULL},
                                {FE_MLP_NORM, LAYER "final_layer_norm.weight", NULL},
                                {FE_MLP_NORM_BIAS, LAYER "final_layer_norm.bias", NULL},
                                {FE_UP, LAYER "fc1.weight", NULL},
                                {FE_UP_BIAS, LAYER "fc1.bias", NULL},
                                {FE_DOWN, LAYER "fc2.weight", NULL},
                                {FE_DOWN_BIAS, LAYER "fc2.bias", NULL},
                                {FE_FINAL_NORM, "model.decoder.final_layer_norm.weight", NULL},
                                {FE_FINAL_NORM_BIAS, "model.decoder.final_layer_norm.bias", NULL},
                                {FE_ROLE_COUNT, NULL, NULL}};

static const char *const hf_types[] = {"opt", NULL};
static const char *const architectures[] = {NULL};

const fe_family fe_family_opt = {
    .name = "opt",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "OPT, all but 350M",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
    .prefix = "model.",
};
