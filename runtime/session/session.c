/* Rows of a step's arguments, and running it. Nothing here allocates. */
#include "session/session.h"

#include <inttypes.h>
#include <string.h>

const char *session_output_name(uint32_t output) {
  static const char *const names[] = {"nothing", "the next token", "the last logits", "all logits",
                                      "hidden states"};
  return output < sizeof names / sizeof *names ? names[output] : "an unknown output";
}

const stele_step *session_find_step(const stele_session *session, uint32_t kind, uint32_t lanes,
                                    uint32_t output) {
  const stele_step *best = NULL;
  for (uint32_t i = 0; i < session->variant->step_count; i++) {
    const stele_step *step = &session->variant->steps[i];
    if (step->kind != kind || step->output != output || step->lanes < lanes) continue;
    if (!best || step->lanes < best->lanes) best = step;
  }
  return best;
}

stele_status session_check_ids(const stele_session *session, const int32_t *ids, uint32_t count,
                               stele_sink *sink) {
  uint32_t vocab = session->artifact->vocab;
  for (uint32_t i = 0; i < count; i++)
    if (ids[i] < 0 || (uint32_t)ids[i] >= vocab)
      return base_fail(sink, STELE_INVALID_ARGUMENT,
                       "id %" PRId32 " (number %" PRIu32
                       ") is outside of the vocabulary: 0 to %" PRIu32 " were expected",
                       ids[i], i + 1, vocab - 1);
  return STELE_OK;
}

stele_status session_make_room(stele_session *session, uint32_t lane, uint32_t count,
                               stele_sink *sink) {
  uint32_t filled = session->lane[lane].filled, capacity = session->artifact->capacity;
  uint64_t wanted = (uint64_t)filled + count;
  if (wanted > capacity && !filled)
    return base_fail(sink, STELE_CAPACITY,
                     "%" PRIu32 " tokens do not fit into a cache of %" PRIu32
                     " tokens: compile the model with --max-cache-len %" PRIu64 " or more",
                     count, capacity, wanted);
  if (wanted > capacity)
    return base_fail(sink, STELE_CAPACITY,
                     "%" PRIu64 " tokens (%" PRIu32 " in the cache and %" PRIu32
                     " new) do not fit into a cache of %" PRIu32
                     " tokens: compile the model with --max-cache-len %" PRIu64 " or more",
                     wanted, filled, count, capacity, wanted);
  if (!cache_extend(&session->cache, lane, filled, count))
    return base_fail(sink, STELE_OUT_OF_MEMORY, "no page of the cache is free for lane %" PRIu32,
                     lane);
  return STELE_OK;
}

/* Angles stay the same up to the original length, and with the long rule above it. */
static uint32_t rope_tokens(const stele_rope *rope, uint32_t length) {
  if (length <= rope->original) return rope->original;
  return rope->rule == STELE_ROPE_LONG ? rope->original + 1 : length;
}

/* length 0: each token as if it were the lane's last. */
static void set_rope_rows(stele_session *s, const stele_step *step, uint32_t row, uint32_t count,
                          uint32_t length) {
  float *kind_rows = s->rope_rows;
  for (uint32_t i = 0; i < s->artifact->rope_count; i++) {
    const stele_rope *rope = &s->artifact->ropes[i];
    session_rope *state = &s->ropes[i];
    for (uint32_t t = 0; state->inverse && t < count; t++) {
      size_t slot = (size_t)row * step->width + t;
      int32_t position = s->positions[slot];
      uint32_t tokens = rope_tokens(rope, length ? length : (uint32_t)position + 1);
      if (state->tokens != tokens) session_rope_inverse(rope, tokens, state->inverse);
      state->tokens = tokens;
      session_rope_row(rope, state->inverse, position, kind_rows + slot * rope->rotary);
    }
    kind_rows += (size_t)step->lanes * step->width * rope->rotary;
  }
}

