/* Programs of the ops that multiply by a matrix, in every way in which they meet their input. */
#include "build.h"

bool cts_mode_quantises(cts_mode mode) { return mode >= CTS_Q8; }

static bool has_norm(cts_mode mode) { return mode == CTS_F32_NORM || mode == CTS_Q8_NORM; }
static bool has_combine(cts_mode mode) { return mode == CTS_F32_COMBINE || mode == CTS_Q8_COMBINE; }

void cts_linear_input(cts_program *p, stele_op *op, uint32_t columns, int32_t partial) {
  uint32_t scheme = cts_mode_quantises(p->mode) ? STELE_Q8_0 : STELE_F32;
  op->activation = scheme;
  if (has_combine(p->mode)) {
    op->prologue = STELE_PROLOGUE_COMBINE;
    op->in[0] = partial;
  } else {
    op->in[0] = cts_input(p, op->tokens, columns, p->mode == CTS_Q8 ? STELE_Q8_0 : STELE_F32);
  }
  if (has_norm(p->mode)) {
    op->prologue = STELE_PROLOGUE_NORM;
    op->flags |= p->shape->plus_one ? STELE_FLAG_NORM_PLUS_ONE : 0;
    op->weight[STELE_W_NORM] = cts_vector(p, columns, p->shape->plus_one ? 0 : 1, 0.3f);
    if (p->shape->center) op->flags |= STELE_FLAG_CENTER;
    if (p->shape->center > 1) op->weight[STELE_W_NORM_BIAS] = cts_vector(p, columns, 0, 1);
  }
  if (p->mode != CTS_F32 && p->mode != CTS_Q8)
    op->prepared = cts_per_worker(p, op->tokens, columns, scheme);
}

/* A number that lies between two steps may be rounded either way: what a step of one input
 * changes in a sum of many. */
double cts_linear_tolerance(cts_mode mode) {
  return cts_mode_quantises(mode) && mode != CTS_Q8 ? 8e-3 : 0;
}

static stele_op *linear_op(cts_program *p, const cts_shape *s, uint32_t kind) {
  int32_t partial = has_combine(p->mode) ? cts_attention_parts(p, s) : -1;
  stele_op *op = cts_op(p, kind);
  if (s->last) op->tokens = p->step.lanes;
  if (has_combine(p->mode)) {
    op->group = 0;
    op->heads = s->heads;
    cts_sinks(p, op);
  }
  op->weight[STELE_W_A] = cts_matrix(p, p->scheme, s->rows, s->columns, false);
  if (s->bias) op->weight[STELE_W_BIAS_A] = cts_vector(p, s->rows, 0, 1);
  cts_tile(p, op, s->rows, 1);
  cts_linear_input(p, op, s->columns, partial);
  return op;
}

void cts_build_linear(cts_program *p, const cts_shape *s) {
  stele_op *op = linear_op(p, s, STELE_OP_LINEAR);
  if (s->logits) {
    p->vocab = s->vocab ? s->vocab : s->rows;
    p->step.output = STELE_OUTPUT_ALL;
    op->out = STELE_BUFFER_LOGITS;
  } else {
    op->out = cts_output(p, op->tokens, s->rows, STELE_F32);
    p->loose[op->out] = cts_linear_tolerance(p->mode);
  }
}

void cts_build_linear_add(cts_program *p, const cts_shape *s) {
  stele_op *op = linear_op(p, s, STELE_OP_LINEAR_ADD);
  op->in[1] = cts_input(p, op->tokens, s->rows, STELE_F32);
  op->out = s->in_place ? op->in[1] : cts_output(p, op->tokens, s->rows, STELE_F32);
  p->checked[op->out] = true;
  p->loose[op->out] = cts_linear_tolerance(p->mode);
}

/* ties: the second half of the rows repeats the first */
void cts_build_linear_argmax(cts_program *p, const cts_shape *s) {
  p->vocab = s->vocab ? s->vocab : s->rows;
  stele_op *op = linear_op(p, s, STELE_OP_LINEAR_ARGMAX);
  if (s->ties) {
    cts_weight *w = &p->weights[op->weight[STELE_W_A]];
    for (size_t i = 0; i < w->bytes / 2; i++) w->plain[w->bytes / 2 + i] = w->plain[i];
  }
  op->scratch = cts_buffer(p, op->tiles * op->tokens, 2, STELE_F32);
  op->out = cts_output(p, op->tokens, 1, STELE_I32);
}

void cts_build_gate_up(cts_program *p, const cts_shape *s) {
  bool q8 = s->q8_out && cts_mode_quantises(p->mode);
  stele_op *op = cts_op(p, STELE_OP_GATE_UP);
  op->function = s->function;
  op->weight[STELE_W_A] = cts_matrix(p, p->scheme, s->rows, s->columns, false);
  if (s->bias) op->weight[STELE_W_BIAS_A] = cts_vector(p, s->rows, 0, 1);
  if (!s->single) {
    op->weight[STELE_W_B] = cts_matrix(p, p->scheme, s->rows, s->columns, false);
    if (s->bias) op->weight[STELE_W_BIAS_B] = cts_vector(p, s->rows, 0, 1);
  }
  cts_tile(p, op, s->rows, q8 ? 32 : 1);
  cts_linear_input(p, op, s->columns, -1);
  op->out = cts_output(p, op->tokens, s->rows, q8 ? STELE_Q8_0 : STELE_F32);
  p->loose[op->out] = q8 ? 2e-2 : cts_linear_tolerance(p->mode);
}

/* What other ops do in their prologue, as an op of its own. */
void cts_build_prepare(cts_program *p, const cts_shape *s) {
  uint32_t scheme = cts_mode_quantises(p->mode) ? STELE_Q8_0 : STELE_F32;
  stele_op *op = cts_op(p, STELE_OP_PREPARE);
  cts_linear_input(p, op, s->columns, -1);
  op->prepared = -1;
  op->out = cts_output(p, op->tokens, s->columns, scheme);
  p->loose[op->out] = cts_mode_quantises(p->mode) ? 1e-2 : 0;
}

/* rows: of one head's matrix */
void cts_build_head_linear(cts_program *p, const cts_shape *s) {
  stele_op *op = cts_op(p, STELE_OP_HEAD_LINEAR);
  op->heads = s->heads;
  op->kept = s->kept;
  op->tiles = s->heads;
  op->tile_rows = s->rows;
  op->weight[STELE_W_A] = cts_matrix(p, p->scheme, s->heads * s->rows, s->columns, false);
  op->in[0] = cts_input(p, op->tokens, s->heads * (s->columns + s->kept), STELE_F32);
  op->out = cts_output(p, op->tokens, s->heads * (s->rows + s->kept), STELE_F32);
}
