/* 16-bit floats, all 65536 of each, against arithmetic: the value from its fields; the rounding of
 * a float32 by looking for the nearest of all. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <string.h>

#include "base/base.h"

static double value_of(uint16_t bits, int exponent_bits, int mantissa_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  int exponent = bits >> mantissa_bits & top, mantissa = bits & ((1 << mantissa_bits) - 1);
  double sign = bits >> 15 ? -1 : 1;
  if (exponent == top) return mantissa ? (double)NAN : sign * (double)INFINITY;
  if (!exponent) return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

static uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static void every_half_and_back(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 65536; i++) {
    uint16_t h = (uint16_t)i;
    float f = base_f16_to_f32(h), b = base_bf16_to_f32(h);
    double vf = value_of(h, 5, 10), vb = value_of(h, 8, 7);
    if (isnan(vf)) {
      assert_true(isnan(f) && isnan(base_f16_to_f32(base_f32_to_f16(f))));
    } else {
      assert_true((double)f == vf && !signbit(f) == !(h >> 15));
      assert_int_equal(base_f32_to_f16(f), h);
    }
    if (isnan(vb)) {
      assert_true(isnan(b) && isnan(base_bf16_to_f32(base_f32_to_bf16(b))));
    } else {
      assert_true((double)b == vb);
      assert_int_equal(base_f32_to_bf16(b), h);
    }
  }
}

/* Between two neighbours: the nearer one, at the middle the even one. */
static void rounds_to_the_nearest_even(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 0x7c00; i++) {
    double low = value_of((uint16_t)i, 5, 10);
    double high = i == 0x7bff ? 65536 : value_of((uint16_t)(i + 1), 5, 10);
    float middle = (float)((low + high) / 2);
    uint16_t even = (uint16_t)(i + (i & 1));
    assert_int_equal(base_f32_to_f16(middle), even);
    assert_int_equal(base_f32_to_f16(-middle), even | 0x8000);
    assert_int_equal(base_f32_to_f16(nextafterf(middle, 0)), i);
    assert_int_equal(base_f32_to_f16(nextafterf(middle, INFINITY)), i + 1);
  }
  for (uint32_t i = 0; i < 0x7f80; i++) {
    uint32_t u = i << 16 | 0x8000;
    float middle;
    memcpy(&middle, &u, 4);
    assert_int_equal(base_f32_to_bf16(middle), i + (i & 1));
    assert_int_equal(base_f32_to_bf16(nextafterf(middle, 0)), i);
    assert_int_equal(base_f32_to_bf16(nextafterf(middle, INFINITY)), i + 1);
  }
}

static void the_ends(void **state) {
  (void)state;
  assert_int_equal(base_f32_to_f16(1e30f), 0x7c00);
  assert_int_equal(base_f32_to_f16(-INFINITY), 0xfc00);
  assert_int_equal(base_f32_to_f16(65519.0f), 0x7bff);
  assert_int_equal(base_f32_to_f16(65520.0f), 0x7c00);
  assert_int_equal(base_f32_to_f16(1e-30f), 0);
  assert_int_equal(base_f32_to_f16(-0.0f), 0x8000);
  assert_int_equal(base_f32_to_f16(0x1p-149f), 0);
  assert_int_equal(bits_of(base_bf16_to_f32(base_f32_to_bf16(INFINITY))), 0x7f800000);
  assert_int_equal(base_f32_to_bf16(3.4e38f), 0x7f80);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_half_and_back),
      cmocka_unit_test(rounds_to_the_nearest_even),
      cmocka_unit_test(the_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
