/* Greedy: the most likely id, ties to the lowest. Token steps choose it inside the model's code, so
 * logits are never written. */
#include "generate/generate.h"

static stele_status first(stele_session *session, uint32_t lane, const int32_t *prompt,
                          uint32_t count, stele_sink *sink, int32_t *out_id) {
  return stele_session_feed(session, lane, prompt, count, STELE_OUTPUT_TOKEN, out_id, sink);
}

static stele_status next(stele_session *session, uint32_t lane, int32_t id, stele_sink *sink,
                         int32_t *out_id) {
  return stele_session_step(session, &lane, &id, 1, STELE_OUTPUT_TOKEN, out_id, sink);
}

const generate_strategy generate_strategy_greedy = {"greedy", first, next};
