/* q6_k: [16 rows] f16 d, [16 parts][16 rows] int8 sc; x = d sc (q - 32) */
INLINE void q6_k_scales(const uint8_t *tail, vf *scale, vf *min) {
  (void)min;
  vf d = from_f16(load_h(tail));
  for (int i = 0; i < 16; i++) scale[i] = d * to_float(load_i8(tail + 32 + i * 16));
}
