/* The loop of generation: prompt, then one id after the other until a stop id, a limit, the end of
 * the cache or the caller's word. Running out of cache is an end like any other: the last id that
 * fits is chosen from the logits of a full cache and never fed. */
#include "generate/generate.h"

#include <inttypes.h>
#include <time.h>

const char *stele_finish_name(uint32_t finish) {
  static const char *const names[] = {"stop", "length", "cancelled", "time"};
  return finish < sizeof names / sizeof *names ? names[finish] : "unknown";
}

static double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool is_stop(const stele_artifact *artifact, int32_t id) {
  for (uint32_t i = 0; i < artifact->stop_count; i++)
    if (artifact->stop_ids[i] == id) return true;
  return false;
}

/* Ids that may come after the prompt; call it before the prompt is fed. */
static uint32_t most_ids(const stele_session *session, const stele_generate_options *options,
                         uint32_t prompt_count, uint32_t limit) {
  uint32_t filled = session->lane[options->lane].filled;
  uint64_t used = (uint64_t)filled + prompt_count, capacity = session->artifact->capacity;
  uint32_t most = used > capacity ? 1 : (uint32_t)(capacity - used + 1); /* feeding fails then */
  if (options->max_new_tokens) most = (uint32_t)base_min(most, options->max_new_tokens);
  return (uint32_t)base_min(most, limit);
}

/* Whether generation ends with the last id, and how. */
static bool ends(const generation *g, uint32_t *out_finish) {
  const stele_generate_options *options = g->options;
  int32_t id = g->ids[g->count - 1];
  bool going = !options->on_token || options->on_token(options->on_token_data, id);
  if (!options->ignore_eos && is_stop(g->session->artifact, id))
    *out_finish = STELE_FINISH_STOP;
  else if (!going)
    *out_finish = STELE_FINISH_CANCELLED;
  else if (g->count == g->most)
    *out_finish = STELE_FINISH_LENGTH;
  else
    return false;
  return true;
}

/* Takes up the ids of a run one by one. Where generation ends among them, those behind are
 * forgotten, and so the cache is as it would be had they come alone. */
static stele_status take_run(generation *g, const int32_t *run, uint32_t count, stele_sink *sink,
                             uint32_t *out_finish, bool *out_ended) {
  for (uint32_t i = 0; i < count; i++) {
    g->ids[g->count++] = run[i];
    g->accepted += i + 1 < count; /* the last one is the model's own */
    *out_ended = ends(g, out_finish);
    if (*out_ended) return stele_session_crop(g->session, g->options->lane, count - 1 - i, sink);
  }
  return STELE_OK;
}

static stele_status generate(generation *g, const generate_strategy *strategy, stele_sink *sink,
                             stele_generate_result *result) {
  double start = now_seconds();
  BASE_TRY(strategy->first(g, sink));
  double prefilled = now_seconds();
  g->count = 1;
  bool ended = ends(g, &result->finish);
  while (!ended) {
    const int32_t *run;
    uint32_t count;
    BASE_TRY(strategy->next(g, sink, &run, &count));
    BASE_TRY(take_run(g, run, count, sink, &result->finish, &ended));
  }
  result->prefill_seconds = prefilled - start;
  result->decode_seconds = now_seconds() - prefilled;
  result->generated_tokens = g->count;
  result->drafted_tokens = g->drafted;
  result->accepted_tokens = g->accepted;
  return STELE_OK;
}

static const generate_strategy *choose_strategy(const stele_generate_options *options) {
  return options->prompt_lookup_num_tokens ? &generate_strategy_prompt_lookup
                                           : &generate_strategy_greedy;
}

stele_status stele_generate(stele_session *session, const int32_t *prompt, uint32_t prompt_count,
                            const stele_generate_options *options, int32_t *out_ids, uint32_t limit,
                            stele_sink *sink, stele_generate_result *out_result) {
  stele_generate_options own = {.struct_bytes = sizeof own};
  if (!base_options(&own, sizeof own, options))
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "struct_bytes of the generation options is not set");
  if (own.lane >= session->lanes)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "lane %" PRIu32 " of %" PRIu32, own.lane,
                     session->lanes);
  if (!out_ids || !limit)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "there is no room for generated ids");
  stele_generate_result result = {.prompt_tokens = prompt_count,
                                  .reused_tokens = session->lane[own.lane].filled};
  generation g = {.session = session,
                  .options = &own,
                  .prompt = prompt,
                  .prompt_count = prompt_count,
                  .ids = out_ids,
                  .most = most_ids(session, &own, prompt_count, limit)};
  const generate_strategy *strategy = choose_strategy(&own);
  stele_status status = strategy->begin ? strategy->begin(&g, sink) : STELE_OK;
  if (status == STELE_OK) status = generate(&g, strategy, sink, &result);
  if (strategy->end) strategy->end(&g);
  if (status == STELE_OK && out_result) *out_result = result;
  return status;
}
