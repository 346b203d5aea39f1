/* Attention over pages: softmax(scale q K^T) V over the slots that a token sees. Scores and sums
 * are float32 whatever the cache's scheme.
 *
 * Lanes of a score vector are slots: a key panel holds each element of 16 slots side by side. Slots
 * that are not seen are masked by selection, and no value of theirs is ever multiplied, so what
 * their memory holds does not matter. */
#include "cache.h"
#include "part.h"

#define PANELS 4 /* of keys in a page, at most: 64 slots */

/* Up to CPU_QUERIES queries of one key-value head over one page. */
typedef struct page_work {
  const float *q[CPU_QUERIES];
  uint64_t seen[CPU_QUERIES]; /* slots, a bit each */
  part parts[CPU_QUERIES];
  float *o; /* [nq][value_head], rows aligned as stored by the caller */
} page_work;

/* All ones in the lanes whose bit is set. */
INLINE vi lane_mask(uint32_t bits) {
  vi bit = {1,      2,      4,       8,       16,      32,      64,      128,
            1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  return (splat_i((int32_t)bits) & bit) != 0;
}

/* scores[q][panel] = q . k; panels of which nothing is seen are left out. */
INLINE void score_page(const cpu_shape *s, const uint8_t *keys, const int nq, page_work *w,
                       vf scores[][PANELS]) {
  const uint32_t lanes = key_lanes(s), panels = s->page_tokens / lanes;
  const uint32_t step = lanes * scheme_bytes(s->key_scheme);
  uint64_t any = 0;
  UNROLL
  for (int i = 0; i < nq; i++) any |= w->seen[i];
  for (uint32_t panel = 0; panel < panels; panel++) {
    vf sum[CPU_QUERIES];
    UNROLL
    for (int i = 0; i < nq; i++) sum[i] = (vf){0};
    if (any >> (panel * lanes) & 0xffff) {
      const uint8_t *k = keys + (size_t)panel * s->key_head * step;
      UNROLL_BY_4
      for (uint32_t e = 0; e < s->key_head; e++) {
        vf key = load_cached(s->key_scheme, k + (size_t)e * step, lanes);
        UNROLL
        for (int i = 0; i < nq; i++) sum[i] = fma_f(splat(w->q[i][e]), key, sum[i]);
      }
    }
    UNROLL
    for (int i = 0; i < nq; i++) scores[i][panel] = sum[i];
  }
}

/* Scales and caps one query's scores; -inf where not seen. Then exp(score - m) in their place, and
 * m and the sum of these in its part. */
INLINE void softmax_page(const cpu_shape *s, uint64_t seen, vf *scores, part *out) {
  const uint32_t lanes = key_lanes(s), panels = s->page_tokens / lanes;
  vf top = splat(NOTHING_SEEN);
  for (uint32_t p = 0; p < panels; p++) {
    vf score = scores[p] * s->scale;
    if (s->soft_cap > 0) score = s->soft_cap * tanh_f(score / s->soft_cap);
    vi mask = lane_mask((uint32_t)(seen >> (p * lanes)) & 0xffff);
    scores[p] = select_f(mask, score, splat(NOTHING_SEEN));
    top = max_f(scores[p], top);
  }
  float m = largest_f(top);
  vf sum = {0};
  for (uint32_t p = 0; p < panels; p++) {
    vf e = exp_f(scores[p] - m);
    scores[p] = select_f(scores[p] == NOTHING_SEEN, (vf){0}, e);
    sum = sum + scores[p];
  }
  *out = (part){m, sum_f(sum)};
}

/* o[i] += sum over slots of weight[i][slot] * value[slot], for `blocks` runs of 16 elements from
 * element e on; `count` of them in the last run. */
INLINE void weigh_values(const cpu_shape *s, const uint8_t *values, const int nq,
                         const page_work *w, float (*weights)[PANELS * LANES], uint64_t any,
                         uint32_t e, const int blocks, const uint32_t count) {
  const uint32_t bytes = scheme_bytes(s->value_scheme), row = s->value_head * bytes;
  vf sum[CPU_QUERIES][4];
  UNROLL
  for (int i = 0; i < nq; i++) {
    UNROLL
    for (int b = 0; b < blocks; b++) sum[i][b] = (vf){0};
  }
  uint32_t first = (uint32_t)__builtin_ctzll(any), last = 63 - (uint32_t)__builtin_clzll(any);
  for (uint32_t slot = first; slot <= last; slot++) {
    if (!(any >> slot & 1)) continue;
    const uint8_t *from = values + (size_t)slot * row + e * bytes;
    UNROLL
    for (int b = 0; b < blocks; b++) {
      vf v = load_cached(s->value_scheme, from + (uint32_t)b * LANES * bytes,
                         b == blocks - 1 ? count : LANES);
      UNROLL
      for (int i = 0; i < nq; i++) sum[i][b] = fma_f(splat(weights[i][slot]), v, sum[i][b]);
    }
  }
  UNROLL
  for (int i = 0; i < nq; i++) {
    UNROLL
    for (int b = 0; b < blocks; b++) {
      float *o = w->o + (uint32_t)i * s->value_head + e + (uint32_t)b * LANES;
      if (b == blocks - 1 && count < LANES)
        store_f_part(o, sum[i][b], count);
      else
        store_f(o, sum[i][b]);
    }
  }
}

/* The parts of nq queries over one page, their values in w->o. */
INLINE void attend_page(const cpu_shape *s, const uint8_t *keys, const uint8_t *values,
                        const int nq, page_work *w) {
  vf scores[CPU_QUERIES][PANELS];
  score_page(s, keys, nq, w, scores);
  uint64_t any = 0;
  for (int i = 0; i < nq; i++) {
    softmax_page(s, w->seen[i], scores[i], &w->parts[i]);
    any |= w->seen[i];
  }
  if (any == 0) {
    __builtin_memset(w->o, 0, (size_t)nq * s->value_head * sizeof(float));
    return;
  }
  float (*weights)[PANELS * LANES] = (float (*)[PANELS * LANES])(void *)scores;
  const int together = nq == 1 ? 4 : nq == 2 ? 2 : 1; /* runs at once, to keep the adders busy */
  const uint32_t wide = (uint32_t)together * LANES;
  uint32_t e = 0;
  for (; e + wide <= s->value_head; e += wide)
    weigh_values(s, values, nq, w, weights, any, e, together, LANES);
  const uint32_t rest = s->value_head % wide, at = s->value_head - rest;
  if (rest)
    weigh_values(s, values, nq, w, weights, any, at, (int)((rest + LANES - 1) / LANES),
                 rest % LANES ? rest % LANES : LANES);
}

/* ---- one token: page by page --------------------------------------------------------------- */

/* Queries per pass: the heads that share a key-value head, up to CPU_QUERIES. */
INLINE int pass_queries(uint32_t queries) {
  return queries < CPU_QUERIES ? (int)queries : (int)CPU_QUERIES;
}

/* The parts of all heads of one (token, kv head, page). */
INLINE void partial_tile(const call *c, uint32_t row, uint32_t kv_head, uint32_t page) {
  const cpu_shape *s = c->s;
  const uint32_t per = s->heads / s->kv_heads;
  const int nq = pass_queries(per);
  view v = view_of(c, row);
  uint8_t *at = readable_page(c, v.lane, page);
  uint64_t seen = seen_slots(c, v, page);
  const float *q = (const float *)(const void *)(c->env->workspace + c->place->in[0]) +
                   ((size_t)row * s->heads + kv_head * per) * s->key_head;
  for (uint32_t first = 0; first < per; first += (uint32_t)nq) {
    page_work w = {.o = (float *)(void *)(c->stack + cpu_stack_extra(s))};
    for (int i = 0; i < nq; i++) {
      uint32_t head = first + (uint32_t)i < per ? first + (uint32_t)i : per - 1;
      w.q[i] = q + head * s->key_head;
      w.seen[i] = seen;
    }
    attend_page(s, keys_of(s, at, kv_head), values_of(s, at, kv_head), nq, &w);
    for (int i = 0; i < nq; i++) {
      if (first + (uint32_t)i >= per) break;
      float *to = stored_part(c, c->env->workspace + c->place->out, row,
                              kv_head * per + first + (uint32_t)i, page);
      to[0] = w.parts[i].m;
      to[1] = w.parts[i].l;
      copy_floats(to + 2, w.o + (uint32_t)i * s->value_head, s->value_head);
    }
  }
}

/* partial[T][heads][table_entries][2 + value_head]; tiles are (token, kv head, page), pages
 * fastest, counted over the pages that are seen */
KERNEL(attention_partial) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list), total = 0, skipped = 0;
  for (uint32_t i = 0; i < count; i++) total += s->kv_heads * page_count(s, view_of(c, list[i]));
  span run = share(c, total);
  for (uint32_t i = 0; i < count && skipped < run.end; i++) {
    view v = view_of(c, list[i]);
    uint32_t pages = page_count(s, v), tiles = s->kv_heads * pages;
    uint32_t begin = run.begin > skipped ? run.begin - skipped : 0;
    uint32_t end = run.end - skipped < tiles ? run.end - skipped : tiles;
    for (uint32_t tile = begin; tile < end; tile++)
      partial_tile(c, list[i], tile / pages, first_page(s, v) + tile % pages);
    skipped += tiles;
  }
}

