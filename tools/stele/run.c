/* stele run: a prompt in, text out, piece by piece as it is generated. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct run_arguments {
  cli_prompt prompt;
  uint32_t max_new_tokens, lookup, threads, cache;
  bool ignore_eos, json, quiet;
} run_arguments;

static const cli_option options[] = {
    CLI_PROMPT_OPTIONS(run_arguments),
    {CLI_COUNT, 'n', "max-new-tokens", "N", offsetof(run_arguments, max_new_tokens), 1, INT32_MAX,
     NULL, "stop after so many tokens [a stop id or the capacity]"},
    {CLI_FLAG, 0, "ignore-eos", NULL, offsetof(run_arguments, ignore_eos), 0, 0, NULL,
     "go on past a stop id"},
    {CLI_COUNT, 0, "prompt-lookup-num-tokens", "N", offsetof(run_arguments, lookup), 1, INT32_MAX,
     NULL,
     "guess up to N ids at a time from what followed the last ones before, and check them at once: "
     "the same ids, sooner where the text repeats itself [no guesses]"},
    CLI_SESSION_OPTIONS(run_arguments),
    {CLI_FLAG, 0, "json", NULL, offsetof(run_arguments, json), 0, 0, NULL,
     "print ids, text, the reason of the end and statistics as JSON at the end"},
    {CLI_FLAG, 'q', "quiet", NULL, offsetof(run_arguments, quiet), 0, 0, NULL,
     "no statistics on standard error"},
    {0},
};

static volatile sig_atomic_t interrupted;
static void on_interrupt(int number) {
  (void)number;
  interrupted = 1;
}

/* What a generation needs and leaves behind. */
typedef struct run_state {
  const cli_command *self;
  const run_arguments *arguments;
  stele_model *model;
  stele_session *session;
  stele_stream *stream; /* NULL: the artefact has no tokenizer */
  base_buffer text;
  int32_t *prompt, *ids;
  uint32_t prompt_count, limit, shown;
  double load_seconds;
  stele_generate_result result;
} run_state;

static void show_piece(run_state *state, const char *text, size_t bytes) {
  if (state->arguments->json) {
    base_buffer_append(&state->text, text, bytes);
  } else if (bytes) {
    fwrite(text, 1, bytes, stdout);
    fflush(stdout);
  }
}

/* A token: its text, or its number where there is no tokenizer. Allocations made here are not the
 * decode step's, so they aren't counted. */
static bool on_token(void *data, int32_t id) {
  run_state *state = data;
  cli_allocations_count(false);
  const char *text = "";
  size_t bytes = 0;
  if (state->stream) {
    if (stele_stream_put(state->stream, id, &text, &bytes) == STELE_OK)
      show_piece(state, text, bytes);
  } else if (!state->arguments->json) {
    printf(state->shown ? ",%d" : "%d", id);
    fflush(stdout);
  }
  state->shown++;
  bool go_on = !interrupted && !ferror(stdout);
  cli_allocations_count(true);
  return go_on;
}

/* The number of ids that can come: at capacity C a prompt of P gives at most C - P + 1. */
static uint32_t token_limit(const run_state *state) {
  uint32_t room = stele_model_artifact(state->model)->capacity - state->prompt_count + 1;
  uint32_t wanted = state->arguments->max_new_tokens;
  return wanted && wanted < room ? wanted : room;
}

static int open_stream(run_state *state) {
  stele_sink sink = {0};
  stele_status status = stele_stream_create(state->model, true, &sink, &state->stream);
  if (status == STELE_NOT_FOUND || status == STELE_UNSUPPORTED) return CLI_OK;
  return cli_status(state->self, status, &sink);
}

static int prepare(run_state *state, const char *path) {
  const run_arguments *arguments = state->arguments;
  double start = cli_seconds();
  stele_sink sink = {0};
  int code = cli_status(state->self, stele_model_open(path, NULL, &sink, &state->model), &sink);
  state->load_seconds = cli_seconds() - start;
  if (code == CLI_OK)
    code = cli_prompt_ids(state->self, &arguments->prompt, state->model, &state->prompt,
                          &state->prompt_count);
  if (code != CLI_OK) return code;
  start = cli_seconds();
  code = cli_session_create(state->self, state->model, arguments->threads, arguments->cache,
                            &state->session);
  state->load_seconds += cli_seconds() - start;
  if (code == CLI_OK) code = open_stream(state);
  if (code != CLI_OK) return code;
  state->limit = token_limit(state);
  state->ids = malloc(state->limit * sizeof *state->ids);
  return state->ids ? CLI_OK : cli_fail(state->self, "out of memory");
}

static int generate(run_state *state) {
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGINT, &action, NULL); /* the second one ends the program at once */
  stele_generate_options wanted = {.struct_bytes = sizeof wanted,
                                   .max_new_tokens = state->limit,
                                   .ignore_eos = state->arguments->ignore_eos,
                                   .on_token = on_token,
                                   .on_token_data = state,
                                   .prompt_lookup_num_tokens = state->arguments->lookup};
  stele_sink sink = {0};
  stele_status status = stele_generate(state->session, state->prompt, state->prompt_count, &wanted,
                                       state->ids, state->limit, &sink, &state->result);
  cli_allocations_count(false);
  const char *text;
  size_t bytes;
  if (status == STELE_OK && state->stream &&
      stele_stream_end(state->stream, &text, &bytes) == STELE_OK)
    show_piece(state, text, bytes);
  return cli_status(state->self, status, &sink);
}

