/* Inside of the reference target. */
#ifndef REF_H
#define REF_H

#include <llvm-c/Core.h>

#include "stele/target.h"

typedef struct ref_self {
  char *triple;                /* LLVM's message memory */
  LLVMMemoryBufferRef emitted; /* the last object that emit made, or NULL */
  stele_object objects[2];
} ref_self;

/* As in stele_target. */
stele_status ref_emit(void *self, const stele_program *program, stele_sink *sink,
                      const stele_object **out_objects, uint32_t *out_count);

#endif
