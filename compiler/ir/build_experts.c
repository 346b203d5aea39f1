/* A feed-forward block of experts: each token is routed to a few of them, whose outputs are summed
 * by the routing's weights. */
#include "build.h"

static void set_weight(const ir_step_state *s, MlirOperation op, const char *attribute,
                       fe_role role) {
  const fe_weight *w = ir_role(s, role);
  if (w) ir_set_string(op, attribute, w->name);
}

static void set_experts(const ir_step_state *s, MlirOperation op) {
  ir_set_int(op, "experts", s->build->model->experts.count);
  ir_set_int(op, "used", s->build->model->experts.used);
}

/* logits [T x experts] -> [T x 2 used] */
static MlirValue route(const ir_step_state *s, MlirValue logits) {
  const fe_experts *e = &s->build->model->experts;
  MlirOperation op = ir_emit(s, STELE_OP_ROUTE, logits, IR_NONE, IR_NONE, 2 * (int64_t)e->used);
  set_experts(s, op);
  ir_set_string(op, "rule", ir_name(IR_ROUTES, e->rule));
  ir_set_int(op, "normalise", e->normalise);
  ir_set_float(op, "scale", e->scale);
  set_weight(s, op, "correction", FE_ROUTER_CORRECTION);
  if (!e->groups) return ir_value(op);
  ir_set_int(op, "groups", e->groups);
  ir_set_int(op, "used_groups", e->used_groups);
  return ir_value(op);
}

/* n [T x hidden] -> [T x used * inner] */
static MlirValue experts_gate_up(const ir_step_state *s, MlirValue n, MlirValue routing) {
  const fe_experts *e = &s->build->model->experts;
  int64_t columns = (int64_t)e->used * e->inner;
  MlirOperation op = ir_emit(s, STELE_OP_EXPERTS_GATE_UP, n, routing, IR_NONE, columns);
  set_experts(s, op);
  set_weight(s, op, "gate", FE_EXPERT_GATE);
  set_weight(s, op, "up", FE_EXPERT_UP);
  set_weight(s, op, "gate_bias", FE_EXPERT_GATE_BIAS);
  set_weight(s, op, "up_bias", FE_EXPERT_UP_BIAS);
  ir_set_string(op, "function", ir_name(IR_FUNCTIONS, e->function));
  if (e->scale_input) ir_set_int(op, "scale_input", 1);
  if (e->function != STELE_SWIGLU_CLAMPED) return ir_value(op);
  ir_set_float(op, "alpha", e->alpha);
  ir_set_float(op, "limit", e->limit);
  return ir_value(op);
}

MlirValue ir_build_experts(const ir_step_state *s, MlirValue n) {
  const fe_model *model = s->build->model;
  MlirValue routing = route(s, ir_linear(s, n, FE_ROUTER, FE_ROUTER_BIAS));
  MlirValue h = experts_gate_up(s, n, routing);
  MlirOperation op = ir_emit(s, STELE_OP_EXPERTS_DOWN, h, routing, IR_NONE, model->hidden);
  set_experts(s, op);
  set_weight(s, op, "weight", FE_EXPERT_DOWN);
  set_weight(s, op, "bias", FE_EXPERT_DOWN_BIAS);
  if (model->experts.scale_input) ir_set_int(op, "scale_input", 1);
  return ir_value(op);
}
