/* Attention over one page: scores, softmax, weighted values, for up to CPU_QUERIES queries of one
 * key-value head. Scores and sums are float32 whatever the cache's scheme.
 *
 * Lanes of a score vector are slots: a key panel holds each element of 16 slots side by side. Slots
 * that are not seen are masked by selection, and no value of theirs is ever multiplied, so what
 * their memory holds does not matter. Numbers of block schemes are summed up block by block, as the
 * integers that they are, and then scaled.
 *
 * The cache is read once and from memory, so while a page is worked on the next one is asked for:
 * its keys meanwhile the keys are read, its values meanwhile the values are. */
#ifndef CPU_PAGE_H
#define CPU_PAGE_H

#include "cache.h"
#include "part.h"

#define PANELS 4 /* of keys in a page, at most: 64 slots */
#define ROWS 8   /* of a panel, between two requests for what is needed next */

/* Sums that are made at once: as many vectors of 16 as leave registers for their factors. */
#if defined(__AVX512F__)
#define SUMS 16
#elif defined(__AVX2__)
#define SUMS 4
#else
#define SUMS 2
#endif

typedef struct page_work {
  const float *q[CPU_QUERIES];
  uint64_t seen[CPU_QUERIES]; /* slots, a bit each */
  float scale[CPU_QUERIES];   /* of the scores */
  part parts[CPU_QUERIES];
  float *o; /* [nq][cpu_o_stride] */
} page_work;

/* Panels, or runs of 16 elements of the values, that are taken at once: 1, 2 or 4. */
INLINE int taken_at_once(const int nq, const int most) {
  int n = nq * 4 <= SUMS ? 4 : nq * 2 <= SUMS ? 2 : 1;
  return n < most ? n : most;
}

/* ---- numbers coming out -------------------------------------------------------------------- */

typedef int8_t v16b __attribute__((vector_size(16)));
typedef uint8_t v16ub __attribute__((vector_size(16)));

/* count <= 16 numbers, without scale; no byte beyond them is read. Of a pair's two, which. */
INLINE vf load_cached(uint32_t scheme, const uint8_t *p, uint32_t count, bool second) {
  if (scheme == STELE_F32) return count == LANES ? load_f(p) : load_f_part(p, count);
  if (has_scales(scheme)) {
    v16b q = {0};
    __builtin_memcpy(&q, p, count);
    if (scheme == STELE_Q8_0) return __builtin_convertvector(q, vf);
    vi pairs = __builtin_convertvector((v16ub)q, vi);
    return to_float((second ? pairs >> 4 : pairs & 15) - 8);
  }
  vh h = count == LANES ? load_h(p) : load_h_part(p, count);
  return scheme == STELE_F16 ? from_f16(h) : from_bf16(h);
}

INLINE void fetch(const uint8_t **at, uint32_t bytes) {
  UNROLL
  for (uint32_t i = 0; i < bytes; i += 64) prefetch(*at + i);
  *at += bytes;
}

/* ---- scores -------------------------------------------------------------------------------- */

/* Where np panels are, and what they meet. */
typedef struct panel_work {
  const uint8_t *numbers[PANELS]; /* of the block at hand */
  const float *const *q;
  uint32_t lanes, scheme, element; /* the block's first */
} panel_work;

/* sum[p * nq + i] += q_i[e] k_p[e] for the number or pair in row `row` of the block */
INLINE void score_row(const panel_work *w, uint32_t row, const int np, const int nq, vf *sum) {
  const int numbers = w->scheme == STELE_Q4_0 ? 2 : 1;
  UNROLL
  for (int n = 0; n < numbers; n++) {
    vf keys[PANELS];
    UNROLL
    for (int p = 0; p < np; p++)
      keys[p] = load_cached(w->scheme, w->numbers[p] + row * w->lanes * unit_bytes(w->scheme),
                            w->lanes, n);
    UNROLL
    for (int i = 0; i < nq; i++) {
      const vf query = splat(w->q[i][w->element + row + (uint32_t)n * CPU_BLOCK / 2]);
      UNROLL
      for (int p = 0; p < np; p++) sum[p * nq + i] = fma_f(query, keys[p], sum[p * nq + i]);
    }
  }
}

INLINE void score_block(const panel_work *w, uint32_t rows, const int np, const int nq, vf *sum,
                        const uint8_t **next, uint32_t next_bytes) {
  UNROLL
  for (int i = 0; i < np * nq; i++) sum[i] = (vf){0};
  uint32_t row = 0;
  for (; row + ROWS <= rows; row += ROWS) {
    fetch(next, next_bytes);
    UNROLL
    for (uint32_t j = 0; j < ROWS; j++) score_row(w, row + j, np, nq, sum);
  }
  for (; row < rows; row++) score_row(w, row, np, nq, sum);
}

