/* Prompt lookup: greedy ids, several at a time where the text repeats itself. What followed the
 * last ids where they stood before is guessed to follow now; a verify step says what the model
 * would have said after each, and the longest run of right guesses counts, and the id after it
 * (Saxena, "Prompt lookup decoding", 2023; the acceptance of greedy speculative decoding).
 *
 * How many to guess: the longer the context that was found, the likelier it goes on, so a context
 * of n ids vouches for n - 1 more, in whole passes of PASS tokens, one of them at least.
 *
 * When to guess: a verify step costs more than a decode step, about one more for each PASS tokens,
 * and a text that seems to repeat itself but never does must not be slowed down by it. So guesses
 * are paid for from a purse, in decode steps: every right guess adds one, every plain step a small
 * part of one, and nothing is guessed that the purse can't pay. What is lost is then at most that
 * part, and the few steps that the purse holds. */
#include "generate/generate.h"
#include "generate/lookup.h"

#define PASS 4u     /* tokens */
#define CONTEXT 16u /* ids looked for, or as many as vouch for all that may be guessed */
#define STEP 32u
#define PURSE_AT_FIRST (2 * STEP)
#define PURSE_AT_MOST (8 * STEP)
#define PURSE_PER_PLAIN_STEP 1u /* of STEP */

typedef struct state {
  lookup text;
  uint32_t most;  /* ids guessed at a time */
  uint32_t purse; /* in STEPs of a decode step */
  int32_t *fed;   /* [most + 1] to a verify step: the last id, then the guesses */
  int32_t *run;   /* [most + 1] what the model says after each */
} state;

static uint32_t price(uint32_t guesses) { return (guesses + PASS) / PASS * STEP; }

static uint32_t earn(uint32_t purse, uint32_t more) {
  return (uint32_t)base_min(purse + more, PURSE_AT_MOST);
}

static void end(generation *g) {
  state *s = g->state;
  if (!s) return;
  lookup_deinit(&s->text);
  base_release(&g->session->allocator, s->fed);
  base_release(&g->session->allocator, s);
}

static stele_status begin(generation *g, stele_sink *sink) {
  const base_allocator *allocator = &g->session->allocator;
  uint32_t width = session_verify_width(g->session);
  size_t limit;
  if (width < 2)
    return base_fail(sink, STELE_UNSUPPORTED,
                     "the model was compiled without a verify step, which prompt lookup needs: "
                     "compile it with --verify 8");
  if (!base_add(g->prompt_count, g->most, &limit) || limit > UINT32_MAX)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "a text of that length cannot be looked up");
  state *s = g->state = base_allocate(allocator, 1, sizeof *s);
  if (!s) return base_fail(sink, STELE_OUT_OF_MEMORY, "memory for prompt lookup could not be had");
  s->most = (uint32_t)base_min(g->options->prompt_lookup_num_tokens, width - 1);
  s->purse = PURSE_AT_FIRST;
  s->fed = base_allocate(allocator, 2 * ((size_t)s->most + 1), sizeof *s->fed);
  if (!s->fed)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "memory for prompt lookup could not be had");
  s->run = s->fed + s->most + 1;
  return lookup_init(&s->text, (uint32_t)limit, sink);
}

static stele_status first(generation *g, stele_sink *sink) {
  state *s = g->state;
  BASE_TRY(generate_strategy_greedy.first(g, sink));
  lookup_append(&s->text, g->prompt, g->prompt_count);
  lookup_append(&s->text, g->ids, 1);
  return STELE_OK;
}

/* Writes guesses behind the last id; how many. One id less than may still come is of use: the model
 * adds one of its own. */
static uint32_t guess(const generation *g, state *s) {
  uint32_t longest = (uint32_t)base_max(s->most + 1, CONTEXT), context;
  uint32_t place = lookup_find(&s->text, longest, &context);
  uint32_t count = (uint32_t)base_min(s->most, g->most - g->count - 1);
  if (!place) return 0;
  count = (uint32_t)base_min(count, base_max(context / PASS * PASS, PASS) - 1);
  count = (uint32_t)base_min(count, s->purse / STEP * PASS - base_min(s->purse / STEP, 1));
  count = (uint32_t)base_min(count, session_verify_room(g->session, g->options->lane) - 1);
  s->fed[0] = g->ids[g->count - 1];
  lookup_copy(&s->text, place, count, s->fed + 1);
  return count;
}

static stele_status check(generation *g, state *s, uint32_t guesses, stele_sink *sink,
                          uint32_t *out_count) {
  uint32_t lane = g->options->lane, right = 0;
  BASE_TRY(session_verify(g->session, lane, s->fed, guesses + 1, s->run, sink));
  while (right < guesses && s->run[right] == s->fed[right + 1]) right++;
  BASE_TRY(stele_session_crop(g->session, lane, guesses - right, sink));
  s->purse = earn(s->purse - price(guesses), right * STEP);
  g->drafted += guesses;
  *out_count = right + 1;
  return STELE_OK;
}

static stele_status next(generation *g, stele_sink *sink, const int32_t **out_run,
                         uint32_t *out_count) {
  state *s = g->state;
  uint32_t guesses = guess(g, s);
  *out_run = s->run;
  if (guesses) {
    BASE_TRY(check(g, s, guesses, sink, out_count));
  } else {
    BASE_TRY(generate_strategy_greedy.next(g, sink, out_run, out_count));
    s->purse = earn(s->purse, PURSE_PER_PLAIN_STEP);
  }
  lookup_append(&s->text, *out_run, *out_count);
  return STELE_OK;
}

const generate_strategy generate_strategy_prompt_lookup = {"prompt lookup", begin, end, first,
                                                           next};
