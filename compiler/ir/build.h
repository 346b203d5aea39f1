/* Shared by build.c (declarations) and build_step.c (steps). */
#ifndef STELE_IR_BUILD_H
#define STELE_IR_BUILD_H

#include "frontend/frontend.h"
#include "ir/ir.h"

typedef struct ir_build_state {
  const fe_model *model;
  const ir_build_options *options;
  ir_builder at;               /* in the module's body */
  const uint32_t *layer_group; /* [layers] */
} ir_build_state;

/* Appends the decode.step of one entry of ir_steps. The model's weights must be complete. */
void ir_build_step(const ir_build_state *build, const ir_step *step);

#endif
