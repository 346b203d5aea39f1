/* The common reader of decoder-only models. Every field is read even when another was wrong, so
 * that all mistakes show at once; derived values are computed only from sound ones. */
#include "frontend/decoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frontend/rope.h"
#include "stele/program.h"

#define MAX_LAYERS 10000u
#define MAX_HEAD 65536u
#define MAX_EXPERTS 65535u

uint32_t fe_decoder_function(const fe_config *config, const char *field, const char *fallback) {
  static const struct {
    const char *name;
    uint32_t function;
  } known[] = {{"silu", STELE_SILU},
               {"swish", STELE_SILU},
               {"gelu", STELE_GELU},
               {"gelu_new", STELE_GELU_TANH},
               {"gelu_pytorch_tanh", STELE_GELU_TANH},
               {"gelu_fast", STELE_GELU_TANH},
               {"relu", STELE_RELU}};
  const char *name = fe_config_text(config, field, fallback);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].name, name) == 0) return known[i].function;
  fe_config_bad(config, field,
                "is \"%.64s\", which is not supported; supported: silu, swish, gelu, gelu_new, "
                "gelu_pytorch_tanh, gelu_fast, relu",
                name);
  return STELE_SILU;
}

/* Families that came to be called otherwise keep the older field beside the one that counts. */
static uint32_t read_function(const fe_config *config, const char *fallback) {
  const char *newer = fe_config_text(config, "hidden_activation", NULL);
  if (newer) return fe_decoder_function(config, "hidden_activation", newer);
  return fe_decoder_function(config, "hidden_act", fallback ? fallback : "silu");
}

static uint32_t derived_head(const fe_config *config, const fe_model *model) {
  if (fe_config_sound(config) && model->hidden % model->heads != 0)
    fe_config_bad(config, "hidden_size", "is %u, expected a multiple of the %u attention heads",
                  model->hidden, model->heads);
  uint32_t head = model->hidden / model->heads;
  return head ? head : 1;
}

static uint32_t read_head(const fe_config *config, const char *field, uint32_t fallback) {
  uint32_t head = fe_config_count(config, field, fallback);
  if (head <= MAX_HEAD) return head;
  fe_config_bad(config, field, "is %u, expected at most %u", head, MAX_HEAD);
  return 2;
}

static void read_heads(const fe_config *config, fe_model *model,
                       const fe_decoder_defaults *defaults) {
  uint32_t default_head = defaults->head;
  model->heads = fe_config_count(config, "num_attention_heads", FE_REQUIRED);
  model->kv_heads = fe_config_count(config, "num_key_value_heads",
                                    defaults->kv_heads ? defaults->kv_heads : model->heads);
  uint32_t head = default_head;
  if (!default_head && !fe_config_get(config, "head_dim")) head = derived_head(config, model);
  model->key_head = read_head(config, "head_dim", head);
  model->value_head = read_head(config, "v_head_dim", model->key_head);
  if (fe_config_sound(config) && model->heads % model->kv_heads != 0)
    fe_config_bad(config, "num_attention_heads",
                  "is %u, expected a multiple of the %u key and value heads", model->heads,
                  model->kv_heads);
  if ((uint64_t)model->heads * model->key_head > INT32_MAX ||
      (uint64_t)model->heads * model->value_head > INT32_MAX)
    fe_config_bad(config, "num_attention_heads", "times the size of a head is too large");
}

static void read_dimensions(const fe_config *config, fe_model *model,
                            const fe_decoder_defaults *defaults) {
  bool layer_norm = defaults->norm == FE_NORM_LAYER;
  model->vocab = fe_config_count(config, "vocab_size", FE_REQUIRED);
  model->hidden = fe_config_count(config, "hidden_size", FE_REQUIRED);
  model->layers = fe_config_count(config, "num_hidden_layers", FE_REQUIRED);
  uint64_t inner = (uint64_t)model->hidden * defaults->intermediate;
  model->intermediate = fe_config_count(
      config, "intermediate_size", inner && inner <= INT32_MAX ? (uint32_t)inner : FE_REQUIRED);
  model->model_positions = fe_config_count(config, "max_position_embeddings", defaults->positions);
  model->norm = defaults->norm;
  model->norm_eps =
      fe_config_number(config, layer_norm ? "layer_norm_eps" : "rms_norm_eps", defaults->eps);
  model->function = read_function(config, defaults->activation);
  model->embed_scale = model->residual_scale = model->logit_scale = 1.0;
  read_heads(config, model, defaults);
  if (model->layers > MAX_LAYERS) {
    fe_config_bad(config, "num_hidden_layers", "is %u, expected at most %u", model->layers,
                  MAX_LAYERS);
    model->layers = 1;
  }
}

/* ---- roles ----------------------------------------------------------------------------- */

static uint64_t layer_roles(uint64_t roles) {
  uint64_t found = 0;
  for (uint32_t role = 0; role < FE_ROLE_COUNT; role++)
    if (fe_role_in_layers((fe_role)role)) found |= roles & FE_ROLE(role);
  return found;
}

