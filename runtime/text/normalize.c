/* Normal forms after Unicode Standard Annex 15: full decomposition, canonical order, composition.
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

stele_status text_normalize(const text_table *normalizers, const uint8_t *text, size_t bytes,
                            text_work *work, stele_sink *sink, const uint8_t **out_text,
                            size_t *out_bytes) {
  for (uint32_t i = 0; i < normalizers->count; i++) {
    uint32_t normalizer = text_get32(normalizers->data, i);
    if (normalizer < TEXT_NFC || normalizer > TEXT_NFKD)
      return base_fail(sink, STELE_BAD_FORMAT, "tokenizer: unknown normal form %u", normalizer);
    if (unchanged(normalizer, text, bytes)) continue;
    /* Two buffers take turns, as the text may lie in one. */
    base_buffer *out = text == work->normal.data ? &work->normal2 : &work->normal;
    if (!normalize_one(normalizer, text, bytes, work, out))
      return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory to normalise a text of %zu bytes",
                       bytes);
    text = out->data;
    bytes = out->size;
  }
  *out_text = text;
  *out_bytes = bytes;
  return STELE_OK;
}
