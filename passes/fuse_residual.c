/* fuse-residual (optimising)
 * requires: the model or fused level
 * ensures:  the sum of a linear and a residual is one linear_add; an attention_combine that only
 *           a linear_add of few tokens reads is done by that op's workers as they begin
 * gone:     the add, linear and attention_combine ops that it took up
 *
 * Refused where the linear has a norm (linear_add has none), where something else reads its value,
 * or where the residual is made later than the linear reads its input and so on: the new op
 * stands where the add stood, so every operand is there. */
#include "internal.h"

/* The linear that can take the sum up: operand `side` of the add. */
static MlirOperation find_linear(MlirOperation add, intptr_t side) {
  MlirOperation linear = pass_sole_source(add, side, STELE_OP_LINEAR);
  if (pass_is_null(linear) || ir_has(linear, "norm") ||
      mlirValueEqual(pass_operand(add, 0), pass_operand(add, 1)))
    return pass_null();
  return linear;
}

static MlirOperation find_combine(const pass_step *step, MlirOperation linear) {
  if (pass_tokens(linear) > step->context->traits.inline_prologue_tokens) return pass_null();
  return pass_sole_source(linear, 0, STELE_OP_ATTENTION_COMBINE);
}

static stele_status fuse(pass_step *step, MlirOperation op, void *data) {
  (void)data;
  if (!ir_is(op, STELE_OP_ADD)) return STELE_OK;
  /* The residual is usually the older value: look at the second operand first. */
  intptr_t side = pass_is_null(find_linear(op, 1)) ? 0 : 1;
  MlirOperation linear = find_linear(op, side);
  if (pass_is_null(linear)) return STELE_OK;
  MlirOperation combine = find_combine(step, linear);
  ir_builder builder = ir_builder_before(op);
  const MlirValue operands[] = {pass_operand(pass_is_null(combine) ? linear : combine, 0),
                                pass_operand(op, 1 - side)};
  MlirOperation fused =
      ir_create(&builder, STELE_OP_LINEAR_ADD, operands, 2, pass_tokens(op), pass_columns(op));
  const char *const names[] = {"layer", "weight", "bias", NULL};
  pass_copy(fused, linear, names);
  if (!pass_is_null(combine)) {
    ir_set_int(fused, "combine", 1);
    ir_copy_attribute(fused, "heads", combine, "heads");
    ir_copy_attribute(fused, "group", combine, "group");
    ir_copy_attribute(fused, "sinks", combine, "sinks");
  }
  MlirValue result = pass_result(fused);
  ir_replace(op, &result, 1);
  ir_erase(linear);
  if (!pass_is_null(combine)) ir_erase(combine);
  return STELE_OK;
}

stele_status pass_fuse_residual(pass_context *context, bool trivial) {
  (void)trivial;
  return pass_ops(context, fuse, NULL);
}
