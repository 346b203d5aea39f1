/* One decode step of several lanes: the smallest compiled number of lanes that holds them. */
#include <inttypes.h>
#include <string.h>

#include "session/session.h"

static stele_status check_lanes(const stele_session *s, const uint32_t *lanes, uint32_t count,
                                stele_sink *sink) {
  if (!count || count > s->lanes)
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "a step of %" PRIu32 " lanes: 1 to %" PRIu32 " were expected", count,
                     s->lanes);
  for (uint32_t i = 0; i < count; i++) {
    if (lanes[i] >= s->lanes)
      return base_fail(sink, STELE_INVALID_ARGUMENT, "lane %" PRIu32 " of %" PRIu32, lanes[i],
                       s->lanes);
    for (uint32_t j = 0; j < i; j++)
      if (lanes[i] == lanes[j])
        return base_fail(sink, STELE_INVALID_ARGUMENT, "lane %" PRIu32 " was given twice",
                         lanes[i]);
  }
  return STELE_OK;
}

stele_status stele_session_step(stele_session *session, const uint32_t *lanes, const int32_t *ids,
                                uint32_t count, uint32_t output, void *out, stele_sink *sink) {
  if (!lanes || !ids || !out || (output != STELE_OUTPUT_TOKEN && output != STELE_OUTPUT_LAST))
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "a step needs lanes, ids and a place for tokens or logits");
  BASE_TRY(check_lanes(session, lanes, count, sink));
  BASE_TRY(session_check_ids(session, ids, count, sink));
  const stele_step *step = session_find_step(session, STELE_STEP_DECODE, count, output);
  if (!step)
    return base_fail(sink, STELE_UNSUPPORTED,
                     "the model was compiled without a step of %" PRIu32 " lanes that gives %s",
                     count, session_output_name(output));
  for (uint32_t i = 0; i < count; i++) BASE_TRY(session_make_room(session, lanes[i], 1, sink));
  for (uint32_t i = 0; i < count; i++) {
    const session_lane *lane = &session->lane[lanes[i]];
    session_set_row(session, step, i, lanes[i], ids + i, 1, lane->filled - lane->first + 1);
  }
  session->args.out_tokens = session->tokens;
  session->args.out_logits = output == STELE_OUTPUT_LAST ? out : NULL;
  session->args.out_hidden = NULL;
  session_run(session, step, lanes, count);
  if (output == STELE_OUTPUT_TOKEN) memcpy(out, session->tokens, count * sizeof(int32_t));
  return STELE_OK;
}
