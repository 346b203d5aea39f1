#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* After the four above. */
#include <cmocka.h>

json_t *support_read_json(const char *path) {
  json_error_t error;
  json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error);
  if (!root) fail_msg("%s: line %d: %s", path, error.line, error.text);
  return root;
}

support_tokenizer support_open_blob(base_buffer blob) {
  support_tokenizer t = {.blob = blob};
  stele_sink sink = {0};
  if (text_tokenizer_create(t.blob.data, t.blob.size, &sink, &t.tokenizer) != STELE_OK)
    fail_msg("%s", sink.text);
  return t;
}

support_tokenizer support_open(const char *json, size_t bytes) {
  base_buffer blob = {0};
  stele_sink sink = {0};
  if (text_blob_from_json(json, bytes, NULL, 0, &sink, &blob) != STELE_OK)
    fail_msg("%s", sink.text);
  return support_open_blob(blob);
}

void support_close(support_tokenizer *t) {
  text_tokenizer_destroy(t->tokenizer);
  base_buffer_deinit(&t->blob);
}

size_t support_ids(const json_t *ids, int32_t **out_ids) {
  size_t count = json_array_size(ids);
  int32_t *out = calloc(count + 1, sizeof *out);
  assert_non_null(out);
  for (size_t i = 0; i < count; i++) out[i] = (int32_t)json_integer_value(json_array_get(ids, i));
  *out_ids = out;
  return count;
}

static void print_ids(const char *label, const int32_t *ids, size_t count) {
  fprintf(stderr, "  %s:", label);
  for (size_t i = 0; i < count && i < 40; i++) fprintf(stderr, " %d", ids[i]);
  fprintf(stderr, " (%zu)\n", count);
}

bool support_encodes(const text_tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                     const json_t *ids) {
  int32_t *expected, *found = NULL;
  size_t expected_count = support_ids(ids, &expected), count = 0;
  stele_sink sink = {0};
  if (text_encode(tokenizer, text, bytes, special, &sink, &found, &count) != STELE_OK)
    fail_msg("%s", sink.text);
  bool same = count == expected_count && memcmp(found, expected, count * sizeof *found) == 0;
  if (!same) {
    fprintf(stderr, "'%.*s' (special: %d)\n", (int)(bytes > 200 ? 200 : bytes), text, special);
    print_ids("found", found, count);
    print_ids("expected", expected, expected_count);
  }
  free(found);
  free(expected);
  return same;
}

bool support_decodes(const text_tokenizer *tokenizer, const json_t *ids, bool skip_special,
                     const char *text, size_t bytes) {
  int32_t *list;
  size_t count = support_ids(ids, &list);
  base_buffer found = {0};
  stele_sink sink = {0};
  if (text_decode(tokenizer, list, count, skip_special, &sink, &found) != STELE_OK)
    fail_msg("%s", sink.text);
  bool same = found.size == bytes && memcmp(found.data, text, bytes) == 0;
  if (!same)
    fprintf(stderr, "decoded '%s', expected '%.*s'\n", (char *)found.data, (int)bytes, text);
  assert_int_equal(found.data[found.size], 0);
  base_buffer_deinit(&found);
  free(list);
  return same;
}

static bool whole_characters(const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes;) {
    uint8_t lead = (uint8_t)text[i];
    size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if ((lead & 0xC0) == 0x80 || length > bytes - i) return false;
    for (size_t k = 1; k < length; k++)
      if (((uint8_t)text[i + k] & 0xC0) != 0x80) return false;
    i += length;
  }
  return true;
}

bool support_streams(const text_tokenizer *tokenizer, const json_t *ids, bool skip_special) {
  int32_t *list;
  size_t count = support_ids(ids, &list);
  text_stream *stream;
  base_buffer sum = {0};
  bool whole = true;
  assert_int_equal(text_stream_create(tokenizer, skip_special, NULL, &stream), STELE_OK);
  for (size_t i = 0; i <= count; i++) {
    const char *piece;
    size_t bytes;
    stele_status status = i < count ? text_stream_put(stream, list[i], &piece, &bytes)
                                    : text_stream_end(stream, &piece, &bytes);
    assert_int_equal(status, STELE_OK);
    whole = whole && whole_characters(piece, bytes);
    base_buffer_append(&sum, piece, bytes);
  }
  bool same =
      support_decodes(tokenizer, ids, skip_special, sum.data ? (char *)sum.data : "", sum.size);
  text_stream_destroy(stream);
  base_buffer_deinit(&sum);
  free(list);
  return same && whole;
}
