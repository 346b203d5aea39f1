/* A session: lanes, their cache, the tensors that grow, and the workers that run its steps. */
#ifndef STELE_SESSION_SESSION_H
#define STELE_SESSION_SESSION_H

#include "base/base.h"
#include "cache/cache.h"
#include "device/device.h"
#include "model/model.h"
#include "stele/stele.h"

/* ---- rope rows ------------------------------------------------------------------------- */

/* inverse[rotary / 2] for n tokens, as the rule says. */
void session_rope_inverse(const stele_rope *rope, uint32_t tokens, float *inverse);
/* One row: rotary / 2 cosines, rotary / 2 sines. */
void session_rope_row(const stele_rope *rope, const float *inverse, int32_t position, float *row);

/* A rope whose angles depend on how many tokens there are. */
typedef struct session_rope {
  float *inverse;  /* [rotary / 2], NULL where the rule is fixed */
  uint32_t tokens; /* that inverse was computed for, 0: not yet */
} session_rope;

/* ---- sessions -------------------------------------------------------------------------- */

typedef struct session_lane {
  uint32_t filled; /* tokens in the cache: the slot of the next one */
  uint32_t first;  /* first slot that may be seen; slots before it are padding */
} session_lane;

/* Notes of when workers meet (profile.c). */
typedef struct session_profile session_profile;

struct stele_session {
  const stele_model *model;
  const stele_artifact *artifact;
  const stele_variant *variant;
  base_allocator allocator;
  uint32_t lanes, threads;

  session_lane *lane; /* [lanes] */
  cache cache;
  device_host *host;
  session_profile *profile; /* NULL: steps are not reported */
  stele_env env;
  uint8_t *workspace;

  /* Arguments of a step. rows: the most lanes of any step; slots: the most lanes * width. */
  uint32_t rows, slots;
  stele_step_args args;
  int32_t *ids, *positions, *tokens;              /* [slots] */
  int32_t *valid, *filled, *first, *state_blocks; /* [rows] */
  const int32_t **read_pages, **store_pages;      /* [groups] */
  int32_t **gathered_read, **gathered_store;      /* [groups] -> [rows][table_entries] */
  session_rope *ropes;                            /* [rope_count], NULL: none needs rows */
  float *rope_rows;                               /* [rope kinds][slots][rotary] */
  float *hidden;                                  /* [layers + 1][width][hidden] of one step */
  size_t hidden_bytes;
};

/* The step of a kind and an output with the fewest lanes that are enough, or NULL. */
const stele_step *session_find_step(const stele_session *session, uint32_t kind, uint32_t lanes,
                                    uint32_t output);
/* "token", "hidden states" ... for messages. */
const char *session_output_name(uint32_t output);

/* What is checked before anything is computed: ids against the vocabulary; count more tokens of a
 * lane against the capacity, for which pages are taken. */
stele_status session_check_ids(const stele_session *session, const int32_t *ids, uint32_t count,
                               stele_sink *sink) STELE_MUST_USE;
stele_status session_make_room(stele_session *session, uint32_t lane, uint32_t count,
                               stele_sink *sink) STELE_MUST_USE;

/* Sets row `row` of the arguments: the next count ids of a lane. length: tokens of the lane when
 * the whole feed is done, which some ropes depend on; 0: as if each id were fed by itself. */
void session_set_row(stele_session *session, const stele_step *step, uint32_t row, uint32_t lane,
                     const int32_t *ids, uint32_t count, uint32_t length);
/* Runs the step whose arguments are set and reports it; ends a profile, if there is one. */
void session_profile_run(stele_session *session, const stele_step *step);
void session_profile_end(stele_session *session);
/* Runs a step for lanes[0 .. count), whose rows were set; rows behind them are empty. Lanes have
 * grown when it returns. */
void session_run(stele_session *session, const stele_step *step, const uint32_t *lanes,
                 uint32_t count);

/* Feeds count ids to a lane, as so many decode steps would, in the model's verify step; ids that
 * follow, one for each, go into out_ids. count is at most the room; any of them can be dropped
 * before the lane's next step. */
stele_status session_verify(stele_session *session, uint32_t lane, const int32_t *ids,
                            uint32_t count, int32_t *out_ids, stele_sink *sink) STELE_MUST_USE;
/* Tokens of the verify step, 0: the model was compiled without. */
uint32_t session_verify_width(const stele_session *session);
/* Tokens that it can take from a lane now: fewer where a window would have to let go of others that
 * are seen once these are dropped. At least 2, but for the width and the capacity. */
uint32_t session_verify_room(const stele_session *session, uint32_t lane);

#endif
