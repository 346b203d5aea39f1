/* The packed layout of a matrix, one for all x86-64 levels, read by decode, prefill and the look-up
 * of embedding rows alike. It takes the bytes that the file takes, but for rows padded to 16.
 *
 * Panels of 16 rows, one after another; within a panel columns k ascend:
 *
 *   f32, f16, bf16    [k][16 rows]: one load gives a column of the panel
 *
 *   quantised         block after block, each its scales, then its numbers, 32 columns after the
 *                     other: kernels/schemes/NAME.h draws the one, kernels/numbers.h the other
 *
 * kernels/schemes.def has the sizes. A piece of 64 bytes, 4 columns of each row, is what vpdpbusd
 * multiplies by 4 broadcast bytes of the activations. */
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
#define CPU_SCHEME(id, name, columns, bits, offset, part, mins, head, ...) \
  case STELE_##id:                                                         \
    block = (columns);                                                     \
    bytes = columns * bits / 8 + head;                                     \
    break;
#include "cpu/kernels/schemes.def"
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
