/* Laying out a blob. The tables that opening must not build are made here: a hash of the merges,
 * a hash of the tokens that are the encoding of their own bytes (found by encoding each), and a
 * trie of the added tokens. Hash tables double until no entry is far from its slot. */
#include "text/builder.h"

#include <stdio.h>
#include <stdlib.h>

#include "text/model.h"
#include "text/normalize.h"
#include "text/pattern.h"
#include "text/split.h"
#include "text/utf8.h"

typedef struct builder_token {
  const char *text; /* NULL: the id has no token */
  uint32_t bytes;
  uint32_t flags; /* enum text_token_flag, and the two below */
  uint32_t hash;  /* of the text: saves most look-ups from reading it */
} builder_token;
enum { TOKEN_WORD = 256 /* of the vocabulary */, TOKEN_ADDED = 512 };

typedef struct builder_added {
  uint32_t id, flags;
} builder_added;

void text_builder_init(text_builder *b, const char *source, stele_sink *sink) {
  *b = (text_builder){.source = source, .sink = sink, .unknown = -1};
}

void text_builder_deinit(text_builder *b) {
  base_buffer *buffers[] = {&b->tokens,     &b->added,  &b->map,      &b->merges,
                            &b->byte_ids,   &b->steps,  &b->strings,  &b->normalizers,
                            &b->prefix,     &b->suffix, &b->scratch,  &b->replacements,
                            &b->characters, &b->glue,   &b->respelled};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) base_buffer_deinit(buffers[i]);
}

static stele_status no_memory(const text_builder *b) {
  return base_fail(b->sink, STELE_OUT_OF_MEMORY, "%s: no memory for the tokenizer", b->source);
}

/* ---- tokens by spelling ----------------------------------------------------------------- */

static builder_token *token_at(const text_builder *b, uint32_t id) {
  return (builder_token *)b->tokens.data + id;
}

static uint32_t *map_slot(const text_builder *b, const char *text, size_t bytes) {
  uint32_t mask = (uint32_t)(b->map.size / 4) - 1, *slots = (uint32_t *)b->map.data;
  uint32_t hash = text_hash_bytes((const uint8_t *)text, bytes), slot = hash & mask;
  for (; slots[slot]; slot = (slot + 1) & mask) {
    const builder_token *token = token_at(b, slots[slot] - 1);
    if (token->hash == hash && token->bytes == bytes && memcmp(token->text, text, bytes) == 0)
      break;
  }
  return &slots[slot];
}

int32_t text_builder_find(const text_builder *b, const char *text, size_t bytes) {
  return b->map.size ? (int32_t)*map_slot(b, text, bytes) - 1 : -1;
}

/* Makes the map at most half full. */
static bool map_grow(text_builder *b) {
  uint32_t slots = (uint32_t)(b->map.size / 4);
  if (b->map_used < slots / 2) return true;
  base_buffer old = b->map;
  b->map = (base_buffer){0};
  uint32_t more = slots ? slots * 2 : 1024;
  if (!text_work_room(&b->map, (size_t)more * 4)) {
    base_buffer_deinit(&b->map);
    b->map = old;
    return false;
  }
  b->map.size = (size_t)more * 4;
  memset(b->map.data, 0, b->map.size);
  for (uint32_t i = 0; i < slots; i++) {
    uint32_t id = text_get32(old.data, i);
    if (!id) continue;
    const builder_token *token = token_at(b, id - 1);
    *map_slot(b, token->text, token->bytes) = id;
  }
  base_buffer_deinit(&old);
  return true;
}

static stele_status ensure_id(text_builder *b, uint32_t id, const char *text, size_t bytes) {
  if (id >= TEXT_MAX_VOCAB)
    return base_fail(b->sink, STELE_BAD_FORMAT,
                     "%s: token '%.*s' has the id %u; ids up to %u are possible", b->source,
                     (int)base_min(bytes, 80), text, id, TEXT_MAX_VOCAB - 1);
  if (bytes > UINT32_MAX / 4)
    return base_fail(b->sink, STELE_BAD_FORMAT, "%s: token %u is %zu bytes long", b->source, id,
                     bytes);
  if (id < b->vocab) return STELE_OK;
  size_t size = ((size_t)id + 1) * sizeof(builder_token), old = b->tokens.size;
  if (!text_work_room(&b->tokens, size)) return no_memory(b);
  memset(b->tokens.data + old, 0, size - old);
  b->tokens.size = size;
  b->vocab = id + 1;
  return STELE_OK;
}

