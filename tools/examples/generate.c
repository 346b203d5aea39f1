/* Generates with libstele: opens an artefact, feeds a prompt, prints ids as they come.
 *
 *     generate model.so 20 1 15043 3186      20 ids after the prompt 1 15043 3186
 *     generate model.so 20 "Once upon a time" text, where the artefact has a tokenizer */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stele/stele.h"

typedef struct printer {
  stele_stream *stream; /* NULL: ids */
} printer;

static bool print_id(void *data, int32_t id) {
  printer *p = data;
  const char *text = "";
  size_t bytes = 0;
  if (!p->stream)
    printf("%d\n", id);
  else if (stele_stream_put(p->stream, id, &text, &bytes) == STELE_OK)
    fwrite(text, 1, bytes, stdout);
  return fflush(stdout) == 0; /* nobody reads: stop */
}

static stele_status read_prompt(const stele_model *model, char **words, int count, stele_sink *sink,
                                int32_t **out_ids, size_t *out_count) {
  if (!isdigit((unsigned char)words[0][0]))
    return stele_tokenize(model, words[0], strlen(words[0]), true, sink, out_ids, out_count);
  int32_t *ids = calloc((size_t)count, sizeof *ids);
  if (!ids) return STELE_OUT_OF_MEMORY;
  for (int i = 0; i < count; i++) ids[i] = atoi(words[i]);
  *out_ids = ids;
  *out_count = (size_t)count;
  return STELE_OK;
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: generate MODEL.so COUNT (TEXT | ID...)\n"), 2;
  stele_sink sink = {0};
  stele_model *model = NULL;
  stele_session *session = NULL;
  printer p = {NULL};
  int32_t *prompt = NULL, *ids = NULL;
  size_t prompt_count = 0;
  stele_generate_result result;
  stele_generate_options options = {
      .struct_bytes = sizeof options, .on_token = print_id, .on_token_data = &p};
  uint32_t limit = (uint32_t)strtoul(argv[2], NULL, 10);
  stele_status status = stele_model_open(argv[1], NULL, &sink, &model);
  if (status == STELE_OK) status = stele_session_create(model, NULL, &sink, &session);
  if (status == STELE_OK)
    status = read_prompt(model, argv + 3, argc - 3, &sink, &prompt, &prompt_count);
  if (status == STELE_OK && !isdigit((unsigned char)argv[3][0]))
    status = stele_stream_create(model, true, &sink, &p.stream);
  if (status == STELE_OK && !(ids = calloc(limit + 1u, sizeof *ids))) status = STELE_OUT_OF_MEMORY;
  if (status == STELE_OK)
    status = stele_generate(session, prompt, (uint32_t)prompt_count, &options, ids, limit, &sink,
                            &result);
  if (status == STELE_OK)
    fprintf(stderr, "\n%u ids, finished: %s\n", result.generated_tokens,
            stele_finish_name(result.finish));
  else
    fprintf(stderr, "generate: %s\n", sink.text[0] ? sink.text : stele_status_string(status));
  free(ids);
  free(prompt);
  stele_stream_destroy(p.stream);
  stele_session_destroy(session);
  stele_model_close(model);
  return status == STELE_OK ? 0 : 1;
}
