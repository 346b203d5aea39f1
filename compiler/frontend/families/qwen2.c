/* Qwen 1.5, Qwen2, Qwen2.5: Llama's graph with biases on query, key and value, and windows in the
 * upper layers where the configuration switches them on. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {
      .positions = 32768, .theta = 1e4, .eps = 1e-6, .gguf_pairing = STELE_PAIR_HALVES};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_decoder_add(model, FE_QKV_BIASES);
  fe_decoder_window_flag(config, model, 28);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"qwen2", NULL};
static const char *const architectures[] = {"qwen2", NULL};

const fe_family fe_family_qwen2 = {
    .name = "qwen2",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Qwen 1.5, 2 and 2.5, dense",
    .describe = describe,
    .has = fe_decoder_has,
};