/* Gives the id its text and enters it under it. */
static stele_status name_id(text_builder *b, uint32_t id, const char *text, size_t bytes,
                            uint32_t flags, bool enter) {
  if (!map_grow(b)) return no_memory(b);
  *token_at(b, id) =
      (builder_token){text, (uint32_t)bytes, flags, text_hash_bytes((const uint8_t *)text, bytes)};
  if (enter) {
    *map_slot(b, text, bytes) = id + 1;
    b->map_used++;
  }
  return STELE_OK;
}

stele_status text_builder_token(text_builder *b, uint32_t id, const char *text, size_t bytes,
                                bool first_wins) {
  BASE_TRY(ensure_id(b, id, text, bytes));
  const builder_token *taken = token_at(b, id);
  if (taken->text)
    return base_fail(b->sink, STELE_BAD_FORMAT, "%s: tokens '%.*s' and '%.*s' have the same id %u",
                     b->source, (int)base_min(taken->bytes, 80), taken->text,
                     (int)base_min(bytes, 80), text, id);
  int32_t other = text_builder_find(b, text, bytes);
  if (other >= 0 && !first_wins)
    return base_fail(b->sink, STELE_BAD_FORMAT, "%s: token '%.*s' has two ids, %d and %u",
                     b->source, (int)base_min(bytes, 80), text, other, id);
  return name_id(b, id, text, bytes, TEXT_TOKEN_PRESENT | (other < 0 ? TOKEN_WORD : 0), other < 0);
}

stele_status text_builder_added(text_builder *b, uint32_t id, const char *text, size_t bytes,
                                uint32_t flags) {
  if (!bytes) return STELE_OK; /* as tokenizers does: an empty token can't be found */
  if (bytes > TEXT_MAX_ADDED)
    return base_fail(b->sink, STELE_UNSUPPORTED,
                     "%s: added token %u is %zu bytes long, at most %u are possible", b->source, id,
                     bytes, TEXT_MAX_ADDED);
  BASE_TRY(ensure_id(b, id, text, bytes));
  int32_t known = text_builder_find(b, text, bytes);
  builder_token *token = token_at(b, id);
  bool same = token->text && token->bytes == bytes && memcmp(token->text, text, bytes) == 0;
  if (known >= 0 && known != (int32_t)id && !same)
    return base_fail(b->sink, STELE_BAD_FORMAT,
                     "%s: added token '%.*s' has the id %u, but the id %d in the vocabulary",
                     b->source, (int)base_min(bytes, 80), text, id, known);
  if (token->text && !same)
    return base_fail(b->sink, STELE_BAD_FORMAT,
                     "%s: added token '%.*s' has the id %u, which is that of '%.*s'", b->source,
                     (int)base_min(bytes, 80), text, id, (int)base_min(token->bytes, 80),
                     token->text);
  if (!token->text) BASE_TRY(name_id(b, id, text, bytes, TEXT_TOKEN_PRESENT, known < 0));
  token = token_at(b, id);
  if (token->flags & TOKEN_ADDED) return STELE_OK; /* listed twice */
  token->flags |= TOKEN_ADDED;
  builder_added added = {id, flags};
  base_buffer_append(&b->added, &added, sizeof added);
  return STELE_OK;
}

const char *text_builder_text(const text_builder *b, uint32_t id, size_t *out_bytes) {
  *out_bytes = token_at(b, id)->bytes;
  return token_at(b, id)->text;
}

const char *text_builder_word(const text_builder *b, uint32_t id, size_t *out_bytes) {
  const builder_token *token = token_at(b, id);
  *out_bytes = token->bytes;
  return token->flags & TOKEN_WORD ? token->text : NULL;
}

/* ---- merges, steps ---------------------------------------------------------------------- */

static stele_status merge_id(text_builder *b, const char *text, size_t bytes, uint32_t *out_id) {
  int32_t id = text_builder_find(b, text, bytes);
  if (id < 0)
    return base_fail(b->sink, STELE_BAD_FORMAT, "%s: merge %zu names '%.*s', which is no token",
                     b->source, b->merges.size / 12, (int)base_min(bytes, 80), text);
  *out_id = (uint32_t)id;
  return STELE_OK;
}

