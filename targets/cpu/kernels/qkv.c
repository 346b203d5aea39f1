/* What makes and stores keys and values: qkv_cache, rope, cache_update, cache_store. */
#include "cache.h"
#include "panel.h"
#include "wide.h"

/* ---- rope ---------------------------------------------------------------------------------- */

/* cosines [rotary / 2], then sines [rotary / 2] of a token's position */
INLINE const float *rope_row(const call *c, uint32_t row) {
  const cpu_shape *s = c->s;
  uint32_t index = row / lane_rows(s) * s->width + row % lane_rows(s);
  if (!s->rope_fixed) return c->args->rope + s->rope_before + (size_t)index * s->rotary;
  const float *table = (const float *)(const void *)(c->env->weights + c->place->rope);
  return table + (size_t)(uint32_t)c->args->positions[index] * s->rotary;
}

/* Up to 8 pairs of neighbours. */
INLINE void turn_neighbours(float *x, const float *cosine, const float *sine, uint32_t pairs) {
  vf v = load_run(x, 2 * pairs), cs = load_f_part(cosine, pairs), sn = load_f_part(sine, pairs);
  const vf sign = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
  cs = __builtin_shufflevector(cs, cs, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  sn = __builtin_shufflevector(sn, sn, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  vf other = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  store_run(x, v * cs + other * (sn * sign), 2 * pairs);
}

/* Turns the pairs of one head in place: (a, b) -> (a cos - b sin, b cos + a sin). */
INLINE void rope_head(const call *c, uint32_t row, float *head) {
  const cpu_shape *s = c->s;
  const uint32_t half = s->rotary / 2;
  if (half == 0) return;
  const float *cosine = rope_row(c, row), *sine = cosine + half;
  const bool halves = s->pairing == STELE_PAIR_HALVES;
  float *x = head + s->rope_offset;
  if (!halves) {
    for (uint32_t i = 0; i < half; i += LANES / 2)
      turn_neighbours(x + 2 * i, cosine + i, sine + i, half - i < LANES / 2 ? half - i : LANES / 2);
    return;
  }
  for (uint32_t i = 0; i < half; i += LANES) {
    const uint32_t count = half - i < LANES ? half - i : LANES;
    vf a = load_run(x + i, count), b = load_run(x + half + i, count);
    vf cs = load_run(cosine + i, count), sn = load_run(sine + i, count);
    store_run(x + i, a * cs - b * sn, count);
    store_run(x + half + i, b * cs + a * sn, count);
  }
}

/* Norm over one head, in place. */
INLINE void norm_head(const cpu_shape *s, float *x, const float *w, uint32_t n) {
  float factor = inverse_rms(x, n, s->head_eps);
  for (uint32_t i = 0; i + LANES <= n; i += LANES)
    store_f(x + i, norm_lanes(s, load_f(x + i), factor, load_f(w + i)));
  const uint32_t tail = n % LANES, at = n - tail;
  if (tail)
    store_f_part(x + at,
                 norm_lanes(s, load_f_part(x + at, tail), factor, load_f_part(w + at, tail)), tail);
}

/* ---- qkv_cache ----------------------------------------------------------------------------- */

enum { PART_Q, PART_K, PART_V };

/* One head of one part: what a tile stands for. */
typedef struct head_work {
  uint32_t part, head, size, rows; /* rows: of the part's matrix */
  const uint8_t *w;
  const float *bias; /* or NULL */
} head_work;

INLINE head_work head_of_tile(const call *c, uint32_t tile) {
  const cpu_shape *s = c->s;
  head_work h = {.part = PART_Q, .head = tile, .size = s->key_head};
  if (tile >= s->heads) h.part = PART_K, h.head = tile - s->heads;
  if (tile >= s->heads + s->kv_heads) {
    h = (head_work){.part = PART_V, .head = tile - s->heads - s->kv_heads, .size = s->value_head};
  }
  h.rows = s->matrix[h.part].rows;
  h.w = weight(c, STELE_W_A + (int)h.part);
  h.bias = s->matrix[h.part].bias ? vector(c, STELE_W_BIAS_A + (int)h.part) : NULL;
  return h;
}

/* Bias, norm, rope; then a query goes to the output, a key or value to the cache. */
INLINE void finish_head(const call *c, const head_work *h, uint32_t row, float *x) {
  const cpu_shape *s = c->s;
  if (h->part == PART_Q && s->q_norm) norm_head(s, x, vector(c, STELE_W_Q_NORM), s->key_head);
  if (h->part == PART_K && s->k_norm) norm_head(s, x, vector(c, STELE_W_K_NORM), s->key_head);
  if (h->part != PART_V) rope_head(c, row, x);
  if (h->part == PART_Q)
    copy_floats(row_f(output(c), row) + h->head * s->key_head, x, s->key_head);
  else
    put_token(c, row, h->head, h->part == PART_V, x);
}

/* Panels of a head: those that hold any of its rows. */
INLINE uint32_t head_panel(const head_work *h) { return h->head * h->size / CPU_PANEL; }
INLINE uint32_t head_panels(const head_work *h) {
  return ((h->head + 1) * h->size - 1) / CPU_PANEL - head_panel(h) + 1;
}

/* The heads of np tiles, streams as in panel.h, times the nt tokens from `at` on:
 * y[(p * nt + t) * stride + row - 16 * first panel]. like: a matrix with their scheme. */
INLINE void multiply_heads(const call *c, const operands *o, const head_work *h,
                           const cpu_matrix *like, uint32_t at, const int np, const int nt,
                           float *y) {
  const uint32_t stride = cpu_head_stride(c->s);
  const size_t bytes = panel_bytes(like->scheme, like->columns);
  const uint8_t *x_rows[CPU_MAX_TOKENS], *panels[STREAMS];
  rows x = operand(c, o, like);
  take_rows(o, x, at, nt, x_rows);
  uint32_t most = 0;
  for (int p = 0; p < np; p++) most = cpu_max(most, head_panels(&h[p]));
  for (uint32_t i = 0; i < most; i++) {
    vf lanes[STREAMS * CPU_MAX_TOKENS];
    UNROLL
    for (int p = 0; p < np; p++) {
      uint32_t last = head_panels(&h[p]) - 1;
      panels[p] = h[p].w + (head_panel(&h[p]) + (i < last ? i : last)) * bytes;
    }
    multiply_panels(like->scheme, x, panels, np, x_rows, nt, lanes);
    for (int p = 0; p < np; p++) {
      uint32_t row = (head_panel(&h[p]) + i) * CPU_PANEL;
      if (i >= head_panels(&h[p])) continue;
      for (int t = 0; t < nt; t++) {
        vf v = lanes[p * nt + t];
        if (h[p].bias) v = v + load_bias(h[p].bias, row, h[p].rows);
        store_f(y + (uint32_t)(p * nt + t) * stride + i * CPU_PANEL, v);
      }
    }
  }
}

/* Whether several heads can be made at once: where the three matrices have one scheme. */
INLINE bool are_alike(const cpu_matrix *m) {
  return m[0].scheme == m[1].scheme && m[0].scheme == m[2].scheme;
}

/* np tiles for all tokens that are ready; of those, `count` are this worker's. */
INLINE void make_heads(const call *c, const operands *o, const head_work *h, int count,
                       const int np, const int nt) {
  const cpu_shape *s = c->s;
  const cpu_matrix *m = s->matrix;
  const bool alike = are_alike(m);
  float *y = (float *)(void *)(c->stack + cpu_stack_extra(s));
  for (uint32_t at = o->begin; at < o->end; at += (uint32_t)nt) {
    if (alike || h->part == PART_Q)
      multiply_heads(c, o, h, &m[0], at, np, nt, y);
    else if (h->part == PART_K)
      multiply_heads(c, o, h, &m[1], at, np, nt, y);
    else
      multiply_heads(c, o, h, &m[2], at, np, nt, y);
    for (int i = 0; i < count * nt; i++) {
      const head_work *head = &h[i / nt];
      uint32_t token = at + (uint32_t)(i % nt);
      if (token < o->end)
        finish_head(c, head, o->list[token],
                    y + (uint32_t)i * cpu_head_stride(s) + head->head * head->size % CPU_PANEL);
    }
  }
}

INLINE int heads_at_once(const cpu_shape *s) {
  return are_alike(s->matrix) ? stream_count(pass_tokens(s)) : 1;
}
/* This worker's tiles, which are heads: of q, then k, then v. Streams as in panel.h, of tiles. */
INLINE streams head_streams(const call *c) {
  span tiles = share(c, c->s->heads + 2 * c->s->kv_heads);
  return split_panels(tiles.begin, tiles.end, heads_at_once(c->s));
}

BEFORE(qkv_cache) {
  const call *c = CALL;
  const streams run = head_streams(c);
  if (pass_tokens(c->s) > 2) return;
  for (int p = 0; p < heads_at_once(c->s) && stream_panel(run, 0, p) < run.end; p++) {
    head_work h = head_of_tile(c, stream_panel(run, 0, p));
    const cpu_matrix *m = &c->s->matrix[h.part];
    ask_early(h.w + head_panel(&h) * panel_bytes(m->scheme, m->columns));
  }
}

/* q[T][heads][key_head] = rope(norm(x Q^T + bias)); keys the same, and values without norm and
 * rope, go to the pages or the stage. */
KERNEL(qkv_cache) {
  const call *c = CALL;
  const int nt = pass_tokens(c->s), np = heads_at_once(c->s);
  const streams run = head_streams(c);
  operands o = operands_of(c);
  for (uint32_t begin = 0; next_tokens(c, &o, begin); begin = o.end)
    for (uint32_t round = 0; round < run.rounds; round++) {
      head_work h[STREAMS];
      int count = 0;
      for (int p = 0; p < np; p++) {
        uint32_t tile = stream_panel(run, round, p);
        count += tile < run.end;
        h[p] = head_of_tile(c, tile < run.end ? tile : run.end - 1);
        if (h[p].part != PART_Q && begin == 0 && tile < run.end)
          fill_first_image(c, h[p].head, h[p].part == PART_V);
      }
      make_heads(c, &o, h, count, np, nt);
    }
  release_operands(c);
}

/* ---- the same in single steps -------------------------------------------------------------- */

/* x[T][heads][head]: each head turned by the token's position */
KERNEL(rope) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  rows in = input(c, 0), out = output(c);
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++) {
    float *y = row_f(out, list[i]);
    __builtin_memmove(y, row_f(in, list[i]), out.columns * sizeof(float));
    for (uint32_t at = 0; at < out.columns; at += s->head) rope_head(c, list[i], y + at);
  }
}

