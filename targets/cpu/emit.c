/* Code for a program: per level, the kernels' bitcode becomes the model's module, gets the op
 * functions and steps, is optimised once and written as an object. */
#include "artifact/llvm.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <string.h>

#include "cpu/cpu.h"

/* Kernels are inlined and dropped before anything is optimised: only what the op functions keep of
 * them is worth the time. Loops are vectors already. */
#define PASSES "always-inline,globaldce,default<O3>"

static void set_string_attribute(LLVMContextRef context, LLVMValueRef function, const char *name,
                                 const char *value) {
  LLVMAttributeRef attribute = LLVMCreateStringAttribute(context, name, (unsigned)strlen(name),
                                                         value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

static void drop_string_attribute(LLVMValueRef function, const char *name) {
  LLVMRemoveStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, name,
                                   (unsigned)strlen(name));
}

/* Everything defined is for the level's processor, or nothing would be inlined; all but the steps
 * is internal. An absent "min-legal-vector-width" allows the widest registers. */
static void finish_functions(LLVMModuleRef module, const cpu_level *level) {
  LLVMContextRef context = LLVMGetModuleContext(module);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f)) continue;
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    set_string_attribute(context, f, "target-cpu", level->llvm_cpu);
    drop_string_attribute(f, "target-features");
    drop_string_attribute(f, "tune-cpu");
    drop_string_attribute(f, "min-legal-vector-width");
    if (level->llvm_features[0])
      set_string_attribute(context, f, "target-features", level->llvm_features);
    if (strncmp(name, "stele_step_", 11) == 0) continue;
    LLVMSetVisibility(f, LLVMDefaultVisibility);
    LLVMSetLinkage(f, LLVMInternalLinkage);
  }
}

static stele_status parse_kernels(const cpu_level *level, LLVMContextRef context, stele_sink *sink,
                                  LLVMModuleRef *out_module) {
  LLVMMemoryBufferRef bitcode = LLVMCreateMemoryBufferWithMemoryRange(
      (const char *)level->kernels, *level->kernel_bytes, "kernels", 0);
  LLVMBool failed = LLVMParseBitcodeInContext2(context, bitcode, out_module);
  LLVMDisposeMemoryBuffer(bitcode);
  if (failed)
    return base_fail(sink, STELE_FAILED, "target 'cpu': the kernels of level '%s' can't be read",
                     level->info.name);
  LLVMSetModuleIdentifier(*out_module, "stele", 5);
  LLVMSetSourceFileName(*out_module, "stele", 5);
  return STELE_OK;
}

static stele_status optimise(LLVMModuleRef module, LLVMTargetMachineRef machine, stele_sink *sink) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMPassBuilderOptionsSetLoopVectorization(options, 0);
  LLVMPassBuilderOptionsSetLoopUnrolling(options, 0); /* but for loops that ask for it */
  LLVMPassBuilderOptionsSetLoopInterleaving(options, 0);
  LLVMPassBuilderOptionsSetSLPVectorization(options, 0);
  LLVMErrorRef error = LLVMRunPasses(module, PASSES, machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (!error) return STELE_OK;
  char *message = LLVMGetErrorMessage(error);
  stele_status status =
      base_fail(sink, STELE_FAILED, "target 'cpu': code can't be optimised: %s", message);
  LLVMDisposeErrorMessage(message);
  return status;
}

/* ---- what --dump-dir asks for ---------------------------------------------------------- */

static stele_status dump(const cpu_self *self, const cpu_level *level, LLVMModuleRef module,
                         LLVMTargetMachineRef machine, stele_sink *sink) {
  if (!self->dump_directory) return STELE_OK;
  base_arena arena = {0};
  char *ll = base_arena_format(&arena, "%s/cpu-%s.ll", self->dump_directory, level->info.name);
  char *as = base_arena_format(&arena, "%s/cpu-%s.s", self->dump_directory, level->info.name);
  char *message = NULL;
  stele_status status = STELE_OK;
  LLVMModuleRef copy = LLVMCloneModule(module); /* making assembly changes a module */
  if (!ll || !as)
    status = base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  else if (LLVMPrintModuleToFile(module, ll, &message))
    status = artifact_llvm_fail(sink, STELE_IO, ll, message);
  else if (LLVMTargetMachineEmitToFile(machine, copy, as, LLVMAssemblyFile, &message))
    status = artifact_llvm_fail(sink, STELE_IO, as, message);
  LLVMDisposeModule(copy);
  base_arena_deinit(&arena);
  return status;
}

/* ---- a level --------------------------------------------------------------------------- */

static stele_status emit_module(const cpu_self *self, uint32_t variant,
                                const stele_program *program, const cpu_plan *plan,
                                LLVMModuleRef module, LLVMTargetMachineRef machine,
                                stele_sink *sink, LLVMMemoryBufferRef *out_object) {
  const cpu_level *level = self->levels[variant];
  artifact_llvm_prepare(module, CPU_TRIPLE, machine);
  BASE_TRY(cpu_module_fill(module, variant, program, plan, sink));
  finish_functions(module, level);
  BASE_TRY(optimise(module, machine, sink));
  BASE_TRY(dump(self, level, module, machine, sink));
  return artifact_llvm_emit(machine, module, sink, out_object);
}

static stele_status emit_level(const cpu_self *self, uint32_t variant, const stele_program *program,
                               const cpu_plan *plan, stele_sink *sink,
                               LLVMMemoryBufferRef *out_object) {
  const cpu_level *level = self->levels[variant];
  LLVMTargetMachineRef machine;
  BASE_TRY(
      artifact_llvm_machine(CPU_TRIPLE, level->llvm_cpu, level->llvm_features, sink, &machine));
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = NULL;
  stele_status status = parse_kernels(level, context, sink, &module);
  if (status == STELE_OK) {
    status = emit_module(self, variant, program, plan, module, machine, sink, out_object);
    LLVMDisposeModule(module);
  }
  LLVMContextDispose(context);
  LLVMDisposeTargetMachine(machine);
  return status;
}

stele_status cpu_emit(void *opaque, const stele_program *program, stele_sink *sink,
                      const stele_object **out_objects, uint32_t *out_count) {
  static const char *const names[CPU_LEVELS] = {"cpu-0.o", "cpu-1.o", "cpu-2.o"};
  cpu_self *self = opaque;
  base_arena arena = {0};
  cpu_plan plan;
  stele_status status = cpu_plan_make(program, &arena, sink, &plan);
  for (uint32_t v = 0; v < self->count && status == STELE_OK; v++) {
    if (self->emitted[v]) LLVMDisposeMemoryBuffer(self->emitted[v]);
    self->emitted[v] = NULL;
    status = emit_level(self, v, program, &plan, sink, &self->emitted[v]);
    if (status == STELE_OK)
      self->objects[v] = (stele_object){names[v], LLVMGetBufferStart(self->emitted[v]),
                                        LLVMGetBufferSize(self->emitted[v])};
  }
  base_arena_deinit(&arena);
  if (status != STELE_OK) return status;
  *out_objects = self->objects;
  *out_count = self->count;
  return STELE_OK;
}
