/* The text part of a libstele that is built without PCRE2, utf8proc and jansson: every call says
 * so. */
#include "text/tokenizer.h"

static stele_status none(stele_sink *sink) {
  return base_fail(sink, STELE_UNSUPPORTED, "this libstele is built without tokenizers");
}

stele_status text_blob_from_json(const char *json, size_t bytes, const char *config,
                                 size_t config_bytes, stele_sink *sink, base_buffer *out_blob) {
  (void)json, (void)bytes, (void)config, (void)config_bytes, (void)out_blob;
  return none(sink);
}

stele_status text_blob_from_gguf(const text_gguf_source *source, stele_sink *sink,
                                 base_buffer *out_blob) {
  (void)source, (void)out_blob;
  return none(sink);
}

stele_status text_tokenizer_create(const uint8_t *blob, size_t bytes, stele_sink *sink,
                                   text_tokenizer **out_tokenizer) {
  (void)blob, (void)bytes, (void)out_tokenizer;
  return none(sink);
}

void text_tokenizer_destroy(text_tokenizer *tokenizer) { (void)tokenizer; }

uint32_t text_tokenizer_vocab(const text_tokenizer *tokenizer) {
  (void)tokenizer;
  return 0;
}

stele_status text_encode(const text_tokenizer *tokenizer, const char *text, size_t bytes,
                         bool special, stele_sink *sink, int32_t **out_ids, size_t *out_count) {
  (void)tokenizer, (void)text, (void)bytes, (void)special, (void)out_ids, (void)out_count;
  return none(sink);
}

stele_status text_decode(const text_tokenizer *tokenizer, const int32_t *ids, size_t count,
                         bool skip_special, stele_sink *sink, base_buffer *out_text) {
  (void)tokenizer, (void)ids, (void)count, (void)skip_special, (void)out_text;
  return none(sink);
}

stele_status text_stream_create(const text_tokenizer *tokenizer, bool skip_special,
                                stele_sink *sink, text_stream **out_stream) {
  (void)tokenizer, (void)skip_special, (void)out_stream;
  return none(sink);
}

void text_stream_destroy(text_stream *stream) { (void)stream; }

stele_status text_stream_put(text_stream *stream, int32_t id, const char **out_text,
                             size_t *out_bytes) {
  (void)stream, (void)id, (void)out_text, (void)out_bytes;
  return STELE_UNSUPPORTED;
}

stele_status text_stream_end(text_stream *stream, const char **out_text, size_t *out_bytes) {
  (void)stream, (void)out_text, (void)out_bytes;
  return STELE_UNSUPPORTED;
}
