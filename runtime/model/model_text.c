/* Text through the tokenizer that an artefact carries. It is made when it is first asked for, so
 * that a model that runs on ids alone pays nothing; a lock makes that safe between threads, and
 * once made it is never changed. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "text/tokenizer.h"

struct model_text {
  pthread_mutex_t lock;
  text_tokenizer *tokenizer; /* NULL until first needed */
};

struct stele_stream {
  text_stream *stream;
};

stele_status model_text_init(stele_model *model, stele_sink *sink) {
  model->text = calloc(1, sizeof *model->text);
  if (!model->text || pthread_mutex_init(&model->text->lock, NULL) != 0) {
    free(model->text);
    model->text = NULL;
    return base_fail(sink, STELE_OUT_OF_MEMORY, "cannot open '%s': out of memory", model->path);
  }
  return STELE_OK;
}

void model_text_deinit(stele_model *model) {
  if (!model->text) return;
  text_tokenizer_destroy(model->text->tokenizer);
  pthread_mutex_destroy(&model->text->lock);
  free(model->text);
}

static stele_status get_tokenizer(const stele_model *model, stele_sink *sink,
                                  const text_tokenizer **out_tokenizer) {
  const stele_artifact *a = model->artifact;
  if (!a->tokenizer)
    return base_fail(sink, STELE_NOT_FOUND, "'%s' has no tokenizer: give token ids instead of text",
                     model->path);
  stele_status status = STELE_OK;
  pthread_mutex_lock(&model->text->lock);
  if (!model->text->tokenizer)
    status = text_tokenizer_create(a->tokenizer, (size_t)a->tokenizer_bytes, sink,
                                   &model->text->tokenizer);
  *out_tokenizer = model->text->tokenizer;
  pthread_mutex_unlock(&model->text->lock);
  return status;
}

stele_status stele_tokenize(const stele_model *model, const char *text, size_t bytes, bool special,
                            stele_sink *sink, int32_t **out_ids, size_t *out_count) {
  const text_tokenizer *tokenizer;
  BASE_TRY(get_tokenizer(model, sink, &tokenizer));
  return text_encode(tokenizer, text, bytes, special, sink, out_ids, out_count);
}

stele_status stele_detokenize(const stele_model *model, const int32_t *ids, size_t count,
                              bool skip_special, stele_sink *sink, char **out_text,
                              size_t *out_bytes) {
  const text_tokenizer *tokenizer;
  BASE_TRY(get_tokenizer(model, sink, &tokenizer));
  base_buffer text = {0};
  stele_status status = text_decode(tokenizer, ids, count, skip_special, sink, &text);
  size_t size = text.size;
  base_buffer_append(&text, "", 1);
  if (status == STELE_OK && text.failed)
    status =
        base_fail(sink, STELE_OUT_OF_MEMORY, "cannot turn %zu ids into text: out of memory", count);
  if (status != STELE_OK) {
    base_buffer_deinit(&text);
    return status;
  }
  *out_text = (char *)text.data;
  if (out_bytes) *out_bytes = size;
  return STELE_OK;
}

stele_status stele_stream_create(const stele_model *model, bool skip_special, stele_sink *sink,
                                 stele_stream **out_stream) {
  const text_tokenizer *tokenizer;
  BASE_TRY(get_tokenizer(model, sink, &tokenizer));
  stele_stream *stream = calloc(1, sizeof *stream);
  if (!stream) return base_fail(sink, STELE_OUT_OF_MEMORY, "cannot stream text: out of memory");
  stele_status status = text_stream_create(tokenizer, skip_special, sink, &stream->stream);
  if (status != STELE_OK) {
    free(stream);
    return status;
  }
  *out_stream = stream;
  return STELE_OK;
}

void stele_stream_destroy(stele_stream *stream) {
  if (!stream) return;
  text_stream_destroy(stream->stream);
  free(stream);
}

stele_status stele_stream_put(stele_stream *stream, int32_t id, const char **out_text,
                              size_t *out_bytes) {
  return text_stream_put(stream->stream, id, out_text, out_bytes);
}

stele_status stele_stream_end(stele_stream *stream, const char **out_text, size_t *out_bytes) {
  return text_stream_end(stream->stream, out_text, out_bytes);
}
