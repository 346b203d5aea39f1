/* Opening a model: which kind of file, its configuration, its family, its weights, the rest.
 * Configuration mistakes are reported before the weights are looked at. */
#include <stdlib.h>
#include <string.h>

#include "frontend/config.h"
#include "frontend/families.h"
#include "frontend/hf.h"
#include "frontend/model.h"
#include "frontend/resolve.h"
#include "frontend/safetensors.h"

static stele_status no_memory(const char *path, stele_sink *sink) {
  return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", path);
}

/* The last part of a path, without a slash or ".gguf" at its end. */
static char *last_part(base_arena *arena, const char *path) {
  size_t end = strlen(path);
  while (end > 1 && path[end - 1] == '/') end--;
  size_t start = end;
  while (start > 0 && path[start - 1] != '/') start--;
  if (end - start > 5 && strncmp(path + end - 5, ".gguf", 5) == 0) end -= 5;
  return base_arena_copy(arena, path + start, end - start);
}

/* "." and ".." are called what they are. */
static char *name_of_path(base_arena *arena, const char *path) {
  char *name = last_part(arena, path);
  char *real = name && strspn(name, ".") == strlen(name) ? realpath(path, NULL) : NULL;
  if (real) name = last_part(arena, real);
  free(real);
  return name;
}

static stele_status describe(fe_model *model, const fe_config *config, stele_sink *sink,
                             const fe_family **out_family) {
  BASE_TRY(fe_family_find(config->path, config->type, config->gguf, sink, out_family));
  model->family = (*out_family)->name;
  return (*out_family)->describe(config, model, sink);
}

/* ---- directories ----------------------------------------------------------------------- */

static stele_status fill_from_directory(fe_model *model, const fe_config *config,
                                        stele_sink *sink) {
  const fe_family *family = NULL;
  BASE_TRY(describe(model, config, sink, &family));
  BASE_TRY(fe_safetensors_open(model, model->path, sink));
  BASE_TRY(fe_resolve_weights(model, family, false, sink));
  return fe_hf_extras(model, model->path, config, sink);
}

static stele_status open_directory(fe_model *model, stele_sink *sink) {
  fe_config config;
  BASE_TRY(fe_hf_config(model, model->path, sink, &config));
  stele_status status = fill_from_directory(model, &config, sink);
  fe_config_deinit(&config);
  return status;
}

/* ---- GGUF ------------------------------------------------------------------------------ */

static stele_status add_stop(fe_model *model, const char *key, stele_sink *sink) {
  const fe_gguf_value *value = fe_gguf_find(model->gguf, key);
  int64_t id;
  if (!value) return STELE_OK;
  if (value->array || !fe_gguf_int(value, 0, &id) || id < 0 || id >= model->vocab)
    return base_fail(sink, STELE_BAD_FORMAT, "'%s': '%s' is not an id from 0 to %u", model->path,
                     key, model->vocab - 1);
  for (uint32_t i = 0; i < model->stop_count; i++)
    if (model->stop_ids[i] == id) return STELE_OK;
  if (!model->stop_source) model->stop_source = key;
  model->stop_ids[model->stop_count++] = (int32_t)id;
  return STELE_OK;
}

/* The end of text, of a turn, and of a message that waits for a tool. */
static stele_status read_gguf_stops(fe_model *model, stele_sink *sink) {
  static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"};
  model->stop_ids = base_arena_alloc(&model->arena, 3, sizeof *model->stop_ids);
  if (!model->stop_ids) return no_memory(model->path, sink);
  for (size_t i = 0; i < 3; i++) BASE_TRY(add_stop(model, keys[i], sink));
  return STELE_OK;
}

static stele_status read_gguf_texts(fe_model *model, stele_sink *sink) {
  const fe_gguf *gguf = model->gguf;
  const fe_gguf_value *name = fe_gguf_find(gguf, "general.name");
  const fe_gguf_value *chat = fe_gguf_find(gguf, "tokenizer.chat_template");
  const char *text = "";
  if (name) BASE_TRY(fe_gguf_text(&model->arena, gguf, name, sink, &text));
  if (*text) model->name = text;
  if (!chat) return STELE_OK;
  return fe_gguf_text(&model->arena, gguf, chat, sink, &model->chat_template);
}

