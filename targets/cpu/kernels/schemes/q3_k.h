/* q3_k: [16 rows] f16 d, [3][16 rows] words. Part 8 a + 4 b + i has the low 4 bits of sc in word b,
 * byte i, upper half if a; the 2 high ones in word 2, byte i, from bit 2 (2 a + b) on;
 * x = d (sc - 32) (q - 4) */
INLINE void q3_k_scales(const uint8_t *tail, vf *scale, vf *min) {
  (void)min;
  vf d = from_f16(load_h(tail));
  vi high = load_i(tail + 32 + 128);
  for (int quarter = 0; quarter < 4; quarter++) {
    vi low = load_i(tail + 32 + quarter % 2 * 64) >> (quarter / 2 * 4);
    vi four = (low & 0x0f0f0f0f) | ((high >> (quarter * 2) & 0x03030303) << 4);
    for (int i = 0; i < 4; i++) scale[quarter * 4 + i] = d * to_float((four >> (8 * i) & 63) - 32);
  }
}
