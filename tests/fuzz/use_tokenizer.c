#include "use_tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "text/tokenizer_blob.h"

static const char *const texts[] = {
    "Hello world, it's 1234 o'clock!",
    "  abab <s>\n\n<x> the \xC3\xA9 e\xCC\x81\xCC\xA3 \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x99\x82\t ",
    "\xFF\xE2\x9C \xED\xA0\x80 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
};

/* Of byte tokens that make no UTF-8 a stream may have given the first as text. */
static bool may_differ(const text_tokenizer *t, const int32_t *ids, size_t count) {
  bool bytes = false;
  for (size_t i = 0; i < count; i++)
    bytes |= (text_token_flags(t, (uint32_t)ids[i]) & TEXT_TOKEN_BYTE) != 0;
  return bytes;
}

/* Pieces of a stream add up to the decoded text. */
static void stream(const text_tokenizer *t, const int32_t *ids, size_t count) {
  text_stream *s;
  base_buffer sum = {0}, whole = {0};
  const char *piece;
  size_t bytes;
  if (text_stream_create(t, true, NULL, &s) != STELE_OK) return;
  bool good = text_decode(t, ids, count, true, NULL, &whole) == STELE_OK;
  for (size_t i = 0; good && i <= count; i++) {
    good = (i < count ? text_stream_put(s, ids[i], &piece, &bytes)
                      : text_stream_end(s, &piece, &bytes)) == STELE_OK;
    if (good) base_buffer_append(&sum, piece, bytes);
  }
  if (good && memmem(whole.data, whole.size, "\xEF\xBF\xBD", 3)) good = !may_differ(t, ids, count);
  if (good && (sum.size != whole.size || (sum.size && memcmp(sum.data, whole.data, sum.size) != 0)))
    abort();
  base_buffer_deinit(&sum);
  base_buffer_deinit(&whole);
  text_stream_destroy(s);
}

void use_tokenizer(const uint8_t *blob, size_t bytes) {
  stele_sink sink = {{0}};
  text_tokenizer *t;
  if (text_tokenizer_create(blob, bytes, &sink, &t) != STELE_OK) {
    if (!sink.text[0]) abort();
    return;
  }
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    int32_t *ids;
    size_t count;
    if (text_encode(t, texts[i], strlen(texts[i]), true, &sink, &ids, &count) != STELE_OK) continue;
    for (size_t k = 0; k < count; k++)
      if (ids[k] < 0 || (uint32_t)ids[k] >= text_tokenizer_vocab(t)) abort();
    stream(t, ids, count);
    free(ids);
  }
  const int32_t any[] = {0, 1, 2, 255, 256, 300, -1, INT32_MAX, INT32_MIN};
  stream(t, any, sizeof any / sizeof *any);
  text_tokenizer_destroy(t);
}
