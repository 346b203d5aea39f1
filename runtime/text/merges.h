/* Merging symbols by rank; what the BPE models share. */
#ifndef STELE_TEXT_MERGES_H
#define STELE_TEXT_MERGES_H

#include "text/model.h"

typedef struct text_symbol {
  int32_t id;             /* -1: merged into its left neighbour */
  int32_t previous, next; /* -1: none */
} text_symbol;

/* Links `count` symbols whose ids are set, merges them, and appends what is left to work->ids. */
void text_merge_symbols(const text_tokenizer *tokenizer, text_symbol *symbols, size_t count,
                        text_work *work);

/* Vocabulary, merges, unknown token and fuse_unk of a "BPE" model of tokenizer.json. */
stele_status text_merges_from_json(text_builder *builder, const json_t *model) STELE_MUST_USE;
/* "left right", as GGUF and the older form of tokenizer.json have merges. */
stele_status text_merges_line(text_builder *builder, const char *line, size_t bytes) STELE_MUST_USE;

#endif
