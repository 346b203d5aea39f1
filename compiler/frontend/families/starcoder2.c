/* StarCoder2: Llama's graph with centred norms, a plain feed-forward block and biases on all
 * projections; a window in all layers where the configuration has one. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.kv_heads = 2,
                                        .positions = 4096,
                                        .theta = 1e4,
                                        .eps = 1e-5,
                                        .gguf_pairing = STELE_PAIR_HALVES,
                                        .norm = FE_NORM_LAYER,
                                        .activation = "gelu_pytorch_tanh",
                                        .tied = true,
                                        .plain = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  bool windows = fe_config_get(config, "sliding_window") != NULL;
  fe_decoder_windows(config, model, windows ? FE_NEVER : FE_ALWAYS, 0);
  fe_decoder_optional(config, model, "use_bias", true, FE_ATTENTION_BIASES | FE_PLAIN_BIASES);
  return fe_config_status(config);
}

static const fe_name names[] = {{FE_UP, "model.layers.%d.mlp.c_fc.weight", NULL},
                                {FE_UP_BIAS, "model.layers.%d.mlp.c_fc.bias", NULL},
                                {FE_DOWN, "model.layers.%d.mlp.c_proj.weight", NULL},
                                {FE_DOWN_BIAS, "model.layers.%d.mlp.c_proj.bias", NULL},
                                {FE_ROLE_COUNT, NULL, NULL}};

static const char *const hf_types[] = {"starcoder2", NULL};
static const char *const architectures[] = {"starcoder2", NULL};

const fe_family fe_family_starcoder2 = {
    .name = "starcoder2",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "StarCoder2",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
};
