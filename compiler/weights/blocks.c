/* Blocks of the quantised schemes, taken apart: their numbers in the order of the columns, and
 * their scales. Formats: ggml's block_q4_0 ... block_q6_K (ggml-common.h) as the GGUF specification
 * refers to them; schemes.def has a line on each. Blocks may be unaligned. */
#include "weights/blocks.h"

#include <string.h>

#include "base/base.h"
#include "stele/artifact.h"

static float half_at(const uint8_t *p) {
  uint16_t half;
  memcpy(&half, p, sizeof half);
  return base_f16_to_f32(half);
}

/* ---- numbers --------------------------------------------------------------------------- */

/* `count` bytes of two numbers each: all low halves, then all high halves. */
static void nibbles(const uint8_t *bytes, uint32_t count, uint8_t *out) {
  for (uint32_t i = 0; i < count; i++) {
    out[i] = bytes[i] & 15;
    out[i + count] = bytes[i] >> 4;
  }
}

/* 64 bytes of four numbers each: per 32 bytes the lowest bits of all, then the next. */
static void quarters(const uint8_t *bytes, uint8_t *out) {
  for (uint32_t half = 0; half < 2; half++)
    for (uint32_t shift = 0; shift < 8; shift += 2, out += 32)
      for (uint32_t i = 0; i < 32; i++) out[i] = bytes[half * 32 + i] >> shift & 3;
}

/* Bit j of 32 bytes belongs to the j-th 32 numbers; it is worth `value` there. */
static void add_bits(const uint8_t *bytes, uint8_t value, uint8_t *out) {
  for (uint32_t j = 0; j < 8; j++, out += 32)
    for (uint32_t i = 0; i < 32; i++) out[i] = (uint8_t)(out[i] | (bytes[i] >> j & 1) * value);
}

/* The fifth bits of 32 numbers, as one word of bits in order. */
static void fifth_bits(const uint8_t *bytes, uint8_t *out) {
  for (uint32_t i = 0; i < 32; i++) out[i] = (uint8_t)(out[i] | (bytes[i / 8] >> i % 8 & 1) << 4);
}

static void q8_0_numbers(const uint8_t *block, uint8_t *out) { memcpy(out, block + 2, 32); }
static void q4_0_numbers(const uint8_t *block, uint8_t *out) { nibbles(block + 2, 16, out); }
static void q4_1_numbers(const uint8_t *block, uint8_t *out) { nibbles(block + 4, 16, out); }
static void q5_0_numbers(const uint8_t *block, uint8_t *out) {
  nibbles(block + 6, 16, out);
  fifth_bits(block + 2, out);
}
static void q5_1_numbers(const uint8_t *block, uint8_t *out) {
  nibbles(block + 8, 16, out);
  fifth_bits(block + 4, out);
}
static void q2_k_numbers(const uint8_t *block, uint8_t *out) { quarters(block + 16, out); }
static void q3_k_numbers(const uint8_t *block, uint8_t *out) {
  quarters(block + 32, out);
  add_bits(block, 4, out);
}
static void q4_k_numbers(const uint8_t *block, uint8_t *out) {
  for (uint32_t j = 0; j < 4; j++) nibbles(block + 16 + j * 32, 32, out + j * 64);
}
static void q5_k_numbers(const uint8_t *block, uint8_t *out) {
  for (uint32_t j = 0; j < 4; j++) nibbles(block + 48 + j * 32, 32, out + j * 64);
  add_bits(block + 16, 16, out);
}
/* Per 128 numbers 64 bytes of low halves, 32 bytes of four pairs of high bits. */
static void q6_k_numbers(const uint8_t *block, uint8_t *out) {
  uint8_t high[256];
  quarters(block + 128, high);
  for (uint32_t half = 0; half < 2; half++) nibbles(block + half * 64, 64, out + half * 128);
  for (uint32_t i = 0; i < 256; i++) out[i] = (uint8_t)(out[i] | high[i] << 4);
}

/* ---- scales ---------------------------------------------------------------------------- */

static void d_scales(const uint8_t *block, float *scale, float *minimum) {
  (void)minimum;
  scale[0] = half_at(block);
}
static void d_m_scales(const uint8_t *block, float *scale, float *minimum) {
  scale[0] = half_at(block);
  minimum[0] = half_at(block + 2);
}
/* 16 bytes: a scale of 4 bits, a minimum of 4 bits; d and dmin at the end. */
static void q2_k_scales(const uint8_t *block, float *scale, float *minimum) {
  float d = half_at(block + 80), dmin = half_at(block + 82);
  for (uint32_t i = 0; i < 16; i++) {
    scale[i] = d * (float)(block[i] & 15);
    minimum[i] = -(dmin * (float)(block[i] >> 4));
  }
}
/* Scales of 6 bits less 32: 8 bytes of two low halves, 4 bytes of four pairs of high bits. */
static void q3_k_scales(const uint8_t *block, float *scale, float *minimum) {
  (void)minimum;
  const uint8_t *low = block + 96, *high = block + 104;
  float d = half_at(block + 108);
  for (uint32_t i = 0; i < 16; i++) {
    int bits = (low[i % 8] >> i / 8 * 4 & 15) | (high[i % 4] >> i / 4 * 2 & 3) << 4;
    scale[i] = d * (float)(bits - 32);
  }
}
/* Scales and minima of 6 bits in 12 bytes: the first 4 of each whole, with the upper bits of the
 * last 4 above them; of those the lower halves at the end. */
static void q4_k_scales(const uint8_t *block, float *scale, float *minimum) {
  const uint8_t *s = block + 4;
  float d = half_at(block), dmin = half_at(block + 2);
  for (uint32_t i = 0; i < 4; i++) {
    scale[i] = d * (float)(s[i] & 63);
    minimum[i] = -(dmin * (float)(s[4 + i] & 63));
    scale[4 + i] = d * (float)((s[8 + i] & 15) | s[i] >> 6 << 4);
    minimum[4 + i] = -(dmin * (float)(s[8 + i] >> 4 | s[4 + i] >> 6 << 4));
  }
}
static void q6_k_scales(const uint8_t *block, float *scale, float *minimum) {
  (void)minimum;
  float d = half_at(block + 208);
  for (uint32_t i = 0; i < 16; i++) scale[i] = d * (float)(int8_t)block[192 + i];
}

/* ---- the table ------------------------------------------------------------------------- */

static const weights_block table[] = {
    [STELE_Q8_0] = {32, 0, true, false, q8_0_numbers, d_scales},
    [STELE_Q4_0] = {32, 8, false, false, q4_0_numbers, d_scales},
    [STELE_Q4_1] = {32, 0, false, true, q4_1_numbers, d_m_scales},
    [STELE_Q5_0] = {32, 16, false, false, q5_0_numbers, d_scales},
    [STELE_Q5_1] = {32, 0, false, true, q5_1_numbers, d_m_scales},
    [STELE_Q2_K] = {16, 0, false, true, q2_k_numbers, q2_k_scales},
    [STELE_Q3_K] = {16, 4, false, false, q3_k_numbers, q3_k_scales},
    [STELE_Q4_K] = {32, 0, false, true, q4_k_numbers, q4_k_scales},
    [STELE_Q5_K] = {32, 0, false, true, q5_k_numbers, q4_k_scales},
    [STELE_Q6_K] = {16, 32, false, false, q6_k_numbers, q6_k_scales},
};

const weights_block *weights_block_get(uint32_t scheme) {
  static const weights_block none;
  return scheme < sizeof table / sizeof *table ? &table[scheme] : &none;
}
