/* Weights in plain rows: packing is copying. */
#include "plain.h"

#include <string.h>

#include "base/base.h"
#include "weights/weights.h"

stele_status tgt_plain_layout(const void *self, uint32_t scheme, uint64_t rows, uint64_t columns,
                              bool embedding, stele_sink *sink, uint32_t *out_layout,
                              uint64_t *out_bytes) {
  (void)self;
  (void)embedding;
  size_t row, bytes;
  if (!weights_row_bytes(scheme, columns, &row) || !base_mul(row, rows, &bytes))
    return base_fail(sink, STELE_UNSUPPORTED,
                     "a matrix of %llu x %llu numbers of scheme %u has no plain layout",
                     (unsigned long long)rows, (unsigned long long)columns, scheme);
  *out_layout = 0;
  *out_bytes = bytes;
  return STELE_OK;
}

stele_status tgt_plain_pack(const void *self, uint32_t scheme, uint32_t layout, uint64_t rows,
                            uint64_t columns, uint64_t first, uint64_t count, const void *source,
                            void *destination, stele_sink *sink) {
  (void)self;
  size_t row;
  if (layout != 0 || !weights_row_bytes(scheme, columns, &row) || first > rows ||
      count > rows - first)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "layout %u of scheme %u is not known", layout,
                     scheme);
  memcpy((uint8_t *)destination + first * row, source, count * row);
  return STELE_OK;
}
