/* Tokenizers: text to ids and back.
 *
 * A tokenizer is compiled once from its source (tokenizer.json or GGUF metadata) into a blob: a
 * block of memory without pointers with the vocabulary, merges, added tokens, expressions and
 * flags, hashed and sorted so that opening it does no work. The artefact carries the blob;
 * `stele tokenize MODEL` makes one on the spot. The blob's layout is private to this folder
 * (tokenizer_blob.h); it begins with a magic, a version and its size, and is checked when opened:
 * it may come from a damaged file.
 *
 * A tokenizer model (BPE of bytes, BPE of characters with byte fallback) is one file and one row of
 * models.def. */
#ifndef STELE_TEXT_TOKENIZER_H
#define STELE_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

typedef struct text_tokenizer text_tokenizer;

/* ---- from sources ---------------------------------------------------------------------- */

/* Compiles tokenizer.json (config: tokenizer_config.json, may be NULL) into a blob. The texts are
 * untrusted. */
stele_status text_blob_from_json(const char *json, size_t bytes, const char *config,
                                 size_t config_bytes, stele_sink *sink,
                                 base_buffer *out_blob) STELE_MUST_USE;

/* What a GGUF file says of its tokenizer (keys tokenizer.ggml.*); arrays are borrowed. */
typedef struct text_gguf_source {
  const char *model; /* tokenizer.ggml.model: "gpt2", "llama" ... */
  const char *pre;   /* tokenizer.ggml.pre: "smollm", "llama-bpe", "qwen2", ... or NULL */
  uint32_t token_count;
  const char *const *tokens;   /* [token_count] not zero-terminated */
  const uint64_t *token_bytes; /* [token_count] */
  const int32_t *token_types;  /* [token_count] or NULL: 1 normal, 3 control, 4 user-defined ... */
  const float *scores;         /* [token_count] or NULL */
  uint64_t merge_count;
  const char *const *merges; /* "left right" */
  const uint64_t *merge_bytes;
  int32_t bos_id, eos_id, unknown_id;         /* -1: none */
  int32_t add_bos, add_eos, add_space_prefix; /* 0, 1, or -1: not said */
} text_gguf_source;
stele_status text_blob_from_gguf(const text_gguf_source *source, stele_sink *sink,
                                 base_buffer *out_blob) STELE_MUST_USE;

/* ---- use ------------------------------------------------------------------------------- */

/* Opens a blob, which must stay in place. The tokenizer is immutable and may be shared between
 * threads. Destroy accepts NULL. */
stele_status text_tokenizer_create(const uint8_t *blob, size_t bytes, stele_sink *sink,
                                   text_tokenizer **out_tokenizer) STELE_MUST_USE;
void text_tokenizer_destroy(text_tokenizer *tokenizer);
uint32_t text_tokenizer_vocab(const text_tokenizer *tokenizer);

/* As stele_tokenize and stele_detokenize, and the same ids as Hugging Face's tokenizers library:
 * `special` is its add_special_tokens; added tokens in the text are read as such either way.
 * Input that is not UTF-8 is read as U+FFFD per ill-formed byte; in decoded text each maximal
 * ill-formed subpart is one U+FFFD (a run of byte tokens that is not UTF-8 is one for each byte),
 * and ids without a token are nothing. *out_ids is malloc'd,
 * out_text has a zero byte behind it. STELE_FAILED when the tokenizer's expressions take too long
 * on the text. */
stele_status text_encode(const text_tokenizer *tokenizer, const char *text, size_t bytes,
                         bool special, stele_sink *sink, int32_t **out_ids,
                         size_t *out_count) STELE_MUST_USE;
stele_status text_decode(const text_tokenizer *tokenizer, const int32_t *ids, size_t count,
                         bool skip_special, stele_sink *sink, base_buffer *out_text) STELE_MUST_USE;

/* ---- streaming ------------------------------------------------------------------------- */

/* The pieces are whole characters and add up to what text_decode gives; but where byte tokens make
 * no UTF-8, the characters before are not taken back. */
typedef struct text_stream text_stream;
stele_status text_stream_create(const text_tokenizer *tokenizer, bool skip_special,
                                stele_sink *sink, text_stream **out_stream) STELE_MUST_USE;
void text_stream_destroy(text_stream *stream);
stele_status text_stream_put(text_stream *stream, int32_t id, const char **out_text,
                             size_t *out_bytes) STELE_MUST_USE;
stele_status text_stream_end(text_stream *stream, const char **out_text,
                             size_t *out_bytes) STELE_MUST_USE;

#endif