/* out[T][heads * value_head]; tiles are (token, head) */
KERNEL(attention_combine) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  span run = share(c, count * s->heads);
  for (uint32_t tile = run.begin; tile < run.end; tile++) {
    uint32_t row = list[tile / s->heads], head = tile % s->heads;
    combine_head(c, row, head, row_f(output(c), row) + head * s->value_head);
  }
}

/* ---- many tokens --------------------------------------------------------------------------- */

/* Queries of a tile, tokens slowest: (token, head of the group). */
typedef struct tile_work {
  uint32_t kv_head, first_row, queries;
  part *totals;
  float *page_o;
} tile_work;

INLINE void tile_page(const call *c, const tile_work *t, uint32_t lane, uint32_t page) {
  const cpu_shape *s = c->s;
  const uint32_t per = s->heads / s->kv_heads;
  const int nq = pass_queries((s->tile_rows ? s->tile_rows : 1) * per);
  uint8_t *at = readable_page(c, lane, page);
  for (uint32_t first = 0; first < t->queries; first += (uint32_t)nq) {
    page_work w = {.o = t->page_o};
    uint64_t any = 0;
    for (int i = 0; i < nq; i++) {
      uint32_t query = first + (uint32_t)i < t->queries ? first + (uint32_t)i : t->queries - 1;
      uint32_t row = t->first_row + query / per, head = t->kv_head * per + query % per;
      w.q[i] = (const float *)(const void *)(c->env->workspace + c->place->in[0]) +
               ((size_t)row * s->heads + head) * s->key_head;
      w.seen[i] = seen_slots(c, view_of(c, row), page);
      any |= w.seen[i];
    }
    if (any == 0) continue;
    attend_page(s, keys_of(s, at, t->kv_head), values_of(s, at, t->kv_head), nq, &w);
    for (int i = 0; i < nq; i++) {
      if (first + (uint32_t)i >= t->queries) break;
      uint32_t query = first + (uint32_t)i, row = t->first_row + query / per;
      float *o = row_f(output(c), row) + (t->kv_head * per + query % per) * s->value_head;
      merge_part(&t->totals[query], o, w.parts[i], w.o + (uint32_t)i * s->value_head,
                 s->value_head);
    }
  }
}

