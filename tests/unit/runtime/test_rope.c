/* Rope rows that depend on the length: the formulas, and which length each step takes. */
#include <math.h>

#include "session/session.h"
#include "testing.h"

static const float long_factors[4] = {4, 3, 2, 1.5f}, short_factors[4] = {1, 1.1f, 1.2f, 1.3f};

/* The definition once more, in double. */
static double expected(uint32_t rule, uint32_t n, uint32_t original, double factor, uint32_t i,
                       double position) {
  double base = 10000, divisor = 1;
  if (rule == STELE_ROPE_DYNAMIC && n > original)
    base *= pow(factor * n / original - (factor - 1), 8.0 / 6.0);
  if (rule == STELE_ROPE_LONG)
    divisor = (double)(n > original ? long_factors : short_factors)[i % 4];
  double angle = position / (divisor * pow(base, 2.0 * (i % 4) / 8));
  return 1.25 * (i < 4 ? cos(angle) : sin(angle));
}

static void rows_follow_the_formulas(void **state) {
  (void)state;
  for (uint32_t rule = STELE_ROPE_DYNAMIC; rule <= STELE_ROPE_LONG; rule++) {
    const stele_rope rope = {.rule = rule,
                             .rotary = 8,
                             .base = 10000,
                             .factor = 4,
                             .original = 32,
                             .attention_factor = 1.25,
                             .short_factors = short_factors,
                             .long_factors = long_factors};
    static const uint32_t lengths[] = {1, 31, 32, 33, 64, 5000};
    for (size_t k = 0; k < COUNT(lengths); k++) {
      float inverse[4], row[8];
      session_rope_inverse(&rope, lengths[k], inverse);
      for (int32_t position = 0; position < (int32_t)lengths[k]; position += 7) {
        session_rope_row(&rope, inverse, position, row);
        for (uint32_t i = 0; i < 8; i++) /* angles are float32, as in the reference */
          assert_true(fabs((double)row[i] - expected(rule, lengths[k], 32, 4, i, position)) <
                      1e-6 + 2e-7 * position);
      }
    }
  }
}

/* hidden[0] of the fake model is the row that it was given. */
static void check_rows(const float *hidden, uint32_t count, uint32_t rule, uint32_t n,
                       uint32_t first_position) {
  for (uint32_t t = 0; t < count; t++)
    for (uint32_t i = 0; i < 8; i++) {
      double e = expected(rule, n, 20, 3, i, first_position + t);
      if (fabs((double)hidden[t * FAKE_HIDDEN + i] - e) > 1e-5)
        fail_msg("rule %u, n %u, position %u, element %u: %f, %f expected", rule, n,
                 first_position + t, i, (double)hidden[t * FAKE_HIDDEN + i], e);
    }
}

static void a_feed_takes_its_whole_length(void **state) {
  (void)state;
  for (uint32_t rule = STELE_ROPE_DYNAMIC; rule <= STELE_ROPE_LONG; rule++) {
    fake_config config = fake_default();
    config.rope_rule = rule;
    config.rope_original = 20;
    config.rope_factor = 3;
    config.prefill_width = 5;
    stele_model *model = open_fake(&config);
    stele_session *s = create_session(model, 2, 1, STELE_CACHE_DYNAMIC);
    float hidden[4 * 40 * FAKE_HIDDEN];
    int32_t ids[64], token;
    fill_ids(ids, 64, 3, 97);
    assert_ok(stele_session_feed(s, 0, ids, 33, STELE_OUTPUT_HIDDEN, hidden, sink));
    check_rows(hidden, 33, rule, 33, 0); /* all seven chunks */
    assert_ok(stele_session_feed(s, 0, ids + 33, 1, STELE_OUTPUT_HIDDEN, hidden, sink));
    check_rows(hidden, 1, rule, 34, 33);
    assert_ok(stele_session_feed(s, 1, ids, 20, STELE_OUTPUT_HIDDEN, hidden, sink));
    check_rows(hidden, 20, rule, 20, 0); /* another lane, not beyond */
    assert_ok(stele_session_feed(s, 1, ids, 7, STELE_OUTPUT_HIDDEN, hidden, sink));
    check_rows(hidden, 7, rule, 27, 20);
    const uint32_t lanes[] = {1, 0};
    assert_ok(stele_session_step(s, lanes, ids, 2, STELE_OUTPUT_TOKEN, (int32_t[2]){0}, sink));
    for (uint32_t row = 0; row < 2; row++) { /* two rows of one step, each by its lane's length */
      float as_hidden[FAKE_HIDDEN];
      memcpy(as_hidden, s->rope_rows + row * 8, 8 * sizeof(float));
      check_rows(as_hidden, 1, rule, row ? 35 : 28, row ? 34 : 27);
    }
    assert_ok(stele_session_feed(s, 0, ids, 2, STELE_OUTPUT_TOKEN, &token, sink));
    assert_ok(stele_session_crop(s, 1, 10, sink));
    assert_ok(session_verify(s, 1, ids, 5, (int32_t[5]){0}, sink));
    for (uint32_t t = 0; t < 5; t++) { /* each token by its own length, as if it were decoded */
      float as_hidden[FAKE_HIDDEN];
      memcpy(as_hidden, s->rope_rows + t * 8, 8 * sizeof(float));
      check_rows(as_hidden, 1, rule, 18 + t + 1, 18 + t);
    }
    stele_session_destroy(s);
    stele_model_close(model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_follow_the_formulas),
      cmocka_unit_test(a_feed_takes_its_whole_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
