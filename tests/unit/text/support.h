/* What the tokenizer tests share. */
#ifndef TEXT_SUPPORT_H
#define TEXT_SUPPORT_H

#include <jansson.h>

#include "text/tokenizer.h"

/* Reads a JSON file; fails the test where it can't. */
json_t *support_read_json(const char *path);

/* Blob and tokenizer of a tokenizer.json; fails the test with the message where it can't. */
typedef struct support_tokenizer {
  base_buffer blob;
  text_tokenizer *tokenizer;
} support_tokenizer;
support_tokenizer support_open(const char *json, size_t bytes);
support_tokenizer support_open_blob(base_buffer blob);
void support_close(support_tokenizer *tokenizer);

/* Encodes and compares; on a difference prints text and ids, and returns false. */
bool support_encodes(const text_tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                     const json_t *ids);
bool support_decodes(const text_tokenizer *tokenizer, const json_t *ids, bool skip_special,
                     const char *text, size_t bytes);
/* Streams ids: every piece is whole characters, the sum is the decoded text. */
bool support_streams(const text_tokenizer *tokenizer, const json_t *ids, bool skip_special);

/* Number of ids; *out_ids is malloc'd. */
size_t support_ids(const json_t *ids, int32_t **out_ids);

#endif
