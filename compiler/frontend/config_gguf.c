/* GGUF metadata as a configuration: the keys of the architecture are renamed by fields.def.
 *
 * Two things differ from config.json. Rope scaling with a factor but no type is linear (what
 * llama.cpp reads out of such files), "none" is the default type. And the vocabulary's size may
 * be left to the list of tokens or the embedding. */
#include <stdio.h>
#include <string.h>

#include "frontend/config_internal.h"

#define ARRAY_LIMIT 65536u

static const struct {
  const char *name, *gguf;
} fields[] = {
#define FIELD(name, gguf) {name, gguf},
#include "frontend/fields.def"
#undef FIELD
};

static const char *const notes[] = {
#define FIELD(name, gguf)
#define NOTE(gguf) gguf,
#include "frontend/fields.def"
#undef FIELD
};

static json_t *element(base_arena *arena, const fe_gguf *gguf, const fe_gguf_value *value,
                       uint64_t i) {
  const char *text;
  int64_t integer;
  double number;
  bool truth;
  if (fe_gguf_int(value, i, &integer)) return json_integer(integer);
  if (fe_gguf_float(value, i, &number)) return json_real(number); /* NULL when not finite */
  if (fe_gguf_bool(value, i, &truth)) return json_boolean(truth);
  if (fe_gguf_text(arena, gguf, value, NULL, &text) != STELE_OK) return NULL;
  return json_string(text); /* NULL when it is not UTF-8 */
}

static json_t *to_json(base_arena *arena, const fe_gguf *gguf, const fe_gguf_value *value) {
  if (!value->array) return element(arena, gguf, value, 0);
  if (value->count > ARRAY_LIMIT) return NULL;
  json_t *array = json_array();
  for (uint64_t i = 0; array && i < value->count; i++)
    if (json_array_append_new(array, element(arena, gguf, value, i)) != 0) {
      json_decref(array);
      array = NULL;
    }
  return array;
}

static stele_status set_field(fe_config *config, const char *name, json_t *value) {
  json_t *object = config->root;
  const char *dot = strchr(name, '.');
  if (dot) object = json_object_getn(object, name, (size_t)(dot - name));
  if (json_object_set_new(object, dot ? dot + 1 : name, value) == 0) return STELE_OK;
  return base_fail(config->log->sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", config->path);
}

static bool is_note(const char *key) {
  for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
    if (strcmp(notes[i], key) == 0) return true;
  return false;
}

/* One key of the architecture, without its prefix. */
static stele_status add_key(fe_config *config, base_arena *arena, const fe_gguf *gguf,
                            const char *key, const fe_gguf_value *value) {
  if (is_note(key)) return STELE_OK;
  size_t i = 0;
  while (i < sizeof fields / sizeof *fields && strcmp(fields[i].gguf, key) != 0) i++;
  if (i == sizeof fields / sizeof *fields) {
    fe_config_bad(config, value->key, "is not understood, and it may change the mathematics");
    return STELE_OK;
  }
  json_t *json = to_json(arena, gguf, value);
  if (json) return set_field(config, fields[i].name, json);
  fe_config_bad(config, value->key, "has a value that cannot be read (type %s%s)",
                value->array ? "array of " : "", fe_gguf_type_name(value->type));
  return STELE_OK;
}

static stele_status finish_rope(fe_config *config) {
  const json_t *rope = json_object_get(config->root, "rope_parameters");
  const char *type = json_string_value(json_object_get(rope, "rope_type"));
  const json_t *factor = json_object_get(rope, "factor");
  if (factor && !json_object_get(rope, "rope_type"))
    return set_field(config, "rope_parameters.rope_type",
                     json_string(json_number_value(factor) == 1.0 ? "default" : "linear"));
  if (type && strcmp(type, "none") == 0)
    return set_field(config, "rope_parameters.rope_type", json_string("default"));
  return STELE_OK;
}

/* Where converters have nothing to say of a window, some write 0. */
static void finish_window(fe_config *config) {
  const json_t *window = json_object_get(config->root, "sliding_window");
  if (json_is_integer(window) && json_integer_value(window) == 0)
    json_object_del(config->root, "sliding_window");
}

static stele_status finish_vocab(fe_config *config, const fe_gguf *gguf,
                                 const fe_tensors *tensors) {
  if (json_object_get(config->root, "vocab_size")) return STELE_OK;
  const fe_gguf_value *tokens = fe_gguf_find(gguf, "tokenizer.ggml.tokens");
  const fe_tensor *embedding = fe_tensors_find(tensors, "token_embd.weight");
  uint64_t vocab = tokens ? tokens->count : 0;
  if (embedding && embedding->dim_count == 2) vocab = embedding->dims[0];
  if (vocab > INT32_MAX) vocab = 0;
  return vocab ? set_field(config, "vocab_size", json_integer((json_int_t)vocab)) : STELE_OK;
}

static stele_status fill(fe_config *config, base_arena *arena, const fe_gguf *gguf,
                         const fe_tensors *tensors) {
  stele_sink *sink = config->log->sink;
  const fe_gguf_value *type = fe_gguf_find(gguf, "general.architecture");
  if (!type)
    return base_fail(sink, STELE_BAD_FORMAT, "'%s': 'general.architecture' is missing", gguf->path);
  BASE_TRY(fe_gguf_text(arena, gguf, type, sink, &config->type));
  BASE_TRY(set_field(config, "rope_parameters", json_object()));
  size_t prefix = strlen(config->type);
  for (size_t i = 0; i < gguf->value_count; i++) {
    const char *key = gguf->values[i].key;
    if (strncmp(key, config->type, prefix) == 0 && key[prefix] == '.')
      BASE_TRY(add_key(config, arena, gguf, key + prefix + 1, &gguf->values[i]));
  }
  BASE_TRY(finish_rope(config));
  finish_window(config);
  return finish_vocab(config, gguf, tensors);
}

stele_status fe_config_from_gguf(base_arena *arena, const fe_gguf *gguf, const fe_tensors *tensors,
                                 stele_sink *sink, fe_config *out_config) {
  fe_config config = {0};
  BASE_TRY(fe_config_create(arena, gguf->path, sink, &config));
  config.gguf = true;
  stele_status status = fill(&config, arena, gguf, tensors);
  if (status != STELE_OK) {
    fe_config_deinit(&config);
    return status;
  }
  *out_config = config;
  return STELE_OK;
}
