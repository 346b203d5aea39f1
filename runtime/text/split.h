/* Cutting a text into words: the steps of a blob, compiled. */
#ifndef STELE_TEXT_SPLIT_H
#define STELE_TEXT_SPLIT_H

#include "text/model.h"

typedef struct text_splitter text_splitter;

/* A part of the text at hand. */
typedef struct text_piece {
  uint32_t begin, end;
} text_piece;

/* Compiles one PCRE2 expression and forgets it: for messages when a blob is made. */
stele_status text_pattern_check(const char *pattern, size_t bytes, stele_sink *sink) STELE_MUST_USE;

stele_status text_splitter_create(const text_tokenizer *view, stele_sink *sink,
                                  text_splitter **out_splitter) STELE_MUST_USE;
void text_splitter_destroy(text_splitter *splitter);

/* Cuts text (well-formed UTF-8, under 2 GiB); first: the whole text begins with it. The words are
 * *out_count pieces of *out_text, both in `work` until the next call. */
stele_status text_split(const text_splitter *splitter, const uint8_t *text, size_t bytes,
                        bool first, text_work *work, stele_sink *sink, const uint8_t **out_text,
                        const text_piece **out_pieces, size_t *out_count) STELE_MUST_USE;

#endif
