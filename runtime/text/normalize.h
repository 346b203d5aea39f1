/* Rewriting a text before it is cut: Unicode normal forms, texts for others. */
#ifndef STELE_TEXT_NORMALIZE_H
#define STELE_TEXT_NORMALIZE_H

#include "text/model.h"

/* The longest normalised text: places in it are 32-bit numbers. */
#define TEXT_MAX_NORMAL ((size_t)UINT32_MAX / 2)

/* Appends the text with each pattern replaced, from left to right. False: no memory, or more than
 * `most` bytes. */
bool text_replace(const text_replacement *replacement, const uint8_t *text, size_t bytes,
                  size_t most, base_buffer *out);

/* Runs the normalizers (text_normal, texts in strings) over a well-formed text. The result is the
 * text itself where nothing changes, else in `work` until the next call. */
stele_status text_normalize(const text_table *normalizers, const text_table *strings,
                            const uint8_t *text, size_t bytes, text_work *work, stele_sink *sink,
                            const uint8_t **out_text, size_t *out_bytes) STELE_MUST_USE;

#endif
