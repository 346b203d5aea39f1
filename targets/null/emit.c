/* Steps of the null target: workers meet as often as the program says, then worker 0 sets the
 * tokens that the step answers to 0; nothing else is touched. */
#include <stddef.h>

#include "artifact/llvm.h"
#include "null/null.h"
#include "steps.h"

/* if (worker == 0) args->out_tokens[0 .. count - 1] = 0 */
static void clear_tokens(LLVMBuilderRef builder, LLVMValueRef function, uint32_t count) {
  LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
  LLVMTypeRef byte = LLVMInt8TypeInContext(context), word = LLVMInt32TypeInContext(context);
  LLVMTypeRef size = LLVMInt64TypeInContext(context);
  LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0);
  LLVMBasicBlockRef clear = LLVMAppendBasicBlockInContext(context, function, "clear");
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(context, function, "done");
  LLVMValueRef first = LLVMBuildICmp(builder, LLVMIntEQ, LLVMGetParam(function, 2),
                                     LLVMConstInt(word, 0, 0), "first");
  LLVMBuildCondBr(builder, first, clear, done);
  LLVMPositionBuilderAtEnd(builder, clear);
  LLVMValueRef offset = LLVMConstInt(size, offsetof(stele_step_args, out_tokens), 0);
  LLVMValueRef field =
      LLVMBuildInBoundsGEP2(builder, byte, LLVMGetParam(function, 1), &offset, 1, "field");
  LLVMValueRef tokens = LLVMBuildLoad2(builder, pointer, field, "tokens");
  for (uint32_t i = 0; i < count; i++) {
    LLVMValueRef index = LLVMConstInt(size, i, 0);
    LLVMValueRef at = LLVMBuildInBoundsGEP2(builder, word, tokens, &index, 1, "at");
    LLVMBuildStore(builder, LLVMConstInt(word, 0, 0), at);
  }
  LLVMBuildBr(builder, done);
  LLVMPositionBuilderAtEnd(builder, done);
}

/* How often the program's workers meet in a step. */
static uint32_t count_meetings(const stele_program *program, const stele_program_step *step) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < step->op_count; i++) {
    const stele_op *op = stele_program_ops(program, step->first_op + i);
    count += (op->barrier && i) + (uint32_t)stele_op_meets_inside(op->kind);
  }
  return count;
}

/* if (env->barrier) for (i = 0; i < count; i++) env->barrier(env->barrier_data, worker) */
static void meet(LLVMBuilderRef builder, LLVMValueRef function, uint32_t count) {
  LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
  LLVMTypeRef byte = LLVMInt8TypeInContext(context), word = LLVMInt32TypeInContext(context);
  LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0);
  LLVMTypeRef parameters[] = {pointer, word};
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), parameters, 2, 0);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(builder);
  LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(context, function, "meet");
  LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(context, function, "met");
  LLVMValueRef fields[2];
  const size_t offsets[] = {offsetof(stele_env, barrier), offsetof(stele_env, barrier_data)};
  for (int i = 0; i < 2; i++) {
    LLVMValueRef offset = LLVMConstInt(LLVMInt64TypeInContext(context), offsets[i], 0);
    LLVMValueRef at =
        LLVMBuildInBoundsGEP2(builder, byte, LLVMGetParam(function, 0), &offset, 1, "at");
    fields[i] = LLVMBuildLoad2(builder, pointer, at, "field");
  }
  LLVMBuildCondBr(builder, LLVMBuildIsNull(builder, fields[0], "alone"), after, body);
  LLVMPositionBuilderAtEnd(builder, body);
  LLVMValueRef round = LLVMBuildPhi(builder, word, "round");
  LLVMValueRef arguments[] = {fields[1], LLVMGetParam(function, 2)};
  LLVMBuildCall2(builder, type, fields[0], arguments, 2, "");
  LLVMValueRef next = LLVMBuildAdd(builder, round, LLVMConstInt(word, 1, 0), "next");
  LLVMValueRef more =
      LLVMBuildICmp(builder, LLVMIntULT, next, LLVMConstInt(word, count, 0), "more");
  LLVMBuildCondBr(builder, more, body, after);
  LLVMValueRef values[] = {LLVMConstInt(word, 0, 0), next};
  LLVMBasicBlockRef blocks[] = {before, body};
  LLVMAddIncoming(round, values, blocks, 2);
  LLVMPositionBuilderAtEnd(builder, after);
}

static void add_steps(LLVMModuleRef module, const stele_program *program) {
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  for (uint32_t i = 0; i < program->steps.count; i++) {
    const stele_program_step *step = stele_program_steps(program, i);
    LLVMValueRef function = tgt_step_begin(module, builder, 0, i);
    uint32_t meetings = count_meetings(program, step);
    if (meetings) meet(builder, function, meetings);
    if (step->output == STELE_OUTPUT_TOKEN)
      clear_tokens(builder, function,
                   step->lanes * (step->kind == STELE_STEP_VERIFY ? step->width : 1));
    LLVMBuildRetVoid(builder);
  }
  LLVMDisposeBuilder(builder);
}

stele_status null_emit(void *opaque, const stele_program *program, stele_sink *sink,
                       const stele_object **out_objects, uint32_t *out_count) {
  null_self *self = opaque;
  LLVMTargetMachineRef machine;
  BASE_TRY(artifact_llvm_machine(self->triple, "", "", sink, &machine));
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext("null", context);
  artifact_llvm_prepare(module, self->triple, machine);
  add_steps(module, program);
  LLVMMemoryBufferRef emitted = NULL;
  stele_status status = artifact_llvm_emit(machine, module, sink, &emitted);
  LLVMDisposeModule(module);
  LLVMContextDispose(context);
  LLVMDisposeTargetMachine(machine);
  if (status != STELE_OK) return status;

  if (self->emitted) LLVMDisposeMemoryBuffer(self->emitted);
  self->emitted = emitted;
  self->object =
      (stele_object){"null-steps.o", LLVMGetBufferStart(emitted), LLVMGetBufferSize(emitted)};
  *out_objects = &self->object;
  *out_count = 1;
  return STELE_OK;
}
