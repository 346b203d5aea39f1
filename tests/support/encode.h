/* Quantising, for tests: the encoders that go with the schemes. */
#ifndef STELE_TEST_ENCODE_H
#define STELE_TEST_ENCODE_H

#include "base/base.h"

/* Appends count numbers (a multiple of the scheme's block) in that scheme; q8_0, q4_0 and q4_1 bit
 * for bit what ggml's reference encoders (quantize_row_*_ref) give, the other quantised ones as
 * encode_blocks.h says. */
void test_encode(uint32_t scheme, const float *numbers, size_t count, base_buffer *out);

#endif
