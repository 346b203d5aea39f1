/* Mistral: Llama's graph, with a window in all layers where the configuration has one. A silent
 * configuration means 4096 tokens (transformers, MistralConfig). GGUF files call it llama. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.positions = 131072, .theta = 1e4, .eps = 1e-6};
  bool windows = !json_is_null(json_object_get(config->root, "sliding_window"));
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_decoder_windows(config, model, windows ? FE_NEVER : FE_ALWAYS, 4096);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"mistral", NULL};
static const char *const architectures[] = {NULL};

const fe_family fe_family_mistral = {
    .name = "mistral",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Mistral, Ministral, with windows",
    .describe = describe,
    .has = fe_decoder_has,
};
