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

static uint32_t read_function(const fe_config *config) {
  static const struct {
    const char *name;
    uint32_t function;
  } known[] = {{"silu", STELE_SILU},
               {"swish", STELE_SILU},
               {"gelu", STELE_GELU},
               {"gelu_new", STELE_GELU_TANH},
               {"gelu_pytorch_tanh", STELE_GELU_TANH},
               {"relu", STELE_RELU}};
  const char *name = fe_config_text(config, "hidden_act", "silu");
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].name, name) == 0) return known[i].function;
  fe_config_bad(config, "hidden_act",
                "is \"%.64s\", which is not supported; supported: silu, swish, gelu, gelu_new, "
                "gelu_pytorch_tanh, relu",
                name);
  return STELE_SILU;
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

static void read_heads(const fe_config *config, fe_model *model, uint32_t default_head) {
  model->heads = fe_config_count(config, "num_attention_heads", FE_REQUIRED);
  model->kv_heads = fe_config_count(config, "num_key_value_heads", model->heads);
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
  model->vocab = fe_config_count(config, "vocab_size", FE_REQUIRED);
  model->hidden = fe_config_count(config, "hidden_size", FE_REQUIRED);
  model->layers = fe_config_count(config, "num_hidden_layers", FE_REQUIRED);
  model->intermediate = fe_config_count(config, "intermediate_size", FE_REQUIRED);
  model->model_positions = fe_config_count(config, "max_position_embeddings", defaults->positions);
  model->norm_eps = fe_config_number(config, "rms_norm_eps", defaults->eps);
  model->function = read_function(config);
  model->embed_scale = 1.0;
  read_heads(config, model, defaults->head);
  model->attention_scale = 1.0 / sqrt((double)model->key_head);
  if (model->layers > MAX_LAYERS) {
    fe_config_bad(config, "num_hidden_layers", "is %u, expected at most %u", model->layers,
                  MAX_LAYERS);
    model->layers = 1;
  }
}

static void print_name(bool gguf, fe_role role, int32_t layer, char text[128]) {
  static const char *const names[][2] = {
#define ROLE(name, scope, hf, gguf_name) [FE_##name] = {hf, gguf_name},
#include "frontend/roles.def"
#undef ROLE
  };
  const char *name = names[role][gguf], *mark = strstr(name, "%d");
  if (mark)
    snprintf(text, 128, "%.*s%d%s", (int)(mark - name), name, layer, mark + 2);
  else
    snprintf(text, 128, "%s", name);
}

const char *fe_role_name(base_arena *arena, bool gguf, fe_role role, int32_t layer) {
  char text[128];
  print_name(gguf, role, layer, text);
  return base_arena_copy(arena, text, strlen(text));
}

static bool gguf_has(const fe_model *model, fe_role role, int32_t layer) {
  char name[128];
  print_name(true, role, layer, name);
  return fe_tensors_find(&model->tensors, name) != NULL;
}

void fe_decoder_optional(const fe_config *config, fe_model *model, const char *flag,
                         uint64_t roles) {
  if (!config->gguf) {
    if (fe_config_bool(config, flag, false)) model->roles |= roles;
    return;
  }
  for (uint32_t role = 0; role < FE_ROLE_COUNT; role++)
    if ((roles & FE_ROLE(role)) && gguf_has(model, (fe_role)role, 0)) model->roles |= FE_ROLE(role);
}

void fe_decoder_unused_window(const fe_config *config) {
  if (json_is_true(json_object_get(config->root, "use_sliding_window"))) return;
  fe_config_get(config, "sliding_window");
}

static stele_status list_layers(fe_model *model, stele_sink *sink) {
  model->layer = base_arena_alloc(&model->arena, model->layers, sizeof *model->layer);
  if (!model->layer)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", model->path);
  for (uint32_t i = 0; i < model->layers; i++)
    model->layer[i] = (fe_layer){.group_kind = STELE_GROUP_FULL, .window = 0, .rope = 0};
  return STELE_OK;
}

stele_status fe_decoder_describe(const fe_config *config, fe_model *model,
                                 const fe_decoder_defaults *defaults, stele_sink *sink) {
  read_dimensions(config, model, defaults);
  model->tied = config->gguf ? !gguf_has(model, FE_HEAD, -1)
                             : fe_config_bool(config, "tie_word_embeddings", false);
  model->roles |= FE_ROLE(FE_EMBED) | FE_ROLE(FE_ATTENTION_NORM) | FE_ROLE(FE_Q) | FE_ROLE(FE_K) |
                  FE_ROLE(FE_V) | FE_ROLE(FE_O) | FE_ROLE(FE_MLP_NORM) | FE_ROLE(FE_GATE) |
                  FE_ROLE(FE_UP) | FE_ROLE(FE_DOWN) | FE_ROLE(FE_FINAL_NORM);
  if (!model->tied) model->roles |= FE_ROLE(FE_HEAD);
  BASE_TRY(list_layers(model, sink));
  return fe_rope_read(config, model, model->key_head,
                      config->gguf ? defaults->gguf_pairing : (uint32_t)STELE_PAIR_HALVES,
                      defaults->theta, sink);
}

static bool shape(uint64_t rows, uint64_t columns, uint64_t *out_rows, uint64_t *out_columns) {
  *out_rows = rows;
  *out_columns = columns;
  return true;
}

bool fe_decoder_has(const fe_model *model, fe_role role, int32_t layer, uint64_t *out_rows,
                    uint64_t *out_columns) {
  uint64_t hidden = model->hidden, inner = model->intermediate;
  uint64_t q = (uint64_t)model->heads * model->key_head;
  uint64_t k = (uint64_t)model->kv_heads * model->key_head;
  uint64_t v = (uint64_t)model->kv_heads * model->value_head;
  uint64_t o = (uint64_t)model->heads * model->value_head;
  (void)layer; /* all layers are alike */
  if (!(model->roles & FE_ROLE(role))) return false;
  switch (role) {
    case FE_EMBED:
    case FE_HEAD:
      return shape(model->vocab, hidden, out_rows, out_columns);
    case FE_Q:
      return shape(q, hidden, out_rows, out_columns);
    case FE_K:
      return shape(k, hidden, out_rows, out_columns);
    case FE_V:
      return shape(v, hidden, out_rows, out_columns);
    case FE_O:
      return shape(hidden, o, out_rows, out_columns);
    case FE_GATE:
    case FE_UP:
      return shape(inner, hidden, out_rows, out_columns);
    case FE_DOWN:
      return shape(hidden, inner, out_rows, out_columns);
    case FE_Q_BIAS:
      return shape(1, q, out_rows, out_columns);
    case FE_K_BIAS:
      return shape(1, k, out_rows, out_columns);
    case FE_V_BIAS:
      return shape(1, v, out_rows, out_columns);
    case FE_Q_NORM:
    case FE_K_NORM:
      return shape(1, model->key_head, out_rows, out_columns);
    case FE_GATE_BIAS:
    case FE_UP_BIAS:
      return shape(1, inner, out_rows, out_columns);
    case FE_O_BIAS:
    case FE_DOWN_BIAS:
    case FE_ATTENTION_NORM:
    case FE_MLP_NORM:
    case FE_FINAL_NORM:
      return shape(1, hidden, out_rows, out_columns);
    case FE_ROLE_COUNT:
      break;
  }
  return false;
}
