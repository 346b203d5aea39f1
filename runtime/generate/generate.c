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

/* Whether generation ends with this id, and how. */
static bool ends(const stele_session *session, const stele_generate_options *options, int32_t id,
                 uint32_t generated, uint32_t most, uint32_t *out_finish) {
  bool going = !options->on_token || options->on_token(options->on_token_data, id);
  if (!options->ignore_eos && is_stop(session->artifact, id))
    *out_finish = STELE_FINISH_STOP;
  else if (!going)
    *out_finish = STELE_FINISH_CANCELLED;
  else if (generated == most)
    *out_finish = STELE_FINISH_LENGTH;
  else
    return false;
  return true;
}

static stele_status generate(stele_session *session, const generate_strategy *strategy,
                             const int32_t *prompt, uint32_t prompt_count,
                             const stele_generate_options *options, int32_t *out_ids,
                             uint32_t limit, stele_sink *sink, stele_generate_result *result) {
  uint32_t most = most_ids(session, options, prompt_count, limit), n = 0;
  int32_t id;
  double start = now_seconds();
  BASE_TRY(strategy->first(session, options->lane, prompt, prompt_count, sink, &id));
  double prefilled = now_seconds();
  out_ids[n++] = id;
  while (!ends(session, options, id, n, most, &result->finish)) {
    BASE_TRY(strategy->next(session, options->lane, id, sink, &id));
    out_ids[n++] = id;
  }
  result->prefill_seconds = prefilled - start;
  result->decode_seconds = now_seconds() - prefilled;
  result->generated_tokens = n;
  return STELE_OK;
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
  BASE_TRY(generate(session, &generate_strategy_greedy, prompt, prompt_count, &own, out_ids, limit,
                    sink, &result));
  if (out_result) *out_result = result;
  return STELE_OK;
}
