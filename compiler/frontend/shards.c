/* A directory's weights: one safetensors file, or shards that an index joins. The index says which
 * shard holds each tensor; both must agree in both directions. */
#include <jansson.h>
#include <string.h>

#include "frontend/json.h"
#include "frontend/safetensors.h"
#include "frontend/tensors.h"

#define SHARD_LIMIT 1000

static stele_status out_of_memory(stele_sink *sink, const char *path) {
  return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", path);
}

static stele_status open_shard(fe_model *model, const char *path, stele_sink *sink,
                               fe_tensors *out_tensors) {
  base_map *map = &model->maps[model->map_count];
  BASE_TRY(base_map_open(sink, path, map));
  model->map_count++;
  return fe_safetensors_parse(&model->arena, path, map->data, map->size, sink, out_tensors);
}

/* The shards of an index, each once. Names are file names, never paths. */
static stele_status list_shards(base_arena *arena, const char *path, const json_t *weight_map,
                                stele_sink *sink, const char ***out_shards, size_t *out_count) {
  size_t count = 0;
  const char **shards = base_arena_alloc(arena, json_object_size(weight_map), sizeof *shards);
  if (!shards) return out_of_memory(sink, path);
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)weight_map, name, value) {
    const char *shard = json_string_value(value);
    if (!shard || !*shard || strchr(shard, '/'))
      return base_fail(sink, STELE_BAD_FORMAT, "'%s': the shard of tensor '%s' is no file name",
                       path, name);
    size_t i = count; /* neighbours in the index are mostly neighbours in a shard */
    while (i > 0 && strcmp(shards[i - 1], shard) != 0) i--;
    if (i == 0) shards[count++] = shard;
    if (count > SHARD_LIMIT)
      return base_fail(sink, STELE_BAD_FORMAT, "'%s' names more than %d shards", path, SHARD_LIMIT);
  }
  *out_shards = shards;
  *out_count = count;
  return STELE_OK;
}

static stele_status join_shards(fe_model *model, const char *path, const fe_tensors *parts,
                                size_t part_count, stele_sink *sink) {
  size_t total = 0;
  for (size_t i = 0; i < part_count; i++) total += parts[i].count;
  fe_tensors all = {.list = base_arena_alloc(&model->arena, total, sizeof(fe_tensor))};
  if (!all.list) return out_of_memory(sink, path);
  for (size_t i = 0; i < part_count; i++) {
    if (parts[i].count)
      memcpy(all.list + all.count, parts[i].list, parts[i].count * sizeof(fe_tensor));
    all.count += parts[i].count;
  }
  BASE_TRY(fe_tensors_sort(path, &all, sink));
  model->tensors = all;
  return STELE_OK;
}

/* Lists every tensor that the shard named by the index does not have, and every one that the
 * index does not know. */
static stele_status check_index(const char *path, const json_t *weight_map,
                                const char *const *shards, const fe_tensors *parts, size_t count,
                                stele_sink *sink) {
  const char *name;
  json_t *value;
  stele_status status = STELE_OK;
  json_object_foreach((json_t *)(uintptr_t)weight_map, name, value) {
    size_t i = 0;
    while (i < count && strcmp(shards[i], json_string_value(value)) != 0) i++;
    if (i < count && fe_tensors_find(&parts[i], name)) continue;
    base_sink_add(sink, "'%s': tensor '%s' is not in the shard '%s' that the index names", path,
                  name, json_string_value(value));
    status = STELE_BAD_FORMAT;
  }
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < parts[i].count; j++)
      if (!json_object_get(weight_map, parts[i].list[j].name)) {
        base_sink_add(sink, "'%s': tensor '%s' of the shard '%s' is not in the index", path,
                      parts[i].list[j].name, shards[i]);
        status = STELE_BAD_FORMAT;
      }
  return status;
}

static stele_status open_shards(fe_model *model, const char *directory, const char *path,
                                const json_t *weight_map, stele_sink *sink) {
  const char **shards = NULL;
  size_t count = 0;
  BASE_TRY(list_shards(&model->arena, path, weight_map, sink, &shards, &count));
  fe_tensors *parts = base_arena_alloc(&model->arena, count, sizeof *parts);
  model->maps = base_arena_alloc(&model->arena, count, sizeof *model->maps);
  if (!parts || !model->maps) return out_of_memory(sink, path);
  for (size_t i = 0; i < count; i++) {
    char *shard = base_arena_format(&model->arena, "%s/%s", directory, shards[i]);
    if (!shard) return out_of_memory(sink, path);
    BASE_TRY(open_shard(model, shard, sink, &parts[i]));
  }
  BASE_TRY(check_index(path, weight_map, shards, parts, count, sink));
  return join_shards(model, path, parts, count, sink);
}

static stele_status open_index(fe_model *model, const char *directory, const char *path,
                               stele_sink *sink) {
  json_t *index;
  BASE_TRY(fe_json_load(path, sink, &index));
  json_t *weight_map = json_object_get(index, "weight_map");
  stele_status status;
  if (json_is_object(weight_map))
    status = open_shards(model, directory, path, weight_map, sink);
  else
    status = base_fail(sink, STELE_BAD_FORMAT, "'%s': 'weight_map' is not an object", path);
  json_decref(index);
  return status;
}

stele_status fe_safetensors_open(fe_model *model, const char *directory, stele_sink *sink) {
  char *whole = base_arena_format(&model->arena, "%s/model.safetensors", directory);
  char *index = base_arena_format(&model->arena, "%s/model.safetensors.index.json", directory);
  if (!whole || !index) return out_of_memory(sink, directory);
  if (!base_file_exists(whole) && base_file_exists(index))
    return open_index(model, directory, index, sink);
  if (!base_file_exists(whole))
    return base_fail(sink, STELE_NOT_FOUND,
                     "'%s' has neither 'model.safetensors' nor 'model.safetensors.index.json'",
                     directory);
  model->maps = base_arena_alloc(&model->arena, 1, sizeof *model->maps);
  if (!model->maps) return out_of_memory(sink, directory);
  return open_shard(model, whole, sink, &model->tensors);
}
