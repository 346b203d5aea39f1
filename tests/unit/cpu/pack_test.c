/* Packing: panels taken apart here by what layout.c draws hold exactly what the rows decode to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "table.h"
#include "weights/weights.h"

static uint64_t random_state = 7;
static uint8_t random_byte(void) {
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return (uint8_t)(z >> 40);
}

static float half_at(const uint8_t *p) {
  uint16_t h;
  memcpy(&h, p, sizeof h);
  return base_f16_to_f32(h);
}

/* Number (row, k) of a packed block matrix. */
static float block_number(uint32_t scheme, const uint8_t *panel, uint32_t lane, uint64_t k) {
  size_t bytes = scheme == STELE_Q8_0 ? 544 : scheme == STELE_Q4_0 ? 288 : 320;
  const uint8_t *b = panel + k / 32 * bytes;
  uint32_t i = (uint32_t)(k % 32);
  if (scheme == STELE_Q8_0) {
    float d = half_at(b + 512 + lane * 2);
    return d * (float)(int8_t)b[i / 4 * 64 + lane * 4 + i % 4];
  }
  float d = half_at(b + 256 + lane * 2);
  uint8_t byte = b[i % 16 / 4 * 64 + lane * 4 + i % 4];
  int nibble = i < 16 ? byte & 15 : byte >> 4;
  if (scheme == STELE_Q4_0) return d * (float)(nibble - 8);
  return d * (float)nibble + half_at(b + 288 + lane * 2);
}

static float packed_number(uint32_t scheme, const uint8_t *packed, uint64_t columns, uint64_t row,
                           uint64_t k) {
  uint32_t lane = (uint32_t)(row % 16);
  size_t bytes = scheme == STELE_F32 ? 4 : 2;
  if (scheme <= STELE_BF16) {
    const uint8_t *at = packed + (row / 16 * columns * 16 + k * 16 + lane) * bytes;
    float f;
    uint16_t h;
    memcpy(&f, at, bytes == 4 ? 4 : 0);
    memcpy(&h, at, 2);
    if (scheme == STELE_F32) {
      memcpy(&f, at, 4);
      return f;
    }
    return scheme == STELE_F16 ? base_f16_to_f32(h) : base_bf16_to_f32(h);
  }
  size_t block = scheme == STELE_Q8_0 ? 544 : scheme == STELE_Q4_0 ? 288 : 320;
  return block_number(scheme, packed + row / 16 * (columns / 32 * block), lane, k);
}

static bool same(float a, float b) { return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); }

static void check_pack(uint32_t scheme, uint64_t rows, uint64_t columns) {
  stele_sink sink = {{0}};
  uint32_t layout;
  uint64_t bytes;
  size_t row;
  assert_int_equal(cpu_target.layout(NULL, scheme, rows, columns, true, &sink, &layout, &bytes), 0);
  assert_true(weights_row_bytes(scheme, columns, &row));
  assert_int_equal(bytes, (rows + 15) / 16 * 16 * row);
  uint8_t *source = malloc(rows * row), *packed = malloc(bytes);
  float *expected = malloc(columns * sizeof *expected);
  for (size_t i = 0; i < rows * row; i++) source[i] = random_byte();
  memset(packed, 0xa5, bytes);
  uint64_t half = rows / 2 / 16 * 16; /* in two pieces, the second first */
  assert_int_equal(cpu_target.pack(NULL, scheme, layout, rows, columns, half, rows - half,
                                   source + half * row, packed, &sink),
                   0);
  assert_int_equal(
      cpu_target.pack(NULL, scheme, layout, rows, columns, 0, half, source, packed, &sink), 0);
  for (uint64_t r = 0; r < (rows + 15) / 16 * 16; r++) {
    memset(expected, 0, columns * sizeof *expected);
    if (r < rows) weights_decode(scheme, source + r * row, columns, expected);
    for (uint64_t k = 0; k < columns; k++) {
      float found = packed_number(scheme, packed, columns, r, k);
      if (r < rows)
        assert_true(same(found, expected[k]));
      else
        assert_true(found == 0);
    }
  }
  free(source);
  free(packed);
  free(expected);
}

static void test_pack(void **state) {
  (void)state;
  static const uint64_t rows[] = {1, 15, 16, 17, 33, 64};
  static const uint64_t columns[] = {1, 5, 16, 20, 31, 33, 80};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    for (uint32_t scheme = STELE_F32; scheme <= STELE_BF16; scheme++)
      for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        check_pack(scheme, rows[r], columns[c]);
    for (uint32_t scheme = STELE_Q8_0; scheme <= STELE_Q4_1; scheme++)
      for (uint64_t blocks = 1; blocks < 5; blocks++) check_pack(scheme, rows[r], blocks * 32);
  }
}

static void refuses_layout(uint32_t scheme, uint64_t rows, uint64_t columns) {
  stele_sink sink = {{0}};
  uint32_t layout = 77;
  uint64_t bytes = 77;
  assert_int_equal(cpu_target.layout(NULL, scheme, rows, columns, false, &sink, &layout, &bytes),
                   STELE_UNSUPPORTED);
  assert_true(sink.text[0] && layout == 77 && bytes == 77);
}

static void test_refusals(void **state) {
  (void)state;
  refuses_layout(STELE_Q8_0, 16, 33);
  refuses_layout(STELE_F32, 0, 16);
  refuses_layout(STELE_F32, 16, 0);
  refuses_layout(STELE_I32, 16, 16);
  refuses_layout(99, 16, 32);
  refuses_layout(STELE_F32, UINT64_MAX / 2, 32);
  stele_sink sink = {{0}};
  uint8_t source[64] = {0}, packed[64] = {0};
  /* a layout that is not known; rows that begin within a panel, end within one, do not exist */
  assert_int_not_equal(cpu_target.pack(NULL, STELE_F32, 0, 16, 1, 0, 16, source, packed, &sink), 0);
  assert_int_not_equal(cpu_target.pack(NULL, STELE_F32, 1, 32, 1, 8, 16, source, packed, &sink), 0);
  assert_int_not_equal(cpu_target.pack(NULL, STELE_F32, 1, 32, 1, 0, 8, source, packed, &sink), 0);
  assert_int_not_equal(cpu_target.pack(NULL, STELE_F32, 1, 16, 1, 0, 32, source, packed, &sink), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pack), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
