/* The packed layout of a matrix, one for all x86-64 levels, read by decode, prefill and the look-up
 * of embedding rows alike. It takes the bytes that the file takes, but for rows padded to 16.
 *
 * Panels of 16 rows, one after another; within a panel columns k ascend:
 *
 *   f32, f16, bf16    [k][16 rows]: one load gives a column of the panel
 *
 *   q8_0    per block of 32 columns, 544 bytes
 *           [8][16 rows][4] int8    piece j has columns 4 j .. 4 j + 3 of each row
 *           [16 rows] f16 d
 *   q4_0    per block of 32 columns, 288 bytes
 *           [4][16 rows][4] bytes   piece j: low nibbles are columns 4 j .. 4 j + 3,
 *                                   high nibbles columns 16 + 4 j .. 16 + 4 j + 3
 *           [16 rows] f16 d
 *   q4_1    per block of 32 columns, 320 bytes: as q4_0, then [16 rows] f16 m
 *
 * A piece of 64 bytes is what vpdpbusd multiplies by 4 broadcast bytes of the activations. As a
 * file keeps the 16 bytes of a 4-bit block in the same order, packing moves 4 bytes at a time and
 * never takes a byte apart. */
#include "cpu/cpu.h"

bool cpu_panel_bytes(uint32_t scheme, uint64_t columns, size_t *out_bytes) {
  size_t block = 1, bytes;
  switch (scheme) {
    case STELE_F32:
      bytes = 4;
      break;
    case STELE_F16:
    case STELE_BF16:
      bytes = 2;
      break;
    case STELE_Q8_0:
      block = CPU_BLOCK;
      bytes = 32 + 2;
      break;
    case STELE_Q4_0:
      block = CPU_BLOCK;
      bytes = 16 + 2;
      break;
    case STELE_Q4_1:
      block = CPU_BLOCK;
      bytes = 16 + 4;
      break;
    default:
      return false;
  }
  if (columns == 0 || columns % block) return false;
  return base_mul(columns / block, bytes * CPU_PANEL, out_bytes);
}

stele_status cpu_layout(const void *self, uint32_t scheme, uint64_t rows, uint64_t columns,
                        bool embedding, stele_sink *sink, uint32_t *out_layout,
                        uint64_t *out_bytes) {
  (void)self;
  (void)embedding;
  size_t panel, bytes;
  if (rows == 0 || rows > UINT32_MAX - CPU_PANEL || columns > UINT32_MAX / 8 ||
      !cpu_panel_bytes(scheme, columns, &panel) ||
      !base_mul(panel, (rows + CPU_PANEL - 1) / CPU_PANEL, &bytes))
    return base_fail(sink, STELE_UNSUPPORTED,
                     "target 'cpu': no layout for %llu x %llu numbers of scheme %u",
                     (unsigned long long)rows, (unsigned long long)columns, scheme);
  *out_layout = CPU_LAYOUT_PANELS;
  *out_bytes = bytes;
  return STELE_OK;
}
