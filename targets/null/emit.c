/* Steps of the null target: worker 0 sets the tokens that the step answers to 0; nothing else is
 * touched. */
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

static void add_steps(LLVMModuleRef module, const stele_program *program) {
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  for (uint32_t i = 0; i < program->steps.count; i++) {
    const stele_program_step *step = stele_program_steps(program, i);
    LLVMValueRef function = tgt_step_begin(module, builder, 0, i);
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
