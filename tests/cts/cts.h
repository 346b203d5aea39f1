/* The conformance suite: programs of one op, or of the few that belong together, built by hand
 * and run by a target and by the reference interpreter; what they leave behind is compared.
 *
 *   cts.def    the rows: which op, which sizes
 *   build_*.c  an op's program from a row
 *   program.c  the builder under them, and the inputs
 *   execute.c  runs a program: by the interpreter directly, or as code of a target, linked and
 * loaded compare.c  what must agree, and how closely main.c     the command: --target T --cpu C
 * --precise --filter TEXT --list */
#ifndef CTS_H
#define CTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "stele/target.h"

/* How a linear op meets its input. */
typedef enum cts_mode {
  CTS_F32 = 0,     /* float32 rows as they are */
  CTS_F32_NORM,    /* a norm in the prologue */
  CTS_F32_COMBINE, /* attention's parts merged in the prologue */
  CTS_Q8,          /* rows that are quantised already */
  CTS_Q8_INLINE,   /* float32 rows, quantised by each worker */
  CTS_Q8_NORM,     /* a norm, then quantised */
  CTS_Q8_COMBINE,
  CTS_MODE_COUNT
} cts_mode;
#define CTS_BIT(n) (1u << (n))

/* A row of cts.def. Zero is a default where it makes no sense. */
typedef struct cts_shape {
  uint32_t schemes, modes, cache_schemes; /* masks: a case for each combination */
  uint32_t rows, columns;
  uint32_t lanes, width;  /* [1], [1] */
  uint32_t valid;         /* [width] of lane 0; each further lane has one less, at least 0 */
  uint32_t filled, first; /* of lane 0; each further lane has 3 and 1 more */
  uint32_t last;          /* the op has one token a lane, as after last_token */
  uint32_t tiles;         /* row_aligns in a tile [1] */
  uint32_t heads, kv_heads, key_head, value_head, page_tokens, capacity; /* value_head [key_head] */
  uint32_t window, chunk;
  uint32_t rotary, offset, interleaved, dynamic, head_norm;
  uint32_t bias, plus_one, function, segment, staged, mask, reuse, in_place, logits, q8_out, ties;
  uint32_t vocab, output, index;
  uint32_t experts, used, sigmoid, normalise, groups, used_groups, correction, scale_input;
  uint32_t center, kept, sinks, value_in_key, single;
  uint32_t lengths; /* a case each for so many numbers of columns from `columns` on */
  float soft_cap, query_scale;
} cts_shape;

struct cts_program;
typedef struct cts_row {
  uint32_t kind; /* enum stele_op_kind */
  const char *op, *name;
  void (*build)(struct cts_program *p, const cts_shape *shape);
  cts_shape shape;
} cts_row;
extern const cts_row cts_rows[];
extern const size_t cts_row_count;

/* ---- the builder ----------------------------------------------------------------------- */

#define CTS_MAX 24

typedef struct cts_weight {
  uint32_t scheme;
  uint64_t rows, columns;
  bool vector, embedding;
  uint32_t experts; /* matrices that the rows are of, 0: one */
  uint8_t *plain;   /* as a file has it */
  size_t bytes;
} cts_weight;

typedef enum cts_fill { CTS_POISON = 0, CTS_RANDOM } cts_fill;

/* A program in the making, with its inputs. Memory is the arena's. */
typedef struct cts_program {
  base_arena *arena;
  char name[160];
  uint64_t seed;
  const stele_target_traits *traits;
  uint32_t scheme, cache_scheme, precise;
  cts_mode mode;
  const cts_shape *shape;

  stele_program_step step;
  stele_op ops[CTS_MAX];
  stele_buffer buffers[CTS_MAX];
  cts_fill fill[CTS_MAX];    /* what is in the buffer before the call */
  bool checked[CTS_MAX];     /* the buffer is compared */
  double loose[CTS_MAX];     /* its relative tolerance, 0: the usual */
  uint32_t records[CTS_MAX]; /* a token's rows in it, which are compared by themselves; 0: one */
  cts_weight weights[CTS_MAX];
  stele_group groups[1];
  stele_program_rope ropes[2];
  uint32_t op_count, buffer_count, weight_count, group_count, rope_count;
  uint32_t vocab, hidden, layers, capacity;
  uint64_t workspace_bytes;
  /* where its things begin in the program that holds all cases of a row */
  uint32_t first_op, first_buffer, first_weight, first_group, first_rope;
} cts_program;

#define CTS_WORKERS 3u
#define CTS_MAX_CASES 128u /* of a row */

/* Numbers that depend on (seed, counter) alone; the float is in [-1, 1). */
uint64_t cts_random(uint64_t seed, uint64_t counter);
float cts_random_float(uint64_t seed, uint64_t counter);

