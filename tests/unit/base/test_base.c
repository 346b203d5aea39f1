/* runtime/base: statuses and messages, arenas, buffers, sizes, allocators, options. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static void statuses_have_meanings(void **state) {
  (void)state;
#define X(name, code, meaning)          \
  assert_int_equal(STELE_##name, code); \
  assert_string_equal(stele_status_string(STELE_##name), meaning);
#include "stele/status.def"
#undef X
  assert_string_equal(stele_status_string((stele_status)999), "unknown status");
}

static stele_status fail_with(stele_sink *sink, int number) {
  return base_fail(sink, STELE_IO, "number %d", number);
}

static stele_status try_it(stele_sink *sink, int number, int *out) {
  if (number) BASE_TRY(fail_with(sink, number));
  *out = 1;
  return STELE_OK;
}

static void failing_leaves_a_message(void **state) {
  (void)state;
  stele_sink sink = {0};
  int out = 0;
  assert_int_equal(try_it(&sink, 7, &out), STELE_IO);
  assert_string_equal(sink.text, "number 7");
  assert_int_equal(try_it(NULL, 7, &out), STELE_IO);
  assert_int_equal(out, 0);
  assert_int_equal(try_it(NULL, 0, &out), STELE_OK);
  assert_int_equal(out, 1);
  char *longer = malloc(10000);
  memset(longer, 'x', 9999);
  longer[9999] = 0;
  assert_int_equal(base_fail(&sink, STELE_FAILED, "%s", longer), STELE_FAILED);
  assert_int_equal(strlen(sink.text), sizeof sink.text - 1);
  base_sink_add(&sink, "one more"); /* no room at all: what is there stays */
  assert_int_equal(strlen(sink.text), sizeof sink.text - 1);
  free(longer);
}

static void lines_add_up_and_end(void **state) {
  (void)state;
  stele_sink sink = {0};
  base_sink_add(NULL, "nobody listens");
  base_sink_add(&sink, "first %d", 1);
  assert_string_equal(sink.text, "first 1");
  base_sink_add(&sink, "second");
  assert_string_equal(sink.text, "first 1\nsecond");
  for (int i = 0; i < 1000; i++) base_sink_add(&sink, "line number %d", i);
  size_t length = strlen(sink.text);
  assert_true(length < sizeof sink.text);
  assert_string_equal(sink.text + length - 4, "\n...");
  base_sink_add(&sink, "x");
  assert_int_equal(strlen(sink.text), length);
}

static void sizes_that_overflow(void **state) {
  (void)state;
  size_t out = 5;
  assert_false(base_mul(SIZE_MAX, 2, &out));
  assert_false(base_add(SIZE_MAX, 1, &out));
  assert_int_equal(out, 5);
  assert_true(base_mul(6, 7, &out));
  assert_int_equal(out, 42);
  assert_true(base_add(out, 1, &out));
  assert_int_equal(out, 43);
  assert_int_equal(base_align(0, 64), 0);
  assert_int_equal(base_align(1, 64), 64);
  assert_int_equal(base_align(65, 24), 72);
  assert_int_equal(base_min(2, 3) * 10 + base_max(2, 3), 23);
}

static void arenas_stack_up(void **state) {
  (void)state;
  base_arena arena = {0};
  base_mark empty = base_arena_mark(&arena);
  uint8_t *small = base_arena_alloc(&arena, 3, 5);
  assert_non_null(small);
  memset(small, 0xff, 15);
  base_mark mark = base_arena_mark(&arena);
  for (size_t size = 1; size < 300000; size = size * 3 + 1) {
    uint8_t *p = base_arena_alloc(&arena, size, 1);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 16, 0);
    for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
    memset(p, 0xff, size);
  }
  base_arena_reset(&arena, mark);
  uint8_t *again = base_arena_alloc(&arena, 100, 1); /* used before, zero again */
  for (size_t i = 0; i < 100; i++) assert_int_equal(again[i], 0);
  assert_int_equal(small[14], 0xff);
  assert_null(base_arena_alloc(&arena, SIZE_MAX, 2));
  assert_null(base_arena_alloc(&arena, SIZE_MAX / 2 + 2, 1));
  assert_non_null(base_arena_alloc(&arena, 0, 8));
  base_arena_reset(&arena, empty);
  assert_null(arena.top);
  base_arena_deinit(&arena);
}

static void arenas_hold_text(void **state) {
  (void)state;
  base_arena arena = {0};
  assert_string_equal(base_arena_copy(&arena, "abcdef", 3), "abc");
  assert_string_equal(base_arena_copy(&arena, NULL, 0), "");
  assert_null(base_arena_copy(&arena, "x", SIZE_MAX));
  assert_string_equal(base_arena_format(&arena, "%s-%d", "x", 5), "x-5");
  base_arena_deinit(&arena);
}

