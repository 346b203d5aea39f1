/* JSON through jansson, which bounds the depth (2048) and refuses bad UTF-8. */
#include "frontend/json.h"

#include <math.h>

#define FILE_LIMIT ((size_t)256 << 20)

/* Undoes JSON_DECODE_INT_AS_REAL for numbers that a double holds exactly. */
static json_t *with_integers(json_t *value) {
  const char *key;
  json_t *entry;
  size_t i;
  if (json_is_real(value)) {
    double number = json_real_value(value);
    bool whole = number == floor(number) && fabs(number) <= 0x1p53;
    return whole ? json_integer((json_int_t)number) : json_incref(value);
  }
  json_object_foreach(
      value, key,
      entry) if (json_object_set_new(value, key, with_integers(entry)) != 0) return NULL;
  json_array_foreach(
      value, i, entry) if (json_array_set_new(value, i, with_integers(entry)) != 0) return NULL;
  return json_incref(value);
}

static json_t *load(const char *text, size_t bytes, json_error_t *error) {
  json_t *value = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, error);
  if (value || json_error_code(error) != json_error_numeric_overflow) return value;
  json_t *reals = json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, error);
  value = reals ? with_integers(reals) : NULL;
  json_decref(reals);
  return value;
}

stele_status fe_json_parse(const char *path, const char *text, size_t bytes, stele_sink *sink,
                           json_t **out_object) {
  json_error_t error = {0};
  json_t *object = load(text, bytes, &error);
  if (!object)
    return base_fail(sink,
                     json_error_code(&error) == json_error_out_of_memory ? STELE_OUT_OF_MEMORY
                                                                         : STELE_BAD_FORMAT,
                     "'%s': bad JSON at line %d, column %d: %s", path, error.line, error.column,
                     error.text);
  if (!json_is_object(object)) {
    json_decref(object);
    return base_fail(sink, STELE_BAD_FORMAT, "'%s' is not a JSON object", path);
  }
  *out_object = object;
  return STELE_OK;
}

stele_status fe_json_load(const char *path, stele_sink *sink, json_t **out_object) {
  base_arena arena = {0};
  char *text;
  size_t bytes;
  stele_status status = base_file_read(sink, &arena, path, FILE_LIMIT, &text, &bytes);
  if (status == STELE_OK) status = fe_json_parse(path, text, bytes, sink, out_object);
  base_arena_deinit(&arena);
  return status;
}
