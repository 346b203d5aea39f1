/* Pages of the cache: where they are, how numbers go in and out. A page is
 *   keys [kv_heads][page_tokens / P][key_head][P], P = min(16, page_tokens), then
 *   values [kv_heads][page_tokens][value_head] at value_offset. */
#ifndef CPU_CACHE_H
#define CPU_CACHE_H

#include "call.h"

INLINE uint32_t scheme_bytes(uint32_t scheme) { return scheme == STELE_F32 ? 4 : 2; }
/* Slots that are interleaved in the keys. */
INLINE uint32_t key_lanes(const cpu_shape *s) {
  return s->page_tokens < LANES ? s->page_tokens : LANES;
}
INLINE size_t key_bytes(const cpu_shape *s) { /* of one head in a page */
  return (size_t)s->page_tokens * s->key_head * scheme_bytes(s->key_scheme);
}
INLINE size_t value_bytes(const cpu_shape *s) {
  return (size_t)s->page_tokens * s->value_head * scheme_bytes(s->value_scheme);
}
/* A head's keys in a page: [page_tokens / P][key_head][P]. */
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

/* ---- numbers ------------------------------------------------------------------------------- */

/* count <= 16 numbers of a cache scheme; no byte beyond them is read. */
INLINE vf load_cached(uint32_t scheme, const uint8_t *p, uint32_t count) {
  if (scheme == STELE_F32) return count == LANES ? load_f(p) : load_f_part(p, count);
  vh h = count == LANES ? load_h(p) : load_h_part(p, count);
  return scheme == STELE_F16 ? from_f16(h) : from_bf16(h);
}
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
INLINE void store_numbers(uint32_t scheme, uint8_t *p, uint32_t stride, const float *x,
                          uint32_t count) {
  const uint32_t step = stride * scheme_bytes(scheme);
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
  const uint32_t lanes = key_lanes(s), bytes = scheme_bytes(s->key_scheme);
  uint8_t *at = keys_of(s, page, head) + (size_t)(place / lanes) * s->key_head * lanes * bytes +
                place % lanes * bytes;
  store_numbers(s->key_scheme, at, lanes, k, s->key_head);
}
INLINE void put_value(const call *c, uint8_t *page, uint32_t head, uint32_t place, const float *v) {
  const cpu_shape *s = c->s;
  uint8_t *at =
      values_of(s, page, head) + (size_t)place * s->value_head * scheme_bytes(s->value_scheme);
  store_numbers(s->value_scheme, at, 1, v, s->value_head);
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

#endif
