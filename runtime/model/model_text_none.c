/* Text in a library that was built without tokenizers: each call says so. */
#include "model/model.h"

stele_status model_text_init(stele_model *model, stele_sink *sink) {
  (void)model;
  (void)sink;
  return STELE_OK;
}

void model_text_deinit(stele_model *model) { (void)model; }

static stele_status without_text(stele_sink *sink) {
  return base_fail(sink, STELE_UNSUPPORTED,
                   "this libstele was built without tokenizers: give token ids instead of text");
}

stele_status stele_tokenize(const stele_model *model, const char *text, size_t bytes, bool special,
                            stele_sink *sink, int32_t **out_ids, size_t *out_count) {
  (void)model, (void)text, (void)bytes, (void)special, (void)out_ids, (void)out_count;
  return without_text(sink);
}

stele_status stele_detokenize(const stele_model *model, const int32_t *ids, size_t count,
                              bool skip_special, stele_sink *sink, char **out_text,
                              size_t *out_bytes) {
  (void)model, (void)ids, (void)count, (void)skip_special, (void)out_text, (void)out_bytes;
  return without_text(sink);
}

stele_status stele_stream_create(const stele_model *model, bool skip_special, stele_sink *sink,
                                 stele_stream **out_stream) {
  (void)model, (void)skip_special, (void)out_stream;
  return without_text(sink);
}

void stele_stream_destroy(stele_stream *stream) { (void)stream; }

stele_status stele_stream_put(stele_stream *stream, int32_t id, const char **out_text,
                              size_t *out_bytes) {
  (void)stream, (void)id, (void)out_text, (void)out_bytes;
  return STELE_UNSUPPORTED;
}

stele_status stele_stream_end(stele_stream *stream, const char **out_text, size_t *out_bytes) {
  (void)stream, (void)out_text, (void)out_bytes;
  return STELE_UNSUPPORTED;
}
