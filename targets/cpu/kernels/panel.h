/* The inner loops: a panel of 16 packed rows times a few tokens.
 *
 * Every (row, token) has one accumulator and adds in the order of the columns (float products) or
 * of the blocks (integer products: the sum within a block is exact), whatever the number of tokens
 * at once, so a token's result does not depend on its neighbours.
 * The layouts are drawn in ../layout.c. */
#ifndef CPU_PANEL_H
#define CPU_PANEL_H

#include "call.h"

#define STREAMS 4
#define PREFETCH_AHEAD 640 /* bytes, in each stream */

/* Pieces of a block are unrolled where registers allow: elsewhere so much would be live at once
 * that most of it went through memory. */
#if defined(__AVX512F__)
#define TOKENS_AT_ONCE 8
#define MANY_REGISTERS 1
#else
#define TOKENS_AT_ONCE 4
#define MANY_REGISTERS 0
#endif
_Static_assert(TOKENS_AT_ONCE <= CPU_MAX_TOKENS, "frames are sized for CPU_MAX_TOKENS");

INLINE size_t block_bytes(uint32_t scheme) {
  switch (scheme) {
    case STELE_Q8_0:
      return CPU_PANEL * (32 + 2);
    case STELE_Q4_0:
      return CPU_PANEL * (16 + 2);
    default:
      return CPU_PANEL * (16 + 4); /* q4_1 */
  }
}
INLINE size_t panel_bytes(uint32_t scheme, uint32_t columns) {
  switch (scheme) {
    case STELE_F32:
      return (size_t)columns * CPU_PANEL * 4;
    case STELE_F16:
    case STELE_BF16:
      return (size_t)columns * CPU_PANEL * 2;
    default:
      return columns / CPU_BLOCK * block_bytes(scheme);
  }
}
INLINE bool is_float(uint32_t scheme) { return scheme <= STELE_BF16; }

/* Tokens per pass over a panel: the smallest power of two that holds all, up to what registers
 * allow. A last pass with fewer tokens repeats one. */
INLINE int pass_tokens(const cpu_shape *s) {
  const int n = s->tokens <= 1 ? 1 : s->tokens <= 2 ? 2 : s->tokens <= 4 ? 4 : 8;
  return n < TOKENS_AT_ONCE ? n : TOKENS_AT_ONCE;
}

/* Streams per call: as many as keep memory busy, or the adders where weights are floats. Passes of
 * many tokens wait for neither. */
INLINE int stream_count(int nt) { return nt == 1 ? STREAMS : nt == 2 ? STREAMS / 2 : 1; }

/* ---- float weights ------------------------------------------------------------------------- */

INLINE vf load_weights(uint32_t scheme, const uint8_t *w) {
  if (scheme == STELE_F32) return load_f(w);
  return scheme == STELE_F16 ? from_f16(load_h(w)) : from_bf16(load_h(w));
}

/* Number k of a token, whatever the scheme. */
INLINE float activation(rows x, const uint8_t *row, uint32_t k) {
  if (x.scheme == STELE_F32) return load_f32(row + k * 4);
  return (float)(int8_t)row[k] * load_f32(row + x.columns + k / CPU_BLOCK * 4);
}

/* y[p * nt + t] for np panels; each panel is a stream of its own. */
INLINE void float_panels(uint32_t scheme, rows x, const uint8_t *const *w, const int np,
                         const uint8_t *const *x_rows, const int nt, vf *y) {
  const size_t step = CPU_PANEL * (scheme == STELE_F32 ? 4 : 2);
  vf sum[STREAMS * CPU_MAX_TOKENS];
  UNROLL
  for (int i = 0; i < np * nt; i++) sum[i] = (vf){0};
  UNROLL_BY_4
  for (uint32_t k = 0; k < x.columns; k++) {
    UNROLL
    for (int p = 0; p < np; p++) {
      const uint8_t *at = w[p] + k * step;
      if (np > 1 && (step == 64 || k % 2 == 0)) prefetch(at + PREFETCH_AHEAD);
      vf weights = load_weights(scheme, at);
      UNROLL
      for (int t = 0; t < nt; t++)
        sum[p * nt + t] = fma_f(weights, splat(activation(x, x_rows[t], k)), sum[p * nt + t]);
    }
  }
  UNROLL
  for (int i = 0; i < np * nt; i++) y[i] = sum[i];
}

/* ---- quantised weights, float activations -------------------------------------------------- */

/* A block's 32 columns one after another, decoded exactly as the format says: d q, d (q - 8),
 * d q + m. */