/* scores[i][panel + p] = q_i . k of np panels */
INLINE void score_panels(const cpu_shape *s, const uint8_t *keys, uint32_t panel, const int np,
                         const int nq, const page_work *page, vf scores[][PANELS],
                         const uint8_t **next, uint32_t next_bytes) {
  const uint32_t block = has_scales(s->key_scheme) ? CPU_BLOCK : s->key_head;
  const uint32_t bytes = numbers_bytes(s->key_scheme, block), unit = unit_bytes(s->key_scheme);
  panel_work w = {.q = page->q, .lanes = key_lanes(s), .scheme = s->key_scheme};
  const uint8_t *numbers = keys + scales_bytes(s, s->key_scheme, s->key_head);
  for (uint32_t b = 0; b < s->key_head / block; b++) {
    vf sum[SUMS > CPU_QUERIES ? SUMS : CPU_QUERIES];
    w.element = b * block;
    UNROLL
    for (int p = 0; p < np; p++)
      w.numbers[p] =
          numbers + (size_t)((panel + (uint32_t)p) * (s->key_head / block) + b) * bytes * w.lanes;
    score_block(&w, bytes / unit, np, nq, sum, next, next_bytes);
    UNROLL
    for (int p = 0; p < np; p++) {
      uint32_t slot = (panel + (uint32_t)p) * w.lanes;
      vf scale = {0};
      if (has_scales(s->key_scheme))
        scale = load_cached(STELE_F16, keys + ((size_t)b * s->page_tokens + slot) * 2, w.lanes, 0);
      UNROLL
      for (int i = 0; i < nq; i++) {
        vf *to = &scores[i][panel + (uint32_t)p];
        if (!has_scales(s->key_scheme))
          *to = sum[p * nq + i];
        else
          *to = b == 0 ? sum[p * nq + i] * scale : fma_f(sum[p * nq + i], scale, *to);
      }
    }
  }
}

/* scores[i][panel]; panels of which nothing is seen are left out. Meanwhile as many bytes from
 * `next` on are asked for. */
INLINE void score_page(const cpu_shape *s, const uint8_t *keys, const uint8_t *next, const int nq,
                       const page_work *w, uint64_t any, vf scores[][PANELS]) {
  const uint32_t lanes = key_lanes(s), panels = s->page_tokens / lanes;
  const int np = taken_at_once(nq, (int)panels);
  const uint32_t rows = numbers_bytes(s->key_scheme, s->key_head) / unit_bytes(s->key_scheme);
  const uint32_t requests = panels / (uint32_t)np * (rows / ROWS ? rows / ROWS : 1);
  const uint32_t bytes = (uint32_t)(key_bytes(s) - 1) / requests + 1;
  const uint64_t group = ~0ull >> (64 - (uint32_t)np * lanes);
  for (uint32_t panel = 0; panel < panels; panel += (uint32_t)np)
    if (any >> (panel * lanes) & group)
      score_panels(s, keys, panel, np, nq, w, scores, &next, bytes);
}

/* ---- softmax ------------------------------------------------------------------------------- */

