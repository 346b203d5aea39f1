/* Attention's parts. Over the slots of a few pages a query has a part: the largest score m, the sum
 * l of exp(score - m), and the values o weighted by the same. A page's own is merged into that of
 * the part which program.h gives it to, parts are merged into the whole, both in the order of
 * pages and in the same steps, so a token gets the same bits whether it is decoded alone or among
 * others. */
#ifndef CPU_PART_H
#define CPU_PART_H

#include "call.h"

#define NOTHING_SEEN (-__builtin_inff())

typedef struct part {
  float m, l;
} part;

/* o[n] = o * a + v * b, without b where it is one's first part */
INLINE void scale_add(float *o, const float *v, uint32_t n, float a, float b) {
  for (uint32_t i = 0; i + LANES <= n; i += LANES)
    store_f(o + i, fma_f(load_f(o + i), splat(a), load_f(v + i) * b));
  const uint32_t tail = n % LANES, at = n - tail;
  if (tail)
    store_f_part(o + at, fma_f(load_f_part(o + at, tail), splat(a), load_f_part(v + at, tail) * b),
                 tail);
}
INLINE void copy_floats(float *to, const float *from, uint32_t n) {
  __builtin_memcpy(to, from, n * sizeof(float));
}

/* Merges a part (m, l, v[n]) into what the pages before it gave (total, o[n]). */
INLINE void merge_part(part *total, float *o, part p, const float *v, uint32_t n) {
  if (p.m == NOTHING_SEEN) return;
  if (total->m == NOTHING_SEEN) {
    *total = p;
    copy_floats(o, v, n);
    return;
  }
  float m = total->m > p.m ? total->m : p.m;
  vf e = {total->m - m, p.m - m};
  e = exp_f(e);
  total->m = m;
  total->l = fma_1(total->l, e[0], p.l * e[1]);
  scale_add(o, v, n, e[0], e[1]);
}

/* What the weighted values of a head are multiplied with in the end: 1 / l, where a sink, a score
 * without a value, adds to l. */
INLINE float share_of_part(const call *c, part total, uint32_t head) {
  if (!c->s->sinks) return 1.0f / total.l;
  float sink = vector(c, STELE_W_SINKS)[head], m = total.m > sink ? total.m : sink;
  vf e = {total.m - m, sink - m};
  e = exp_f(e);
  return e[0] / fma_1(total.l, e[0], e[1]);
}

/* The finished head: o times its share, zeros where nothing was seen. */
INLINE void finish_part(const call *c, part total, uint32_t head, float *o, uint32_t n) {
  if (total.m == NOTHING_SEEN) {
    __builtin_memset(o, 0, n * sizeof(float));
    return;
  }
  float inverse = share_of_part(c, total, head);
  for (uint32_t i = 0; i + LANES <= n; i += LANES) store_f(o + i, load_f(o + i) * inverse);
  const uint32_t tail = n % LANES, at = n - tail;
  if (tail) store_f_part(o + at, load_f_part(o + at, tail) * inverse, tail);
}

/* ---- what a token may see ------------------------------------------------------------------ */

/* Slots [first, slot]; empty when first > slot. */
typedef struct view {
  uint32_t lane, slot, first;
} view;

INLINE view view_of(const call *c, uint32_t row) {
  const cpu_shape *s = c->s;
  uint32_t lane = row / lane_rows(s);
  uint32_t slot = (uint32_t)c->args->filled[lane] + row % lane_rows(s);
  uint32_t first = (uint32_t)c->args->first[lane], bound = 0;
  if (s->window && s->group_kind == STELE_GROUP_CHUNK)
    bound = slot / s->window * s->window;
  else if (s->window && slot + 1 > s->window)
    bound = slot + 1 - s->window;
  return (view){lane, slot, first < bound ? bound : first};
}
INLINE uint32_t first_page(const cpu_shape *s, view v) { return v.first / s->page_tokens; }
INLINE uint32_t page_count(const cpu_shape *s, view v) {
  return v.first > v.slot ? 0 : v.slot / s->page_tokens - first_page(s, v) + 1;
}

/* Which of a page's slots the token sees, a bit each. */
INLINE uint64_t seen_slots(const call *c, view v, uint32_t page) {
  const cpu_shape *s = c->s;
  uint32_t begin = page * s->page_tokens, last = begin + s->page_tokens - 1;
  uint32_t low = v.first > begin ? v.first : begin, high = v.slot < last ? v.slot : last;
  if (low > high) return 0;
  uint64_t bits = (~0ull >> (63 - (high - low))) << (low - begin);
  if (c->args->mask)
    bits &= c->args->mask[(size_t)v.lane * s->mask_words + begin / 64] >> (begin % 64);
  return bits;
}

/* The end of the part that a page is in, not past `end`. */
INLINE uint32_t part_end(const cpu_shape *s, uint32_t page, uint32_t end) {
  uint32_t part = stele_program_part_of_page(s->part_limit, page);
  uint32_t next = stele_program_part_begin(s->part_limit, part + 1);
  return next < end ? next : end;
}

/* ---- parts in memory: f32 [T][heads][parts][2 + value_head] -------------------------------- */

INLINE float *stored_part(const call *c, uint8_t *base, uint32_t row, uint32_t head,
                          uint32_t page) {
  const cpu_shape *s = c->s;
  size_t index =
      ((size_t)row * s->heads + head) * s->parts + stele_program_part_of_page(s->part_limit, page);
  return (float *)(void *)base + index * (2 + s->value_head);
}

/* One head of a token, merged into o[value_head]. */
INLINE void combine_head(const call *c, uint32_t row, uint32_t head, float *o) {
  const cpu_shape *s = c->s;
  view v = view_of(c, row);
  part total = {NOTHING_SEEN, 0};
  uint32_t count = page_count(s, v), end = first_page(s, v) + count;
  for (uint32_t p = first_page(s, v); p < end; p = part_end(s, p, end)) {
    const float *from = stored_part(c, c->env->workspace + c->place->in[0], row, head, p);
    merge_part(&total, o, (part){from[0], from[1]}, from + 2, s->value_head);
  }
  finish_part(c, total, head, o, s->value_head);
}

/* All heads of a token: o[heads * value_head]. */
INLINE void combine_row(const call *c, uint32_t row, float *o) {
  for (uint32_t head = 0; head < c->s->heads; head++)
    combine_head(c, row, head, o + head * c->s->value_head);
}

#endif
