/* Shared by the files of the builder: build.c (declarations), build_check.c (what is refused),
 * build_step.c (steps) and build_layer.c (their layers). */
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

/* Lists in the sink what the builder takes for granted and the model or the options lack. */
stele_status ir_build_check(const fe_model *model, const ir_build_options *options,
                            stele_sink *sink) STELE_MUST_USE;

/* Appends the decode.step of one entry of ir_steps. The model must have passed the check. */
void ir_build_step(const ir_build_state *build, const ir_step *step);

/* ---- within a step --------------------------------------------------------------------- */

typedef struct ir_step_state {
  const ir_build_state *build;
  ir_builder at; /* in the step's block */
  int64_t lanes, tokens;
  int32_t layer; /* -1 outside layers: what ops are marked with */
} ir_step_state;

/* Appends an op; inside a layer it is marked with the layer's number. Null operands are not there.
 */
MlirOperation ir_emit(const ir_step_state *s, uint32_t kind, MlirValue a, MlirValue b, MlirValue c,
                      int64_t columns);
MlirValue ir_value(MlirOperation op); /* its result */
#define IR_NONE ((MlirValue){NULL})

/* The weight of a role in the layer at hand, or NULL. */
const fe_weight *ir_role(const ir_step_state *s, fe_role role);

/* x [T x columns], each run of `segment` columns normed by itself; no weight: x as it is. */
MlirValue ir_norm(const ir_step_state *s, MlirValue x, fe_role role, fe_role bias, int64_t segment,
                  int64_t columns);

/* x W^T + bias, the bias if the model has one; FE_ROLE_COUNT: no bias. */
MlirValue ir_linear(const ir_step_state *s, MlirValue x, fe_role role, fe_role bias);

/* x times a factor, x itself where it is 1. */
MlirValue ir_scale(const ir_step_state *s, MlirValue x, double factor, int64_t columns);

/* The experts that each token is routed to: n [T x hidden] -> [T x hidden]. */
MlirValue ir_build_experts(const ir_step_state *s, MlirValue n);

/* A layer, from residual stream to residual stream [T x hidden]. */
MlirValue ir_build_layer(const ir_step_state *s, MlirValue x);

#endif
