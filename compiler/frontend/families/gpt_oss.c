/* gpt-oss: sinks in every head's softmax, windows in every other layer, and experts with a clamped
 * gate. Hugging Face files have the experts' matrices as [experts, columns, rows], gate and up in
 * turns in one tensor; GGUF files as llama.cpp's converter takes them apart. Yarn's ramp is not
 * rounded to whole pairs. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.head = 64,
                                        .kv_heads = 8,
                                        .positions = 131072,
                                        .theta = 150000,
                                        .eps = 1e-5,
                                        .gguf_pairing = STELE_PAIR_HALVES,
                                        .yarn_exact = true};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  fe_decoder_add(model, FE_ROLE(FE_SINKS));
  fe_decoder_optional(config, model, "attention_bias", true, FE_ATTENTION_BIASES);
  fe_decoder_windows(config, model, 2, 128);
  fe_decoder_experts(config, model, 4);
  model->experts.normalise = true;
  model->experts.function = STELE_SWIGLU_CLAMPED;
  model->experts.alpha = fe_config_number(config, "swiglu_alpha", 1.702);
  model->experts.limit = fe_config_number(config, "swiglu_limit", 7.0);
  fe_decoder_drop(model, FE_DENSE_MLP);
  fe_decoder_add(model, FE_EXPERT_MLP | FE_ROLE(FE_ROUTER_BIAS) | FE_ROLE(FE_EXPERT_GATE_BIAS) |
                            FE_ROLE(FE_EXPERT_UP_BIAS) | FE_ROLE(FE_EXPERT_DOWN_BIAS));
  return fe_config_status(config);
}

static void set_dims(fe_place *place, uint64_t rows, uint64_t columns) {
  place->dims[1] = rows;
  place->dims[2] = columns;
}

/* Row i of an expert's gate is column 2 i of its tensor, of its up column 2 i + 1. */
static void place(const fe_model *model, fe_role role, bool gguf, fe_place *place) {
  const uint64_t inner = model->experts.inner, hidden = model->hidden;
  const bool up = role == FE_EXPERT_UP || role == FE_EXPERT_UP_BIAS;
  if (gguf) return;
  switch (role) {
    case FE_EXPERT_GATE:
    case FE_EXPERT_UP:
      set_dims(place, hidden, 2 * inner);
      place->view = (fe_view){inner, up, hidden, 2, true};
      break;
    case FE_EXPERT_GATE_BIAS:
    case FE_EXPERT_UP_BIAS:
      place->dims[1] = 2 * inner;
      place->view = (fe_view){inner, up, 1, 2, true};
      break;
    case FE_EXPERT_DOWN:
      set_dims(place, inner, hidden);
      place->view = (fe_view){hidden, 0, inner, 1, true};
      break;
    default:
      break;
  }
}

#define EXPERTS "model.layers.%d.mlp.experts."

static const fe_name names[] = {{FE_MLP_NORM, NULL, "blk.%d.post_attention_norm.weight"},
                                {FE_ROUTER, "model.layers.%d.mlp.router.weight", NULL},
                                {FE_ROUTER_BIAS, "model.layers.%d.mlp.router.bias", NULL},
                                {FE_EXPERT_GATE, EXPERTS "gate_up_proj", NULL},
                                {FE_EXPERT_UP, EXPERTS "gate_up_proj", NULL},
                                {FE_EXPERT_DOWN, EXPERTS "down_proj", NULL},
                                {FE_EXPERT_GATE_BIAS, EXPERTS "gate_up_proj_bias", NULL},
                                {FE_EXPERT_UP_BIAS, EXPERTS "gate_up_proj_bias", NULL},
                                {FE_EXPERT_DOWN_BIAS, EXPERTS "down_proj_bias", NULL},
                                {FE_ROLE_COUNT, NULL, NULL}};

static const char *const hf_types[] = {"gpt_oss", NULL};
static const char *const architectures[] = {"gpt-oss", NULL};

const fe_family fe_family_gpt_oss = {
    .name = "gpt_oss",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "gpt-oss",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
    .place = place,
};
