/* Shared by the files of flatten only: the program's tables while they grow. */
#ifndef STELE_PASSES_FLATTEN_H
#define STELE_PASSES_FLATTEN_H

#include "internal.h"

typedef struct flattening {
  pass_context *context;
  pass_weights weights;
  stele_program header;
  base_buffer steps, ops, buffers, program_weights, groups, ropes, layer_group, strings;
  /* The step at hand. */
  uint8_t *read;   /* [weights] already counted in bytes_per_call */
  int32_t *result; /* [ops of the step] buffer of the op's result, -1: none */
  int32_t *stage;  /* [ops of the step] buffer of the pages that it stages, -1: none */
} flattening;

/* Declarations into tables: weights with their offsets, groups, ropes, the model's sizes. */
stele_status flatten_declarations(flattening *f) STELE_MUST_USE;
/* One step and its ops. */
stele_status flatten_step(pass_step *step, void *flattening_data) STELE_MUST_USE;
/* The weight bytes that an op reads, those counted before in this step left out. */
uint64_t flatten_bytes_read(flattening *f, const stele_op *op);

#endif
