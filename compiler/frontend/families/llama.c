/* Llama 1 to 3, and what shares its graph: SmolLM, SmolLM2, TinyLlama.
 *
 * GGUF files of this architecture have the rows of Q and K permuted so that rope turns neighbours
 * (convert_hf_to_gguf.py, LlamaModel.permute): the same function, another pairing. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {
      .positions = 2048, .theta = 1e4, .eps = 1e-6, .gguf_pairing = STELE_PAIR_INTERLEAVED};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  fe_decoder_optional(config, model, "mlp_bias", false, FE_MLP_BIASES);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"llama", NULL};
static const char *const architectures[] = {"llama", NULL};

const fe_family fe_family_llama = {
    .name = "llama",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Llama 1 to 3, SmolLM2, TinyLlama",
    .describe = describe,
    .has = fe_decoder_has,
};
