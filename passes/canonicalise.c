/* canonicalise (optimising)
 * requires: a module at the model level
 * ensures:  no op whose result nobody reads; of two equal ops on the same operands one; rows that
 *           last_token would drop are not computed in what comes after the last cache write
 * gone:     last_token in steps of width 1, rope of nothing, a scale of one; in front of an argmax
 *           what leaves the order of the logits as it is: soft_cap, a scale above zero
 *
 * Going back from a step's end, dead ops are dropped and last_token moves before the op whose
 * result it reads, where that op treats each token by itself: last_token(f(a, b)) becomes
 * f(last_token(a), last_token(b)). It stops at attention, at the residual that others read too,
 * and at the embedding. */
#include "internal.h"

static bool has_effect(uint32_t kind) {
  return kind == STELE_OP_OUTPUT || kind == STELE_OP_OUTPUT_TOKEN ||
         kind == STELE_OP_CACHE_UPDATE || kind == STELE_OP_QKV_CACHE ||
         kind == STELE_OP_CACHE_STORE || kind == STELE_OP_COUNT;
}

static bool is_dead(MlirOperation op) {
  if (has_effect(ir_kind(op))) return false;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (ir_uses(mlirOperationGetResult(op, i))) return false;
  return true;
}

static bool is_token_wise(uint32_t kind) {
  switch (kind) {
    case STELE_OP_RMS_NORM:
    case STELE_OP_LAYER_NORM:
    case STELE_OP_LINEAR:
    case STELE_OP_HEAD_LINEAR:
    case STELE_OP_CONCAT:
    case STELE_OP_ACTIVATION:
    case STELE_OP_MUL:
    case STELE_OP_ADD:
    case STELE_OP_SCALE:
    case STELE_OP_SOFT_CAP:
    case STELE_OP_ROUTE:
    case STELE_OP_EXPERTS_GATE_UP:
    case STELE_OP_EXPERTS_DOWN:
      return true;
    default:
      return false;
  }
}

static void erase(pass_step *step, MlirOperation op) {
  uint32_t i = pass_map_get(&step->index, op);
  if (i != PASS_ABSENT && mlirOperationEqual(step->ops[i], op)) step->ops[i] = pass_null();
  ir_erase(op);
}

/* The last_tokens that are yet to be moved. */
typedef struct pending {
  MlirOperation *ops;
  uint32_t count;
} pending;

static bool only_last_tokens_read(MlirValue value) {
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use))
    if (!ir_is(mlirOpOperandGetOwner(use), STELE_OP_LAST_TOKEN)) return false;
  return true;
}

/* Replaces all last_tokens of a value. */
static void replace_last_tokens(pass_step *step, pending *queue, MlirValue whole, MlirValue rows) {
  MlirOpOperand use;
  while (!mlirOpOperandIsNull(use = mlirValueGetFirstUse(whole))) {
    MlirOperation last = mlirOpOperandGetOwner(use);
    mlirValueReplaceAllUsesOfWith(pass_result(last), rows);
    for (uint32_t i = 0; i < queue->count; i++)
      if (mlirOperationEqual(queue->ops[i], last)) queue->ops[i] = pass_null();
    erase(step, last);
  }
}

/* Moves the last_tokens that read an op's result before that op, where it allows it: one new
 * last_token for each of its operands joins the queue. */
static void hoist_over(pass_step *step, MlirOperation passed, pending *queue) {
  if (pass_is_null(passed) || !is_token_wise(ir_kind(passed)) ||
      !only_last_tokens_read(pass_result(passed)))
    return;
  ir_builder builder = ir_builder_before(passed);
  MlirValue operands[2];
  uint32_t count = (uint32_t)mlirOperationGetNumOperands(passed);
  for (uint32_t i = 0; i < count; i++) {
    int64_t tokens, columns;
    MlirValue whole = pass_operand(passed, i);
    ir_shape(whole, &tokens, &columns);
    MlirOperation part = ir_create(&builder, STELE_OP_LAST_TOKEN, &whole, 1, step->lanes, columns);
    ir_copy_attribute(part, "layer", passed, "layer");
    operands[i] = pass_result(part);
    queue->ops[queue->count++] = part;
  }
  MlirOperation made =
      ir_create(&builder, ir_kind(passed), operands, count, step->lanes, pass_columns(passed));
  pass_copy_attributes(made, passed);
  replace_last_tokens(step, queue, pass_result(passed), pass_result(made));
  erase(step, passed);
}

