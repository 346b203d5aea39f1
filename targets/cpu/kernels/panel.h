/* The inner loops: a panel of 16 packed rows times a few tokens.
 *
 * Every (row, token) has one accumulator and adds in the order of the columns (float products) or
 * of the blocks (integer products: the sum within a block is exact), whatever the number of tokens
 * at once, so a token's result does not depend on its neighbours.
 * The layouts are drawn in ../layout.c, numbers.h and schemes/. */
#ifndef CPU_PANEL_H
#define CPU_PANEL_H

#include "amx.h"
#include "block.h"

INLINE size_t panel_bytes(uint32_t scheme, uint32_t columns) {
  switch (scheme) {
    case STELE_F32:
      return (size_t)columns * CPU_PANEL * 4;
    case STELE_F16:
    case STELE_BF16:
      return (size_t)columns * CPU_PANEL * 2;
    default:
      return columns / packing_of(scheme).columns * block_bytes(packing_of(scheme));
  }
}
INLINE bool is_float(uint32_t scheme) { return scheme <= STELE_BF16; }

/* Tokens per pass over a panel: the smallest power of two that holds all, up to what registers
 * or tiles allow. A last pass with fewer tokens repeats one. */
INLINE int pass_tokens(const cpu_shape *s) {
  if (uses_tiles(s)) return TILE_TOKENS;
  const int n = s->tokens <= 1 ? 1 : s->tokens <= 2 ? 2 : s->tokens <= 4 ? 4 : 8;
  return n < TOKENS_AT_ONCE ? n : TOKENS_AT_ONCE;
}

/* ---- float weights ------------------------------------------------------------------------- */

INLINE vf load_weights(uint32_t scheme, const uint8_t *w) {
  if (scheme == STELE_F32) return load_f(w);
  return scheme == STELE_F16 ? from_f16(load_h(w)) : from_bf16(load_h(w));
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
        sum[p * nt + t] = fma_f(weights, splat(load_f32(x_rows[t] + k * 4)), sum[p * nt + t]);
    }
  }
  UNROLL
  for (int i = 0; i < np * nt; i++) y[i] = sum[i];
}

/* ---- quantised weights ---------------------------------------------------------------------- */

/* How far TILE_TOKENS tokens are from each other; 0 when that differs. */
INLINE size_t even_stride(const uint8_t *const *x_rows) {
  const size_t stride = (size_t)(x_rows[1] - x_rows[0]);
  bool even = true;
  UNROLL
  for (int t = 2; t < TILE_TOKENS; t++) even = even && x_rows[t] == x_rows[t - 1] + stride;
  return even ? stride : 0;
}

/* Adds block b of np panels; they take turns at every 32 columns. */
INLINE void add_blocks(uint32_t scheme, rows x, uint32_t b, const uint8_t *const *w, const int np,
                       const uint8_t *const *x_rows, const int nt, size_t stride, vf *sum) {
  const packing k = packing_of(scheme);
  const size_t at = b * block_bytes(k);
  if (!is_super(k)) { /* a turn is a whole block: nothing of it has to be in memory meanwhile */
    for (int p = 0; p < np; p++) {
      block_work work;
      begin_block(scheme, w[p] + at, nt, &work);
      add_group(scheme, x, b, 0, x_rows, nt, stride, &work, sum + p * nt);
    }
    return;
  }
  block_work work[STREAMS];
  for (int p = 0; p < np; p++) begin_block(scheme, w[p] + at, nt, &work[p]);
  for (uint32_t i = 0; i < k.columns / GROUP; i++)
    for (int p = 0; p < np; p++)
      add_group(scheme, x, b, i, x_rows, nt, stride, &work[p], sum + p * nt);
  for (int p = 0; p < np; p++) end_block(k, x, nt, &work[p], sum + p * nt);
}

/* y[p * nt + t] */
INLINE void block_panels(uint32_t scheme, rows x, const uint8_t *const *w, const int np,
                         const uint8_t *const *x_rows, const int nt, vf *y) {
  vf sum[STREAMS * CPU_MAX_TOKENS];
  UNROLL
  for (int i = 0; i < np * nt; i++) sum[i] = (vf){0};
  const size_t stride = nt == TILE_TOKENS ? even_stride(x_rows) : 0;
  for (uint32_t b = 0; b < x.columns / packing_of(scheme).columns; b++)
    add_blocks(scheme, x, b, w, np, x_rows, nt, stride, sum);
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
