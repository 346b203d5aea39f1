/* SmolLM3: Llama's graph, in which every fourth layer has no rope. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.kv_heads = 4,
                                        .positions = 32768,
                                        .theta = 2e6,
                                        .eps = 1e-6,
                                        .gguf_pairing = STELE_PAIR_INTERLEAVED,
                                        .tied = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  fe_decoder_optional(config, model, "mlp_bias", false, FE_MLP_BIASES);
  fe_decoder_window_flag(config, model, 0);
  fe_decoder_no_rope(config, model, 4);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"smollm3", NULL};
static const char *const architectures[] = {"smollm3", NULL};

const fe_family fe_family_smollm3 = {
    .name = "smollm3",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "SmolLM3",
    .describe = describe,
    .has = fe_decoder_has,
};