/* All ones in the lanes whose bit is set. */
INLINE vi lane_mask(uint32_t bits) {
  vi bit = {1,      2,      4,       8,       16,      32,      64,      128,
            1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  return (splat_i((int32_t)bits) & bit) != 0;
}

/* Scales and caps one query's scores, exp(score - m) in their place, zero where not seen; m and
 * the sum of these in its part. */
INLINE void softmax_page(const cpu_shape *s, uint64_t seen, float scale, vf *scores, part *out) {
  const uint32_t lanes = key_lanes(s), panels = s->page_tokens / lanes;
  vf top = splat(NOTHING_SEEN);
  vi masks[PANELS];
  UNROLL
  for (uint32_t p = 0; p < panels; p++) {
    vf score = scores[p] * scale;
    if (s->soft_cap > 0) score = s->soft_cap * tanh_f(score / s->soft_cap);
    masks[p] = lane_mask((uint32_t)(seen >> (p * lanes)) & 0xffff);
    scores[p] = select_f(masks[p], score, splat(NOTHING_SEEN));
    top = max_f(scores[p], top);
  }
  float m = largest_f(top);
  vf sum = {0};
  UNROLL
  for (uint32_t p = 0; p < panels; p++) {
    scores[p] = (vf)((vi)exp_f(scores[p] - m) & masks[p]);
    sum = sum + scores[p];
  }
  *out = (part){m, sum_f(sum)};
}

/* ---- values -------------------------------------------------------------------------------- */

typedef float page_weights[PANELS * LANES]; /* of one query, by slot */

/* The weights times the scales of the block that element e is in. */
INLINE void scale_weights(const cpu_shape *s, const uint8_t *values, uint32_t e, uint32_t slot,
                          const int nq, const page_weights *weights, page_weights *out) {
  const uint8_t *scales = values + ((size_t)(e / CPU_BLOCK) * s->page_tokens + slot) * 2;
  vf d = load_cached(STELE_F16, scales, key_lanes(s), 0);
  UNROLL
  for (int i = 0; i < nq; i++) store_f(out[i] + slot, load_f(weights[i] + slot) * d);
}

/* sum[i][b] += weight[i][slot] * the value's run b, which is at `from` */
INLINE void weigh_slot(uint32_t scheme, const uint8_t *from, uint32_t slot, const int nq,
                       const page_weights *weights, uint32_t in_block, const int runs,
                       const uint32_t count, vf sum[][4]) {
  vf v[4];
  UNROLL
  for (int b = 0; b < runs; b++) {
    const bool second = scheme == STELE_Q4_0 && (in_block + (uint32_t)b * LANES) % CPU_BLOCK;
    const uint32_t at = scheme == STELE_Q4_0 ? 0 : numbers_bytes(scheme, (uint32_t)b * LANES);
    v[b] = load_cached(scheme, from + at, b == runs - 1 ? count : LANES, second);
  }
  UNROLL
  for (int i = 0; i < nq; i++) {
    const vf weight = splat(weights[i][slot]);
    UNROLL
    for (int b = 0; b < runs; b++) sum[i][b] = fma_f(weight, v[b], sum[i][b]);
  }
}

/* o[i] += sum over slots [begin, end) of weight[i][slot] * value[slot], for `runs` runs of 16
 * elements from element e on; `count` of them in the last run. */
INLINE void weigh_values(const cpu_shape *s, const uint8_t *values, const int nq,
                         const page_work *w, const page_weights *weights, uint64_t any,
                         uint32_t begin, uint32_t end, uint32_t e, const int runs,
                         const uint32_t count, const uint8_t **next, uint32_t next_bytes) {
  const uint32_t scheme = s->value_scheme, row = numbers_bytes(scheme, s->value_head);
  const uint32_t in_block = scheme == STELE_Q4_0 ? e % CPU_BLOCK : 0; /* 0 or 16 */
  values += scales_bytes(s, scheme, s->value_head) + numbers_bytes(scheme, e - in_block);
  float *o = w->o + e;
  vf sum[CPU_QUERIES][4];
  UNROLL
  for (int i = 0; i < nq; i++) {
    UNROLL
    for (int b = 0; b < runs; b++)
      sum[i][b] = load_f(o + (uint32_t)i * cpu_o_stride(s) + (uint32_t)b * LANES);
  }
  const uint64_t all = ~0ull >> (64 - (end - begin));
  if ((any >> begin & all) == all) {
    UNROLL_BY_4
    for (uint32_t slot = begin; slot < end; slot++) {
      fetch(next, next_bytes);
      weigh_slot(scheme, values + (size_t)slot * row, slot, nq, weights, in_block, runs, count,
                 sum);
    }
  } else {
    for (uint32_t slot = begin; slot < end; slot++) {
      if (!(any >> slot & 1)) continue;
      weigh_slot(scheme, values + (size_t)slot * row, slot, nq, weights, in_block, runs, count,
                 sum);
    }
  }
  UNROLL
  for (int i = 0; i < nq; i++) {
    UNROLL
    for (int b = 0; b < runs; b++)
      store_f(o + (uint32_t)i * cpu_o_stride(s) + (uint32_t)b * LANES, sum[i][b]);
  }
}

/* All elements of the values, 16 slots at a time, so that they are read in the order in which they
 * lie. Meanwhile as many bytes from `next` on are asked for. */
INLINE void weigh_page(const cpu_shape *s, const uint8_t *values, const uint8_t *next, const int nq,
                       const page_work *w, const page_weights *weights, uint64_t any) {
  const bool blocks = has_scales(s->value_scheme);
  const int runs = taken_at_once(nq, blocks ? 2 : 4);
  const uint32_t wide = (uint32_t)runs * LANES, rest = s->value_head % wide;
  const uint32_t passes = (s->value_head + wide - 1) / wide;
  const uint32_t bytes = (uint32_t)(value_bytes(s) - 1) / (passes * s->page_tokens) + 1;
  page_weights scaled[CPU_QUERIES];
  __builtin_memset(w->o, 0, (size_t)nq * cpu_o_stride(s) * sizeof(float));
  for (uint32_t slot = 0; slot < s->page_tokens; slot += key_lanes(s)) {
    const uint32_t end = slot + key_lanes(s);
    if (!(any >> slot & (~0ull >> (64 - key_lanes(s))))) continue;
    for (uint32_t e = 0; e + wide <= s->value_head; e += wide) {
      if (blocks) scale_weights(s, values, e, slot, nq, weights, scaled);
      weigh_values(s, values, nq, w, blocks ? scaled : weights, any, slot, end, e, runs, LANES,
                   &next, bytes);
    }
    if (rest)
      weigh_values(s, values, nq, w, weights, any, slot, end, s->value_head - rest,
                   (int)((rest + LANES - 1) / LANES), rest % LANES ? rest % LANES : LANES, &next,
                   bytes);
  }
}

/* The same where the values are the first elements of the keys, which lie slot beside slot: an
 * element's 16 slots are weighed at once, and 16 elements' sums come together. */
INLINE void weigh_keys(const cpu_shape *s, const uint8_t *keys, const int nq, const page_work *w,
                       const page_weights *weights, uint64_t any) {
  const uint32_t lanes = key_lanes(s), panels = s->page_tokens / lanes, scheme = s->key_scheme;
  const uint32_t row = lanes * unit_bytes(scheme);
  const uint32_t rows = numbers_bytes(scheme, s->key_head) / unit_bytes(scheme);
  const uint8_t *numbers = keys + scales_bytes(s, scheme, s->key_head);
  for (uint32_t e = 0; e < s->value_head; e++) {
    const uint32_t block = e / CPU_BLOCK, in_block = e % CPU_BLOCK;
    const bool second = scheme == STELE_Q4_0 && in_block >= CPU_BLOCK / 2;
    const uint32_t at =
        scheme == STELE_Q4_0 ? block * CPU_BLOCK / 2 + in_block % (CPU_BLOCK / 2) : e;
    vf sum[CPU_QUERIES] = {{0}};
    UNROLL
    for (uint32_t p = 0; p < panels; p++) {
      const uint32_t seen = (uint32_t)(any >> (p * lanes));
      vf k = load_cached(scheme, numbers + (size_t)(p * rows + at) * row, lanes, second);
      if (has_scales(scheme))
        k = k * load_cached(STELE_F16, keys + ((size_t)block * s->page_tokens + p * lanes) * 2,
                            lanes, 0);
      k = (vf)((vi)k & lane_mask(seen & 0xffff)); /* what is not seen may be anything */
      UNROLL
      for (int i = 0; i < nq; i++) sum[i] = fma_f(load_f(weights[i] + p * LANES), k, sum[i]);
    }
    UNROLL
    for (int i = 0; i < nq; i++) w->o[(uint32_t)i * cpu_o_stride(s) + e] = sum_f(sum[i]);
  }
}

/* Keys and values of one head in a page. */
typedef struct head_page {
  const uint8_t *keys, *values;
} head_page;
INLINE head_page head_page_of(const call *c, uint32_t lane, uint32_t head, uint32_t page) {
  uint8_t *at = readable_page(c, lane, page);
  const uint8_t *keys = keys_of(c->s, at, head);
  return (head_page){keys, c->s->value_in_key ? keys : values_of(c->s, at, head)};
}

/* The parts of nq queries over one page, their values in w->o (nothing there when the page is not
 * seen); next: what follows it. */
INLINE void attend_page(const cpu_shape *s, head_page page, head_page next, const int nq,
                        page_work *w) {
  vf scores[CPU_QUERIES][PANELS];
  uint64_t any = 0;
  UNROLL
  for (int i = 0; i < nq; i++) any |= w->seen[i];
  if (any == 0) {
    for (int i = 0; i < nq; i++) w->parts[i] = (part){NOTHING_SEEN, 0};
    return;
  }
  score_page(s, page.keys, next.keys, nq, w, any, scores);
  for (int i = 0; i < nq; i++) softmax_page(s, w->seen[i], w->scale[i], scores[i], &w->parts[i]);
  const page_weights *weights = (const page_weights *)(const void *)scores;
  if (s->value_in_key)
    weigh_keys(s, page.keys, nq, w, weights, any);
  else
    weigh_page(s, page.values, next.values, nq, w, weights, any);
}

#endif
