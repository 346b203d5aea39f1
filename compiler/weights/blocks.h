/* Inside of the schemes: the quantised ones as the GGUF format lays out their blocks. */
#ifndef STELE_WEIGHTS_BLOCKS_H
#define STELE_WEIGHTS_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define WEIGHTS_MAX_PARTS 16

/* x[i] = (number[i] - offset) * scale[i / part] (+ minimum[i / part]), float32 in that order. */
typedef struct weights_block {
  uint32_t part; /* numbers that share a scale; 0: the scheme has no blocks */
  int32_t offset;
  bool is_signed; /* numbers are int8 */
  bool has_minima;
  void (*numbers)(const uint8_t *block, uint8_t *out);
  void (*scales)(const uint8_t *block, float *scale, float *minimum);
} weights_block;

/* All zeros for a scheme without blocks. */
const weights_block *weights_block_get(uint32_t scheme);

#endif
