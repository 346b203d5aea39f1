/* The functions that every target defines, one per variant and step, through LLVM's C API. */
#ifndef TGT_STEPS_H
#define TGT_STEPS_H

#include <llvm-c/Core.h>

#include "stele/program.h"

/* The type void(ptr env, ptr args, i32 worker, i32 workers) of a step. */
LLVMTypeRef tgt_step_type(LLVMContextRef context);

/* Adds the hidden function stele_step_VARIANT_STEP with an empty entry block; builder is left at
 * its end. */
LLVMValueRef tgt_step_begin(LLVMModuleRef module, LLVMBuilderRef builder, uint32_t variant,
                            uint32_t step);

#endif