static uint32_t decode_steps(const run_state *state) {
  uint32_t tokens = state->result.generated_tokens;
  return tokens ? tokens - 1 : 0;
}

static double decode_rate(const run_state *state) {
  double seconds = state->result.decode_seconds;
  return seconds > 0 ? decode_steps(state) / seconds : 0;
}

/* NULL (JSON null) where allocations can't be counted or no step was taken. */
static json_t *allocations_per_step(const run_state *state) {
  uint32_t steps = decode_steps(state);
  if (!cli_allocations_known() || !steps) return json_null();
  uint64_t count = cli_allocations();
  if (count % steps == 0) return json_integer((json_int_t)(count / steps));
  return json_real((double)count / steps);
}

static json_t *ids_json(const int32_t *ids, uint32_t count) {
  json_t *array = json_array();
  for (uint32_t i = 0; i < count; i++) json_array_append_new(array, json_integer(ids[i]));
  return array;
}

static int print_json(const run_state *state) {
  const stele_generate_result *result = &state->result;
  uint64_t weight_bytes;
  stele_model_weights(state->model, &weight_bytes);
  return cli_json_print(
      state->self,
      json_pack(
          "{s:o,s:o,s:s%,s:s,s:{s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:o,s:I,s:I,s:I}}",
          "prompt_ids", ids_json(state->prompt, state->prompt_count), "ids",
          ids_json(state->ids, result->generated_tokens), "text",
          state->text.data ? (const char *)state->text.data : "", state->text.size, "finish_reason",
          stele_finish_name(result->finish), "stats", "prompt_tokens",
          (json_int_t)result->prompt_tokens, "reused_tokens", (json_int_t)result->reused_tokens,
          "generated_tokens", (json_int_t)result->generated_tokens, "drafted_tokens",
          (json_int_t)result->drafted_tokens, "accepted_tokens",
          (json_int_t)result->accepted_tokens, "load_s", state->load_seconds, "prefill_s",
          result->prefill_seconds, "decode_s", result->decode_seconds, "decode_tokens_per_s",
          decode_rate(state), "allocations_per_step", allocations_per_step(state), "cache_bytes",
          (json_int_t)stele_session_cache_bytes(state->session), "weight_bytes",
          (json_int_t)weight_bytes, "threads", (json_int_t)stele_session_threads(state->session)));
}

static int report(const run_state *state) {
  const stele_generate_result *result = &state->result;
  if (state->arguments->json) return print_json(state);
  putchar('\n');
  fflush(stdout); /* before what goes to standard error */
  if (!state->arguments->quiet)
    cli_note("%u prompt tokens in %.3f s, %u generated at %.1f tokens/s (%s); loaded in %.3f s",
             result->prompt_tokens, result->prefill_seconds, result->generated_tokens,
             decode_rate(state), stele_finish_name(result->finish), state->load_seconds);
  if (!state->arguments->quiet && state->arguments->lookup)
    cli_note("%u ids were guessed, %u of them right", result->drafted_tokens,
             result->accepted_tokens);
  return cli_finish(state->self, CLI_OK);
}

static int run(const cli_command *self, int argc, char **argv) {
  run_arguments arguments = {0};
  const char *path;
  int code;
  if (!cli_parse(self, argc, argv, &arguments, &path, &code)) return code;
  if (!cli_prompt_check(self, &arguments.prompt, &code)) return code;
  run_state state = {.self = self, .arguments = &arguments};
  code = prepare(&state, path);
  if (code == CLI_OK) code = generate(&state);
  if (code == CLI_OK) code = report(&state);
  stele_stream_destroy(state.stream);
  stele_session_destroy(state.session);
  stele_model_close(state.model);
  base_buffer_deinit(&state.text);
  free(state.prompt);
  free(state.ids);
  return code;
}

const cli_command cli_command_run = {
    .name = "run",
    .operand = "OUT.so",
    .synopsis = "(--prompt TEXT | --prompt-file FILE | --ids LIST) [options]",
    .description =
        "Generates text greedily with a compiled model and prints it as it comes. A prompt is raw "
        "text, with the special tokens that the tokenizer adds by itself; ids are taken as they "
        "are. Ctrl-C ends the generation gently. With --json, stats.allocations_per_step counts "
        "the calls of malloc, calloc, realloc, their aligned forms and mmap by any thread while "
        "decode steps run.",
    .examples =
        "stele run model.so --prompt 'The capital of France is' --max-new-tokens 16\n"
        "# a prompt from a pipe, two threads\n"
        "echo 'Once upon a time' | stele run model.so --prompt-file - --threads 2\n"
        "# for programs\n"
        "stele run model.so --ids 504,3575,282 --ignore-eos -n 8 --json\n"
        "# a text that quotes its prompt\n"
        "stele run model.so --prompt-file edit.txt --prompt-lookup-num-tokens 7\n",
    .options = options,
    .run = run,
};
