/* Gemma 2: Gemma's graph with norms before and behind attention and feed-forward, soft caps on
 * scores and logits, and windows in every other layer. GGUF files do not say what the scores are
 * divided by: only the 27B model, known by its 46 layers, has not the root of a head. */
#include <math.h>

#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.head = 256,
                                        .kv_heads = 4,
                                        .positions = 8192,
                                        .theta = 1e4,
                                        .eps = 1e-6,
                                        .gguf_pairing = STELE_PAIR_HALVES,
                                        .activation = "gelu_pytorch_tanh",
                                        .tied = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  model->embed_scale = (double)sqrtf((float)model->hidden);
  fe_decoder_add(model, FE_ROLE(FE_POST_ATTENTION_NORM) | FE_ROLE(FE_POST_MLP_NORM));
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  fe_decoder_query_scalar(config, model, 46);
  fe_decoder_soft_caps(config, model, 50, 30);
  fe_decoder_windows(config, model, 2, 4096);
  return fe_config_status(config);
}

static const fe_name names[] = {
    {FE_MLP_NORM, "model.layers.%d.pre_feedforward_layernorm.weight", NULL},
    {FE_ROLE_COUNT, NULL, NULL}};

static const char *const hf_types[] = {"gemma2", NULL};
static const char *const architectures[] = {"gemma2", NULL};

const fe_family fe_family_gemma2 = {
    .name = "gemma2",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Gemma 2",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
    .place = fe_place_norm_less_one,
};
