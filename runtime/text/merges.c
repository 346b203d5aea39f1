/* Byte pair encoding proper (Sennrich et al. 2016), which both kinds of BPE share, and the part of
 * tokenizer.json that they have in common.
 *
 * Symbols are a doubly linked list. The pairs that can be merged wait in a heap by rank, then by
 * place; the best is merged, its two new neighbours enter the heap, and what has become stale is
 * dropped when it comes out: O(n log n) for n symbols. Ties and duplicates follow Hugging Face's
 * tokenizers, whose ids are the reference. */
#include "text/merges.h"

/* Rank of the merge of two tokens, -1: none. */
static int64_t find_merge(const text_tokenizer *t, int32_t left, int32_t right) {
  const text_table *slots = &t->table[TEXT_MERGE_SLOTS], *merges = &t->table[TEXT_MERGES];
  if (!slots->count) return -1;
  uint32_t mask = slots->count - 1, slot = text_hash_pair((uint32_t)left, (uint32_t)right) & mask;
  for (uint32_t i = 0; i <= TEXT_MAX_PROBE; i++, slot = (slot + 1) & mask) {
    uint32_t rank = text_get32(slots->data, slot) - 1;
    if (rank >= merges->count) return -1;
    const uint8_t *merge = merges->data + (size_t)rank * 12;
    if (text_get32(merge, 0) == (uint32_t)left && text_get32(merge, 1) == (uint32_t)right)
      return rank;
  }
  return -1;
}

static int32_t merged_id(const text_tokenizer *t, uint32_t rank) {
  uint32_t id = text_get32(t->table[TEXT_MERGES].data + (size_t)rank * 12, 2);
  return id < t->vocab ? (int32_t)id : -1;
}

/* ---- the heap: rank << 32 | place, smallest on top -------------------------------------- */

typedef struct heap {
  uint64_t *keys;
  size_t count;
} heap;

