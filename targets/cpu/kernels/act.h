/* Activations: non-linearities, and what happens before they meet weights: norm, merge of
 * attention's parts, quantisation. */
#ifndef CPU_ACT_H
#define CPU_ACT_H

#include "call.h"
#include "part.h"

/* ---- non-linearities ----------------------------------------------------------------------- */

INLINE float gelu_1(float x) { return 0.5f * x * (1.0f + __builtin_erff(x * 0x1.6a09e6p-1f)); }

INLINE vf function_lanes(uint32_t function, vf x) {
  switch (function) {
    case STELE_SILU:
      return silu_f(x);
    case STELE_GELU:
      for (int i = 0; i < LANES; i++) x[i] = gelu_1(x[i]);
      return x;
    case STELE_GELU_TANH: /* sqrt(2 / pi) (x + 0.044715 x^3) */
      return 0.5f * x * (1.0f + tanh_f(0x1.988454p-1f * (x + 0x1.6e4e26p-5f * x * x * x)));
    default:
      return max_f(x, (vf){0});
  }
}

/* ---- norm and quantisation ----------------------------------------------------------------- */

/* 1 / sqrt(mean(x^2) + eps); four sums of 16 lanes, added in a fixed order. */
INLINE float inverse_rms(const float *x, uint32_t count, float eps) {
  vf sums[4] = {{0}, {0}, {0}, {0}};
  uint32_t i = 0;
  for (; i + 4 * LANES <= count; i += 4 * LANES) {
    UNROLL
    for (int j = 0; j < 4; j++) {
      vf v = load_f(x + i + j * LANES);
      sums[j] = fma_f(v, v, sums[j]);
    }
  }
  for (; i + LANES <= count; i += LANES) {
    vf v = load_f(x + i);
    sums[0] = fma_f(v, v, sums[0]);
  }
  if (count % LANES) {
    vf v = load_f_part(x + i, count % LANES);
    sums[1] = fma_f(v, v, sums[1]);
  }
  float sum = sum_f((sums[0] + sums[1]) + (sums[2] + sums[3]));
  return 1.0f / __builtin_sqrtf(sum / (float)count + eps);
}

/* x * factor * weight, the weight one more where the model says so. */
INLINE vf norm_lanes(const cpu_shape *s, vf x, float factor, vf w) {
  if (s->flags & STELE_FLAG_NORM_PLUS_ONE) w = w + 1.0f;
  return x * factor * w;
}

/* Quantises 32 numbers: d = max|x| / 127, q = x / d to the nearest, sums of q by halves, s = d *
 * sum(q). */
INLINE void quantise_block(vf low, vf high, int8_t *q, float *d, float *s, int16_t *sums) {
  typedef int8_t v16b __attribute__((vector_size(16)));
  float scale = largest_f(max_f(abs_f(low), abs_f(high))) / 127.0f;
  float divisor = scale == 0 ? 1.0f : scale;
  vi ql = round_i(low / divisor), qh = round_i(high / divisor);
  v16b bl = __builtin_convertvector(ql, v16b), bh = __builtin_convertvector(qh, v16b);
  __builtin_memcpy(q, &bl, 16);
  __builtin_memcpy(q + 16, &bh, 16);
  int32_t sum_low = __builtin_reduce_add(ql), sum_high = __builtin_reduce_add(qh);
  *d = scale;
  *s = scale * (float)(sum_low + sum_high);
  sums[0] = (int16_t)sum_low;
  sums[1] = (int16_t)sum_high;
}
/* The same into block `block` of a quantised row. */
INLINE void quantise_into(uint8_t *row, uint32_t columns, uint32_t block, vf low, vf high) {
  float *d = (float *)(void *)(row + columns), *s = d + columns / CPU_BLOCK;
  int16_t *sums = (int16_t *)(void *)(s + columns / CPU_BLOCK);
  quantise_block(low, high, (int8_t *)row + block * CPU_BLOCK, d + block, s + block,
                 sums + 2 * block);
}

/* Leaves token `row` of the op's input, after its prologue, in to's scheme. */
INLINE void prepare_row(const call *c, uint32_t row, rows to) {
  const cpu_shape *s = c->s;
  uint32_t n = to.columns;
  const float *x = (const float *)(const void *)(c->stack + cpu_stack_row(s));
  if (s->prologue == STELE_PROLOGUE_COMBINE)
    combine_row(c, row, (float *)(void *)(c->stack + cpu_stack_row(s)));
  else
    x = (const float *)(const void *)(c->env->workspace + c->place->in[0]) + (size_t)row * n;
  const bool norm = s->prologue == STELE_PROLOGUE_NORM;
  const float *w = vector(c, STELE_W_NORM);
  float factor = norm ? inverse_rms(x, n, s->eps) : 1.0f;
  uint8_t *y = row_of(to, row);
  if (to.scheme == STELE_Q8_0) {
    for (uint32_t b = 0; b < n / CPU_BLOCK; b++) {
      vf low = load_f(x + b * CPU_BLOCK), high = load_f(x + b * CPU_BLOCK + LANES);
      if (norm) {
        low = norm_lanes(s, low, factor, load_f(w + b * CPU_BLOCK));
        high = norm_lanes(s, high, factor, load_f(w + b * CPU_BLOCK + LANES));
      }
      quantise_into(y, n, b, low, high);
    }
    return;
  }
  for (uint32_t i = 0; i + LANES <= n; i += LANES) {
    vf v = load_f(x + i);
    store_f(y + i * 4, norm ? norm_lanes(s, v, factor, load_f(w + i)) : v);
  }
  const uint32_t tail = n % LANES, at = n - tail;
  if (tail) {
    vf v = load_f_part(x + at, tail);
    if (norm) v = norm_lanes(s, v, factor, load_f_part(w + at, tail));
    store_f_part(y + at * 4, v, tail);
  }
}

/* What other workers have just written is in their caches: asked for all at once it comes sooner
 * than line by line. */
INLINE void ask_for_rows(rows r, const uint32_t *list, uint32_t count) {
  if (count > 2) return;
  for (uint32_t i = 0; i < count; i++)
    for (size_t at = 0; at < row_bytes(r); at += 64) prefetch(row_of(r, list[i]) + at);
}

/* The rows that weights meet: the op's input, or what this worker prepares of it for itself. */
INLINE rows matrix_input(const call *c, const uint32_t *list, uint32_t count) {
  const cpu_shape *s = c->s;
  rows in = {c->env->workspace + c->place->in[0], s->in_scheme, s->in_columns};
  if (s->prologue != STELE_PROLOGUE_COMBINE) ask_for_rows(in, list, count);
  if (!s->prepared) return in;
  uint8_t *base = c->env->workspace + c->place->prepared + (size_t)c->worker * s->prepared_bytes;
  rows to = {base, s->prepared_scheme, s->matrix[0].columns};
  for (uint32_t i = 0; i < count; i++) prepare_row(c, list[i], to);
  return to;
}

#endif
