/* Numbers of 2 to 8 bits in a panel, and how they come out.
 *
 * 32 columns of 16 rows are 8 pieces of 4 columns, and a piece in registers is 64 bytes, 4 of each
 * row: what a product of bytes takes, against 4 broadcast activations. In memory they are b words
 * of [16 rows][4 bytes] for numbers of b bits; byte i of a word has column i of each piece in it.
 * Bits of a byte from the low end, by piece (a prime: the low bits of that piece, two primes: what
 * is above them):
 *
 *   8 bits    word j   piece j
 *   6 bits    words 3 h .. 3 h + 2 for h = 0, 1, pieces from 4 h on:
 *             0 0 0 0 0 0 3 3     bits 4 and 5 of piece 3
 *             1 1 1 1 1 1 3 3     bits 2 and 3
 *             2 2 2 2 2 2 3 3     bits 0 and 1
 *   5 bits    0 0 0 0 0 5'5'5'
 *             1 1 1 1 1 7"5"5"    bit 3 of piece 7
 *             2 2 2 2 2 6'6'6'
 *             3 3 3 3 3 7"6"6"    bit 4 of piece 7
 *             4 4 4 4 4 7'7'7'
 *   4 bits    word j   piece j, then piece j + 4
 *   3 bits    0 0 0 1 1 1 6'6'
 *             2 2 2 3 3 3 6"7"
 *             4 4 4 5 5 5 7'7'
 *   2 bits    word j   pieces j, j + 2, j + 4, j + 6
 *
 * Most pieces cost one mask, and few more than a shift besides. As a file keeps the 16 bytes of a
 * 4-bit block of 32 in the same order, packing those takes no byte apart. */
#ifndef CPU_NUMBERS_H
#define CPU_NUMBERS_H

#include "vec.h"

#define GROUP 32u /* columns */
#define GROUP_PIECES 8

/* Bits of the bytes of w from `from` on, at bit `to` of a byte, those that mask has. */
INLINE vb bits_at(const uint8_t *w, int word, int from, int to, int mask) {
  vb v = load_b(w + word * 64);
  if (from > to) v = (vb)((vus)v >> (from - to));
  if (from < to) v = (vb)((vus)v << (to - from));
  return v & (int8_t)(mask << to);
}

INLINE vb piece_of_3(const uint8_t *w, int g) {
  if (g < 6) return bits_at(w, g / 2, g % 2 * 3, 0, 7);
  if (g == 6) return bits_at(w, 0, 6, 0, 3) | bits_at(w, 1, 6, 2, 1);
  return bits_at(w, 2, 6, 0, 3) | bits_at(w, 1, 7, 2, 1);
}
INLINE vb piece_of_5(const uint8_t *w, int g) {
  if (g < 5) return bits_at(w, g, 0, 0, 31);
  if (g < 7) return bits_at(w, (g - 5) * 2, 5, 0, 7) | bits_at(w, (g - 5) * 2 + 1, 6, 3, 3);
  return bits_at(w, 4, 5, 0, 7) | bits_at(w, 1, 5, 3, 1) | bits_at(w, 3, 5, 4, 1);
}
INLINE vb piece_of_6(const uint8_t *w, int g) {
  if (g < 3) return bits_at(w, g, 0, 0, 63);
  return bits_at(w, 0, 6, 4, 3) | bits_at(w, 1, 6, 2, 3) | bits_at(w, 2, 6, 0, 3);
}

/* Piece g of 32 columns; g is a constant once loops are unrolled. */
INLINE vb unpack(uint32_t bits, const uint8_t *w, int g) {
  switch (bits) {
    case 2:
      return bits_at(w, g % 2, g / 2 * 2, 0, 3);
    case 3:
      return piece_of_3(w, g);
    case 4:
      return bits_at(w, g % 4, g / 4 * 4, 0, 15);
    case 5:
      return piece_of_5(w, g);
    case 6:
      return piece_of_6(w + g / 4 * 192, g % 4);
    default:
      return load_b(w + g * 64);
  }
}
INLINE void unpack_group(uint32_t bits, const uint8_t *w, vb pieces[GROUP_PIECES]) {
  UNROLL
  for (int g = 0; g < GROUP_PIECES; g++) pieces[g] = unpack(bits, w, g);
}

/* Column i of a piece, less the offset. */
INLINE vf number_column(uint32_t bits, uint32_t offset, vb piece, int i) {
  vi four = (vi)piece;
  if (bits == 8) return to_float(four << (24 - 8 * i) >> 24);
  return to_float(((four >> (8 * i)) & 255) - (int32_t)offset);
}

#endif