static void buffers_grow(void **state) {
  (void)state;
  base_buffer buffer = {0};
  for (int i = 0; i < 1000; i++) base_buffer_append(&buffer, &i, sizeof i);
  assert_int_equal(buffer.size, 4000);
  int last;
  memcpy(&last, buffer.data + 3996, sizeof last);
  assert_int_equal(last, 999);
  base_buffer_append(&buffer, NULL, 0);
  base_buffer_printf(&buffer, "%s", "hello");
  assert_string_equal((char *)buffer.data + 4000, "hello");
  assert_int_equal(buffer.size, 4005);
  base_buffer_align(&buffer, 64);
  assert_int_equal(buffer.size, 4032);
  assert_int_equal(buffer.data[4031], 0);
  base_buffer_align(&buffer, 64);
  assert_int_equal(buffer.size, 4032);
  assert_false(buffer.failed);
  base_buffer_append(&buffer, "x", SIZE_MAX / 2);
  assert_true(buffer.failed);
  base_buffer_append(&buffer, "x", 1);
  assert_int_equal(buffer.size, 4032);
  base_buffer_deinit(&buffer);
  assert_null(buffer.data);
}

static void *allocate(void *data, size_t bytes) {
  ++*(int *)data;
  return memset(malloc(bytes), 0xaa, bytes);
}
static void release(void *data, void *memory) {
  --*(int *)data;
  free(memory);
}
static void *allocate_none(void *data, size_t bytes) {
  (void)data;
  (void)bytes;
  return NULL;
}

static void allocators(void **state) {
  (void)state;
  const base_allocator heap = {0};
  int live = 0;
  const base_allocator own = {allocate, release, &live}, none = {.allocate = allocate_none};
  const base_allocator *const both[] = {&heap, &own};
  for (int i = 0; i < 2; i++) {
    uint8_t *p = base_allocate(both[i], 10, 10);
    for (int k = 0; k < 100; k++) assert_int_equal(p[k], 0);
    void *empty = base_allocate(both[i], 0, 10);
    assert_non_null(empty);
    assert_int_equal(live, i ? 2 : 0);
    base_release(both[i], p);
    base_release(both[i], empty);
    base_release(both[i], NULL);
    assert_null(base_allocate(both[i], SIZE_MAX, 2));
    assert_null(base_allocate(both[i], SIZE_MAX - 5, 1));
  }
  assert_int_equal(live, 0);
  assert_null(base_allocate(&none, 1, 1));
  base_release(&none, &live); /* nothing to release with: left alone */
}

static void pages_from_the_system(void **state) {
  (void)state;
  for (int whole = 0; whole < 2; whole++) {
    size_t bytes = ((size_t)5 << 20) + 3;
    uint8_t *pages = base_pages_reserve(bytes, whole);
    assert_non_null(pages);
    assert_int_equal((uintptr_t)pages % 4096, 0);
    base_pages_commit(pages, bytes);
    assert_int_equal(pages[bytes - 1], 0);
    pages[bytes - 1] = 1;
    base_pages_release(pages, bytes);
  }
  void *much = base_pages_reserve((size_t)1 << 40, false); /* address space is not memory */
  base_pages_release(much, (size_t)1 << 40);
  assert_null(base_pages_reserve(SIZE_MAX / 2, false));
  assert_null(base_pages_reserve(0, false));
  base_pages_release(NULL, 5);
}

typedef struct some_options {
  uint32_t struct_bytes;
  uint32_t old, new;
} some_options;

static void options_of_older_and_newer_callers(void **state) {
  (void)state;
  some_options own = {sizeof own, 1, 2};
  assert_true(base_options(&own, sizeof own, NULL));
  assert_int_equal(own.old, 1);
  const some_options unset = {0, 8, 9};
  assert_false(base_options(&own, sizeof own, &unset));
  assert_int_equal(own.old, 1);
  const some_options older = {offsetof(some_options, new), 8, 9};
  assert_true(base_options(&own, sizeof own, &older));
  assert_int_equal(own.old, 8);
  assert_int_equal(own.new, 2);
  const some_options newer[2] = {{sizeof newer, 3, 4}, {0}};
  assert_true(base_options(&own, sizeof own, newer));
  assert_int_equal(own.new, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statuses_have_meanings),
      cmocka_unit_test(failing_leaves_a_message),
      cmocka_unit_test(lines_add_up_and_end),
      cmocka_unit_test(sizes_that_overflow),
      cmocka_unit_test(arenas_stack_up),
      cmocka_unit_test(arenas_hold_text),
      cmocka_unit_test(buffers_grow),
      cmocka_unit_test(allocators),
      cmocka_unit_test(pages_from_the_system),
      cmocka_unit_test(options_of_older_and_newer_callers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