void session_set_row(stele_session *session, const stele_step *step, uint32_t row, uint32_t lane,
                     const int32_t *ids, uint32_t count, uint32_t length) {
  const session_lane *l = &session->lane[lane];
  int32_t *row_ids = session->ids + (size_t)row * step->width;
  int32_t *row_positions = session->positions + (size_t)row * step->width;
  for (uint32_t t = 0; t < step->width; t++) {
    row_ids[t] = t < count ? ids[t] : 0;
    row_positions[t] = t < count ? (int32_t)(l->filled - l->first + t) : 0;
  }
  session->valid[row] = (int32_t)count;
  session->filled[row] = (int32_t)l->filled;
  session->first[row] = (int32_t)l->first;
  session->state_blocks[row] = (int32_t)lane;
  if (session->ropes) set_rope_rows(session, step, row, count, length);
}

static bool consecutive(const uint32_t *lanes, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    if (lanes[i] != lanes[0] + i) return false;
  return true;
}

/* Tables are per lane, a step wants them per row: neighbours are used where they lie, others are
 * brought together. */
static void set_tables(stele_session *s, const uint32_t *lanes, uint32_t count) {
  bool direct = consecutive(lanes, count);
  for (uint32_t g = 0; g < s->artifact->group_count; g++) {
    const cache_group *group = &s->cache.groups[g];
    size_t entries = s->artifact->groups[g].table_entries, bytes = entries * sizeof(int32_t);
    s->read_pages[g] = direct ? group->read_table + lanes[0] * entries : s->gathered_read[g];
    s->store_pages[g] = direct ? group->store_table + lanes[0] * entries : s->gathered_store[g];
    for (uint32_t i = 0; !direct && i < count; i++) {
      memcpy(s->gathered_read[g] + i * entries, group->read_table + lanes[i] * entries, bytes);
      memcpy(s->gathered_store[g] + i * entries, group->store_table + lanes[i] * entries, bytes);
    }
  }
}

/* What a step whose arguments are set does to the lane of a row. */
static cache_step step_of(const stele_session *s, const stele_step *step, uint32_t lane,
                          uint32_t row) {
  return (cache_step){.lane = lane,
                      .filled = s->lane[lane].filled,
                      .count = (uint32_t)s->valid[row],
                      .staged = step->width > 1,
                      .droppable = step->kind == STELE_STEP_VERIFY};
}

void session_run(stele_session *session, const stele_step *step, const uint32_t *lanes,
                 uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    cache_step next = step_of(session, step, lanes[i], i);
    cache_begin(&session->cache, &next);
  }
  set_tables(session, lanes, count);
  for (uint32_t i = count; i < step->lanes; i++) {
    session->valid[i] = session->filled[i] = session->first[i] = session->state_blocks[i] = 0;
    memset(session->ids + (size_t)i * step->width, 0, step->width * sizeof *session->ids);
    memset(session->positions + (size_t)i * step->width, 0,
           step->width * sizeof *session->positions);
  }
  if (session->profile)
    session_profile_run(session, step);
  else
    device_host_run(session->host, step->run, &session->env, &session->args);
  for (uint32_t i = 0; i < count; i++) {
    cache_step done = step_of(session, step, lanes[i], i);
    cache_end(&session->cache, &done);
    session->lane[lanes[i]].filled += done.count;
  }
}

void stele_session_reset(stele_session *session, uint32_t lane) {
  if (lane >= session->lanes) return;
  cache_reset(&session->cache, lane, session->lane[lane].filled);
  session->lane[lane] = (session_lane){0};
}

stele_status stele_session_crop(stele_session *session, uint32_t lane, uint32_t count,
                                stele_sink *sink) {
  if (lane >= session->lanes)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "lane %" PRIu32 " of %" PRIu32, lane,
                     session->lanes);
  session_lane *l = &session->lane[lane];
  if (count > l->filled)
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "%" PRIu32 " tokens are to be dropped, but lane %" PRIu32 " has %" PRIu32,
                     count, lane, l->filled);
  BASE_TRY(cache_crop(&session->cache, lane, l->filled, l->filled - count, sink));
  l->filled -= count;
  l->first = (uint32_t)base_min(l->first, l->filled);
  return STELE_OK;
}

uint32_t stele_session_length(const stele_session *session, uint32_t lane) {
  return lane < session->lanes ? session->lane[lane].filled : 0;
}

uint64_t stele_session_cache_bytes(const stele_session *session) {
  return cache_bytes(&session->cache);
}

uint32_t stele_session_threads(const stele_session *session) { return session->threads; }
