/* Opening a blob, text to ids.
 *
 * A text is repaired to UTF-8; added tokens are taken out of it; what lies between is normalised,
 * searched for the added tokens that are looked for in normalised text, cut into words, and each
 * word given to the model. */
#include "text/tokenizer.h"

#include <stdlib.h>

#include "text/added.h"
#include "text/model.h"
#include "text/normalize.h"
#include "text/split.h"
#include "text/utf8.h"

#define MAX_TEXT ((size_t)1 << 30)
#define BUDGET ((uint64_t)64 << 20)

/* ---- opening ---------------------------------------------------------------------------- */

const uint8_t text_section_bytes[] = {
#define X(name, bytes, holds) bytes,
#include "text/sections.def"
#undef X
};

static stele_status damaged(stele_sink *sink, const char *what) {
  return base_fail(sink, STELE_BAD_FORMAT, "tokenizer blob is damaged: %s", what);
}

static bool power_of_two_or_none(uint32_t n) { return (n & (n - 1)) == 0; }

static stele_status check_header(const text_blob_header *h, size_t bytes, stele_sink *sink) {
  if (memcmp(h->magic, TEXT_BLOB_MAGIC, 8) != 0)
    return base_fail(sink, STELE_BAD_FORMAT, "not a tokenizer blob");
  if (h->version != TEXT_BLOB_VERSION || h->sections != TEXT_SECTION_COUNT)
    return base_fail(sink, STELE_MISMATCH,
                     "tokenizer blob has version %u with %u tables, expected version %u with %u",
                     h->version, h->sections, TEXT_BLOB_VERSION, TEXT_SECTION_COUNT);
  if (h->bytes != bytes)
    return base_fail(sink, STELE_BAD_FORMAT, "tokenizer blob has %zu bytes, its header says %llu",
                     bytes, (unsigned long long)h->bytes);
  if (h->vocab > TEXT_MAX_VOCAB) return damaged(sink, "its vocabulary is too large");
  if (h->unknown < -1 || h->unknown >= (int64_t)h->vocab)
    return damaged(sink, "its unknown token is not in the vocabulary");
  return STELE_OK;
}

stele_status text_view_init(text_tokenizer *view, const uint8_t *blob, size_t bytes,
                            stele_sink *sink) {
  text_blob_header h;
  if (bytes < sizeof h) return damaged(sink, "it ends within its header");
  memcpy(&h, blob, sizeof h);
  BASE_TRY(check_header(&h, bytes, sink));
  *view = (text_tokenizer){.model = text_model_by_code(h.model),
                           .vocab = h.vocab,
                           .flags = h.flags,
                           .unknown = h.unknown,
                           .strip = h.strip,
                           .strip_count = h.strip_count};
  if (!view->model)
    return base_fail(sink, STELE_MISMATCH, "tokenizer blob has the unknown model %u", h.model);
  for (size_t i = 0; i < TEXT_SECTION_COUNT; i++) {
    uint64_t size = (uint64_t)h.section[i].count * text_section_bytes[i];
    if (h.section[i].offset > bytes || size > bytes - h.section[i].offset)
      return damaged(sink, "a table lies outside");
    view->table[i] = (text_table){blob + h.section[i].offset, h.section[i].count};
  }
  const text_table *t = view->table;
  if (t[TEXT_TOKEN_SPANS].count != h.vocab + 1 || t[TEXT_TOKEN_FLAGS].count != h.vocab)
    return damaged(sink, "its tables do not fit its vocabulary");
  if (!power_of_two_or_none(t[TEXT_WORDS].count) ||
      !power_of_two_or_none(t[TEXT_MERGE_SLOTS].count))
    return damaged(sink, "the size of a hash table is no power of two");
  if (t[TEXT_BYTE_IDS].count && t[TEXT_BYTE_IDS].count != 256)
    return damaged(sink, "its table of bytes has no 256 entries");
  return STELE_OK;
}

stele_status text_tokenizer_create(const uint8_t *blob, size_t bytes, stele_sink *sink,
                                   text_tokenizer **out_tokenizer) {
  text_tokenizer view;
  BASE_TRY(text_view_init(&view, blob, bytes, sink));
  BASE_TRY(text_splitter_create(&view, sink, &view.splitter));
  text_tokenizer *tokenizer = malloc(sizeof *tokenizer);
  if (!tokenizer) {
    text_splitter_destroy(view.splitter);
    return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory for a tokenizer");
  }
  *tokenizer = view;
  *out_tokenizer = tokenizer;
  return STELE_OK;
}

void text_tokenizer_destroy(text_tokenizer *tokenizer) {
  if (!tokenizer) return;
  text_splitter_destroy(tokenizer->splitter);
  free(tokenizer);
}

uint32_t text_tokenizer_vocab(const text_tokenizer *tokenizer) { return tokenizer->vocab; }

/* ---- scratch ---------------------------------------------------------------------------- */

