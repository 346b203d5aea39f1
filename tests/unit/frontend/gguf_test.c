/* GGUF files, sound and broken in one place. */
#include "frontend/gguf.h"

#include <string.h>

#include "common.h"
#include "support/bytes.h"

typedef struct file {
  base_arena arena;
  base_buffer bytes;
  fe_gguf gguf;
  fe_tensors tensors;
  stele_sink sink;
} file;

static stele_status parse(file *f) {
  return fe_gguf_parse(&f->arena, "x.gguf", f->bytes.data, f->bytes.size, &f->sink, &f->gguf,
                       &f->tensors);
}

static void done(file *f) {
  base_arena_deinit(&f->arena);
  base_buffer_deinit(&f->bytes);
  *f = (file){0};
}

static void expect_fails(file *f, const char *word) {
  if (parse(f) == STELE_OK) fail_msg("parsed, but '%s' was expected", word);
  EXPECT_WORDS(&f->sink, "x.gguf", word);
  done(f);
}

static void put_data(file *f, uint32_t alignment, size_t bytes) {
  base_buffer_align(&f->bytes, alignment);
  for (size_t i = 0; i < bytes; i++) put_u8(&f->bytes, (uint8_t)i);
}

static void put_key(file *f, const char *key, uint32_t type) {
  put_string(&f->bytes, key);
  put_u32(&f->bytes, type);
}

/* ---- sound ----------------------------------------------------------------------------- */

static void put_values(file *f) {
  base_buffer *b = &f->bytes;
  put_key(f, "u8", FE_GGUF_U8), put_u8(b, 200);
  put_key(f, "i8", FE_GGUF_I8), put_u8(b, 0xfe);
  put_key(f, "u16", FE_GGUF_U16), put_u16(b, 60000);
  put_key(f, "i16", FE_GGUF_I16), put_u16(b, 0x8000);
  put_pair_u32(b, "u32", 4000000000u);
  put_key(f, "i32", FE_GGUF_I32), put_u32(b, 0xffffffffu);
  put_key(f, "u64", FE_GGUF_U64), put_u64(b, UINT64_MAX);
  put_key(f, "i64", FE_GGUF_I64), put_u64(b, (uint64_t)INT64_MIN);
  put_pair_f32(b, "f32", 0.25f);
  put_key(f, "f64", FE_GGUF_F64), put_u64(b, 0x3fe0000000000000u); /* 0.5 */
  put_pair_bool(b, "bool", true);
  put_pair_string(b, "string", "text");
  put_key(f, "numbers", FE_GGUF_ARRAY), put_u32(b, FE_GGUF_I32), put_u64(b, 2);
  put_u32(b, 7), put_u32(b, 9);
  put_key(f, "strings", FE_GGUF_ARRAY), put_u32(b, FE_GGUF_STRING), put_u64(b, 3);
  put_string(b, "one"), put_string(b, ""), put_string(b, "three");
}

static int64_t whole(const file *f, const char *key, uint64_t i) {
  int64_t value = 12345;
  assert_true(fe_gguf_int(fe_gguf_find(&f->gguf, key), i, &value));
  return value;
}

static void values_have_types(void **state) {
  (void)state;
  file f = {0};
  put_gguf_header(&f.bytes, 2, 0, 14);
  put_values(&f);
  assert_int_equal(parse(&f), STELE_OK);
  assert_int_equal(whole(&f, "u8", 0), 200);
  assert_int_equal(whole(&f, "i8", 0), -2);
  assert_int_equal(whole(&f, "u16", 0), 60000);
  assert_int_equal(whole(&f, "i16", 0), -32768);
  assert_int_equal(whole(&f, "u32", 0), 4000000000);
  assert_int_equal(whole(&f, "i32", 0), -1);
  assert_true(whole(&f, "i64", 0) == INT64_MIN);
  assert_int_equal(whole(&f, "numbers", 1), 9);
  int64_t value;
  double number;
  bool truth;
  assert_false(fe_gguf_int(fe_gguf_find(&f.gguf, "u64"), 0, &value));
  assert_false(fe_gguf_int(fe_gguf_find(&f.gguf, "f32"), 0, &value));
  assert_false(fe_gguf_int(fe_gguf_find(&f.gguf, "numbers"), 2, &value));
  assert_true(fe_gguf_float(fe_gguf_find(&f.gguf, "f32"), 0, &number) && number == 0.25);
  assert_true(fe_gguf_float(fe_gguf_find(&f.gguf, "f64"), 0, &number) && number == 0.5);
  assert_false(fe_gguf_float(fe_gguf_find(&f.gguf, "f64"), 1, &number));
  assert_false(fe_gguf_float(fe_gguf_find(&f.gguf, "u8"), 0, &number));
  assert_true(fe_gguf_bool(fe_gguf_find(&f.gguf, "bool"), 0, &truth) && truth);
  assert_false(fe_gguf_bool(fe_gguf_find(&f.gguf, "u8"), 0, &truth));
  assert_null(fe_gguf_find(&f.gguf, "missing"));
  assert_string_equal(fe_gguf_type_name(FE_GGUF_F64), "float64");
  assert_string_equal(fe_gguf_type_name((fe_gguf_type)99), "unknown");
  done(&f);
}

