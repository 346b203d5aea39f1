/* fuse-mlp (optimising)
 * requires: the model or fused level
 * ensures:  function(x G^T) * (x U^T) is one gate_up op that reads x once; an activation of what a
 *           linear makes, without a product behind it, is one too, without U
 * gone:     the linears, the activation and the mul that it took up
 *
 * Found from the mul backwards, its operands in either order. Refused unless nothing else reads a
 * value on the way, both linears read the same x through the same norm, have equally many rows,
 * and their matrices are both quantised or both not. */
#include "internal.h"

typedef struct match {
  MlirOperation mul, activation, gate, up;
} match;

static bool find_order(MlirOperation mul, intptr_t gate_side, match *m) {
  m->mul = mul;
  m->activation = pass_sole_source(mul, gate_side, STELE_OP_ACTIVATION);
  m->gate = pass_sole_source(m->activation, 0, STELE_OP_LINEAR);
  m->up = pass_sole_source(mul, 1 - gate_side, STELE_OP_LINEAR);
  if (pass_is_null(m->gate) || pass_is_null(m->up)) return false;
  return mlirValueEqual(pass_operand(m->gate, 0), pass_operand(m->up, 0)) &&
         pass_columns(m->gate) == pass_columns(m->up) && pass_same_norm(m->gate, m->up);
}

static stele_status fuse(pass_step *step, MlirOperation op, void *data) {
  match m;
  if (!ir_is(op, STELE_OP_MUL) || (!find_order(op, 0, &m) && !find_order(op, 1, &m)))
    return STELE_OK;
  bool same;
  BASE_TRY(pass_same_class(step->context, data, m.gate, m.up, &same));
  if (!same) return STELE_OK;
  ir_builder builder = ir_builder_before(op);
  MlirValue x = pass_operand(m.gate, 0);
  MlirOperation fused =
      ir_create(&builder, STELE_OP_GATE_UP, &x, 1, pass_tokens(op), pass_columns(op));
  ir_copy_attribute(fused, "layer", m.gate, "layer");
  pass_copy(fused, m.gate, pass_norm_names);
  ir_copy_attribute(fused, "gate", m.gate, "weight");
  ir_copy_attribute(fused, "up", m.up, "weight");
  ir_copy_attribute(fused, "gate_bias", m.gate, "bias");
  ir_copy_attribute(fused, "up_bias", m.up, "bias");
  ir_copy_attribute(fused, "function", m.activation, "function");
  MlirValue result = pass_result(fused);
  ir_replace(op, &result, 1);
  ir_erase(m.activation);
  ir_erase(m.gate);
  ir_erase(m.up);
  return STELE_OK;
}

static stele_status fuse_plain(pass_step *step, MlirOperation op, void *data) {
  (void)step, (void)data;
  if (!ir_is(op, STELE_OP_ACTIVATION)) return STELE_OK;
  MlirOperation linear = pass_sole_source(op, 0, STELE_OP_LINEAR);
  if (pass_is_null(linear)) return STELE_OK;
  ir_builder builder = ir_builder_before(op);
  MlirValue x = pass_operand(linear, 0);
  MlirOperation fused =
      ir_create(&builder, STELE_OP_GATE_UP, &x, 1, pass_tokens(op), pass_columns(op));
  ir_copy_attribute(fused, "layer", linear, "layer");
  pass_copy(fused, linear, pass_norm_names);
  ir_copy_attribute(fused, "gate", linear, "weight");
  ir_copy_attribute(fused, "gate_bias", linear, "bias");
  ir_copy_attribute(fused, "function", op, "function");
  MlirValue result = pass_result(fused);
  ir_replace(op, &result, 1);
  ir_erase(linear);
  return STELE_OK;
}

stele_status pass_fuse_mlp(pass_context *context, bool trivial) {
  (void)trivial;
  pass_weights weights;
  BASE_TRY(pass_weights_load(context, &weights));
  BASE_TRY(pass_ops(context, fuse, &weights));
  return pass_ops(context, fuse_plain, NULL);
}
