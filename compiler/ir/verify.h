/* Shared by the verifier's files: what is known of the module, of the step at hand, and how a
 * fault is told. */
#ifndef STELE_IR_VERIFY_H
#define STELE_IR_VERIFY_H

#include "internal.h"

typedef struct ir_known_weight {
  const char *name;
  MlirOperation op;
  uint32_t scheme;
  int64_t rows, columns, experts; /* 0: one matrix */
} ir_known_weight;

typedef struct ir_known_group {
  int64_t kv_heads, key_head, value_head, capacity, window, page_tokens;
  bool value_in_key; /* no values of their own */
} ir_known_group;

/* What a step does with a layer's cache. */
typedef struct ir_known_layer {
  bool declared, written, staged, stored;
} ir_known_layer;

typedef struct ir_checker {
  MlirModule module;
  ir_level level;
  stele_sink *sink;
  uint32_t faults;
  base_arena arena;
  MlirType cache_type;

  /* Declarations. */
  int64_t vocab, hidden, layers, capacity; /* 0: no model */
  ir_known_weight *weights;                /* sorted by name */
  uint32_t weight_count;
  ir_known_group *groups; /* by index */
  uint32_t group_count;
  int64_t *rope_rotary; /* by index */
  uint32_t rope_count;

  /* The step at hand. */
  uint32_t step_number, step_kind, step_output;
  int64_t lanes, width;
  ir_known_layer *layer_states; /* [layers] */
  bool *hidden_seen;            /* [layers + 1] */
  uint32_t output_count;
  bool in_step;
  ir_known_layer *first_states; /* of the first step, to compare with; NULL before */
} ir_checker;

/* Notes a fault of an op, with the place of the op before it. */
void ir_fault(ir_checker *checker, MlirOperation op, const char *format, ...) STELE_PRINTF(3, 4);

/* Checks attributes, operands and results against the table; false when shapes can't be read. */
bool ir_check_row(ir_checker *checker, MlirOperation op, uint32_t kind);

/* Reads and checks all declarations into the checker. False: no memory. */
bool ir_check_declarations(ir_checker *checker);
const ir_known_weight *ir_known_weight_find(const ir_checker *checker, const char *name);

/* Shapes and meanings of one op of a step; its row has been checked. */
void ir_check_op(ir_checker *checker, MlirOperation op, uint32_t kind);

#endif
