/* A session under a profile: steps do what they did, every worker's meetings are reported in
 * order, and nobody goes on before all have come. */
#include <string.h>

#include "testing.h"

#define VOCAB 97

typedef struct seen {
  uint32_t steps, workers, faults;
  const stele_step *step;
} seen;

static void report(void *data, const stele_step *step, const stele_meeting *meetings,
                   uint32_t workers, uint32_t count) {
  seen *s = data;
  s->steps++;
  s->step = step;
  s->faults += workers != s->workers;
  s->faults += count != (step->output == STELE_OUTPUT_TOKEN ? 5 : 4);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t last = 0;
    for (uint32_t w = 0; w < workers; w++) {
      const stele_meeting *m = &meetings[w * count + i];
      s->faults += m->arrived > m->left || (i && m->arrived < m[-1].left);
      if (m->arrived > last) last = m->arrived;
    }
    for (uint32_t w = 0; w < workers && i && i + 1 < count; w++)
      s->faults += meetings[w * count + i].left < last;
  }
}

static void steps_are_reported(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  int32_t ids[40], token;
  uint32_t lane = 0;
  float logits[VOCAB];
  fill_ids(ids, 40, 5, VOCAB);
  for (uint32_t threads = 1; threads <= 4; threads++) {
    stele_session *s = create_session(model, 1, threads, STELE_CACHE_DYNAMIC);
    seen here = {.workers = threads};
    assert_ok(stele_session_profile(s, report, &here, sink));
    assert_ok(stele_session_feed(s, 0, ids, 38, STELE_OUTPUT_TOKEN, &token, sink));
    assert_int_equal(here.steps, 3); /* 16, 16, 6 */
    assert_int_equal(here.step->kind, STELE_STEP_PREFILL);
    assert_int_equal(token, fake_next(&config, ids, 38));
    assert_ok(stele_session_step(s, &lane, ids + 38, 1, STELE_OUTPUT_LAST, logits, sink));
    assert_int_equal(here.steps, 4);
    assert_int_equal(stele_model_phases(model, here.step)->phase_count, 3);
    assert_ok(stele_session_profile(s, NULL, NULL, sink));
    assert_ok(stele_session_step(s, &lane, ids + 39, 1, STELE_OUTPUT_TOKEN, &token, sink));
    assert_int_equal(here.steps, 4);
    assert_int_equal(here.faults, 0);
    assert_int_equal(token, fake_next(&config, ids, 40));
    assert_ok(stele_session_profile(s, report, &here, sink)); /* destroyed with the session */
    stele_session_destroy(s);
  }
  stele_model_close(model);
}

static void old_artefacts_have_no_phases(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.old = 1;
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 1, 2, STELE_CACHE_DYNAMIC);
  seen here = {.workers = 2};
  stele_sink why = {0};
  assert_int_equal(stele_session_profile(s, report, &here, &why), STELE_UNSUPPORTED);
  assert_non_null(strstr(why.text, "compile it again"));
  assert_null(stele_model_phases(model, stele_model_variant(model)->steps));
  int32_t ids[3] = {1, 2, 3}, token;
  assert_ok(stele_session_feed(s, 0, ids, 3, STELE_OUTPUT_TOKEN, &token, sink));
  assert_int_equal(token, fake_next(&config, ids, 3));
  assert_int_equal(here.steps, 0);
  stele_session_destroy(s);
  stele_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_are_reported),
      cmocka_unit_test(old_artefacts_have_no_phases),
  };
  return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
