/* Finding added tokens in a text. */
#ifndef STELE_TEXT_ADDED_H
#define STELE_TEXT_ADDED_H

#include "text/tokenizer_blob.h"

typedef struct text_added_scan {
  const text_tokenizer *tokenizer;
  const text_table *trie;
  const uint8_t *text;
  size_t bytes, at;  /* where the search goes on */
  size_t done;       /* end of what has been handed out */
  uint64_t first[4]; /* bit set of the bytes that a token can begin with */
} text_added_scan;

typedef struct text_added_match {
  size_t gap_begin, gap_end; /* text before the token that no token covers; may be empty */
  int32_t id;                /* -1: the end; only the gap counts */
} text_added_match;

/* section: TEXT_RAW_TRIE or TEXT_NORMAL_TRIE. text is well-formed UTF-8. */
void text_added_begin(text_added_scan *scan, const text_tokenizer *tokenizer, text_section section,
                      const uint8_t *text, size_t bytes);
/* The next token; false once the end has been handed out. */
bool text_added_next(text_added_scan *scan, text_added_match *out_match);

#endif