/* One kv head and up to tile_rows tokens of one lane. */
INLINE void attention_tile(const call *c, uint32_t kv_head, uint32_t row, uint32_t tokens) {
  const cpu_shape *s = c->s;
  const uint32_t per = s->heads / s->kv_heads;
  part *totals = (part *)(void *)(c->stack + cpu_stack_extra(s));
  tile_work t = {kv_head, row, tokens * per, totals,
                 (float *)(void *)(totals + (s->tile_rows ? s->tile_rows : 1) * per)};
  for (uint32_t i = 0; i < t.queries; i++) totals[i] = (part){NOTHING_SEEN, 0};
  view first = view_of(c, row), last = view_of(c, row + tokens - 1);
  for (uint32_t page = first_page(s, first); page <= last.slot / s->page_tokens; page++)
    tile_page(c, &t, first.lane, page);
  for (uint32_t i = 0; i < t.queries; i++)
    finish_part(totals[i],
                row_f(output(c), row + i / per) + (kv_head * per + i % per) * s->value_head,
                s->value_head);
}

/* q[T][heads][key_head] -> out[T][heads][value_head]; tiles are (kv head, block of tokens) */
KERNEL(attention) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  const uint32_t rows_per = s->tile_rows ? s->tile_rows : 1;
  uint32_t blocks = 0;
  for (uint32_t lane = 0; lane < s->lanes; lane++)
    blocks += (lane_valid(c, lane) + rows_per - 1) / rows_per;
  span run = share(c, s->kv_heads * blocks);
  for (uint32_t tile = run.begin; tile < run.end; tile++) {
    uint32_t block = tile % blocks, lane = 0;
    for (uint32_t here; block >= (here = (lane_valid(c, lane) + rows_per - 1) / rows_per); lane++)
      block -= here;
    uint32_t at = block * rows_per, left = lane_valid(c, lane) - at;
    attention_tile(c, tile / blocks, lane * lane_rows(s) + at, left < rows_per ? left : rows_per);
  }
}
