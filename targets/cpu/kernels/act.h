/* Activations: non-linearities, and what happens before they meet weights: norm, merge of
 * attention's parts, quantisation. */
#ifndef CPU_ACT_H
#define CPU_ACT_H

#include "call.h"
#include "part.h"

/* ---- non-linearities ----------------------------------------------------------------------- */

/* Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: erf(z) for z >= 0 is
 * 1 - (a1 t + .. + a5 t^5) exp(-z^2), t = 1 / (1 + 0.3275911 z), off by at most 1.5e-7. */
INLINE vf erf_f(vf x) {
  vf z = abs_f(x), t = 1.0f / (1.0f + 0.3275911f * z);
  vf p = fma_f(splat(1.061405429f), t, splat(-1.453152027f));
  p = fma_f(p, t, splat(1.421413741f));
  p = fma_f(p, t, splat(-0.284496736f));
  p = fma_f(p, t, splat(0.254829592f)) * t;
  vf y = 1.0f - p * exp_f(-(z * z));
  return select_f(x < 0.0f, -y, y);
}

INLINE vf function_lanes(uint32_t function, vf x) {
  switch (function) {
    case STELE_SILU:
      return silu_f(x);
    case STELE_GELU:
      return 0.5f * x * (1.0f + erf_f(x * 0x1.6a09e6p-1f));
    case STELE_GELU_TANH: /* sqrt(2 / pi) (x + 0.044715 x^3) */
      return 0.5f * x * (1.0f + tanh_f(0x1.988454p-1f * (x + 0x1.6e4e26p-5f * x * x * x)));
    default:
      return max_f(x, (vf){0});
  }
}

/* ---- norm and quantisation ----------------------------------------------------------------- */

/* A run of numbers: whole vectors, or the `count` that are left. */
INLINE vf load_run(const float *x, uint32_t count) {
  return count == LANES ? load_f(x) : load_f_part(x, count);
}
INLINE void store_run(void *y, vf v, uint32_t count) {
  if (count == LANES)
    store_f(y, v);
  else
    store_f_part(y, v, count);
}

/* The sum of (x - mean)^2, or of x; four sums of 16 lanes, added in a fixed order. */
INLINE vf add_power(vf sum, vf x, float mean, const bool square) {
  if (!square) return sum + x;
  x = x - mean;
  return fma_f(x, x, sum);
}
INLINE float power_sum(const float *x, uint32_t count, float mean, const bool square) {
  vf sums[4] = {{0}, {0}, {0}, {0}};
  uint32_t i = 0;
  for (; i + 4 * LANES <= count; i += 4 * LANES) {
    UNROLL
    for (int j = 0; j < 4; j++)
      sums[j] = add_power(sums[j], load_f(x + i + j * LANES), mean, square);
  }
  for (; i + LANES <= count; i += LANES) sums[0] = add_power(sums[0], load_f(x + i), mean, square);
  if (count % LANES) {
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    vf v = load_f_part(x + i, count % LANES); /* the lanes past the end must add nothing */
    v = select_f(lane < (int32_t)(count % LANES), v, splat(square ? mean : 0));
    sums[1] = add_power(sums[1], v, mean, square);
  }
  return sum_f((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/* 1 / sqrt(mean(x^2) + eps) */
INLINE float inverse_rms(const float *x, uint32_t count, float eps) {
  return 1.0f / __builtin_sqrtf(power_sum(x, count, 0, true) / (float)count + eps);
}

/* x * factor * weight, the weight one more where the model says so. */
INLINE vf norm_lanes(const cpu_shape *s, vf x, float factor, vf w) {
  if (s->flags & STELE_FLAG_NORM_PLUS_ONE) w = w + 1.0f;
  return x * factor * w;
}

/* A norm over a run of numbers: (x - mean) factor weight + bias; the mean is taken off where the
 * shape says so. */
typedef struct norm {
  float mean, factor;
  const float *w, *b;
} norm;
INLINE norm norm_of(const call *c, const float *x, uint32_t count) {
  const cpu_shape *s = c->s;
  norm m = {.w = vector(c, STELE_W_NORM), .b = vector(c, STELE_W_NORM_BIAS)};
  if (s->center) m.mean = power_sum(x, count, 0, false) / (float)count;
  m.factor = 1.0f / __builtin_sqrtf(power_sum(x, count, m.mean, true) / (float)count + s->eps);
  return m;
}
/* `count` numbers x, whose weights and biases begin at `at`. */
INLINE vf norm_run(const cpu_shape *s, const norm *m, vf x, uint32_t at, uint32_t count) {
  if (s->center) x = x - m->mean;
  x = norm_lanes(s, x, m->factor, load_run(m->w + at, count));
  return s->norm_bias ? x + load_run(m->b + at, count) : x;
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
  const bool normed = s->prologue == STELE_PROLOGUE_NORM;
  norm m = {0};
  if (normed) m = norm_of(c, x, n);
  uint8_t *y = row_of(to, row);
  if (to.scheme == STELE_Q8_0) {
    for (uint32_t b = 0; b < n / CPU_BLOCK; b++) {
      vf low = load_f(x + b * CPU_BLOCK), high = load_f(x + b * CPU_BLOCK + LANES);
      if (normed) {
        low = norm_run(s, &m, low, b * CPU_BLOCK, LANES);
        high = norm_run(s, &m, high, b * CPU_BLOCK + LANES, LANES);
      }
      quantise_into(y, n, b, low, high);
    }
    return;
  }
  for (uint32_t i = 0; i + LANES <= n; i += LANES) {
    vf v = load_f(x + i);
    store_f(y + i * 4, normed ? norm_run(s, &m, v, i, LANES) : v);
  }
  const uint32_t tail = n % LANES, at = n - tail;
  if (tail) {
    vf v = load_f_part(x + at, tail);
    if (normed) v = norm_run(s, &m, v, at, tail);
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
