/* Cohere's Command R: attention and feed-forward side by side behind one centred norm without bias,
 * rope of neighbours, scaled logits, and in the larger models a norm of its own for each head. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.positions = 8192,
                                        .theta = 1e4,
                                        .eps = 1e-5,
                                        .pairing = STELE_PAIR_INTERLEAVED,
                                        .gguf_pairing = STELE_PAIR_INTERLEAVED,
                                        .norm = FE_NORM_LAYER,
                                        .tied = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  model->head_norm = FE_HEAD_NORM_OWN;
  model->logit_scale = fe_config_number(config, "logit_scale", 0.0625);
  for (uint32_t i = 0; i < model->layers; i++) model->layer[i].parallel = true;
  fe_decoder_drop(model, FE_NORM_BIASES | FE_ROLE(FE_MLP_NORM));
  fe_decoder_optional(config, model, "use_qk_norm", false, FE_HEAD_NORMS);
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"cohere", NULL};
static const char *const architectures[] = {"command-r", NULL};

const fe_family fe_family_cohere = {
    .name = "cohere",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Command R, Command R+",
    .describe = describe,
    .has = fe_decoder_has,
};
