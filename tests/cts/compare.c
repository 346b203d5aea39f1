/* What two runs of a program left behind, number by number.
 *
 * Floats agree when they differ by at most a tolerance times the largest magnitude of the same
 * array: 3e-5 for float32 arithmetic in another order; a case whose activations are quantised
 * on the way says more, since a number between two steps may be rounded either way; cached
 * numbers get half a step of their scheme. Poison must be in the same places: what a call should
 * not touch it has not touched. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "build.h"
#include "ref/interpret.h"

#define TOLERANCE 3e-5

typedef struct view {
  const char *what;
  const uint8_t *expected, *found;
  double tolerance; /* relative to the largest; 0: bit for bit */
} view;

static bool differs(stele_sink *sink, const view *v, uint64_t index, double expected,
                    double found) {
  base_fail(sink, STELE_FAILED, "%s [%llu]: expected %.9g, found %.9g", v->what,
            (unsigned long long)index, expected, found);
  return false;
}

static double number(uint32_t scheme, const uint8_t *base, uint64_t index) {
  if (scheme == STELE_F32) {
    float value;
    memcpy(&value, base + index * 4, 4);
    return (double)value;
  }
  uint16_t half;
  memcpy(&half, base + index * 2, 2);
  return (double)(scheme == STELE_F16 ? base_f16_to_f32(half) : base_bf16_to_f32(half));
}

static bool same_numbers(const view *v, uint32_t scheme, uint64_t count, stele_sink *sink) {
  double largest = 0;
  for (uint64_t i = 0; i < count; i++) {
    double e = number(scheme, v->expected, i);
    if (isfinite(e)) largest = fmax(largest, fabs(e));
  }
  for (uint64_t i = 0; i < count; i++) {
    double e = number(scheme, v->expected, i), f = number(scheme, v->found, i);
    if (isnan(e) != isnan(f)) return differs(sink, v, i, e, f);
    if (isnan(e) || e == f) continue;
    if (!(fabs(e - f) <= v->tolerance * largest)) return differs(sink, v, i, e, f);
  }
  return true;
}

static bool same_words(const view *v, uint64_t count, stele_sink *sink) {
  const int32_t *e = (const int32_t *)(const void *)v->expected;
  const int32_t *f = (const int32_t *)(const void *)v->found;
  for (uint64_t i = 0; i < count; i++)
    if (e[i] != f[i]) return differs(sink, v, i, e[i], f[i]);
  return true;
}

/* Records of quantised activations: d, the numbers they stand for, the sums of q and s = d * sum.
 */
static bool same_quantised(const view *v, uint32_t rows, uint32_t columns, stele_sink *sink) {
  uint32_t blocks = columns / 32;
  for (uint64_t row = 0; row < rows; row++) {
    const uint8_t *e = v->expected + row * stele_q8_row_bytes(columns);
    const uint8_t *f = v->found + row * stele_q8_row_bytes(columns);
    const int16_t *sums = (const int16_t *)(const void *)(f + columns + 8 * blocks);
    for (uint32_t b = 0; b < blocks; b++) {
      double ed = number(STELE_F32, e + columns, b), fd = number(STELE_F32, f + columns, b);
      double s = number(STELE_F32, f + columns, blocks + b);
      int sum[2] = {0};
      if (isnan(ed) != isnan(fd)) return differs(sink, v, row * columns + b * 32, ed, fd);
      if (isnan(ed)) continue;
      if (!(fabs(ed - fd) <= (v->tolerance > 1e-2 ? 1e-2 : 1e-4) * ed))
        return differs(sink, v, b, ed, fd);
      for (uint32_t i = 0; i < 32; i++) {
        int q = (int8_t)f[b * 32 + i];
        double x = (int8_t)e[b * 32 + i] * ed, y = q * fd;
        if (!(fabs(x - y) <= v->tolerance * 127 * ed))
          return differs(sink, v, row * columns + b * 32 + i, x, y);
        sum[i / 16] += q;
      }
      for (uint32_t half = 0; half < 2; half++)
        if (sums[2 * b + half] != sum[half])
          return differs(sink, v, 2 * b + half, sum[half], sums[2 * b + half]);
      double product = fd * (sum[0] + sum[1]);
      if (!(fabs(s - product) <= 1e-5 * (fabs(s) + fd))) return differs(sink, v, b, product, s);
    }
  }
  return true;
}

/* Rows of floats, each by itself: what is large in one says nothing of another. */
static bool same_rows(const view *v, uint32_t rows, uint32_t columns, stele_sink *sink) {
  for (uint64_t row = 0; row < rows; row++) {
    view one = *v;
    one.expected += row * columns * sizeof(float);
    one.found += row * columns * sizeof(float);
    if (!same_numbers(&one, STELE_F32, columns, sink)) return false;
  }
  return true;
}

