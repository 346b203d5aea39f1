/* GGUF metadata of a tokenizer to a blob and its use. The input is lines: tokenizer.ggml.model;
 * tokenizer.ggml.pre; six signed characters for bos, eos, add_bos, add_eos, unknown and
 * add_space_prefix; then a token (its type as a character, its text) or, after an 'm', a merge.
 * Scores fall with the id; user-defined tokens have 0. */
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"
#include "use_tokenizer.h"

#define MOST 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct lists {
  const char *tokens[MOST], *merges[MOST];
  uint64_t token_bytes[MOST], merge_bytes[MOST];
  int32_t types[MOST];
  float scores[MOST];
  char model[64], pre[64];
} lists;

/* The next line, without its end. */
static size_t next_line(const uint8_t **data, size_t *size, const char **out_line) {
  const uint8_t *end = *size ? memchr(*data, '\n', *size) : NULL;
  size_t length = end ? (size_t)(end - *data) : *size;
  *out_line = (const char *)*data;
  *data += length + (end != NULL);
  *size -= length + (end != NULL);
  return length;
}

static void copy_name(char *out, size_t room, const char *line, size_t length) {
  size_t bytes = length < room ? length : room - 1;
  if (bytes) memcpy(out, line, bytes);
  out[bytes] = 0;
}

static void read_lists(lists *l, text_gguf_source *source, const uint8_t *data, size_t size) {
  while (size) {
    const char *line;
    size_t length = next_line(&data, &size, &line);
    if (length && line[0] == 'm' && source->merge_count < MOST) {
      l->merges[source->merge_count] = line + 1;
      l->merge_bytes[source->merge_count++] = length - 1;
    } else if (length && line[0] != 'm' && source->token_count < MOST) {
      l->tokens[source->token_count] = line + 1;
      l->token_bytes[source->token_count] = length - 1;
      l->scores[source->token_count] = line[0] == '4' ? 0 : -(float)source->token_count;
      l->types[source->token_count++] = line[0] - '0';
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *line;
  lists *l = calloc(1, sizeof *l);
  if (!l) return 0;
  size_t length = next_line(&data, &size, &line);
  copy_name(l->model, sizeof l->model, line, length);
  length = next_line(&data, &size, &line);
  copy_name(l->pre, sizeof l->pre, line, length);
  length = next_line(&data, &size, &line);
  int32_t numbers[6] = {-1, -1, -1, -1, -1, -1};
  for (size_t i = 0; i < 6 && i < length; i++) numbers[i] = (signed char)line[i] - '0';
  text_gguf_source source = {.model = l->model[0] ? l->model : NULL,
                             .pre = l->pre[0] ? l->pre : NULL,
                             .tokens = l->tokens,
                             .token_bytes = l->token_bytes,
                             .token_types = l->types,
                             .scores = l->scores,
                             .merges = l->merges,
                             .merge_bytes = l->merge_bytes,
                             .bos_id = numbers[0],
                             .eos_id = numbers[1],
                             .add_bos = numbers[2],
                             .add_eos = numbers[3],
                             .unknown_id = numbers[4],
                             .add_space_prefix = numbers[5]};
  read_lists(l, &source, data, size);
  stele_sink sink = {{0}};
  base_buffer blob = {0};
  if (text_blob_from_gguf(&source, &sink, &blob) == STELE_OK) use_tokenizer(blob.data, blob.size);
  base_buffer_deinit(&blob);
  free(l);
  return 0;
}