static void heap_push(heap *h, uint64_t key) {
  size_t at = h->count++;
  while (at && h->keys[(at - 1) / 2] > key) {
    h->keys[at] = h->keys[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  h->keys[at] = key;
}

static uint64_t heap_pop(heap *h) {
  uint64_t top = h->keys[0], key = h->keys[--h->count];
  size_t at = 0, child;
  while ((child = 2 * at + 1) < h->count) {
    if (child + 1 < h->count && h->keys[child + 1] < h->keys[child]) child++;
    if (h->keys[child] >= key) break;
    h->keys[at] = h->keys[child];
    at = child;
  }
  h->keys[at] = key;
  return top;
}

static void push_pair(const text_tokenizer *t, const text_symbol *symbols, int32_t place, heap *h) {
  int32_t next = symbols[place].next;
  if (next < 0) return;
  int64_t rank = find_merge(t, symbols[place].id, symbols[next].id);
  if (rank >= 0) heap_push(h, ((uint64_t)rank << 32) | (uint32_t)place);
}

static void merge_all(const text_tokenizer *t, text_symbol *symbols, int32_t count, heap *h) {
  for (int32_t i = 0; i + 1 < count; i++) push_pair(t, symbols, i, h);
  while (h->count) {
    uint64_t key = heap_pop(h);
    int32_t place = (int32_t)(uint32_t)key, next = symbols[place].next;
    if (symbols[place].id < 0 || next < 0) continue;
    int32_t id = merged_id(t, (uint32_t)(key >> 32));
    int64_t rank = find_merge(t, symbols[place].id, symbols[next].id);
    if (id < 0 || rank < 0 || merged_id(t, (uint32_t)rank) != id) continue; /* stale */
    symbols[place].id = id;
    symbols[place].next = symbols[next].next;
    symbols[next].id = -1;
    if (symbols[place].next >= 0) symbols[symbols[place].next].previous = place;
    if (symbols[place].previous >= 0) push_pair(t, symbols, symbols[place].previous, h);
    push_pair(t, symbols, place, h);
  }
}

void text_merge_symbols(const text_tokenizer *t, text_symbol *symbols, size_t count,
                        text_work *work) {
  if (!count) return;
  for (size_t i = 0; i < count; i++) {
    symbols[i].previous = (int32_t)i - 1;
    symbols[i].next = (int32_t)i + 1;
  }
  symbols[count - 1].next = -1;
  /* Each merge takes one key out and puts at most two in: never more than 2 n keys. */
  heap h = {text_work_room(&work->queue, 2 * count * sizeof *h.keys), 0};
  if (!h.keys) return;
  merge_all(t, symbols, (int32_t)count, &h);
  for (int32_t i = 0; i >= 0; i = symbols[i].next) text_work_id(work, symbols[i].id);
}

/* ---- tokenizer.json --------------------------------------------------------------------- */

/* "left right" of the older form of merges. */
stele_status text_merges_line(text_builder *b, const char *line, size_t bytes) {
  /* From the second byte: a token may begin with a space, but none is empty. */
  const char *space = bytes > 1 ? memchr(line + 1, ' ', bytes - 1) : NULL;
  if (!space)
    return base_fail(b->sink, STELE_BAD_FORMAT,
                     "%s: merge %zu is '%.*s', expected two tokens with a space between", b->source,
                     b->merges.size / 12, (int)base_min(bytes, 80), line);
  size_t left = (size_t)(space - line);
  return text_builder_merge(b, line, left, space + 1, bytes - left - 1);
}

static stele_status json_merges(text_builder *b, const json_t *merges) {
  if (!json_is_array(merges))
    return base_fail(b->sink, STELE_BAD_FORMAT, "%s: 'model.merges' is not an array", b->source);
  for (size_t i = 0; i < json_array_size(merges); i++) {
    const json_t *merge = json_array_get(merges, i);
    const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
    if (json_is_string(merge)) {
      BASE_TRY(text_merges_line(b, json_string_value(merge), json_string_length(merge)));
    } else if (json_array_size(merge) == 2 && json_is_string(left) && json_is_string(right)) {
      BASE_TRY(text_builder_merge(b, json_string_value(left), json_string_length(left),
                                  json_string_value(right), json_string_length(right)));
    } else {
      return base_fail(b->sink, STELE_BAD_FORMAT,
                       "%s: merge %zu is neither \"a b\" nor [\"a\", \"b\"]", b->source, i);
    }
  }
  return STELE_OK;
}

static stele_status json_vocab(text_builder *b, const json_t *vocab) {
  if (!json_is_object(vocab))
    return base_fail(b->sink, STELE_BAD_FORMAT, "%s: 'model.vocab' is not an object", b->source);
  const char *key;
  size_t bytes;
  json_t *id;
  json_object_keylen_foreach((json_t *)(uintptr_t)vocab, key, bytes, id) {
    json_int_t number = json_is_integer(id) ? json_integer_value(id) : -1;
    if (number < 0 || number >= TEXT_MAX_VOCAB)
      return base_fail(b->sink, STELE_BAD_FORMAT,
                       "%s: the id of token '%.80s' is not a number from 0 to %u", b->source, key,
                       TEXT_MAX_VOCAB - 1);
    BASE_TRY(text_builder_token(b, (uint32_t)number, key, bytes, false));
  }
  return STELE_OK;
}

/* Options that change the ids in ways that are not built. */
static stele_status json_refuse(text_builder *b, const json_t *model) {
  const char *const names[] = {"continuing_subword_prefix", "end_of_word_suffix"};
  for (size_t i = 0; i < 2; i++) {
    const json_t *value = json_object_get(model, names[i]);
    if (json_string_length(value))
      return base_fail(b->sink, STELE_UNSUPPORTED, "%s: 'model.%s' is '%.80s'; only none works",
                       b->source, names[i], json_string_value(value));
  }
  if (json_number_value(json_object_get(model, "dropout")) != 0)
    return base_fail(b->sink, STELE_UNSUPPORTED, "%s: 'model.dropout' makes ids random", b->source);
  return STELE_OK;
}

stele_status text_merges_from_json(text_builder *b, const json_t *model) {
  BASE_TRY(json_refuse(b, model));
  BASE_TRY(json_vocab(b, json_object_get(model, "vocab")));
  BASE_TRY(json_merges(b, json_object_get(model, "merges")));
  if (json_is_true(json_object_get(model, "fuse_unk"))) b->flags |= TEXT_BLOB_FUSE_UNKNOWN;
  const json_t *unknown = json_object_get(model, "unk_token");
  if (!json_string_length(unknown)) return STELE_OK;
  b->unknown = text_builder_find(b, json_string_value(unknown), json_string_length(unknown));
  if (b->unknown >= 0) return STELE_OK;
  return base_fail(b->sink, STELE_BAD_FORMAT, "%s: 'model.unk_token' '%.80s' is no token",
                   b->source, json_string_value(unknown));
}
