/* Byte pair encoding of characters, as SentencePiece models have it (Kudo and Richardson 2018).
 *
 * A word, often a whole text, starts as the tokens of its characters; a character without one
 * becomes the tokens of its UTF-8 bytes ("<0xNN>"), or the unknown token. They are merged by rank.
 * A text falls into words where no merge can reach across: before a U+2581, which stands for a
 * space, behind a character that no token has in front of one. That is found when the blob is
 * made, keeps the heap of merges small, and changes no id.
 *
 * GGUF gives each token a score, and any two neighbours merge whose texts make a token, the best
 * score first. Written as ranked merges: every way to cut a token into two tokens, by score, then
 * the longer left part, then the lower id, which is what transformers makes of SentencePiece files
 * (convert_slow_tokenizer.py), so that both sources give the same ids. User-defined tokens go
 * before all others; GGUF files mark them by their type, give them any score, and spell U+2581 in
 * them as a space. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/merges.h"
#include "text/normalize.h"
#include "text/utf8.h"

#define SPACE 0x2581
#define SPACE_TEXT "\xE2\x96\x81"
/* With more of them than this in GLUE a text isn't cut. */
#define MAX_GLUE 256
/* How many bytes may be hashed in all to find the merges of a GGUF file's tokens. */
#define MAX_HASHED ((uint64_t)1 << 33)

enum { TYPE_USER = 4 };

/* ---- encoding --------------------------------------------------------------------------- */

/* The token of a character, -1: none. */
static int32_t find_character(const text_tokenizer *t, int32_t code) {
  const text_table *table = &t->table[TEXT_CHARACTERS];
  uint32_t low = 0, high = table->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    uint32_t found = text_get32(table->data, (size_t)middle * 2);
    if (found == (uint32_t)code) {
      uint32_t id = text_get32(table->data, (size_t)middle * 2 + 1);
      return id < t->vocab ? (int32_t)id : -1;
    }
    if (found < (uint32_t)code)
      low = middle + 1;
    else
      high = middle;
  }
  return -1;
}

/* True where a text may be cut between the character and a U+2581 behind it. */
static bool cuts(const text_tokenizer *t, int32_t before) {
  const text_table *glue = &t->table[TEXT_GLUE];
  for (uint32_t i = 0; i < glue->count; i++)
    if (text_get32(glue->data, i) == (uint32_t)before) return false;
  return (t->flags & TEXT_BLOB_CUT) != 0;
}

static void add_symbol(text_work *work, int32_t id) {
  text_symbol symbol = {.id = id};
  base_buffer_append(&work->symbols, &symbol, sizeof symbol);
}

/* The tokens of a character's bytes, if there are any for all of them. */
static bool add_bytes(const text_tokenizer *t, const uint8_t *bytes, size_t count,
                      text_work *work) {
  const text_table *ids = &t->table[TEXT_BYTE_IDS];
  if (!(t->flags & TEXT_BLOB_BYTE_FALLBACK) || !ids->count) return false;
  for (size_t i = 0; i < count; i++)
    if (text_get32(ids->data, bytes[i]) >= t->vocab) return false;
  for (size_t i = 0; i < count; i++) add_symbol(work, (int32_t)text_get32(ids->data, bytes[i]));
  return true;
}

/* The symbols of a text up to a place where it may be cut; returns where that is. An unknown token
 * waits until a known character or the end, as in tokenizers, and may take others into itself. */
static size_t start_symbols(const text_tokenizer *t, const uint8_t *text, size_t bytes,
                            text_work *work) {
  int32_t before = -1; /* the known character before, -1: none */
  bool unknown = false;
  size_t at = 0, length;
  for (work->symbols.size = 0; at < bytes; at += length) {
    int32_t code;
    bool cut;
    length = text_utf8_scan(text + at, bytes - at, &code, &cut);
    int32_t id = find_character(t, code);
    if (id >= 0) {
      if (code == SPACE && before >= 0 && cuts(t, before)) break;
      if (unknown) add_symbol(work, t->unknown);
      unknown = false;
      add_symbol(work, id);
    } else if (!add_bytes(t, text + at, length, work) && t->unknown >= 0) {
      if (unknown && !(t->flags & TEXT_BLOB_FUSE_UNKNOWN)) add_symbol(work, t->unknown);
      unknown = true;
    }
    before = id >= 0 ? code : -1;
  }
  if (unknown) add_symbol(work, t->unknown);
  return at;
}

void text_spm_encode(const text_tokenizer *t, const uint8_t *word, size_t bytes, text_work *work) {
  for (size_t at = 0; at < bytes;) {
    at += start_symbols(t, word + at, bytes - at, work);
    text_merge_symbols(t, (text_symbol *)work->symbols.data,
                       work->symbols.size / sizeof(text_symbol), work);
  }
}

