/* q4_k: [3][16 rows] words. Byte i of word 0 has sc of part i in its low 6 bits, of word 1 the
 * minimum; word 2 has the low 4 bits of sc of part 4 + i and above them those of the minimum, whose
 * upper 2 bits are those of words 0 and 1; x = d sc q - m mn */
INLINE void q4_k_parts(const uint8_t *words, vi *sc, vi *mn) {
  vi first = load_i(words), second = load_i(words + 64), third = load_i(words + 128);
  sc[0] = first & 0x3f3f3f3f;
  mn[0] = second & 0x3f3f3f3f;
  sc[1] = (third & 0x0f0f0f0f) | (first >> 2 & 0x30303030);
  mn[1] = (third >> 4 & 0x0f0f0f0f) | (second >> 2 & 0x30303030);
}
