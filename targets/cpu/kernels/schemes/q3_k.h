/* q3_k: [3][16 rows] words. Part 8 a + 4 b + i has the low 4 bits of sc + 32 in word b, byte i,
 * upper half if a; the 2 high ones in word 2, byte i, from bit 2 (2 a + b) on; x = d sc (q - 4) */
INLINE void q3_k_parts(const uint8_t *words, vi *sc, vi *mn) {
  (void)mn;
  vi high = load_i(words + 128);
  for (int j = 0; j < 4; j++) {
    vi low = load_i(words + j % 2 * 64) >> (j / 2 * 4) & 0x0f0f0f0f;
    sc[j] = (vi)((vb)(low | (high >> (j * 2) & 0x03030303) << 4) - 32);
  }
}