stele_status text_builder_merge(text_builder *b, const char *left, size_t left_bytes,
                                const char *right, size_t right_bytes) {
  uint32_t merge[3];
  BASE_TRY(merge_id(b, left, left_bytes, &merge[0]));
  BASE_TRY(merge_id(b, right, right_bytes, &merge[1]));
  b->scratch.size = 0;
  base_buffer_append(&b->scratch, left, left_bytes);
  base_buffer_append(&b->scratch, right, right_bytes);
  if (b->scratch.failed) return no_memory(b);
  const char *both = b->scratch.size ? (const char *)b->scratch.data : "";
  BASE_TRY(merge_id(b, both, b->scratch.size, &merge[2]));
  base_buffer_append(&b->merges, merge, sizeof merge);
  return STELE_OK;
}

stele_status text_builder_split(text_builder *b, const char *pattern, size_t bytes,
                                uint32_t behavior, bool invert) {
  size_t begin = b->strings.size;
  BASE_TRY(text_pattern_translate(pattern, bytes, b->sink, &b->strings));
  if (b->strings.failed) return no_memory(b);
  size_t length = b->strings.size - begin;
  BASE_TRY(text_pattern_check((const char *)b->strings.data + begin, length, b->sink));
  text_step step = {TEXT_STEP_SPLIT, behavior, invert, (uint32_t)begin, (uint32_t)length};
  base_buffer_append(&b->steps, &step, sizeof step);
  return STELE_OK;
}

void text_builder_prefix_space(text_builder *b) {
  text_step step = {.kind = TEXT_STEP_PREFIX_SPACE};
  base_buffer_append(&b->steps, &step, sizeof step);
}

/* Puts a text into STRINGS; returns its place. */
static uint32_t keep_string(text_builder *b, const void *text, size_t bytes) {
  uint32_t begin = (uint32_t)b->strings.size;
  base_buffer_append(&b->strings, text, bytes);
  return begin;
}

void text_builder_metaspace(text_builder *b, const char *text, size_t bytes, uint32_t scheme) {
  text_step step = {TEXT_STEP_METASPACE, scheme, 0, keep_string(b, text, bytes), (uint32_t)bytes};
  base_buffer_append(&b->steps, &step, sizeof step);
}

void text_builder_normalizer(text_builder *b, text_normalizer normalizer,
                             const text_replacement *texts) {
  text_normal normal = {.kind = normalizer};
  if (texts) {
    normal.pattern = keep_string(b, texts->pattern, texts->length);
    normal.length = (uint32_t)texts->length;
    normal.content = keep_string(b, texts->content, texts->content_length);
    normal.content_length = (uint32_t)texts->content_length;
  }
  base_buffer_append(&b->normalizers, &normal, sizeof normal);
}

/* ---- hash tables ------------------------------------------------------------------------ */

typedef struct hash_table {
  base_buffer slots; /* uint32_t: index + 1 */
} hash_table;

/* A hash of the items 0..count-1, the last of equal ones winning. hash gives an item's hash;
 * equal compares two items; both may skip (hash returns false). */
typedef struct hash_items {
  uint32_t count;
  bool (*hash)(const void *data, uint32_t item, uint32_t *out_hash);
  bool (*equal)(const void *data, uint32_t a, uint32_t b);
  const void *data;
} hash_items;

static bool table_insert(uint32_t *slots, uint32_t mask, const hash_items *items, uint32_t item) {
  uint32_t hash;
  if (!items->hash(items->data, item, &hash)) return true;
  uint32_t slot = hash & mask;
  for (uint32_t i = 0; i <= TEXT_MAX_PROBE; i++, slot = (slot + 1) & mask) {
    if (slots[slot] && !items->equal(items->data, slots[slot] - 1, item)) continue;
    slots[slot] = item + 1;
    return true;
  }
  return false;
}

static stele_status table_make(text_builder *b, const hash_items *items, uint32_t used,
                               base_buffer *slots) {
  uint32_t size = 64;
  while (size / 4 * 3 < used) size *= 2;
  for (int tries = 0; tries < 4; tries++, size *= 2) {
    slots->size = 0;
    if (!text_work_room(slots, (size_t)size * 4)) return no_memory(b);
    memset(slots->data, 0, (size_t)size * 4);
    slots->size = (size_t)size * 4;
    uint32_t item = 0;
    while (item < items->count && table_insert((uint32_t *)slots->data, size - 1, items, item))
      item++;
    if (item == items->count) return STELE_OK;
  }
  return base_fail(b->sink, STELE_UNSUPPORTED, "%s: too many tokens have the same hash", b->source);
}

