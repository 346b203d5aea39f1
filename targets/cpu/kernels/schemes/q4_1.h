/* q4_1: [16 rows] f16 d, [16 rows] f16 m; x = d q + m */
INLINE void q4_1_scales(const uint8_t *tail, vf *scale, vf *min) {
  scale[0] = from_f16(load_h(tail));
  min[0] = from_f16(load_h(tail + 32));
}
