/* Wrappers around vec.h and its neighbours; TABLE names the table. With EMULATED the code of the
 * AVX-512 VNNI level runs anywhere: its two instructions are spelled out in plain C. */
#include "primitives.h"

#ifdef EMULATED
#include <immintrin.h>
#define __AVX512VNNI__ 1
typedef int32_t emulated_i __attribute__((vector_size(64)));
static inline __attribute__((always_inline)) emulated_i emulated_set1(int32_t x) {
  return x - (emulated_i){0};
}
/* a + the sum over each lane's 4 bytes of unsigned w times signed x */
static inline __attribute__((always_inline)) emulated_i emulated_dpbusd(emulated_i a, emulated_i w,
                                                                        emulated_i x) {
  for (int j = 0; j < 32; j += 8) a += (w >> j & 255) * (x << (24 - j) >> 24);
  return a;
}
#define __m512i emulated_i
#define _mm512_set1_epi32 emulated_set1
#define _mm512_dpbusd_epi32 emulated_dpbusd
#endif

#include "cpu/kernels/act.h"
#include "cpu/kernels/panel.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define LANEWISE(name, call) \
  static void name(float *x) { store_f(x, call); }
LANEWISE(do_exp, exp_f(load_f(x)))
LANEWISE(do_tanh, tanh_f(load_f(x)))
LANEWISE(do_silu, silu_f(load_f(x)))
LANEWISE(do_gelu_tanh, function_lanes(STELE_GELU_TANH, load_f(x)))
LANEWISE(do_gelu, function_lanes(STELE_GELU, load_f(x)))

static void do_from_f16(const uint16_t *h, float *x) { store_f(x, from_f16(load_h(h))); }
static void do_from_bf16(const uint16_t *h, float *x) { store_f(x, from_bf16(load_h(h))); }
static void do_to_f16(const float *x, uint16_t *h) {
  vh v = to_f16(load_f(x));
  __builtin_memcpy(h, &v, sizeof v);
}
static void do_to_bf16(const float *x, uint16_t *h) {
  vh v = to_bf16(load_f(x));
  __builtin_memcpy(h, &v, sizeof v);
}
static float do_sum(const float *x) { return sum_f(load_f(x)); }
static float do_largest(const float *x) { return largest_f(load_f(x)); }

static void do_dot_u(uint32_t bits, const uint8_t *w, const int8_t *x, int32_t *sums) {
  const int run = dot_u_run(bits, 8);
  vi total = {0};
  for (int begin = 0; begin < 8; begin += run) {
    dot_u dot = {0};
    for (int j = begin; j < begin + run; j++)
      dot = dot_u_add(dot, load_b(w + j * 64), load_i32(x + j * 4));
    total = dot_u_end(total, dot, splat_s(3));
  }
  __builtin_memcpy(sums, &total, sizeof total);
}
static void do_dot_s8(const int8_t *w, const int8_t *x, int32_t *sums) {
  int32_t sum = 0;
  for (int i = 0; i < 32; i++) sum += x[i];
  vi dot = splat_i(-DOT_S8_OFFSET * sum);
  for (int j = 0; j < 8; j++) dot = dot_s8_add(dot, load_b(w + j * 64), load_i32(x + j * 4));
  __builtin_memcpy(sums, &dot, sizeof dot);
}
static void do_unpack(uint32_t bits, const uint8_t *words, uint8_t *pieces) {
  vb all[GROUP_PIECES];
  for (int g = 0; g < GROUP_PIECES; g++) all[g] = unpack(bits, words, g);
  __builtin_memcpy(pieces, all, sizeof all);
}
static void do_quantise(const float *x, int8_t *q, float *d, float *s, int16_t *sums) {
  quantise_block(load_f(x), load_f(x + 16), q, d, s, sums);
}

const primitives JOIN(primitives_, TABLE) = {
    .exp = do_exp,
    .tanh = do_tanh,
    .silu = do_silu,
    .gelu_tanh = do_gelu_tanh,
    .gelu = do_gelu,
    .from_f16 = do_from_f16,
    .from_bf16 = do_from_bf16,
    .to_f16 = do_to_f16,
    .to_bf16 = do_to_bf16,
    .sum = do_sum,
    .largest = do_largest,
    .dot_u = do_dot_u,
    .dot_s8 = do_dot_s8,
    .unpack = do_unpack,
    .quantise = do_quantise,
};