static bool merge_hash(const void *data, uint32_t item, uint32_t *out_hash) {
  const text_builder *b = data;
  const uint8_t *merge = b->merges.data + (size_t)item * 12;
  *out_hash = text_hash_pair(text_get32(merge, 0), text_get32(merge, 1));
  return true;
}

static bool merge_equal(const void *data, uint32_t left, uint32_t right) {
  const text_builder *b = data;
  return memcmp(b->merges.data + (size_t)left * 12, b->merges.data + (size_t)right * 12, 8) == 0;
}

typedef struct word_items {
  const text_tokenizer *view;
  const uint8_t *chosen; /* [vocab] */
} word_items;

static bool word_hash(const void *data, uint32_t item, uint32_t *out_hash) {
  const word_items *words = data;
  size_t bytes;
  const uint8_t *text = text_token_bytes(words->view, item, &bytes);
  if (!words->chosen[item]) return false;
  *out_hash = text_hash_bytes(text, bytes);
  return true;
}

static bool word_equal(const void *data, uint32_t left, uint32_t right) {
  (void)data;
  return left == right;
}

/* ---- added tokens ----------------------------------------------------------------------- */

/* The two tries. texts[i] is the text by which added token i is found. */
static stele_status tries_make(text_builder *b, const base_buffer *texts, base_buffer *raw,
                               base_buffer *normal) {
  size_t count = b->added.size / sizeof(builder_added);
  const builder_added *added = (const builder_added *)b->added.data;
  text_trie_entry *entries = calloc(count + 1, sizeof *entries);
  if (!entries) return no_memory(b);
  stele_status status = STELE_OK;
  for (uint32_t pass = 0; pass < 2 && status == STELE_OK; pass++) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
      bool normalized = (added[i].flags & TEXT_ADDED_NORMALIZED) != 0;
      if (normalized == (pass == 1) && texts[i].size)
        entries[used++] = (text_trie_entry){texts[i].data, texts[i].size, (uint32_t)i};
    }
    if (!text_trie_make(entries, used, pass ? normal : raw)) status = no_memory(b);
  }
  free(entries);
  return status;
}

/* ---- the blob --------------------------------------------------------------------------- */

/* Everything that goes into the blob and is not in the builder yet. */
typedef struct layout {
  base_buffer spans, bytes, flags, words, slots, raw, normal;
  base_buffer *texts; /* [added] how each added token reads once it is normalised */
  base_buffer blob;
} layout;

static void layout_deinit(const text_builder *b, layout *l) {
  base_buffer *buffers[] = {&l->spans, &l->bytes, &l->flags, &l->words,
                            &l->slots, &l->raw,   &l->normal};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) base_buffer_deinit(buffers[i]);
  size_t count = b->added.size / sizeof(builder_added);
  for (size_t i = 0; l->texts && i < count; i++) base_buffer_deinit(&l->texts[i]);
  free(l->texts);
}

/* Texts of the added tokens: normalised where they ask for it, which is also how they decode. */
static stele_status added_texts(text_builder *b, layout *l) {
  size_t count = b->added.size / sizeof(builder_added);
  const builder_added *added = (const builder_added *)b->added.data;
  text_work work = {0};
  text_table strings = {b->strings.data, (uint32_t)b->strings.size};
  text_table normalizers = {b->normalizers.data,
                            (uint32_t)(b->normalizers.size / sizeof(text_normal))};
  stele_status status = STELE_OK;
  l->texts = calloc(count + 1, sizeof *l->texts);
  if (!l->texts) return no_memory(b);
  for (size_t i = 0; i < count && status == STELE_OK; i++) {
    builder_token *token = token_at(b, added[i].id);
    const uint8_t *text = (const uint8_t *)token->text;
    size_t bytes = token->bytes;
    if (added[i].flags & TEXT_ADDED_NORMALIZED)
      status = text_normalize(&normalizers, &strings, text, bytes, &work, b->sink, &text, &bytes);
    if (status != STELE_OK) break;
    base_buffer_append(&l->texts[i], text, bytes);
    bool same = bytes == token->bytes && memcmp(text, token->text, bytes) == 0;
    if ((added[i].flags & TEXT_ADDED_SPECIAL) && same) token->flags |= TEXT_TOKEN_SPECIAL;
    if (!same) {
      token->text = (const char *)l->texts[i].data;
      token->bytes = (uint32_t)bytes;
    }
    if (l->texts[i].failed) status = no_memory(b);
  }
  text_work_deinit(&work);
  return status;
}

