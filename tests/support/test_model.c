/* Random models: a configuration is written as text and read back by the front-end, which then
 * says which tensors of which shapes there are; their numbers are drawn from a normal
 * distribution, scaled so that the residual stream keeps about the same size (matrices by
 * 1 / sqrt(columns)) and norms lie around one. */
#include "support/test_model.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "frontend/config.h"
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "frontend/json.h"
#include "frontend/model.h"
#include "frontend/resolve.h"
#include "frontend/tensors.h"

test_options test_options_default(void) {
  return (test_options){.family = "llama",
                        .hidden = 64,
                        .layers = 2,
                        .heads = 4,
                        .kv_heads = 2,
                        .head_dim = 16,
                        .intermediate = 96,
                        .vocab = 256,
                        .positions = 512,
                        .seed = 1};
}

void test_config_text(const test_options *o, const char *dtype, base_buffer *out) {
  static const char *const flags[] = {"false", "true"};
  const char *rope = o->rope ? o->rope : "{\"rope_theta\": 10000.0, \"rope_type\": \"default\"}";
  base_buffer_printf(out,
                     "{\n  \"model_type\": \"%s\",\n  \"dtype\": \"%s\",\n  \"hidden_size\": %u,\n"
                     "  \"num_hidden_layers\": %u,\n  \"num_attention_heads\": %u,\n"
                     "  \"num_key_value_heads\": %u,\n  \"head_dim\": %u,\n"
                     "  \"intermediate_size\": %u,\n  \"vocab_size\": %u,\n"
                     "  \"max_position_embeddings\": %u,\n",
                     o->family, dtype, o->hidden, o->layers, o->heads, o->kv_heads, o->head_dim,
                     o->intermediate, o->vocab, o->positions);
  if (o->fields) base_buffer_printf(out, "  %s,\n", o->fields);
  base_buffer_printf(out,
                     "  \"hidden_act\": \"silu\",\n  \"rms_norm_eps\": 1e-06,\n"
                     "  \"tie_word_embeddings\": %s,\n  \"attention_bias\": %s,\n"
                     "  \"mlp_bias\": %s,\n  \"bos_token_id\": 1,\n  \"eos_token_id\": 2,\n"
                     "  \"rope_parameters\": %s\n}\n",
                     flags[o->tied], flags[o->attention_bias], flags[o->mlp_bias], rope);
}

/* ---- random numbers -------------------------------------------------------------------- */

