/* Quantising, for tests: schemes that encode.h has no reference encoder for. */
#ifndef STELE_TEST_ENCODE_BLOCKS_H
#define STELE_TEST_ENCODE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Appends count numbers (a multiple of the block), within a step of what they were; false for a
 * scheme it does not know. */
bool test_encode_blocks(uint32_t scheme, const float *numbers, size_t count, base_buffer *out);

#endif
