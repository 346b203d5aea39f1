/* UTF-8 as the rest of this folder needs it: strict reading, replacement of what is ill-formed,
 * and the two character classes that added tokens look at. */
#ifndef STELE_TEXT_UTF8_H
#define STELE_TEXT_UTF8_H

#include "base/base.h"

#define TEXT_ILL_FORMED (-1)

/* The first character of a non-empty text. Returns its length and its code point; for an
 * ill-formed beginning TEXT_ILL_FORMED and the length of the maximal subpart (Unicode 3.9: the
 * longest prefix of a well-formed sequence, at least one byte). *out_cut says that the subpart
 * reaches the end of the text and more bytes could make it a character. */
size_t text_utf8_scan(const uint8_t *text, size_t bytes, int32_t *out_code, bool *out_cut);

/* Length of the well-formed beginning. */
size_t text_utf8_valid(const uint8_t *text, size_t bytes);

/* Writes a code point; returns its length, 0 for what is none. */
size_t text_utf8_encode(int32_t code, uint8_t out[4]);
/* Appends a code point. */
void text_utf8_append(base_buffer *out, int32_t code);

/* Appends text with each ill-formed byte as U+FFFD. */
void text_utf8_repair(base_buffer *out, const uint8_t *text, size_t bytes);

/* Appends text with each maximal ill-formed subpart as one U+FFFD; a character that is cut off by
 * the end is left out, and its bytes (at most 3) counted in the result, unless `last`. */
size_t text_utf8_lossy(base_buffer *out, const uint8_t *text, size_t bytes, bool last);

/* Appends U+FFFD `count` times. */
void text_utf8_each(base_buffer *out, size_t count);

/* White_Space of Unicode. */
bool text_is_space(int32_t code);
/* What \w is in Unicode Technical Standard 18: letters, marks, decimal digits, connectors. */
bool text_is_word(int32_t code);

/* Start of the character that ends at `end` in a well-formed text (end > 0). */
size_t text_utf8_back(const uint8_t *text, size_t end);

#endif