void fe_decoder_add(fe_model *model, uint64_t roles) {
  uint64_t in_layers = layer_roles(roles);
  model->roles |= roles & ~in_layers;
  for (uint32_t i = 0; i < model->layers; i++) model->layer[i].roles |= in_layers;
}

void fe_decoder_drop(fe_model *model, uint64_t roles) {
  model->roles &= ~roles;
  for (uint32_t i = 0; i < model->layers; i++) model->layer[i].roles &= ~roles;
}

void fe_decoder_optional(const fe_config *config, fe_model *model, const char *flag, bool fallback,
                         uint64_t roles) {
  if (!config->gguf) {
    if (fe_config_bool(config, flag, fallback)) fe_decoder_add(model, roles);
    return;
  }
  for (uint32_t role = 0; role < FE_ROLE_COUNT; role++)
    if ((roles & FE_ROLE(role)) && fe_model_stores(model, true, (fe_role)role))
      fe_decoder_add(model, FE_ROLE(role));
}

/* ---- scores and logits ----------------------------------------------------------------- */

static double read_cap(const fe_config *config, const char *field, double fallback) {
  return fe_config_number(config, field, json_object_get(config->root, field) ? 0 : fallback);
}

void fe_decoder_soft_caps(const fe_config *config, fe_model *model, double scores, double logits) {
  model->soft_cap = read_cap(config, "attn_logit_softcapping", scores);
  model->logit_soft_cap = read_cap(config, "final_logit_softcapping", logits);
}

void fe_decoder_query_scalar(const fe_config *config, fe_model *model, uint32_t largest_layers) {
  double scalar = model->layers == largest_layers ? model->hidden / (double)model->heads
                                                  : (double)model->key_head;
  if (!config->gguf) scalar = fe_config_number(config, "query_pre_attn_scalar", 256);
  for (uint32_t i = 0; i < model->layers; i++) model->layer[i].attention_scale = 1.0 / sqrt(scalar);
}

/* ---- experts --------------------------------------------------------------------------- */

void fe_decoder_experts(const fe_config *config, fe_model *model, uint32_t used_fallback) {
  fe_experts *e = &model->experts;
  *e = (fe_experts){.count = fe_config_count(config, "num_experts", FE_REQUIRED),
                    .used = fe_config_count(config, "num_experts_per_tok", used_fallback),
                    .inner = fe_config_count(config, "moe_intermediate_size", model->intermediate),
                    .scale = 1.0,
                    .function = model->function};
  if (e->count > MAX_EXPERTS) {
    fe_config_bad(config, "num_experts", "is %u, expected at most %u", e->count, MAX_EXPERTS);
    e->count = 1;
  }
  if (e->used > e->count && fe_config_sound(config))
    fe_config_bad(config, "num_experts_per_tok", "is %u, expected at most the %u experts there are",
                  e->used, e->count);
}

/* ---- all of it ------------------------------------------------------------------------- */

static stele_status list_layers(fe_model *model, stele_sink *sink) {
  model->layer = base_arena_alloc(&model->arena, model->layers, sizeof *model->layer);
  if (!model->layer)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", model->path);
  for (uint32_t i = 0; i < model->layers; i++)
    model->layer[i] = (fe_layer){.group_kind = STELE_GROUP_FULL,
                                 .attention_scale = 1.0 / sqrt((double)model->key_head)};
  return STELE_OK;
}

static stele_status read_rope(const fe_config *config, fe_model *model,
                              const fe_decoder_defaults *defaults, stele_sink *sink) {
  const fe_rope_options options = {
      .object = "rope_parameters",
      .head = model->key_head,
      .pairing = config->gguf ? defaults->gguf_pairing : defaults->pairing,
      .theta = defaults->theta,
      .partial = defaults->partial,
      .yarn_exact = defaults->yarn_exact};
  if (!defaults->no_rope) return fe_rope_add(config, model, &options, sink);
  for (uint32_t i = 0; i < model->layers; i++) model->layer[i].rope = -1;
  return STELE_OK;
}

stele_status fe_decoder_describe(const fe_config *config, fe_model *model,
                                 const fe_decoder_defaults *defaults, stele_sink *sink) {
  read_dimensions(config, model, defaults);
  model->tied = config->gguf ? !fe_model_stores(model, true, FE_HEAD)
                             : fe_config_bool(config, "tie_word_embeddings", defaults->tied);
  BASE_TRY(list_layers(model, sink));
  fe_decoder_add(model, FE_ROLE(FE_EMBED) | FE_ROLE(FE_ATTENTION_NORM) | FE_ROLE(FE_Q) |
                            FE_ROLE(FE_K) | FE_ROLE(FE_V) | FE_ROLE(FE_O) | FE_ROLE(FE_MLP_NORM) |
                            FE_DENSE_MLP | FE_ROLE(FE_FINAL_NORM));
  if (defaults->norm == FE_NORM_LAYER) fe_decoder_add(model, FE_NORM_BIASES);
  if (defaults->plain) fe_decoder_drop(model, FE_ROLE(FE_GATE));
  if (!model->tied) fe_decoder_add(model, FE_ROLE(FE_HEAD));
  return read_rope(config, model, defaults, sink);
}
