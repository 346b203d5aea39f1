/* OLMo 2: Llama's graph with norms behind attention and feed-forward instead of before them, and
 * one over all heads of the query, one over all of the key. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {
      .positions = 2048, .theta = 1e4, .eps = 1e-5, .gguf_pairing = STELE_PAIR_HALVES};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  model->head_norm = FE_HEAD_NORM_WHOLE;
  fe_decoder_drop(model, FE_ROLE(FE_ATTENTION_NORM) | FE_ROLE(FE_MLP_NORM));
  fe_decoder_add(model,
                 FE_HEAD_NORMS | FE_ROLE(FE_POST_ATTENTION_NORM) | FE_ROLE(FE_POST_MLP_NORM));
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"olmo2", NULL};
static const char *const architectures[] = {"olmo2", NULL};

const fe_family fe_family_olmo2 = {
    .name = "olmo2",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "OLMo 2",
    .describe = describe,
    .has = fe_decoder_has,
};
