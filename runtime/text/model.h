/* What a tokenizer model supplies: one file, one row of models.def.
 *
 * A model turns the words that the cutting steps leave into ids, and reads its own part of
 * tokenizer.json and of GGUF metadata. */
#ifndef STELE_TEXT_MODEL_H
#define STELE_TEXT_MODEL_H

#include <jansson.h>

#include "text/builder.h"
#include "text/tokenizer_blob.h"

/* What one text_encode call works in; grows, and is reused from word to word. */
typedef struct text_work {
  base_buffer ids;             /* int32_t: the result */
  base_buffer symbols, queue;  /* the model's */
  base_buffer pieces, pieces2; /* text_piece: the splitter's */
  base_buffer text, text2;     /* rewritten text */
  base_buffer normal, normal2; /* normalised text */
  base_buffer codes, marks;    /* the normaliser's */
  uint64_t budget;             /* what the expressions may still cost */
} text_work;
void text_work_deinit(text_work *work);

/* Makes `bytes` of room in a scratch buffer; NULL when there is no memory. */
void *text_work_room(base_buffer *buffer, size_t bytes);

static inline void text_work_id(text_work *work, int32_t id) {
  base_buffer_append(&work->ids, &id, sizeof id);
}

typedef struct text_model {
  uint32_t code;
  const char *json_type;
  bool byte_level; /* the model of its type whose words are bytes */
  const char *gguf_name;
  /* The "model" object of tokenizer.json: vocabulary, merges and flags into the builder. */
  stele_status (*from_json)(text_builder *builder, const json_t *model);
  stele_status (*from_gguf)(text_builder *builder, const text_gguf_source *source);
  /* Appends the ids of a word (at least one byte). Lack of memory shows in the buffers. */
  void (*encode)(const text_tokenizer *tokenizer, const uint8_t *word, size_t bytes,
                 text_work *work);
} text_model;

/* By code, "type" (byte_level: behind a pre_tokenizer 'ByteLevel') or tokenizer.ggml.model; NULL:
 * unknown. */
const text_model *text_model_by_code(uint32_t code);
const text_model *text_model_by_type(const char *json_type, bool byte_level);
const text_model *text_model_by_gguf(const char *gguf_name);
/* The known names, separated by commas. */
void text_model_list(bool gguf, char *out, size_t bytes);

#define X(name, code, prefix, type, level, gguf)                                           \
  stele_status prefix##_from_json(text_builder *builder, const json_t *model);             \
  stele_status prefix##_from_gguf(text_builder *builder, const text_gguf_source *source);  \
  void prefix##_encode(const text_tokenizer *tokenizer, const uint8_t *word, size_t bytes, \
                       text_work *work);
#include "text/models.def"
#undef X

/* The cutting steps that tokenizer.ggml.pre (may be NULL) stands for. */
stele_status text_gguf_words(text_builder *builder, const char *pre) STELE_MUST_USE;

#endif
