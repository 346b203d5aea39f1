/* Granite 3, dense: Llama's graph with a factor on the embedding, on scores, on what attention and
 * feed-forward add, and under the logits. GGUF files have Q and K permuted as Llama's. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {
      .positions = 2048, .theta = 1e4, .eps = 1e-6, .gguf_pairing = STELE_PAIR_INTERLEAVED};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  const char *divisor = config->gguf ? "logit_scale" : "logits_scaling";
  model->embed_scale = fe_config_number(config, "embedding_multiplier", 1.0);
  model->residual_scale = fe_config_number(config, "residual_multiplier", 1.0);
  model->logit_scale = 1.0 / fe_config_number(config, divisor, 1.0);
  double scale = fe_config_number(config, "attention_multiplier", 1.0);
  for (uint32_t i = 0; i < model->layers; i++) model->layer[i].attention_scale = scale;
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  fe_decoder_optional(config, model, "mlp_bias", false, FE_MLP_BIASES);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"granite", NULL};
static const char *const architectures[] = {"granite", NULL};

const fe_family fe_family_granite = {
    .name = "granite",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Granite 3, dense",
    .describe = describe,
    .has = fe_decoder_has,
};
