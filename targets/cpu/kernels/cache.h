/* Pages of the cache: where they are, how numbers go in and out. A page holds, for each kv head,
 *   keys    scales [key_head / 32][page_tokens] f16, numbers [page_tokens / P][key_head][P]
 *   values  scales [value_head / 32][page_tokens] f16, numbers [page_tokens][value_head]
 * with P = min(16, page_tokens); keys of all heads first, values from value_offset on. Scales are
 * there in block schemes alone. Numbers of q4_0 go in pairs: a byte holds element e of a block in
 * its low half and element e + 16 in its high one, so there key_head and value_head count bytes,
 * half as many. */
#ifndef CPU_CACHE_H
#define CPU_CACHE_H

#include "call.h"

INLINE bool has_scales(uint32_t scheme) { return scheme == STELE_Q8_0 || scheme == STELE_Q4_0; }
INLINE uint32_t scheme_bits(uint32_t scheme) {
  return scheme == STELE_F32 ? 32 : scheme == STELE_Q8_0 ? 8 : scheme == STELE_Q4_0 ? 4 : 16;
}
/* Of count numbers, without scales. */
INLINE uint32_t numbers_bytes(uint32_t scheme, uint32_t count) {
  return count * scheme_bits(scheme) / 8;
}
/* Of one place in a row of numbers. */
INLINE uint32_t unit_bytes(uint32_t scheme) {
  return scheme == STELE_Q4_0 ? 1 : scheme_bits(scheme) / 8;
}
/* Slots that are interleaved in the keys. */
INLINE uint32_t key_lanes(const cpu_shape *s) {
  return s->page_tokens < LANES ? s->page_tokens : LANES;
}
/* Of the scales of one head of so many elements in a page. */
INLINE uint32_t scales_bytes(const cpu_shape *s, uint32_t scheme, uint32_t size) {
  return has_scales(scheme) ? size / CPU_BLOCK * s->page_tokens * 2 : 0;
}
INLINE size_t key_bytes(const cpu_shape *s) { /* of one head in a page */
  return scales_bytes(s, s->key_scheme, s->key_head) +
         (size_t)s->page_tokens * numbers_bytes(s->key_scheme, s->key_head);
}
INLINE size_t value_bytes(const cpu_shape *s) {
  return scales_bytes(s, s->value_scheme, s->value_head) +
         (size_t)s->page_tokens * numbers_bytes(s->value_scheme, s->value_head);
}
INLINE uint8_t *keys_of(const cpu_shape *s, uint8_t *page, uint32_t head) {
  return page + head * key_bytes(s);
}
INLINE uint8_t *values_of(const cpu_shape *s, uint8_t *page, uint32_t head) {
  return page + s->value_offset + head * value_bytes(s);
}

/* ---- where pages are ----------------------------------------------------------------------- */

INLINE int32_t table_entry(const call *c, const int32_t *const *tables, uint32_t lane,
                           uint32_t page) {
  return tables[c->s->group][(size_t)lane * c->s->table_entries + page];
}
INLINE uint8_t *pool_page(const call *c, int32_t entry) {
  return c->env->layer_pages[c->place->layer] + (size_t)entry * c->s->page_bytes;
}
/* The page that a lane's first new token goes to; image 0 of the stage stands for it. */
INLINE uint32_t first_new_page(const call *c, uint32_t lane) {
  return (uint32_t)c->args->filled[lane] / c->s->page_tokens;
}
INLINE uint8_t *stage_image(const call *c, uint32_t lane, uint32_t image) {
  return c->env->workspace + c->place->stage +
         ((size_t)lane * c->s->stage_images + image) * c->s->page_bytes;
}
/* Where attention finds a page: the pool, or what this step has staged. */
INLINE uint8_t *readable_page(const call *c, uint32_t lane, uint32_t page) {
  if (c->s->flags & STELE_FLAG_STAGED) {
    uint32_t first = first_new_page(c, lane);
    if (page >= first) return stage_image(c, lane, page - first);
  }
  return pool_page(c, table_entry(c, c->args->read_pages, lane, page));
}

/* ---- numbers going in ---------------------------------------------------------------------- */

INLINE vh round_half(uint32_t scheme, vf v) { return scheme == STELE_F16 ? to_f16(v) : to_bf16(v); }

/* x[count] into p[count * stride], count <= 16; stride in numbers. */
INLINE void store_cached(uint32_t scheme, uint8_t *p, uint32_t stride, const float *x,
                         uint32_t count) {
  vf v = count == LANES ? load_f(x) : load_f_part(x, count);
  vh h = scheme == STELE_F32 ? (vh){0} : round_half(scheme, v);
  for (uint32_t i = 0; i < count; i++)
    if (scheme == STELE_F32)
      ((float *)(void *)p)[i * stride] = v[i];
    else
      ((uint16_t *)(void *)p)[i * stride] = h[i];
}

