/* schedule (lowering; trivial: a barrier before every op)
 * requires: the scheduled level, after tile
 * ensures:  `barrier` = 1 on each op that depends on tiles which other workers may not have
 *           finished, and on no other
 * gone:     nothing
 *
 * Ops run in order; a barrier is needed before an op when something it reads was made since the
 * last one by tiles that were split among the workers in another way, or when it overwrites pages
 * that are being read since. Values are made once, so within a step the order of makers and
 * readers is all there is to know; memory is only reused across barriers (plan-memory). A dense
 * layer has five: before qkv, attention, o, gate and up, down. linear_argmax meets inside, between
 * its tiles and the choice of the best. */
#include "internal.h"

typedef struct epochs {
  uint32_t *done; /* barriers passed when each op of the step is finished; PASS_ABSENT: no work */
  uint32_t now;
} epochs;

/* Whether what op i made can still be in the making, seen from `reader`. */
static bool is_pending(const pass_step *step, const epochs *e, MlirOperation maker,
                       MlirOperation reader) {
  uint32_t i = pass_map_get(&step->index, maker);
  return i != PASS_ABSENT && e->done[i] == e->now && !pass_is_aligned(maker, reader);
}

/* Whether another reader of the pages that a cache_store writes may still be at work. */
static bool pages_are_read(const pass_step *step, const epochs *e, MlirOperation store) {
  for (MlirOpOperand use = mlirValueGetFirstUse(pass_operand(store, 0)); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use)) {
    MlirOperation reader = mlirOpOperandGetOwner(use);
    if (!mlirOperationEqual(reader, store) && mlirOperationIsBeforeInBlock(reader, store) &&
        is_pending(step, e, reader, store))
      return true;
  }
  return false;
}

static bool needs_barrier(const pass_step *step, const epochs *e, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (is_pending(step, e, pass_source(op, i), op)) return true;
  return ir_is(op, STELE_OP_CACHE_STORE) && pages_are_read(step, e, op);
}

static stele_status schedule(pass_step *step, void *data) {
  const bool *trivial = data;
  epochs e = {base_arena_alloc(step->context->arena, step->count + 1, sizeof *e.done), 0};
  if (!e.done) return pass_no_memory(step->context);
  bool first = true;
  for (uint32_t i = 0; i < step->count; i++) {
    MlirOperation op = step->ops[i];
    uint32_t kind = ir_kind(op);
    e.done[i] = PASS_ABSENT;
    if (!pass_is_work(kind)) continue;
    ir_remove(op, "barrier");
    if (*trivial ? !first : needs_barrier(step, &e, op)) {
      ir_set_int(op, "barrier", 1);
      e.now++;
    }
    first = false;
    if (stele_op_meets_inside(kind)) e.now++;
    e.done[i] = e.now;
  }
  return STELE_OK;
}

stele_status pass_schedule(pass_context *context, bool trivial) {
  return pass_steps(context, schedule, &trivial);
}
