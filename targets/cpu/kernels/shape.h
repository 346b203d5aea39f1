/* What an op function knows when it is compiled, and what it is told when it runs. Shared by the
 * emitter, which fills both, and the kernels, which read them.
 *
 * A cpu_shape becomes a constant in the model's module. Every kernel is inlined into one function
 * per distinct shape, where loads from that constant fold: all bounds and strides are literals.
 * A cpu_place holds what differs between ops of one shape: where their weights and buffers are. */
#ifndef CPU_SHAPE_H
#define CPU_SHAPE_H

#include <stdint.h>

#include "stele/program.h"

#define CPU_PANEL 16u        /* rows that are interleaved in a packed matrix */
#define CPU_BLOCK 32u        /* numbers per block of the quantised schemes */
#define CPU_LAYOUT_PANELS 1u /* the layout number; layout.c draws it */
#define CPU_WIDE 256u        /* beside enum stele_scheme: activations of 16 bits, see wide.h */
#define CPU_WIDE_TOKENS 16u  /* as many are quantised so at a time */

typedef struct cpu_matrix {
  uint32_t scheme, rows, columns;
  uint32_t bias; /* 1: there is a vector of biases */
} cpu_matrix;

typedef struct cpu_shape {
  uint32_t kind;         /* enum stele_op_kind */
  uint32_t lanes, width; /* of the step */
  uint32_t tokens;       /* of the op */
  uint32_t tiles, tile_rows, flags;
  uint32_t prologue, function;

  uint32_t in_scheme, in_columns;
  uint32_t out_scheme, out_columns, out_logits;
  uint32_t prepared, prepared_scheme,
      prepared_bytes; /* 1: has a buffer per worker of so many bytes */

  cpu_matrix matrix[3]; /* weights A, B, C */
  uint32_t wide;        /* 1: float activations meet quantised weights as numbers of 16 bits */
  uint32_t norm, norm_bias, center; /* numbers of the norm's weight; 1: it has, it does */
  uint32_t q_norm, k_norm, sinks;

  uint32_t group, group_kind, window, heads, kv_heads, key_head, value_head;
  uint32_t key_scheme, value_scheme, value_in_key;
  uint32_t page_tokens, table_entries, page_bytes, value_offset, stage_images, mask_words;
  uint32_t parts, part_limit; /* see stele_program_part_of_page */

  uint32_t head, kept, rotary, rope_offset, pairing, rope_fixed, rope_before;
  uint32_t output_kind, vocab, hidden;
  float eps, head_eps, scale, soft_cap, query_scale, query_floor;

  uint32_t experts, experts_used; /* matrix: one expert's */
  uint32_t rule, normalise, correction, expert_groups, expert_groups_used, scale_input;
  float alpha, limit;
} cpu_shape;

typedef struct cpu_place {
  uint64_t weight[STELE_W_COUNT];                /* offsets in the weights */
  uint64_t rope;                                 /* the same, of the rope table */
  uint64_t in[2], out, prepared, scratch, stage; /* offsets in the workspace */
  uint32_t layer, output_index;
} cpu_place;

/* ---- memory of an op function's own frame --------------------------------------------------
 * Allocated by the emitter, because C has no arrays whose size is only constant after inlining:
 * the list of valid tokens, a row of activations, then what the kind of op needs. */

static inline uint32_t cpu_align64(uint32_t n) { return (n + 63u) / 64u * 64u; }
static inline uint32_t cpu_max(uint32_t a, uint32_t b) { return a > b ? a : b; }

static inline uint32_t cpu_stack_row(const cpu_shape *s) {
  return cpu_align64(s->tokens * (uint32_t)sizeof(uint32_t));
}
static inline uint32_t cpu_stack_extra(const cpu_shape *s) {
  uint32_t columns = cpu_max(cpu_max(s->in_columns, s->out_columns), s->matrix[0].columns);
  return cpu_stack_row(s) + cpu_align64(columns * (uint32_t)sizeof(float));
}
/* Floats of one token's head, whole panels whatever row of a panel it begins with. */
static inline uint32_t cpu_head_stride(const cpu_shape *s) {
  return (cpu_max(s->key_head, s->value_head) + 2 * CPU_PANEL) / CPU_PANEL * CPU_PANEL;
}
#define CPU_MAX_TOKENS 16u /* tokens per pass over a panel, at most */
#define CPU_QUERIES 6u     /* queries per pass over a page, at most */

/* Floats of one query's weighted values, whole vectors. */
static inline uint32_t cpu_o_stride(const cpu_shape *s) {
  return cpu_align64(s->value_head * (uint32_t)sizeof(float)) / (uint32_t)sizeof(float);
}

/* Queries of a tile of attention, at most. */
static inline uint32_t cpu_tile_queries(const cpu_shape *s) {
  return cpu_max(s->tile_rows, 1) * (s->heads / s->kv_heads);
}

/* Bytes of a row of 16-bit activations: int16 q[columns], float d[columns / 32], s[columns / 32],
 * int32 sums[columns / 16]. */
static inline uint32_t cpu_wide_bytes(uint32_t columns) {
  return columns * 2 + columns / CPU_BLOCK * 16;
}

static inline uint32_t cpu_stack_wide(const cpu_shape *s) {
  uint32_t floats = 0;
  if (s->kind == STELE_OP_QKV_CACHE || s->kind == STELE_OP_CACHE_UPDATE)
    floats = (CPU_MAX_TOKENS + 1) * cpu_head_stride(s);
  else if (s->heads && s->kv_heads) /* the attention family */
    floats = CPU_QUERIES * cpu_o_stride(s) + cpu_tile_queries(s) * (4 + cpu_o_stride(s));
  return cpu_stack_extra(s) + cpu_align64(floats * (uint32_t)sizeof(float));
}
/* Floats of all experts, whole vectors. */
static inline uint32_t cpu_expert_columns(const cpu_shape *s) {
  return cpu_align64(s->experts * (uint32_t)sizeof(float)) / (uint32_t)sizeof(float);
}
/* Tokens of experts (experts.c), or what a token's are chosen by (route.c). */
static inline uint32_t cpu_stack_experts(const cpu_shape *s) {
  uint32_t chosen = cpu_align64(s->tokens * s->experts_used * (uint32_t)sizeof(uint32_t));
  return 3 * cpu_max(cpu_expert_columns(s) * (uint32_t)sizeof(float), chosen) +
         cpu_expert_columns(s) * (uint32_t)sizeof(float);
}
static inline uint32_t cpu_stack_bytes(const cpu_shape *s) {
  uint32_t rows = s->tokens < CPU_WIDE_TOKENS ? s->tokens : CPU_WIDE_TOKENS;
  return cpu_stack_wide(s) + (s->wide ? rows * cpu_wide_bytes(s->matrix[0].columns) : 0) +
         cpu_stack_experts(s) + 64u;
}

#endif
