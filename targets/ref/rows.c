/* Activations, weights and tokens, one number or one short run at a time. */
#include <math.h>
#include <string.h>

#include "interpret.h"
#include "weights/weights.h"

/* ---- activations ----------------------------------------------------------------------- */

ref_rows ref_buffer(const ref_run *run, int32_t buffer) {
  if (buffer == STELE_BUFFER_LOGITS)
    return (ref_rows){(uint8_t *)run->args->out_logits, STELE_F32, run->program->vocab};
  const stele_buffer *b = stele_program_buffers(run->program, (uint64_t)buffer);
  uint8_t *base = run->env->workspace + b->offset;
  if (b->per_worker) base += run->worker * b->bytes;
  return (ref_rows){base, b->scheme, b->columns};
}

float *ref_f32(const ref_rows *rows, uint32_t row) {
  return (float *)(void *)rows->base + (size_t)row * rows->columns;
}

/* A quantised row, as program.h draws it. */
typedef struct quantised_row {
  int8_t *q;     /* [columns] */
  float *d, *s;  /* [columns / 32] */
  int16_t *sums; /* [columns / 16] */
} quantised_row;

static quantised_row row_of(const ref_rows *rows, uint32_t row) {
  size_t blocks = rows->columns / REF_BLOCK;
  uint8_t *at = rows->base + row * stele_q8_row_bytes(rows->columns);
  float *d = (float *)(void *)(at + rows->columns);
  return (quantised_row){(int8_t *)at, d, d + blocks, (int16_t *)(void *)(d + 2 * blocks)};
}

void ref_read(const ref_rows *rows, uint32_t row, uint32_t first, uint32_t count, float *out) {
  if (rows->scheme == STELE_F32) {
    memcpy(out, ref_f32(rows, row) + first, count * sizeof(float));
    return;
  }
  quantised_row r = row_of(rows, row);
  for (uint32_t i = first; i < first + count; i++)
    out[i - first] = (float)r.q[i] * r.d[i / REF_BLOCK];
}

/* d = max|x| / 127, q = x / d to the nearest, ties to even; sums of q by halves; s = d * sum(q). */
static void quantise_block(const float *x, const quantised_row *r, uint32_t block) {
  float largest = 0;
  for (uint32_t i = 0; i < REF_BLOCK; i++) largest = fmaxf(largest, fabsf(x[i]));
  float d = largest / 127.0f;
  int sums[2] = {0};
  for (uint32_t i = 0; i < REF_BLOCK; i++) {
    int8_t q = (int8_t)(d == 0 ? 0 : nearbyintf(x[i] / d));
    r->q[block * REF_BLOCK + i] = q;
    sums[i / 16] += q;
  }
  r->d[block] = d;
  r->s[block] = d * (float)(sums[0] + sums[1]);
  for (uint32_t half = 0; half < 2; half++) r->sums[2 * block + half] = (int16_t)sums[half];
}

void ref_write(const ref_rows *rows, uint32_t row, uint32_t first, uint32_t count,
               const float *values) {
  if (rows->scheme == STELE_F32) {
    memcpy(ref_f32(rows, row) + first, values, count * sizeof(float));
    return;
  }
  quantised_row r = row_of(rows, row);
  for (uint32_t i = 0; i < count; i += REF_BLOCK)
    quantise_block(values + i, &r, (first + i) / REF_BLOCK);
}

/* ---- tokens and tiles ------------------------------------------------------------------ */

/* How many tokens of a lane an op has: as many as are valid, or one once only the last is left. */
static uint32_t lane_tokens(const ref_run *run, const stele_op *op, uint32_t lane) {
  uint32_t valid = (uint32_t)run->args->valid[lane];
  bool only_last = op->tokens / run->step->lanes != run->step->width;
  return only_last ? valid > 0 : valid;
}

uint32_t ref_token_count(const ref_run *run, const stele_op *op) {
  uint32_t count = 0;
  for (uint32_t lane = 0; lane < run->step->lanes; lane++) count += lane_tokens(run, op, lane);
  return count;
}

ref_token ref_token_get(const ref_run *run, const stele_op *op, uint32_t k) {
  uint32_t lane = 0;
  for (uint32_t here; k >= (here = lane_tokens(run, op, lane)); lane++) k -= here;
  return (ref_token){lane * (op->tokens / run->step->lanes) + k, lane, k};
}

