/* Frames of step functions: name, type, visibility. */
#include "steps.h"

#include <stdio.h>

LLVMTypeRef tgt_step_type(LLVMContextRef context) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0);
  LLVMTypeRef word = LLVMInt32TypeInContext(context);
  LLVMTypeRef parameters[] = {pointer, pointer, word, word};
  return LLVMFunctionType(LLVMVoidTypeInContext(context), parameters, 4, 0);
}

LLVMValueRef tgt_step_begin(LLVMModuleRef module, LLVMBuilderRef builder, uint32_t variant,
                            uint32_t step) {
  LLVMContextRef context = LLVMGetModuleContext(module);
  char name[64];
  snprintf(name, sizeof name, "stele_step_%u_%u", variant, step);
  LLVMValueRef function = LLVMAddFunction(module, name, tgt_step_type(context));
  LLVMSetVisibility(function, LLVMHiddenVisibility);
  LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, "entry"));
  return function;
}
