/* The phases of a program's steps (artifact.h): which ops lie between two meetings of the workers,
 * what each reads. A phase begins with every op that has a barrier, and inside of those that meet
 * there too. */
#include "artifact/artifact.h"

static const char *const op_names[] = {
#define OP(name, mnemonic, ...) mnemonic,
#include "stele/ops.def"
#undef OP
};

static bool reads_pages(uint32_t kind) {
  return kind == STELE_OP_ATTENTION || kind == STELE_OP_ATTENTION_PARTIAL;
}

static uint64_t weight_bytes(const stele_program *program, const stele_op *op) {
  uint64_t bytes = 0;
  for (int slot = 0; slot < STELE_W_COUNT; slot++) {
    if (op->weight[slot] < 0) continue;
    bytes +=
        stele_op_weight_bytes(op, slot, stele_program_weights(program, (uint64_t)op->weight[slot]));
  }
  return bytes;
}

static stele_phase_op describe_op(const stele_program *program, const stele_op *op,
                                  uint32_t phase) {
  return (stele_phase_op){
      .name = op->kind,
      .phase = phase,
      .layer = op->layer,
      .device = op->device,
      .group = reads_pages(op->kind) ? (int32_t)op->group : -1,
      .weight = {op->weight[STELE_W_A], op->weight[STELE_W_B], op->weight[STELE_W_C]},
      .weight_bytes = weight_bytes(program, op)};
}

static stele_step_phases describe_step(const stele_program *program, const stele_program_step *step,
                                       stele_phase_op *out) {
  uint32_t phase = 0, count = 0;
  for (uint32_t i = 0; i < step->op_count; i++) {
    const stele_op *op = stele_program_ops(program, step->first_op + i);
    if (op->barrier && count) phase++;
    out[count++] = describe_op(program, op, phase);
    if (!stele_op_meets_inside(op->kind)) continue;
    phase++;
    out[count++] = (stele_phase_op){.name = op->kind,
                                    .phase = phase,
                                    .layer = op->layer,
                                    .group = -1,
                                    .device = op->device,
                                    .weight = {-1, -1, -1}};
  }
  return (stele_step_phases){out, count, count ? phase + 1 : 0};
}

static uint64_t count_rows(const stele_program *program) {
  uint64_t rows = program->ops.count;
  for (uint64_t i = 0; i < program->ops.count; i++)
    rows += (uint64_t)stele_op_meets_inside(stele_program_ops(program, i)->kind);
  return rows;
}

bool artifact_phases(const stele_program *program, base_arena *arena, stele_artifact *out) {
  uint32_t steps = (uint32_t)program->steps.count;
  stele_step_phases *list = base_arena_alloc(arena, steps + 1u, sizeof *list);
  stele_phase_op *rows = base_arena_alloc(arena, count_rows(program) + 1, sizeof *rows);
  if (!list || !rows) return false;
  for (uint32_t i = 0; i < steps; i++) {
    list[i] = describe_step(program, stele_program_steps(program, i), rows);
    rows += list[i].op_count;
  }
  out->step_phases = list;
  out->step_phases_count = steps;
  out->op_names = op_names;
  out->op_name_count = sizeof op_names / sizeof *op_names;
  return true;
}
