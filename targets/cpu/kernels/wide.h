/* The tokens that a matrix meets, and the form in which they meet it.
 *
 * Quantised weights want integers. Where the program keeps activations in float32 (because 8 bits
 * would cost too much accuracy there) and does not ask for precision throughout, they are rounded
 * to 16 bits, a block of 32 at a time: d = max|x| / 32767, q = x / d to the nearest, s = d *
 * sum(q). That is exact for all practical purposes, at half the speed of 8 bits and three times
 * that of decoded weights. Within each 4 columns the order is 0, 2, 1, 3: two of them are
 * multiplied with the even bytes of a row, then two with the odd ones. */
#ifndef CPU_WIDE_H
#define CPU_WIDE_H

#include "act.h"
#include "amx.h"

typedef struct operands {
  rows x;
  const uint32_t *list; /* of the op's valid tokens */
  uint32_t count;
  uint32_t begin, end; /* those that are in the wide rows now */
  uint8_t *wide;
} operands;

INLINE operands operands_of(const call *c) {
  uint32_t *list, count = list_tokens(c, &list);
  operands o = {.list = list, .count = count, .wide = c->stack + cpu_stack_wide(c->s)};
  o.x = matrix_input(c, list, count);
  if (uses_tiles(c->s)) tiles_begin();
  return o;
}
/* When the op is done with them. */
INLINE void release_operands(const call *c) {
  if (uses_tiles(c->s)) tiles_end();
}

/* planes: as two planes of bytes, low ones first, in the order of the columns, see amx.h. */
INLINE void widen_block(vf low, vf high, bool planes, uint8_t *q, float *d, float *s,
                        int32_t *sums) {
  typedef uint8_t v16b __attribute__((vector_size(16)));
  typedef int16_t v16s __attribute__((vector_size(32)));
  float scale = largest_f(max_f(abs_f(low), abs_f(high))) / 32767.0f;
  float divisor = scale == 0 ? 1.0f : scale;
  vi ql = round_i(low / divisor), qh = round_i(high / divisor);
  vi sl = __builtin_shufflevector(ql, ql, 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  vi sh = __builtin_shufflevector(qh, qh, 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  v16s bl = __builtin_convertvector(sl, v16s), bh = __builtin_convertvector(sh, v16s);
  if (planes) {
    v16b bytes[] = {
        __builtin_convertvector(ql & 255, v16b), __builtin_convertvector(qh & 255, v16b),
        __builtin_convertvector(ql >> 8 & 255, v16b), __builtin_convertvector(qh >> 8 & 255, v16b)};
    __builtin_memcpy(q, bytes, 64);
  } else {
    __builtin_memcpy(q, &bl, 32);
    __builtin_memcpy(q + 32, &bh, 32);
  }
  sums[0] = __builtin_reduce_add(ql);
  sums[1] = __builtin_reduce_add(qh);
  *d = scale;
  *s = scale * (float)(sums[0] + sums[1]);
}

INLINE void widen_row(const float *x, uint32_t columns, bool planes, uint8_t *to) {
  float *d = (float *)(void *)(to + columns * 2), *s = d + columns / CPU_BLOCK;
  int32_t *sums = (int32_t *)(void *)(s + columns / CPU_BLOCK);
  for (uint32_t b = 0; b < columns / CPU_BLOCK; b++)
    widen_block(load_f(x + b * CPU_BLOCK), load_f(x + b * CPU_BLOCK + LANES), planes,
                to + b * CPU_BLOCK * 2, d + b, s + b, sums + 2 * b);
}

/* Makes tokens from `begin` on ready; false when there are none. Ops call it until then:
 *   for (uint32_t at = 0; next_tokens(c, &o, at); at = o.end) */
INLINE bool next_tokens(const call *c, operands *o, uint32_t begin) {
  if (begin >= o->count) return false;
  o->begin = begin;
  o->end = o->count;
  if (!c->s->wide) return true;
  if (o->end - begin > CPU_WIDE_TOKENS) o->end = begin + CPU_WIDE_TOKENS;
  for (uint32_t i = begin; i < o->end; i++)
    widen_row(row_f(o->x, o->list[i]), o->x.columns, uses_tiles(c->s),
              o->wide + (size_t)(i - begin) * cpu_wide_bytes(o->x.columns));
  return true;
}

/* The rows that a matrix meets. */
INLINE rows operand(const call *c, const operands *o, const cpu_matrix *m) {
  rows x = o->x;
  if (c->s->wide && m->scheme > STELE_BF16) x.scheme = CPU_WIDE;
  return x;
}

/* The tokens of one pass: at .. at + nt of those that are ready, the last one again past the end.
 */
INLINE void take_rows(const operands *o, rows x, uint32_t at, const int nt,
                      const uint8_t **out_rows) {
  UNROLL
  for (int t = 0; t < nt; t++) {
    uint32_t i = at + (uint32_t)t < o->end ? at + (uint32_t)t : o->end - 1;
    out_rows[t] = x.scheme == CPU_WIDE
                      ? o->wide + (size_t)(i - o->begin) * cpu_wide_bytes(x.columns)
                      : row_of(x, o->list[i]);
  }
}

#endif
