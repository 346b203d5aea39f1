/* Schemes of stored numbers, and the reference decoding of each. Everything else that reads a
 * scheme (packed layouts, kernels) is tested against weights_decode. */
#ifndef STELE_WEIGHTS_H
#define STELE_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stele/artifact.h"
#include "stele/status.h"

typedef struct weights_scheme {
  const char *name;
  uint32_t block; /* numbers per block */
  uint32_t block_bytes;
  int32_t gguf_type; /* -1: none */
} weights_scheme;

#define WEIGHTS_SCHEME_COUNT 14u

/* NULL when the number names no scheme. */
const weights_scheme *weights_scheme_get(uint32_t scheme);
/* False when no scheme has that name or type. */
bool weights_scheme_by_name(const char *name, uint32_t *out_scheme);
bool weights_scheme_by_gguf_type(uint32_t type, uint32_t *out_scheme);
static inline bool weights_scheme_is_quantised(uint32_t scheme) {
  return scheme >= STELE_Q8_0 && scheme != STELE_I32;
}

/* What keys and values may be stored in. */
static inline bool weights_scheme_is_cache(uint32_t scheme) {
  return scheme == STELE_F32 || scheme == STELE_F16 || scheme == STELE_BF16 ||
         scheme == STELE_Q8_0 || scheme == STELE_Q4_0;
}

/* Bytes of a row of so many numbers; false when columns is no multiple of the block or the size
 * overflows. */
bool weights_row_bytes(uint32_t scheme, uint64_t columns, size_t *out_bytes);

#define WEIGHTS_MAX_BLOCK 256u /* numbers of a block */

/* The numbers of one quantised block as the format stores them, before scale, offset and minimum:
 * one a byte, in the order of the columns. What packs them otherwise starts from these. */
void weights_numbers(uint32_t scheme, const void *block, uint8_t *out);

/* Decodes count numbers (a multiple of the block) from source, exactly as the format defines. */
void weights_decode(uint32_t scheme, const void *source, size_t count, float *out);

#endif
