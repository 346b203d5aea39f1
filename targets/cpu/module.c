/* What a model's module holds besides the kernels: a function per shape, the places as one constant
 * array, and the steps, which call one after the other.
 *
 *   @shape.I = private constant [.. x i8]                       a cpu_shape
 *   define internal void @op.I.linear(env, args, worker, workers, place) noinline {
 *     %stack = alloca [.. x i8]
 *     call @cpu_op_linear(@shape.I, env, args, worker, workers, place, %stack)     ; inlined
 *   }
 *   define hidden void @stele_step_V_S(env, args, worker, workers) {
 *     call @cpu_layer_hook(...)   where a layer begins or ends
 *     call @cpu_meet(...)         where the program has a barrier
 *     call @op.I.linear(env, args, worker, workers, @places + ...)
 *   } */
#include <stdio.h>

#include "artifact/llvm.h"
#include "cpu/cpu.h"
#include "steps.h"

typedef struct filler {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMTypeRef pointer, word, op_type;
  LLVMValueRef places, meet, hook;
  LLVMValueRef *functions; /* of each shape */
  const stele_program *program;
  const cpu_plan *plan;
} filler;

static void add_attribute(const filler *f, LLVMValueRef function, const char *name, size_t length) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, length);
  LLVMAttributeRef attribute = LLVMCreateEnumAttribute(f->context, kind, 0);
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

static stele_status make_function(filler *f, uint32_t index, stele_sink *sink) {
  const cpu_shape *shape = &f->plan->shapes[index];
  const char *kernel_name = cpu_kernel_name(shape->kind);
  char name[64];
  snprintf(name, sizeof name, "cpu_op_%s", kernel_name);
  LLVMValueRef kernel = LLVMGetNamedFunction(f->module, name);
  if (!kernel) return base_fail(sink, STELE_FAILED, "target 'cpu': no kernel '%s'", kernel_name);

  snprintf(name, sizeof name, "op.%u.%s", index, kernel_name);
  LLVMValueRef function = LLVMAddFunction(f->module, name, f->op_type);
  LLVMSetLinkage(function, LLVMInternalLinkage);
  add_attribute(f, function, "noinline", 8);
  add_attribute(f, function, "nounwind", 8);
  snprintf(name, sizeof name, "shape.%u", index);
  LLVMValueRef constant = artifact_llvm_bytes(f->module, name, shape, sizeof *shape, 16);

  LLVMPositionBuilderAtEnd(f->builder, LLVMAppendBasicBlockInContext(f->context, function, ""));
  LLVMTypeRef frame = LLVMArrayType2(LLVMInt8TypeInContext(f->context), cpu_stack_bytes(shape));
  LLVMValueRef stack = LLVMBuildAlloca(f->builder, frame, "stack");
  LLVMSetAlignment(stack, 64);
  LLVMValueRef arguments[] = {constant,
                              LLVMGetParam(function, 0),
                              LLVMGetParam(function, 1),
                              LLVMGetParam(function, 2),
                              LLVMGetParam(function, 3),
                              LLVMGetParam(function, 4),
                              stack};
  LLVMBuildCall2(f->builder, LLVMGlobalGetValueType(kernel), kernel, arguments, 7, "");
  LLVMBuildRetVoid(f->builder);
  f->functions[index] = function;
  return STELE_OK;
}

/* ---- steps ----------------------------------------------------------------------------- */

static void call_hook(const filler *f, LLVMValueRef step, int32_t layer, uint32_t end) {
  LLVMValueRef arguments[] = {LLVMGetParam(step, 0), LLVMGetParam(step, 2), LLVMGetParam(step, 3),
                              LLVMConstInt(f->word, (uint32_t)layer, 0),
                              LLVMConstInt(f->word, end, 0)};
  LLVMBuildCall2(f->builder, LLVMGlobalGetValueType(f->hook), f->hook, arguments, 5, "");
}