/* ---- tables ----------------------------------------------------------------------------- */

static void byte_tokens(text_builder *b) {
  int32_t ids[256];
  for (int i = 0; i < 256; i++) {
    char spelling[8];
    int length = snprintf(spelling, sizeof spelling, "<0x%02X>", i);
    ids[i] = text_builder_find(b, spelling, (size_t)length);
  }
  base_buffer_append(&b->byte_ids, ids, sizeof ids);
}

static int compare_characters(const void *left, const void *right) {
  const text_character *a = left, *b = right;
  return a->code < b->code ? -1 : a->code > b->code;
}

/* Enters a character that the token has in front of a U+2581; there are few. */
static void add_glue(text_builder *b, int32_t before) {
  const uint32_t *codes = (const uint32_t *)b->glue.data;
  size_t count = b->glue.size / sizeof *codes;
  for (size_t i = 0; i < count; i++)
    if (codes[i] == (uint32_t)before) return;
  if (count <= MAX_GLUE) base_buffer_append(&b->glue, &before, sizeof before);
}

static void look_at_token(text_builder *b, uint32_t id, const uint8_t *text, size_t bytes) {
  int32_t code = -1, before = -1;
  bool cut;
  for (size_t at = 0; at < bytes; before = code) {
    size_t length = text_utf8_scan(text + at, bytes - at, &code, &cut);
    if (code == SPACE && at) add_glue(b, before);
    if (length == bytes && code >= 0) {
      text_character character = {(uint32_t)code, id};
      base_buffer_append(&b->characters, &character, sizeof character);
    }
    at += length;
  }
}

static stele_status make_tables(text_builder *b) {
  byte_tokens(b);
  for (uint32_t id = 0; id < b->vocab; id++) {
    size_t bytes;
    const char *text = text_builder_word(b, id, &bytes);
    if (text) look_at_token(b, id, (const uint8_t *)text, bytes);
  }
  if (b->glue.failed || b->characters.failed)
    return base_fail(b->sink, STELE_OUT_OF_MEMORY, "%s: no memory for the tokenizer", b->source);
  if (b->characters.size)
    qsort(b->characters.data, b->characters.size / sizeof(text_character), sizeof(text_character),
          compare_characters);
  if (b->glue.size / sizeof(uint32_t) <= MAX_GLUE) b->flags |= TEXT_BLOB_CUT;
  return STELE_OK;
}

/* ---- sources ---------------------------------------------------------------------------- */

stele_status text_spm_from_json(text_builder *b, const json_t *model) {
  if (json_is_true(json_object_get(model, "ignore_merges")))
    return base_fail(
        b->sink, STELE_UNSUPPORTED,
        "%s: 'model.ignore_merges' without a pre_tokenizer 'ByteLevel' is not supported",
        b->source);
  BASE_TRY(text_merges_from_json(b, model));
  if (json_is_true(json_object_get(model, "byte_fallback"))) b->flags |= TEXT_BLOB_BYTE_FALLBACK;
  return make_tables(b);
}

/* A merge that makes a token, and what it is ranked by. */
typedef struct scored_merge {
  float score; /* infinite: user-defined */
  uint32_t left_characters, right_characters;
  uint32_t ids[3];
} scored_merge;

static int compare_merges(const void *left, const void *right) {
  const scored_merge *a = left, *b = right;
  if (a->score != b->score) return a->score > b->score ? -1 : 1;
  if (a->left_characters != b->left_characters)
    return a->left_characters > b->left_characters ? -1 : 1;
  if (a->right_characters != b->right_characters)
    return a->right_characters > b->right_characters ? -1 : 1;
  return a->ids[2] < b->ids[2] ? -1 : a->ids[2] > b->ids[2];
}

static uint32_t count_characters(const char *text, size_t bytes) {
  uint32_t count = 0;
  for (size_t i = 0; i < bytes; i++) count += ((uint8_t)text[i] & 0xC0) != 0x80;
  return count;
}

/* Every way to cut the token between characters into two tokens. */
static void cut_token(const text_builder *b, uint32_t id, const char *text, size_t bytes,
                      float score, base_buffer *out) {
  uint32_t characters = count_characters(text, bytes), before = 1;
  for (size_t at = 1; at < bytes; at++) {
    if (((uint8_t)text[at] & 0xC0) == 0x80) continue;
    int32_t left = text_builder_find(b, text, at);
    int32_t right = left < 0 ? -1 : text_builder_find(b, text + at, bytes - at);
    scored_merge merge = {
        score, before, characters - before, {(uint32_t)left, (uint32_t)right, id}};
    if (right >= 0) base_buffer_append(out, &merge, sizeof merge);
    before++;
  }
}

static bool user_defined(const text_gguf_source *source, uint32_t id) {
  return source->token_types && source->token_types[id] == TYPE_USER;
}

