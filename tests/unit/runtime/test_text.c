/* Text through the tokenizer that an artefact carries. */
#include <pthread.h>

#include "testing.h"
#include "text/tokenizer.h"

/* Byte-level: a space is the letter U+0120; an e with an acute accent is two bytes, two ids. */
static const char json[] =
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3,\"\\u00c3\":4,"
    "\"\\u00a9\":5,\"<s>\":6,\"\\u0120ab\":7},\"merges\":[\"a b\",\"\\u0120 ab\"]},"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
    "\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
    "\"trim_offsets\":true,\"use_regex\":true},\"added_tokens\":[{\"id\":6,\"content\":\"<s>\","
    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
    "\"special\":true}]}";

static stele_model *open_with_tokenizer(bool damaged) {
  fake_config config = fake_default();
  base_buffer blob = {0};
  size_t size;
  stele_model *model = NULL;
  assert_ok(text_blob_from_json(json, sizeof json - 1, NULL, 0, sink, &blob));
  uint8_t *bytes = fake_bytes(&config, &size);
  if (damaged) memset(blob.data, 0, 16);
  assert_int_equal(fake_put_tokenizer(bytes, size, blob.data, blob.size), 0);
  assert_int_equal(fake_write_bytes(fake_path("text.so"), bytes, size), 0);
  assert_ok(stele_model_open(fake_path("text.so"), NULL, sink, &model));
  free(bytes);
  base_buffer_deinit(&blob);
  return model;
}

static void there_and_back(void **state) {
  (void)state;
  static const int32_t expected[] = {2, 7, 6, 4, 5};
  stele_model *model = open_with_tokenizer(false);
  int32_t *ids = NULL;
  size_t count = 0, bytes = 0;
  char *text = NULL;
  assert_ok(stele_tokenize(model, "ab ab<s>\xc3\xa9", 10, true, sink, &ids, &count));
  assert_int_equal(count, 5);
  assert_memory_equal(ids, expected, sizeof expected);
  assert_ok(stele_detokenize(model, ids, count, false, sink, &text, &bytes));
  assert_string_equal(text, "ab ab<s>\xc3\xa9");
  assert_int_equal(bytes, 10);
  free(text);
  assert_ok(stele_detokenize(model, ids, count, true, sink, &text, NULL));
  assert_string_equal(text, "ab ab\xc3\xa9");
  free(text);
  assert_ok(stele_detokenize(model, ids, 0, true, sink, &text, &bytes));
  assert_string_equal(text, "");
  free(text);
  free(ids);
  stele_model_close(model);
}

static void streams_whole_characters(void **state) {
  (void)state;
  static const int32_t ids[] = {2, 4, 5, 7};
  static const char *const pieces[] = {"ab", "", "\xc3\xa9", " ab"};
  stele_model *model = open_with_tokenizer(false);
  stele_stream *stream = NULL;
  const char *text;
  size_t bytes;
  assert_ok(stele_stream_create(model, true, sink, &stream));
  for (size_t i = 0; i < COUNT(ids); i++) {
    assert_int_equal(stele_stream_put(stream, ids[i], &text, &bytes), STELE_OK);
    assert_int_equal(bytes, strlen(pieces[i]));
    assert_memory_equal(text, pieces[i], bytes);
  }
  assert_int_equal(stele_stream_end(stream, &text, &bytes), STELE_OK);
  assert_int_equal(bytes, 0);
  stele_stream_destroy(stream);
  stele_model_close(model);
}

static void a_damaged_tokenizer(void **state) {
  (void)state;
  stele_model *model = open_with_tokenizer(true); /* ids still work */
  int32_t *ids = NULL;
  size_t count;
  stele_sink why = {0};
  stele_stream *stream = NULL;
  assert_int_not_equal(stele_tokenize(model, "ab", 2, true, &why, &ids, &count), STELE_OK);
  assert_true(why.text[0]);
  assert_int_not_equal(stele_stream_create(model, true, &why, &stream), STELE_OK);
  assert_null(ids);
  assert_null(stream);
  stele_model_close(model);
}

static void *tokenize(void *data) {
  int32_t *ids = NULL;
  size_t count = 0;
  stele_status status = stele_tokenize(data, "ab ab", 5, true, NULL, &ids, &count);
  free(ids);
  return status == STELE_OK && count == 2 ? data : NULL;
}

/* The tokenizer is made by whoever comes first. */
static void first_use_on_several_threads(void **state) {
  (void)state;
  stele_model *model = open_with_tokenizer(false);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, tokenize, model), 0);
  for (int i = 0; i < 4; i++) {
    void *good = NULL;
    pthread_join(threads[i], &good);
    assert_non_null(good);
  }
  stele_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(there_and_back),
      cmocka_unit_test(streams_whole_characters),
      cmocka_unit_test(a_damaged_tokenizer),
      cmocka_unit_test(first_use_on_several_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
