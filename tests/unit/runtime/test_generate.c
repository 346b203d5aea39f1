/* Greedy generation: stopping, limits, the end of the cache, cancelling, continuing. */
#include "testing.h"

#define VOCAB 97

typedef struct fixture {
  fake_config config;
  stele_model *model;
  stele_session *session;
  int32_t prompt[64], ids[201], expected[200];
  uint32_t drafted, accepted; /* of all generations with guesses */
} fixture;

/* What the model says after the prompt, as far as the array goes. */
static void expect(fixture *f, uint32_t prompt_count, uint32_t count) {
  int32_t all[300];
  memcpy(all, f->prompt, prompt_count * sizeof *all);
  for (uint32_t i = 0; i < count; i++)
    f->expected[i] = all[prompt_count + i] = fake_next(&f->config, all, prompt_count + i);
}

static fixture *set_up_threads(fake_config config, uint32_t threads) {
  fixture *f = calloc(1, sizeof *f);
  f->config = config;
  f->model = open_fake(&config);
  f->session = create_session(f->model, 2, threads, STELE_CACHE_DYNAMIC);
  fill_ids(f->prompt, 64, 11, VOCAB);
  return f;
}

static fixture *set_up(fake_config config) { return set_up_threads(config, 2); }

static void tear_down(fixture *f) {
  stele_session_destroy(f->session);
  stele_model_close(f->model);
  free(f);
}

static stele_generate_result generate(fixture *f, uint32_t prompt_count,
                                      const stele_generate_options *options, uint32_t limit) {
  stele_generate_result result = {0};
  memset(f->ids, 0xff, sizeof f->ids);
  assert_ok(
      stele_generate(f->session, f->prompt, prompt_count, options, f->ids, limit, sink, &result));
  assert_memory_equal(f->ids, f->expected, result.generated_tokens * sizeof *f->ids);
  assert_int_equal(f->ids[result.generated_tokens], -1); /* nothing is written behind */
  assert_true(result.prefill_seconds >= 0 && result.decode_seconds >= 0);
  return result;
}

/* At capacity C a prompt of P ids yields C - P + 1, and that is no error. */
static void ends_with_the_cache(void **state) {
  (void)state;
  static const uint32_t prompts[] = {60, 63, 64, 1};
  for (size_t i = 0; i < COUNT(prompts); i++) {
    fixture *f = set_up(fake_default());
    expect(f, prompts[i], 64);
    stele_generate_options options = {.struct_bytes = sizeof options, .max_new_tokens = 100};
    stele_generate_result r = generate(f, prompts[i], &options, 150);
    assert_int_equal(r.generated_tokens, 64 - prompts[i] + 1);
    assert_int_equal(r.finish, STELE_FINISH_LENGTH);
    assert_int_equal(r.prompt_tokens, prompts[i]);
    tear_down(f);
  }
}

static void a_prompt_above_the_capacity(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.capacity = 17;
  fixture *f = set_up(config);
  stele_sink sink = {0};
  stele_generate_result result;
  assert_int_equal(stele_generate(f->session, f->prompt, 18, NULL, f->ids, 10, &sink, &result),
                   STELE_CAPACITY);
  assert_contains(sink.text, "18");
  assert_contains(sink.text, "17");
  tear_down(f);
}

static void odd_capacities(void **state) {
  (void)state;
  static const uint32_t capacities[] = {1, 2, 3, 17, 63, 65};
  for (size_t i = 0; i < COUNT(capacities); i++) {
    fake_config config = fake_default();
    config.capacity = capacities[i];
    fixture *f = set_up(config);
    expect(f, 1, 65);
    stele_generate_result r = generate(f, 1, NULL, 150);
    assert_int_equal(r.generated_tokens, capacities[i]);
    tear_down(f);
  }
}

static void stops_at_a_stop_id(void **state) {
  (void)state;
  fixture *f = set_up(fake_default());
  expect(f, 5, 40);
  uint32_t at = 0;
  fake_config config = f->config;
  config.stop_count = 2;
  config.stop_ids[0] = VOCAB + 5;
  config.stop_ids[1] = f->expected[6];
  while (f->expected[at] != config.stop_ids[1]) at++;
  tear_down(f);
  f = set_up(config);
  expect(f, 5, 40);
  stele_generate_result r = generate(f, 5, NULL, 40);
  assert_int_equal(r.finish, STELE_FINISH_STOP);
  assert_int_equal(r.generated_tokens, at + 1); /* the stop id is included */
  stele_session_reset(f->session, 0);
  stele_generate_options options = {.struct_bytes = sizeof options, .ignore_eos = true};
  r = generate(f, 5, &options, 40);
  assert_int_equal(r.finish, STELE_FINISH_LENGTH);
  assert_int_equal(r.generated_tokens, 40);
  tear_down(f);
}

