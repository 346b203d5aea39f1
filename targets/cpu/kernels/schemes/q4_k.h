/* q4_k: [16 rows] f16 d, [16 rows] f16 dmin, [3][16 rows] words. Byte i of word 0 has sc of part i
 * in its low 6 bits, of word 1 m; word 2 has the low 4 bits of sc of part 4 + i and above them
 * those of m, whose upper 2 bits are those of words 0 and 1; x = d sc q - dmin m */
INLINE void q4_k_scales(const uint8_t *tail, vf *scale, vf *min) {
  vf d = from_f16(load_h(tail)), dmin = from_f16(load_h(tail + 32));
  vi first = load_i(tail + 64), second = load_i(tail + 128), third = load_i(tail + 192);
  vi sc[2] = {first & 0x3f3f3f3f, (third & 0x0f0f0f0f) | (first >> 2 & 0x30303030)};
  vi m[2] = {second & 0x3f3f3f3f, (third >> 4 & 0x0f0f0f0f) | (second >> 2 & 0x30303030)};
  for (int half = 0; half < 2; half++)
    for (int i = 0; i < 4; i++) {
      scale[half * 4 + i] = d * to_float(sc[half] >> (8 * i) & 255);
      min[half * 4 + i] = -(dmin * to_float(m[half] >> (8 * i) & 255));
    }
}
