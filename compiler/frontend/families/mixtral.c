/* Mixtral: Mistral's graph with experts in place of the feed-forward block, of which each token has
 * the best by softmax, weighted by their share of it. GGUF files call it llama. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {
      .kv_heads = 8, .positions = 131072, .theta = 1e6, .eps = 1e-5};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_decoder_experts(config, model, 2);
  model->experts.normalise = true;
  fe_decoder_drop(model, FE_DENSE_MLP);
  fe_decoder_add(model, FE_EXPERT_MLP);
  bool windows = fe_config_get(config, "sliding_window") != NULL;
  fe_decoder_windows(config, model, windows ? FE_NEVER : FE_ALWAYS, 0);
  return fe_config_status(config);
}

#define BLOCK "model.layers.%d.block_sparse_moe."

static const fe_name names[] = {{FE_ROUTER, BLOCK "gate.weight", NULL},
                                {FE_EXPERT_GATE, BLOCK "experts.%e.w1.weight", NULL},
                                {FE_EXPERT_UP, BLOCK "experts.%e.w3.weight", NULL},
                                {FE_EXPERT_DOWN, BLOCK "experts.%e.w2.weight", NULL},
                                {FE_ROLE_COUNT, NULL, NULL}};

static const char *const hf_types[] = {"mixtral", NULL};
static const char *const architectures[] = {NULL};

const fe_family fe_family_mixtral = {
    .name = "mixtral",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Mixtral",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
};
