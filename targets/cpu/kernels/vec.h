/* Vectors of 16 lanes, the same source for every instruction set: clang splits them into what the
 * processor has (one AVX-512 register, two of AVX2, four of SSE). Only the primitives below differ.
 *
 * Float arithmetic is never contracted or reordered by the compiler (-ffp-contract=off, no fast
 * math), so results depend on the instruction-set level alone, never on how a loop was unrolled. */
#ifndef CPU_VEC_H
#define CPU_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define LANES 16

/* Loops are left as they are unless they say so: the emitter turns other unrolling off. */
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_BY_4 _Pragma("clang loop unroll_count(4)")

typedef float vf __attribute__((vector_size(64)));   /* 16 floats */
typedef int32_t vi __attribute__((vector_size(64))); /* 16 integers, or masks of lanes */
typedef uint32_t vu __attribute__((vector_size(64)));
typedef int8_t vb __attribute__((vector_size(64))); /* 64 bytes: 4 of each of 16 rows */
typedef int16_t vs __attribute__((vector_size(64)));
typedef uint16_t vus __attribute__((vector_size(64)));
typedef uint16_t vh __attribute__((vector_size(32))); /* 16 half floats, as bits */

INLINE float as_float(uint32_t bits) {
  float f;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}
INLINE vf splat(float x) { return x - (vf){0}; }
INLINE vi splat_i(int32_t x) { return x - (vi){0}; }
INLINE vs splat_s(int16_t x) { return x - (vs){0}; }
INLINE vf select_f(vi mask, vf a, vf b) { return (vf)(((vi)a & mask) | ((vi)b & ~mask)); }
INLINE vf max_f(vf a, vf b) { return select_f(a > b, a, b); }
INLINE vf abs_f(vf a) { return (vf)((vi)a & 0x7fffffff); }

