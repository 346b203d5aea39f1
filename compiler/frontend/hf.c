/* The small files of a Hugging Face directory.
 *
 * Stop ids: eos_token_id of generation_config.json, else of config.json, else the eos_token of
 * tokenizer_config.json by way of its added tokens; what a file says with null is not said.
 * Chat template: chat_template.jinja, else chat_template of tokenizer_config.json (a text, or a
 * list of named ones of which "default" counts), as transformers chooses. */
#include "frontend/hf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/json.h"

#define TEXT_LIMIT ((size_t)16 << 20)

typedef struct extras {
  fe_model *model;
  const char *directory;
  const fe_config *config;
  stele_sink *sink;
  json_t *generation, *tokenizer; /* NULL when the file is not there */
} extras;

static stele_status no_memory(const extras *e) {
  return base_fail(e->sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", e->directory);
}

static char *join(base_arena *arena, const char *directory, const char *name) {
  return base_arena_format(arena, "%s/%s", directory, name);
}

/* Loads a JSON file when it is there. */
static stele_status load(const extras *e, const char *name, const char **out_path,
                         json_t **out_object) {
  char *path = join(&e->model->arena, e->directory, name);
  if (!path) return no_memory(e);
  if (!base_file_exists(path)) return STELE_OK;
  BASE_TRY(fe_json_load(path, e->sink, out_object));
  *out_path = path;
  return STELE_OK;
}

/* ---- stop ids -------------------------------------------------------------------------- */

static stele_status add_stop(const extras *e, const char *file, const json_t *value) {
  fe_model *m = e->model;
  if (!json_is_integer(value) || json_integer_value(value) < 0 ||
      json_integer_value(value) >= m->vocab) {
    if (json_is_integer(value))
      return base_fail(e->sink, STELE_BAD_FORMAT,
                       "'%s/%s': 'eos_token_id' is %" JSON_INTEGER_FORMAT
                       ", expected an id from 0 to %u",
                       e->directory, file, json_integer_value(value), m->vocab - 1);
    return base_fail(e->sink, STELE_BAD_FORMAT,
                     "'%s/%s': 'eos_token_id' is neither a whole number nor a list of them",
                     e->directory, file);
  }
  m->stop_ids[m->stop_count++] = (int32_t)json_integer_value(value);
  return STELE_OK;
}

static stele_status read_stops(const extras *e, const char *file, const json_t *object) {
  fe_model *m = e->model;
  const json_t *value = json_object_get(object, "eos_token_id");
  if (!value || json_is_null(value) || m->stop_count) return STELE_OK;
  size_t count = json_is_array(value) ? json_array_size(value) : 1;
  if (!count) return STELE_OK;
  m->stop_ids = base_arena_alloc(&m->arena, count, sizeof *m->stop_ids);
  m->stop_source = base_arena_format(&m->arena, "%s eos_token_id", file);
  if (!m->stop_ids || !m->stop_source) return no_memory(e);
  for (size_t i = 0; i < count; i++)
    BASE_TRY(add_stop(e, file, json_is_array(value) ? json_array_get(value, i) : value));
  return STELE_OK;
}

/* A special token is a text or an object with its content. */
static const char *token_text(const json_t *token) {
  if (json_is_object(token)) token = json_object_get(token, "content");
  return json_string_value(token);
}

static stele_status stop_of_tokenizer(const extras *e) {
  fe_model *m = e->model;
  const char *eos = token_text(json_object_get(e->tokenizer, "eos_token"));
  if (!eos || m->stop_count) return STELE_OK;
  const char *id;
  json_t *token;
  json_object_foreach(json_object_get(e->tokenizer, "added_tokens_decoder"), id, token) {
    const char *text = token_text(token);
    char *end;
    long value = strtol(id, &end, 10);
    if (!text || strcmp(text, eos) != 0 || *end || value < 0 || value >= (long)m->vocab) continue;
    m->stop_ids = base_arena_alloc(&m->arena, 1, sizeof *m->stop_ids);
    if (!m->stop_ids) return no_memory(e);
    m->stop_ids[m->stop_count++] = (int32_t)value;
    m->stop_source = "tokenizer_config.json eos_token";
    return STELE_OK;
  }
  return STELE_OK;
}

static int32_t read_bos(const extras *e, const json_t *object, int32_t found) {
  const json_t *value = json_object_get(object, "bos_token_id");
  if (found >= 0 || !json_is_integer(value)) return found;
  json_int_t id = json_integer_value(value);
  return id >= 0 && id < e->model->vocab ? (int32_t)id : -1;
}

/* ---- texts ----------------------------------------------------------------------------- */

/* The file as it is, so that its numbers stay as its author wrote them. */
static stele_status keep_generation(const extras *e, const char *path) {
  char *text;
  size_t bytes;
  if (!path) return STELE_OK;
  BASE_TRY(base_file_read(e->sink, &e->model->arena, path, TEXT_LIMIT, &text, &bytes));
  e->model->generation_defaults = text;
  return STELE_OK;
}

static const char *template_of_config(const json_t *tokenizer) {
  const json_t *value = json_object_get(tokenizer, "chat_template");
  if (!json_is_array(value)) return json_string_value(value);
  for (size_t i = 0; i < json_array_size(value); i++) {
    const json_t *entry = json_array_get(value, i);
    const char *name = json_string_value(json_object_get(entry, "name"));
    if (name && strcmp(name, "default") == 0)
      return json_string_value(json_object_get(entry, "template"));
  }
  return NULL;
}

static stele_status read_template(const extras *e) {
  fe_model *m = e->model;
  char *path = join(&m->arena, e->directory, "chat_template.jinja"), *text;
  size_t bytes;
  if (!path) return no_memory(e);
  if (base_file_exists(path)) {
    BASE_TRY(base_file_read(e->sink, &m->arena, path, TEXT_LIMIT, &text, &bytes));
    if (strlen(text) != bytes)
      return base_fail(e->sink, STELE_BAD_FORMAT, "'%s' holds a zero byte", path);
    m->chat_template = text;
    return STELE_OK;
  }
  const char *template = template_of_config(e->tokenizer);
  if (!template) return STELE_OK;
  m->chat_template = base_arena_copy(&m->arena, template, strlen(template));
  return m->chat_template ? STELE_OK : no_memory(e);
}

/* ---- all of it ------------------------------------------------------------------------- */

static stele_status read_files(extras *e) {
  fe_model *m = e->model;
  const char *generation_path = NULL;
  BASE_TRY(load(e, "generation_config.json", &generation_path, &e->generation));
  BASE_TRY(load(e, "tokenizer_config.json", &m->tokenizer_config_json, &e->tokenizer));
  char *tokenizer = join(&m->arena, e->directory, "tokenizer.json");
  if (!tokenizer) return no_memory(e);
  if (base_file_exists(tokenizer)) m->tokenizer_json = tokenizer;
  BASE_TRY(keep_generation(e, generation_path));
  BASE_TRY(read_stops(e, "generation_config.json", e->generation));
  BASE_TRY(read_stops(e, "config.json", e->config->root));
  BASE_TRY(stop_of_tokenizer(e));
  m->bos_id = read_bos(e, e->config->root, read_bos(e, e->generation, -1));
  return read_template(e);
}

stele_status fe_hf_extras(fe_model *model, const char *directory, const fe_config *config,
                          stele_sink *sink) {
  extras e = {.model = model, .directory = directory, .config = config, .sink = sink};
  stele_status status = read_files(&e);
  json_decref(e.generation);
  json_decref(e.tokenizer);
  return status;
}

stele_status fe_hf_config(fe_model *model, const char *directory, stele_sink *sink,
                          fe_config *out_config) {
  char *path = join(&model->arena, directory, "config.json");
  json_t *root;
  if (!path) return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", directory);
  if (!base_file_exists(path))
    return base_fail(sink, STELE_NOT_FOUND,
                     "'%s' is no model: it has no 'config.json' (a directory of Hugging Face's "
                     "form or a GGUF file is expected)",
                     directory);
  BASE_TRY(fe_json_load(path, sink, &root));
  stele_status status = fe_config_from_json(&model->arena, path, root, sink, out_config);
  json_decref(root);
  return status;
}