/* A scale in half precision, and what it is then; an infinite one would make zeros NaN. */
INLINE float round_scale(float d, uint8_t *to) {
  d = d > 65504.0f ? 65504.0f : d < -65504.0f ? -65504.0f : d;
  vh h = to_f16(splat(d));
  __builtin_memcpy(to, &h, 2);
  return from_f16(h)[0];
}
/* x / d to the nearest even number from low to high; 0 where d is 0. */
INLINE vi quotient(vf x, float d, float low, float high) {
  vf q = max_f(x / (d == 0 ? __builtin_inff() : d), splat(low));
  return round_i(select_f(q < high, q, splat(high)));
}

/* 32 numbers, those of one slot in a block, into p[i * stride]; the formulas are artifact.h's. */
INLINE void store_block(uint32_t scheme, uint8_t *p, uint32_t stride, uint8_t *scale, vf x0,
                        vf x1) {
  float high = largest_f(max_f(x0, x1)), low = largest_f(max_f(-x0, -x1));
  if (scheme == STELE_Q8_0) {
    float d = round_scale((high < low ? low : high) / 127.0f, scale);
    vi q0 = quotient(x0, d, -127, 127), q1 = quotient(x1, d, -127, 127);
    for (uint32_t i = 0; i < LANES; i++) {
      p[i * stride] = (uint8_t)q0[i];
      p[(i + LANES) * stride] = (uint8_t)q1[i];
    }
    return;
  }
  float d = round_scale((high < low ? -low : high) / -8.0f, scale);
  vi q = (quotient(x0, d, -8, 7) + 8) | (quotient(x1, d, -8, 7) + 8) << 4;
  for (uint32_t i = 0; i < LANES; i++) p[i * stride] = (uint8_t)q[i];
}

/* One slot's x[count]: numbers into p with so many places from one to the next; scales, where the
 * scheme has them, into scale with so many bytes from one block to the next. */
INLINE void store_numbers(uint32_t scheme, uint8_t *p, uint32_t stride, uint8_t *scale,
                          uint32_t scale_stride, const float *x, uint32_t count) {
  if (has_scales(scheme)) {
    for (uint32_t b = 0; b < count / CPU_BLOCK; b++)
      store_block(scheme, p + (size_t)numbers_bytes(scheme, b * CPU_BLOCK) * stride, stride,
                  scale + (size_t)b * scale_stride, load_f(x + b * CPU_BLOCK),
                  load_f(x + b * CPU_BLOCK + LANES));
    return;
  }
  const uint32_t step = stride * unit_bytes(scheme);
  for (uint32_t i = 0; i + LANES <= count; i += LANES)
    store_cached(scheme, p + (size_t)i * step, stride, x + i, LANES);
  const uint32_t tail = count % LANES, at = count - tail;
  if (tail) store_cached(scheme, p + (size_t)at * step, stride, x + at, tail);
}

/* ---- a step's own keys and values ---------------------------------------------------------- */

/* The page that takes the token in `slot`: an image of the stage, the page to store by, or NULL. */
INLINE uint8_t *writable_page(const call *c, uint32_t lane, uint32_t slot) {
  uint32_t page = slot / c->s->page_tokens;
  if (c->s->flags & STELE_FLAG_STAGED) return stage_image(c, lane, page - first_new_page(c, lane));
  int32_t entry = table_entry(c, c->args->store_pages, lane, page);
  return entry < 0 ? NULL : pool_page(c, entry);
}

INLINE void put_key(const call *c, uint8_t *page, uint32_t head, uint32_t place, const float *k) {
  const cpu_shape *s = c->s;
  const uint32_t lanes = key_lanes(s);
  uint8_t *scales = keys_of(s, page, head);
  uint8_t *numbers = scales + scales_bytes(s, s->key_scheme, s->key_head);
  numbers += (size_t)(place / lanes) * numbers_bytes(s->key_scheme, s->key_head) * lanes +
             place % lanes * unit_bytes(s->key_scheme);
  store_numbers(s->key_scheme, numbers, lanes, scales + place * 2, s->page_tokens * 2, k,
                s->key_head);
}
INLINE void put_value(const call *c, uint8_t *page, uint32_t head, uint32_t place, const float *v) {
  const cpu_shape *s = c->s;
  uint8_t *scales = values_of(s, page, head);
  uint8_t *numbers = scales + scales_bytes(s, s->value_scheme, s->value_head) +
                     (size_t)place * numbers_bytes(s->value_scheme, s->value_head);
  store_numbers(s->value_scheme, numbers, 1, scales + place * 2, s->page_tokens * 2, v,
                s->value_head);
}
/* A token's key or value, rounded to the cache's scheme. */
INLINE void put_token(const call *c, uint32_t row, uint32_t head, bool value, const float *x) {
  const cpu_shape *s = c->s;
  uint32_t lane = row / lane_rows(s);
  uint32_t slot = (uint32_t)c->args->filled[lane] + row % lane_rows(s);
  uint8_t *page = writable_page(c, lane, slot);
  if (!page) return;
  if (value)
    put_value(c, page, head, slot % s->page_tokens, x);
  else
    put_key(c, page, head, slot % s->page_tokens, x);
}

