/* Generates with and without guesses in every way and compares: ids, and to the bit the logits
 * after one more id, which all of the cache goes into.
 *
 *   lookup OUT.so PROMPT-IDS COUNT
 *
 * Prints the ids without guesses, then the numbers of guesses and of right ones in all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stele/stele.h"

typedef struct outcome {
  int32_t *ids;
  float *logits; /* [vocab] */
  stele_generate_result result;
} outcome;

typedef struct comparison {
  const stele_model *model;
  int32_t *prompt;
  uint32_t prompt_count, count, drafted, accepted;
  uint32_t differences;
  bool bits;
} comparison;

static uint32_t parse(char *text, int32_t *ids) {
  uint32_t count = 0;
  for (char *item; (item = strsep(&text, ","));)
    if (*item) ids[count++] = (int32_t)strtol(item, NULL, 10);
  return count;
}

static outcome make_outcome(const comparison *c) {
  return (outcome){.ids = calloc(c->count, sizeof(int32_t)),
                   .logits = calloc(stele_model_artifact(c->model)->vocab, sizeof(float))};
}

static void free_outcome(outcome *o) {
  free(o->ids);
  free(o->logits);
}

static stele_status generate(const comparison *c, stele_session *session, uint32_t guesses,
                             stele_sink *sink, outcome *out) {
  stele_generate_options options = {
      .struct_bytes = sizeof options, .ignore_eos = true, .prompt_lookup_num_tokens = guesses};
  static const int32_t id = 5;
  stele_session_reset(session, 0);
  stele_status status = stele_generate(session, c->prompt, c->prompt_count, &options, out->ids,
                                       c->count, sink, &out->result);
  if (status != STELE_OK) return status;
  if (stele_session_length(session, 0) == stele_model_artifact(c->model)->capacity) return STELE_OK;
  return stele_session_feed(session, 0, &id, 1, STELE_OUTPUT_LAST, out->logits, sink);
}

static void compare(comparison *c, const outcome *expected, const outcome *found, const char *how) {
  uint32_t count = expected->result.generated_tokens;
  size_t bytes = stele_model_artifact(c->model)->vocab * sizeof(float);
  c->drafted += found->result.drafted_tokens;
  c->accepted += found->result.accepted_tokens;
  if (found->result.generated_tokens == count &&
      memcmp(expected->ids, found->ids, count * sizeof(int32_t)) == 0 &&
      (!c->bits || memcmp(expected->logits, found->logits, bytes) == 0))
    return;
  fprintf(stderr, "lookup: %s: another text\n", how);
  c->differences++;
}

/* Guesses of several sizes against `plain` in a session of this kind. */
static stele_status check_session(comparison *c, uint32_t threads, uint32_t implementation,
                                  const outcome *plain, stele_sink *sink) {
  static const uint32_t guesses[] = {1, 3, 7};
  stele_session_options options = {
      .struct_bytes = sizeof options, .threads = threads, .cache_implementation = implementation};
  stele_session *session = NULL;
  outcome o = make_outcome(c);
  stele_status status = stele_session_create(c->model, &options, sink, &session);
  for (size_t i = 0; i < sizeof guesses / sizeof *guesses && status == STELE_OK; i++) {
    char how[64];
    snprintf(how, sizeof how, "%u threads, cache %u, %u guesses", threads, implementation,
             guesses[i]);
    status = generate(c, session, guesses[i], sink, &o);
    if (status == STELE_OK) compare(c, plain, &o, how);
  }
  stele_session_destroy(session);
  free_outcome(&o);
  return status;
}

static stele_status check(comparison *c, stele_sink *sink) {
  const stele_session_options one = {.struct_bytes = sizeof one, .threads = 1};
  stele_session *session = NULL;
  outcome plain = make_outcome(c);
  stele_status status = stele_session_create(c->model, &one, sink, &session);
  if (status == STELE_OK) status = generate(c, session, 0, sink, &plain);
  stele_session_destroy(session);
  for (uint32_t threads = 1; threads <= 3 && status == STELE_OK; threads++)
    status = check_session(c, threads, threads % 2, &plain, sink);
  for (uint32_t i = 0; i < plain.result.generated_tokens; i++)
    printf(i ? ",%d" : "%d", plain.ids[i]);
  printf(" %u %u\n", c->drafted, c->accepted);
  free_outcome(&plain);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fputs("usage: lookup OUT.so PROMPT-IDS COUNT (ids|bits)\n", stderr);
    return 2;
  }
  stele_sink sink = {0};
  stele_model *model = NULL;
  comparison c = {.prompt = malloc((strlen(argv[2]) + 1) * sizeof(int32_t)),
                  .count = (uint32_t)strtoul(argv[3], NULL, 10),
                  .bits = strcmp(argv[4], "bits") == 0};
  c.prompt_count = parse(argv[2], c.prompt);
  stele_status status = stele_model_open(argv[1], NULL, &sink, &model);
  c.model = model;
  if (status == STELE_OK) status = check(&c, &sink);
  stele_model_close(model);
  free(c.prompt);
  if (status != STELE_OK)
    fprintf(stderr, "lookup: %s: %s\n", stele_status_string(status), sink.text);
  return status == STELE_OK && !c.differences ? 0 : 1;
}
