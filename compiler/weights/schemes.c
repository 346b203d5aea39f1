/* Schemes: the table of schemes.def made readable, and the decoding of each, one block at a time
 * with scalar float32 arithmetic, in the order of operations that the GGUF format's reference
 * (ggml, dequantize_row_*) has, so that results are the same to the last bit. blocks.c takes
 * quantised blocks apart. Sources may be unaligned: safetensors promises nothing. */
#include "weights/weights.h"

#include <string.h>

#include "base/base.h"
#include "weights/blocks.h"

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

static void decode_i32(const uint8_t *source, size_t count, float *out) {
  for (size_t i = 0; i < count; i++) {
    int32_t v;
    memcpy(&v, source + 4 * i, sizeof v);
    out[i] = (float)v;
  }
}

static void decode_block(uint32_t scheme, const uint8_t *block, float *out) {
  const weights_block *b = weights_block_get(scheme);
  float scale[WEIGHTS_MAX_PARTS], minimum[WEIGHTS_MAX_PARTS];
  uint8_t numbers[WEIGHTS_MAX_BLOCK];
  b->numbers(block, numbers);
  b->scales(block, scale, minimum);
  for (uint32_t i = 0; i < table[scheme].block; i++) {
    int number = b->is_signed ? (int8_t)numbers[i] : (int)numbers[i] - b->offset;
    float product = (float)number * scale[i / b->part];
    out[i] = b->has_minima ? product + minimum[i / b->part] : product;
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
  for (size_t i = 0; i < count; i += table[scheme].block, at += table[scheme].block_bytes)
    decode_block(scheme, at, out + i);
}

void weights_numbers(uint32_t scheme, const void *block, uint8_t *out) {
  weights_block_get(scheme)->numbers(block, out);
}
