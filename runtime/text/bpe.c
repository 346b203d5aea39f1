/* Byte-level byte pair encoding (GPT-2's variant).
 *
 * A word starts as the tokens of its bytes, which are merged by rank. A word that is a token which
 * encodes as itself is one look-up; which tokens do is found out when the blob is made. */
#include "text/merges.h"
#include "text/utf8.h"

/* Id of the token whose bytes are the word, if it encodes as itself; -1: none. */
static int32_t find_word(const text_tokenizer *t, const uint8_t *word, size_t bytes) {
  const text_table *words = &t->table[TEXT_WORDS];
  if (!words->count) return -1;
  uint32_t mask = words->count - 1, slot = text_hash_bytes(word, bytes) & mask;
  for (uint32_t i = 0; i <= TEXT_MAX_PROBE; i++, slot = (slot + 1) & mask) {
    uint32_t id = text_get32(words->data, slot) - 1;
    if (id >= t->vocab) return -1;
    size_t size;
    const uint8_t *token = text_token_bytes(t, id, &size);
    if (size == bytes && memcmp(token, word, bytes) == 0) return (int32_t)id;
  }
  return -1;
}

/* ---- a word ----------------------------------------------------------------------------- */

/* The tokens of the word's bytes; returns how many. Bytes without a token become the unknown
 * token, one for each or one for a run of them, or nothing. */
static size_t start_symbols(const text_tokenizer *t, const uint8_t *word, size_t bytes,
                            text_symbol *symbols) {
  const text_table *byte_ids = &t->table[TEXT_BYTE_IDS];
  size_t count = 0;
  bool after_unknown = false;
  for (size_t i = 0; i < bytes; i++) {
    uint32_t id = byte_ids->count ? text_get32(byte_ids->data, word[i]) : UINT32_MAX;
    bool known = id < t->vocab;
    bool fused = !known && after_unknown && (t->flags & TEXT_BLOB_FUSE_UNKNOWN);
    after_unknown = !known;
    if (!known && (t->unknown < 0 || fused)) continue;
    symbols[count++].id = known ? (int32_t)id : t->unknown;
  }
  return count;
}

void text_bpe_encode(const text_tokenizer *t, const uint8_t *word, size_t bytes, text_work *work) {
  int32_t id = find_word(t, word, bytes);
  if (id >= 0) {
    text_work_id(work, id);
    return;
  }
  text_symbol *symbols = text_work_room(&work->symbols, bytes * sizeof *symbols);
  if (symbols) text_merge_symbols(t, symbols, start_symbols(t, word, bytes, symbols), work);
}

/* ---- sources ---------------------------------------------------------------------------- */

/* The token of each single byte, by its spelling in the byte-level alphabet. */
static void byte_tokens(text_builder *b) {
  int32_t ids[256];
  for (int i = 0; i < 256; i++) ids[i] = -1;
  for (int32_t code = 0x21; code <= 0x143; code++) {
    int byte = text_byte_of(code);
    uint8_t spelling[4];
    size_t length = text_utf8_encode(code, spelling);
    if (byte >= 0) ids[byte] = text_builder_find(b, (const char *)spelling, length);
  }
  base_buffer_append(&b->byte_ids, ids, sizeof ids);
}

stele_status text_bpe_from_json(text_builder *b, const json_t *model) {
  if (json_is_true(json_object_get(model, "byte_fallback")))
    return base_fail(b->sink, STELE_UNSUPPORTED,
                     "%s: 'model.byte_fallback' with a pre_tokenizer 'ByteLevel' is not supported",
                     b->source);
  BASE_TRY(text_merges_from_json(b, model));
  b->direct = json_is_true(json_object_get(model, "ignore_merges"));
  byte_tokens(b);
  return STELE_OK;
}

stele_status text_bpe_from_gguf(text_builder *b, const text_gguf_source *source) {
  BASE_TRY(text_gguf_words(b, source->pre));
  for (uint32_t id = 0; id < source->token_count; id++)
    BASE_TRY(text_builder_token(b, id, source->tokens[id], source->token_bytes[id], true));
  if (!source->merge_count)
    return base_fail(b->sink, STELE_BAD_FORMAT, "%s: 'tokenizer.ggml.merges' is missing",
                     b->source);
  for (uint64_t i = 0; i < source->merge_count; i++)
    BASE_TRY(text_merges_line(b, source->merges[i], source->merge_bytes[i]));
  byte_tokens(b);
  return STELE_OK;
}
