/* The kernels' primitives at every level that this machine runs, against libm, the base library's
 * half floats and integer arithmetic. AVX-VNNI is emulated where it is missing, and the AVX-512
 * level runs with its instructions in plain C as well. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"

#include "base/base.h"
#include "drawing.h"
#include "emulate.h"
#include "primitives.h"
#include "stele/artifact.h"

#define LANES 16

/* Instructions may be emulated; a test framework handles their signal too, so each test begins with
 * this. */
static const primitives *begin(void **state) {
  emulate_install();
  return *state;
}

static float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* ---- functions ------------------------------------------------------------------------- */

/* |found - exact| in units of the last place of exact as a float32. */
static double ulps(float found, double exact) {
  float rounded = (float)exact;
  if (rounded == found) return 0;
  double unit = ldexp(1, (exact == 0 ? -126 : (int)fmax(ilogb(exact), -126)) - 23);
  return fabs((double)found - exact) / unit;
}

/* The worst of f over count numbers evenly spread over [low, high]. */
static double worst(void (*f)(float *), double (*exact)(double), float low, float high, int count) {
  double worst = 0;
  for (int i = 0; i < count; i += LANES) {
    float x[LANES], y[LANES];
    for (int j = 0; j < LANES; j++) x[j] = low + (high - low) * (float)(i + j) / (float)count;
    memcpy(y, x, sizeof x);
    f(y);
    for (int j = 0; j < LANES; j++) {
      double u = ulps(y[j], exact((double)x[j]));
      if (u > worst) worst = u;
    }
  }
  return worst;
}

static double exact_silu(double x) { return x / (1 + exp(-x)); }
static double exact_gelu(double x) { return 0.5 * x * (1 + erf(x * 0.70710678118654752440)); }
static double exact_gelu_tanh(double x) {
  return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static void test_exp(void **state) {
  const primitives *p = begin(state);
  assert_true(worst(p->exp, exp, -87, 88.7f, 1 << 20) < 2);
  assert_true(worst(p->exp, exp, -1, 1, 1 << 20) < 2);
  float x[LANES] = {0,      -0.0f, INFINITY, -INFINITY, NAN, 89,       88.73f, -104,
                    -1e30f, 1e30f, -103.9f,  -100,      -95, 0x1p-30f, -3e38f, 3e38f};
  float y[LANES];
  memcpy(y, x, sizeof x);
  p->exp(y);
  for (int i = 0; i < LANES; i++) {
    if (isnan(x[i])) {
      assert_true(isnan(y[i]));
      continue;
    }
    float exact = (float)exp((double)x[i]);
    if (isinf(exact) || exact < 0x1p-126f) /* subnormals: within a step */
      assert_true(exact == y[i] || fabsf(exact - y[i]) <= 0x1p-149f);
  }
  assert_true(y[0] == 1 && y[1] == 1 && y[3] == 0);
}

/* Absolute, as these are added to and multiplied with numbers of their own size. */
static void check_near(void (*f)(float *), double (*exact)(double), double tolerance) {
  for (int i = -(1 << 16); i < 1 << 16; i += LANES) {
    float x[LANES], y[LANES];
    for (int j = 0; j < LANES; j++) x[j] = (float)(i + j) * 0x1p-12f;
    memcpy(y, x, sizeof x);
    f(y);
    for (int j = 0; j < LANES; j++) {
      double e = exact((double)x[j]);
      assert_true(fabs((double)y[j] - e) <= tolerance * fmax(1, fabs(e)));
    }
  }
}

static void test_activations(void **state) {
  const primitives *p = begin(state);
  assert_true(worst(p->tanh, tanh, -0.249f, 0.249f, 1 << 18) < 2);
  assert_true(worst(p->tanh, tanh, 0.25f, 20, 1 << 18) < 5);
  check_near(p->tanh, tanh, 3e-7);
  check_near(p->silu, exact_silu, 3e-7);
  check_near(p->gelu, exact_gelu, 3e-7);
  check_near(p->gelu_tanh, exact_gelu_tanh, 5e-7);
  float far[LANES] = {-200, 200, -1e30f, 1e30f};
  p->silu(far);
  assert_true(far[0] == 0 && far[1] == 200 && far[2] == 0 && far[3] == 1e30f);
}

static void test_reductions(void **state) {
  const primitives *p = begin(state);
  float x[LANES];
  for (int i = 0; i < LANES; i++) x[i] = (float)(i * i) - 40;
  assert_true(p->sum(x) == 1240 - 640);
  assert_true(p->largest(x) == 185);
  for (int i = 0; i < LANES; i++) {
    for (int j = 0; j < LANES; j++) x[j] = i == j ? -1 : -INFINITY;
    assert_true(p->largest(x) == -1);
  }
}

/* ---- half floats ----------------------------------------------------------------------- */

static bool same(float a, float b) { return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b)); }

