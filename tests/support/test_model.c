/* Random models: a configuration is written as text and read back by the front-end, which then
 * says which tensors of which shapes there are; their numbers are drawn from a normal
 * distribution, scaled so that the residual stream keeps about the same size (matrices by
 * 1 / sqrt(columns)) and norms lie around one. */
#include "support/test_model.h"

#include <jansson.h>
#include <math.h>

#include "frontend/config.h"
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "frontend/json.h"
#include "frontend/model.h"

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

static void draw(uint64_t seed, const fe_weight *weight, float *out) {
  uint64_t state = seed * 0x100000001b3u + (uint64_t)(weight->layer + 1) * 977 + weight->role;
  bool vector = weight->rows == 1, norm = weight->role == FE_ATTENTION_NORM ||
                                          weight->role == FE_MLP_NORM ||
                                          weight->role == FE_FINAL_NORM ||
                                          weight->role == FE_Q_NORM || weight->role == FE_K_NORM;
  float scale = vector ? 0.2f : 1.0f / sqrtf((float)weight->columns);
  if (weight->role == FE_EMBED) scale = 1.0f;
  if (weight->role == FE_HEAD) scale *= 2.0f;
  for (uint64_t i = 0; i < weight->rows * weight->columns; i++)
    out[i] = normal(&state) * scale + (norm ? 1.0f : 0.0f);
}

/* ---- the model ------------------------------------------------------------------------- */

static stele_status add_weight(const test_options *o, fe_model *model, const fe_family *family,
                               fe_role role, int32_t layer, stele_sink *sink) {
  fe_weight weight = {.role = role, .layer = layer, .scheme = STELE_F32};
  if (!family->has(model, role, layer, &weight.rows, &weight.columns)) return STELE_OK;
  float *data = base_arena_alloc(&model->arena, weight.rows * weight.columns, sizeof *data);
  weight.name = fe_role_name(&model->arena, false, role, layer);
  if (!data || !weight.name) return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  draw(o->seed, &weight, data);
  weight.data = (const uint8_t *)data;
  model->weights[model->weight_count++] = weight;
  return STELE_OK;
}

static stele_status fill(const test_options *o, fe_model *model, const fe_config *config,
                         stele_sink *sink) {
  const fe_family *family;
  BASE_TRY(fe_family_find("options", o->family, false, sink, &family));
  BASE_TRY(family->describe(config, model, sink));
  model->family = family->name;
  model->weights = base_arena_alloc(&model->arena, (size_t)(model->layers + 1) * FE_ROLE_COUNT,
                                    sizeof(fe_weight));
  model->stop_ids = base_arena_alloc(&model->arena, 1, sizeof *model->stop_ids);
  if (!model->weights || !model->stop_ids)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  model->stop_ids[0] = 2;
  model->stop_count = 1;
  model->bos_id = 1;
  BASE_TRY(add_weight(o, model, family, FE_EMBED, -1, sink));
  for (uint32_t layer = 0; layer < model->layers; layer++)
    for (uint32_t role = FE_EMBED + 1; role < FE_FINAL_NORM; role++)
      BASE_TRY(add_weight(o, model, family, (fe_role)role, (int32_t)layer, sink));
  BASE_TRY(add_weight(o, model, family, FE_FINAL_NORM, -1, sink));
  return add_weight(o, model, family, FE_HEAD, -1, sink);
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
