/* Numbers of packed panels as targets/cpu/kernels/numbers.h draws them, read one at a time. */
#ifndef DRAWING_H
#define DRAWING_H

#include <stdint.h>

/* `count` bits from bit `at` on of a byte. */
static inline unsigned drawn_bits(unsigned byte, unsigned at, unsigned count) {
  return byte >> at & ((1u << count) - 1);
}

/* Column k of 32 of a row; words: `bits` of 16 rows x 4 bytes. */
static inline unsigned drawn_number(uint32_t bits, const uint8_t *words, uint32_t row, uint32_t k) {
  const uint32_t piece = k / 4;
  unsigned w[8];
  for (uint32_t i = 0; i < bits; i++) w[i] = words[i * 64 + row * 4 + k % 4];
  switch (bits) {
    case 2:
      return drawn_bits(w[piece % 2], piece / 2 * 2, 2);
    case 3:
      if (piece < 6) return drawn_bits(w[piece / 2], piece % 2 * 3, 3);
      if (piece == 6) return drawn_bits(w[0], 6, 2) | drawn_bits(w[1], 6, 1) << 2;
      return drawn_bits(w[2], 6, 2) | drawn_bits(w[1], 7, 1) << 2;
    case 4:
      return drawn_bits(w[piece % 4], piece / 4 * 4, 4);
    case 5:
      if (piece < 5) return drawn_bits(w[piece], 0, 5);
      if (piece == 5) return drawn_bits(w[0], 5, 3) | drawn_bits(w[1], 6, 2) << 3;
      if (piece == 6) return drawn_bits(w[2], 5, 3) | drawn_bits(w[3], 6, 2) << 3;
      return drawn_bits(w[4], 5, 3) | drawn_bits(w[1], 5, 1) << 3 | drawn_bits(w[3], 5, 1) << 4;
    case 6: {
      const unsigned *v = w + piece / 4 * 3;
      if (piece % 4 < 3) return drawn_bits(v[piece % 4], 0, 6);
      return drawn_bits(v[2], 6, 2) | drawn_bits(v[1], 6, 2) << 2 | drawn_bits(v[0], 6, 2) << 4;
    }
    default:
      return w[piece];
  }
}

#endif
