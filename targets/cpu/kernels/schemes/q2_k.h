/* q2_k: [4][16 rows] words; byte i of word j belongs to part 4 j + i: sc in the low 4 bits, the
 * minimum in the high ones; x = d sc q - m mn */
INLINE void q2_k_parts(const uint8_t *words, vi *sc, vi *mn) {
  for (int j = 0; j < 4; j++) {
    vi both = load_i(words + j * 64);
    sc[j] = both & 0x0f0f0f0f;
    mn[j] = both >> 4 & 0x0f0f0f0f;
  }
}