static void test_from_half(void **state) {
  const primitives *p = begin(state);
  for (uint32_t h = 0; h < 65536; h += LANES) {
    uint16_t in[LANES];
    float f16[LANES], bf16[LANES];
    for (uint32_t j = 0; j < LANES; j++) in[j] = (uint16_t)(h + j);
    p->from_f16(in, f16);
    p->from_bf16(in, bf16);
    for (uint32_t j = 0; j < LANES; j++) {
      assert_true(same(f16[j], base_f16_to_f32(in[j])));
      assert_true(same(bf16[j], base_bf16_to_f32(in[j])));
    }
  }
}

static void check_to_half(const primitives *p, const float *x) {
  uint16_t f16[LANES], bf16[LANES];
  p->to_f16(x, f16);
  p->to_bf16(x, bf16);
  for (int j = 0; j < LANES; j++) {
    if (isnan(x[j])) {
      assert_true(isnan(base_f16_to_f32(f16[j])) && isnan(base_bf16_to_f32(bf16[j])));
      continue;
    }
    assert_int_equal(f16[j], base_f32_to_f16(x[j]));
    assert_int_equal(bf16[j], base_f32_to_bf16(x[j]));
  }
}

/* Every half, what lies between it and the next, and a step to either side of that. */
static void test_to_half(void **state) {
  const primitives *p = begin(state);
  for (uint32_t h = 0; h < 65536; h += 4) {
    float x[LANES];
    for (uint32_t j = 0; j < 4; j++) {
      uint32_t here = bits_of(base_f16_to_f32((uint16_t)(h + j)));
      float next = base_f16_to_f32((uint16_t)(h + j + 1));
      float middle = (float_of(here) + next) * 0.5f;
      x[j * 4] = float_of(here);
      x[j * 4 + 1] = middle;
      x[j * 4 + 2] = nextafterf(middle, 0);
      x[j * 4 + 3] = nextafterf(middle, INFINITY);
    }
    check_to_half(p, x);
  }
  for (int i = 0; i < 1 << 16; i++) {
    float x[LANES];
    for (int j = 0; j < LANES; j++) x[j] = float_of(random_bits());
    check_to_half(p, x);
  }
}

/* ---- products of bytes ----------------------------------------------------------------- */

static void check_dot_u(const primitives *p, uint32_t bits, const int8_t *w, const int8_t *x) {
  uint8_t numbers[8 * 64];
  int32_t found[LANES];
  for (int i = 0; i < 8 * 64; i++) numbers[i] = (uint8_t)(w[i] & ((1 << bits) - 1));
  for (int row = 0; row < LANES; row++) found[row] = -1;
  p->dot_u(bits, numbers, x, found); /* three times */
  for (int row = 0; row < LANES; row++) {
    int32_t sum = 0;
    for (int k = 0; k < 32; k++) sum += numbers[k / 4 * 64 + row * 4 + k % 4] * x[k];
    assert_int_equal(found[row], 3 * sum);
  }
}

static void check_dots(const primitives *p, const int8_t *w, const int8_t *x) {
  int32_t found[LANES];
  for (uint32_t bits = 2; bits <= 6; bits++) check_dot_u(p, bits, w, x);
  p->dot_s8(w, x, found);
  for (int row = 0; row < LANES; row++) {
    int32_t sum = 0;
    for (int k = 0; k < 32; k++) sum += w[k / 4 * 64 + row * 4 + k % 4] * x[k];
    assert_int_equal(found[row], sum);
  }
}

