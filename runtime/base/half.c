/* Conversions between float32 and the two 16-bit floats, by bit manipulation so that they are the
 * same on every machine. Rounding is to nearest, ties to even (IEEE 754-2019, section 4.3.1). */
#include <string.h>

#include "base.h"

static uint32_t bits_of(float value) {
  uint32_t u;
  memcpy(&u, &value, sizeof u);
  return u;
}

static float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

float base_f16_to_f32(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 31u, mantissa = half & 1023u;
  if (exponent == 31) return float_of(sign | 0x7f800000u | mantissa << 13);
  if (exponent) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
  float tiny = (float)mantissa * 0x1p-24f; /* subnormal or zero: exact in float32 */
  return float_of(bits_of(tiny) | sign);
}

uint16_t base_f32_to_f16(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and above */
  if (magnitude < 0x38800000u) {                                   /* below 2^-14: subnormal */
    float scaled = float_of(magnitude) * 0x1p24f;                  /* in units of 2^-24, exact */
    float rounded = (scaled + 0x1p23f) - 0x1p23f;                  /* to nearest even */
    return (uint16_t)(sign | (uint32_t)rounded);
  }
  uint32_t odd = magnitude >> 13 & 1u;
  return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

uint16_t base_f32_to_bf16(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