/* Image 0 of the stage begins with what the page already holds: a head's slots before the first
 * new one. (All slots are copied: the later ones are written over, or never seen.) */
INLINE void fill_first_image(const call *c, uint32_t head, bool value) {
  const cpu_shape *s = c->s;
  if (!(s->flags & STELE_FLAG_STAGED)) return;
  for (uint32_t lane = 0; lane < s->lanes; lane++) {
    if (lane_valid(c, lane) == 0 || (uint32_t)c->args->filled[lane] % s->page_tokens == 0) continue;
    int32_t entry = table_entry(c, c->args->read_pages, lane, first_new_page(c, lane));
    if (entry < 0) continue;
    uint8_t *from = pool_page(c, entry), *to = stage_image(c, lane, 0);
    if (!value)
      __builtin_memcpy(keys_of(s, to, head), keys_of(s, from, head), key_bytes(s));
    else
      __builtin_memcpy(values_of(s, to, head), values_of(s, from, head), value_bytes(s));
  }
}

/* ---- from the stage to a page: slots [begin, end) of one head ------------------------------ */

INLINE void copy_scales(const cpu_shape *s, uint8_t *to, const uint8_t *from, uint32_t blocks,
                        uint32_t begin, uint32_t end) {
  for (uint32_t b = 0; b < blocks; b++) {
    size_t at = ((size_t)b * s->page_tokens + begin) * 2;
    __builtin_memcpy(to + at, from + at, (end - begin) * 2);
  }
}
/* Runs of numbers, one for each row of 16 slots. */
INLINE void copy_keys(const cpu_shape *s, uint8_t *to, const uint8_t *from, uint32_t begin,
                      uint32_t end) {
  const uint32_t lanes = key_lanes(s), bytes = unit_bytes(s->key_scheme);
  const uint32_t rows = numbers_bytes(s->key_scheme, s->key_head) / bytes;
  const uint32_t scales = scales_bytes(s, s->key_scheme, s->key_head);
  if (scales) copy_scales(s, to, from, s->key_head / CPU_BLOCK, begin, end);
  for (uint32_t panel = begin / lanes; panel * lanes < end; panel++) {
    uint32_t low = panel * lanes < begin ? begin - panel * lanes : 0;
    uint32_t high = end - panel * lanes < lanes ? end - panel * lanes : lanes;
    for (uint32_t row = 0; row < rows; row++) {
      size_t at = scales + (((size_t)panel * rows + row) * lanes + low) * bytes;
      for (uint32_t i = 0; i < (high - low) * bytes; i++) to[at + i] = from[at + i];
    }
  }
}
INLINE void copy_values(const cpu_shape *s, uint8_t *to, const uint8_t *from, uint32_t begin,
                        uint32_t end) {
  const size_t row = numbers_bytes(s->value_scheme, s->value_head);
  const uint32_t scales = scales_bytes(s, s->value_scheme, s->value_head);
  if (scales) copy_scales(s, to, from, s->value_head / CPU_BLOCK, begin, end);
  __builtin_memcpy(to + scales + begin * row, from + scales + begin * row, (end - begin) * row);
}
INLINE void copy_slots(const cpu_shape *s, uint8_t *to, uint8_t *from, uint32_t head,
                       uint32_t begin, uint32_t end) {
  if (end - begin == s->page_tokens) {
    __builtin_memcpy(keys_of(s, to, head), keys_of(s, from, head), key_bytes(s));
    if (!s->value_in_key)
      __builtin_memcpy(values_of(s, to, head), values_of(s, from, head), value_bytes(s));
    return;
  }
  copy_keys(s, keys_of(s, to, head), keys_of(s, from, head), begin, end);
  if (!s->value_in_key)
    copy_values(s, values_of(s, to, head), values_of(s, from, head), begin, end);
}

#endif
