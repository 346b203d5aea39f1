/* Greedy: the most likely id, ties to the lowest. Token steps choose it inside the model's code, so
 * logits are never written. */
#include "generate/generate.h"

static stele_status first(generation *g, stele_sink *sink) {
  return stele_session_feed(g->session, g->options->lane, g->prompt, g->prompt_count,
                            STELE_OUTPUT_TOKEN, g->ids, sink);
}

static stele_status next(generation *g, stele_sink *sink, const int32_t **out_run,
                         uint32_t *out_count) {
  BASE_TRY(stele_session_step(g->session, &g->options->lane, &g->ids[g->count - 1], 1,
                              STELE_OUTPUT_TOKEN, &g->ids[g->count], sink));
  *out_run = &g->ids[g->count];
  *out_count = 1;
  return STELE_OK;
}

const generate_strategy generate_strategy_greedy = {.name = "greedy", .first = first, .next = next};
