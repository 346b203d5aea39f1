/* Qwen3 with experts: Qwen3's graph, in which every decoder_sparse_step-th layer has experts but
 * for those that mlp_only_layers lists. Files in which nothing is said of norm_topk_prob:
 * config.json means no (transformers, Qwen3MoeConfig), llama.cpp's graph of GGUF files normalises.
 */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static void choose_layers(const fe_config *config, fe_model *model) {
  const json_t *dense = fe_config_list(config, "mlp_only_layers");
  uint32_t step = fe_config_count(config, "decoder_sparse_step", 1);
  for (uint32_t i = 0; i < model->layers; i++) {
    uint64_t *roles = &model->layer[i].roles;
    if (fe_config_listed(dense, i) || (i + 1) % step != 0) continue;
    *roles = (*roles & ~FE_DENSE_MLP) | FE_EXPERT_MLP;
  }
}

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.kv_heads = 4,
                                        .positions = 32768,
                                        .theta = 1e4,
                                        .eps = 1e-6,
                                        .gguf_pairing = STELE_PAIR_HALVES};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_decoder_add(model, FE_HEAD_NORMS);
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  fe_decoder_experts(config, model, 8);
  model->experts.normalise = fe_config_bool(config, "norm_topk_prob", config->gguf);
  choose_layers(config, model);
  fe_decoder_window_flag(config, model, 28);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"qwen3_moe", NULL};
static const char *const architectures[] = {"qwen3moe", NULL};

const fe_family fe_family_qwen3_moe = {
    .name = "qwen3_moe",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Qwen3 with experts",
    .describe = describe,
    .has = fe_decoder_has,
};
