/* Ops that work token by token: tiles are tokens. T is tokens, n columns. */
#include <math.h>
#include <string.h>

#include "interpret.h"

/* Calls apply for each of this worker's valid tokens. */
typedef void (*token_function)(const ref_run *run, const stele_op *op, ref_token token);

static void each_token(const ref_run *run, const stele_op *op, token_function apply) {
  uint64_t begin, end;
  ref_share(run, ref_token_count(run, op), &begin, &end);
  for (uint64_t k = begin; k < end; k++) apply(run, op, ref_token_get(run, op, (uint32_t)k));
}

/* out[T][n] = scale * W[ids[T]][n] */
static void embed_token(const ref_run *run, const stele_op *op, ref_token token) {
  const stele_program_weight *weight = ref_weight(run, op, STELE_W_A);
  ref_rows out = ref_buffer(run, op->out);
  float *y = ref_f32(&out, token.index);
  uint64_t row = (uint64_t)run->args->ids[token.index];
  for (uint32_t first = 0; first < out.columns; first += REF_CHUNK) {
    uint32_t count = out.columns - first < REF_CHUNK ? out.columns - first : REF_CHUNK;
    ref_decode(run, weight, row, first, count, y + first);
  }
  for (uint32_t i = 0; i < out.columns; i++) y[i] *= op->scale;
}

/* each segment of `head` numbers: out = x / rms(x) * weight[head], or (x - mean) / deviation *
 * weight + bias with weight and bias [head] or [n] */
static void norm_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows in = ref_buffer(run, op->in[0]), out = ref_buffer(run, op->out);
  bool all = ref_weight(run, op, STELE_W_NORM)->columns == in.columns;
  for (uint32_t first = 0; first < in.columns; first += op->head) {
    const float *x = ref_f32(&in, token.index) + first;
    float *y = ref_f32(&out, token.index) + first;
    ref_norm norm = ref_norm_of(run, op, op->kind == STELE_OP_LAYER_NORM, x, op->head);
    for (uint32_t i = 0; i < op->head; i++)
      y[i] = ref_norm_apply(op, &norm, x[i], all ? first + i : i);
  }
}

/* out[T][n] = x + W[position + offset][n] */
static void position_embed_token(const ref_run *run, const stele_op *op, ref_token token) {
  const stele_program_weight *weight = ref_weight(run, op, STELE_W_A);
  ref_rows in = ref_buffer(run, op->in[0]), out = ref_buffer(run, op->out);
  const float *x = ref_f32(&in, token.index);
  float *y = ref_f32(&out, token.index), row[REF_CHUNK];
  uint64_t at = (uint64_t)run->args->positions[token.index] + op->rope_offset;
  for (uint32_t first = 0; first < out.columns; first += REF_CHUNK) {
    uint32_t count = out.columns - first < REF_CHUNK ? out.columns - first : REF_CHUNK;
    ref_decode(run, weight, at, first, count, row);
    for (uint32_t i = 0; i < count; i++) y[first + i] = x[first + i] + row[i];
  }
}

/* out[T][heads][na + nb] = a[T][heads][na], b[T][heads][nb] */
static void concat_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows a = ref_buffer(run, op->in[0]), b = ref_buffer(run, op->in[1]);
  ref_rows out = ref_buffer(run, op->out);
  uint32_t heads = out.columns / op->head, na = a.columns / heads, nb = b.columns / heads;
  for (uint32_t head = 0; head < heads; head++) {
    float *y = ref_f32(&out, token.index) + head * op->head;
    memcpy(y, ref_f32(&a, token.index) + head * na, na * sizeof(float));
    memcpy(y + na, ref_f32(&b, token.index) + head * nb, nb * sizeof(float));
  }
}

/* x[T][heads][head]: each head turned by the token's position */
static void rope_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows in = ref_buffer(run, op->in[0]), out = ref_buffer(run, op->out);
  float *y = ref_f32(&out, token.index);
  memmove(y, ref_f32(&in, token.index), out.columns * sizeof(float));
  for (uint32_t first = 0; first < out.columns; first += op->head)
    ref_rope_head(run, op, token, y + first);
}

static void activation_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows in = ref_buffer(run, op->in[0]), out = ref_buffer(run, op->out);
  const float *x = ref_f32(&in, token.index);
  float *y = ref_f32(&out, token.index);
  for (uint32_t i = 0; i < out.columns; i++) y[i] = ref_function(op->function, x[i]);
}

static void scale_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows in = ref_buffer(run, op->in[0]), out = ref_buffer(run, op->out);
  const float *x = ref_f32(&in, token.index);
  float *y = ref_f32(&out, token.index);
  for (uint32_t i = 0; i < out.columns; i++) y[i] = x[i] * op->scale;
}

