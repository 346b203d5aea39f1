/* Writes the logits of every step of a generation whose ids are given: the prompt in one feed,
 * then one id a decode step. What `stele forward` can't show, since it feeds once.
 *
 *   steps OUT.so PROMPT-IDS NEXT-IDS THREADS (dynamic|static) FILE
 *
 * FILE: float32 [1 + number of next ids][vocabulary], without a header. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stele/stele.h"

static int32_t *parse(char *text, uint32_t *out_count) {
  uint32_t count = 0, room = (uint32_t)strlen(text) + 1;
  int32_t *ids = malloc(room * sizeof *ids);
  for (char *item; ids && (item = strsep(&text, ","));)
    if (*item) ids[count++] = (int32_t)strtol(item, NULL, 10);
  *out_count = count;
  return ids;
}

static stele_status run(stele_session *session, char **argv, uint32_t vocab, FILE *file,
                        stele_sink *sink) {
  uint32_t prompt_count, next_count;
  static const uint32_t lane = 0;
  int32_t *prompt = parse(argv[2], &prompt_count), *next = parse(argv[3], &next_count);
  float *row = malloc(vocab * sizeof *row);
  stele_status status = STELE_OUT_OF_MEMORY;
  if (prompt && next && row)
    status = stele_session_feed(session, 0, prompt, prompt_count, STELE_OUTPUT_LAST, row, sink);
  for (uint32_t i = 0; status == STELE_OK; i++) {
    if (fwrite(row, sizeof *row, vocab, file) != vocab) status = STELE_IO;
    if (i == next_count || status != STELE_OK) break;
    status = stele_session_step(session, &lane, &next[i], 1, STELE_OUTPUT_LAST, row, sink);
  }
  free(prompt);
  free(next);
  free(row);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 7) {
    fputs("usage: steps OUT.so PROMPT-IDS NEXT-IDS THREADS (dynamic|static) FILE\n", stderr);
    return 2;
  }
  stele_session_options options = {
      .struct_bytes = sizeof options,
      .lanes = 1,
      .threads = (uint32_t)strtoul(argv[4], NULL, 10),
      .cache_implementation =
          strcmp(argv[5], "static") == 0 ? STELE_CACHE_STATIC : STELE_CACHE_DYNAMIC,
  };
  stele_sink sink = {0};
  stele_model *model = NULL;
  stele_session *session = NULL;
  FILE *file = fopen(argv[6], "wb");
  stele_status status = file ? stele_model_open(argv[1], NULL, &sink, &model) : STELE_IO;
  if (status == STELE_OK) status = stele_session_create(model, &options, &sink, &session);
  if (status == STELE_OK)
    status = run(session, argv, stele_model_artifact(model)->vocab, file, &sink);
  stele_session_destroy(session);
  stele_model_close(model);
  if (file && fclose(file) != 0) status = STELE_IO;
  if (status != STELE_OK)
    fprintf(stderr, "steps: %s: %s\n", stele_status_string(status), sink.text);
  return status == STELE_OK ? 0 : 1;
}
