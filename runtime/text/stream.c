/* Ids to text, at once and streamed.
 *
 * The bytes of each token are repaired as they come, and what may still become a character, at
 * most three bytes, waits for the next token or the end: a left to right scan, so the pieces add
 * up to what decoding all at once gives.
 *
 * Byte tokens (the fallback of SentencePiece-style models) form runs. As Hugging Face's
 * ByteFallback has it, a run that is not UTF-8 as a whole is one U+FFFD for each of its bytes. A
 * stream does not wait for the run's end: it gives the characters that are complete, and a U+FFFD
 * for each byte from the first ill-formed one to the end of the run. */
#include <stdlib.h>

#include "text/tokenizer_blob.h"
#include "text/utf8.h"

typedef struct decoding {
  const text_tokenizer *tokenizer;
  bool skip_special, whole; /* whole: a run is judged at its end */
  bool broken;              /* the run so far is ill-formed */
  uint32_t strip_left;      /* characters that may still be cut off the front */
  base_buffer waiting;      /* the beginning of a character */
  base_buffer run;          /* byte tokens that are no text yet */
} decoding;

static decoding decoding_of(const text_tokenizer *t, bool skip_special, bool whole) {
  return (decoding){
      .tokenizer = t, .skip_special = skip_special, .whole = whole, .strip_left = t->strip_count};
}

static void decoding_deinit(decoding *d) {
  base_buffer_deinit(&d->waiting);
  base_buffer_deinit(&d->run);
}

/* The end of the bytes of text: what waits is no character. */
static void end_text(decoding *d, base_buffer *out) {
  text_utf8_lossy(out, d->waiting.data, d->waiting.size, true);
  d->waiting.size = 0;
}

static void end_run(decoding *d, base_buffer *out) {
  if (text_utf8_valid(d->run.data, d->run.size) == d->run.size)
    base_buffer_append(out, d->run.data, d->run.size);
  else
    text_utf8_each(out, d->run.size);
  d->run.size = 0;
  d->broken = false;
}

static void put_byte(decoding *d, uint8_t byte, base_buffer *out) {
  int32_t code;
  bool cut;
  end_text(d, out);
  base_buffer_append(&d->run, &byte, 1);
  if (d->whole || d->run.failed) return;
  text_utf8_scan(d->run.data, d->run.size, &code, &cut);
  if (cut && !d->broken) return;
  d->broken |= code == TEXT_ILL_FORMED;
  if (d->broken)
    text_utf8_each(out, d->run.size);
  else
    base_buffer_append(out, d->run.data, d->run.size);
  d->run.size = 0;
}

static void put_text(decoding *d, const uint8_t *text, size_t bytes, base_buffer *out) {
  end_run(d, out);
  base_buffer_append(&d->waiting, text, bytes);
  size_t left = text_utf8_lossy(out, d->waiting.data, d->waiting.size, false);
  if (left) memmove(d->waiting.data, d->waiting.data + d->waiting.size - left, left);
  d->waiting.size = left;
}

static void put(decoding *d, int32_t id, base_buffer *out) {
  size_t bytes;
  uint32_t flags = text_token_flags(d->tokenizer, (uint32_t)id);
  const uint8_t *token = text_token_bytes(d->tokenizer, (uint32_t)id, &bytes);
  if (!(flags & TEXT_TOKEN_PRESENT) || ((flags & TEXT_TOKEN_SPECIAL) && d->skip_special)) return;
  if ((flags & TEXT_TOKEN_BYTE) && bytes == 1)
    put_byte(d, token[0], out);
  else
    put_text(d, token, bytes, out);
}

static void end(decoding *d, base_buffer *out) {
  end_run(d, out);
  end_text(d, out);
}

/* Cuts what is still to be stripped off the front of `out`. */
static void strip(decoding *d, base_buffer *out) {
  uint8_t unit[4];
  size_t length = text_utf8_encode((int32_t)d->tokenizer->strip, unit), cut = 0;
  while (d->strip_left && cut < out->size) {
    bool same = length && out->size - cut >= length && !memcmp(out->data + cut, unit, length);
    if (same) cut += length;
    d->strip_left = same ? d->strip_left - 1 : 0;
  }
  if (cut) memmove(out->data, out->data + cut, out->size - cut);
  out->size -= cut;
}

stele_status text_decode(const text_tokenizer *t, const int32_t *ids, size_t count,
                         bool skip_special, stele_sink *sink, base_buffer *out_text) {
  decoding d = decoding_of(t, skip_special, true);
  base_buffer text = {0};
  for (size_t i = 0; i < count; i++) put(&d, ids[i], &text);
  end(&d, &text);
  strip(&d, &text);
  base_buffer_append(&text, "", 1); /* a zero behind the text, for those who print it */
  bool failed = d.waiting.failed || d.run.failed || text.failed;
  decoding_deinit(&d);
  if (failed) {
    base_buffer_deinit(&text);
    return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory for the text of %zu ids", count);
  }
  text.size--;
  *out_text = text;
  return STELE_OK;
}

/* ---- streams ---------------------------------------------------------------------------- */

struct text_stream {
  decoding decoding;
  base_buffer text;
};

stele_status text_stream_create(const text_tokenizer *tokenizer, bool skip_special,
                                stele_sink *sink, text_stream **out_stream) {
  text_stream *stream = calloc(1, sizeof *stream);
  if (!stream) return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory for a stream");
  stream->decoding = decoding_of(tokenizer, skip_special, false);
  *out_stream = stream;
  return STELE_OK;
}

void text_stream_destroy(text_stream *stream) {
  if (!stream) return;
  decoding_deinit(&stream->decoding);
  base_buffer_deinit(&stream->text);
  free(stream);
}

static stele_status piece(text_stream *s, const char **out_text, size_t *out_bytes) {
  strip(&s->decoding, &s->text);
  base_buffer_append(&s->text, "", 1);
  if (s->decoding.waiting.failed || s->decoding.run.failed || s->text.failed)
    return STELE_OUT_OF_MEMORY;
  *out_text = (const char *)s->text.data;
  *out_bytes = s->text.size - 1;
  return STELE_OK;
}

stele_status text_stream_put(text_stream *s, int32_t id, const char **out_text, size_t *out_bytes) {
  s->text.size = 0;
  put(&s->decoding, id, &s->text);
  return piece(s, out_text, out_bytes);
}

stele_status text_stream_end(text_stream *s, const char **out_text, size_t *out_bytes) {
  s->text.size = 0;
  end(&s->decoding, &s->text);
  return piece(s, out_text, out_bytes);
}
