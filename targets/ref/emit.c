/* The objects of the reference target: the interpreter, compiled when stele was built, and a
 * small one with the program as constant data and a function per step that hands it over:
 *   stele_step_0_S(env, args, worker, workers) { ref_step(program, S, env, args, worker, workers) }
 */
#include "artifact/llvm.h"
#include "ref/interpret.h"
#include "ref/ref.h"
#include "steps.h"

/* ref_object.c, made by the build from interpret.c and its neighbours */
extern const unsigned char ref_object[];
extern const size_t ref_object_bytes;

/* The interpreter keeps one head on its stack. */
static stele_status check_heads(const stele_program *program, stele_sink *sink) {
  for (uint64_t i = 0; i < program->groups.count; i++) {
    const stele_group *group = stele_program_groups(program, i);
    uint32_t size = group->key_head > group->value_head ? group->key_head : group->value_head;
    if (size > REF_MAX_HEAD)
      return base_fail(sink, STELE_UNSUPPORTED,
                       "target 'ref': heads of %u elements, at most %u are possible", size,
                       REF_MAX_HEAD);
  }
  return STELE_OK;
}

static void add_steps(LLVMModuleRef module, const stele_program *program) {
  LLVMContextRef context = LLVMGetModuleContext(module);
  LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0);
  LLVMTypeRef word = LLVMInt32TypeInContext(context);
  LLVMTypeRef parameters[] = {pointer, word, pointer, pointer, word, word};
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), parameters, 6, 0);
  LLVMValueRef run = LLVMAddFunction(module, "ref_step", type);
  LLVMSetVisibility(run, LLVMHiddenVisibility);
  LLVMValueRef data = artifact_llvm_bytes(module, "program", program, program->bytes, 64);

  LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
  for (uint32_t step = 0; step < program->steps.count; step++) {
    LLVMValueRef function = tgt_step_begin(module, builder, 0, step);
    LLVMValueRef arguments[] = {data,
                                LLVMConstInt(word, step, 0),
                                LLVMGetParam(function, 0),
                                LLVMGetParam(function, 1),
                                LLVMGetParam(function, 2),
                                LLVMGetParam(function, 3)};
    LLVMBuildCall2(builder, type, run, arguments, 6, "");
    LLVMBuildRetVoid(builder);
  }
  LLVMDisposeBuilder(builder);
}

stele_status ref_emit(void *opaque, const stele_program *program, stele_sink *sink,
                      const stele_object **out_objects, uint32_t *out_count) {
  ref_self *self = opaque;
  BASE_TRY(check_heads(program, sink));
  LLVMTargetMachineRef machine;
  BASE_TRY(artifact_llvm_machine(self->triple, "", "", sink, &machine));
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext("ref", context);
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
  self->objects[0] =
      (stele_object){"ref-steps.o", LLVMGetBufferStart(emitted), LLVMGetBufferSize(emitted)};
  self->objects[1] = (stele_object){"ref-interpret.o", ref_object, ref_object_bytes};
  *out_objects = self->objects;
  *out_count = 2;
  return STELE_OK;
}
