/* DeepSeek V3 and R1: latent attention (arXiv 2405.04434), and behind the first layers experts that
 * are chosen by sigmoid plus a correction within the best groups (arXiv 2412.19437), beside shared
 * ones. The layers that predict further tokens are left out. GGUF files have the two halves of
 * kv_b_proj apart, K's transposed in every head; their yarn has one mscale for both purposes, as
 * the released models do. */
#include <math.h>
#include <string.h>

#include "frontend/decoder.h"
#include "frontend/families.h"
#include "frontend/rope.h"
#include "stele/program.h"

#define MAX_PART 16384u
#define LATENT                                                                        \
  (FE_ROLE(FE_KV_A) | FE_ROLE(FE_KV_A_NORM) | FE_ROLE(FE_K_ROPE) | FE_ROLE(FE_K_UP) | \
   FE_ROLE(FE_V_UP))

/* The parts of a head: from GGUF files by the sums that they have. */
static void read_latent(const fe_config *config, fe_model *model) {
  const char *rotary = config->gguf ? "rope_parameters.rotary_dim" : "qk_rope_head_dim";
  const char *key = config->gguf ? "mla_key_head" : "qk_nope_head_dim";
  const char *value = config->gguf ? "mla_value_head" : "v_head_dim";
  fe_latent l = {.kv_rank = fe_config_count(config, "kv_lora_rank", 512),
                 .rope = fe_config_count(config, rotary, 64),
                 .nope = fe_config_count(config, key, config->gguf ? 192 : 128),
                 .value = fe_config_count(config, value, 128)};
  if (fe_config_get(config, "q_lora_rank"))
    l.q_rank = fe_config_count(config, "q_lora_rank", FE_REQUIRED);
  if (config->gguf && l.nope <= l.rope && fe_config_sound(config))
    fe_config_bad(config, key, "is %u, expected more than the %u that turn", l.nope, l.rope);
  else if (config->gguf)
    l.nope -= l.rope;
  if (l.kv_rank > MAX_PART || l.rope > MAX_PART || l.nope > MAX_PART || l.value > MAX_PART)
    fe_config_bad(config, "kv_lora_rank", "or a part of a head is larger than %u", MAX_PART);
  model->latent = l;
  model->kv_heads = 1;
  model->key_head = l.kv_rank + l.rope;
  model->value_head = l.kv_rank;
  fe_decoder_drop(model, FE_ROLE(FE_K) | FE_ROLE(FE_V));
  fe_decoder_add(model, LATENT | (l.q_rank ? FE_ROLE(FE_Q_A) | FE_ROLE(FE_Q_A_NORM) : 0));
}

/* Yarn also makes scores larger, by mscale_all_dim. */
static double score_scale(const fe_config *config, const fe_model *model) {
  const fe_latent *l = &model->latent;
  double mscale = config->gguf ? fe_config_number(config, "yarn_log_multiplier", 0) / 0.1
                               : fe_config_number(config, "rope_parameters.mscale_all_dim", 0);
  double yarn = mscale > 0 ? fe_rope_yarn_scale(model->ropes->factor, mscale) : 1.0;
  return yarn * yarn / sqrt((double)l->nope + l->rope);
}

static stele_status add_rope(const fe_config *config, fe_model *model, stele_sink *sink) {
  bool pairs = config->gguf || fe_config_bool(config, "rope_interleave", true);
  const fe_rope_options options = {.object = "rope_parameters",
                                   .head = model->latent.rope,
                                   .offset = model->latent.kv_rank,
                                   .pairing = pairs ? STELE_PAIR_INTERLEAVED : STELE_PAIR_HALVES,
                                   .theta = 1e4};
  BASE_TRY(fe_rope_add(config, model, &options, sink));
  if (config->gguf) model->ropes->attention_factor = 1.0;
  double scale = score_scale(config, model);
  for (uint32_t i = 0; i < model->layers; i++) {
    model->layer[i].rope = 0;
    model->layer[i].attention_scale = scale;
  }
  return STELE_OK;
}

static void check_choice(const fe_config *config) {
  uint32_t rule = config->gguf ? fe_config_count(config, "expert_gating_func", 1) : 2;
  const char *score = fe_config_text(config, "scoring_func", "sigmoid");
  const char *method = fe_config_text(config, "topk_method", "noaux_tc");
  if (rule != 2) fe_config_bad(config, "expert_gating_func", "is %u, expected 2 (sigmoid)", rule);
  if (strcmp(score, "sigmoid") != 0)
    fe_config_bad(config, "scoring_func", "is \"%.64s\", expected \"sigmoid\"", score);
  if (strcmp(method, "noaux_tc") != 0)
    fe_config_bad(config, "topk_method", "is \"%.64s\", expected \"noaux_tc\"", method);
}

static void choose_experts(const fe_config *config, fe_model *model) {
  fe_experts *e = &model->experts;
  uint32_t first = fe_config_index(config, "first_k_dense_replace", 3);
  fe_decoder_experts(config, model, 8);
  check_choice(config);
  e->rule = STELE_ROUTE_SIGMOID;
  e->normalise = fe_config_bool(config, "norm_topk_prob", !config->gguf);
  e->scale = fe_config_number(config, "routed_scaling_factor", config->gguf ? 1.0 : 2.5);
  e->groups = fe_config_count(config, "num_expert_groups", config->gguf ? 1 : 8);
  e->used_groups = fe_config_count(config, "num_expert_groups_used", config->gguf ? 1 : 4);
  uint64_t shared = (uint64_t)e->inner * fe_config_count(config, "n_shared_experts", 1);
  if (e->count % e->groups != 0 || e->used_groups > e->groups)
    fe_config_bad(config, "num_expert_groups", "is %u, of which %u are chosen, with %u experts",
                  e->groups, e->used_groups, e->count);
  if (shared > INT32_MAX) fe_config_bad(config, "n_shared_experts", "makes too many rows");
  e->shared_inner = (uint32_t)shared;
  for (uint32_t i = 0; i < model->layers; i++)
    if (i >= first)
      model->layer[i].roles = (model->layer[i].roles & ~FE_DENSE_MLP) | FE_EXPERT_MLP |
                              FE_SHARED_MLP | FE_ROLE(FE_ROUTER_CORRECTION);
}

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {
      .head = 64, .positions = 4096, .eps = 1e-6, .no_rope = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  read_latent(config, model);
  choose_experts(config, model);
  BASE_TRY(add_rope(config, model, sink));
  model->ignored_layers = fe_config_index(config, "num_nextn_predict_layers", 0);
  return fe_config_status(config);
}

static const char *const hf_types[] = {"deepseek_v3", NULL};
static const char *const architectures[] = {"deepseek2", NULL};

const fe_family fe_family_deepseek_v3 = {
    .name = "deepseek_v3",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "DeepSeek V3, R1",
    .describe = describe,
    .has = fe_decoder_has,
    .place = fe_place_latent,
};
