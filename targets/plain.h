/* The layout of targets that read weights as the files have them: number 0, plain rows in the
 * scheme's own blocks. */
#ifndef TGT_PLAIN_H
#define TGT_PLAIN_H

#include "stele/target.h"

/* As stele_target.layout and stele_target.pack. */
stele_status tgt_plain_layout(const void *self, uint32_t scheme, uint64_t rows, uint64_t columns,
                              bool embedding, stele_sink *sink, uint32_t *out_layout,
                              uint64_t *out_bytes);
stele_status tgt_plain_pack(const void *self, uint32_t scheme, uint32_t layout, uint64_t rows,
                            uint64_t columns, uint64_t first, uint64_t count, const void *source,
                            void *destination, stele_sink *sink);

#endif