/* Random bytes, and the extremes, where sums of 16 bits would overflow first. Activations are
 * never -128; weights may be. */
static void test_dots(void **state) {
  const primitives *p = begin(state);
  int8_t w[8 * 64], x[32];
  for (int round = 0; round < 2000; round++) {
    for (int i = 0; i < 8 * 64; i++) w[i] = (int8_t)random_bits();
    for (int i = 0; i < 32; i++) x[i] = (int8_t)((int)(random_bits() % 255) - 127);
    check_dots(p, w, x);
  }
  static const int8_t extremes[] = {-128, -127, -1, 0, 15, 127};
  for (size_t a = 0; a < sizeof extremes; a++)
    for (size_t b = 1; b < sizeof extremes; b++) {
      memset(w, extremes[a], sizeof w);
      memset(x, extremes[b], sizeof x);
      check_dots(p, w, x);
    }
}

static void test_unpack(void **state) {
  const primitives *p = begin(state);
  static const uint32_t widths[] = {2, 3, 4, 5, 6, 8};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    for (int round = 0; round < 100; round++) {
      uint8_t words[8 * 64], pieces[8 * 64];
      for (size_t j = 0; j < sizeof words; j++) words[j] = (uint8_t)random_bits();
      p->unpack(widths[i], words, pieces);
      for (uint32_t row = 0; row < LANES; row++)
        for (uint32_t k = 0; k < 32; k++)
          assert_int_equal(pieces[k / 4 * 64 + row * 4 + k % 4],
                           drawn_number(widths[i], words, row, k));
    }
}

static void check_quantised(const primitives *p, const float *x) {
  int8_t q[32];
  float d, s, largest = 0;
  int16_t sums[2];
  int sum[2] = {0};
  p->quantise(x, q, &d, &s, sums);
  for (int i = 0; i < 32; i++) largest = fmaxf(largest, fabsf(x[i]));
  assert_true(d == largest / 127);
  for (int i = 0; i < 32; i++) {
    assert_int_equal(q[i], d == 0 ? 0 : (int)nearbyintf(x[i] / d));
    sum[i / 16] += q[i];
  }
  assert_true(sums[0] == sum[0] && sums[1] == sum[1]);
  assert_true(s == d * (float)(sum[0] + sum[1]));
}

static void test_quantise(void **state) {
  const primitives *p = begin(state);
  float x[32] = {0};
  check_quantised(p, x);
  for (int round = 0; round < 5000; round++) {
    float scale = ldexpf(1, (int)(random_bits() % 60) - 30);
    for (int i = 0; i < 32; i++) x[i] = ((float)(int32_t)random_bits()) * 0x1p-31f * scale;
    check_quantised(p, x);
  }
  for (int i = 0; i < 32; i++) x[i] = (float)i - 15.5f; /* ties: 127 steps over 15.5 */
  check_quantised(p, x);
  for (int i = 0; i < 32; i++) x[i] = i == 7 ? 127 : (float)i + 0.5f;
  check_quantised(p, x);
}

/* ---- levels ---------------------------------------------------------------------------- */

static int run(const char *level, const primitives *p) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_exp, (void *)p),
      cmocka_unit_test_prestate(test_activations, (void *)p),
      cmocka_unit_test_prestate(test_reductions, (void *)p),
      cmocka_unit_test_prestate(test_from_half, (void *)p),
      cmocka_unit_test_prestate(test_to_half, (void *)p),
      cmocka_unit_test_prestate(test_dots, (void *)p),
      cmocka_unit_test_prestate(test_unpack, (void *)p),
      cmocka_unit_test_prestate(test_quantise, (void *)p),
  };
  return cmocka_run_group_tests_name(level, tests, NULL, NULL);
}

int main(void) {
  const uint64_t here = base_machine_features() | emulate_install();
  int failed = run("emulated", &primitives_emulated);
#define LEVEL(id, name, processor, further, needs) \
  if (!((needs) & ~here)) failed += run(name, &primitives_##id);
#define ALIAS(...)
#include "cpu/levels.def"
  return failed;
}
