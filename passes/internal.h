/* Shared by the passes only: ops of a step as an array, maps, matching, weights by name. */
#ifndef STELE_PASSES_INTERNAL_H
#define STELE_PASSES_INTERNAL_H

#include "passes.h"
#include "weights/weights.h"

#define PASS_LINE 64u     /* alignment of everything in workspace and weights */
#define PASS_Q8_BLOCK 32u /* numbers per block of 8-bit activations */

/* The pass functions that passes.def names. */
#define PASS(name, function, ...) stele_status pass_##function(pass_context *context, bool trivial);
#include "passes.def"
#undef PASS

/* ---- maps ------------------------------------------------------------------------------ */

/* Numbers by op, in arena memory; sized once for `limit` entries. */
typedef struct pass_map {
  struct pass_slot {
    const void *key;
    uint32_t value;
  } *slots;
  uint32_t mask;
} pass_map;
#define PASS_ABSENT UINT32_MAX
bool pass_map_init(pass_map *map, base_arena *arena, size_t limit);
void pass_map_put(pass_map *map, MlirOperation op, uint32_t value);
uint32_t pass_map_get(const pass_map *map, MlirOperation op); /* PASS_ABSENT: not in it */

/* ---- weights --------------------------------------------------------------------------- */

typedef struct pass_weight {
  const char *name;
  MlirOperation op; /* decode.weight */
  uint32_t scheme;
  uint64_t rows, columns;
  uint32_t experts; /* matrices that the rows are of, 0: one */
  bool gathered;    /* an embed reads single rows of it */
  bool plain;       /* a vector or a rope table: float32 rows, never packed */
} pass_weight;

typedef struct pass_weights {
  pass_weight *list; /* in the order of the declarations */
  uint32_t count;
  uint32_t *slots; /* by name */
  uint32_t mask;
} pass_weights;
stele_status pass_weights_load(pass_context *context, pass_weights *out_weights) STELE_MUST_USE;
/* The index of a weight, PASS_ABSENT when there is none or name is NULL. */
uint32_t pass_weights_find(const pass_weights *weights, const char *name);
/* The weight that an attribute of an op names; fails when it is not declared. absent: no such
 * attribute is fine and gives NULL. */
stele_status pass_weight_of(pass_context *context, const pass_weights *weights, MlirOperation op,
                            const char *attribute, bool absent,
                            const pass_weight **out_weight) STELE_MUST_USE;

/* ---- steps ----------------------------------------------------------------------------- */

/* A step while a pass works on it. ops are those that were there when the pass came to the step;
 * a pass sets to null those that it erases and has not visited yet. */
typedef struct pass_step {
  pass_context *context;
  MlirOperation op;
  int64_t lanes, width;
  MlirOperation *ops;
  uint32_t count;
  pass_map index; /* position of each op in ops */
} pass_step;
typedef stele_status (*pass_visit)(pass_step *step, void *data);
/* Calls visit for every step; what it allocates from the context's arena is gone afterwards. */
stele_status pass_steps(pass_context *context, pass_visit visit, void *data) STELE_MUST_USE;
/* Calls visit for every op of every step, in order; it may erase ops that come before it. */
typedef stele_status (*pass_visit_op)(pass_step *step, MlirOperation op, void *data);
stele_status pass_ops(pass_context *context, pass_visit_op visit, void *data) STELE_MUST_USE;

/* ---- matching -------------------------------------------------------------------------- */

static inline MlirOperation pass_null(void) { return (MlirOperation){NULL}; }
static inline bool pass_is_null(MlirOperation op) { return mlirOperationIsNull(op); }
static inline MlirValue pass_operand(MlirOperation op, intptr_t i) {
  return mlirOperationGetOperand(op, i);
}
static inline MlirValue pass_result(MlirOperation op) { return mlirOperationGetResult(op, 0); }
/* The op that makes operand i of op. */
MlirOperation pass_source(MlirOperation op, intptr_t i);
/* The same if it is of that kind and nothing else reads its result; else a null op. */
MlirOperation pass_sole_source(MlirOperation op, intptr_t i, uint32_t kind);
int64_t pass_tokens(MlirOperation op); /* of the first result, or operand where there is none */
int64_t pass_columns(MlirOperation op);
/* Both have the attribute with equal values, or neither has it. */
bool pass_same(MlirOperation a, MlirOperation b, const char *attribute);
/* The attributes of a norm in an op's prologue, NULL at the end. */
extern const char *const pass_norm_names[];
/* Both ops' prologues have the same norm, or none. */
bool pass_same_norm(MlirOperation a, MlirOperation b);
/* All attributes equal. */
bool pass_same_attributes(MlirOperation a, MlirOperation b);
void pass_copy_attributes(MlirOperation to, MlirOperation from);
/* Copies the named attributes (NULL at the end) that from has. */
void pass_copy(MlirOperation to, MlirOperation from, const char *const *names);
/* Reads a matrix (linear, linear_add, linear_argmax, gate_up, qkv_cache, experts_*). */
bool pass_is_linear(uint32_t kind);
/* Whether the matrices of two linears are of one kind, all quantised or none: only then does
 * fusing them leave the rounding of their activations as it was. */
stele_status pass_same_class(pass_context *context, const pass_weights *weights, MlirOperation a,
                             MlirOperation b, bool *out_same) STELE_MUST_USE;

/* ---- what lowering shares -------------------------------------------------------------- */

/* A cache geometry as declared; table_entries and page layout computed as artifact.h says. */
stele_status pass_group(pass_context *context, int64_t index,
                        stele_group *out_group) STELE_MUST_USE;
/* Where the target puts a weight: its scheme in memory, layout and bytes. */
stele_status pass_weight_layout(pass_context *context, const pass_weight *weight,
                                uint32_t *out_scheme, uint32_t *out_layout,
                                uint64_t *out_bytes) STELE_MUST_USE;
/* The scheme that a value has in memory: I32 for token ids, Q8_0 where its maker says so. */
uint32_t pass_scheme(MlirOperation maker);
/* The scheme in which an op's weights meet its activations. */
uint32_t pass_activation(MlirOperation op);
/* Whether a linear op changes its input (norm, merge, quantisation) before it is read. */
bool pass_has_prologue(MlirOperation op);
/* Whether the op becomes one of the program: not ids, nor the cache as it was. */
bool pass_is_work(uint32_t kind);
/* Whether worker w's tiles of b touch only what worker w's tiles of a made: no barrier between. */
bool pass_is_aligned(MlirOperation a, MlirOperation b);
/* Bytes of one row of n activations in a scheme. */
uint64_t pass_row_bytes(uint32_t scheme, uint64_t columns);

stele_status pass_no_memory(pass_context *context);

#endif
