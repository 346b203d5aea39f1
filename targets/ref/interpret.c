/* The reference interpreter: runs a step of a program, op by op, as program.h says. It is the
 * oracle for every other target, so it favours the obvious over the fast; only the decoding of
 * schemes is shared with the others.
 *
 * A worker goes through all ops and does its share of each one's tiles; workers meet where an op
 * says so. */
#include "interpret.h"

typedef void (*ref_op_function)(const ref_run *run, const stele_op *op);

/* NULL: a declaration or an input, nothing to do at run time. */
static const ref_op_function op_functions[STELE_OP_COUNT] = {
    [STELE_OP_EMBED] = ref_embed,
    [STELE_OP_RMS_NORM] = ref_rms_norm,
    [STELE_OP_LAYER_NORM] = ref_layer_norm,
    [STELE_OP_POSITION_EMBED] = ref_position_embed,
    [STELE_OP_LINEAR] = ref_linear,
    [STELE_OP_HEAD_LINEAR] = ref_head_linear,
    [STELE_OP_CONCAT] = ref_concat,
    [STELE_OP_ROPE] = ref_rope,
    [STELE_OP_CACHE_UPDATE] = ref_cache_update,
    [STELE_OP_ATTENTION] = ref_attention,
    [STELE_OP_ACTIVATION] = ref_activation,
    [STELE_OP_MUL] = ref_mul,
    [STELE_OP_ADD] = ref_add,
    [STELE_OP_SCALE] = ref_scale,
    [STELE_OP_SOFT_CAP] = ref_soft_cap,
    [STELE_OP_ROUTE] = ref_route,
    [STELE_OP_EXPERTS_GATE_UP] = ref_experts_gate_up,
    [STELE_OP_EXPERTS_DOWN] = ref_experts_down,
    [STELE_OP_LAST_TOKEN] = ref_last_token,
    [STELE_OP_ARGMAX] = ref_argmax,
    [STELE_OP_OUTPUT] = ref_output,
    [STELE_OP_OUTPUT_TOKEN] = ref_output_token,
    [STELE_OP_QKV_CACHE] = ref_qkv_cache,
    [STELE_OP_ATTENTION_PARTIAL] = ref_attention_partial,
    [STELE_OP_ATTENTION_COMBINE] = ref_attention_combine,
    [STELE_OP_GATE_UP] = ref_gate_up,
    [STELE_OP_LINEAR_ADD] = ref_linear,
    [STELE_OP_LINEAR_ARGMAX] = ref_linear_argmax,
    [STELE_OP_PREPARE] = ref_prepare,
    [STELE_OP_CACHE_STORE] = ref_cache_store,
};

static void meet(const ref_run *run) {
  if (run->env->barrier) run->env->barrier(run->env->barrier_data, run->worker);
}

/* The hook moves a layer's pages about, so nobody may be at work on them when it is called. */
static void call_hook(const ref_run *run, uint32_t layer, uint32_t end) {
  meet(run);
  if (run->worker == 0) run->env->layer_hook(run->env->hook_data, layer, end);
  meet(run);
}

/* The layer of the nearest op with a layer before (by = -1) or after (by = 1) op i, or -1. */
static int32_t neighbour_layer(const ref_run *run, const stele_op *ops, uint32_t i, int by) {
  for (int64_t j = (int64_t)i + by; j >= 0 && j < run->step->op_count; j += by)
    if (ops[j].layer >= 0) return ops[j].layer;
  return -1;
}

void ref_step(const stele_program *program, uint32_t step, const stele_env *env,
              const stele_step_args *args, uint32_t worker, uint32_t workers) {
  const ref_run run = {program, stele_program_steps(program, step), env, args, worker, workers};
  const stele_op *ops = stele_program_ops(program, run.step->first_op);
  for (uint32_t i = 0; i < run.step->op_count; i++) {
    const stele_op *op = &ops[i];
    bool hook = env->layer_hook && op->layer >= 0;
    if (hook && neighbour_layer(&run, ops, i, -1) != op->layer)
      call_hook(&run, (uint32_t)op->layer, 0);
    if (op->barrier) meet(&run);
    if (op->kind < STELE_OP_COUNT && op_functions[op->kind]) op_functions[op->kind](&run, op);
    if (op->kind == STELE_OP_LINEAR_ARGMAX) {
      meet(&run);
      if (worker == 0) ref_linear_argmax_reduce(&run, op);
    }
    if (hook && neighbour_layer(&run, ops, i, 1) != op->layer)
      call_hook(&run, (uint32_t)op->layer, 1);
  }
}
