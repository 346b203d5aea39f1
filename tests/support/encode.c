/* Encoders of the schemes, after ggml's reference (ggml-quants.c, quantize_row_*_ref): scale from
 * the block's largest value, numbers rounded with the unrounded scale, scales stored as f16. */
#include "support/encode.h"

#include <math.h>

#include "stele/artifact.h"
#include "support/bytes.h"
#include "support/encode_blocks.h"

static void encode_q8_0(const float *x, base_buffer *out) {
  float most = 0.0f;
  for (int i = 0; i < 32; i++) most = fmaxf(most, fabsf(x[i]));
  float d = most / 127.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
  put_u16(out, base_f32_to_f16(d));
  for (int i = 0; i < 32; i++) put_u8(out, (uint8_t)(int8_t)roundf(x[i] * inverse));
}

static unsigned nibble(float scaled) {
  int v = (int)scaled;
  return v > 15 ? 15 : (unsigned)v;
}

static void encode_q4_0(const float *x, base_buffer *out) {
  float most = 0.0f, signed_most = 0.0f;
  for (int i = 0; i < 32; i++)
    if (most < fabsf(x[i])) {
      most = fabsf(x[i]);
      signed_most = x[i];
    }
  float d = signed_most / -8.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
  put_u16(out, base_f32_to_f16(d));
  for (int i = 0; i < 16; i++) {
    unsigned low = nibble(x[i] * inverse + 8.5f), high = nibble(x[i + 16] * inverse + 8.5f);
    put_u8(out, (uint8_t)(low | high << 4));
  }
}

static void encode_q4_1(const float *x, base_buffer *out) {
  float least = x[0], most = x[0];
  for (int i = 1; i < 32; i++) {
    least = fminf(least, x[i]);
    most = fmaxf(most, x[i]);
  }
  float d = (most - least) / 15.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
  put_u16(out, base_f32_to_f16(d));
  put_u16(out, base_f32_to_f16(least));
  for (int i = 0; i < 16; i++) {
    unsigned low = nibble((x[i] - least) * inverse + 0.5f);
    unsigned high = nibble((x[i + 16] - least) * inverse + 0.5f);
    put_u8(out, (uint8_t)(low | high << 4));
  }
}

void test_encode(uint32_t scheme, const float *numbers, size_t count, base_buffer *out) {
  switch (scheme) {
    case STELE_F16:
      for (size_t i = 0; i < count; i++) put_u16(out, base_f32_to_f16(numbers[i]));
      return;
    case STELE_BF16:
      for (size_t i = 0; i < count; i++) put_u16(out, base_f32_to_bf16(numbers[i]));
      return;
    case STELE_Q8_0:
      for (size_t i = 0; i < count; i += 32) encode_q8_0(numbers + i, out);
      return;
    case STELE_Q4_0:
      for (size_t i = 0; i < count; i += 32) encode_q4_0(numbers + i, out);
      return;
    case STELE_Q4_1:
      for (size_t i = 0; i < count; i += 32) encode_q4_1(numbers + i, out);
      return;
    default:
      if (test_encode_blocks(scheme, numbers, count, out)) return;
      base_buffer_append(out, numbers, count * sizeof *numbers);
      return;
  }
}