static void strings_are_found(void **state) {
  (void)state;
  file f = {0};
  const char *const *texts;
  const uint64_t *bytes;
  put_gguf_header(&f.bytes, 3, 0, 14);
  put_values(&f);
  assert_int_equal(parse(&f), STELE_OK);
  const fe_gguf_value *strings = fe_gguf_find(&f.gguf, "strings");
  const char *text = NULL;
  assert_int_equal(fe_gguf_text(&f.arena, &f.gguf, fe_gguf_find(&f.gguf, "string"), &f.sink, &text),
                   STELE_OK);
  assert_string_equal(text, "text");
  assert_int_equal(fe_gguf_text(&f.arena, &f.gguf, strings, &f.sink, &text), STELE_BAD_FORMAT);
  EXPECT_WORDS(&f.sink, "'strings' has the type array of string, expected string");
  assert_int_equal(fe_gguf_text(&f.arena, &f.gguf, fe_gguf_find(&f.gguf, "u8"), &f.sink, &text),
                   STELE_BAD_FORMAT);
  assert_int_equal(fe_gguf_strings(&f.arena, &f.gguf, strings, &f.sink, &texts, &bytes), STELE_OK);
  assert_true(bytes[0] == 3 && bytes[1] == 0 && bytes[2] == 5);
  assert_memory_equal(texts[2], "three", 5);
  assert_int_equal(
      fe_gguf_strings(&f.arena, &f.gguf, fe_gguf_find(&f.gguf, "numbers"), &f.sink, &texts, &bytes),
      STELE_BAD_FORMAT);
  done(&f);
}

static void tensors_are_placed(void **state) {
  (void)state;
  file f = {0};
  put_gguf_header(&f.bytes, 3, 3, 1);
  put_pair_u32(&f.bytes, "general.alignment", 64);
  put_gguf_tensor(&f.bytes, "b", 2, (const uint64_t[]){32, 3}, 3, 64);
  put_gguf_tensor(&f.bytes, "a", 1, (const uint64_t[]){4}, 0, 0);
  put_gguf_tensor(&f.bytes, "c", 1, (const uint64_t[]){256}, 16, 128);
  put_data(&f, 64, 256);
  assert_int_equal(parse(&f), STELE_OK);
  assert_int_equal(f.gguf.alignment, 64);
  const fe_tensor *a = fe_tensors_find(&f.tensors, "a"), *b = fe_tensors_find(&f.tensors, "b");
  const fe_tensor *c = fe_tensors_find(&f.tensors, "c");
  assert_true(a->scheme == STELE_F32 && a->bytes == 16 && a->data[3] == 3);
  assert_true(b->scheme == STELE_Q4_1 && b->dims[0] == 3 && b->dims[1] == 32 && b->bytes == 60);
  assert_int_equal(b->data - a->data, 64);
  assert_true(c->scheme == UINT32_MAX);
  assert_string_equal(c->type, "IQ2_XXS");
  done(&f);
}

/* ---- broken ---------------------------------------------------------------------------- */

