/* Attention over pages: softmax(scale q K^T) V over the slots that a token sees. For single tokens
 * it is made part by part and merged afterwards, so that workers share even one token's long cache;
 * where there are many tokens, a block of them goes over each page together. */
#include "page.h"

/* Queries per pass over a page: as few passes as can be, of one size. */
INLINE int pass_queries(uint32_t queries) {
  uint32_t passes = (queries + CPU_QUERIES - 1) / CPU_QUERIES;
  return (int)((queries + passes - 1) / passes);
}

/* What a token's scores are multiplied with. */
INLINE float score_scale(const call *c, uint32_t row) {
  const cpu_shape *s = c->s;
  if (s->query_scale == 0) return s->scale;
  uint32_t index = row / lane_rows(s) * s->width + row % lane_rows(s);
  float steps = __builtin_floorf(((float)c->args->positions[index] + 1) / s->query_floor);
  return s->scale * (1 + s->query_scale * __builtin_logf(1 + steps));
}

INLINE const float *query_of(const call *c, uint32_t row, uint32_t head) {
  return (const float *)(const void *)(c->env->workspace + c->place->in[0]) +
         ((size_t)row * c->s->heads + head) * c->s->key_head;
}

/* ---- one token: part by part --------------------------------------------------------------- */

/* One token and kv head, the view's pages [begin, end). */
typedef struct partial_work {
  uint32_t row, kv_head, begin, end;
  view v;
} partial_work;

/* What is read after a page. */
INLINE head_page page_after(const call *c, const partial_work *w, uint32_t page) {
  if (page < w->v.slot / c->s->page_tokens) return head_page_of(c, w->v.lane, w->kv_head, page + 1);
  if (w->kv_head + 1 < c->s->kv_heads)
    return head_page_of(c, w->v.lane, w->kv_head + 1, first_page(c->s, w->v));
  return head_page_of(c, w->v.lane, w->kv_head, page);
}

/* The part of all heads of one (token, kv head). */
INLINE void partial_tile(const call *c, const partial_work *t) {
  const cpu_shape *s = c->s;
  const uint32_t per = s->heads / s->kv_heads;
  const int nq = pass_queries(per);
  const float scale = score_scale(c, t->row);
  float *page_o = (float *)(void *)(c->stack + cpu_stack_extra(s));
  for (uint32_t page = t->begin; page < t->end; page++) {
    head_page here = head_page_of(c, t->v.lane, t->kv_head, page), next = page_after(c, t, page);
    uint64_t seen = seen_slots(c, t->v, page);
    for (uint32_t first = 0; first < per; first += (uint32_t)nq) {
      page_work w = {.o = page_o};
      for (int i = 0; i < nq; i++) {
        uint32_t head = first + (uint32_t)i < per ? first + (uint32_t)i : per - 1;
        w.q[i] = query_of(c, t->row, t->kv_head * per + head);
        w.seen[i] = seen;
        w.scale[i] = scale;
      }
      attend_page(s, here, next, nq, &w);
      for (int i = 0; i < nq && first + (uint32_t)i < per; i++) {
        float *to = stored_part(c, c->env->workspace + c->place->out, t->row,
                                t->kv_head * per + first + (uint32_t)i, t->begin);
        part total = {to[0], to[1]};
        if (page == t->begin) {
          total = (part){NOTHING_SEEN, 0};
          __builtin_memset(to + 2, 0, s->value_head * sizeof(float));
        }
        merge_part(&total, to + 2, w.parts[i], w.o + (uint32_t)i * cpu_o_stride(s), s->value_head);
        to[0] = total.m;
        to[1] = total.l;
      }
    }
  }
}

/* partial[T][heads][parts][2 + value_head]; tiles are (token, kv head, part), parts fastest; a
 * worker does those that begin in its run of all their pages */