/* Moves last_token as far as it goes. Each move passes one op of the step for good, and adds at
 * most two to the queue. */
static stele_status hoist(pass_step *step, MlirOperation op) {
  pending queue = {.count = 1};
  queue.ops =
      base_arena_alloc(step->context->arena, 2 * (size_t)step->count + 2, sizeof *queue.ops);
  if (!queue.ops) return pass_no_memory(step->context);
  queue.ops[0] = op;
  while (queue.count) {
    MlirOperation last = queue.ops[--queue.count];
    if (!pass_is_null(last)) hoist_over(step, pass_source(last, 0), &queue);
  }
  return STELE_OK;
}

/* Whether only the choice of the largest reads the value. */
static bool is_only_compared(MlirOperation op) {
  return ir_is(ir_only_user(pass_result(op)), STELE_OP_ARGMAX);
}

/* An op that does nothing is its operand. */
static bool is_identity(const pass_step *step, MlirOperation op) {
  switch (ir_kind(op)) {
    case STELE_OP_LAST_TOKEN:
      return step->width == 1 || ir_is(pass_source(op, 0), STELE_OP_LAST_TOKEN);
    case STELE_OP_ROPE:
      return ir_int(op, "rotary", 1) == 0;
    case STELE_OP_SOFT_CAP:
      return is_only_compared(op);
    case STELE_OP_SCALE: {
      double factor = ir_float(op, "factor", 1);
      return factor == 1 || (factor > 0 && is_only_compared(op));
    }
    default:
      return false;
  }
}

static stele_status sweep(pass_step *step) {
  for (uint32_t i = step->count; i-- > 0;) {
    MlirOperation op = step->ops[i];
    if (pass_is_null(op)) continue;
    if (is_dead(op)) {
      erase(step, op);
    } else if (is_identity(step, op)) {
      MlirValue same = pass_operand(op, 0);
      step->ops[i] = pass_null();
      ir_replace(op, &same, 1);
    } else if (ir_is(op, STELE_OP_LAST_TOKEN)) {
      BASE_TRY(hoist(step, op));
    }
  }
  return STELE_OK;
}

static bool is_equal(MlirOperation a, MlirOperation b) {
  intptr_t count = mlirOperationGetNumOperands(a);
  if (ir_kind(a) != ir_kind(b) || mlirOperationGetNumOperands(b) != count ||
      !pass_same_attributes(a, b))
    return false;
  for (intptr_t i = 0; i < count; i++)
    if (!mlirValueEqual(pass_operand(a, i), pass_operand(b, i))) return false;
  return true;
}

/* Replaces op by an equal one that comes before it; both read the same first operand. */
static stele_status merge(MlirOperation op, void *data) {
  (void)data;
  if (has_effect(ir_kind(op)) || mlirOperationGetNumOperands(op) == 0 ||
      mlirOperationGetNumResults(op) != 1)
    return STELE_OK;
  for (MlirOpOperand use = mlirValueGetFirstUse(pass_operand(op, 0)); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use)) {
    MlirOperation other = mlirOpOperandGetOwner(use);
    if (mlirOperationEqual(op, other) || !is_equal(op, other) ||
        !mlirOperationIsBeforeInBlock(other, op))
      continue;
    MlirValue same = pass_result(other);
    ir_replace(op, &same, 1);
    break;
  }
  return STELE_OK;
}

static stele_status merge_step(pass_step *step, void *data) {
  return ir_walk_body(step->op, merge, data);
}

static stele_status sweep_step(pass_step *step, void *data) {
  (void)data;
  return sweep(step);
}

stele_status pass_canonicalise(pass_context *context, bool trivial) {
  (void)trivial;
  BASE_TRY(pass_steps(context, sweep_step, NULL));
  return pass_steps(context, merge_step, NULL);
}