static void headers_are_checked(void **state) {
  (void)state;
  file f = {0};
  base_buffer_append(&f.bytes, "GG", 2);
  expect_fails(&f, "needs 4 bytes");
  base_buffer_append(&f.bytes, "GGML\3\0\0\0", 8);
  expect_fails(&f, "begins with 47 47 4d 4c");
  put_gguf_header(&f.bytes, 1, 0, 0);
  expect_fails(&f, "version 1, expected 2 or 3");
  put_gguf_header(&f.bytes, 0x03000000, 0, 0);
  expect_fails(&f, "big-endian");
  put_gguf_header(&f.bytes, 3, (uint64_t)1 << 60, 0);
  expect_fails(&f, "1152921504606846976 tensors");
  put_gguf_header(&f.bytes, 3, 0, (uint64_t)1 << 60);
  expect_fails(&f, "1152921504606846976 metadata pairs");
  put_gguf_header(&f.bytes, 3, 0, 0);
  f.bytes.size -= 3;
  expect_fails(&f, "the metadata count");
}

static void metadata_is_checked(void **state) {
  (void)state;
  file f = {0};
  put_gguf_header(&f.bytes, 3, 0, 1);
  put_u64(&f.bytes, (uint64_t)1 << 63), put_u64(&f.bytes, 0);
  expect_fails(&f, "expected 1 to 255");
  put_gguf_header(&f.bytes, 3, 0, 1);
  put_key(&f, "a\n", FE_GGUF_U8), put_u8(&f.bytes, 0);
  expect_fails(&f, "control character 10");
  put_gguf_header(&f.bytes, 3, 0, 1);
  put_key(&f, "a", FE_GGUF_STRING), put_u64(&f.bytes, (uint64_t)1 << 63);
  expect_fails(&f, "needs 9223372036854775808 bytes");
  put_gguf_header(&f.bytes, 3, 0, 1);
  put_key(&f, "a", 13), put_u32(&f.bytes, 0);
  expect_fails(&f, "'a' has the type 13");
  put_gguf_header(&f.bytes, 3, 0, 1);
  put_key(&f, "a", FE_GGUF_ARRAY), put_u32(&f.bytes, 77), put_u64(&f.bytes, 1);
  expect_fails(&f, "'a' has the type 77");
  put_gguf_header(&f.bytes, 3, 0, 1);
  put_key(&f, "a", FE_GGUF_ARRAY), put_u32(&f.bytes, FE_GGUF_ARRAY), put_u64(&f.bytes, 1);
  expect_fails(&f, "array of arrays");
  put_gguf_header(&f.bytes, 3, 0, 1);
  put_key(&f, "a", FE_GGUF_BOOL), put_u8(&f.bytes, 2);
  base_buffer_append(&f.bytes, "....", 4);
  expect_fails(&f, "bool 'a' is 2");
  put_gguf_header(&f.bytes, 3, 0, 2);
  put_pair_u32(&f.bytes, "a", 1), put_pair_bool(&f.bytes, "a", 1);
  expect_fails(&f, "'a' comes twice");
}

static void arrays_are_checked(void **state) {
  (void)state;
  static const uint32_t types[] = {FE_GGUF_U8, FE_GGUF_F64, FE_GGUF_STRING};
  for (size_t i = 0; i < 3; i++) {
    file f = {0};
    put_gguf_header(&f.bytes, 3, 0, 1);
    put_key(&f, "a", FE_GGUF_ARRAY), put_u32(&f.bytes, types[i]);
    put_u64(&f.bytes, UINT64_MAX / 4);
    expect_fails(&f, "the file ends");
    put_gguf_header(&f.bytes, 3, 0, 1);
    put_key(&f, "a", FE_GGUF_ARRAY), put_u32(&f.bytes, types[i]), put_u64(&f.bytes, 3);
    put_u16(&f.bytes, 0);
    expect_fails(&f, "the file ends");
  }
}

static void alignment_is_checked(void **state) {
  (void)state;
  static const uint32_t wrong[] = {0, 3, 4, 48};
  file f = {0};
  for (size_t i = 0; i < 4; i++) {
    put_gguf_header(&f.bytes, 3, 0, 1);
    put_pair_u32(&f.bytes, "general.alignment", wrong[i]);
    expect_fails(&f, "expected a power of two of at least 8");
  }
  put_gguf_header(&f.bytes, 3, 0, 1);
  put_key(&f, "general.alignment", FE_GGUF_I32), put_u32(&f.bytes, 32);
  expect_fails(&f, "has the type int32, expected uint32");
  put_gguf_header(&f.bytes, 3, 0, 1);
  put_key(&f, "general.alignment", FE_GGUF_ARRAY), put_u32(&f.bytes, FE_GGUF_U32);
  put_u64(&f.bytes, 0);
  expect_fails(&f, "array of uint32");
}

