/* JSON through jansson, which bounds the depth (2048) and refuses bad UTF-8. */
#include "frontend/json.h"

#define FILE_LIMIT ((size_t)256 << 20)

stele_status fe_json_parse(const char *path, const char *text, size_t bytes, stele_sink *sink,
                           json_t **out_object) {
  json_error_t error;
  json_t *object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
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
