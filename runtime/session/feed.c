/* Feeding a lane: the prompt goes through prefill steps of fixed width, the last one with a masked
 * tail; a single token, or every token where no prefill step gives the output, goes through the
 * one-lane decode step. Outputs of chunks are gathered into the caller's array. */
#include <inttypes.h>
#include <string.h>

#include "session/session.h"

/* The steps of one feed: of one token and of many, for all chunks but the last, and for the last.
 */
typedef struct plan {
  const stele_step *one, *last_one;
  const stele_step *many, *last_many;
  uint32_t width; /* tokens of a whole chunk */
} plan;

typedef struct feed {
  uint32_t lane, count, length, output;
  const int32_t *ids;
  void *out;
} feed;

/* A step that leaves a token behind serves where nothing is wanted. */
static const stele_step *find(const stele_session *s, uint32_t kind, uint32_t output) {
  const stele_step *step = session_find_step(s, kind, 1, output);
  if (!step && output == STELE_OUTPUT_NONE)
    step = session_find_step(s, kind, 1, STELE_OUTPUT_TOKEN);
  return step && step->lanes == 1 ? step : NULL;
}

static bool of_every_token(uint32_t output) {
  return output == STELE_OUTPUT_ALL || output == STELE_OUTPUT_HIDDEN;
}

static stele_status make_plan(const stele_session *s, uint32_t count, uint32_t output,
                              stele_sink *sink, plan *out_plan) {
  uint32_t before = of_every_token(output) ? output : STELE_OUTPUT_NONE;
  uint32_t single = output == STELE_OUTPUT_ALL ? STELE_OUTPUT_LAST : output;
  plan p = {.last_one = find(s, STELE_STEP_DECODE, single),
            .last_many = find(s, STELE_STEP_PREFILL, output),
            .many = find(s, STELE_STEP_PREFILL, before)};
  p.one = of_every_token(output) ? p.last_one : find(s, STELE_STEP_DECODE, STELE_OUTPUT_NONE);
  p.width = p.many && p.last_many ? (uint32_t)base_min(p.many->width, p.last_many->width) : 1;
  uint32_t tail = (count - 1) % p.width + 1;
  bool good = tail == 1 ? p.last_one || p.last_many : p.last_many != NULL;
  if (count > p.width) good = good && (p.width == 1 ? p.one : p.many);
  if (!good)
    return base_fail(sink, STELE_UNSUPPORTED, "the model was compiled without a step that gives %s",
                     session_output_name(output));
  *out_plan = p;
  return STELE_OK;
}

/* Where a step leaves its output; what can't be in the caller's array at once is gathered. */
static void set_outputs(stele_session *s, const feed *f, const stele_step *step, uint32_t done) {
  float *logits = f->out;
  size_t row = of_every_token(f->output) ? done : 0;
  s->args.out_tokens = s->tokens;
  s->args.out_hidden = s->hidden;
  s->args.out_logits = step->output == STELE_OUTPUT_LAST || step->output == STELE_OUTPUT_ALL
                           ? logits + row * s->artifact->vocab
                           : NULL;
}

static void gather_hidden(const stele_session *s, const feed *f, const stele_step *step,
                          uint32_t done, uint32_t count) {
  size_t hidden = s->artifact->hidden;
  float *out = f->out;
  for (size_t l = 0; l <= s->artifact->layers; l++)
    memcpy(out + (l * f->count + done) * hidden, s->hidden + l * step->width * hidden,
           count * hidden * sizeof *out);
}

static void run_chunks(stele_session *s, const feed *f, const plan *p) {
  for (uint32_t done = 0, n; done < f->count; done += n) {
    uint32_t left = f->count - done;
    n = (uint32_t)base_min(left, p->width);
    bool last = n == left;
    const stele_step *one = last ? p->last_one : p->one, *many = last ? p->last_many : p->many;
    const stele_step *step = (n == 1 && one) || p->width == 1 ? one : many;
    set_outputs(s, f, step, done);
    session_set_row(s, step, 0, f->lane, f->ids + done, n, f->length);
    session_run(s, step, &f->lane, 1);
    if (f->output == STELE_OUTPUT_HIDDEN) gather_hidden(s, f, step, done, n);
  }
  if (f->output == STELE_OUTPUT_TOKEN) *(int32_t *)f->out = s->tokens[0];
}

stele_status stele_session_feed(stele_session *session, uint32_t lane, const int32_t *ids,
                                uint32_t count, uint32_t output, void *out, stele_sink *sink) {
  plan p;
  if (lane >= session->lanes)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "lane %" PRIu32 " of %" PRIu32, lane,
                     session->lanes);
  if (!count || !ids)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "no ids were given, at least one was expected");
  if (output > STELE_OUTPUT_HIDDEN || !out != (output == STELE_OUTPUT_NONE))
    return base_fail(sink, STELE_INVALID_ARGUMENT, "output %" PRIu32 " %s", output,
                     output > STELE_OUTPUT_HIDDEN ? "is unknown"
                     : out                        ? "leaves nothing, but a place for it was given"
                                                  : "has no place to go to");
  BASE_TRY(session_check_ids(session, ids, count, sink));
  BASE_TRY(make_plan(session, count, output, sink, &p));
  BASE_TRY(session_make_room(session, lane, count, sink));
  const feed f = {.lane = lane,
                  .count = count,
                  .length = session->lane[lane].filled - session->lane[lane].first + count,
                  .output = output,
                  .ids = ids,
                  .out = out};
  run_chunks(session, &f, &p);
  return STELE_OK;
}
