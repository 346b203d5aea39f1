/* What every kernel starts from: one worker's view of one op of one call. */
#ifndef CPU_CALL_H
#define CPU_CALL_H

#include <stdbool.h>

#include "shape.h"
#include "vec.h"

typedef struct call {
  const cpu_shape *s; /* a constant: everything read through it is a literal */
  const stele_env *env;
  const stele_step_args *args;
  const cpu_place *place;
  uint8_t *stack;
  uint32_t worker, workers;
} call;

/* A kernel is inlined into the op functions that the emitter makes. */
#define KERNEL(name)                                                                              \
  __attribute__((always_inline)) void cpu_op_##name(                                              \
      const cpu_shape *shape, const stele_env *env, const stele_step_args *args, uint32_t worker, \
      uint32_t workers, const cpu_place *place, uint8_t *stack);                                  \
  __attribute__((always_inline)) void cpu_op_##name(                                              \
      const cpu_shape *shape, const stele_env *env, const stele_step_args *args, uint32_t worker, \
      uint32_t workers, const cpu_place *place, uint8_t *stack)
/* Runs before the barrier in front of the op: what needs nothing that other workers make. */
#define BEFORE(name) KERNEL(before_##name)
#define CALL &(const call){shape, env, args, place, stack, worker, workers}

/* This worker's run of `total` tiles. */
typedef struct span {
  uint32_t begin, end;
} span;
INLINE span share(const call *c, uint32_t total) {
  return (span){(uint32_t)((uint64_t)total * c->worker / c->workers),
                (uint32_t)((uint64_t)total * (c->worker + 1) / c->workers)};
}

/* ---- tokens -------------------------------------------------------------------------------- */

/* Rows per lane of the op's buffers: the step's width, or one once only the last token is left. */
INLINE uint32_t lane_rows(const cpu_shape *s) { return s->tokens / s->lanes; }

INLINE uint32_t lane_valid(const call *c, uint32_t lane) {
  uint32_t valid = (uint32_t)c->args->valid[lane];
  return lane_rows(c->s) == c->s->width ? valid : valid > 0;
}

/* The rows of the valid tokens, in order; their number. */
INLINE uint32_t list_tokens(const call *c, uint32_t **out_list) {
  uint32_t *list = (uint32_t *)(void *)c->stack, count = 0;
  for (uint32_t lane = 0; lane < c->s->lanes; lane++) {
    uint32_t valid = lane_valid(c, lane);
    for (uint32_t i = 0; i < valid; i++) list[count++] = lane * lane_rows(c->s) + i;
  }
  *out_list = list;
  return count;
}

/* ---- buffers and weights ------------------------------------------------------------------- */

/* Rows of activations; scheme and columns are constants. */
typedef struct rows {
  uint8_t *base;
  uint32_t scheme, columns;
} rows;

/* program.h draws a quantised row. */
INLINE size_t row_bytes(rows r) {
  return r.scheme == STELE_Q8_0 ? stele_q8_row_bytes(r.columns) : (size_t)r.columns * 4;
}
INLINE uint8_t *row_of(rows r, uint32_t row) { return r.base + row * row_bytes(r); }
INLINE float *row_f(rows r, uint32_t row) { return (float *)(void *)row_of(r, row); }

INLINE rows input(const call *c, int which) {
  return (rows){c->env->workspace + c->place->in[which], c->s->in_scheme, c->s->in_columns};
}
INLINE rows output(const call *c) {
  if (c->s->out_logits) return (rows){(uint8_t *)c->args->out_logits, STELE_F32, c->s->vocab};
  return (rows){c->env->workspace + c->place->out, c->s->out_scheme, c->s->out_columns};
}
/* Rows that are float32 in any case: a residual, the second factor of a product. */
INLINE rows input_like_output(const call *c, int which) {
  return (rows){c->env->workspace + c->place->in[which], STELE_F32, output(c).columns};
}

INLINE const uint8_t *weight(const call *c, int slot) {
  return c->env->weights + c->place->weight[slot];
}
INLINE const float *vector(const call *c, int slot) {
  return (const float *)(const void *)weight(c, slot);
}

#endif
