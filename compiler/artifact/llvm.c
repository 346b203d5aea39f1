/* LLVM's C API as the rest of the compiler wants it: failures are statuses with a message, never
 * an exit. */
#include "artifact/llvm.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <pthread.h>

stele_status artifact_llvm_fail(stele_sink *sink, stele_status code, const char *what,
                                char *message) {
  stele_status status =
      base_fail(sink, code, "%s: %s", what, message ? message : "no reason given");
  if (message) LLVMDisposeMessage(message);
  return status;
}

/* LLVM's registry of targets is one per process and may be filled once only. */
static void register_targets(void) {
  LLVMInitializeAllTargetInfos();
  LLVMInitializeAllTargets();
  LLVMInitializeAllTargetMCs();
  LLVMInitializeAllAsmPrinters();
  LLVMInitializeAllAsmParsers();
}

static void register_targets_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_targets);
}

char *artifact_llvm_host_triple(void) { return LLVMGetDefaultTargetTriple(); }

stele_status artifact_llvm_machine(const char *triple, const char *cpu, const char *features,
                                   stele_sink *sink, LLVMTargetMachineRef *out_machine) {
  register_targets_once();
  LLVMTargetRef target;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(triple, &target, &message))
    return artifact_llvm_fail(sink, STELE_UNSUPPORTED, "cannot make code for this machine",
                              message);
  LLVMTargetMachineRef machine =
      LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelAggressive,
                              LLVMRelocPIC, LLVMCodeModelDefault);
  if (!machine)
    return base_fail(sink, STELE_UNSUPPORTED, "cannot make code for '%s', processor '%s'", triple,
                     cpu);
  *out_machine = machine;
  return STELE_OK;
}

void artifact_llvm_prepare(LLVMModuleRef module, const char *triple, LLVMTargetMachineRef machine) {
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  LLVMSetTarget(module, triple);
}

stele_status artifact_llvm_emit(LLVMTargetMachineRef machine, LLVMModuleRef module,
                                stele_sink *sink, LLVMMemoryBufferRef *out_object) {
  char *message = NULL;
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
    return artifact_llvm_fail(sink, STELE_FAILED, "generated code is not well-formed", message);
  LLVMDisposeMessage(message);
  message = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, out_object))
    return artifact_llvm_fail(sink, STELE_FAILED, "cannot emit code", message);
  return STELE_OK;
}

LLVMValueRef artifact_llvm_bytes(LLVMModuleRef module, const char *name, const void *bytes,
                                 size_t size, unsigned align) {
  LLVMContextRef context = LLVMGetModuleContext(module);
  LLVMValueRef data = LLVMConstStringInContext2(context, bytes, size, 1);
  LLVMValueRef global = LLVMAddGlobal(module, LLVMTypeOf(data), name);
  LLVMSetInitializer(global, data);
  LLVMSetGlobalConstant(global, 1);
  LLVMSetLinkage(global, LLVMPrivateLinkage);
  LLVMSetAlignment(global, align);
  return global;
}