static void expect_tensor_fails(uint32_t dim_count, const uint64_t *sizes, uint32_t type,
                                uint64_t offset, const char *word) {
  file f = {0};
  put_gguf_header(&f.bytes, 3, 1, 0);
  put_gguf_tensor(&f.bytes, "a", dim_count, sizes, type, offset);
  put_data(&f, 32, 64);
  expect_fails(&f, word);
}

static void tensors_are_checked(void **state) {
  (void)state;
  const uint64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  expect_tensor_fails(1, (const uint64_t[]){0}, 0, 0, "the shape [0] with a zero");
  expect_tensor_fails(2, (const uint64_t[]){4, 0}, 14, 0, "the shape [0, 4] with a zero");
  expect_tensor_fails(9, nine, 0, 0, "9 dimensions, expected 1 to 4");
  expect_tensor_fails(0, nine, 0, 0, "0 dimensions");
  expect_tensor_fails(2, (const uint64_t[]){(uint64_t)1 << 33, (uint64_t)1 << 31}, 0, 0,
                      "overflows");
  expect_tensor_fails(2, (const uint64_t[]){(uint64_t)1 << 33, (uint64_t)1 << 31}, 99, 0,
                      "overflows");
  expect_tensor_fails(1, (const uint64_t[]){33}, 8, 0, "expected a multiple of 32");
  expect_tensor_fails(1, (const uint64_t[]){4}, 0, 96, "cut off");
  expect_tensor_fails(1, (const uint64_t[]){4}, 0, UINT64_MAX - 31, "cut off");
  expect_tensor_fails(1, (const uint64_t[]){17}, 0, 0, "cut off");
  expect_tensor_fails(1, (const uint64_t[]){4}, 0, 16, "multiple of the alignment 32");
}

static void tensor_lists_are_checked(void **state) {
  (void)state;
  file f = {0};
  put_gguf_header(&f.bytes, 3, 2, 0);
  put_gguf_tensor(&f.bytes, "a", 1, (const uint64_t[]){4}, 0, 0);
  put_gguf_tensor(&f.bytes, "a", 1, (const uint64_t[]){4}, 0, 32);
  put_data(&f, 32, 64);
  expect_fails(&f, "'a' comes twice");
  put_gguf_header(&f.bytes, 3, 2, 0);
  put_gguf_tensor(&f.bytes, "a", 1, (const uint64_t[]){12}, 0, 0);
  put_gguf_tensor(&f.bytes, "b", 1, (const uint64_t[]){4}, 0, 32);
  put_data(&f, 32, 64);
  expect_fails(&f, "'a' and 'b' share bytes");
  put_gguf_header(&f.bytes, 3, 2, 0);
  put_gguf_tensor(&f.bytes, "a", 1, (const uint64_t[]){4}, 0, 0);
  put_data(&f, 1, 3);
  expect_fails(&f, "more than fit into");
}

/* Cutting a sound file anywhere must fail cleanly. */
static void every_cut_is_an_error(void **state) {
  (void)state;
  file f = {0};
  put_gguf_header(&f.bytes, 3, 1, 14);
  put_values(&f);
  put_gguf_tensor(&f.bytes, "a", 2, (const uint64_t[]){32, 2}, 8, 0);
  put_data(&f, 32, 68);
  size_t size = f.bytes.size;
  assert_int_equal(parse(&f), STELE_OK);
  for (size_t cut = 0; cut < size; cut++) {
    f.bytes.size = cut;
    assert_true(parse(&f) != STELE_OK);
  }
  done(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_have_types),        cmocka_unit_test(strings_are_found),
      cmocka_unit_test(tensors_are_placed),       cmocka_unit_test(headers_are_checked),
      cmocka_unit_test(metadata_is_checked),      cmocka_unit_test(arrays_are_checked),
      cmocka_unit_test(alignment_is_checked),     cmocka_unit_test(tensors_are_checked),
      cmocka_unit_test(tensor_lists_are_checked), cmocka_unit_test(every_cut_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