void text_work_deinit(text_work *w) {
  base_buffer *buffers[] = {&w->ids,   &w->symbols, &w->queue,   &w->pieces, &w->pieces2, &w->text,
                            &w->text2, &w->normal,  &w->normal2, &w->codes,  &w->marks};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) base_buffer_deinit(buffers[i]);
}

void *text_work_room(base_buffer *buffer, size_t bytes) {
  if (bytes <= buffer->capacity && buffer->data) return buffer->data;
  size_t capacity = base_max(base_max(bytes, 256), base_min(buffer->capacity, SIZE_MAX / 4) * 2);
  uint8_t *data = realloc(buffer->data, capacity);
  if (!data) {
    buffer->failed = true;
    return NULL;
  }
  buffer->data = data;
  buffer->capacity = capacity;
  return data;
}

/* ---- text to ids ------------------------------------------------------------------------ */

/* Text between added tokens of the normalised text; first: the whole text begins with it. */
static stele_status encode_words(const text_tokenizer *t, const uint8_t *text, size_t bytes,
                                 bool first, text_work *work, stele_sink *sink) {
  const text_piece *pieces;
  size_t count;
  if (!bytes) return STELE_OK;
  BASE_TRY(text_split(t->splitter, text, bytes, first, work, sink, &text, &pieces, &count));
  for (size_t i = 0; i < count; i++)
    t->model->encode(t, text + pieces[i].begin, pieces[i].end - pieces[i].begin, work);
  return STELE_OK;
}

/* Text between added tokens of the text as it came. */
static stele_status encode_gap(const text_tokenizer *t, const uint8_t *text, size_t bytes,
                               bool first, text_work *work, stele_sink *sink) {
  if (!bytes) return STELE_OK;
  BASE_TRY(text_normalize(&t->table[TEXT_NORMALIZERS], &t->table[TEXT_STRINGS], text, bytes, work,
                          sink, &text, &bytes));
  text_added_scan scan;
  text_added_match match;
  text_added_begin(&scan, t, TEXT_NORMAL_TRIE, text, bytes);
  while (text_added_next(&scan, &match)) {
    BASE_TRY(encode_words(t, text + match.gap_begin, match.gap_end - match.gap_begin,
                          first && match.gap_begin == 0, work, sink));
    if (match.id >= 0) text_work_id(work, match.id);
  }
  return STELE_OK;
}

static void append_ids(const text_tokenizer *t, text_section section, text_work *work) {
  for (uint32_t i = 0; i < t->table[section].count; i++) {
    uint32_t id = text_get32(t->table[section].data, i);
    if (id < t->vocab) text_work_id(work, (int32_t)id);
  }
}

static stele_status encode(const text_tokenizer *t, const uint8_t *text, size_t bytes, bool special,
                           text_work *work, stele_sink *sink) {
  work->budget = BUDGET + 64 * (uint64_t)bytes;
  if (special) append_ids(t, TEXT_PREFIX, work);
  text_added_scan scan;
  text_added_match match;
  text_added_begin(&scan, t, TEXT_RAW_TRIE, text, bytes);
  while (text_added_next(&scan, &match)) {
    BASE_TRY(encode_gap(t, text + match.gap_begin, match.gap_end - match.gap_begin,
                        match.gap_begin == 0, work, sink));
    if (match.id >= 0) text_work_id(work, match.id);
  }
  if (special) append_ids(t, TEXT_SUFFIX, work);
  if (work->ids.failed || work->symbols.failed || work->queue.failed)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory to tokenize a text of %zu bytes", bytes);
  return STELE_OK;
}

stele_status text_encode(const text_tokenizer *t, const char *text, size_t bytes, bool special,
                         stele_sink *sink, int32_t **out_ids, size_t *out_count) {
  if (bytes > MAX_TEXT)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "a text of %zu bytes, at most %zu are possible",
                     bytes, MAX_TEXT);
  const uint8_t *from = (const uint8_t *)text;
  base_buffer repaired = {0};
  if (text_utf8_valid(from, bytes) != bytes) {
    text_utf8_repair(&repaired, from, bytes);
    from = repaired.data;
    bytes = repaired.size;
  }
  text_work work = {0};
  stele_status status = repaired.failed || bytes > MAX_TEXT
                            ? base_fail(sink, STELE_OUT_OF_MEMORY, "no memory for a text")
                            : encode(t, from, bytes, special, &work, sink);
  /* Callers free what they get, so no ids are an allocation too. */
  if (status == STELE_OK && !text_work_room(&work.ids, 4))
    status = base_fail(sink, STELE_OUT_OF_MEMORY, "no memory for ids");
  if (status == STELE_OK) {
    *out_ids = (int32_t *)work.ids.data;
    *out_count = work.ids.size / sizeof **out_ids;
    work.ids = (base_buffer){0};
  }
  text_work_deinit(&work);
  base_buffer_deinit(&repaired);
  return status;
}