INLINE vf load_f(const void *p) {
  vf v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
INLINE void store_f(void *p, vf v) { __builtin_memcpy(p, &v, sizeof v); }
INLINE vb load_b(const void *p) {
  vb v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
INLINE vh load_h(const void *p) {
  vh v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
INLINE vi load_i(const void *p) {
  vi v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
/* The first count lanes; the others are zero, and their memory is not touched. */
INLINE vf load_f_part(const void *p, uint32_t count) {
  vf v = {0};
  __builtin_memcpy(&v, p, count * sizeof(float));
  return v;
}
INLINE vh load_h_part(const void *p, uint32_t count) {
  vh v = {0};
  __builtin_memcpy(&v, p, count * sizeof(uint16_t));
  return v;
}
INLINE void store_f_part(void *p, vf v, uint32_t count) {
  __builtin_memcpy(p, &v, count * sizeof(float));
}
INLINE int32_t load_i32(const void *p) {
  int32_t v;
  __builtin_memcpy(&v, p, 4);
  return v;
}
INLINE int32_t load_i16(const void *p) {
  int16_t v;
  __builtin_memcpy(&v, p, 2);
  return v;
}
INLINE float load_f32(const void *p) {
  float v;
  __builtin_memcpy(&v, p, 4);
  return v;
}

INLINE void prefetch(const void *p) { __builtin_prefetch(p, 0, 3); }

/* a * b + c; rounded once where the processor can. */
INLINE vf fma_f(vf a, vf b, vf c) {
#if defined(__FMA__)
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}
INLINE float fma_1(float a, float b, float c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

INLINE vf to_float(vi v) { return __builtin_convertvector(v, vf); }

/* To the nearest integer, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves the integer in
 * the low bits of the sum. */
#define ROUND_MAGIC 0x1.8p23f
INLINE vi round_i(vf x) { return (vi)(x + ROUND_MAGIC) - 0x4b400000; }

/* ---- reductions, always in the same order: halves, quarters, ... --------------------------- */

#define REDUCE(name, type, op)                                          \
  INLINE type name(vf v) {                                              \
    typedef float v8 __attribute__((vector_size(32)));                  \
    typedef float v4 __attribute__((vector_size(16)));                  \
    v8 a = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);       \
    v8 b = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15); \
    a = op(v8, a, b);                                                   \
    v4 c = __builtin_shufflevector(a, a, 0, 1, 2, 3);                   \
    v4 d = __builtin_shufflevector(a, a, 4, 5, 6, 7);                   \
    c = op(v4, c, d);                                                   \
    c = op(v4, c, __builtin_shufflevector(c, c, 2, 3, 2, 3));           \
    c = op(v4, c, __builtin_shufflevector(c, c, 1, 1, 1, 1));           \
    return c[0];                                                        \
  }
#define REDUCE_ADD(type, a, b) ((a) + (b))
#define REDUCE_MAX(type, a, b) __builtin_elementwise_max(a, b)
REDUCE(sum_f, float, REDUCE_ADD)
REDUCE(largest_f, float, REDUCE_MAX)
#undef REDUCE
#undef REDUCE_ADD
#undef REDUCE_MAX

/* ---- half floats --------------------------------------------------------------------------- */

INLINE vf from_bf16(vh h) { return (vf)(__builtin_convertvector(h, vu) << 16); }

/* Rounds to nearest even; NaN stays NaN. */
INLINE vh to_bf16(vf x) {
  vu bits = (vu)x;
  vu rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  vu nan = (bits >> 16) | 0x40;
  vu is_nan = (vu)(x != x);
  return __builtin_convertvector((nan & is_nan) | (rounded & ~is_nan), vh);
}

#if defined(__F16C__)
typedef _Float16 vh16 __attribute__((vector_size(32)));
INLINE vf from_f16(vh h) { return __builtin_convertvector((vh16)h, vf); }
INLINE vh to_f16(vf x) { return (vh) __builtin_convertvector(x, vh16); }
#else
/* By bits, without relying on subnormal arithmetic (which a host may have switched off). */
INLINE vf from_f16(vh h) {
  vu u = __builtin_convertvector(h, vu), sign = (u & 0x8000) << 16, magnitude = u & 0x7fff;
  vu normal = (magnitude << 13) + (112u << 23);
  vu special = (magnitude << 13) | 0x7f800000;
  vf tiny = (vf)(magnitude | 0x3f000000) - 0.5f; /* magnitude * 2^-24 */
  vu is_special = (vu)(magnitude > 0x7bff), is_tiny = (vu)(magnitude < 0x400);
  vu value = (normal & ~is_special) | (special & is_special);
  value = (value & ~is_tiny) | ((vu)tiny & is_tiny);
  return (vf)(value | sign);
}
INLINE vh to_f16(vf x) {
  vu bits = (vu)x, sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  vu normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  vu tiny = (vu)((vf)magnitude + 0.5f) - 0x3f000000; /* in units of 2^-24 */
  vu nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
  vu is_tiny = (vu)(magnitude < 0x38800000), is_big = (vu)(magnitude >= 0x477ff000);
  vu is_nan = (vu)(magnitude > 0x7f800000);
  vu value = (normal & ~is_tiny) | (tiny & is_tiny);
  value = (value & ~is_big) | (0x7c00 & is_big);
  value = (value & ~is_nan) | (nan & is_nan);
  return __builtin_convertvector(value | sign, vh);
}
#endif

/* ---- dot products of 4 bytes per lane ------------------------------------------------------ */

/* Byte `which` (0 or 1) of each lane as both halves of the lane, and these two as one half each. */
#define EACH_LANE(F, i)                                                                       \
  F(i), F(i + 4), F(i + 8), F(i + 12), F(i + 16), F(i + 20), F(i + 24), F(i + 28), F(i + 32), \
      F(i + 36), F(i + 40), F(i + 44), F(i + 48), F(i + 52), F(i + 56), F(i + 60)
#define BYTE_TWICE(i) i, 64, i, 64
#define BYTE_TWICE_HIGH(i) 64, i, 64, i
#define TWO_BYTES(i) i, 64, i + 1, 64
#define TWO_BYTES_HIGH(i) 64, i, 64, i + 1
INLINE vs byte_twice(vi w, int which, bool has_sign) {
  vb b = (vb)w, zero = {0};
  vb low = which ? __builtin_shufflevector(b, zero, EACH_LANE(BYTE_TWICE, 1))
                 : __builtin_shufflevector(b, zero, EACH_LANE(BYTE_TWICE, 0));
  vb high = which ? __builtin_shufflevector(b, zero, EACH_LANE(BYTE_TWICE_HIGH, 1))
                  : __builtin_shufflevector(b, zero, EACH_LANE(BYTE_TWICE_HIGH, 0));
  return has_sign ? (vs)high >> 8 : (vs)low;
}
INLINE vs two_bytes(vi w, bool has_sign) {
  vb b = (vb)w, zero = {0};
  vb low = __builtin_shufflevector(b, zero, EACH_LANE(TWO_BYTES, 0));
  vb high = __builtin_shufflevector(b, zero, EACH_LANE(TWO_BYTES_HIGH, 0));
  return has_sign ? (vs)high >> 8 : (vs)low;
}

#if defined(__AVX2__)
INLINE __m256i low_half(vb v) {
  return (__m256i)__builtin_shufflevector((vi)v, (vi)v, 0, 1, 2, 3, 4, 5, 6, 7);
}
INLINE __m256i high_half(vb v) {
  return (__m256i)__builtin_shufflevector((vi)v, (vi)v, 8, 9, 10, 11, 12, 13, 14, 15);
}
INLINE vb join_halves(__m256i low, __m256i high) {
  typedef int32_t v8 __attribute__((vector_size(32)));
  return (vb)__builtin_shufflevector((v8)low, (v8)high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
                                     13, 14, 15);
}
#endif

/* vpdpbusd: a + 4 unsigned bytes times 4 signed ones per lane; vpdpwssd: the same of two pairs of
 * 16 bits. AVX-512 has them for 64 bytes, AVX-VNNI for 32. */
#if defined(__AVX512VNNI__)
#define HAS_VNNI 1
INLINE vi dpbusd(vi a, vb w, int32_t x) {
  return (vi)_mm512_dpbusd_epi32((__m512i)a, (__m512i)w, _mm512_set1_epi32(x));
}
INLINE vi dpwssd(vi a, vs w, int32_t x) {
  return (vi)_mm512_dpwssd_epi32((__m512i)a, (__m512i)w, _mm512_set1_epi32(x));
}
#elif defined(__AVXVNNI__)
#define HAS_VNNI 1
INLINE vi dpbusd(vi a, vb w, int32_t x) {
  __m256i xs = _mm256_set1_epi32(x);
  return (vi)join_halves(_mm256_dpbusd_avx_epi32(low_half((vb)a), low_half(w), xs),
                         _mm256_dpbusd_avx_epi32(high_half((vb)a), high_half(w), xs));
}
INLINE vi dpwssd(vi a, vs w, int32_t x) {
  __m256i xs = _mm256_set1_epi32(x);
  return (vi)join_halves(_mm256_dpwssd_avx_epi32(low_half((vb)a), low_half((vb)w), xs),
                         _mm256_dpwssd_avx_epi32(high_half((vb)a), high_half((vb)w), xs));
}
#endif

/* dot_u: rows of 4 unsigned numbers of 2 to 6 bits times the 4 signed bytes of x, summed over at
 * most dot_u_run(bits, n) <= n calls, then multiplied by a factor that both halves of a lane have.
 * dot_s8: rows of 4 signed bytes times the same, over any number of calls, where DOT_S8_OFFSET
 * times the sum of x is missing. No byte of x is -128. All sums are exact. */
#if defined(HAS_VNNI)

typedef vi dot_u;
INLINE int dot_u_run(uint32_t bits, int n) { return bits ? n : 0; }
INLINE dot_u dot_u_add(dot_u a, vb w, int32_t x) { return dpbusd(a, w, x); }
INLINE vi dot_u_end(vi total, dot_u a, vs factor) { return total + a * ((vi)factor >> 16); }

/* The instruction takes unsigned times signed bytes: w + 128 is what it gets. */
#define DOT_S8_OFFSET 128
INLINE vi dot_s8_add(vi a, vb w, int32_t x) { return dpbusd(a, w ^ (int8_t)-128, x); }
#elif defined(__AVX2__)

/* Two 16-bit sums per row, each of 2 products a call: 8 * 2 * 15 * 127 = 30480 for 4 bits, 4 * 2 *
 * 31 * 127 = 31496 for 5, 2 * 2 * 63 * 127 = 32004 for 6, all below 2^15. */
typedef vs dot_u;
INLINE int dot_u_run(uint32_t bits, int n) {
  const int most = bits == 6 ? 2 : bits == 5 ? 4 : 8;
  return most < n ? most : n;
}
INLINE dot_u dot_u_add(dot_u a, vb w, int32_t x) {
  __m256i xs = _mm256_set1_epi32(x);
  return a + (vs)join_halves(_mm256_maddubs_epi16(low_half(w), xs),
                             _mm256_maddubs_epi16(high_half(w), xs));
}
INLINE vi dot_u_end(vi total, dot_u a, vs factor) {
  return total + (vi)join_halves(_mm256_madd_epi16(low_half((vb)a), low_half((vb)factor)),
                                 _mm256_madd_epi16(high_half((vb)a), high_half((vb)factor)));
}

/* |w| times x with w's sign: 2 * 128 * 127 = 32512 < 32768, so pairs fit 16 bits. */
#define DOT_S8_OFFSET 0
INLINE __m256i dot_s8_half(__m256i w, __m256i xs) {
  __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(xs, w));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
INLINE vi dot_s8_add(vi a, vb w, int32_t x) {
  __m256i xs = _mm256_set1_epi32(x);
  return a + (vi)join_halves(dot_s8_half(low_half(w), xs), dot_s8_half(high_half(w), xs));
}
#else

/* Sums of two 16-bit products per lane. */
INLINE vi madd_pairs(vs a, vs b) {
#if defined(__SSE2__)
  vi sum;
  __m128i part[4], in[2][4];
  __builtin_memcpy(in[0], &a, 64);
  __builtin_memcpy(in[1], &b, 64);
  UNROLL
  for (int i = 0; i < 4; i++) part[i] = _mm_madd_epi16(in[0][i], in[1][i]);
  __builtin_memcpy(&sum, part, 64);
  return sum;
#else
  vi even = ((vi)a << 16 >> 16) * ((vi)b << 16 >> 16);
  return even + ((vi)a >> 16) * ((vi)b >> 16);
#endif
}

/* Bytes 0 and 2 of each row as 16-bit numbers, then bytes 1 and 3. */
INLINE vi madd_bytes(vb w, int32_t x) {
  vs ws = (vs)w, xs = (vs)splat_i(x);
  return madd_pairs(ws << 8 >> 8, xs << 8 >> 8) + madd_pairs(ws >> 8, xs >> 8);
}

typedef vi dot_u;
INLINE int dot_u_run(uint32_t bits, int n) { return bits ? n : 0; }
INLINE dot_u dot_u_add(dot_u a, vb w, int32_t x) { return a + madd_bytes(w, x); }
INLINE vi dot_u_end(vi total, dot_u a, vs factor) { return total + a * ((vi)factor >> 16); }

#define DOT_S8_OFFSET 0
INLINE vi dot_s8_add(vi a, vb w, int32_t x) { return a + madd_bytes(w, x); }
#endif

/* a + the sums of two products of 16 bits per lane. */
INLINE vi madd_16(vi a, vs w, int32_t x) {
#if defined(HAS_VNNI)
  return dpwssd(a, w, x);
#elif defined(__AVX2__)
  __m256i xs = _mm256_set1_epi32(x);
  return a + (vi)join_halves(_mm256_madd_epi16(low_half((vb)w), xs),
                             _mm256_madd_epi16(high_half((vb)w), xs));
#else
  return a + madd_pairs(w, (vs)splat_i(x));
#endif
}

/* ---- functions ----------------------------------------------------------------------------- */

/* e^x within 2 units in the last place; 0 below -103.97, infinity above 88.72; NaN stays NaN.
 * x = n ln 2 + r, |r| <= ln 2 / 2 (Cody and Waite's two-part reduction); e^r by the Taylor
 * polynomial of degree 7, whose remainder is below 6e-9; the scale 2^n in two factors, so that
 * subnormal results are right as well. */
INLINE vf exp_f(vf x) {
  vi below = x < -104.0f, above = x > 88.8f; /* clamped so that n fits; both ends are then exact */
  x = select_f(below, splat(-104.0f), select_f(above, splat(88.8f), x));
  vf shifted = fma_f(x, splat(0x1.715476p0f), splat(ROUND_MAGIC));
  vf n = shifted - ROUND_MAGIC;
  vi k = (vi)shifted - 0x4b400000;
  vf r = x - n * 0x1.62e4p-1f; /* exact: the constant has 13 bits and n at most 8 */
  r = fma_f(n, splat(-0x1.7f7d1cp-20f), r);
  vf p = splat(0x1.a01a02p-13f);
  p = fma_f(p, r, splat(0x1.6c16c2p-10f));
  p = fma_f(p, r, splat(0x1.111112p-7f));
  p = fma_f(p, r, splat(0x1.555556p-5f));
  p = fma_f(p, r, splat(0x1.555556p-3f));
  p = fma_f(p, r, splat(0.5f));
  p = fma_f(p * r, r, r) + 1.0f;
  vi half = k >> 1;
  p = p * (vf)((half + 127) << 23) * (vf)((k - half + 127) << 23);
  return p;
}

INLINE vf silu_f(vf x) { return x / (1.0f + exp_f(-x)); }

/* 1 - 2 / (e^2x + 1), from the series x - x^3/3 + ... where that would cancel. */
INLINE vf tanh_f(vf x) {
  vf big = 1.0f - 2.0f / (exp_f(2.0f * x) + 1.0f);
  vf y = x * x;
  vf p = splat(0x1.664f48p-6f); /* 62/2835 */
  p = fma_f(p, y, splat(-0x1.ba1ba2p-5f));
  p = fma_f(p, y, splat(0x1.111112p-3f));
  p = fma_f(p, y, splat(-0x1.555556p-2f));
  vf small = fma_f(p * y, x, x);
  return select_f(abs_f(x) < 0.25f, small, big);
}

#endif
