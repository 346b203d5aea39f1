/* The kernels' primitives as plain functions, compiled once per level by primitives.c. */
#ifndef PRIMITIVES_H
#define PRIMITIVES_H

#include <stdint.h>

typedef struct primitives {
  /* 16 numbers each, in place */
  void (*exp)(float *x);
  void (*tanh)(float *x);
  void (*silu)(float *x);
  void (*gelu_tanh)(float *x);
  void (*gelu)(float *x);
  void (*from_f16)(const uint16_t *h, float *x);
  void (*from_bf16)(const uint16_t *h, float *x);
  void (*to_f16)(const float *x, uint16_t *h);
  void (*to_bf16)(const float *x, uint16_t *h);
  float (*sum)(const float *x);
  float (*largest)(const float *x);
  /* 8 pieces of 16 rows x 4 bytes times 32 bytes: 16 sums */
  void (*dot_u)(uint32_t bits, const uint8_t *w, const int8_t *x, int32_t *sums);
  void (*dot_s8)(const int8_t *w, const int8_t *x, int32_t *sums);
  /* 8 pieces of 64 bytes from `bits` words of as many */
  void (*unpack)(uint32_t bits, const uint8_t *words, uint8_t *pieces);
  void (*quantise)(const float *x, int8_t *q, float *d, float *s, int16_t *sums);
} primitives;

/* One per row of levels.def, and one whose AVX-512 instructions are spelled out in plain C. */
#define LEVEL(id, ...) extern const primitives primitives_##id;
#define ALIAS(...)
#include "cpu/levels.def"
#undef LEVEL
#undef ALIAS
extern const primitives primitives_emulated;

#endif
