/* Generation: a strategy chooses tokens, the loop stops, counts and reports. */
#ifndef STELE_GENERATE_GENERATE_H
#define STELE_GENERATE_GENERATE_H

#include "base/base.h"
#include "session/session.h"
#include "stele/stele.h"

/* One generation in the making. */
typedef struct generation {
  stele_session *session;
  const stele_generate_options *options;
  const int32_t *prompt;
  uint32_t prompt_count;
  int32_t *ids;         /* [count] those chosen so far, room for `most` */
  uint32_t count, most; /* at least one more may come while a strategy is asked */
  uint32_t drafted, accepted;
  void *state; /* the strategy's own */
} generation;

/* How the next ids are chosen: one file and one row of strategies.def each. */
typedef struct generate_strategy {
  const char *name;
  /* Has what it needs, before the prompt is fed; gives it back, also when begin failed. NULL: needs
   * nothing. */
  stele_status (*begin)(generation *g, stele_sink *sink);
  void (*end)(generation *g);
  /* Feeds the prompt; writes the first id. */
  stele_status (*first)(generation *g, stele_sink *sink);
  /* Chooses one id or more, a run, at most `most` in all; good until the next call. The cache then
   * has all but the last. */
  stele_status (*next)(generation *g, stele_sink *sink, const int32_t **out_run,
                       uint32_t *out_count);
} generate_strategy;

#define X(name) extern const generate_strategy generate_strategy_##name;
#include "generate/strategies.def"
#undef X

#endif
