/* fuse-argmax (optimising)
 * requires: the model or fused level
 * ensures:  an argmax that alone reads a linear is one linear_argmax: each tile keeps its best
 *           value and the logits are never written
 * gone:     the linear and argmax ops that it took up */
#include "internal.h"

static stele_status fuse(pass_step *step, MlirOperation op, void *data) {
  (void)step, (void)data;
  if (!ir_is(op, STELE_OP_ARGMAX)) return STELE_OK;
  MlirOperation linear = pass_sole_source(op, 0, STELE_OP_LINEAR);
  if (pass_is_null(linear)) return STELE_OK;
  ir_builder builder = ir_builder_before(op);
  MlirValue x = pass_operand(linear, 0);
  MlirOperation fused = ir_create(&builder, STELE_OP_LINEAR_ARGMAX, &x, 1, pass_tokens(op), 1);
  pass_copy_attributes(fused, linear);
  MlirValue token = pass_result(fused);
  ir_replace(op, &token, 1);
  ir_erase(linear);
  return STELE_OK;
}

stele_status pass_fuse_argmax(pass_context *context, bool trivial) {
  (void)trivial;
  return pass_ops(context, fuse, NULL);
}
