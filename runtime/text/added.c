/* At each place of the text the longest added token wins, the leftmost place first, as in
 * tokenizers' added_vocabulary.rs; there too a token that must be a word of its own and isn't
 * is passed over as a whole, and the white space that a token takes with it is never given to two
 * tokens. */
#include "text/added.h"

#include "text/utf8.h"

static bool read_node(const text_table *trie, uint32_t index, text_trie_node *out) {
  if (index >= trie->count) return false;
  memcpy(out, trie->data + (size_t)index * sizeof *out, sizeof *out);
  return true;
}

/* Moves to the child for a byte. Children come after their parent: a damaged trie has no cycle. */
static bool step_down(const text_table *trie, uint32_t *index, text_trie_node *node, uint8_t byte) {
  uint32_t low = node->child, high = node->child + node->children;
  if (low <= *index || high < low) return false;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    text_trie_node child;
    if (!read_node(trie, middle, &child)) return false;
    if (child.byte == byte) {
      *node = child;
      *index = middle;
      return true;
    }
    if (child.byte < byte)
      low = middle + 1;
    else
      high = middle;
  }
  return false;
}

static bool between_characters(const text_added_scan *s, size_t at) {
  return at >= s->bytes || (s->text[at] & 0xC0) != 0x80;
}

/* The longest token at a place: its length, 0: none, and its index in ADDED. A damaged trie must
 * not cut a character in two: those who read the gaps rely on UTF-8. */
static size_t longest(const text_added_scan *s, size_t at, uint32_t *out_added) {
  text_trie_node node;
  uint32_t index = 0;
  size_t length = 0, limit = base_min(s->bytes - at, TEXT_MAX_ADDED * 4);
  if (!read_node(s->trie, 0, &node) || !between_characters(s, at)) return 0;
  for (size_t i = 0; i < limit && step_down(s->trie, &index, &node, s->text[at + i]); i++) {
    if (!node.added || !between_characters(s, at + i + 1)) continue;
    length = i + 1;
    *out_added = node.added - 1;
  }
  return length;
}

static bool word_at(const text_added_scan *s, size_t at) {
  int32_t code;
  bool cut;
  text_utf8_scan(s->text + at, s->bytes - at, &code, &cut);
  return text_is_word(code);
}

static bool alone(const text_added_scan *s, size_t begin, size_t end) {
  return !(begin && word_at(s, text_utf8_back(s->text, begin))) &&
         !(end < s->bytes && word_at(s, end));
}

/* Start of the white space that ends at `end`, not before `least`. */
static size_t spaces_before(const text_added_scan *s, size_t least, size_t end) {
  while (end > least) {
    size_t begin = text_utf8_back(s->text, end);
    int32_t code;
    bool cut;
    text_utf8_scan(s->text + begin, s->bytes - begin, &code, &cut);
    if (begin < least || !text_is_space(code)) break;
    end = begin;
  }
  return end;
}

static size_t spaces_after(const text_added_scan *s, size_t at) {
  while (at < s->bytes) {
    int32_t code;
    bool cut;
    size_t length = text_utf8_scan(s->text + at, s->bytes - at, &code, &cut);
    if (!text_is_space(code)) break;
    at += length;
  }
  return at;
}

void text_added_begin(text_added_scan *scan, const text_tokenizer *tokenizer, text_section section,
                      const uint8_t *text, size_t bytes) {
  text_trie_node root, child;
  *scan = (text_added_scan){
      .tokenizer = tokenizer, .trie = &tokenizer->table[section], .text = text, .bytes = bytes};
  if (!read_node(scan->trie, 0, &root)) return;
  for (uint32_t i = 0; i < root.children && read_node(scan->trie, root.child + i, &child); i++)
    scan->first[child.byte / 64] |= (uint64_t)1 << (child.byte % 64);
}

/* Makes a match of what was found at [begin, end); false where it does not count. */
static bool accept(text_added_scan *s, uint32_t index, size_t begin, size_t end,
                   text_added_match *out_match) {
  const text_table *added = &s->tokenizer->table[TEXT_ADDED];
  if (index >= added->count) return false;
  uint32_t id = text_get32(added->data, (size_t)index * 2);
  uint32_t flags = text_get32(added->data, (size_t)index * 2 + 1);
  if (id >= s->tokenizer->vocab) return false;
  if ((flags & TEXT_ADDED_SINGLE_WORD) && !alone(s, begin, end)) return false;
  if (flags & TEXT_ADDED_LSTRIP)
    begin = s->done < begin ? spaces_before(s, s->done, begin) : s->done;
  if (flags & TEXT_ADDED_RSTRIP) end = end < s->done ? s->done : spaces_after(s, end);
  if (begin >= end) return false; /* white space that the token before has taken */
  *out_match = (text_added_match){s->done, base_max(begin, s->done), (int32_t)id};
  s->done = end;
  return true;
}

bool text_added_next(text_added_scan *s, text_added_match *out_match) {
  if (!s->trie->count) s->at = base_max(s->at, s->bytes);
  while (s->at < s->bytes) {
    uint32_t index = 0;
    size_t begin = s->at, length = 0;
    uint8_t byte = s->text[begin];
    if (s->first[byte / 64] >> (byte % 64) & 1) length = longest(s, begin, &index);
    s->at += length ? length : 1;
    if (length && accept(s, index, begin, begin + length, out_match)) return true;
  }
  if (s->at > s->bytes) return false;
  s->at = s->bytes + 1;
  *out_match = (text_added_match){base_min(s->done, s->bytes), s->bytes, -1};
  return true;
}
