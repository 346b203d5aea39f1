/* From Oniguruma's expressions (Ruby syntax, as in tokenizer.json) to PCRE2's. */
#ifndef STELE_TEXT_PATTERN_H
#define STELE_TEXT_PATTERN_H

#include "base/base.h"

/* Appends the translation of a pattern. STELE_UNSUPPORTED for what PCRE2 cannot say. */
stele_status text_pattern_translate(const char *pattern, size_t bytes, stele_sink *sink,
                                    base_buffer *out) STELE_MUST_USE;
/* Appends a pattern that matches a literal text. */
void text_pattern_quote(const char *text, size_t bytes, base_buffer *out);

#endif
