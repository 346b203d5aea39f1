/* Inside of the null target. */
#ifndef NULL_H
#define NULL_H

#include <llvm-c/Core.h>

#include "stele/target.h"

typedef struct null_self {
  char *triple;                /* LLVM's message memory */
  LLVMMemoryBufferRef emitted; /* the last object that emit made, or NULL */
  stele_object object;
} null_self;

/* As in stele_target. */
stele_status null_emit(void *self, const stele_program *program, stele_sink *sink,
                       const stele_object **out_objects, uint32_t *out_count);

#endif