static int hex_digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that "<0xNN>" stands for, -1: none. */
static int byte_of(const uint8_t *text, size_t bytes) {
  if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
  int high = text[3] == '+' ? 0 : hex_digit(text[3]), low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* What a token decodes to by the decoder's replacements and bytes, appended to l->bytes. */
static stele_status decoded_text(const text_builder *b, builder_token *token, base_buffer two[2],
                                 base_buffer *out) {
  const text_replacement *r = (const text_replacement *)b->replacements.data;
  const uint8_t *text = (const uint8_t *)token->text;
  size_t bytes = token->bytes, count = b->replacements.size / sizeof *r;
  for (size_t i = 0; i < count && bytes; i++) {
    base_buffer *room = &two[i & 1];
    room->size = 0;
    if (!text_replace(&r[i], text, bytes, UINT32_MAX / 2, room)) return no_memory(b);
    text = room->data;
    bytes = room->size;
  }
  int byte = b->decode_bytes ? byte_of(text, bytes) : -1;
  uint8_t single = (uint8_t)byte;
  if (byte >= 0) token->flags |= TEXT_TOKEN_BYTE;
  base_buffer_append(out, byte >= 0 ? &single : text, byte >= 0 ? 1 : bytes);
  return out->failed ? no_memory(b) : STELE_OK;
}

/* The bytes of a byte-level token where its spelling is of that alphabet. */
static stele_status byte_level_text(const text_builder *b, builder_token *token, base_buffer *out) {
  uint8_t *room = text_work_room(out, out->size + token->bytes + 1);
  size_t bytes = token->bytes;
  if (!room) return no_memory(b);
  bool mapped = text_byte_level((const uint8_t *)token->text, bytes, room + out->size, &bytes);
  if (!mapped && bytes) memcpy(room + out->size, token->text, bytes);
  if (!mapped || !bytes) token->flags &= ~(uint32_t)TOKEN_WORD;
  out->size += bytes;
  return STELE_OK;
}

/* What each token decodes to. */
static stele_status token_tables(text_builder *b, layout *l) {
  base_buffer two[2] = {{0}, {0}};
  stele_status status = STELE_OK;
  for (uint32_t id = 0; id < b->vocab && status == STELE_OK; id++) {
    builder_token *token = token_at(b, id);
    uint32_t begin = (uint32_t)l->bytes.size;
    base_buffer_append(&l->spans, &begin, 4);
    if (l->bytes.size + token->bytes > UINT32_MAX / 2)
      status =
          base_fail(b->sink, STELE_UNSUPPORTED, "%s: the vocabulary is above 2 GiB", b->source);
    else if (b->byte_level)
      status = byte_level_text(b, token, &l->bytes);
    else
      status = decoded_text(b, token, two, &l->bytes);
    uint8_t flags = (uint8_t)token->flags;
    base_buffer_append(&l->flags, &flags, 1);
  }
  uint32_t end = (uint32_t)l->bytes.size;
  base_buffer_append(&l->spans, &end, 4);
  base_buffer_deinit(&two[0]);
  base_buffer_deinit(&two[1]);
  if (status != STELE_OK) return status;
  return l->spans.failed || l->flags.failed ? no_memory(b) : STELE_OK;
}

static stele_status emit(text_builder *b, layout *l) {
  const base_buffer *content[TEXT_SECTION_COUNT] = {
      [TEXT_TOKEN_SPANS] = &l->spans,  [TEXT_TOKEN_BYTES] = &l->bytes,
      [TEXT_TOKEN_FLAGS] = &l->flags,  [TEXT_WORDS] = &l->words,
      [TEXT_BYTE_IDS] = &b->byte_ids,  [TEXT_MERGES] = &b->merges,
      [TEXT_MERGE_SLOTS] = &l->slots,  [TEXT_STEPS] = &b->steps,
      [TEXT_STRINGS] = &b->strings,    [TEXT_NORMALIZERS] = &b->normalizers,
      [TEXT_ADDED] = &b->added,        [TEXT_RAW_TRIE] = &l->raw,
      [TEXT_NORMAL_TRIE] = &l->normal, [TEXT_PREFIX] = &b->prefix,
      [TEXT_SUFFIX] = &b->suffix,      [TEXT_CHARACTERS] = &b->characters,
      [TEXT_GLUE] = &b->glue};
  text_blob_header header = {.version = TEXT_BLOB_VERSION,
                             .model = b->model->code,
                             .vocab = b->vocab,
                             .unknown = b->unknown,
                             .flags = b->flags,
                             .strip = b->strip,
                             .strip_count = b->strip_count,
                             .sections = TEXT_SECTION_COUNT};
  memcpy(header.magic, TEXT_BLOB_MAGIC, sizeof header.magic);
  l->blob.size = 0;
  base_buffer_append(&l->blob, &header, sizeof header);
  for (size_t i = 0; i < TEXT_SECTION_COUNT; i++) {
    if (content[i]->failed) return no_memory(b);
    base_buffer_align(&l->blob, 8);
    header.section[i].offset = (uint32_t)l->blob.size;
    header.section[i].count = (uint32_t)(content[i]->size / text_section_bytes[i]);
    base_buffer_append(&l->blob, content[i]->data, content[i]->size);
    if (l->blob.size > UINT32_MAX / 2)
      return base_fail(b->sink, STELE_UNSUPPORTED, "%s: the tokenizer is above 2 GiB", b->source);
  }
  base_buffer_align(&l->blob, 8);
  if (l->blob.failed) return no_memory(b);
  header.bytes = l->blob.size;
  memcpy(l->blob.data, &header, sizeof header);
  return STELE_OK;
}

/* Finds the tokens that their own bytes encode to, with the blob as it is so far. */
static stele_status words_make(text_builder *b, layout *l) {
  text_tokenizer view;
  if (!b->byte_level) return STELE_OK;
  BASE_TRY(text_view_init(&view, l->blob.data, l->blob.size, b->sink));
  uint8_t *chosen = calloc((size_t)b->vocab + 1, 1);
  if (!chosen) return no_memory(b);
  text_work work = {0};
  uint32_t used = 0;
  for (uint32_t id = 0; id < b->vocab; id++) {
    if (!(token_at(b, id)->flags & TOKEN_WORD)) continue;
    size_t bytes;
    const uint8_t *text = text_token_bytes(&view, id, &bytes);
    work.ids.size = 0;
    if (!b->direct) b->model->encode(&view, text, bytes, &work);
    chosen[id] = b->direct || (work.ids.size == 4 && text_get32(work.ids.data, 0) == id);
    used += chosen[id];
  }
  bool failed = work.ids.failed || work.symbols.failed || work.queue.failed;
  text_work_deinit(&work);
  word_items words = {&view, chosen};
  hash_items items = {b->vocab, word_hash, word_equal, &words};
  stele_status status = failed ? no_memory(b) : table_make(b, &items, used, &l->words);
  free(chosen);
  return status;
}

static stele_status finish(text_builder *b, layout *l) {
  hash_items merges = {(uint32_t)(b->merges.size / 12), merge_hash, merge_equal, b};
  if (b->merges.failed || b->added.failed || b->steps.failed || b->normalizers.failed ||
      b->strings.failed || b->replacements.failed)
    return no_memory(b);
  if (b->steps.size / sizeof(text_step) > TEXT_MAX_STEPS)
    return base_fail(b->sink, STELE_UNSUPPORTED, "%s: more than %u pre-tokenizers", b->source,
                     TEXT_MAX_STEPS);
  BASE_TRY(added_texts(b, l));
  BASE_TRY(token_tables(b, l));
  BASE_TRY(tries_make(b, l->texts, &l->raw, &l->normal));
  BASE_TRY(table_make(b, &merges, merges.count, &l->slots));
  BASE_TRY(emit(b, l));
  BASE_TRY(words_make(b, l));
  return emit(b, l);
}

stele_status text_builder_finish(text_builder *b, base_buffer *out_blob) {
  layout l = {0};
  stele_status status = finish(b, &l);
  layout_deinit(b, &l);
  if (status == STELE_OK)
    *out_blob = l.blob;
  else
    base_buffer_deinit(&l.blob);
  return status;
}
