/* What the artefact writer and the targets share of LLVM's C API: machines for a triple, objects
 * from modules, and its messages as statuses. LLVM's handles are values of this header's users
 * only; they never cross target.h. */
#ifndef STELE_ARTIFACT_LLVM_H
#define STELE_ARTIFACT_LLVM_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "base/base.h"

/* Fails with code and "what: message"; takes the message (NULL: none given). */
stele_status artifact_llvm_fail(stele_sink *sink, stele_status code, const char *what,
                                char *message);

/* The triple of the machine that this runs on; free with LLVMDisposeMessage. */
char *artifact_llvm_host_triple(void);

/* A machine that makes position-independent code for a triple. cpu and features as LLVM spells
 * them, "" for the baseline. The caller disposes of it. */
stele_status artifact_llvm_machine(const char *triple, const char *cpu, const char *features,
                                   stele_sink *sink,
                                   LLVMTargetMachineRef *out_machine) STELE_MUST_USE;

/* Gives a module the triple and data layout of a machine. */
void artifact_llvm_prepare(LLVMModuleRef module, const char *triple, LLVMTargetMachineRef machine);

/* Verifies a module and emits it as a relocatable object. The caller disposes of the buffer. */
stele_status artifact_llvm_emit(LLVMTargetMachineRef machine, LLVMModuleRef module,
                                stele_sink *sink, LLVMMemoryBufferRef *out_object) STELE_MUST_USE;

/* A private constant array of bytes, aligned to `align`. */
LLVMValueRef artifact_llvm_bytes(LLVMModuleRef module, const char *name, const void *bytes,
                                 size_t size, unsigned align);

#endif
