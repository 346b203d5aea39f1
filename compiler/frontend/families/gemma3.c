/* Gemma 3, text: Gemma's graph with norms before and behind attention and feed-forward, norms of
 * query and key heads, windows in five layers of six, and two ropes: one of short waves for
 * windows, one of long waves, scaled in the larger models, for the others. GGUF files do not say
 * what the scores are divided by: only the 27B model, known by its 62 layers, has not the root of a
 * head. */
#include <math.h>

#include "frontend/decoder.h"
#include "frontend/families.h"
#include "frontend/rope.h"
#include "stele/program.h"

/* Newer files have a rope for each type of layer. */
static stele_status add_ropes(const fe_config *config, fe_model *model, stele_sink *sink) {
  bool typed = fe_config_get(config, "rope_parameters.full_attention") != NULL;
  fe_rope_options whole = {.object = typed ? "rope_parameters.full_attention" : "rope_parameters",
                           .head = model->key_head,
                           .pairing = STELE_PAIR_HALVES,
                           .theta = 1e6};
  fe_rope_options local = whole;
  local.object = typed ? "rope_parameters.sliding_attention" : NULL;
  local.theta = typed ? 1e4 : fe_config_number(config, "rope_local_base_freq", 1e4);
  BASE_TRY(fe_rope_add(config, model, &whole, sink));
  BASE_TRY(fe_rope_add(config, model, &local, sink));
  for (uint32_t i = 0; i < model->layers; i++)
    model->layer[i].rope = model->layer[i].group_kind == STELE_GROUP_WINDOW;
  return STELE_OK;
}

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.head = 256,
                                        .kv_heads = 4,
                                        .positions = 131072,
                                        .eps = 1e-6,
                                        .activation = "gelu_pytorch_tanh",
                                        .tied = true,
                                        .no_rope = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  model->embed_scale = (double)sqrtf((float)model->hidden);
  fe_decoder_add(model,
                 FE_HEAD_NORMS | FE_ROLE(FE_POST_ATTENTION_NORM) | FE_ROLE(FE_POST_MLP_NORM));
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  fe_decoder_query_scalar(config, model, 62);
  fe_decoder_soft_caps(config, model, 0, 0);
  fe_decoder_windows(config, model, 6, 4096);
  BASE_TRY(add_ropes(config, model, sink));
  return fe_config_status(config);
}

static const fe_name names[] = {
    {FE_MLP_NORM, "model.layers.%d.pre_feedforward_layernorm.weight", NULL},
    {FE_ROLE_COUNT, NULL, NULL}};

static const char *const hf_types[] = {"gemma3_text", NULL};
static const char *const architectures[] = {"gemma3", NULL};

const fe_family fe_family_gemma3 = {
    .name = "gemma3",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Gemma 3, text",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
    .place = fe_place_norm_less_one,
};
