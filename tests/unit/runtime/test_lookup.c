/* The index of prompt lookup on plain arrays of ids, against a search of the whole text. */
#include "generate/lookup.h"
#include "testing.h"

static uint32_t find_slowly(const int32_t *ids, uint32_t count, uint32_t longest,
                            uint32_t *out_context) {
  uint32_t best = 0, best_context = LOOKUP_CONTEXT - 1;
  for (uint32_t place = count - 1; place >= LOOKUP_CONTEXT; place--) {
    uint32_t n = 0;
    while (n < longest && n < place && ids[place - 1 - n] == ids[count - 1 - n]) n++;
    if (n > best_context) best = place, best_context = n;
  }
  if (best) *out_context = best_context;
  return best;
}

/* Few candidates in a text, so that all of them are looked at. */
static void finds_the_longest_and_latest(void **state) {
  (void)state;
  enum { COUNT_IDS = 300 };
  for (uint32_t seed = 0; seed < 20; seed++) {
    int32_t ids[COUNT_IDS];
    uint32_t found = 0;
    lookup text = {0};
    fill_ids(ids, COUNT_IDS, seed, 3 + seed);
    for (uint32_t i = 100; i < 140; i++)
      ids[i] = ids[i - 90]; /* quotes, one of them of the other */
    for (uint32_t i = 200; i < 230; i++) ids[i] = ids[i - 95];
    assert_ok(lookup_init(&text, COUNT_IDS, sink));
    for (uint32_t count = 1; count <= COUNT_IDS; count++) {
      lookup_append(&text, ids + count - 1, 1);
      uint32_t context = 0, expected_context = 0;
      uint32_t place = lookup_find(&text, 16, &context);
      uint32_t expected = find_slowly(ids, count, 16, &expected_context);
      assert_true(!place == !expected); /* of many candidates the latest are looked at */
      if (seed > 3) assert_int_equal(place, expected);
      if (seed > 3) assert_int_equal(context, expected_context);
      found += place != 0;
    }
    assert_true(found > 40);
    lookup_deinit(&text);
  }
}

static void a_short_text_has_nothing(void **state) {
  (void)state;
  lookup text = {0};
  uint32_t context;
  const int32_t ids[] = {5, 5, 5, 5, 5};
  assert_ok(lookup_init(&text, 5, sink));
  for (uint32_t count = 0; count <= LOOKUP_CONTEXT; count++) {
    assert_int_equal(lookup_find(&text, 16, &context), 0);
    lookup_append(&text, ids + count, 1);
  }
  assert_int_equal(lookup_find(&text, 16, &context), LOOKUP_CONTEXT);
  assert_int_equal(context, LOOKUP_CONTEXT);
  lookup_deinit(&text);
  lookup_deinit(&text);
}

/* What follows a place near the end goes round. */
static void copies_beyond_the_end(void **state) {
  (void)state;
  const int32_t ids[] = {1, 2, 3, 4, 5}, all[] = {4, 5, 4, 5, 4, 5, 4};
  int32_t out[7];
  lookup text = {0};
  assert_ok(lookup_init(&text, 5, sink));
  lookup_append(&text, ids, 5);
  lookup_copy(&text, 3, 7, out);
  assert_memory_equal(out, all, sizeof all);
  lookup_copy(&text, 0, 5, out);
  assert_memory_equal(out, ids, sizeof ids);
  lookup_deinit(&text);
}

static void a_text_of_any_length(void **state) {
  (void)state;
  lookup text = {0};
  assert_ok(lookup_init(&text, 500u << 20, sink)); /* address space until it is written */
  int32_t ids[8] = {1, 2, 3, 9, 1, 2, 3, 7};
  uint32_t context = 0;
  for (uint32_t i = 0; i < 1000; i++) lookup_append(&text, ids, 8);
  assert_int_equal(lookup_find(&text, 64, &context), 8000 - 8);
  assert_int_equal(context, 64);
  lookup_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_the_longest_and_latest),
      cmocka_unit_test(a_short_text_has_nothing),
      cmocka_unit_test(copies_beyond_the_end),
      cmocka_unit_test(a_text_of_any_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