static bool same_buffer(const cts_program *p, uint32_t i, view *v, stele_sink *sink) {
  const stele_buffer *b = &p->buffers[i];
  char what[64];
  snprintf(what, sizeof what, "buffer %u (%u x %u)", i, b->tokens, b->columns);
  v->what = what;
  v->expected += b->offset;
  v->found += b->offset;
  if (p->loose[i] > 0) v->tolerance = p->loose[i];
  uint32_t records = p->records[i] ? p->records[i] : 1;
  if (b->scheme == STELE_F32 && p->records[i])
    return same_rows(v, b->tokens * records, b->columns / records, sink);
  if (b->scheme == STELE_F32)
    return same_numbers(v, STELE_F32, (uint64_t)b->tokens * b->columns, sink);
  if (b->scheme == STELE_Q8_0)
    return same_quantised(v, b->tokens * records, b->columns / records, sink);
  return same_words(v, b->tokens, sink);
}

/* How far two roundings of nearly the same number may lie apart, of the largest. */
static double cache_step(uint32_t scheme) {
  switch (scheme) {
    case STELE_F16:
      return 1e-3;
    case STELE_BF16:
      return 8e-3;
    case STELE_Q8_0:
      return 1.01 / 127;
    case STELE_Q4_0:
      return 1.01 / 8;
    default:
      return TOLERANCE;
  }
}

/* The keys or values of a page, as the numbers that they stand for. */
static bool same_page(const view *v, const stele_group *g, bool value, stele_sink *sink) {
  uint32_t size = value ? g->value_head : g->key_head;
  float (*get)(const stele_group *, const uint8_t *, uint32_t, uint32_t, uint32_t) =
      value ? ref_value : ref_key;
  double largest = 0;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < g->kv_heads * g->page_tokens * size; i++) {
      uint32_t head = i / size / g->page_tokens, slot = i / size % g->page_tokens;
      double e = (double)get(g, v->expected, head, slot, i % size);
      double f = (double)get(g, v->found, head, slot, i % size);
      if (pass == 0 && isfinite(e)) largest = fmax(largest, fabs(e));
      if (pass == 0) continue;
      if (isnan(e) != isnan(f)) return differs(sink, v, i, e, f);
      if (isnan(e) || e == f) continue;
      if (!(fabs(e - f) <= v->tolerance * largest)) return differs(sink, v, i, e, f);
    }
  return true;
}

/* Keys and values of all pages; the space between them is nobody's. */
static bool same_pages(const cts_program *p, const cts_call *expected, const cts_call *found,
                       stele_sink *sink) {
  const stele_group *g = &p->groups[0];
  double tolerance = fmax(cache_step(g->key_scheme), cts_linear_tolerance(p->mode));
  for (uint32_t page = 0; page < cts_pool_pages(p); page++) {
    uint64_t at = page * g->page_bytes;
    char what[32];
    snprintf(what, sizeof what, "keys of page %u", page);
    view v = {what, expected->pool + at, found->pool + at, tolerance};
    if (!same_page(&v, g, false, sink)) return false;
    if (g->value_in_key) continue;
    snprintf(what, sizeof what, "values of page %u", page);
    if (!same_page(&v, g, true, sink)) return false;
  }
  return true;
}

static bool same_outputs(const cts_program *p, const cts_call *expected, const cts_call *found,
                         stele_sink *sink) {
  double tolerance = fmax(TOLERANCE, cts_linear_tolerance(p->mode));
  view logits = {"logits", (const uint8_t *)expected->args.out_logits,
                 (const uint8_t *)found->args.out_logits, tolerance};
  view hidden = {"hidden states", (const uint8_t *)expected->args.out_hidden,
                 (const uint8_t *)found->args.out_hidden, tolerance};
  view tokens = {"tokens", (const uint8_t *)expected->args.out_tokens,
                 (const uint8_t *)found->args.out_tokens, 0};
  return same_numbers(&logits, STELE_F32, expected->logits, sink) &&
         same_numbers(&hidden, STELE_F32, expected->hidden, sink) &&
         same_words(&tokens, expected->tokens, sink);
}

static bool same_bytes(const char *what, const void *expected, const void *found, uint64_t bytes,
                       stele_sink *sink) {
  if (!bytes || memcmp(expected, found, bytes) == 0) return true;
  base_fail(sink, STELE_FAILED, "%s: not the same bits", what);
  return false;
}

static bool identical(const cts_program *p, const cts_call *expected, const cts_call *found,
                      stele_sink *sink) {
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    const stele_buffer *b = &p->buffers[i];
    if (p->checked[i] && !same_bytes("a buffer", expected->workspace + b->offset,
                                     found->workspace + b->offset, b->bytes, sink))
      return false;
  }
  return same_bytes("pages", expected->pool, found->pool, expected->pool_bytes, sink) &&
         same_bytes("logits", expected->args.out_logits, found->args.out_logits,
                    expected->logits * 4, sink) &&
         same_bytes("tokens", expected->args.out_tokens, found->args.out_tokens,
                    expected->tokens * 4, sink) &&
         same_bytes("hidden states", expected->args.out_hidden, found->args.out_hidden,
                    expected->hidden * 4, sink);
}

bool cts_compare(const cts_program *p, const cts_call *expected, const cts_call *found, bool exact,
                 stele_sink *sink) {
  if (exact) return identical(p, expected, found, sink);
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    view v = {NULL, expected->workspace, found->workspace, TOLERANCE};
    if (p->checked[i] && !same_buffer(p, i, &v, sink)) return false;
  }
  if (p->group_count && !same_pages(p, expected, found, sink)) return false;
  return same_outputs(p, expected, found, sink);
}