INLINE void decoded_block(uint32_t scheme, rows x, uint32_t b, const uint8_t *w,
                          const uint8_t *const *x_rows, const int nt, vf *sum) {
  const int groups = scheme == STELE_Q8_0 ? 8 : 4, halves = scheme == STELE_Q8_0 ? 1 : 2;
  const uint8_t *scales = w + groups * 64;
  vf d = from_f16(load_h(scales));
  vf m = scheme == STELE_Q4_1 ? from_f16(load_h(scales + 32)) : (vf){0};
  for (int g = 0; g < groups * halves; g++) {
    vi four = (vi)load_b(w + g % groups * 64) >> (g / groups * 4);
    uint32_t k = b * CPU_BLOCK + (uint32_t)g * 4;
    UNROLL
    for (int i = 0; i < 4; i++) {
      vi q = scheme == STELE_Q8_0 ? four << (24 - 8 * i) >> 24 : (four >> (8 * i)) & 15;
      if (scheme == STELE_Q4_0) q = q - 8;
      vf weights = to_float(q) * d;
      if (scheme == STELE_Q4_1) weights = weights + m;
      UNROLL
      for (int t = 0; t < nt; t++)
        sum[t] = fma_f(weights, splat(activation(x, x_rows[t], k + (uint32_t)i)), sum[t]);
    }
  }
}

/* ---- quantised weights, quantised activations ---------------------------------------------- */

/* What a block's products add up to, per token: sums of 32 bits, or what dot_u4 sums in. */
typedef struct block_sums {
  vi sum[CPU_MAX_TOKENS];
  dot_u4 u4[CPU_MAX_TOKENS];
} block_sums;

/* Piece g of a block times 8-bit activations q[t] of the block: columns 4 g .. 4 g + 3, and of
 * 4-bit weights 16 + 4 g .. 16 + 4 g + 3 as well. */
INLINE void narrow_piece(uint32_t scheme, const uint8_t *w, const uint8_t *const *q, int g,
                         const int nt, block_sums *sums) {
  vb both = load_b(w + g * 64);
  vb low = both & 15, high = (vb)((vs)both >> 4) & 15;
  UNROLL
  for (int t = 0; t < nt; t++) {
    const uint8_t *at = q[t] + g * 4;
    if (scheme == STELE_Q8_0) {
      sums->sum[t] = dot_s8_add(sums->sum[t], both, load_i32(at));
    } else {
      sums->u4[t] = dot_u4_add(sums->u4[t], low, load_i32(at));
      sums->u4[t] = dot_u4_add(sums->u4[t], high, load_i32(at + 16));
    }
  }
}

/* The same times 16-bit activations. */
INLINE void wide_piece(uint32_t scheme, const uint8_t *w, const uint8_t *const *q, int g,
                       const int nt, block_sums *sums) {
  vs both = (vs)load_b(w + g * 64);
  if (scheme == STELE_Q8_0) {
    vs even = both << 8 >> 8, odd = both >> 8;
    UNROLL
    for (int t = 0; t < nt; t++) {
      sums->sum[t] = madd_16(sums->sum[t], even, load_i32(q[t] + g * 8));
      sums->sum[t] = madd_16(sums->sum[t], odd, load_i32(q[t] + g * 8 + 4));
    }
    return;
  }
  vs even = both & 15, odd = both >> 8 & 15, high_even = both >> 4 & 15;
  vs high_odd = (vs)((vus)both >> 12);
  UNROLL
  for (int t = 0; t < nt; t++) {
    sums->sum[t] = madd_16(sums->sum[t], even, load_i32(q[t] + g * 8));
    sums->sum[t] = madd_16(sums->sum[t], odd, load_i32(q[t] + g * 8 + 4));
    sums->sum[t] = madd_16(sums->sum[t], high_even, load_i32(q[t] + 32 + g * 8));
    sums->sum[t] = madd_16(sums->sum[t], high_odd, load_i32(q[t] + 32 + g * 8 + 4));
  }
}

INLINE void piece(uint32_t scheme, bool wide, const uint8_t *w, const uint8_t *const *q, int g,
                  const int nt, block_sums *sums) {
  if (stream_count(nt) > 1) prefetch(w + g * 64 + PREFETCH_AHEAD);
  if (wide)
    wide_piece(scheme, w, q, g, nt, sums);
  else
    narrow_piece(scheme, w, q, g, nt, sums);
}

/* The sum of a block's bytes, from s = d * sum rounded once: |sum| < 2^12, so s / d is within a
 * few units in the last place of it. d = 0 gives any number, which then is multiplied by d. */
INLINE int32_t block_sum(float s, float d) {
  union {
    float f;
    int32_t i;
  } u = {s / d + ROUND_MAGIC};
  return u.i - 0x4b400000;
}

