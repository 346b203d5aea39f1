/* fuse-attention (optimising)
 * requires: the model or fused level, before stage
 * ensures:  where each lane has one token, attention is attention_partial, a tile for each part
 *           of the pages, and attention_combine, which merges the parts: long caches keep all
 *           workers busy even with few heads
 * gone:     attention in steps of width 1 */
#include "internal.h"

static stele_status fuse(pass_step *step, MlirOperation op, void *data) {
  (void)data;
  if (step->width != 1 || !ir_is(op, STELE_OP_ATTENTION)) return STELE_OK;
  stele_group group;
  BASE_TRY(pass_group(step->context, ir_int(op, "group", 0), &group));
  /* The merge's fields beside the weighted values: maximum and sum. */
  int64_t part = 2 + (int64_t)group.value_head, tokens = pass_tokens(op), columns;
  if (__builtin_mul_overflow(part, ir_int(op, "heads", 0), &columns) ||
      __builtin_mul_overflow(columns, (int64_t)stele_program_part_count(&group), &columns))
    return base_fail(step->context->sink, STELE_BAD_FORMAT, "attention: too many pages and heads");
  ir_builder builder = ir_builder_before(op);
  const MlirValue operands[] = {pass_operand(op, 0), pass_operand(op, 1)};
  MlirOperation partial =
      ir_create(&builder, STELE_OP_ATTENTION_PARTIAL, operands, 2, tokens, columns);
  pass_copy_attributes(partial, op);
  ir_remove(partial, "sinks"); /* which are no slot of a page: the merge takes them in */
  MlirValue parts = pass_result(partial);
  MlirOperation combine =
      ir_create(&builder, STELE_OP_ATTENTION_COMBINE, &parts, 1, tokens, pass_columns(op));
  const char *const names[] = {"layer", "group", "heads", "sinks", NULL};
  pass_copy(combine, op, names);
  MlirValue result = pass_result(combine);
  ir_replace(op, &result, 1);
  return STELE_OK;
}

stele_status pass_fuse_attention(pass_context *context, bool trivial) {
  (void)trivial;
  return pass_ops(context, fuse, NULL);
}
