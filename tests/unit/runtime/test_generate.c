/* Greedy generation: stopping, limits, the end of the cache, cancelling, continuing. */
#include "testing.h"

#define VOCAB 97

typedef struct fixture {
  fake_config config;
  stele_model *model;
  stele_session *session;
  int32_t prompt[64], ids[200], expected[200];
} fixture;

/* What the model says after the prompt, as far as the array goes. */
static void expect(fixture *f, uint32_t prompt_count, uint32_t count) {
  int32_t all[300];
  memcpy(all, f->prompt, prompt_count * sizeof *all);
  for (uint32_t i = 0; i < count; i++)
    f->expected[i] = all[prompt_count + i] = fake_next(&f->config, all, prompt_count + i);
}

static fixture *set_up(fake_config config) {
  fixture *f = calloc(1, sizeof *f);
  f->config = config;
  f->model = open_fake(&config);
  f->session = create_session(f->model, 2, 2, STELE_CACHE_DYNAMIC);
  fill_ids(f->prompt, 64, 11, VOCAB);
  return f;
}

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
      cmocka_unit_test(bad_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