static void limits(void **state) {
  (void)state;
  fixture *f = set_up(fake_default());
  expect(f, 5, 40);
  stele_generate_options options = {.struct_bytes = sizeof options, .max_new_tokens = 7};
  assert_int_equal(generate(f, 5, &options, 40).generated_tokens, 7);
  stele_session_reset(f->session, 0);
  assert_int_equal(generate(f, 5, &options, 3).generated_tokens, 3);
  stele_session_reset(f->session, 0);
  options.max_new_tokens = 1;
  assert_int_equal(generate(f, 5, &options, 3).generated_tokens, 1);
  tear_down(f);
}

typedef struct watcher {
  const int32_t *expected;
  uint32_t seen, cancel_at;
} watcher;

static bool watch(void *data, int32_t id) {
  watcher *w = data;
  assert_int_equal(id, w->expected[w->seen]);
  return ++w->seen != w->cancel_at;
}

static void cancels_and_goes_on(void **state) {
  (void)state;
  fixture *f = set_up(fake_default());
  expect(f, 5, 40);
  watcher w = {f->expected, 0, 4};
  stele_generate_options options = {
      .struct_bytes = sizeof options, .lane = 1, .on_token = watch, .on_token_data = &w};
  stele_generate_result r = generate(f, 5, &options, 40);
  assert_int_equal(r.finish, STELE_FINISH_CANCELLED);
  assert_int_equal(r.generated_tokens, 4);
  assert_int_equal(stele_session_length(f->session, 1), 5 + 3);
  f->prompt[0] = f->expected[3]; /* the last id was never fed: it begins the next prompt */
  memmove(f->expected, f->expected + 4, 30 * sizeof *f->expected);
  options.on_token = NULL;
  r = generate(f, 1, &options, 10);
  assert_int_equal(r.reused_tokens, 8);
  assert_int_equal(r.generated_tokens, 10);
  tear_down(f);
}

/* ---- prompt lookup ------------------------------------------------------------------------- */

/* A model whose text mostly repeats itself, so that guesses are right now and then. */
static fake_config repeating(uint32_t verify_width) {
  fake_config config = fake_default();
  config.capacity = 190;
  config.page_tokens[0] = 64;
  config.verify_width = verify_width;
  config.period = 11;
  return config;
}

/* With guesses as without: ids, their number, the reason of the end, tokens in the cache, and what
 * comes after. */
static void check_lookup(fixture *f, uint32_t prompt_count, stele_generate_options options,
                         uint32_t guesses, uint32_t limit) {
  options.struct_bytes = sizeof options;
  options.lane = 1;
  int32_t next[2], id = 5;
  uint32_t lane = 1, length[2];
  stele_generate_result r[2];
  for (int i = 0; i < 2; i++) {
    stele_session_reset(f->session, 1);
    options.prompt_lookup_num_tokens = i ? guesses : 0;
    r[i] = generate(f, prompt_count, &options, limit);
    length[i] = stele_session_length(f->session, 1);
    if (length[i] == f->config.capacity) continue;
    assert_ok(stele_session_step(f->session, &lane, &id, 1, STELE_OUTPUT_TOKEN, &next[i], sink));
  }
  assert_int_equal(r[1].generated_tokens, r[0].generated_tokens);
  assert_int_equal(r[1].finish, r[0].finish);
  assert_int_equal(length[1], length[0]);
  if (length[0] < f->config.capacity) assert_int_equal(next[1], next[0]);
  assert_int_equal(r[0].drafted_tokens, 0);
  assert_true(r[1].accepted_tokens <= r[1].drafted_tokens);
  assert_true(r[1].accepted_tokens < r[1].generated_tokens);
  f->drafted += r[1].drafted_tokens;
  f->accepted += r[1].accepted_tokens;
}

static void guesses_change_nothing(void **state) {
  (void)state;
  static const uint32_t guesses[] = {1, 3, 100}, prompts[] = {1, 40, 64};
  for (uint32_t width = 3; width <= 8; width += 5) {
    fixture *f = set_up_threads(repeating(width), 1);
    for (size_t p = 0; p < COUNT(prompts); p++) {
      expect(f, prompts[p], 191 - prompts[p]);
      for (size_t g = 0; g < COUNT(guesses); g++) {
        check_lookup(f, prompts[p], (stele_generate_options){0}, guesses[g], 200); /* capacity */
        for (uint32_t n = 1; n < 60; n += 1 + n / 3)
          check_lookup(f, prompts[p], (stele_generate_options){.max_new_tokens = n}, guesses[g],
                       200);
        check_lookup(f, prompts[p], (stele_generate_options){0}, guesses[g], 33);
      }
    }
    assert_true(f->accepted > 200 && f->drafted > f->accepted);
    tear_down(f);
  }
}

