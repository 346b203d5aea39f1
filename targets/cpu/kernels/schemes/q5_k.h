/* q5_k: as q4_k */
INLINE void q5_k_scales(const uint8_t *tail, vf *scale, vf *min) { q4_k_scales(tail, scale, min); }
