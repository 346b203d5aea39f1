/* Llama 4, text: chunks in three layers of four, no rope but temperatures by position in the
 * fourth, heads that are normed without weights, and experts of which each token has the best by
 * sigmoid, scaled on the way in, beside a shared one. The norm comes before rope here, behind it in
 * transformers: turning keeps the length. GGUF files do not say what all released models share. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static void choose_experts(const fe_config *config, fe_model *model) {
  uint32_t step = fe_config_count(config, "interleave_moe_layer_step", 1);
  const json_t *list = fe_config_list(config, "moe_layers");
  fe_decoder_experts(config, model, 1);
  model->experts.shared_inner = model->experts.inner;
  model->experts.rule = STELE_ROUTE_SIGMOID;
  model->experts.scale_input = true;
  if (!config->gguf) model->intermediate = fe_config_count(config, "intermediate_size_mlp", 16384);
  for (uint32_t i = 0; i < model->layers; i++) {
    uint64_t *roles = &model->layer[i].roles;
    if (list ? fe_config_listed(list, i) : (i + 1) % step == 0)
      *roles = (*roles & ~FE_DENSE_MLP) | FE_EXPERT_MLP | FE_SHARED_MLP;
  }
}

/* In older files a number says whether queries are tuned. */
static void tune_queries(const fe_config *config, fe_model *model) {
  const json_t *flag = fe_config_get(config, "attn_temperature_tuning");
  double scale = fe_config_number(config, "attn_scale", 0.1);
  double floor_scale = fe_config_number(config, "floor_scale", 8192);
  bool tuned = !flag || json_is_true(flag) || json_integer_value(flag) != 0;
  for (uint32_t i = 0; tuned && i < model->layers; i++) {
    if (model->layer[i].rope >= 0) continue;
    model->layer[i].query_scale = scale;
    model->layer[i].query_floor = floor_scale;
  }
}

/* Where nothing is said of chunks, the layers that turn have them. */
static void check_types(const fe_config *config, const fe_model *model) {
  bool chunked, turned;
  for (uint32_t i = 0; !fe_config_get(config, "layer_types") && i < model->layers; i++) {
    chunked = model->layer[i].group_kind == STELE_GROUP_CHUNK;
    turned = model->layer[i].rope >= 0;
    if (chunked != turned)
      fe_config_bad(config, "layer_types", "is missing, and layer %u is not by the pattern", i);
  }
}

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.head = 128,
                                        .kv_heads = 8,
                                        .positions = 131072,
                                        .theta = 5e5,
                                        .eps = 1e-5,
                                        .pairing = STELE_PAIR_INTERLEAVED,
                                        .gguf_pairing = STELE_PAIR_INTERLEAVED};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_config_get(config, "sliding_window"); /* of GGUF files: says nothing of a chunk's size */
  fe_decoder_chunks(config, model, 4, 8192);
  fe_decoder_no_rope(config, model, 4);
  check_types(config, model);
  fe_decoder_optional(config, model, "attention_bias", false, FE_ATTENTION_BIASES);
  choose_experts(config, model);
  tune_queries(config, model);
  bool normed = fe_config_bool(config, "use_qk_norm", !config->gguf || model->experts.count != 128);
  for (uint32_t i = 0; normed && i < model->layers; i++)
    if (model->layer[i].rope >= 0) model->layer[i].roles |= FE_HEAD_NORMS;
  return fe_config_status(config);
}

/* Hugging Face files have the experts' matrices as [experts, columns, rows], gate and up in one. */
static void place(const fe_model *model, fe_role role, bool gguf, fe_place *place) {
  const uint64_t inner = model->experts.inner, hidden = model->hidden;
  if (role == FE_Q_NORM || role == FE_K_NORM) *place = (fe_place){.plus = 1.0f};
  if (gguf || (role != FE_EXPERT_GATE && role != FE_EXPERT_UP && role != FE_EXPERT_DOWN)) return;
  bool down = role == FE_EXPERT_DOWN;
  place->dims[1] = down ? inner : hidden;
  place->dims[2] = down ? hidden : 2 * inner;
  place->view = (fe_view){.block = down ? hidden : inner,
                          .first = role == FE_EXPERT_UP ? inner : 0,
                          .stride = place->dims[1],
                          .step = 1,
                          .transposed = true};
}

#define BLOCK "model.layers.%d.feed_forward."

static const fe_name names[] = {{FE_GATE, BLOCK "gate_proj.weight", NULL},
                                {FE_UP, BLOCK "up_proj.weight", NULL},
                                {FE_DOWN, BLOCK "down_proj.weight", NULL},
                                {FE_ROUTER, BLOCK "router.weight", NULL},
                                {FE_EXPERT_GATE, BLOCK "experts.gate_up_proj", NULL},
                                {FE_EXPERT_UP, BLOCK "experts.gate_up_proj", NULL},
                                {FE_EXPERT_DOWN, BLOCK "experts.down_proj", NULL},
                                {FE_SHARED_GATE, BLOCK "shared_expert.gate_proj.weight", NULL},
                                {FE_SHARED_UP, BLOCK "shared_expert.up_proj.weight", NULL},
                                {FE_SHARED_DOWN, BLOCK "shared_expert.down_proj.weight", NULL},
                                {FE_ROLE_COUNT, NULL, NULL}};

static const char *const hf_types[] = {"llama4_text", NULL};
static const char *const architectures[] = {"llama4", NULL};

const fe_family fe_family_llama4 = {
    .name = "llama4",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Llama 4, text",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
    .place = place,
};
