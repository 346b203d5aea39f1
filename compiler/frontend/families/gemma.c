/* Gemma 1: Llama's graph with the embedding times sqrt(hidden), norms whose weights are stored less
 * one (in Hugging Face files; GGUF files have them whole), GELU in the gate, and a tied head. The
 * published files say "gelu" where the model was trained with its approximation by tanh, which is
 * what Google's and llama.cpp's code compute. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

#include <math.h>

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.head = 256,
                                        .positions = 8192,
                                        .theta = 1e4,
                                        .eps = 1e-6,
                                        .gguf_pairing = STELE_PAIR_HALVES,
                                        .activation = "gelu_pytorch_tanh",
                                        .tied = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  model->embed_scale = (double)sqrtf((float)model->hidden);
  if (model->function == STELE_GELU) model->function = STELE_GELU_TANH;
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"gemma", NULL};
static const char *const architectures[] = {"gemma", NULL};

const fe_family fe_family_gemma = {
    .name = "gemma",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Gemma 1",
    .describe = describe,
    .has = fe_decoder_has,
    .place = fe_place_norm_less_one,
};