KERNEL(attention_partial) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list), total = 0, before = 0;
  for (uint32_t i = 0; i < count; i++) total += s->kv_heads * page_count(s, view_of(c, list[i]));
  span run = share(c, total);
  for (uint32_t i = 0; i < count; i++) {
    partial_work w = {.row = list[i], .v = view_of(c, list[i])};
    const uint32_t pages = page_count(s, w.v), first = first_page(s, w.v);
    for (; w.kv_head < s->kv_heads; w.kv_head++, before += pages) {
      if (before >= run.end || before + pages <= run.begin) continue;
      for (w.begin = first; w.begin < first + pages; w.begin = w.end) {
        uint32_t at = before + w.begin - first;
        w.end = part_end(s, w.begin, first + pages);
        if (at >= run.begin && at < run.end) partial_tile(c, &w);
      }
    }
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
  part *totals, *parts; /* of each query: all parts so far, the pages of this one so far */
  float *page_o, *part_o;
} tile_work;

INLINE float *tile_output(const call *c, const tile_work *t, uint32_t query) {
  const uint32_t per = c->s->heads / c->s->kv_heads;
  return row_f(output(c), t->first_row + query / per) +
         (t->kv_head * per + query % per) * c->s->value_head;
}

/* A page; `alone`: it is a part of its own. */
INLINE void tile_page(const call *c, const tile_work *t, uint32_t lane, uint32_t page, bool alone) {
  const cpu_shape *s = c->s;
  const uint32_t per = s->heads / s->kv_heads;
  const int nq = pass_queries(cpu_tile_queries(s));
  head_page here = head_page_of(c, lane, t->kv_head, page);
  for (uint32_t first = 0; first < t->queries; first += (uint32_t)nq) {
    page_work w = {.o = t->page_o};
    for (int i = 0; i < nq; i++) {
      uint32_t query = first + (uint32_t)i < t->queries ? first + (uint32_t)i : t->queries - 1;
      uint32_t row = t->first_row + query / per;
      w.q[i] = query_of(c, row, t->kv_head * per + query % per);
      w.seen[i] = seen_slots(c, view_of(c, row), page);
      w.scale[i] = score_scale(c, row);
    }
    attend_page(s, here, here, nq, &w);
    for (int i = 0; i < nq && first + (uint32_t)i < t->queries; i++) {
      uint32_t query = first + (uint32_t)i;
      float *o = alone ? tile_output(c, t, query) : t->part_o + query * cpu_o_stride(s);
      merge_part(alone ? &t->totals[query] : &t->parts[query], o, w.parts[i],
                 w.o + (uint32_t)i * cpu_o_stride(s), s->value_head);
    }
  }
}

/* The pages of a part, [begin, end). */
INLINE void tile_part(const call *c, const tile_work *t, uint32_t lane, uint32_t begin,
                      uint32_t end) {
  const cpu_shape *s = c->s;
  if (end - begin == 1) {
    tile_page(c, t, lane, begin, true);
    return;
  }
  for (uint32_t i = 0; i < t->queries; i++) t->parts[i] = (part){NOTHING_SEEN, 0};
  for (uint32_t page = begin; page < end; page++) tile_page(c, t, lane, page, false);
  for (uint32_t i = 0; i < t->queries; i++)
    merge_part(&t->totals[i], tile_output(c, t, i), t->parts[i], t->part_o + i * cpu_o_stride(s),
               s->value_head);
}

/* One kv head and up to tile_rows tokens of one lane. */
INLINE void attention_tile(const call *c, uint32_t kv_head, uint32_t row, uint32_t tokens) {
  const cpu_shape *s = c->s;
  const uint32_t per = s->heads / s->kv_heads, most = cpu_tile_queries(s);
  float *memory = (float *)(void *)(c->stack + cpu_stack_extra(s));
  tile_work t = {.kv_head = kv_head, .first_row = row, .queries = tokens * per, .page_o = memory};
  t.part_o = t.page_o + CPU_QUERIES * cpu_o_stride(s);
  t.totals = (part *)(void *)(t.part_o + most * cpu_o_stride(s));
  t.parts = t.totals + most;
  for (uint32_t i = 0; i < t.queries; i++) t.totals[i] = (part){NOTHING_SEEN, 0};
  view first = view_of(c, row), last = view_of(c, row + tokens - 1);
  const uint32_t end = last.slot / s->page_tokens + 1;
  for (uint32_t page = first_page(s, first), next; page < end; page = next) {
    next = part_end(s, page, end);
    tile_part(c, &t, first.lane, page, next);
  }
  for (uint32_t i = 0; i < t.queries; i++)
    finish_part(c, t.totals[i], kv_head * per + i % per, tile_output(c, &t, i), s->value_head);
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