/* Adds a block's d_w d_x (q_w . q_x) + m_w s_x; q4_0 has m_w = -8 d_w, q8_0 none. */
INLINE void integer_block(uint32_t scheme, bool wide, uint32_t columns, uint32_t b,
                          const uint8_t *w, const uint8_t *const *x_rows, const int nt, vf *sum) {
  const uint32_t blocks = columns / CPU_BLOCK, bytes = wide ? 2 : 1; /* of an activation */
  const int pieces = scheme == STELE_Q8_0 ? 8 : 4;
  const bool narrow_u4 = !wide && scheme != STELE_Q8_0;
  const bool biased = DOT_S8_NEEDS_SUM && !wide && scheme == STELE_Q8_0;
  block_sums sums;
  const uint8_t *q[CPU_MAX_TOKENS], *scales[CPU_MAX_TOKENS];
  UNROLL
  for (int t = 0; t < nt; t++) {
    q[t] = x_rows[t] + b * CPU_BLOCK * bytes;
    scales[t] = x_rows[t] + columns * bytes + b * 4;
    sums.u4[t] = (dot_u4){0};
    sums.sum[t] = (vi){0};
    if (biased)
      sums.sum[t] = dot_s8_begin(block_sum(load_f32(scales[t] + blocks * 4), load_f32(scales[t])));
  }
  if (nt == 1 || MANY_REGISTERS) {
    UNROLL
    for (int g = 0; g < pieces; g++) piece(scheme, wide, w, q, g, nt, &sums);
  } else {
    for (int g = 0; g < pieces; g++) piece(scheme, wide, w, q, g, nt, &sums);
  }
  if (stream_count(nt) > 1) prefetch(w + pieces * 64 + PREFETCH_AHEAD);
  vf d = from_f16(load_h(w + pieces * 64));
  vf m = scheme == STELE_Q4_1 ? from_f16(load_h(w + pieces * 64 + 32)) : d * -8.0f;
  UNROLL
  for (int t = 0; t < nt; t++) {
    vf exact = to_float(narrow_u4 ? dot_u4_end(sums.u4[t]) : sums.sum[t]);
    sum[t] = fma_f(exact * load_f32(scales[t]), d, sum[t]);
    if (scheme != STELE_Q8_0) sum[t] = fma_f(m, splat(load_f32(scales[t] + blocks * 4)), sum[t]);
  }
}

/* y[p * nt + t]; the panels take turns at each block. */
INLINE void block_panels(uint32_t scheme, rows x, const uint8_t *const *w, const int np,
                         const uint8_t *const *x_rows, const int nt, vf *y) {
  vf sum[STREAMS * CPU_MAX_TOKENS];
  UNROLL
  for (int i = 0; i < np * nt; i++) sum[i] = (vf){0};
  for (uint32_t b = 0; b < x.columns / CPU_BLOCK; b++)
    for (int p = 0; p < np; p++) {
      const uint8_t *at = w[p] + b * block_bytes(scheme);
      if (x.scheme == STELE_F32)
        decoded_block(scheme, x, b, at, x_rows, nt, sum + p * nt);
      else
        integer_block(scheme, x.scheme == CPU_WIDE, x.columns, b, at, x_rows, nt, sum + p * nt);
    }
  UNROLL
  for (int i = 0; i < np * nt; i++) y[i] = sum[i];
}

/* ---- any of them --------------------------------------------------------------------------- */

/* A worker's panels, [begin, end) of a matrix, as `np` streams that advance together: panel p of
 * round i is begin + p * rounds + i. A processor's prefetchers read several streams at once faster
 * than one, and each of ours is as long as can be. */
typedef struct streams {
  uint32_t begin, end, rounds;
} streams;

INLINE streams split_panels(uint32_t begin, uint32_t end, const int np) {
  return (streams){begin, end, (end - begin + (uint32_t)np - 1) / (uint32_t)np};
}
INLINE uint32_t stream_panel(streams s, uint32_t round, int p) {
  return s.begin + (uint32_t)p * s.rounds + round;
}

/* y[p * nt + t]: np panels of one scheme times x_rows[nt]. */
INLINE void multiply_panels(uint32_t scheme, rows x, const uint8_t *const *panels, const int np,
                            const uint8_t *const *x_rows, const int nt, vf *y) {
  if (is_float(scheme))
    float_panels(scheme, x, panels, np, x_rows, nt, y);
  else
    block_panels(scheme, x, panels, np, x_rows, nt, y);
}

/* Where one round's panels of a matrix are; past the end the last one again. */
INLINE void take_panels(const cpu_matrix *m, const uint8_t *w, streams s, uint32_t round,
                        const int np, const uint8_t **out_panels) {
  const size_t stride = panel_bytes(m->scheme, m->columns);
  UNROLL
  for (int p = 0; p < np; p++) {
    uint32_t panel = stream_panel(s, round, p);
    out_panels[p] = w + (panel < s.end ? panel : s.end - 1) * stride;
  }
}

/* Asks for what the loops ask for too late: the first lines of each stream. They arrive while the
 * activations are made ready. */
INLINE void ask_early(const uint8_t *panel) {
  UNROLL
  for (uint32_t i = 0; i < PREFETCH_AHEAD; i += 64) prefetch(panel + i);
}
INLINE void ask_panels_early(const cpu_matrix *m, const uint8_t *w, streams s, const int np) {
  const uint8_t *panels[STREAMS];
  if (s.begin == s.end) return;
  take_panels(m, w, s, 0, np, panels);
  for (int p = 0; p < np; p++) ask_early(panels[p]);
}

/* 16 biases from row `row` on, zeros past the last one. */
INLINE vf load_bias(const float *bias, uint32_t row, uint32_t rows) {
  if (row + CPU_PANEL > rows) return load_f_part(bias + row, rows - row);
  return load_f(bias + row);
}

#endif
