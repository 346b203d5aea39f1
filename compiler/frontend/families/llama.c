/* Llama 1 to 3, and what shares its graph: SmolLM, SmolLM2, TinyLlama.
 *
 * GGUF files of this architecture have the rows of Q and K permuted so that rope turns neighbours
 * (convert_hf_to_gguf.py, LlamaModel.permute): the same function, another pairing. Those of Mixtral
 * are of this architecture, too, with experts. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static void add_experts(const fe_config *config, fe_model *model) {
  if (!config->gguf || json_integer_value(fe_config_get(config, "num_experts")) <= 0) return;
  fe_decoder_experts(config, model, FE_REQUIRED);
  model->experts.normalise = true;
  fe_decoder_drop(model, FE_DENSE_MLP);
  fe_decoder_add(model, FE_EXPERT_MLP);
}

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {
      .positions = 2048, .theta = 1e4, .eps = 1e-6, .gguf_pairing = STELE_PAIR_INTERLEAVED};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  fe_decoder_optional(config, model, "mlp_bias", false, FE_MLP_BIASES);
  add_experts(config, model);
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
