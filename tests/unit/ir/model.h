/* A small description made by hand, without files: what the tests of the IR build from. */
#ifndef TEST_IR_MODEL_H
#define TEST_IR_MODEL_H

#include "frontend/frontend.h"

typedef struct test_model_shape {
  uint32_t vocab, hidden, layers, heads, kv_heads, head, intermediate;
  uint32_t scheme; /* of matrices */
  bool tied, biases, head_norms;
  uint32_t rope_rule;
} test_model_shape;

#define TEST_MODEL_TINY             \
  (test_model_shape){.vocab = 96,   \
                     .hidden = 64,  \
                     .layers = 2,   \
                     .heads = 4,    \
                     .kv_heads = 2, \
                     .head = 16,    \
                     .intermediate = 96}

/* Lives in the arena; its weights have no data. NULL: no memory. */
fe_model *test_model_create(base_arena *arena, const test_model_shape *shape);

#endif
