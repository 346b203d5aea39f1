/* Every allocation may fail: each call then says so, leaks nothing and leaves its outputs alone.
 * The linker puts the functions below in the place of malloc and its like for this library's own
 * code; the n-th call fails, for every n. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* After the five above. */
#include <cmocka.h>

#include "text/tokenizer.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static long left = -1; /* allocations until one fails, -1: none does */

static bool fails(void) { return left >= 0 && left-- == 0; }
void *__wrap_malloc(size_t bytes) { return fails() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) {
  return fails() ? NULL : __real_calloc(count, bytes);
}
void *__wrap_realloc(void *old, size_t bytes) {
  return fails() ? NULL : __real_realloc(old, bytes);
}

static const char *const files[] = {
    "{\"added_tokens\":[{\"id\":4,\"content\":\"<s>\",\"special\":true},"
    "{\"id\":5,\"content\":\"e\\u0301\",\"normalized\":true}],"
    "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\"},"
    "\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"<s>\",4],\"sep\":[\"<s>\",4]},"
    "\"decoder\":{\"type\":\"ByteLevel\"},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3},"
    "\"merges\":[\"a b\"]}}",
    "{\"added_tokens\":[{\"id\":4,\"content\":\"<s>\",\"special\":true},"
    "{\"id\":5,\"content\":\"e\\u0301\",\"normalized\":true}],"
    "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"_\"},"
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"},"
    "\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"<s>\",4],\"sep\":[\"<s>\",4]},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
    "\"String\":"
    "\"_\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1}]},"
    "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_token\":\"a\",\"vocab\":{\"a\":0,"
    "\"b\":1,"
    "\"ab\":2,\"_\":3,\"<0xCC>\":6},\"merges\":[\"a b\"]}}"};

static stele_status use(const text_tokenizer *t, stele_sink *sink) {
  static const char text[] = "ab ba\xFF <s>e\xCC\x81\xCC\xA3";
  int32_t *ids;
  size_t count, bytes;
  BASE_TRY(text_encode(t, text, sizeof text - 1, true, sink, &ids, &count));
  assert_int_equal(ids[0], 4);
  base_buffer out = {0};
  stele_status status = text_decode(t, ids, count, false, sink, &out);
  if (status == STELE_OK) base_buffer_deinit(&out);
  text_stream *stream = NULL;
  if (status == STELE_OK) status = text_stream_create(t, true, sink, &stream);
  for (size_t i = 0; status == STELE_OK && i < count; i++) {
    const char *piece;
    status = text_stream_put(stream, ids[i], &piece, &bytes);
  }
  text_stream_destroy(stream);
  free(ids);
  return status;
}

static stele_status all(const char *json, stele_sink *sink) {
  base_buffer blob = {0};
  text_tokenizer *t = NULL;
  stele_status status = text_blob_from_json(json, strlen(json), NULL, 0, sink, &blob);
  if (status != STELE_OK) {
    assert_null(blob.data);
    return status;
  }
  status = text_tokenizer_create(blob.data, blob.size, sink, &t);
  if (status == STELE_OK) status = use(t, sink);
  text_tokenizer_destroy(t);
  base_buffer_deinit(&blob);
  return status;
}

/* Fails the n-th allocation for every n. */
static void fail_each(const char *json) {
  stele_status status = STELE_FAILED;
  long n = 0;
  for (; status != STELE_OK; n++) {
    stele_sink sink = {0};
    left = n;
    status = all(json, &sink);
    bool failed = left < 0;
    left = -1;
    assert_int_equal(failed, status != STELE_OK);
    if (status == STELE_OK) break;
    if (status != STELE_OUT_OF_MEMORY) fail_msg("allocation %ld: %s", n, sink.text);
    assert_true(n < 10000);
  }
  assert_true(n > 30);
}

static void each_allocation(void **state) {
  (void)state;
  fail_each(files[0]);
  fail_each(files[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
