/* stele bench: prefill and decode speed, named as llama-bench names them, beside what the machine
 * can read. Every repetition starts from an empty cache; one repetition before them isn't
 * counted. What memory reads is measured after each repetition, so that a machine whose speed
 * drifts treats both alike. Reported are the median and half the distance from the slowest to the
 * fastest. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { MAX_REPETITIONS = 1000, NOT_GIVEN = UINT32_MAX, DEFAULT_PROMPT = 512, DEFAULT_TOKENS = 128 };

static const cli_option options[] = {
    {CLI_COUNT, 'p', "n-prompt", "N", offsetof(bench_arguments, prompt), 0, INT32_MAX, NULL,
     "tokens of the prompt, 0: no prefill test [512, or what fits]"},
    {CLI_COUNT, 'n', "n-gen", "N", offsetof(bench_arguments, tokens), 0, INT32_MAX, NULL,
     "tokens to decode, 0: no decode test [128, or what fits]"},
    {CLI_COUNT, 'd', "n-depth", "N", offsetof(bench_arguments, depth), 0, INT32_MAX, NULL,
     "tokens in the cache before a test begins [0]"},
    {CLI_COUNT, 'r', "repetitions", "N", offsetof(bench_arguments, repetitions), 1, MAX_REPETITIONS,
     NULL, "repetitions of each test [5]"},
    CLI_SESSION_OPTIONS(bench_arguments),
    {CLI_FLAG, 0, "profile", NULL, offsetof(bench_arguments, profile), 0, 0, NULL,
     "show where the time of a decode step goes; with -p, of a prompt"},
    {CLI_FLAG, 0, "json", NULL, offsetof(bench_arguments, json), 0, 0, NULL, "print JSON"},
    {0},
};

typedef struct bench_result {
  char name[24];
  double median, spread, bytes_per_token, read_bytes_per_second;
} bench_result;

/* One repetition of a test; the seconds of the part that counts. */
typedef stele_status (*bench_test)(bench_state *state, uint32_t count, stele_sink *sink,
                                   double *out_seconds);

stele_status bench_fill(bench_state *state, stele_sink *sink) {
  stele_session_reset(state->session, 0);
  uint32_t depth = state->arguments->depth;
  if (!depth) return STELE_OK;
  return stele_session_feed(state->session, 0, state->ids, depth, STELE_OUTPUT_NONE, NULL, sink);
}

static stele_status test_prefill(bench_state *state, uint32_t count, stele_sink *sink,
                                 double *out_seconds) {
  BASE_TRY(bench_fill(state, sink));
  int32_t token;
  double start = cli_seconds();
  BASE_TRY(
      stele_session_feed(state->session, 0, state->ids, count, STELE_OUTPUT_TOKEN, &token, sink));
  *out_seconds = cli_seconds() - start;
  return STELE_OK;
}

