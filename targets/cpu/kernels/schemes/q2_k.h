/* q2_k: [16 rows] f16 d, [16 rows] f16 dmin, [16 parts][16 rows] bytes: sc in the low 4 bits, m in
 * the high ones; x = d sc q - dmin m */
INLINE void q2_k_scales(const uint8_t *tail, vf *scale, vf *min) {
  vf d = from_f16(load_h(tail)), dmin = from_f16(load_h(tail + 32));
  for (int i = 0; i < 16; i++) {
    vi both = load_u8(tail + 64 + i * 16);
    scale[i] = d * to_float(both & 15);
    min[i] = -(dmin * to_float(both >> 4));
  }
}
