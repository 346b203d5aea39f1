/* Inside of the reference interpreter: what its files share.
 *
 * Everything is done the slow and plain way: numbers are decoded a few at a time into floats on
 * the stack, sums are doubles, and no function knows of any layout but plain rows. The object
 * that is made of these files needs libc and libm alone. */
#ifndef REF_INTERPRET_H
#define REF_INTERPRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stele/program.h"

#define REF_MAX_HEAD 1024u /* elements of a head; emit refuses more */
#define REF_CHUNK 256u     /* numbers decoded at a time, a multiple of every block */
#define REF_BLOCK 32u      /* numbers per block of quantised activations */
#define REF_TOKENS 8u      /* tokens that share the decoding of a row */

/* One worker's view of one call. */
typedef struct ref_run {
  const stele_program *program;
  const stele_program_step *step;
  const stele_env *env;
  const stele_step_args *args;
  uint32_t worker, workers;
} ref_run;

/* Rows of activations: a buffer of the workspace or an output of the step. */
typedef struct ref_rows {
  uint8_t *base;
  uint32_t scheme, columns;
} ref_rows;

/* A token of an op: row `index` of its buffers, number `place` of its lane's new tokens. */
typedef struct ref_token {
  uint32_t index, lane, place;
} ref_token;

/* Runs worker's share of step number `step`; what the emitted step functions call. */
void ref_step(const stele_program *program, uint32_t step, const stele_env *env,
              const stele_step_args *args, uint32_t worker, uint32_t workers);

/* ---- rows.c: activations, weights, tokens ---------------------------------------------- */

ref_rows ref_buffer(const ref_run *run, int32_t buffer);
float *ref_f32(const ref_rows *rows, uint32_t row);
/* Reads or writes columns [first, first + count) of a row; of quantised rows whole blocks. */
void ref_read(const ref_rows *rows, uint32_t row, uint32_t first, uint32_t count, float *out);
void ref_write(const ref_rows *rows, uint32_t row, uint32_t first, uint32_t count,
               const float *values);

/* The tokens of an op that are valid in this call, and the k-th of them. */
uint32_t ref_token_count(const ref_run *run, const stele_op *op);
ref_token ref_token_get(const ref_run *run, const stele_op *op, uint32_t k);
/* This worker's run of `total` tiles. */
void ref_share(const ref_run *run, uint64_t total, uint64_t *out_begin, uint64_t *out_end);

const stele_program_weight *ref_weight(const ref_run *run, const stele_op *op, unsigned slot);
/* A vector of float32, NULL when the op has none in this slot. */
const float *ref_vector(const ref_run *run, const stele_op *op, unsigned slot);
/* Numbers [first, first + count) of a row of a matrix; first and count in whole blocks. */
void ref_decode(const ref_run *run, const stele_program_weight *weight, uint64_t row,
                uint32_t first, uint32_t count, float *out);

float ref_function(uint32_t function, float x);
/* 1 / sqrt(mean(x^2) + eps) */
float ref_inverse_rms(const float *x, uint32_t count, float eps);
/* The factor that a norm's weight stands for. */
float ref_norm_weight(const stele_op *op, const float *weight, uint32_t i);
/* What a norm does to a row: out = (x - mean) factor weight + bias. rms_norm has mean 0. */
typedef struct ref_norm {
  float mean, factor;
  const float *weight, *bias; /* bias NULL: zeros */
} ref_norm;
ref_norm ref_norm_of(const ref_run *run, const stele_op *op, bool center, const float *x,
                     uint32_t count);
float ref_norm_apply(const stele_op *op, const ref_norm *norm, float x, uint32_t i);
/* Turns one head in place by the angles of a token's position. */
void ref_rope_head(const ref_run *run, const stele_op *op, ref_token token, float *head);

/* ---- the ops, by file ------------------------------------------------------------------ */

/* tokens.c: what works token by token */
void ref_embed(const ref_run *run, const stele_op *op);
void ref_rms_norm(const ref_run *run, const stele_op *op);
void ref_layer_norm(const ref_run *run, const stele_op *op);
void ref_position_embed(const ref_run *run, const stele_op *op);
void ref_concat(const ref_run *run, const stele_op *op);
void ref_rope(const ref_run *run, const stele_op *op);
void ref_activation(const ref_run *run, const stele_op *op);
void ref_mul(const ref_run *run, const stele_op *op);
void ref_add(const ref_run *run, const stele_op *op);
void ref_scale(const ref_run *run, const stele_op *op);
void ref_soft_cap(const ref_run *run, const stele_op *op);
void ref_last_token(const ref_run *run, const stele_op *op);
void ref_argmax(const ref_run *run, const stele_op *op);
void ref_output(const ref_run *run, const stele_op *op);
void ref_output_token(const ref_run *run, const stele_op *op);

/* linear.c: what multiplies by a matrix */
void ref_prepare(const ref_run *run, const stele_op *op);
void ref_linear(const ref_run *run, const stele_op *op); /* and linear_add */
void ref_linear_argmax(const ref_run *run, const stele_op *op);
/* After all workers have done theirs: worker 0 merges the tiles' bests. */
void ref_linear_argmax_reduce(const ref_run *run, const stele_op *op);
void ref_gate_up(const ref_run *run, const stele_op *op);
void ref_head_linear(const ref_run *run, const stele_op *op);
/* The rows that a linear op multiplies with, after its prologue. */
ref_rows ref_linear_input(const ref_run *run, const stele_op *op);
/* out[j] = sum over c of weight[row][c] * x[tokens[j].index][c], j < count <= REF_TOKENS */
void ref_dot(const ref_run *run, const stele_program_weight *weight, uint64_t row,
             const ref_rows *x, const ref_token *tokens, uint32_t count, float *out);

/* experts.c: what chooses experts, and what they make of their tokens */
void ref_route(const ref_run *run, const stele_op *op);
void ref_experts_gate_up(const ref_run *run, const stele_op *op);
void ref_experts_down(const ref_run *run, const stele_op *op);

/* cache.c: what writes keys and values */
void ref_qkv_cache(const ref_run *run, const stele_op *op);
void ref_cache_update(const ref_run *run, const stele_op *op);
void ref_cache_store(const ref_run *run, const stele_op *op);
/* Where page `page` of a lane is for attention: the pool, or the stage. */
const uint8_t *ref_page(const ref_run *run, const stele_op *op, uint32_t lane, uint32_t page);
float ref_key(const stele_group *group, const uint8_t *page, uint32_t head, uint32_t slot,
              uint32_t element);
float ref_value(const stele_group *group, const uint8_t *page, uint32_t head, uint32_t slot,
                uint32_t element);
/* Stores a slot of one head in the group's scheme. */
void ref_put_key(const stele_group *group, uint8_t *page, uint32_t head, uint32_t slot,
                 const float *key);
void ref_put_value(const stele_group *group, uint8_t *page, uint32_t head, uint32_t slot,
                   const float *value);

/* attention.c */
void ref_attention(const ref_run *run, const stele_op *op);
void ref_attention_partial(const ref_run *run, const stele_op *op);
void ref_attention_combine(const ref_run *run, const stele_op *op);
/* Elements [first, first + count) of one head of a token, merged from the pages' parts. */
void ref_combine(const ref_run *run, const stele_op *op, ref_token token, uint32_t head,
                 uint32_t first, uint32_t count, float *out);

#endif
