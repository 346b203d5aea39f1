/* Llama, and what shares its graph: SmolLM, SmolLM2, TinyLlama, Mistral without a window.
 *
 * GGUF files of this architecture have the rows of Q and K permuted so that rope turns neighbours
 * (convert_hf_to_gguf.py, LlamaModel.permute): the same function, another pairing. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

#include <string.h>

#define ATTENTION_BIASES \
  (FE_ROLE(FE_Q_BIAS) | FE_ROLE(FE_K_BIAS) | FE_ROLE(FE_V_BIAS) | FE_ROLE(FE_O_BIAS))
#define MLP_BIASES (FE_ROLE(FE_GATE_BIAS) | FE_ROLE(FE_UP_BIAS) | FE_ROLE(FE_DOWN_BIAS))

/* transformers gives a Mistral whose configuration is silent a window of 4096 tokens. */
static void check_window(const fe_config *config) {
  bool silent = !json_object_get(config->root, "sliding_window");
  if (!config->gguf && strcmp(config->type, "mistral") == 0 && silent)
    fe_config_bad(config, "sliding_window",
                  "is missing, which means 4096; only null (no window) is supported");
}

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  bool mistral = strcmp(config->type, "mistral") == 0;
  const fe_decoder_defaults defaults = {.positions = mistral ? 131072 : 2048,
                                        .theta = 1e4,
                                        .eps = 1e-6,
                                        .gguf_pairing = STELE_PAIR_INTERLEAVED};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_decoder_optional(config, model, "attention_bias", ATTENTION_BIASES);
  fe_decoder_optional(config, model, "mlp_bias", MLP_BIASES);
  check_window(config);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"llama", "mistral", NULL};
static const char *const architectures[] = {"llama", NULL};

const fe_family fe_family_llama = {
    .name = "llama",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Llama 1 to 3, SmolLM2, TinyLlama, Mistral without a window",
    .describe = describe,
    .has = fe_decoder_has,
};