static stele_status test_decode(bench_state *state, uint32_t count, stele_sink *sink,
                                double *out_seconds) {
  BASE_TRY(bench_fill(state, sink));
  static const uint32_t lane = 0;
  int32_t token = state->ids[0];
  double start = cli_seconds();
  for (uint32_t i = 0; i < count; i++) {
    int32_t next;
    BASE_TRY(stele_session_step(state->session, &lane, &token, 1, STELE_OUTPUT_TOKEN, &next, sink));
    token = next;
  }
  *out_seconds = cli_seconds() - start;
  return STELE_OK;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median(double *values, size_t count) {
  if (!count) return 0;
  qsort(values, count, sizeof *values, compare);
  size_t middle = count / 2;
  return count % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

static int measure(bench_state *state, bench_test test, uint32_t count, bench_result *result) {
  double rates[MAX_REPETITIONS], reads[MAX_REPETITIONS];
  uint32_t repetitions = state->arguments->repetitions;
  stele_sink sink = {0};
  double seconds;
  stele_status status = test(state, count, &sink, &seconds);
  for (uint32_t i = 0; i < repetitions && status == STELE_OK; i++) {
    status = test(state, count, &sink, &seconds);
    rates[i] = count / seconds;
    reads[i] = cli_read_bandwidth(state->read_bytes, stele_session_threads(state->session));
  }
  if (status != STELE_OK) return cli_status(state->self, status, &sink);
  result->median = bench_median(rates, repetitions);
  result->read_bytes_per_second = bench_median(reads, repetitions);
  result->spread = (rates[repetitions - 1] - rates[0]) / 2;
  return CLI_OK;
}

/* Weight bytes that one call of a step of this kind, one lane, reads; 0: no such step. */
static uint64_t step_bytes(const stele_model *model, uint32_t kind, uint32_t *out_width) {
  const stele_variant *variant = stele_model_variant(model);
  for (uint32_t i = 0; i < variant->step_count; i++) {
    const stele_step *step = &variant->steps[i];
    if (step->kind != kind || step->lanes != 1 || step->output != STELE_OUTPUT_TOKEN) continue;
    *out_width = step->width;
    return step->bytes_per_call;
  }
  return 0;
}

/* Bytes of cache that a token reads, the mean of `count` tokens behind `depth`. */
static double cache_bytes_read(const stele_model *model, uint32_t depth, uint32_t count) {
  const stele_artifact *artifact = stele_model_artifact(model);
  double sum = 0;
  for (uint32_t i = 0; i < artifact->group_count; i++) {
    const stele_group *group = &artifact->groups[i];
    if (!group->page_tokens) continue;
    double slot = (double)group->page_bytes * group->layers / group->page_tokens / count;
    for (uint32_t t = 1; t <= count; t++) sum += slot * stele_group_seen(group, depth + t);
  }
  return sum;
}

static int run_prefill(bench_state *state, uint32_t count, bench_result *result) {
  snprintf(result->name, sizeof result->name, "pp%u", count);
  uint32_t width = 1;
  uint64_t bytes = step_bytes(state->model, STELE_STEP_PREFILL, &width);
  if (!bytes) bytes = step_bytes(state->model, STELE_STEP_DECODE, &width);
  uint32_t calls = (count + width - 1) / width;
  result->bytes_per_token = (double)bytes * calls / count;
  return measure(state, test_prefill, count, result);
}

static int run_decode(bench_state *state, uint32_t count, bench_result *result) {
  snprintf(result->name, sizeof result->name, "tg%u", count);
  result->bytes_per_token =
      (double)state->read_bytes + cache_bytes_read(state->model, state->arguments->depth, count);
  return measure(state, test_decode, count, result);
}

static double rate_of(const bench_result *result) {
  return result->median * result->bytes_per_token;
}

static json_t *result_json(const bench_state *state, const bench_result *result) {
  double read = result->read_bytes_per_second;
  return json_pack("{s:s,s:I,s:I,s:f,s:f,s:f,s:f,s:f,s:f}", "test", result->name, "threads",
                   (json_int_t)stele_session_threads(state->session), "depth",
                   (json_int_t)state->arguments->depth, "tokens_per_s", result->median, "spread",
                   result->spread, "bytes_per_token", result->bytes_per_token, "gb_per_s",
                   rate_of(result) / 1e9, "read_gb_per_s", read / 1e9, "share",
                   read > 0 ? rate_of(result) / read : 0.0);
}

static void print_result(const bench_state *state, const bench_result *result) {
  double read = result->read_bytes_per_second;
  char at[24] = "";
  uint32_t depth = state->arguments->depth;
  if (depth) snprintf(at, sizeof at, " @ d%u", depth);
  printf("%s%-12s %3u threads %10.2f +- %-8.2f tokens/s %8.2f GB/s of %.2f read (%.0f %%)\n",
         result->name, at, stele_session_threads(state->session), result->median, result->spread,
         rate_of(result) / 1e9, read / 1e9, read > 0 ? 100 * rate_of(result) / read : 0.0);
}

/* How many tokens a test takes: the default is cut to what fits, a given number is not. */
static int choose_count(const bench_state *state, const char *option, uint32_t given,
                        uint32_t usual, uint32_t *out_count) {
  uint32_t room = state->capacity - state->arguments->depth;
  if (given == NOT_GIVEN) {
    *out_count = usual < room ? usual : room;
    return CLI_OK;
  }
  if (given > room)
    return cli_fail(state->self,
                    "%s %u after --n-depth %u: the artefact holds %u tokens; compile it with a "
                    "larger --max-cache-len",
                    option, given, state->arguments->depth, state->capacity);
  *out_count = given;
  return CLI_OK;
}

/* A profile is of what was asked for, else of decoding. */
static int choose_counts(const bench_state *state, uint32_t *out_prompt, uint32_t *out_tokens) {
  const bench_arguments *a = state->arguments;
  int code = choose_count(state, "--n-prompt", a->prompt, DEFAULT_PROMPT, out_prompt);
  if (code == CLI_OK) code = choose_count(state, "--n-gen", a->tokens, DEFAULT_TOKENS, out_tokens);
  if (a->profile && a->prompt == NOT_GIVEN) *out_prompt = 0;
  if (a->profile && *out_prompt && a->tokens == NOT_GIVEN) *out_tokens = 0;
  return code;
}

static int run_tests(bench_state *state) {
  bench_result results[2] = {0};
  size_t made = 0;
  uint32_t prompt = 0, tokens = 0;
  int code = choose_counts(state, &prompt, &tokens);
  if (code == CLI_OK && state->arguments->profile) return bench_profile(state, prompt, tokens);
  if (code == CLI_OK && prompt) code = run_prefill(state, prompt, &results[made++]);
  if (code == CLI_OK && tokens) code = run_decode(state, tokens, &results[made++]);
  if (code != CLI_OK) return code;
  json_t *list = state->arguments->json ? json_array() : NULL;
  for (size_t i = 0; i < made; i++) {
    if (list)
      json_array_append_new(list, result_json(state, &results[i]));
    else
      print_result(state, &results[i]);
  }
  if (list) return cli_json_print(state->self, json_pack("{s:o}", "results", list));
  return cli_finish(state->self, CLI_OK);
}

static int prepare(bench_state *state, const char *path, stele_model **out_model) {
  const bench_arguments *arguments = state->arguments;
  stele_sink sink = {0};
  int code = cli_status(state->self, stele_model_open(path, NULL, &sink, out_model), &sink);
  if (code != CLI_OK) return code;
  const stele_artifact *artifact = stele_model_artifact(*out_model);
  state->model = *out_model;
  state->capacity = artifact->capacity;
  if (arguments->depth >= state->capacity)
    return cli_fail(state->self,
                    "--n-depth %u: the artefact holds %u tokens; compile it with a larger "
                    "--max-cache-len",
                    arguments->depth, state->capacity);
  uint32_t width;
  state->read_bytes = step_bytes(state->model, STELE_STEP_DECODE, &width);
  state->ids = malloc(state->capacity * sizeof *state->ids);
  if (!state->ids) return cli_fail(state->self, "out of memory");
  for (uint32_t i = 0; i < state->capacity; i++)
    state->ids[i] = (int32_t)((i * 7919u + 13u) % artifact->vocab);
  return cli_session_create(state->self, state->model, arguments->threads, arguments->cache,
                            &state->session);
}

static int run(const cli_command *self, int argc, char **argv) {
  bench_arguments arguments = {.prompt = NOT_GIVEN, .tokens = NOT_GIVEN, .repetitions = 5};
  const char *path;
  int code;
  if (!cli_parse(self, argc, argv, &arguments, &path, &code)) return code;
  if (arguments.prompt == 0 && arguments.tokens == 0)
    return cli_wrong_use(self, "--n-prompt 0 and --n-gen 0 leave nothing to measure");
  bench_state state = {.self = self, .arguments = &arguments};
  stele_model *model = NULL;
  code = prepare(&state, path, &model);
  if (code == CLI_OK) code = run_tests(&state);
  free(state.ids);
  stele_session_destroy(state.session);
  stele_model_close(model);
  return code;
}

const cli_command cli_command_bench = {
    .name = "bench",
    .operand = "OUT.so",
    .synopsis = "[-p 512] [-n 128] [-d 0] [-t N] [-r 5] [--profile] [--json]",
    .description =
        "Measures prefill (ppN: N tokens of a prompt) and decode (tgN: N tokens, one by one) after "
        "a repetition that warms up. Shown are the median of tokens per second and half the "
        "distance from the slowest to the fastest repetition; the bytes that a token reads "
        "(weights, and for decode the cache at the average length) as GB/s; and beside it what "
        "plain loads read on this machine, in turns with the repetitions, from a buffer as large "
        "as the weights of a decode step, with as many threads. --profile shows instead, for all "
        "ops between two meetings of "
        "the "
        "workers, how long they take, what they read, and how long each worker waits for the "
        "others.",
    .examples =
        "stele bench model.so\n"
        "# decode only, behind 2048 tokens of context, two threads\n"
        "stele bench model.so -p 0 -n 64 -d 2048 -t 2 --json\n"
        "# where the time of a token goes\n"
        "stele bench model.so --profile\n",
    .options = options,
    .run = run,
};