/* cap tanh(x / cap) */
static void soft_cap_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows in = ref_buffer(run, op->in[0]), out = ref_buffer(run, op->out);
  const float *x = ref_f32(&in, token.index);
  float *y = ref_f32(&out, token.index);
  double cap = (double)op->soft_cap;
  for (uint32_t i = 0; i < out.columns; i++) y[i] = (float)(cap * tanh((double)x[i] / cap));
}

static void mul_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows a = ref_buffer(run, op->in[0]), b = ref_buffer(run, op->in[1]);
  ref_rows out = ref_buffer(run, op->out);
  const float *x = ref_f32(&a, token.index), *z = ref_f32(&b, token.index);
  float *y = ref_f32(&out, token.index);
  for (uint32_t i = 0; i < out.columns; i++) y[i] = x[i] * z[i];
}

static void add_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows a = ref_buffer(run, op->in[0]), b = ref_buffer(run, op->in[1]);
  ref_rows out = ref_buffer(run, op->out);
  const float *x = ref_f32(&a, token.index), *z = ref_f32(&b, token.index);
  float *y = ref_f32(&out, token.index);
  for (uint32_t i = 0; i < out.columns; i++) y[i] = x[i] + z[i];
}

/* out[lane][n] = in[lane][valid - 1][n]; the op's tokens are lanes */
static void last_token_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows in = ref_buffer(run, op->in[0]), out = ref_buffer(run, op->out);
  uint32_t last = token.lane * run->step->width + (uint32_t)run->args->valid[token.lane] - 1;
  memcpy(ref_f32(&out, token.lane), ref_f32(&in, last), out.columns * sizeof(float));
}

/* the lowest index among the largest; rows that pad the vocabulary do not count */
static void argmax_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows in = ref_buffer(run, op->in[0]), out = ref_buffer(run, op->out);
  const float *x = ref_f32(&in, token.index);
  uint32_t count = in.columns < run->program->vocab ? in.columns : run->program->vocab, best = 0;
  for (uint32_t i = 1; i < count; i++)
    if (x[i] > x[best]) best = i;
  ((int32_t *)(void *)out.base)[token.index] = (int32_t)best;
}

/* logits [T][vocab], or hidden states [layers + 1][lanes][width][hidden] */
static void output_token_row(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows in = ref_buffer(run, op->in[0]);
  const float *x = ref_f32(&in, token.index);
  const stele_program *program = run->program;
  if (op->output_kind == STELE_OUTPUT_HIDDEN) {
    size_t tokens = (size_t)run->step->lanes * run->step->width;
    size_t row = op->output_index * tokens + token.index;
    memcpy(run->args->out_hidden + row * program->hidden, x, program->hidden * sizeof(float));
  } else {
    memcpy(run->args->out_logits + (size_t)token.index * program->vocab, x,
           program->vocab * sizeof(float));
  }
}

static void output_token_token(const ref_run *run, const stele_op *op, ref_token token) {
  ref_rows in = ref_buffer(run, op->in[0]);
  run->args->out_tokens[token.index] = ((const int32_t *)(const void *)in.base)[token.index];
}

void ref_embed(const ref_run *run, const stele_op *op) { each_token(run, op, embed_token); }
void ref_rms_norm(const ref_run *run, const stele_op *op) { each_token(run, op, norm_token); }
void ref_layer_norm(const ref_run *run, const stele_op *op) { each_token(run, op, norm_token); }
void ref_position_embed(const ref_run *run, const stele_op *op) {
  each_token(run, op, position_embed_token);
}
void ref_concat(const ref_run *run, const stele_op *op) { each_token(run, op, concat_token); }
void ref_scale(const ref_run *run, const stele_op *op) { each_token(run, op, scale_token); }
void ref_soft_cap(const ref_run *run, const stele_op *op) { each_token(run, op, soft_cap_token); }
void ref_rope(const ref_run *run, const stele_op *op) { each_token(run, op, rope_token); }
void ref_activation(const ref_run *run, const stele_op *op) {
  each_token(run, op, activation_token);
}
void ref_mul(const ref_run *run, const stele_op *op) { each_token(run, op, mul_token); }
void ref_add(const ref_run *run, const stele_op *op) { each_token(run, op, add_token); }
void ref_last_token(const ref_run *run, const stele_op *op) {
  each_token(run, op, last_token_token);
}
void ref_argmax(const ref_run *run, const stele_op *op) { each_token(run, op, argmax_token); }
void ref_output(const ref_run *run, const stele_op *op) { each_token(run, op, output_token_row); }
void ref_output_token(const ref_run *run, const stele_op *op) {
  each_token(run, op, output_token_token);
}