/* Each adds a thing and returns its index. */
int32_t cts_buffer(cts_program *p, uint32_t tokens, uint32_t columns, uint32_t scheme);
int32_t cts_input(cts_program *p, uint32_t tokens, uint32_t columns, uint32_t scheme);
int32_t cts_output(cts_program *p, uint32_t tokens, uint32_t columns, uint32_t scheme);
int32_t cts_per_worker(cts_program *p, uint32_t tokens, uint32_t columns, uint32_t scheme);
int32_t cts_matrix(cts_program *p, uint32_t scheme, uint64_t rows, uint64_t columns,
                   bool embedding);
int32_t cts_vector(cts_program *p, uint64_t columns, float centre, float spread);
/* A fixed table with a row per position, or one whose rows come with the call. */
uint32_t cts_rope(cts_program *p, uint32_t rotary, bool dynamic);
/* The group of the shape, with a layer of its own. */
void cts_group(cts_program *p);
/* An op with every reference unset and T tokens of the step. */
stele_op *cts_op(cts_program *p, uint32_t kind);
uint32_t cts_tokens(const cts_program *p); /* lanes * width */
/* Cuts `rows` rows into tiles of whole row_aligns (and of `multiple` rows). */
void cts_tile(const cts_program *p, stele_op *op, uint64_t rows, uint32_t multiple);

/* The finished block of several cases, a step each, with weights laid out by a target (NULL:
 * plain), and the weights. Linking costs more than running, so a row's cases share a program. */
typedef struct cts_built {
  stele_program *program;
  uint8_t *weights;
} cts_built;
stele_status cts_finish(cts_program **cases, uint32_t count, const stele_target *target, void *self,
                        stele_sink *sink, cts_built *out) STELE_MUST_USE;

/* ---- running --------------------------------------------------------------------------- */

/* All memory of one call. */
typedef struct cts_call {
  stele_env env;
  stele_step_args args;
  uint8_t *workspace, *pool;
  uint64_t workspace_bytes, pool_bytes, logits, tokens, hidden; /* counts of the outputs */
} cts_call;

/* Fresh memory with the program's inputs, the same each time; everything else is poisoned with
 * NaNs. From the arena. */
stele_status cts_call_create(const cts_program *p, const stele_program *program, base_arena *arena,
                             cts_call *out) STELE_MUST_USE;
uint32_t cts_pool_pages(const cts_program *p);

/* Code of a target for one program, of one of its variants. */
typedef struct cts_code {
  void *library;
  const stele_step *steps;
} cts_code;
stele_status cts_code_load(const stele_target *target, void *self, const stele_program *program,
                           uint32_t variant, stele_sink *sink, cts_code *out) STELE_MUST_USE;
void cts_code_unload(cts_code *code);
void cts_call_run(cts_call *call, stele_step_function step, uint32_t workers);

/* True when both calls left the same behind, as closely as floats can be expected to; exact: bit
 * for bit. Otherwise a description of the first difference is in sink. */
bool cts_compare(const cts_program *p, const cts_call *expected, const cts_call *found, bool exact,
                 stele_sink *sink);

/* ---- programs of rows ------------------------------------------------------------------ */

void cts_build_embed(cts_program *p, const cts_shape *shape);
void cts_build_rms_norm(cts_program *p, const cts_shape *shape);
void cts_build_layer_norm(cts_program *p, const cts_shape *shape);
void cts_build_position_embed(cts_program *p, const cts_shape *shape);
void cts_build_concat(cts_program *p, const cts_shape *shape);
void cts_build_scale(cts_program *p, const cts_shape *shape);
void cts_build_soft_cap(cts_program *p, const cts_shape *shape);
void cts_build_head_linear(cts_program *p, const cts_shape *shape);
void cts_build_rope(cts_program *p, const cts_shape *shape);
void cts_build_activation(cts_program *p, const cts_shape *shape);
void cts_build_mul(cts_program *p, const cts_shape *shape);
void cts_build_add(cts_program *p, const cts_shape *shape);
void cts_build_last_token(cts_program *p, const cts_shape *shape);
void cts_build_argmax(cts_program *p, const cts_shape *shape);
void cts_build_output(cts_program *p, const cts_shape *shape);
void cts_build_output_token(cts_program *p, const cts_shape *shape);
void cts_build_prepare(cts_program *p, const cts_shape *shape);
void cts_build_linear(cts_program *p, const cts_shape *shape);
void cts_build_linear_add(cts_program *p, const cts_shape *shape);
void cts_build_linear_argmax(cts_program *p, const cts_shape *shape);
void cts_build_gate_up(cts_program *p, const cts_shape *shape);
void cts_build_route(cts_program *p, const cts_shape *shape);
void cts_build_experts_gate_up(cts_program *p, const cts_shape *shape);
void cts_build_experts_down(cts_program *p, const cts_shape *shape);
void cts_build_qkv_cache(cts_program *p, const cts_shape *shape);
void cts_build_cache_update(cts_program *p, const cts_shape *shape);
void cts_build_cache_store(cts_program *p, const cts_shape *shape);
void cts_build_attention(cts_program *p, const cts_shape *shape);
void cts_build_attention_partial(cts_program *p, const cts_shape *shape);
void cts_build_attention_combine(cts_program *p, const cts_shape *shape);

#endif
