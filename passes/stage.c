/* stage (lowering; trivial: the same, as nothing simpler would be right)
 * requires: the model or fused level
 * ensures:  in steps wider than one token each cache write is staged beside the cache and stored
 *           once that layer's attention is done: attention then sees the step's own tokens rounded
 *           as the cache rounds them, and a page that leaves the window in this step is read
 *           before it is written anew. Steps of width 1 write straight to the pages.
 * gone:     nothing
 *
 * The store follows the last op that reads the layer's cache. */
#include "internal.h"

static MlirValue cache_result(MlirOperation update) {
  return mlirOperationGetResult(update, mlirOperationGetNumResults(update) - 1);
}

static stele_status stage(pass_step *step, MlirOperation op, void *data) {
  (void)data;
  uint32_t kind = ir_kind(op);
  if (step->width == 1 || (kind != STELE_OP_CACHE_UPDATE && kind != STELE_OP_QKV_CACHE))
    return STELE_OK;
  ir_set_int(op, "staged", 1);
  MlirValue cache = cache_result(op);
  MlirOperation last = op;
  for (MlirOpOperand use = mlirValueGetFirstUse(cache); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use)) {
    MlirOperation reader = mlirOpOperandGetOwner(use);
    if (ir_is(reader, STELE_OP_CACHE_STORE)) return STELE_OK; /* there already */
    if (mlirOperationIsBeforeInBlock(last, reader)) last = reader;
  }
  ir_builder builder = ir_builder_before(last);
  builder.before = mlirOperationGetNextInBlock(last);
  MlirOperation store = ir_create(&builder, STELE_OP_CACHE_STORE, &cache, 1, 0, 0);
  const char *const names[] = {"layer", "group", NULL};
  pass_copy(store, op, names);
  return STELE_OK;
}

stele_status pass_stage(pass_context *context, bool trivial) {
  (void)trivial;
  return pass_ops(context, stage, NULL);
}
