/* Qwen3, dense: Llama's graph with a norm over each head of query and key, before rope. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.head = 128,
                                        .positions = 32768,
                                        .theta = 1e4,
                                        .eps = 1e-6,
                                        .gguf_pairing = STELE_PAIR_HALVES};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_decoder_add(model, FE_HEAD_NORMS);
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  fe_decoder_window_flag(config, model, 28);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"qwen3", NULL};
static const char *const architectures[] = {"qwen3", NULL};

const fe_family fe_family_qwen3 = {
    .name = "qwen3",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Qwen3, dense",
    .describe = describe,
    .has = fe_decoder_has,
};
