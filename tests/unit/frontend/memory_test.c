/* Lack of memory: the n-th allocation fails, for every n, while a model is opened. It must end in
 * an error and nothing may be lost (the sanitizer build looks). Linked with --wrap, so that the
 * front-end's calls for memory come here. jansson's are spared: the scanner of 2.14 writes past its
 * buffer when that cannot grow. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"
#include "support/test_model.h"

void *__real_calloc(size_t count, size_t size);
void *__real_base_arena_alloc(base_arena *arena, size_t count, size_t size);
char *__real_base_arena_copy(base_arena *arena, const char *text, size_t length);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_base_arena_alloc(base_arena *arena, size_t count, size_t size);
char *__wrap_base_arena_copy(base_arena *arena, const char *text, size_t length);
char *__wrap_base_arena_format(base_arena *arena, const char *format, ...) STELE_PRINTF(2, 3);

static long left = -1; /* allocations until one fails; below 0: never */

static bool refuse(void) { return left >= 0 && left-- == 0; }

void *__wrap_calloc(size_t count, size_t size) {
  return refuse() ? NULL : __real_calloc(count, size);
}

void *__wrap_base_arena_alloc(base_arena *arena, size_t count, size_t size) {
  return refuse() ? NULL : __real_base_arena_alloc(arena, count, size);
}

char *__wrap_base_arena_copy(base_arena *arena, const char *text, size_t length) {
  return refuse() ? NULL : __real_base_arena_copy(arena, text, length);
}

char *__wrap_base_arena_format(base_arena *arena, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  assert_true(length >= 0 && length < (int)sizeof text);
  return refuse() ? NULL : __real_base_arena_copy(arena, text, (size_t)length);
}

/* Opens the model with ever more memory until it opens; returns after how many allocations. */
static long open_until_it_works(const char *path) {
  for (long n = 0; n < 20000; n++) {
    stele_sink sink = {{0}};
    fe_model *model = NULL;
    left = n;
    stele_status status = fe_model_open(path, &sink, &model);
    bool refused = left < 0;
    left = -1;
    if (status == STELE_OK) {
      assert_false(refused); /* a failure must not be swallowed */
      fe_model_destroy(model);
      return n;
    }
    assert_null(model);
    if (!sink.text[0]) fail_msg("no message when allocation %ld fails", n);
  }
  fail_msg("does not open");
  return 0;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  char directory[64];
  stele_sink sink = {{0}};
  fe_model *model;
  test_options options = test_options_default();
  options.layers = 1;
  make_directory(directory);
  assert_int_equal(test_model_random(&options, &sink, &model), STELE_OK);
  const char *hf = in(directory, "hf"), *gguf = in(directory, "x.gguf");
  assert_int_equal(test_model_save_hf(&options, model, STELE_F16, hf, &sink), STELE_OK);
  assert_int_equal(test_model_save_gguf(model, STELE_Q4_0, STELE_Q8_0, gguf, &sink), STELE_OK);
  write_text(in(directory, "hf/generation_config.json"), "{\"eos_token_id\":[2,3]}");
  write_text(in(directory, "hf/tokenizer_config.json"), "{\"chat_template\":\"{{ x }}\"}");
  fe_model_destroy(model);
  assert_true(open_until_it_works(hf) > 40);
  assert_true(open_until_it_works(gguf) > 40);
  remove_directory(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