void ref_share(const ref_run *run, uint64_t total, uint64_t *out_begin, uint64_t *out_end) {
  *out_begin = total * run->worker / run->workers;
  *out_end = total * (run->worker + 1) / run->workers;
}

/* ---- weights --------------------------------------------------------------------------- */

const stele_program_weight *ref_weight(const ref_run *run, const stele_op *op, unsigned slot) {
  return op->weight[slot] < 0 ? NULL
                              : stele_program_weights(run->program, (uint64_t)op->weight[slot]);
}

const float *ref_vector(const ref_run *run, const stele_op *op, unsigned slot) {
  const stele_program_weight *weight = ref_weight(run, op, slot);
  return weight ? (const float *)(const void *)(run->env->weights + weight->offset) : NULL;
}

void ref_decode(const ref_run *run, const stele_program_weight *weight, uint64_t row,
                uint32_t first, uint32_t count, float *out) {
  const weights_scheme *scheme = weights_scheme_get(weight->scheme);
  uint64_t block = (row * weight->columns + first) / scheme->block;
  weights_decode(weight->scheme, run->env->weights + weight->offset + block * scheme->block_bytes,
                 count, out);
}

/* ---- formulas -------------------------------------------------------------------------- */

float ref_function(uint32_t function, float x) {
  double v = (double)x;
  switch (function) {
    case STELE_SILU:
      return (float)(v / (1 + exp(-v)));
    case STELE_GELU:
      return (float)(0.5 * v * (1 + erf(v * 0.70710678118654752440)));
    case STELE_GELU_TANH: /* sqrt(2 / pi) (x + 0.044715 x^3) */
      return (float)(0.5 * v * (1 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v))));
    default:
      return x > 0 ? x : 0;
  }
}

float ref_inverse_rms(const float *x, uint32_t count, float eps) {
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += (double)x[i] * (double)x[i];
  return (float)(1 / sqrt(sum / count + (double)eps));
}

float ref_norm_weight(const stele_op *op, const float *weight, uint32_t i) {
  return op->flags & STELE_FLAG_NORM_PLUS_ONE ? 1 + weight[i] : weight[i];
}

/* With the mean taken off: 1 / sqrt(mean((x - mean)^2) + eps). */
ref_norm ref_norm_of(const ref_run *run, const stele_op *op, bool center, const float *x,
                     uint32_t count) {
  ref_norm norm = {.weight = ref_vector(run, op, STELE_W_NORM),
                   .bias = ref_vector(run, op, STELE_W_NORM_BIAS)};
  double sum = 0, squares = 0;
  for (uint32_t i = 0; center && i < count; i++) sum += (double)x[i];
  double mean = sum / count;
  for (uint32_t i = 0; i < count; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
  norm.mean = (float)mean;
  norm.factor = (float)(1 / sqrt(squares / count + (double)op->eps));
  return norm;
}

float ref_norm_apply(const stele_op *op, const ref_norm *norm, float x, uint32_t i) {
  float y = (x - norm->mean) * norm->factor * ref_norm_weight(op, norm->weight, i);
  return norm->bias ? y + norm->bias[i] : y;
}

/* cosines [rotary / 2], then sines [rotary / 2] of a token's position */
static const float *rope_row(const ref_run *run, const stele_op *op, ref_token token) {
  const stele_program_rope *rope = stele_program_ropes(run->program, op->rope);
  size_t tokens = (size_t)run->step->lanes * run->step->width, before = 0;
  size_t index = (size_t)token.lane * run->step->width + token.place;
  if (rope->weight >= 0) {
    const stele_program_weight *table = stele_program_weights(run->program, (uint64_t)rope->weight);
    return (const float *)(const void *)(run->env->weights + table->offset) +
           (size_t)run->args->positions[index] * rope->rotary;
  }
  for (uint32_t i = 0; i < op->rope; i++)
    before += tokens * stele_program_ropes(run->program, i)->rotary;
  return run->args->rope + before + index * rope->rotary;
}

void ref_rope_head(const ref_run *run, const stele_op *op, ref_token token, float *head) {
  uint32_t half = op->rotary / 2;
  const float *row = half ? rope_row(run, op, token) : NULL;
  for (uint32_t i = 0; i < half; i++) {
    bool halves = op->pairing == STELE_PAIR_HALVES;
    float *a = head + op->rope_offset + (halves ? i : 2 * i);
    float *b = halves ? a + half : a + 1;
    float c = row[i], s = row[half + i], x = *a, y = *b;
    *a = x * c - y * s;
    *b = y * c + x * s;
  }
}
