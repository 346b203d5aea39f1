/* q6_k: [4][16 rows] words; byte i of word j is sc of part 4 j + i; x = d sc (q - 32) */
INLINE void q6_k_parts(const uint8_t *words, vi *sc, vi *mn) {
  (void)mn;
  for (int j = 0; j < 4; j++) sc[j] = load_i(words + j * 64);
}
