/* From rows in a scheme's own blocks to panels of 16 rows (layout.c draws them): transposing pieces
 * of 4 bytes, or of one number. Rows past the last one are zeros. */
#include <string.h>

#include "cpu/cpu.h"
#include "weights/weights.h"

/* A panel's source: 16 rows, `live` of which exist. */
typedef struct panel_rows {
  const uint8_t *rows;
  size_t stride;
  uint32_t live;
} panel_rows;

/* to[k][16] of numbers of 4 bytes: blocks of 16 columns, so that both sides stay in cache lines. */
static void pack_words(panel_rows from, uint64_t columns, uint8_t *to) {
  for (uint64_t first = 0; first < columns; first += 16) {
    uint64_t end = first + 16 < columns ? first + 16 : columns;
    for (uint32_t row = 0; row < from.live; row++)
      for (uint64_t k = first; k < end; k++)
        memcpy(to + (k * CPU_PANEL + row) * 4, from.rows + row * from.stride + k * 4, 4);
  }
}

/* The same of numbers of 2 bytes. */
static void pack_halves(panel_rows from, uint64_t columns, uint8_t *to) {
  for (uint64_t first = 0; first < columns; first += 32) {
    uint64_t end = first + 32 < columns ? first + 32 : columns;
    for (uint32_t row = 0; row < from.live; row++)
      for (uint64_t k = first; k < end; k++)
        memcpy(to + (k * CPU_PANEL + row) * 2, from.rows + row * from.stride + k * 2, 2);
  }
}

/* Blocks of 32: `scales` halves, then `pieces` pieces of 4 bytes; in the panel pieces come first.
 * A file's q4_1 block has d and m beside each other, a panel all d, then all m. */
static inline void pack_blocks(panel_rows from, uint64_t columns, uint8_t *to, uint32_t scales,
                               uint32_t pieces) {
  const size_t block = scales * 2 + pieces * 4;
  for (uint64_t b = 0; b < columns / CPU_BLOCK; b++, to += block * CPU_PANEL)
    for (uint32_t row = 0; row < from.live; row++) {
      const uint8_t *at = from.rows + row * from.stride + b * block;
      for (uint32_t s = 0; s < scales; s++)
        memcpy(to + pieces * 64 + (s * CPU_PANEL + row) * 2, at + s * 2, 2);
      for (uint32_t j = 0; j < pieces; j++)
        memcpy(to + j * 64 + row * 4, at + scales * 2 + j * 4, 4);
    }
}

static void pack_panel(uint32_t scheme, panel_rows from, uint64_t columns, uint8_t *to) {
  switch (scheme) {
    case STELE_F32:
      pack_words(from, columns, to);
      break;
    case STELE_F16:
    case STELE_BF16:
      pack_halves(from, columns, to);
      break;
    case STELE_Q8_0:
      pack_blocks(from, columns, to, 1, 8);
      break;
    case STELE_Q4_0:
      pack_blocks(from, columns, to, 1, 4);
      break;
    default:
      pack_blocks(from, columns, to, 2, 4);
      break;
  }
}

stele_status cpu_pack(const void *self, uint32_t scheme, uint32_t layout, uint64_t rows,
                      uint64_t columns, uint64_t first, uint64_t count, const void *source,
                      void *destination, stele_sink *sink) {
  (void)self;
  size_t panel, stride;
  if (layout != CPU_LAYOUT_PANELS || !cpu_panel_bytes(scheme, columns, &panel) ||
      !weights_row_bytes(scheme, columns, &stride) || first > rows || count > rows - first ||
      first % CPU_PANEL || (count % CPU_PANEL && first + count != rows))
    return base_fail(
        sink, STELE_INVALID_ARGUMENT,
        "target 'cpu': rows %llu to %llu of %llu, scheme %u, layout %u can't be packed",
        (unsigned long long)first, (unsigned long long)(first + count), (unsigned long long)rows,
        scheme, layout);
  for (uint64_t row = 0; row < count; row += CPU_PANEL) {
    uint8_t *to = (uint8_t *)destination + (first + row) / CPU_PANEL * panel;
    uint64_t left = count - row;
    panel_rows from = {(const uint8_t *)source + row * stride, stride,
                       (uint32_t)(left < CPU_PANEL ? left : CPU_PANEL)};
    if (from.live < CPU_PANEL) memset(to, 0, panel);
    pack_panel(scheme, from, columns, to);
  }
  return STELE_OK;
}
