/* prepare (lowering; trivial: every change of activations is an op of its own)
 * requires: the scheduled level, after stage
 * ensures:  every linear op (linear, linear_add, linear_argmax, gate_up, qkv_cache, experts_*) has
 *           `activation`, the scheme in which its weights meet its input; norms and quantisation
 *           are either left to the reader, which repeats them in each worker (few tokens), or are
 *           one prepare op that all readers of the value share
 * gone:     norms of linear ops with many tokens
 *
 * Activations are 8 bit where the target wants it, the compile isn't --precise, and all matrices
 * of the op are quantised with whole blocks of columns; but not where queries, keys and values are
 * made: attention amplifies their rounding (on SmolLM2 it was half of the divergence), and they are
 * the smallest of the matrices; nor where experts are chosen, where a small difference makes a
 * large one. A gate_up whose readers all take its result in 8 bit and do nothing else to it writes
 * it so. What experts_down reads is in 8 bit only if experts_gate_up can write it so: nothing else
 * makes rows for each of a token's experts. */
#include <string.h>

#include "internal.h"

static const char *const matrix_names[] = {"weight", "gate", "up", "q", "k", "v", NULL};

static const char *scheme_name(uint32_t scheme) { return scheme == STELE_Q8_0 ? "q8_0" : "f32"; }

/* Whether an op makes queries, keys or values, fused or not, or chooses experts: its result reaches
 * attention, the cache or a route with nothing but norms, rope and what makes heads in between. */
static bool needs_floats(MlirOperation op) {
  if (ir_is(op, STELE_OP_QKV_CACHE)) return true;
  if (!ir_is(op, STELE_OP_LINEAR)) return false;
  for (;;) {
    op = ir_only_user(pass_result(op));
    if (pass_is_null(op)) return false;
    switch (ir_kind(op)) {
      case STELE_OP_RMS_NORM:
      case STELE_OP_LAYER_NORM:
      case STELE_OP_HEAD_LINEAR:
      case STELE_OP_CONCAT:
      case STELE_OP_ROPE:
        break;
      case STELE_OP_CACHE_UPDATE:
      case STELE_OP_ATTENTION:
      case STELE_OP_ATTENTION_PARTIAL:
      case STELE_OP_ROUTE:
        return true;
      default:
        return false;
    }
  }
}

/* Whether an experts_down is the only reader of what an experts_gate_up makes. */
static bool is_pair(MlirOperation down) {
  MlirOperation maker = pass_sole_source(down, 0, STELE_OP_EXPERTS_GATE_UP);
  return !pass_is_null(maker) && pass_same(maker, down, "used");
}

static stele_status decide(pass_step *step, MlirOperation op, void *data) {
  if (!pass_is_linear(ir_kind(op))) return STELE_OK;
  bool quantise =
      step->context->traits.quantise_activations && !step->context->precise && !needs_floats(op);
  if (ir_is(op, STELE_OP_EXPERTS_DOWN) && !is_pair(op)) quantise = false;
  for (const char *const *name = matrix_names; *name; name++) {
    const pass_weight *weight;
    BASE_TRY(pass_weight_of(step->context, data, op, *name, true, &weight));
    if (weight &&
        (!weights_scheme_is_quantised(weight->scheme) || weight->columns % PASS_Q8_BLOCK != 0))
      quantise = false;
  }
  ir_set_string(op, "activation", scheme_name(quantise ? STELE_Q8_0 : STELE_F32));
  return STELE_OK;
}

/* Writes a gate_up's result in 8 bit when no reader wants it otherwise. */
static stele_status decide_result(pass_step *step, MlirOperation op, void *data) {
  (void)step;
  const bool *trivial = data;
  bool experts = ir_is(op, STELE_OP_EXPERTS_GATE_UP);
  if (!experts && (*trivial || !ir_is(op, STELE_OP_GATE_UP))) return STELE_OK;
  if (pass_columns(op) % PASS_Q8_BLOCK != 0) return STELE_OK;
  uint32_t readers = 0;
  for (MlirOpOperand use = mlirValueGetFirstUse(pass_result(op)); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use), readers++) {
    MlirOperation reader = mlirOpOperandGetOwner(use);
    if (mlirOpOperandGetOperandNumber(use) != 0 || !pass_is_linear(ir_kind(reader)) ||
        experts != ir_is(reader, STELE_OP_EXPERTS_DOWN) || ir_has(reader, "norm") ||
        pass_activation(reader) != STELE_Q8_0)
      return STELE_OK;
  }
  if (readers) ir_set_string(op, "result", scheme_name(STELE_Q8_0));
  return STELE_OK;
}

/* A prepare op that does to the value what op wants, made for an earlier reader. */
static MlirOperation find_shared(MlirOperation op) {
  MlirValue x = pass_operand(op, 0);
  for (MlirOpOperand use = mlirValueGetFirstUse(x); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use)) {
    MlirOperation other = mlirOpOperandGetOwner(use);
    if (ir_is(other, STELE_OP_PREPARE) && pass_same_norm(other, op) &&
        pass_same(other, op, "activation") && mlirOperationIsBeforeInBlock(other, op))
      return other;
  }
  return pass_null();
}

static MlirOperation create_prepare(MlirOperation op) {
  MlirValue x = pass_operand(op, 0);
  int64_t tokens, columns;
  ir_shape(x, &tokens, &columns);
  ir_builder builder = ir_builder_before(op);
  MlirOperation made = ir_create(&builder, STELE_OP_PREPARE, &x, 1, tokens, columns);
  const char *const names[] = {"layer", "activation", NULL};
  pass_copy(made, op, names);
  pass_copy(made, op, pass_norm_names);
  return made;
}

static stele_status separate(pass_step *step, MlirOperation op, void *data) {
  const bool *trivial = data;
  bool inline_fits = pass_tokens(op) <= step->context->traits.inline_prologue_tokens;
  if (!pass_is_linear(ir_kind(op)) || !pass_has_prologue(op) || ir_int(op, "combine", 0) ||
      (inline_fits && !*trivial))
    return STELE_OK;
  MlirOperation prepare = find_shared(op);
  if (pass_is_null(prepare)) prepare = create_prepare(op);
  mlirOperationSetOperand(op, 0, pass_result(prepare));
  for (const char *const *name = pass_norm_names; *name; name++) ir_remove(op, *name);
  return STELE_OK;
}

stele_status pass_prepare(pass_context *context, bool trivial) {
  pass_weights weights;
  BASE_TRY(pass_weights_load(context, &weights));
  BASE_TRY(pass_ops(context, decide, &weights));
  BASE_TRY(pass_ops(context, decide_result, &trivial));
  return pass_ops(context, separate, &trivial);
}
