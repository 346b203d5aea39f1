/* q5_0: [16 rows] f16 d; x = d (q - 16) */
INLINE void q5_0_scales(const uint8_t *tail, vf *scale, vf *min) { q4_0_scales(tail, scale, min); }
