/* q5_k: as q4_k */
INLINE void q5_k_parts(const uint8_t *words, vi *sc, vi *mn) { q4_k_parts(words, sc, mn); }
