/* Programs of the ops that work token by token. */
#include "cts.h"

void cts_build_embed(cts_program *p, const cts_shape *s) {
  p->vocab = s->rows;
  stele_op *op = cts_op(p, STELE_OP_EMBED);
  op->weight[STELE_W_A] = cts_matrix(p, p->scheme, s->rows, s->columns, true);
  op->scale = 1.5f;
  op->out = cts_output(p, op->tokens, s->columns, STELE_F32);
}

static stele_op *build_norm(cts_program *p, const cts_shape *s, uint32_t kind) {
  stele_op *op = cts_op(p, kind);
  op->head = s->segment ? s->segment : s->columns;
  op->flags = s->plus_one ? STELE_FLAG_NORM_PLUS_ONE : 0;
  op->weight[STELE_W_NORM] = cts_vector(p, op->head, s->plus_one ? 0 : 1, 0.3f);
  op->in[0] = cts_input(p, op->tokens, s->columns, STELE_F32);
  op->out = cts_output(p, op->tokens, s->columns, STELE_F32);
  return op;
}

void cts_build_rms_norm(cts_program *p, const cts_shape *s) {
  (void)build_norm(p, s, STELE_OP_RMS_NORM);
}

/* heads: weight and bias have a number for each column, not one for each element of a segment */
void cts_build_layer_norm(cts_program *p, const cts_shape *s) {
  stele_op *op = build_norm(p, s, STELE_OP_LAYER_NORM);
  if (s->heads) op->weight[STELE_W_NORM] = cts_vector(p, s->columns, 1, 0.3f);
  if (s->bias)
    op->weight[STELE_W_NORM_BIAS] = cts_vector(p, s->heads ? s->columns : op->head, 0, 1);
}

void cts_build_position_embed(cts_program *p, const cts_shape *s) {
  stele_op *op = cts_op(p, STELE_OP_POSITION_EMBED);
  op->rope_offset = s->offset;
  op->weight[STELE_W_A] = cts_matrix(p, p->scheme, p->capacity + s->offset, s->columns, true);
  op->in[0] = cts_input(p, op->tokens, s->columns, STELE_F32);
  op->out = s->in_place ? op->in[0] : cts_output(p, op->tokens, s->columns, STELE_F32);
  p->checked[op->out] = true;
}

/* heads of `columns` and of key_head columns */
void cts_build_concat(cts_program *p, const cts_shape *s) {
  stele_op *op = cts_op(p, STELE_OP_CONCAT);
  op->head = s->columns + s->key_head;
  op->in[0] = cts_input(p, op->tokens, s->heads * s->columns, STELE_F32);
  op->in[1] = cts_input(p, op->tokens, s->heads * s->key_head, STELE_F32);
  op->out = cts_output(p, op->tokens, s->heads * op->head, STELE_F32);
}

static void build_unary(cts_program *p, const cts_shape *s, uint32_t kind) {
  stele_op *op = cts_op(p, kind);
  op->scale = 0.35f;
  op->soft_cap = s->soft_cap;
  op->in[0] = cts_input(p, op->tokens, s->columns, STELE_F32);
  op->out = s->in_place ? op->in[0] : cts_output(p, op->tokens, s->columns, STELE_F32);
  p->checked[op->out] = true;
}

void cts_build_scale(cts_program *p, const cts_shape *s) { build_unary(p, s, STELE_OP_SCALE); }
void cts_build_soft_cap(cts_program *p, const cts_shape *s) {
  build_unary(p, s, STELE_OP_SOFT_CAP);
}

void cts_build_rope(cts_program *p, const cts_shape *s) {
  stele_op *op = cts_op(p, STELE_OP_ROPE);
  op->head = s->key_head;
  op->rotary = s->rotary;
  op->rope_offset = s->offset;
  op->pairing = s->interleaved ? STELE_PAIR_INTERLEAVED : STELE_PAIR_HALVES;
  /* a table before it, so that rows that come with the call are found behind another kind's */
  if (s->dynamic) (void)cts_rope(p, 4, true);
  op->rope = cts_rope(p, s->rotary, s->dynamic);
  op->in[0] = cts_input(p, op->tokens, s->heads * s->key_head, STELE_F32);
  op->out = s->in_place ? op->in[0] : cts_output(p, op->tokens, s->heads * s->key_head, STELE_F32);
  p->checked[op->out] = true;
}

void cts_build_activation(cts_program *p, const cts_shape *s) {
  stele_op *op = cts_op(p, STELE_OP_ACTIVATION);
  op->function = s->function;
  op->in[0] = cts_input(p, op->tokens, s->columns, STELE_F32);
  op->out = cts_output(p, op->tokens, s->columns, STELE_F32);
}

static void build_binary(cts_program *p, const cts_shape *s, uint32_t kind) {
  stele_op *op = cts_op(p, kind);
  op->in[0] = cts_input(p, op->tokens, s->columns, STELE_F32);
  op->in[1] = cts_input(p, op->tokens, s->columns, STELE_F32);
  op->out = s->in_place ? op->in[1] : cts_output(p, op->tokens, s->columns, STELE_F32);
  p->checked[op->out] = true;
}

void cts_build_mul(cts_program *p, const cts_shape *s) { build_binary(p, s, STELE_OP_MUL); }
void cts_build_add(cts_program *p, const cts_shape *s) { build_binary(p, s, STELE_OP_ADD); }

void cts_build_last_token(cts_program *p, const cts_shape *s) {
  stele_op *op = cts_op(p, STELE_OP_LAST_TOKEN);
  op->in[0] = cts_input(p, cts_tokens(p), s->columns, STELE_F32);
  op->tokens = p->step.lanes;
  op->tiles = p->step.lanes;
  op->out = cts_output(p, op->tokens, s->columns, STELE_F32);
}

/* ties: columns come in equal pairs, which the fill of inputs arranges */
void cts_build_argmax(cts_program *p, const cts_shape *s) {
  p->vocab = s->vocab ? s->vocab : s->columns;
  stele_op *op = cts_op(p, STELE_OP_ARGMAX);
  if (s->last) op->tokens = op->tiles = p->step.lanes;
  op->in[0] = cts_input(p, op->tokens, s->columns, STELE_F32);
  op->out = cts_output(p, op->tokens, 1, STELE_I32);
}

void cts_build_output(cts_program *p, const cts_shape *s) {
  stele_op *op = cts_op(p, STELE_OP_OUTPUT);
  if (s->output == STELE_OUTPUT_LAST) op->tokens = op->tiles = p->step.lanes;
  if (s->output == STELE_OUTPUT_HIDDEN)
    p->hidden = s->columns;
  else
    p->vocab = s->vocab ? s->vocab : s->columns;
  p->step.output = s->output;
  op->output_kind = s->output;
  op->output_index = s->index;
  op->in[0] = cts_input(p, op->tokens, s->columns, STELE_F32);
}

void cts_build_output_token(cts_program *p, const cts_shape *s) {
  cts_build_argmax(p, s);
  int32_t tokens = p->ops[0].out;
  p->step.output = STELE_OUTPUT_TOKEN;
  stele_op *op = cts_op(p, STELE_OP_OUTPUT_TOKEN);
  op->tokens = op->tiles = p->ops[0].tokens;
  op->in[0] = tokens;
}
