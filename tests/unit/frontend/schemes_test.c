/* Schemes: the table, sizes of rows, decoding to the last bit. */
#include <math.h>
#include <string.h>

#include "common.h"
#include "scheme_blocks.h"
#include "scheme_hashes.h"
#include "support/encode.h"
#include "weights/weights.h"

static void table_is_readable(void **state) {
  (void)state;
  uint32_t scheme;
  for (uint32_t i = 0; i < WEIGHTS_SCHEME_COUNT; i++) {
    const weights_scheme *s = weights_scheme_get(i);
    assert_true(weights_scheme_by_name(s->name, &scheme) && scheme == i);
    if (s->gguf_type >= 0)
      assert_true(weights_scheme_by_gguf_type((uint32_t)s->gguf_type, &scheme) && scheme == i);
  }
  assert_null(weights_scheme_get(WEIGHTS_SCHEME_COUNT));
  assert_false(weights_scheme_by_name("q8_k", &scheme));
  assert_false(weights_scheme_by_gguf_type(15, &scheme));
  assert_string_equal(weights_scheme_get(STELE_Q4_1)->name, "q4_1");
}

static void rows_have_sizes(void **state) {
  (void)state;
  size_t bytes = 7;
  assert_true(weights_row_bytes(STELE_Q4_0, 64, &bytes) && bytes == 36);
  assert_true(weights_row_bytes(STELE_BF16, 3, &bytes) && bytes == 6);
  assert_false(weights_row_bytes(STELE_Q8_0, 33, &bytes));
  assert_false(weights_row_bytes(STELE_Q4_K, 128, &bytes));
  assert_false(weights_row_bytes(STELE_F32, UINT64_MAX / 2, &bytes));
  assert_false(weights_row_bytes(99, 1, &bytes));
  assert_int_equal(bytes, 6);
}

/* Every block from an odd address too: nothing promises alignment. */
static void blocks_decode_exactly(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
    for (size_t shift = 0; shift < 2; shift++) {
      uint8_t moved[40];
      float out[32];
      memcpy(moved + shift, blocks[i].block, blocks[i].bytes);
      weights_decode(blocks[i].scheme, moved + shift, 32, out);
      assert_memory_equal(out, blocks[i].bits, sizeof out);
    }
}

/* splitmix64 (Steele, Lea, Flood 2014), the upper byte. */
static uint8_t random_byte(uint64_t counter) {
  uint64_t z = counter * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (uint8_t)((z ^ (z >> 31)) >> 56);
}

/* FNV-1a over words; one NaN is as good as another. */
static uint64_t hash_floats(uint64_t hash, const float *numbers, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t word = 0x7fc00000;
    if (!isnan(numbers[i])) memcpy(&word, &numbers[i], sizeof word);
    hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash;
}

/* Many blocks of any bytes, their scales among them, to the bit. */
static void random_blocks_decode_exactly(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++) {
    const weights_scheme *s = weights_scheme_get(hashes[i].scheme);
    uint64_t hash = 0xcbf29ce484222325u, counter = (uint64_t)s->gguf_type << 32;
    for (uint32_t b = 0; b < HASHED_BLOCKS; b++) {
      uint8_t block[256];
      float out[WEIGHTS_MAX_BLOCK];
      for (uint32_t j = 0; j < s->block_bytes; j++) block[j] = random_byte(++counter);
      weights_decode(hashes[i].scheme, block, s->block, out);
      hash = hash_floats(hash, out, s->block);
    }
    assert_true(hash == hashes[i].hash);
  }
}

/* All halves of both kinds, as base converts them. */
static void halves_are_those_of_base(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 65536; i++) {
    uint16_t half = (uint16_t)i;
    float f16, bf16, a = base_f16_to_f32(half), b = base_bf16_to_f32(half);
    weights_decode(STELE_F16, &half, 1, &f16);
    weights_decode(STELE_BF16, &half, 1, &bf16);
    assert_memory_equal(&f16, &a, sizeof a);
    assert_memory_equal(&bf16, &b, sizeof b);
  }
}

static void whole_numbers_and_floats(void **state) {
  (void)state;
  const int32_t whole[] = {-3, 0, 16777216};
  const float exact[] = {1.5f, -0.0f, 3e-41f};
  float out[3];
  weights_decode(STELE_I32, whole, 3, out);
  assert_true(out[0] == -3.0f && out[1] == 0.0f && out[2] == 16777216.0f);
  weights_decode(STELE_F32, exact, 3, out);
  assert_memory_equal(out, exact, sizeof out);
}

static float wave(int i) { return sinf((float)i * 0.7f) * (1.0f + (float)(i % 5)); }

/* What the test encoders write, decoding brings back within half a step of the block. */
static void encoding_comes_back(void **state) {
  (void)state;
  static const struct {
    uint32_t scheme;
    float steps; /* in a block's range of values */
  } cases[] = {{STELE_F32, 1e9f},   {STELE_F16, 2e3f},   {STELE_BF16, 250.0f}, {STELE_Q8_0, 250.0f},
               {STELE_Q4_0, 14.0f}, {STELE_Q4_1, 14.0f}, {STELE_Q5_0, 29.0f},  {STELE_Q5_1, 30.0f},
               {STELE_Q2_K, 3.0f},  {STELE_Q3_K, 6.0f},  {STELE_Q4_K, 15.0f},  {STELE_Q5_K, 31.0f},
               {STELE_Q6_K, 62.0f}};
  float in_numbers[256], out[256];
  for (int i = 0; i < 256; i++) in_numbers[i] = wave(i);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    base_buffer bytes = {0};
    size_t row;
    test_encode(cases[c].scheme, in_numbers, 256, &bytes);
    assert_true(weights_row_bytes(cases[c].scheme, 256, &row) && bytes.size == row);
    weights_decode(cases[c].scheme, bytes.data, 256, out);
    for (int i = 0; i < 256; i++)
      assert_true(fabsf(out[i] - in_numbers[i]) <= 10.0f / cases[c].steps);
    base_buffer_deinit(&bytes);
  }
}

static void zeros_stay_zeros(void **state) {
  (void)state;
  const float zeros[32] = {0};
  float out[32];
  for (uint32_t scheme = STELE_F32; scheme <= STELE_Q4_1; scheme++) {
    base_buffer bytes = {0};
    test_encode(scheme, zeros, 32, &bytes);
    weights_decode(scheme, bytes.data, 32, out);
    for (int i = 0; i < 32; i++) assert_true(out[i] == 0.0f);
    base_buffer_deinit(&bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(table_is_readable),        cmocka_unit_test(rows_have_sizes),
      cmocka_unit_test(blocks_decode_exactly),    cmocka_unit_test(halves_are_those_of_base),
      cmocka_unit_test(whole_numbers_and_floats), cmocka_unit_test(encoding_comes_back),
      cmocka_unit_test(zeros_stay_zeros),         cmocka_unit_test(random_blocks_decode_exactly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