/* k[T][kv_heads][key_head] and v[T][kv_heads][value_head] into the cache; tiles are kv heads */
KERNEL(cache_update) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  const float *k = (const float *)(const void *)(env->workspace + place->in[0]);
  const float *v = (const float *)(const void *)(env->workspace + place->in[1]);
  span heads = share(c, s->kv_heads);
  for (uint32_t head = heads.begin; head < heads.end; head++) {
    fill_first_image(c, head, false);
    if (!s->value_in_key) fill_first_image(c, head, true);
    for (uint32_t i = 0; i < count; i++) {
      size_t at = (size_t)list[i] * s->kv_heads + head;
      put_token(c, list[i], head, false, k + at * s->key_head);
      if (!s->value_in_key) put_token(c, list[i], head, true, v + at * s->value_head);
    }
  }
}

/* The valid slots of the stage go to the pages that store_pages names. */
KERNEL(cache_store) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  span heads = share(c, s->kv_heads);
  for (uint32_t lane = 0; lane < s->lanes; lane++) {
    uint32_t slot = (uint32_t)args->filled[lane], end = slot + (uint32_t)args->valid[lane];
    for (uint32_t image = 0; slot < end; image++) {
      uint32_t page = slot / s->page_tokens, begin = slot % s->page_tokens;
      uint32_t next = (page + 1) * s->page_tokens, stop = next < end ? next : end;
      uint32_t count = stop - slot;
      slot = stop;
      int32_t entry = table_entry(c, args->store_pages, lane, page);
      if (entry < 0) continue;
      uint8_t *from = stage_image(c, lane, image), *to = pool_page(c, entry);
      for (uint32_t head = heads.begin; head < heads.end; head++)
        copy_slots(s, to, from, head, begin, begin + count);
    }
  }
}
