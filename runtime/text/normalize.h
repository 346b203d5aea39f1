/* Unicode normal forms of a text. */
#ifndef STELE_TEXT_NORMALIZE_H
#define STELE_TEXT_NORMALIZE_H

#include "text/model.h"

/* Runs the normalizers (enum text_normalizer) over a well-formed text. The result is the text
 * itself where nothing changes, else in `work` until the next call. */
stele_status text_normalize(const text_table *normalizers, const uint8_t *text, size_t bytes,
                            text_work *work, stele_sink *sink, const uint8_t **out_text,
                            size_t *out_bytes) STELE_MUST_USE;

#endif
