/* Normal forms after Unicode Standard Annex 15: full decomposition, canonical order, composition;
 * and texts in front of or in the place of others.
 *
 * utf8proc decomposes and composes; the order of the marks is made here, because utf8proc's own
 * sort takes quadratic time on a long run of marks, and the text is not ours. */
#include "text/normalize.h"

#include <utf8proc.h>

#include "text/utf8.h"

static void form_options(uint32_t normalizer, utf8proc_option_t *out_decompose, bool *out_compose) {
  bool compat = normalizer == TEXT_NFKC || normalizer == TEXT_NFKD;
  *out_compose = normalizer == TEXT_NFC || normalizer == TEXT_NFKC;
  *out_decompose = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0);
}

/* True where no character changes in the form: below U+0300 nothing does in NFC, in the other
 * forms nothing of ASCII. */
static bool unchanged(uint32_t normalizer, const uint8_t *text, size_t bytes) {
  uint8_t first = normalizer == TEXT_NFC ? 0xCC : 0x80; /* CC 80 is U+0300 */
  uint8_t any = 0;
  for (size_t i = 0; i < bytes; i++) any |= text[i] >= first;
  return !any;
}

static bool decompose(const uint8_t *text, size_t bytes, utf8proc_option_t options,
                      base_buffer *codes) {
  codes->size = 0;
  while (bytes) {
    int32_t code, parts[32];
    bool cut;
    size_t length = text_utf8_scan(text, bytes, &code, &cut);
    utf8proc_ssize_t count = utf8proc_decompose_char(code, parts, 32, options, NULL);
    if (count < 0 || count > 32) return false;
    base_buffer_append(codes, parts, (size_t)count * sizeof *parts);
    text += length;
    bytes -= length;
  }
  return !codes->failed;
}

static uint32_t mark_class(int32_t code) {
  return (uint32_t)utf8proc_get_property(code)->combining_class & 255;
}

/* Sorts a run of marks by class, keeping the order within a class: counting sort. */
static bool sort_run(int32_t *codes, size_t count, base_buffer *marks) {
  size_t start[257] = {0};
  bool sorted = true;
  for (size_t i = 0; i < count; i++) {
    start[mark_class(codes[i]) + 1]++;
    if (i && mark_class(codes[i]) < mark_class(codes[i - 1])) sorted = false;
  }
  if (sorted) return true;
  int32_t *copy = text_work_room(marks, count * sizeof *codes);
  if (!copy) return false;
  memcpy(copy, codes, count * sizeof *codes);
  for (size_t i = 1; i < 257; i++) start[i] += start[i - 1];
  for (size_t i = 0; i < count; i++) codes[start[mark_class(copy[i])]++] = copy[i];
  return true;
}

static bool order_marks(int32_t *codes, size_t count, base_buffer *marks) {
  for (size_t i = 0; i < count;) {
    size_t end = i;
    while (end < count && mark_class(codes[end])) end++;
    if (end > i + 1 && !sort_run(codes + i, end - i, marks)) return false;
    i = end + 1;
  }
  return true;
}

/* False: no memory. */
static bool normalize_one(uint32_t normalizer, const uint8_t *text, size_t bytes, text_work *work,
                          base_buffer *out) {
  utf8proc_option_t options;
  bool compose;
  form_options(normalizer, &options, &compose);
  if (!decompose(text, bytes, options, &work->codes)) return false;
  int32_t *codes = (int32_t *)work->codes.data;
  size_t count = work->codes.size / sizeof *codes;
  if (!order_marks(codes, count, &work->marks)) return false;
  if (compose) {
    utf8proc_ssize_t left = utf8proc_normalize_utf32(codes, (utf8proc_ssize_t)count,
                                                     UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (left < 0) return false;
    count = (size_t)left;
  }
  out->size = 0;
  for (size_t i = 0; i < count; i++) text_utf8_append(out, codes[i]);
  return !out->failed;
}

/* ---- texts for texts -------------------------------------------------------------------- */

/* Start of the next pattern at or after `from`; `bytes` where there is none. */
static size_t find(const uint8_t *text, size_t bytes, size_t from, const uint8_t *pattern,
                   size_t length) {
  while (length && bytes - from >= length) {
    const uint8_t *at = memchr(text + from, pattern[0], bytes - from - length + 1);
    if (!at) break;
    if (memcmp(at, pattern, length) == 0) return (size_t)(at - text);
    from = (size_t)(at - text) + 1;
  }
  return bytes;
}

bool text_replace(const text_replacement *r, const uint8_t *text, size_t bytes, size_t most,
                  base_buffer *out) {
  for (size_t from = 0; from < bytes;) {
    size_t at = find(text, bytes, from, r->pattern, r->length);
    base_buffer_append(out, text + from, at - from);
    if (at < bytes) base_buffer_append(out, r->content, r->content_length);
    if (out->failed || out->size > most) return false;
    from = at < bytes ? at + r->length : bytes;
  }
  return true;
}

/* False: no memory, or the result is too long. */
static bool rewrite(const text_normal *n, const text_replacement *r, const uint8_t *text,
                    size_t bytes, text_work *work, base_buffer *out) {
  if (n->kind < TEXT_PREPEND) return normalize_one(n->kind, text, bytes, work, out);
  out->size = 0;
  if (n->kind == TEXT_REPLACE) return text_replace(r, text, bytes, TEXT_MAX_NORMAL, out);
  base_buffer_append(out, r->content, r->content_length);
  base_buffer_append(out, text, bytes);
  return !out->failed;
}

static stele_status read_normal(const text_table *normalizers, const text_table *strings,
                                uint32_t index, stele_sink *sink, text_normal *out,
                                text_replacement *out_texts) {
  memcpy(out, normalizers->data + (size_t)index * sizeof *out, sizeof *out);
  if (out->kind < TEXT_NFC || out->kind > TEXT_REPLACE)
    return base_fail(sink, STELE_BAD_FORMAT, "tokenizer: unknown normalizer %u", out->kind);
  *out_texts = (text_replacement){text_string(strings, out->pattern, out->length), out->length,
                                  text_string(strings, out->content, out->content_length),
                                  out->content_length};
  if (!out_texts->pattern || !out_texts->content || out->length > TEXT_MAX_REPLACED ||
      out->content_length > TEXT_MAX_REPLACED)
    return base_fail(sink, STELE_BAD_FORMAT, "tokenizer: normalizer %u is damaged", index);
  return STELE_OK;
}

stele_status text_normalize(const text_table *normalizers, const text_table *strings,
                            const uint8_t *text, size_t bytes, text_work *work, stele_sink *sink,
                            const uint8_t **out_text, size_t *out_bytes) {
  for (uint32_t i = 0; i < normalizers->count; i++) {
    text_normal n;
    text_replacement r;
    BASE_TRY(read_normal(normalizers, strings, i, sink, &n, &r));
    if (!bytes || (n.kind < TEXT_PREPEND && unchanged(n.kind, text, bytes))) continue;
    /* Two buffers take turns, as the text may lie in one. */
    base_buffer *out = text == work->normal.data ? &work->normal2 : &work->normal;
    if (!rewrite(&n, &r, text, bytes, work, out) || out->size > TEXT_MAX_NORMAL)
      return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory to normalise a text of %zu bytes",
                       bytes);
    text = out->data;
    bytes = out->size;
  }
  *out_text = text;
  *out_bytes = bytes;
  return STELE_OK;
}
