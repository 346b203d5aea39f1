/* Programs of the ops of experts: a route of random logits, then one of the ops that follow it. */
#include "build.h"

/* Experts in the op as the shape says. */
static void set_experts(stele_op *op, const cts_shape *s) {
  op->experts = s->experts;
  op->experts_used = s->used;
  op->scale_input = s->scale_input;
}

/* ties: logits come in equal pairs, which the fill of inputs arranges */
void cts_build_route(cts_program *p, const cts_shape *s) {
  stele_op *op = cts_op(p, STELE_OP_ROUTE);
  set_experts(op, s);
  op->scale_input = 0;
  op->rule = s->sigmoid ? STELE_ROUTE_SIGMOID : STELE_ROUTE_SOFTMAX;
  op->normalise = s->normalise;
  op->expert_groups = s->groups;
  op->expert_groups_used = s->used_groups;
  op->scale = 1.25f;
  if (s->correction) op->weight[STELE_W_BIAS_A] = cts_vector(p, s->experts, 0, 0.5f);
  op->in[0] = cts_input(p, op->tokens, s->experts, STELE_F32);
  op->out = cts_output(p, op->tokens, 2 * s->used, STELE_F32);
  p->records[op->out] = 2;
}

static int32_t expert_matrix(cts_program *p, const cts_shape *s) {
  int32_t i = cts_matrix(p, p->scheme, (uint64_t)s->rows * s->experts, s->columns, false);
  p->weights[i].experts = s->experts;
  return i;
}

/* The op that follows a route, which leaves its second input. */
static stele_op *expert_op(cts_program *p, const cts_shape *s, uint32_t kind) {
  cts_build_route(p, s);
  int32_t routing = p->ops[0].out;
  stele_op *op = cts_op(p, kind);
  set_experts(op, s);
  op->in[1] = routing;
  op->weight[STELE_W_A] = expert_matrix(p, s);
  if (s->bias) op->weight[STELE_W_BIAS_A] = cts_vector(p, s->rows * s->experts, 0, 1);
  return op;
}

/* Behind a q8 output a token's experts have rows of their own. */
void cts_build_experts_gate_up(cts_program *p, const cts_shape *s) {
  bool q8 = s->q8_out && cts_mode_quantises(p->mode);
  stele_op *op = expert_op(p, s, STELE_OP_EXPERTS_GATE_UP);
  op->function = s->function;
  op->alpha = 1.702f;
  op->limit = 3;
  op->weight[STELE_W_B] = expert_matrix(p, s);
  if (s->bias) op->weight[STELE_W_BIAS_B] = cts_vector(p, s->rows * s->experts, 0, 1);
  cts_tile(p, op, s->rows, q8 ? 32 : 1);
  uint32_t chosen = op->tokens * s->used;
  op->tiles *= chosen < s->experts ? chosen : s->experts;
  cts_linear_input(p, op, s->columns, -1);
  op->out = cts_output(p, op->tokens, s->rows * s->used, q8 ? STELE_Q8_0 : STELE_F32);
  p->records[op->out] = s->used;
  p->loose[op->out] = q8 ? 2e-2 : cts_linear_tolerance(p->mode);
}

void cts_build_experts_down(cts_program *p, const cts_shape *s) {
  stele_op *op = expert_op(p, s, STELE_OP_EXPERTS_DOWN);
  op->activation = cts_mode_quantises(p->mode) ? STELE_Q8_0 : STELE_F32;
  op->in[0] = cts_input(p, op->tokens, s->columns * s->used, op->activation);
  p->records[op->in[0]] = s->used;
  cts_tile(p, op, s->rows, 1);
  op->out = cts_output(p, op->tokens, s->rows, STELE_F32);
}
