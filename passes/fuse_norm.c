/* fuse-norm (optimising)
 * requires: a module at the model level (later levels are fine)
 * ensures:  an rms_norm or layer_norm over whole rows that only linear ops read is an attribute of
 *           its readers: the norm is computed while the activations are prepared, and its result
 *           never leaves the reader
 * gone:     such norms; those of heads, hidden states and what others read stay */
#include "internal.h"

static bool can_take_norm(MlirOperation op) {
  uint32_t kind = ir_kind(op);
  return pass_is_linear(kind) && kind != STELE_OP_LINEAR_ADD && kind != STELE_OP_EXPERTS_DOWN &&
         !ir_has(op, "norm");
}

/* Every reader reads it as its first operand, and can take a norm. */
static bool can_fuse(MlirOperation norm) {
  if (ir_int(norm, "segment", 0) != pass_columns(norm)) return false;
  MlirValue value = pass_result(norm);
  uint32_t readers = 0;
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use), readers++)
    if (mlirOpOperandGetOperandNumber(use) != 0 || !can_take_norm(mlirOpOperandGetOwner(use)))
      return false;
  return readers > 0;
}

static stele_status fuse(pass_step *step, MlirOperation norm, void *data) {
  (void)step, (void)data;
  bool center = ir_is(norm, STELE_OP_LAYER_NORM);
  if ((!center && !ir_is(norm, STELE_OP_RMS_NORM)) || !can_fuse(norm)) return STELE_OK;
  for (MlirOpOperand use = mlirValueGetFirstUse(pass_result(norm)); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use)) {
    MlirOperation reader = mlirOpOperandGetOwner(use);
    ir_copy_attribute(reader, "norm", norm, "weight");
    ir_copy_attribute(reader, "norm_bias", norm, "bias");
    if (center) ir_set_int(reader, "center", 1);
    ir_copy_attribute(reader, "eps", norm, "eps");
  }
  MlirValue x = pass_operand(norm, 0);
  ir_replace(norm, &x, 1);
  return STELE_OK;
}

stele_status pass_fuse_norm(pass_context *context, bool trivial) {
  (void)trivial;
  return pass_ops(context, fuse, NULL);
}