static stele_status scored_merges(text_builder *b, const text_gguf_source *source,
                                  base_buffer *out) {
  uint64_t hashed = 0;
  for (uint32_t id = 0; id < b->vocab; id++) {
    size_t bytes;
    const char *text = text_builder_word(b, id, &bytes);
    if (!text) continue;
    hashed += (uint64_t)bytes * bytes;
    float score = user_defined(source, id) ? INFINITY : source->scores[id];
    if (isnan(score))
      return base_fail(b->sink, STELE_BAD_FORMAT, "%s: the score of token %u is not a number",
                       b->source, id);
    if (hashed > MAX_HASHED)
      return base_fail(b->sink, STELE_UNSUPPORTED, "%s: the tokens up to %u are too long in all",
                       b->source, id);
    cut_token(b, id, text, bytes, score, out);
  }
  if (out->failed)
    return base_fail(b->sink, STELE_OUT_OF_MEMORY, "%s: no memory for the merges", b->source);
  return STELE_OK;
}

static stele_status make_merges(text_builder *b, const text_gguf_source *source) {
  base_buffer merges = {0};
  stele_status status = scored_merges(b, source, &merges);
  const scored_merge *all = (const scored_merge *)merges.data;
  size_t count = merges.size / sizeof *all;
  if (status == STELE_OK && count) qsort(merges.data, count, sizeof *all, compare_merges);
  for (size_t i = 0; i < count && status == STELE_OK; i++)
    base_buffer_append(&b->merges, all[i].ids, sizeof all[i].ids);
  base_buffer_deinit(&merges);
  return status;
}

/* Spaces become U+2581, with one more in front where the file has it so, and back again. */
static void spaces(text_builder *b, bool prefix) {
  const uint8_t *space = (const uint8_t *)SPACE_TEXT, *blank = (const uint8_t *)" ";
  text_replacement prepend = {space, 0, space, 3}, in = {blank, 1, space, 3},
                   out = {space, 3, blank, 1};
  if (prefix) text_builder_normalizer(b, TEXT_PREPEND, &prepend);
  text_builder_normalizer(b, TEXT_REPLACE, &in);
  base_buffer_append(&b->replacements, &out, sizeof out);
  b->decode_bytes = b->fused = true;
  b->strip = ' ';
  b->strip_count = prefix;
}

/* The tokens, user-defined ones with U+2581 for each space. Their texts stay in b->respelled, whose
 * room is made at once, as the builder borrows them. */
static stele_status spelled_tokens(text_builder *b, const text_gguf_source *source) {
  const text_replacement in = {(const uint8_t *)" ", 1, (const uint8_t *)SPACE_TEXT, 3};
  size_t room = 1, longer;
  for (uint32_t id = 0; id < source->token_count; id++) {
    if (!user_defined(source, id)) continue;
    if (!base_mul(source->token_bytes[id], 3, &longer) || !base_add(room, longer, &room))
      return base_fail(b->sink, STELE_BAD_FORMAT, "%s: token %u is too long", b->source, id);
  }
  if (!text_work_room(&b->respelled, room))
    return base_fail(b->sink, STELE_OUT_OF_MEMORY, "%s: no memory for the tokenizer", b->source);
  for (uint32_t id = 0; id < source->token_count; id++) {
    const char *text = source->tokens[id];
    size_t bytes = source->token_bytes[id], begin = b->respelled.size;
    if (user_defined(source, id) && memchr(text, ' ', bytes)) {
      if (!text_replace(&in, (const uint8_t *)text, bytes, room, &b->respelled))
        return base_fail(b->sink, STELE_OUT_OF_MEMORY, "%s: no memory for token %u", b->source, id);
      text = (const char *)b->respelled.data + begin;
      bytes = b->respelled.size - begin;
    }
    BASE_TRY(text_builder_token(b, id, text, bytes, true));
  }
  return STELE_OK;
}

stele_status text_spm_from_gguf(text_builder *b, const text_gguf_source *source) {
  BASE_TRY(spelled_tokens(b, source));
  if (!source->scores)
    return base_fail(b->sink, STELE_BAD_FORMAT, "%s: 'tokenizer.ggml.scores' is missing",
                     b->source);
  b->unknown = source->unknown_id < 0 ? 0 : source->unknown_id;
  if ((uint32_t)b->unknown >= b->vocab)
    return base_fail(b->sink, STELE_BAD_FORMAT,
                     "%s: tokenizer.ggml.unknown_token_id %d is not in the vocabulary of %u",
                     b->source, b->unknown, b->vocab);
  spaces(b, source->add_space_prefix != 0);
  b->flags |= TEXT_BLOB_FUSE_UNKNOWN | TEXT_BLOB_BYTE_FALLBACK;
  b->bos = true;
  BASE_TRY(make_merges(b, source));
  return make_tables(b);
}