static void stops_among_guesses(void **state) {
  (void)state;
  for (uint32_t at = 20; at < 60; at += 3) {
    fixture *f = set_up_threads(repeating(8), 1);
    expect(f, 30, 150);
    fake_config config = f->config;
    config.stop_count = 1;
    config.stop_ids[0] = f->expected[at];
    tear_down(f);
    f = set_up_threads(config, 1);
    expect(f, 30, 150);
    check_lookup(f, 30, (stele_generate_options){0}, 7, 150);
    check_lookup(f, 30, (stele_generate_options){.ignore_eos = true}, 7, 150);
    tear_down(f);
  }
}

static void cancels_among_guesses(void **state) {
  (void)state;
  fixture *f = set_up_threads(repeating(8), 1);
  expect(f, 30, 150);
  for (uint32_t at = 1; at < 80; at += 4) {
    watcher w = {f->expected, 0, at};
    stele_generate_options options = {.struct_bytes = sizeof options,
                                      .on_token = watch,
                                      .on_token_data = &w,
                                      .prompt_lookup_num_tokens = 7};
    stele_session_reset(f->session, 0);
    stele_generate_result r = generate(f, 30, &options, 150);
    assert_int_equal(r.finish, STELE_FINISH_CANCELLED);
    assert_int_equal(r.generated_tokens, at);
    assert_int_equal(w.seen, at); /* none is told of twice, none behind the end */
    assert_int_equal(stele_session_length(f->session, 0), 30 + at - 1);
  }
  tear_down(f);
}

/* A text in which contexts come again but never go on as before: few guesses are paid for. */
static void a_hostile_text_costs_little(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.capacity = 190;
  config.page_tokens[0] = 64;
  config.vocab = 3; /* whatever three ids are the last, they were there before */
  config.weights_bytes = 3 * 4;
  fixture *f = set_up(config);
  for (int i = 0; i < 64; i++) f->prompt[i] %= 3;
  expect(f, 10, 181);
  stele_generate_options options = {.struct_bytes = sizeof options, .prompt_lookup_num_tokens = 7};
  stele_generate_result r = generate(f, 10, &options, 181);
  assert_int_equal(r.generated_tokens, 181);
  assert_true(r.drafted_tokens < 3 * (2 + 181 / 32 + r.accepted_tokens + 1));
  tear_down(f);
}

static void no_step_to_verify_with(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.verify_width = 0;
  fixture *f = set_up(config);
  stele_sink why = {0};
  stele_generate_options options = {.struct_bytes = sizeof options, .prompt_lookup_num_tokens = 3};
  assert_int_equal(stele_generate(f->session, f->prompt, 5, &options, f->ids, 9, &why, NULL),
                   STELE_UNSUPPORTED);
  assert_contains(why.text, "--verify");
  assert_int_equal(stele_session_length(f->session, 0), 0);
  options.struct_bytes = offsetof(stele_generate_options, prompt_lookup_num_tokens);
  expect(f, 5, 9); /* a caller that doesn't know of guesses */
  assert_int_equal(generate(f, 5, &options, 9).drafted_tokens, 0);
  tear_down(f);
}

static void bad_arguments(void **state) {
  (void)state;
  fixture *f = set_up(fake_default());
  stele_sink sink = {0};
  stele_generate_options options = {.struct_bytes = sizeof options, .lane = 2};
#define BAD(call) assert_int_equal(call, STELE_INVALID_ARGUMENT)
  BAD(stele_generate(f->session, f->prompt, 5, &options, f->ids, 9, &sink, NULL));
  options.lane = 0;
  BAD(stele_generate(f->session, f->prompt, 0, &options, f->ids, 9, &sink, NULL));
  BAD(stele_generate(f->session, f->prompt, 5, &options, f->ids, 0, &sink, NULL));
  BAD(stele_generate(f->session, f->prompt, 5, &options, NULL, 9, &sink, NULL));
  options.struct_bytes = 0;
  BAD(stele_generate(f->session, f->prompt, 5, &options, f->ids, 9, &sink, NULL));
#undef BAD
  assert_string_equal(stele_finish_name(STELE_FINISH_STOP), "stop");
  assert_string_equal(stele_finish_name(STELE_FINISH_TIME), "time");
  assert_string_equal(stele_finish_name(77), "unknown");
  tear_down(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ends_with_the_cache),
      cmocka_unit_test(a_prompt_above_the_capacity),
      cmocka_unit_test(odd_capacities),
      cmocka_unit_test(stops_at_a_stop_id),
      cmocka_unit_test(limits),
      cmocka_unit_test(cancels_and_goes_on),
      cmocka_unit_test(guesses_change_nothing),
      cmocka_unit_test(stops_among_guesses),
      cmocka_unit_test(cancels_among_guesses),
      cmocka_unit_test(a_hostile_text_costs_little),
      cmocka_unit_test(no_step_to_verify_with),
      cmocka_unit_test(bad_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
