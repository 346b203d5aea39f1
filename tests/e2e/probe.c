/* What the tests need to do to an artefact and can't do from the command line.
 *
 *   probe trailer FILE FIELD NUMBER   writes a field of the trailer, and its hash anew
 *   probe open FILE BITS              opens it with features treated as absent; prints the variant
 *   probe sessions FILE FILE IDS IDS COUNT
 *       two prompts through two models in one process: alone, one after the other in one session
 *       with a reset between, step by step in turns, and in two threads at once; all must give the
 *       same ids, which are printed, a line a prompt */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "stele/stele.h"

enum { MAX_IDS = 256 };

static int fail(const char *what, const stele_sink *sink) {
  fprintf(stderr, "probe: %s: %s\n", what, sink ? sink->text : "");
  return 1;
}

/* ---- trailer ---------------------------------------------------------------------------- */

typedef struct field {
  const char *name;
  size_t offset, size;
} field;

#define FIELD(name) {#name, offsetof(stele_trailer, name), sizeof(((stele_trailer *)0)->name)}
static const field fields[] = {FIELD(abi),         FIELD(machine),        FIELD(code_bytes),
                               FIELD(code_hash),   FIELD(weights_offset), FIELD(weights_bytes),
                               FIELD(weights_hash)};

static int change_trailer(const char *path, const char *name, const char *number) {
  stele_trailer trailer;
  FILE *file = fopen(path, "r+b");
  if (!file || fseek(file, -(long)sizeof trailer, SEEK_END) != 0 ||
      fread(&trailer, sizeof trailer, 1, file) != 1)
    return fail(path, NULL);
  uint64_t value = strtoull(number, NULL, 0);
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
    if (strcmp(fields[i].name, name) == 0)
      memcpy((char *)&trailer + fields[i].offset, &value, fields[i].size);
  trailer.self_hash = XXH3_64bits(&trailer, offsetof(stele_trailer, self_hash));
  if (fseek(file, -(long)sizeof trailer, SEEK_END) != 0 ||
      fwrite(&trailer, sizeof trailer, 1, file) != 1)
    return fail(path, NULL);
  return fclose(file) == 0 ? 0 : fail(path, NULL);
}

static int open_without(const char *path, const char *bits) {
  stele_model_options options = {.struct_bytes = sizeof options,
                                 .disable_features = strtoull(bits, NULL, 0)};
  stele_sink sink = {0};
  stele_model *model = NULL;
  if (stele_model_open(path, &options, &sink, &model) != STELE_OK) return fail("open", &sink);
  puts(stele_model_variant(model)->name);
  stele_model_close(model);
  return 0;
}

/* ---- sessions --------------------------------------------------------------------------- */

typedef struct job {
  const stele_model *model;
  int32_t prompt[MAX_IDS], ids[MAX_IDS];
  uint32_t prompt_count, count;
  stele_session *session;
  stele_sink sink;
  stele_status status;
} job;

static uint32_t parse(char *text, int32_t *ids) {
  uint32_t count = 0;
  for (char *item; (item = strsep(&text, ",")) && count < MAX_IDS;)
    ids[count++] = (int32_t)strtol(item, NULL, 10);
  return count;
}

static stele_status create(job *j) {
  stele_session_options options = {.struct_bytes = sizeof options, .lanes = 1, .threads = 2};
  return stele_session_create(j->model, &options, &j->sink, &j->session);
}

static stele_status begin(job *j) {
  return stele_session_feed(j->session, 0, j->prompt, j->prompt_count, STELE_OUTPUT_TOKEN,
                            &j->ids[0], &j->sink);
}

static stele_status step(job *j, uint32_t i) {
  static const uint32_t lane = 0;
  return stele_session_step(j->session, &lane, &j->ids[i - 1], 1, STELE_OUTPUT_TOKEN, &j->ids[i],
                            &j->sink);
}

static void *whole(void *data) {
  job *j = data;
  j->status = begin(j);
  for (uint32_t i = 1; i < j->count && j->status == STELE_OK; i++) j->status = step(j, i);
  return NULL;
}

static int compare(const job *a, const job *b, const char *how) {
  if (memcmp(a->ids, b->ids, a->count * sizeof a->ids[0]) == 0) return 0;
  fprintf(stderr, "probe: other ids %s\n", how);
  return 1;
}

/* The second prompt in the first's session after a reset, then both in turns, then at once. */
static int check_ways(const job *alone) {
  job reused = alone[1], turns[2] = {alone[0], alone[1]}, threads[2] = {alone[0], alone[1]};
  if (alone[0].model == alone[1].model) {
    reused.session = alone[0].session;
    stele_session_reset(reused.session, 0);
    whole(&reused);
    if (reused.status != STELE_OK) return fail("reset", &reused.sink);
    if (compare(&alone[1], &reused, "after a reset")) return 1;
  }
  for (int k = 0; k < 2; k++) {
    stele_session_reset(turns[k].session, 0);
    memset(turns[k].ids, 0, sizeof turns[k].ids);
    if (begin(&turns[k]) != STELE_OK) return fail("turns", &turns[k].sink);
  }
  for (uint32_t i = 1; i < alone->count; i++)
    for (int k = 0; k < 2; k++)
      if (step(&turns[k], i) != STELE_OK) return fail("turns", &turns[k].sink);
  pthread_t other;
  for (int k = 0; k < 2; k++) stele_session_reset(threads[k].session, 0);
  if (pthread_create(&other, NULL, whole, &threads[1]) != 0) return fail("thread", NULL);
  whole(&threads[0]);
  pthread_join(other, NULL);
  int faults = 0;
  for (int k = 0; k < 2; k++) {
    if (threads[k].status != STELE_OK) return fail("threads", &threads[k].sink);
    faults += compare(&alone[k], &turns[k], "in turns");
    faults += compare(&alone[k], &threads[k], "in two threads");
  }
  return faults;
}

static int run_sessions(char **argv) {
  stele_model *models[2] = {NULL, NULL};
  stele_sink sink = {0};
  static job jobs[2];
  for (int k = 0; k < 2; k++) {
    bool same = k && strcmp(argv[2], argv[3]) == 0;
    if (!same && stele_model_open(argv[2 + k], NULL, &sink, &models[k]) != STELE_OK)
      return fail("open", &sink);
    jobs[k].model = same ? models[0] : models[k];
    jobs[k].prompt_count = parse(argv[4 + k], jobs[k].prompt);
    jobs[k].count = (uint32_t)strtoul(argv[6], NULL, 10);
    if (create(&jobs[k]) != STELE_OK) return fail("create", &jobs[k].sink);
    whole(&jobs[k]);
    if (jobs[k].status != STELE_OK) return fail("alone", &jobs[k].sink);
  }
  int code = check_ways(jobs);
  for (int k = 0; k < 2; k++) {
    for (uint32_t i = 0; i < jobs[k].count; i++) printf(i ? ",%d" : "%d", jobs[k].ids[i]);
    putchar('\n');
    stele_session_destroy(jobs[k].session);
  }
  stele_model_close(models[0]);
  stele_model_close(models[1]);
  return code;
}

int main(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "trailer") == 0)
    return change_trailer(argv[2], argv[3], argv[4]);
  if (argc == 4 && strcmp(argv[1], "open") == 0) return open_without(argv[2], argv[3]);
  if (argc == 7 && strcmp(argv[1], "sessions") == 0) return run_sessions(argv);
  fputs("probe: the head of its source says how it is used\n", stderr);
  return 2;
}
