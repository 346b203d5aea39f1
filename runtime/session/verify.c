/* A verify step: what several ids of one lane would give if they were decoded one after the other,
 * for little more than the price of one, since the weights are read once. Who guessed the ids drops
 * those that turn out wrong with stele_session_crop. */
#include <inttypes.h>
#include <string.h>

#include "session/session.h"

static const stele_step *find_step(const stele_session *s) {
  return session_find_step(s, STELE_STEP_VERIFY, 1, STELE_OUTPUT_TOKEN);
}

uint32_t session_verify_width(const stele_session *session) {
  const stele_step *step = find_step(session);
  return step ? step->width : 0;
}

uint32_t session_verify_room(const stele_session *session, uint32_t lane) {
  return cache_room(&session->cache, session->lane[lane].filled, session_verify_width(session));
}

stele_status session_verify(stele_session *session, uint32_t lane, const int32_t *ids,
                            uint32_t count, int32_t *out_ids, stele_sink *sink) {
  const stele_step *step = find_step(session);
  uint32_t width = step ? step->width : 0;
  if (!count || count > width)
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "%" PRIu32 " ids to verify, the model was compiled for at most %" PRIu32,
                     count, width);
  BASE_TRY(session_check_ids(session, ids, count, sink));
  BASE_TRY(session_make_room(session, lane, count, sink));
  uint32_t room = session_verify_room(session, lane);
  if (count > room)
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "%" PRIu32 " ids to verify, a window of lane %" PRIu32 " can take %" PRIu32
                     " and drop them again",
                     count, lane, room);
  session_set_row(session, step, 0, lane, ids, count, 0);
  session->args.out_tokens = session->tokens;
  session->args.out_logits = session->args.out_hidden = NULL;
  session_run(session, step, &lane, 1);
  memcpy(out_ids, session->tokens, count * sizeof *out_ids);
  return STELE_OK;
}
