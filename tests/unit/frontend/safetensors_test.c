/* Safetensors headers, sound and broken. */
#include "frontend/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "support/bytes.h"

/* Parses a file made of a header and so many zero bytes of data. */
static stele_status parse(base_arena *arena, const char *header, size_t data, stele_sink *sink,
                          fe_tensors *out) {
  base_buffer file = {0};
  put_u64(&file, strlen(header));
  base_buffer_append(&file, header, strlen(header));
  for (size_t i = 0; i < data; i++) put_u8(&file, 0);
  uint8_t *copy = base_arena_alloc(arena, file.size, 1); /* outlives the buffer, as a map does */
  memcpy(copy, file.data, file.size);
  stele_status status = fe_safetensors_parse(arena, "x.safetensors", copy, file.size, sink, out);
  base_buffer_deinit(&file);
  return status;
}

static void expect_fails(const char *header, size_t data, const char *word) {
  base_arena arena = {0};
  fe_tensors tensors;
  stele_sink sink = {{0}};
  if (parse(&arena, header, data, &sink, &tensors) == STELE_OK)
    fail_msg("parsed, but '%s' was expected: %s", word, header);
  EXPECT_WORDS(&sink, "x.safetensors", word);
  base_arena_deinit(&arena);
}

static void tensors_are_listed_by_name(void **state) {
  (void)state;
  base_arena arena = {0};
  fe_tensors tensors;
  stele_sink sink = {{0}};
  const char *header =
      "{\"__metadata__\":{\"format\":\"pt\"},"
      "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"c\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[20,28]},"
      "\"d\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[28,30]}}  ";
  assert_int_equal(parse(&arena, header, 30, &sink, &tensors), STELE_OK);
  assert_int_equal(tensors.count, 4);
  const fe_tensor *b = fe_tensors_find(&tensors, "b");
  assert_true(b == &tensors.list[1] && b->scheme == STELE_BF16 && b->bytes == 12);
  assert_true(b->dim_count == 2 && b->dims[0] == 2 && b->dims[1] == 3);
  assert_true(tensors.list[2].scheme == UINT32_MAX && tensors.list[2].bytes == 8);
  assert_string_equal(tensors.list[2].type, "I64");
  assert_true(tensors.list[3].scheme == UINT32_MAX && tensors.list[3].bytes == 2);
  assert_null(fe_tensors_find(&tensors, "e"));
  base_arena_deinit(&arena);
}

static void empty_files_hold_nothing(void **state) {
  (void)state;
  base_arena arena = {0};
  fe_tensors tensors;
  stele_sink sink = {{0}};
  assert_int_equal(parse(&arena, "{}", 0, &sink, &tensors), STELE_OK);
  assert_int_equal(tensors.count, 0);
  assert_null(fe_tensors_find(&tensors, "a"));
  base_arena_deinit(&arena);
}

static void lengths_are_checked(void **state) {
  (void)state;
  static const uint8_t cut[8] = {200, 0, 0, 0, 0, 0, 0, 0};
  static const uint8_t huge[10] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
  base_arena arena = {0};
  fe_tensors tensors;
  stele_sink sink = {{0}};
  assert_int_equal(fe_safetensors_parse(&arena, "x", cut, 5, &sink, &tensors), STELE_BAD_FORMAT);
  EXPECT_WORDS(&sink, "5 bytes", "too few");
  assert_int_equal(fe_safetensors_parse(&arena, "x", cut, 8, &sink, &tensors), STELE_BAD_FORMAT);
  EXPECT_WORDS(&sink, "200 bytes", "has 0 after");
  assert_int_equal(fe_safetensors_parse(&arena, "x", huge, 10, &sink, &tensors), STELE_BAD_FORMAT);
  EXPECT_WORDS(&sink, "18446744073709551615");
  base_arena_deinit(&arena);
}

#define ENTRY(dtype, shape, offsets) \
  "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void entries_are_checked(void **state) {
  (void)state;
  expect_fails(ENTRY("\"\"", "[2]", "[0,8]"), 8, "'dtype' of tensor 'a'");
  expect_fails(ENTRY("3", "[2]", "[0,8]"), 8, "'dtype' of tensor 'a'");
  expect_fails("{\"a\":{}}", 8, "'dtype' of tensor 'a'");
  expect_fails("{\"a\":3}", 8, "not an object");
  expect_fails("{\"\":{}}", 8, "name is empty");
  expect_fails("{\"a\\u0007\":{}}", 8, "control characters");
  expect_fails(ENTRY("\"F32\"", "2", "[0,8]"), 8, "'shape' of tensor 'a'");
  expect_fails(ENTRY("\"F32\"", "[-2]", "[0,8]"), 8, "'shape' of tensor 'a'");
  expect_fails(ENTRY("\"F32\"", "[2.0]", "[0,8]"), 8, "'shape' of tensor 'a'");
  expect_fails(ENTRY("\"F32\"", "[0]", "[0,0]"), 0, "with a zero");
  expect_fails(ENTRY("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "9 dimensions");
  expect_fails(ENTRY("\"F32\"", "[4294967296,4294967296]", "[0,4]"), 4, "overflows");
  expect_fails(ENTRY("\"I64\"", "[4294967296,4294967295]", "[0,4]"), 4, "overflows");
  expect_fails(ENTRY("\"XX\"", "[4294967296,4294967296]", "[0,4]"), 4, "overflows");
  expect_fails(ENTRY("\"F32\"", "[9223372036854775808]", "[0,4]"), 4, "'shape' of tensor 'a'");
}

static void ranges_are_checked(void **state) {
  (void)state;
  expect_fails(ENTRY("\"F32\"", "[2]", "[0,12]"), 12, "needs 8");
  expect_fails(ENTRY("\"F32\"", "[2]", "[0,8]"), 7, "cut off");
  expect_fails(ENTRY("\"F32\"", "[2]", "[8,0]"), 8, "8 to 0");
  expect_fails(ENTRY("\"F32\"", "[2]", "[-8,0]"), 8, "'data_offsets'");
  expect_fails(ENTRY("\"F32\"", "[2]", "[0]"), 8, "'data_offsets'");
  expect_fails(ENTRY("\"F32\"", "[2]", "[0,8,9]"), 8, "'data_offsets'");
  expect_fails(ENTRY("\"F32\"", "[2]", "[4,12]"), 12, "4 bytes before tensor 'a'");
  expect_fails(ENTRY("\"F32\"", "[2]", "[0,8]"), 12, "last 4 bytes");
  expect_fails(
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
      12, "'a' and 'b' share bytes");
}

static void json_is_checked(void **state) {
  (void)state;
  expect_fails(
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
      8, "duplicate");
  expect_fails("[]", 0, "not a JSON object");
  expect_fails("{\"a\":", 0, "bad JSON at line 1");
  expect_fails("", 0, "bad JSON");
  expect_fails("{\"a\":1e400}", 0, "real number overflow");
  char *deep = malloc(200002);
  assert_non_null(deep);
  memset(deep, '[', 100000);
  memset(deep + 100000, ']', 100000);
  deep[200000] = 0;
  expect_fails(deep, 0, "maximum parsing depth");
  free(deep);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_are_listed_by_name), cmocka_unit_test(empty_files_hold_nothing),
      cmocka_unit_test(lengths_are_checked),        cmocka_unit_test(entries_are_checked),
      cmocka_unit_test(ranges_are_checked),         cmocka_unit_test(json_is_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
