/* Code for a program: per level and part, the kernels' bitcode becomes a module, gets the part's op
 * functions (the first one the steps as well), is optimised once and written as an object. Each is
 * made in an LLVM context of its own, so threads make them at the same time. */
#include "artifact/llvm.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"

/* Kernels are inlined and dropped before anything is optimised: only what the op functions keep of
 * them is worth the time. Loops are vectors already. */
#define PASSES "always-inline,globaldce,default<O3>"

/* One object in the making. */
typedef struct cpu_job {
  uint32_t variant, part;
  stele_status status;
  LLVMMemoryBufferRef object;
  stele_sink sink;
} cpu_job;

typedef struct cpu_emission {
  cpu_self *self;
  const stele_program *program;
  const cpu_plan *plan;
  cpu_job *jobs;
  uint32_t job_count;
  atomic_uint next;
} cpu_emission;

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

static bool starts_with(const char *text, const char *start) {
  return strncmp(text, start, strlen(start)) == 0;
}

/* Everything defined is for the level's processor, or nothing would be inlined; kernels are
 * internal. An absent "min-legal-vector-width" allows the widest registers. */
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
    if (starts_with(name, "stele_step_") || starts_with(name, CPU_OP_PREFIX)) continue;
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

static stele_status dump(const cpu_self *self, const cpu_job *job, LLVMModuleRef module,
                         LLVMTargetMachineRef machine, stele_sink *sink) {
  if (!self->dump_directory) return STELE_OK;
  base_arena arena = {0};
  const char *name = self->levels[job->variant]->info.name;
  char *ll = base_arena_format(&arena, "%s/cpu-%s-%u.ll", self->dump_directory, name, job->part);
  char *as = base_arena_format(&arena, "%s/cpu-%s-%u.s", self->dump_directory, name, job->part);
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

/* ---- a part of a level ----------------------------------------------------------------- */

static stele_status emit_module(const cpu_emission *e, cpu_job *job, LLVMModuleRef module,
                                LLVMTargetMachineRef machine) {
  artifact_llvm_prepare(module, CPU_TRIPLE, machine);
  BASE_TRY(cpu_module_fill(module, job->variant, job->part, e->program, e->plan, &job->sink));
  finish_functions(module, e->self->levels[job->variant]);
  BASE_TRY(optimise(module, machine, &job->sink));
  BASE_TRY(dump(e->self, job, module, machine, &job->sink));
  return artifact_llvm_emit(machine, module, &job->sink, &job->object);
}

static stele_status emit_part(const cpu_emission *e, cpu_job *job) {
  const cpu_level *level = e->self->levels[job->variant];
  LLVMTargetMachineRef machine;
  BASE_TRY(artifact_llvm_machine(CPU_TRIPLE, level->llvm_cpu, level->llvm_features, &job->sink,
                                 &machine));
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = NULL;
  stele_status status = parse_kernels(level, context, &job->sink, &module);
  if (status == STELE_OK) {
    status = emit_module(e, job, module, machine);
    LLVMDisposeModule(module);
  }
  LLVMContextDispose(context);
  LLVMDisposeTargetMachine(machine);
  return status;
}

/* ---- all of them ----------------------------------------------------------------------- */

static void *work(void *data) {
  cpu_emission *e = data;
  for (uint32_t i; (i = atomic_fetch_add(&e->next, 1)) < e->job_count;)
    e->jobs[i].status = emit_part(e, &e->jobs[i]);
  return NULL;
}

/* This thread and as many more as may be; what a thread that can't be had would have done the
 * others do. */
static void run_jobs(cpu_emission *e) {
  pthread_t threads[CPU_JOBS];
  uint32_t count = 0;
  while (count + 1 < e->job_count && count + 1 < e->self->threads &&
         pthread_create(&threads[count], NULL, work, e) == 0)
    count++;
  work(e);
  for (uint32_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* Hands the objects over to self; the first failure in the order of the jobs is the one told. */
static stele_status collect(cpu_emission *e, stele_sink *sink) {
  stele_status status = STELE_OK;
  for (uint32_t i = 0; i < e->job_count; i++) {
    cpu_job *job = &e->jobs[i];
    if (status == STELE_OK && job->status != STELE_OK)
      status = base_fail(sink, job->status, "%s", job->sink.text);
    e->self->emitted[i] = job->object;
    snprintf(e->self->names[i], sizeof e->self->names[i], "cpu-%u-%u.o", job->variant, job->part);
    if (job->object)
      e->self->objects[i] = (stele_object){e->self->names[i], LLVMGetBufferStart(job->object),
                                           LLVMGetBufferSize(job->object)};
  }
  return status;
}

stele_status cpu_emit(void *opaque, const stele_program *program, stele_sink *sink,
                      const stele_object **out_objects, uint32_t *out_count) {
  cpu_self *self = opaque;
  base_arena arena = {0};
  cpu_plan plan;
  cpu_release(self);
  cpu_job *jobs = base_arena_alloc(&arena, CPU_JOBS, sizeof *jobs);
  stele_status status = jobs ? cpu_plan_make(program, &arena, sink, &plan)
                             : base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  if (status == STELE_OK) {
    cpu_emission e = {self, program, &plan, jobs, self->count * CPU_PARTS, 0};
    for (uint32_t i = 0; i < e.job_count; i++)
      jobs[i].variant = i / CPU_PARTS, jobs[i].part = i % CPU_PARTS;
    run_jobs(&e);
    status = collect(&e, sink);
  }
  base_arena_deinit(&arena);
  if (status != STELE_OK) return status;
  *out_objects = self->objects;
  *out_count = self->count * CPU_PARTS;
  return STELE_OK;
}

void cpu_release(cpu_self *self) {
  for (uint32_t i = 0; i < CPU_JOBS; i++) {
    if (self->emitted[i]) LLVMDisposeMemoryBuffer(self->emitted[i]);
    self->emitted[i] = NULL;
  }
}