static void call_meet(const filler *f, LLVMValueRef step) {
  LLVMValueRef arguments[] = {LLVMGetParam(step, 0), LLVMGetParam(step, 2), LLVMGetParam(step, 3)};
  LLVMBuildCall2(f->builder, LLVMGlobalGetValueType(f->meet), f->meet, arguments, 3, "");
}

static void call_op(const filler *f, LLVMValueRef step, cpu_planned op) {
  LLVMValueRef offset =
      LLVMConstInt(LLVMInt64TypeInContext(f->context), (uint64_t)op.place * sizeof(cpu_place), 0);
  LLVMValueRef place =
      LLVMConstInBoundsGEP2(LLVMInt8TypeInContext(f->context), f->places, &offset, 1);
  LLVMValueRef arguments[] = {LLVMGetParam(step, 0), LLVMGetParam(step, 1), LLVMGetParam(step, 2),
                              LLVMGetParam(step, 3), place};
  LLVMBuildCall2(f->builder, f->op_type, f->functions[op.shape], arguments, 5, "");
}

/* The layer of the nearest op that has one, before op i (by = -1) or after it (by = 1), or -1. */
static int32_t neighbour_layer(const stele_op *ops, uint32_t count, uint32_t i, int by) {
  for (int64_t j = (int64_t)i + by; j >= 0 && j < count; j += by)
    if (ops[j].layer >= 0) return ops[j].layer;
  return -1;
}

static void make_step(const filler *f, uint32_t variant, uint32_t index) {
  const stele_program_step *step = stele_program_steps(f->program, index);
  const stele_op *ops = stele_program_ops(f->program, step->first_op);
  LLVMValueRef function = tgt_step_begin(f->module, f->builder, variant, index);
  for (uint32_t i = 0; i < step->op_count; i++) {
    const stele_op *op = &ops[i];
    if (op->layer >= 0 && neighbour_layer(ops, step->op_count, i, -1) != op->layer)
      call_hook(f, function, op->layer, 0);
    if (op->barrier) call_meet(f, function);
    cpu_planned planned = f->plan->ops[step->first_op + i];
    if (planned.shape != CPU_NO_OP) call_op(f, function, planned);
    if (op->layer >= 0 && neighbour_layer(ops, step->op_count, i, 1) != op->layer)
      call_hook(f, function, op->layer, 1);
  }
  LLVMBuildRetVoid(f->builder);
}

stele_status cpu_module_fill(LLVMModuleRef module, uint32_t variant, const stele_program *program,
                             const cpu_plan *plan, stele_sink *sink) {
  base_arena arena = {0};
  LLVMContextRef context = LLVMGetModuleContext(module);
  LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0),
              word = LLVMInt32TypeInContext(context);
  LLVMTypeRef parameters[] = {pointer, pointer, word, word, pointer};
  filler f = {.context = context,
              .module = module,
              .builder = LLVMCreateBuilderInContext(context),
              .pointer = pointer,
              .word = word,
              .op_type = LLVMFunctionType(LLVMVoidTypeInContext(context), parameters, 5, 0),
              .meet = LLVMGetNamedFunction(module, "cpu_meet"),
              .hook = LLVMGetNamedFunction(module, "cpu_layer_hook"),
              .places = artifact_llvm_bytes(module, "places", plan->places,
                                            plan->place_count * sizeof(cpu_place), 64),
              .functions = base_arena_alloc(&arena, plan->shape_count + 1u, sizeof(LLVMValueRef)),
              .program = program,
              .plan = plan};
  stele_status status = STELE_OK;
  if (!f.functions) status = base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  for (uint32_t i = 0; i < plan->shape_count && status == STELE_OK; i++)
    status = make_function(&f, i, sink);
  if (status == STELE_OK)
    for (uint32_t s = 0; s < program->steps.count; s++) make_step(&f, variant, s);
  LLVMDisposeBuilder(f.builder);
  base_arena_deinit(&arena);
  return status;
}