static void read_gguf_bos(fe_model *model) {
  const fe_gguf_value *bos = fe_gguf_find(model->gguf, "tokenizer.ggml.bos_token_id");
  int64_t id;
  if (bos && !bos->array && fe_gguf_int(bos, 0, &id) && id >= 0 && id < model->vocab)
    model->bos_id = (int32_t)id;
}

static stele_status check_split(const fe_model *model, stele_sink *sink) {
  const fe_gguf_value *count = fe_gguf_find(model->gguf, "split.count");
  int64_t parts;
  if (!count || (fe_gguf_int(count, 0, &parts) && parts <= 1)) return STELE_OK;
  return base_fail(sink, STELE_UNSUPPORTED,
                   "'%s' is one part of a split model, which is not supported: join the parts "
                   "first ('llama-gguf-split --merge')",
                   model->path);
}

static stele_status fill_from_gguf(fe_model *model, const fe_config *config, stele_sink *sink) {
  const fe_family *family = NULL;
  BASE_TRY(describe(model, config, sink, &family));
  BASE_TRY(fe_resolve_weights(model, family, true, sink));
  BASE_TRY(read_gguf_stops(model, sink));
  read_gguf_bos(model);
  return read_gguf_texts(model, sink);
}

stele_status fe_model_fill_gguf(fe_model *model, const uint8_t *data, size_t size,
                                stele_sink *sink) {
  fe_gguf *gguf = base_arena_alloc(&model->arena, 1, sizeof *gguf);
  fe_config config;
  if (!gguf) return no_memory(model->path, sink);
  BASE_TRY(fe_gguf_parse(&model->arena, model->path, data, size, sink, gguf, &model->tensors));
  model->gguf = gguf;
  BASE_TRY(check_split(model, sink));
  BASE_TRY(fe_config_from_gguf(&model->arena, gguf, &model->tensors, sink, &config));
  stele_status status = fill_from_gguf(model, &config, sink);
  fe_config_deinit(&config);
  return status;
}

static stele_status open_file(fe_model *model, stele_sink *sink) {
  model->maps = base_arena_alloc(&model->arena, 1, sizeof *model->maps);
  if (!model->maps) return no_memory(model->path, sink);
  BASE_TRY(base_map_open(sink, model->path, &model->maps[0]));
  model->map_count = 1;
  const base_map *map = &model->maps[0];
  if (map->size < 4 || memcmp(map->data, "GGUF", 4) != 0)
    return base_fail(sink, STELE_BAD_FORMAT,
                     "'%s' is no GGUF file (a model is a GGUF file or the directory that holds "
                     "'config.json')",
                     model->path);
  return fe_model_fill_gguf(model, map->data, map->size, sink);
}

/* ---- the whole ------------------------------------------------------------------------- */

stele_status fe_model_create(const char *path, stele_sink *sink, fe_model **out_model) {
  fe_model *model = calloc(1, sizeof *model);
  if (!model) return no_memory(path, sink);
  model->bos_id = -1;
  model->path = base_arena_copy(&model->arena, path, strlen(path));
  model->name = name_of_path(&model->arena, path);
  if (!model->path || !model->name) {
    fe_model_destroy(model);
    return no_memory(path, sink);
  }
  *out_model = model;
  return STELE_OK;
}

stele_status fe_model_open(const char *path, stele_sink *sink, fe_model **out_model) {
  fe_model *model;
  if (sink) sink->text[0] = 0; /* complaints are added line by line */
  BASE_TRY(fe_model_create(path, sink, &model));
  stele_status status =
      base_is_directory(path) ? open_directory(model, sink) : open_file(model, sink);
  if (status != STELE_OK) {
    fe_model_destroy(model);
    return status;
  }
  *out_model = model;
  return STELE_OK;
}

void fe_model_destroy(fe_model *model) {
  if (!model) return;
  for (uint32_t i = 0; i < model->map_count; i++) base_map_close(&model->maps[i]);
  base_arena_deinit(&model->arena);
  free(model);
}

const fe_weight *fe_model_weight(const fe_model *model, fe_role role, int32_t layer) {
  if (role == FE_HEAD && model->tied) role = FE_EMBED;
  for (uint32_t i = 0; i < model->weight_count; i++)
    if (model->weights[i].role == (uint32_t)role && model->weights[i].layer == layer)
      return &model->weights[i];
  return NULL;
}
