/* The tokenizer blob of a model: its source is collected here, compiled in runtime/text. */
#include "text/tokenizer.h"

#include <string.h>

#include "frontend/frontend.h"
#include "frontend/gguf.h"

#define JSON_LIMIT ((size_t)512 << 20)

static stele_status blob_of_json(const fe_model *model, base_arena *arena, stele_sink *sink,
                                 base_buffer *out) {
  char *json, *config = NULL;
  size_t bytes, config_bytes = 0;
  BASE_TRY(base_file_read(sink, arena, model->tokenizer_json, JSON_LIMIT, &json, &bytes));
  if (model->tokenizer_config_json)
    BASE_TRY(base_file_read(sink, arena, model->tokenizer_config_json, JSON_LIMIT, &config,
                            &config_bytes));
  return text_blob_from_json(json, bytes, config, config_bytes, sink, out);
}

/* ---- GGUF ------------------------------------------------------------------------------ */

static stele_status bad_key(const fe_model *model, const char *key, const char *expected,
                            stele_sink *sink) {
  return base_fail(sink, STELE_BAD_FORMAT, "'%s': '%s' is not %s", model->path, key, expected);
}

static stele_status read_id(const fe_model *model, const char *key, stele_sink *sink,
                            int32_t *out) {
  const fe_gguf_value *value = fe_gguf_find(model->gguf, key);
  int64_t id;
  *out = -1;
  if (!value) return STELE_OK;
  if (value->array || !fe_gguf_int(value, 0, &id) || id < 0 || id > INT32_MAX)
    return bad_key(model, key, "a token id", sink);
  *out = (int32_t)id;
  return STELE_OK;
}

static stele_status read_flag(const fe_model *model, const char *key, stele_sink *sink,
                              int32_t *out) {
  const fe_gguf_value *value = fe_gguf_find(model->gguf, key);
  bool flag;
  *out = -1;
  if (!value) return STELE_OK;
  if (value->array || !fe_gguf_bool(value, 0, &flag)) return bad_key(model, key, "a bool", sink);
  *out = flag;
  return STELE_OK;
}

static stele_status read_tokens(const fe_model *model, base_arena *arena, stele_sink *sink,
                                text_gguf_source *source) {
  static const char key[] = "tokenizer.ggml.tokens";
  const fe_gguf_value *value = fe_gguf_find(model->gguf, key);
  if (!value || !value->array || value->count > INT32_MAX)
    return bad_key(model, key, "an array of strings", sink);
  source->token_count = (uint32_t)value->count;
  return fe_gguf_strings(arena, model->gguf, value, sink, &source->tokens, &source->token_bytes);
}

static stele_status read_types(const fe_model *model, base_arena *arena, stele_sink *sink,
                               text_gguf_source *source) {
  static const char key[] = "tokenizer.ggml.token_type";
  const fe_gguf_value *value = fe_gguf_find(model->gguf, key);
  if (!value) return STELE_OK;
  int32_t *types = base_arena_alloc(arena, source->token_count, sizeof *types);
  if (!types) return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", model->path);
  if (!value->array || value->count != source->token_count)
    return bad_key(model, key, "an array with a number for each token", sink);
  for (uint32_t i = 0; i < source->token_count; i++) {
    int64_t type;
    if (!fe_gguf_int(value, i, &type) || type < 0 || type > INT32_MAX)
      return bad_key(model, key, "an array of whole numbers", sink);
    types[i] = (int32_t)type;
  }
  source->token_types = types;
  return STELE_OK;
}

static stele_status read_scores(const fe_model *model, base_arena *arena, stele_sink *sink,
                                text_gguf_source *source) {
  static const char key[] = "tokenizer.ggml.scores";
  const fe_gguf_value *value = fe_gguf_find(model->gguf, key);
  if (!value) return STELE_OK;
  float *scores = base_arena_alloc(arena, source->token_count, sizeof *scores);
  if (!scores) return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", model->path);
  if (!value->array || value->count != source->token_count)
    return bad_key(model, key, "an array with a number for each token", sink);
  for (uint32_t i = 0; i < source->token_count; i++) {
    double score;
    if (!fe_gguf_float(value, i, &score)) return bad_key(model, key, "an array of floats", sink);
    scores[i] = (float)score;
  }
  source->scores = scores;
  return STELE_OK;
}

static stele_status read_merges(const fe_model *model, base_arena *arena, stele_sink *sink,
                                text_gguf_source *source) {
  static const char key[] = "tokenizer.ggml.merges";
  const fe_gguf_value *value = fe_gguf_find(model->gguf, key);
  if (!value) return STELE_OK;
  if (!value->array) return bad_key(model, key, "an array of strings", sink);
  source->merge_count = value->count;
  return fe_gguf_strings(arena, model->gguf, value, sink, &source->merges, &source->merge_bytes);
}

static stele_status blob_of_gguf(const fe_model *model, base_arena *arena, stele_sink *sink,
                                 base_buffer *out) {
  text_gguf_source source = {0};
  const fe_gguf_value *kind = fe_gguf_find(model->gguf, "tokenizer.ggml.model");
  const fe_gguf_value *pre = fe_gguf_find(model->gguf, "tokenizer.ggml.pre");
  if (!kind) return STELE_OK;
  BASE_TRY(fe_gguf_text(arena, model->gguf, kind, sink, &source.model));
  if (pre) BASE_TRY(fe_gguf_text(arena, model->gguf, pre, sink, &source.pre));
  if (strcmp(source.model, "none") == 0 || strcmp(source.model, "no_vocab") == 0) return STELE_OK;
  if (pre && !source.pre) return bad_key(model, pre->key, "a string", sink);
  BASE_TRY(read_tokens(model, arena, sink, &source));
  BASE_TRY(read_types(model, arena, sink, &source));
  BASE_TRY(read_scores(model, arena, sink, &source));
  BASE_TRY(read_merges(model, arena, sink, &source));
  BASE_TRY(read_id(model, "tokenizer.ggml.bos_token_id", sink, &source.bos_id));
  BASE_TRY(read_id(model, "tokenizer.ggml.eos_token_id", sink, &source.eos_id));
  BASE_TRY(read_id(model, "tokenizer.ggml.unknown_token_id", sink, &source.unknown_id));
  BASE_TRY(read_flag(model, "tokenizer.ggml.add_bos_token", sink, &source.add_bos));
  BASE_TRY(read_flag(model, "tokenizer.ggml.add_eos_token", sink, &source.add_eos));
  BASE_TRY(read_flag(model, "tokenizer.ggml.add_space_prefix", sink, &source.add_space_prefix));
  return text_blob_from_gguf(&source, sink, out);
}

stele_status fe_tokenizer_blob(const fe_model *model, stele_sink *sink, base_buffer *out) {
  base_arena arena = {0};
  stele_status status = STELE_OK;
  if (model->tokenizer_json)
    status = blob_of_json(model, &arena, sink, out);
  else if (model->gguf)
    status = blob_of_gguf(model, &arena, sink, out);
  base_arena_deinit(&arena);
  return status;
}
