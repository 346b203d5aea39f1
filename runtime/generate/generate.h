/* Generation: a strategy chooses tokens, the loop stops, counts and reports. */
#ifndef STELE_GENERATE_GENERATE_H
#define STELE_GENERATE_GENERATE_H

#include "base/base.h"
#include "session/session.h"
#include "stele/stele.h"

/* How the next id is chosen: one file and one row of strategies.def each. Both feed what they are
 * given to the lane and return the id that follows. */
typedef struct generate_strategy {
  const char *name;
  stele_status (*first)(stele_session *session, uint32_t lane, const int32_t *prompt,
                        uint32_t count, stele_sink *sink, int32_t *out_id);
  stele_status (*next)(stele_session *session, uint32_t lane, int32_t id, stele_sink *sink,
                       int32_t *out_id);
} generate_strategy;

#define X(name) extern const generate_strategy generate_strategy_##name;
#include "generate/strategies.def"
#undef X

#endif