static uint64_t next(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static double uniform(uint64_t *state) { return ((double)(next(state) >> 11) + 0.5) * 0x1p-53; }

static float normal(uint64_t *state) { /* Box and Muller */
  double radius = sqrt(-2.0 * log(uniform(state)));
  return (float)(radius * cos(2.0 * M_PI * uniform(state)));
}

/* Numbers of one tensor, drawn for the first role that it has. */
static void draw(uint64_t seed, const fe_tensor *tensor, fe_role role, float *out) {
  bool vector = fe_role_is_vector(role);
  float mean = 0.0f,
        scale = vector ? 0.2f : 1.0f / sqrtf((float)tensor->dims[tensor->dim_count - 1]);
  if (fe_role_is_norm(role)) mean = 1.0f;
  if (role == FE_EMBED) scale = 1.0f;
  if (role == FE_HEAD) scale *= 2.0f;
  for (uint64_t i = 0; i < tensor->bytes / sizeof *out; i++) out[i] = normal(&seed) * scale + mean;
}

/* ---- the model ------------------------------------------------------------------------- */

typedef struct drawing {
  const test_options *options;
  fe_model *model;
  const fe_family *family;
  size_t limit;
} drawing;

static stele_status no_memory(stele_sink *sink) {
  return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
}

static bool known(const fe_model *model, const char *name) {
  for (size_t i = 0; i < model->tensors.count; i++)
    if (strcmp(model->tensors.list[i].name, name) == 0) return true;
  return false;
}

static stele_status grow(drawing *d, stele_sink *sink) {
  fe_tensors *all = &d->model->tensors;
  if (all->count < d->limit) return STELE_OK;
  d->limit = 2 * d->limit + 64;
  fe_tensor *list = base_arena_alloc(&d->model->arena, d->limit, sizeof *list);
  if (!list) return no_memory(sink);
  if (all->count) memcpy(list, all->list, all->count * sizeof *list);
  all->list = list;
  return STELE_OK;
}

/* The tensor of a role, an expert's where each has its own, unless it is there already. */
static stele_status add_tensor(drawing *d, fe_role role, int32_t layer, const fe_place *place,
                               uint32_t expert, stele_sink *sink) {
  base_arena *arena = &d->model->arena;
  fe_tensor t = {.scheme = STELE_F32, .dim_count = place->dim_count, .type = "F32"};
  BASE_TRY(grow(d, sink));
  memcpy(t.dims, place->dims, sizeof t.dims);
  t.name = fe_place_name(arena, place->name, layer, expert);
  if (!t.name) return no_memory(sink);
  if (known(d->model, t.name)) return STELE_OK;
  t.bytes = sizeof(float);
  for (uint32_t i = 0; i < t.dim_count; i++) t.bytes *= (size_t)t.dims[i];
  float *data = base_arena_alloc(arena, t.bytes / sizeof *data, sizeof *data);
  if (!data) return no_memory(sink);
  draw(d->options->seed * 0x100000001b3u + (uint64_t)(layer + 1) * 977 + role + expert * 7919u, &t,
       role, data);
  for (size_t i = 0; i < t.bytes / sizeof *data; i++) data[i] -= place->plus;
  t.data = (const uint8_t *)data;
  d->model->tensors.list[d->model->tensors.count++] = t;
  return STELE_OK;
}

static stele_status add_role(drawing *d, fe_role role, int32_t layer, stele_sink *sink) {
  uint64_t rows, columns;
  if (!d->family->has(d->model, role, layer, &rows, &columns)) return STELE_OK;
  fe_place place = fe_place_of(d->model, d->family, role, layer, false);
  if (!place.name) return STELE_OK;
  uint32_t parts = fe_place_parts(&place, fe_role_is_vector(role) ? columns : rows);
  for (uint32_t i = 0; i < parts; i++) BASE_TRY(add_tensor(d, role, layer, &place, i, sink));
  return STELE_OK;
}

static stele_status fill(const test_options *o, fe_model *model, const fe_config *config,
                         stele_sink *sink) {
  drawing d = {.options = o, .model = model};
  BASE_TRY(fe_family_find("options", config->type, false, sink, &d.family));
  model->family = d.family->name;
  BASE_TRY(d.family->describe(config, model, sink));
  model->stop_ids = base_arena_alloc(&model->arena, 1, sizeof *model->stop_ids);
  if (!model->stop_ids) return no_memory(sink);
  model->stop_ids[0] = 2;
  model->stop_count = 1;
  model->bos_id = 1;
  for (uint32_t role = 0; role < FE_ROLE_COUNT; role++)
    for (int32_t layer = -1; layer < (int32_t)model->layers; layer++)
      BASE_TRY(add_role(&d, (fe_role)role, layer, sink));
  BASE_TRY(fe_tensors_sort("random", &model->tensors, sink));
  return fe_resolve_weights(model, d.family, false, sink);
}

stele_status test_model_random(const test_options *options, stele_sink *sink,
                               fe_model **out_model) {
  base_buffer text = {0};
  json_t *root = NULL;
  fe_config config = {0};
  fe_model *model = NULL;
  test_config_text(options, "float32", &text);
  stele_status status = fe_json_parse("options", (const char *)text.data, text.size, sink, &root);
  if (status == STELE_OK) status = fe_model_create("random", sink, &model);
  if (status == STELE_OK)
    status = fe_config_from_json(&model->arena, "options", root, sink, &config);
  if (status == STELE_OK) status = fill(options, model, &config, sink);
  fe_config_deinit(&config);
  json_decref(root);
  base_buffer_deinit(&text);
  if (status == STELE_OK)
    *out_model = model;
  else
    fe_model_destroy(model);
  return status;
}
