/* The decode dialect from C: contexts, construction, inspection, verification.
 *
 * A thin layer over the MLIR C API that passes and builders share. MLIR's handles are values
 * (struct with a pointer) and appear here, in passes/ and in stele-opt, nowhere else. */
#ifndef STELE_IR_H
#define STELE_IR_H

#include <mlir-c/IR.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "stele/program.h"

typedef enum ir_level { IR_MODEL = 0, IR_FUSED = 1, IR_SCHEDULED = 2 } ir_level;

/* A row of ops.def, readable. */
typedef struct ir_op_info {
  const char *mnemonic; /* "rms_norm" */
  ir_level first, last;
  const char *operands, *results; /* "x:f residual:f" */
  const char *attributes;
  const char *summary;
} ir_op_info;
const ir_op_info *ir_op_info_get(uint32_t kind); /* enum stele_op_kind; NULL above */

/* What the numbers of artifact.h and program.h are called in IR text. */
typedef enum ir_naming {
  IR_STEP_KINDS,  /* decode, prefill, verify, encode */
  IR_OUTPUTS,     /* none, token, last, all, hidden */
  IR_GROUP_KINDS, /* full, window, chunk, cross, state */
  IR_ROPE_RULES,  /* fixed, dynamic, long */
  IR_PAIRINGS,    /* halves, interleaved */
  IR_FUNCTIONS,   /* silu, gelu, gelu_tanh, relu, swiglu_clamped */
  IR_ROUTES       /* softmax, sigmoid */
} ir_naming;
const char *ir_name(ir_naming naming, uint32_t number); /* NULL when the number has none */
bool ir_number(ir_naming naming, const char *name, uint32_t *out_number);

/* A context with the dialect loaded and its diagnostics going to a sink. Destroy accepts NULL. */
typedef struct ir_context ir_context;
stele_status ir_context_create(stele_sink *sink, ir_context **out_context) STELE_MUST_USE;
void ir_context_destroy(ir_context *context);
MlirContext ir_context_mlir(const ir_context *context);
/* The dialect as IRDL text, made from ops.def. Lives as long as the context. */
const char *ir_context_irdl(const ir_context *context);

/* ---- text ------------------------------------------------------------------------------ */

stele_status ir_parse(ir_context *context, const char *text, size_t length, const char *file_name,
                      stele_sink *sink, MlirModule *out_module) STELE_MUST_USE;
void ir_print(MlirModule module, base_buffer *out);

/* ---- building -------------------------------------------------------------------------- */

struct fe_model;

/* A step the artefact will have. */
typedef struct ir_step {
  uint32_t kind, lanes, width, output; /* as in stele_step */
} ir_step;

typedef struct ir_build_options {
  uint32_t capacity, max_lanes, prefill_width, verify_width;
  uint32_t cache_scheme; /* enum stele_scheme */
  bool precise;
} ir_build_options;

/* The steps that these options ask for, in the order of the artefact's table: decode for
 * 1, 2, 4 .. max_lanes lanes (token, last, hidden), then prefill (none, token, last, all, hidden),
 * then verify (token); those of width 1 are left out. Returns how many; writes at most limit. */
uint32_t ir_steps(const ir_build_options *options, ir_step *out_steps, uint32_t limit);

/* The model-level module of a description: declarations, then a decode.step per step. */
stele_status ir_build(ir_context *context, const struct fe_model *model,
                      const ir_build_options *options, stele_sink *sink,
                      MlirModule *out_module) STELE_MUST_USE;

/* ---- reading ops ----------------------------------------------------------------------- */

uint32_t ir_kind(MlirOperation op); /* enum stele_op_kind, STELE_OP_COUNT: not of the dialect */
bool ir_is(MlirOperation op, uint32_t kind);
/* Attributes: the fallback when absent. Strings live as long as the context. */
int64_t ir_int(MlirOperation op, const char *name, int64_t fallback);
double ir_float(MlirOperation op, const char *name, double fallback);
const char *ir_string(MlirOperation op, const char *name, const char *fallback);
bool ir_has(MlirOperation op, const char *name);
/* Shape of a tensor value: tokens and columns (1 for token ids). */
void ir_shape(MlirValue value, int64_t *out_tokens, int64_t *out_columns);
/* The op that made a value (block arguments do not occur). */
MlirOperation ir_definer(MlirValue value);
/* How many ops read a value; the only one when it is one. */
uint32_t ir_uses(MlirValue value);
MlirOperation ir_only_user(MlirValue value); /* a null op unless ir_uses is 1 */

/* ---- changing ops ---------------------------------------------------------------------- */

typedef struct ir_builder {
  MlirContext context;
  MlirBlock block;
  MlirOperation before; /* insertion point: before this op, or at the end when it is null */
  MlirLocation location;
} ir_builder;
ir_builder ir_builder_before(MlirOperation op);
ir_builder ir_builder_at_end(MlirContext context, MlirBlock block);

/* Creates an op of the dialect and inserts it. columns: of the result, when it has one of type f;
 * tokens: of the result. Results of type i have one column, of type c none. Null operands (absent
 * optional ones) are left out. */
MlirOperation ir_create(const ir_builder *builder, uint32_t kind, const MlirValue *operands,
                        uint32_t operand_count, int64_t tokens, int64_t columns);
void ir_set_int(MlirOperation op, const char *name, int64_t value);
void ir_set_float(MlirOperation op, const char *name, double value);
void ir_set_string(MlirOperation op, const char *name, const char *value);
void ir_set_ints(MlirOperation op, const char *name, const int64_t *values, uint32_t count);
uint32_t ir_ints(MlirOperation op, const char *name, int64_t *out, uint32_t limit);
void ir_copy_attribute(MlirOperation to, const char *to_name, MlirOperation from,
                       const char *from_name);
void ir_remove(MlirOperation op, const char *attribute);
/* Replaces all uses of op's results by values and destroys op. */
void ir_replace(MlirOperation op, const MlirValue *values, uint32_t count);
void ir_erase(MlirOperation op);

/* ---- walking --------------------------------------------------------------------------- */

/* Calls visit for each op of the module's body, or of each step's block, in order. The op may be
 * erased or replaced by visit; ops created before it are not visited. */
typedef stele_status (*ir_visit)(MlirOperation op, void *data);
stele_status ir_walk_declarations(MlirModule module, ir_visit visit, void *data);
stele_status ir_walk_steps(MlirModule module, ir_visit visit, void *data); /* the step ops */
stele_status ir_walk_body(MlirOperation step, ir_visit visit, void *data);
MlirBlock ir_step_block(MlirOperation step);
/* The declaration of a weight, group or rope table; null when there is none. */
MlirOperation ir_find_weight(MlirModule module, const char *name);
MlirOperation ir_find_group(MlirModule module, int64_t index);
MlirOperation ir_find_model(MlirModule module);
MlirOperation ir_find_rope_table(MlirModule module, int64_t index);

/* ---- verifying ------------------------------------------------------------------------- */

/* Everything that IRDL can't say: attributes and arity, shapes, capacities, schemes, names of
 * weights, cache values used once, ops that are gone at this level. Lists all faults. */
stele_status ir_verify(MlirModule module, ir_level level, stele_sink *sink) STELE_MUST_USE;

#endif
