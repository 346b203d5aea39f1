/* Inside of the CPU target. */
#ifndef CPU_H
#define CPU_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "base/base.h"
#include "cpu/kernels/shape.h"
#include "stele/target.h"

#define CPU_TRIPLE "x86_64-unknown-linux-gnu"

/* An instruction set that there are kernels for. */
typedef struct cpu_level {
  stele_variant_info info;
  const char *llvm_cpu, *llvm_features; /* as LLVM spells them */
  const unsigned char *kernels;         /* bitcode */
  const size_t *kernel_bytes;
} cpu_level;

/* How many portable holds. */
enum {
  CPU_LEVELS = 0
#define LEVEL(...) +1
#define ALIAS(...)
#include "cpu/levels.def"
#undef LEVEL
#undef ALIAS
};
#define CPU_PARTS 4u /* objects per level: the same on every machine, so that bytes are too */
#define CPU_JOBS (CPU_LEVELS * CPU_PARTS)

/* Levels for a name given with --cpu, best first; NULL is native. */
stele_status cpu_levels_find(const char *name, stele_sink *sink,
                             const cpu_level *out_levels[CPU_LEVELS], uint32_t *out_count);

typedef struct cpu_self {
  const cpu_level *levels[CPU_LEVELS];
  stele_variant_info infos[CPU_LEVELS];
  stele_object objects[CPU_JOBS];
  LLVMMemoryBufferRef emitted[CPU_JOBS];
  char names[CPU_JOBS][16]; /* of the objects */
  uint32_t count, threads;
  char *dump_directory; /* or NULL */
} cpu_self;

/* ---- layout.c, pack.c ------------------------------------------------------------------ */

stele_status cpu_layout(const void *self, uint32_t scheme, uint64_t rows, uint64_t columns,
                        bool embedding, stele_sink *sink, uint32_t *out_layout,
                        uint64_t *out_bytes);
stele_status cpu_pack(const void *self, uint32_t scheme, uint32_t layout, uint64_t rows,
                      uint64_t columns, uint64_t first, uint64_t count, const void *source,
                      void *destination, stele_sink *sink);
/* Bytes of a panel of 16 rows; false when the scheme has no panels, columns is no multiple of its
 * block, or the size overflows. */
bool cpu_panel_bytes(uint32_t scheme, uint64_t columns, size_t *out_bytes);

/* ---- plan.c: from ops to shapes and places --------------------------------------------- */

/* One op of a step: which op function it calls, and with what. */
typedef struct cpu_planned {
  uint32_t shape, place; /* CPU_NO_OP: nothing to call */
} cpu_planned;
#define CPU_NO_OP UINT32_MAX

/* All ops of a program; equal shapes and places are there once. Memory is the arena's. */
typedef struct cpu_plan {
  cpu_shape *shapes;
  cpu_place *places;
  uint32_t *place_shapes; /* of each place */
  cpu_planned *ops;       /* of each op of the program */
  uint32_t shape_count, place_count;
} cpu_plan;
stele_status cpu_plan_make(const stele_program *program, base_arena *arena, stele_sink *sink,
                           cpu_plan *out_plan);
/* Kernel of an op, NULL when it does nothing at run time. */
const char *cpu_kernel_name(uint32_t kind);

/* ---- emit.c, module.c ------------------------------------------------------------------ */

stele_status cpu_emit(void *self, const stele_program *program, stele_sink *sink,
                      const stele_object **out_objects, uint32_t *out_count);

/* Frees what was emitted. */
void cpu_release(cpu_self *self);

#define CPU_OP_PREFIX "cpu_shape_" /* names of op functions begin so; they are hidden */

/* Fills a module that holds the kernels of a level with a part's op functions; part 0 has the steps
 * as well. */
stele_status cpu_module_fill(LLVMModuleRef module, uint32_t variant, uint32_t part,
                             const stele_program *program, const cpu_plan *plan, stele_sink *sink);

#endif
