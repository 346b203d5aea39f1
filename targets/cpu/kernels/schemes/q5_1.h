/* q5_1: [16 rows] f16 d, [16 rows] f16 m; x = d q + m */
INLINE void q5_1_scales(const uint8_t *tail, vf *scale, vf *min) { q4_1_scales(tail, scale, min); }
