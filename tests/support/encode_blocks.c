/* Quantising to the schemes with many kinds of blocks, for tests: one scale and minimum for a whole
 * block, rounded to the nearest. Where a number's bits are in a block is found by setting each bit
 * and asking weights_numbers what became of it, so that no layout is written down twice. */
#include "support/encode_blocks.h"

#include <math.h>
#include <string.h>

#include "stele/artifact.h"
#include "weights/weights.h"

enum { MAX_BYTES = 256, NO_MINIMUM = 255 };

/* Where d and the minimum are, the minimum's sign, and bytes that make all scales of parts 1. */
typedef struct format {
  uint32_t scheme, bits;
  int offset; /* of numbers */
  uint8_t d_at, m_at;
  float m_sign;
  uint8_t parts_at, parts[17];
} format;

static const format formats[] = {
    {STELE_Q5_0, 5, 16, 0, NO_MINIMUM, 0, 0, ""},
    {STELE_Q5_1, 5, 0, 0, 2, 1, 0, ""},
    {STELE_Q2_K, 2, 0, 80, 82, -1, 0,
     "\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11"},
    {STELE_Q3_K, 3, 4, 108, NO_MINIMUM, 0, 96, "\x11\x11\x11\x11\x11\x11\x11\x11\xaa\xaa\xaa\xaa"},
    {STELE_Q4_K, 4, 0, 0, 2, -1, 4, "\x01\x01\x01\x01\x01\x01\x01\x01\x11\x11\x11\x11"},
    {STELE_Q5_K, 5, 0, 0, 2, -1, 4, "\x01\x01\x01\x01\x01\x01\x01\x01\x11\x11\x11\x11"},
    {STELE_Q6_K, 6, 32, 208, NO_MINIMUM, 0, 192,
     "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"},
};

/* bits[i][k]: which bit of the block is bit k of number i. */
typedef struct bit_map {
  uint16_t bits[WEIGHTS_MAX_BLOCK][8];
} bit_map;

static void map_bits(const weights_scheme *s, uint32_t scheme, bit_map *out) {
  uint8_t block[MAX_BYTES] = {0}, numbers[WEIGHTS_MAX_BLOCK];
  for (uint32_t bit = 0; bit < s->block_bytes * 8; bit++) {
    block[bit / 8] = (uint8_t)(1 << bit % 8);
    weights_numbers(scheme, block, numbers);
    for (uint32_t i = 0; i < s->block; i++)
      for (uint32_t k = 0; k < 8; k++)
        if (numbers[i] >> k & 1) out->bits[i][k] = (uint16_t)bit;
    block[bit / 8] = 0;
  }
}

static void put_half(uint8_t *at, float value) {
  uint16_t half = base_f32_to_f16(value);
  memcpy(at, &half, sizeof half);
}

static void encode_block(const format *f, const bit_map *map, const float *x, uint32_t count,
                         uint8_t *block) {
  float least = 0, most = 0;
  for (uint32_t i = 0; i < count; i++) {
    least = fminf(least, x[i]);
    most = fmaxf(most, x[i]);
  }
  const bool centred = f->m_at == NO_MINIMUM;
  const int top = (1 << f->bits) - 1;
  float d = centred ? fmaxf(most, -least) / (float)(f->offset - 1) : (most - least) / (float)top;
  memcpy(block + f->parts_at, f->parts, strlen((const char *)f->parts));
  put_half(block + f->d_at, d);
  if (!centred) put_half(block + f->m_at, f->m_sign * least);
  for (uint32_t i = 0; i < count; i++) {
    float scaled = d == 0 ? 0 : centred ? x[i] / d : (x[i] - least) / d;
    int number = (int)lrintf(scaled) + f->offset;
    number = number < 0 ? 0 : number > top ? top : number;
    for (uint32_t k = 0; k < f->bits; k++)
      if (number >> k & 1) block[map->bits[i][k] / 8] |= (uint8_t)(1 << map->bits[i][k] % 8);
  }
}

bool test_encode_blocks(uint32_t scheme, const float *numbers, size_t count, base_buffer *out) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    if (formats[i].scheme != scheme) continue;
    const weights_scheme *s = weights_scheme_get(scheme);
    bit_map map;
    map_bits(s, scheme, &map);
    for (size_t at = 0; at < count; at += s->block) {
      uint8_t block[MAX_BYTES] = {0};
      encode_block(&formats[i], &map, numbers + at, s->block, block);
      base_buffer_append(out, block, s->block_bytes);
    }
    return true;
  }
  return false;
}
