/* Streaming: the bytes of each token are repaired as they come, and what may still become a
 * character, at most three bytes, waits for the next token or the end. Repairing is a left to
 * right scan, so the pieces add up to what decoding all at once gives. */
#include <stdlib.h>

#include "text/tokenizer_blob.h"
#include "text/utf8.h"

struct text_stream {
  const text_tokenizer *tokenizer;
  bool skip_special;
  base_buffer waiting, text;
};

stele_status text_stream_create(const text_tokenizer *tokenizer, bool skip_special,
                                stele_sink *sink, text_stream **out_stream) {
  text_stream *stream = calloc(1, sizeof *stream);
  if (!stream) return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory for a stream");
  stream->tokenizer = tokenizer;
  stream->skip_special = skip_special;
  *out_stream = stream;
  return STELE_OK;
}

void text_stream_destroy(text_stream *stream) {
  if (!stream) return;
  base_buffer_deinit(&stream->waiting);
  base_buffer_deinit(&stream->text);
  free(stream);
}

/* Repairs what waits into the piece, and keeps what is cut off. */
static stele_status emit(text_stream *s, bool last, const char **out_text, size_t *out_bytes) {
  s->text.size = 0;
  size_t left = text_utf8_lossy(&s->text, s->waiting.data, s->waiting.size, last);
  if (left) memmove(s->waiting.data, s->waiting.data + s->waiting.size - left, left);
  s->waiting.size = left;
  base_buffer_append(&s->text, "", 1);
  if (s->waiting.failed || s->text.failed) return STELE_OUT_OF_MEMORY;
  *out_text = (const char *)s->text.data;
  *out_bytes = s->text.size - 1;
  return STELE_OK;
}

stele_status text_stream_put(text_stream *s, int32_t id, const char **out_text, size_t *out_bytes) {
  size_t bytes;
  const uint8_t *token = text_token_bytes(s->tokenizer, (uint32_t)id, &bytes);
  bool special = (text_token_flags(s->tokenizer, (uint32_t)id) & TEXT_TOKEN_SPECIAL) != 0;
  if (!(special && s->skip_special)) base_buffer_append(&s->waiting, token, bytes);
  return emit(s, false, out_text, out_bytes);
}

stele_status text_stream_end(text_stream *s, const char **out_text, size_t *out_bytes) {
  return emit(s, true, out_text, out_bytes);
}
