/* Packing: panels taken apart here by what layout.c draws hold exactly what the rows have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "drawing.h"
#include "table.h"
#include "weights/weights.h"

static uint64_t random_state = 7;
static uint8_t random_byte(void) {
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return (uint8_t)(z >> 40);
}

/* What a row's block of each scheme has: columns, bits of a number, then its scales, which a panel
 * keeps in this order: bytes of each unit, how many, where in the file. */
static const struct {
  uint32_t scheme, columns, bits;
  struct {
    uint32_t unit, count, at;
  } head[3];
} formats[] = {
    {STELE_Q8_0, 32, 8, {{2, 1, 0}}},
    {STELE_Q4_0, 32, 4, {{2, 1, 0}}},
    {STELE_Q4_1, 32, 4, {{2, 2, 0}}},
    {STELE_Q5_0, 32, 5, {{2, 1, 0}}},
    {STELE_Q5_1, 32, 5, {{2, 2, 0}}},
    {STELE_Q2_K, 256, 2, {{2, 2, 80}, {4, 4, 0}}},
    {STELE_Q3_K, 256, 3, {{2, 1, 108}, {4, 3, 96}}},
    {STELE_Q4_K, 256, 4, {{2, 2, 0}, {4, 3, 4}}},
    {STELE_Q5_K, 256, 5, {{2, 2, 0}, {4, 3, 4}}},
    {STELE_Q6_K, 256, 6, {{2, 1, 208}, {4, 4, 192}}},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* One row of a panel's block against the file's. */
static void check_block(uint32_t format, const uint8_t *packed, uint32_t lane,
                        const uint8_t *block) {
  const uint32_t columns = formats[format].columns, bits = formats[format].bits;
  uint8_t numbers[256];
  weights_numbers(formats[format].scheme, block, numbers);
  const uint8_t *at = packed;
  for (uint32_t m = 0; m < 3; m++)
    for (uint32_t i = 0; i < formats[format].head[m].count; i++) {
      uint32_t unit = formats[format].head[m].unit;
      assert_memory_equal(at + lane * unit, block + formats[format].head[m].at + i * unit, unit);
      at += unit * 16;
    }
  for (uint32_t k = 0; k < columns; k++)
    assert_int_equal(drawn_number(bits, at + k / 32 * bits * 64, lane, k % 32), numbers[k]);
}

static void check_number(uint32_t scheme, const uint8_t *packed, uint64_t k, uint32_t lane,
                         const uint8_t *row) {
  size_t bytes = scheme == STELE_F32 ? 4 : 2;
  assert_memory_equal(packed + (k * 16 + lane) * bytes, row + k * bytes, bytes);
}

/* A panel's rows; rows past the last one are zeros. */
static void check_row(uint32_t scheme, const uint8_t *panel, uint32_t lane, uint64_t columns,
                      const uint8_t *row) {
  for (uint32_t f = 0; f < FORMATS; f++) {
    if (formats[f].scheme != scheme) continue;
    size_t block = weights_scheme_get(scheme)->block_bytes;
    for (uint64_t b = 0; b < columns / formats[f].columns; b++)
      check_block(f, panel + b * block * 16, lane, row + b * block);
    return;
  }
  for (uint64_t k = 0; k < columns; k++) check_number(scheme, panel, k, lane, row);
}

static void check_pack(uint32_t scheme, uint64_t rows, uint64_t columns) {
  stele_sink sink = {{0}};
  uint32_t layout;
  uint64_t bytes, padded = (rows + 15) / 16 * 16;
  size_t row;
  assert_int_equal(cpu_target.layout(NULL, scheme, rows, columns, true, &sink, &layout, &bytes), 0);
  assert_true(weights_row_bytes(scheme, columns, &row));
  assert_int_equal(bytes, padded * row);
  uint8_t *source = calloc(padded, row), *packed = malloc(bytes);
  for (size_t i = 0; i < rows * row; i++) source[i] = random_byte();
  memset(packed, 0xa5, bytes);
  uint64_t half = rows / 2 / 16 * 16; /* in two pieces, the second first */
  assert_int_equal(cpu_target.pack(NULL, scheme, layout, rows, columns, half, rows - half,
                                   source + half * row, packed, &sink),
                   0);
  assert_int_equal(
      cpu_target.pack(NULL, scheme, layout, rows, columns, 0, half, source, packed, &sink), 0);
  for (uint64_t r = 0; r < padded; r++)
    check_row(scheme, packed + r / 16 * 16 * row, (uint32_t)(r % 16), columns, source + r * row);
  free(source);
  free(packed);
}

static void test_pack(void **state) {
  (void)state;
  static const uint64_t rows[] = {1, 15, 16, 17, 33, 64};
  static const uint64_t columns[] = {1, 5, 16, 20, 31, 33, 80};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    for (uint32_t scheme = STELE_F32; scheme <= STELE_BF16; scheme++)
      for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        check_pack(scheme, rows[r], columns[c]);
    for (uint32_t f = 0; f < FORMATS; f++)
      for (uint64_t blocks = 1; blocks < 5; blocks++)
        check_pack(formats[f].scheme, rows[r], blocks * formats[f].columns);
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
  refuses_layout(STELE_Q6_K, 16, 128);
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
