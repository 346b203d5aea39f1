/* A trie of added tokens, laid out in breadth-first order, so that children follow their parent. */
#include <stdlib.h>

#include "text/builder.h"

static int compare_entries(const void *left, const void *right) {
  const text_trie_entry *a = left, *b = right;
  int order = memcmp(a->text, b->text, base_min(a->bytes, b->bytes));
  if (order) return order;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
  return a->added < b->added ? -1 : a->added > b->added;
}

typedef struct trie_span {
  size_t begin, end; /* entries that share the node's text */
} trie_span;

/* Appends the children of node `parent`, whose text is the first `depth` bytes of its span. */
static void trie_children(base_buffer *nodes, base_buffer *spans, const text_trie_entry *entries,
                          uint32_t parent, size_t depth) {
  trie_span span = ((trie_span *)spans->data)[parent];
  size_t at = span.begin;
  uint32_t child = (uint32_t)(nodes->size / sizeof(text_trie_node)), children = 0, added = 0;
  for (; at < span.end && entries[at].bytes == depth; at++)
    added = entries[at].added + 1; /* the last of equal texts */
  while (at < span.end) {
    trie_span sub = {at, at};
    uint8_t byte = entries[at].text[depth];
    while (sub.end < span.end && entries[sub.end].text[depth] == byte) sub.end++;
    text_trie_node node = {.byte = byte};
    base_buffer_append(nodes, &node, sizeof node);
    base_buffer_append(spans, &sub, sizeof sub);
    children++;
    at = sub.end;
  }
  if (nodes->failed || spans->failed) return;
  text_trie_node *node = (text_trie_node *)nodes->data + parent;
  node->child = child;
  node->children = (uint16_t)children;
  node->added = added;
}

bool text_trie_make(text_trie_entry *entries, size_t count, base_buffer *nodes) {
  if (!count) return true;
  qsort(entries, count, sizeof *entries, compare_entries);
  base_buffer spans = {0};
  text_trie_node root = {0};
  trie_span all = {0, count};
  base_buffer_append(nodes, &root, sizeof root);
  base_buffer_append(&spans, &all, sizeof all);
  size_t depth = 0, level_end = 1;
  for (size_t i = 0; !nodes->failed && !spans.failed && i < nodes->size / sizeof root; i++) {
    if (i == level_end) {
      depth++;
      level_end = nodes->size / sizeof root;
    }
    trie_children(nodes, &spans, entries, (uint32_t)i, depth);
  }
  bool failed = nodes->failed || spans.failed;
  base_buffer_deinit(&spans);
  return !failed;
}
