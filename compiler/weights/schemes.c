/* Schemes: the table of schemes.def made readable, and the decoding of each, one block at a time
 * with scalar float32 arithmetic, in the order of operations that the GGUF specification's
 * reference (ggml, dequantize_row_*) has, so that results are the same to the last bit. Sources
 * may be unaligned: safetensors promises nothing. */
#include "weights/weights.h"

#include <string.h>

#include "base/base.h"

static const weights_scheme table[] = {
#define SCHEME(id, text, numbers, bytes, type) \
  [STELE_##id] = {.name = text, .block = numbers, .block_bytes = bytes, .gguf_type = type},
#include "weights/schemes.def"
#undef SCHEME
};
_Static_assert(sizeof table / sizeof *table == WEIGHTS_SCHEME_COUNT, "weights.h counts the rows");

const weights_scheme *weights_scheme_get(uint32_t scheme) {
  return scheme < WEIGHTS_SCHEME_COUNT ? &table[scheme] : NULL;
}

bool weights_scheme_by_name(const char *name, uint32_t *out_scheme) {
  for (uint32_t i = 0; i < WEIGHTS_SCHEME_COUNT; i++)
    if (strcmp(table[i].name, name) == 0) {
      *out_scheme = i;
      return true;
    }
  return false;
}

bool weights_scheme_by_gguf_type(uint32_t type, uint32_t *out_scheme) {
  for (uint32_t i = 0; i < WEIGHTS_SCHEME_COUNT; i++)
    if (table[i].gguf_type >= 0 && (uint32_t)table[i].gguf_type == type) {
      *out_scheme = i;
      return true;
    }
  return false;
}

bool weights_row_bytes(uint32_t scheme, uint64_t columns, size_t *out_bytes) {
  const weights_scheme *s = weights_scheme_get(scheme);
  if (!s || columns % s->block != 0) return false;
  return base_mul(columns / s->block, s->block_bytes, out_bytes);
}

static uint16_t load16(const uint8_t *p) {
  uint16_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static void decode_f16(const uint8_t *source, size_t count, float *out) {
  for (size_t i = 0; i < count; i++) out[i] = base_f16_to_f32(load16(source + 2 * i));
}

static void decode_bf16(const uint8_t *source, size_t count, float *out) {
  for (size_t i = 0; i < count; i++) out[i] = base_bf16_to_f32(load16(source + 2 * i));
}

static void decode_q8_0(const uint8_t *block, float out[32]) {
  float d = base_f16_to_f32(load16(block));
  for (int i = 0; i < 32; i++) out[i] = (float)(int8_t)block[2 + i] * d;
}

static void decode_q4_0(const uint8_t *block, float out[32]) {
  float d = base_f16_to_f32(load16(block));
  for (int i = 0; i < 16; i++) {
    out[i] = (float)((block[2 + i] & 15) - 8) * d;
    out[i + 16] = (float)((block[2 + i] >> 4) - 8) * d;
  }
}

static void decode_q4_1(const uint8_t *block, float out[32]) {
  float d = base_f16_to_f32(load16(block)), m = base_f16_to_f32(load16(block + 2));
  for (int i = 0; i < 16; i++) {
    float low = (float)(block[4 + i] & 15) * d, high = (float)(block[4 + i] >> 4) * d;
    out[i] = low + m;
    out[i + 16] = high + m;
  }
}

static void decode_i32(const uint8_t *source, size_t count, float *out) {
  for (size_t i = 0; i < count; i++) {
    int32_t v;
    memcpy(&v, source + 4 * i, sizeof v);
    out[i] = (float)v;
  }
}

void weights_decode(uint32_t scheme, const void *source, size_t count, float *out) {
  const uint8_t *at = source;
  switch (scheme) {
    case STELE_F32:
      memcpy(out, at, count * sizeof *out);
      return;
    case STELE_F16:
      decode_f16(at, count, out);
      return;
    case STELE_BF16:
      decode_bf16(at, count, out);
      return;
    case STELE_I32:
      decode_i32(at, count, out);
      return;
    default:
      break;
  }
  for (size_t i = 0; i < count / 32; i++, out += 32) {
    if (scheme == STELE_Q8_0) decode_q8_0(at + i * 34, out);
    if (scheme == STELE_Q4_0) decode_q4_0(at + i * 18, out);
    if (scheme == STELE_Q4_1) decode_q4_1(at + i * 20, out);
  }
}
