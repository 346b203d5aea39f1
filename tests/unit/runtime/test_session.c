/* Sessions over the fake artefact: whatever the widths, chunks, lanes, threads and page sizes, the
 * outputs are those of the model's definition. */
#include "session/session.h"

#include "testing.h"

#define VOCAB 97

static void check_logits(const fake_config *config, const int32_t *ids, uint32_t count,
                         const float *logits) {
  uint32_t hash = fake_hash(config, ids, count);
  for (uint32_t v = 0; v < config->vocab; v++)
    if (logits[v] != fake_logit(hash, v)) fail_msg("logit %u after %u ids", v, count);
}

/* Feeds ids in pieces of `piece` and checks the output of the last piece. */
static void check_feed(const fake_config *config, stele_session *s, const int32_t *ids,
                       uint32_t count, uint32_t piece, uint32_t output) {
  float *floats = calloc((size_t)count * 200, sizeof *floats);
  int32_t token = -1;
  stele_session_reset(s, 0);
  uint32_t before = (count - 1) / piece * piece;
  for (uint32_t i = 0; i < before; i += piece)
    assert_ok(stele_session_feed(s, 0, ids + i, piece, STELE_OUTPUT_NONE, NULL, sink));
  uint32_t last = count - before;
  assert_ok(stele_session_feed(s, 0, ids + before, last, output,
                               output == STELE_OUTPUT_TOKEN ? (void *)&token : floats, sink));
  assert_int_equal(stele_session_length(s, 0), count);
  if (output == STELE_OUTPUT_TOKEN) assert_int_equal(token, fake_next(config, ids, count));
  if (output == STELE_OUTPUT_LAST) check_logits(config, ids, count, floats);
  for (uint32_t t = 0; t < last && output == STELE_OUTPUT_ALL; t++)
    check_logits(config, ids, before + t + 1, floats + t * VOCAB);
  for (uint32_t t = 0; t < last && output == STELE_OUTPUT_HIDDEN; t++)
    for (uint32_t l = 0; l <= FAKE_LAYERS; l++)
      for (uint32_t i = 0; i < FAKE_HIDDEN; i++)
        assert_true(floats[(l * last + t) * FAKE_HIDDEN + i] ==
                    fake_hidden(fake_hash(config, ids, before + t + 1), l, i));
  free(floats);
}

static void feeds_of_all_widths_and_outputs(void **state) {
  (void)state;
  static const uint32_t widths[] = {1, 5, 16}, counts[] = {1, 2, 5, 6, 16, 17, 37, 64};
  static const uint32_t pieces[] = {64, 1, 5, 16};
  int32_t ids[64];
  fill_ids(ids, 64, 7, VOCAB);
  for (size_t w = 0; w < COUNT(widths); w++) {
    fake_config config = fake_default();
    config.prefill_width = widths[w];
    stele_model *model = open_fake(&config);
    for (uint32_t threads = 1; threads <= 3; threads++) {
      stele_session *s = create_session(model, 1, threads, threads % 2);
      for (size_t c = 0; c < COUNT(counts); c++)
        for (size_t p = 0; p < COUNT(pieces); p++)
          for (uint32_t output = STELE_OUTPUT_TOKEN; output <= STELE_OUTPUT_HIDDEN; output++)
            check_feed(&config, s, ids, counts[c], pieces[p], output);
      stele_session_destroy(s);
    }
    stele_model_close(model);
  }
}

static void page_sizes_and_odd_capacities(void **state) {
  (void)state;
  static const uint32_t capacities[] = {1, 2, 3, 17, 63, 65, 640}, pages[] = {1, 2, 64};
  int32_t ids[640];
  fill_ids(ids, 640, 3, VOCAB);
  for (size_t c = 0; c < COUNT(capacities); c++)
    for (size_t p = 0; p < COUNT(pages); p++) {
      fake_config config = fake_default();
      config.capacity = capacities[c];
      config.page_tokens[0] = pages[p];
      config.page_tokens[1] = 64 / pages[p];
      stele_model *model = open_fake(&config);
      stele_session *s = create_session(model, 1, 1, STELE_CACHE_DYNAMIC);
      check_feed(&config, s, ids, config.capacity, 640, STELE_OUTPUT_LAST);
      check_feed(&config, s, ids, config.capacity, 1, STELE_OUTPUT_TOKEN);
      stele_session_destroy(s);
      stele_model_close(model);
    }
}

/* Prompts of 63, 64 and 65 tokens into 64: the last fails before anything is computed. */
static void capacity_edges(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 1, 1, STELE_CACHE_STATIC);
  int32_t ids[65], token = -1;
  uint32_t lane = 0;
  stele_sink why = {0};
  fill_ids(ids, 65, 9, VOCAB);
  assert_int_equal(stele_session_feed(s, 0, ids, 65, STELE_OUTPUT_TOKEN, &token, &why),
                   STELE_CAPACITY);
  assert_contains(why.text, "65");
  assert_contains(why.text, "64");
  assert_contains(why.text, "--max-cache-len");
  assert_int_equal(token, -1);
  assert_int_equal(stele_session_length(s, 0), 0);
  check_feed(&config, s, ids, 64, 64, STELE_OUTPUT_TOKEN);
  assert_int_equal(stele_session_step(s, &lane, ids, 1, STELE_OUTPUT_TOKEN, &token, &why),
                   STELE_CAPACITY);
  assert_contains(why.text, "64 in the cache");
  assert_int_equal(token, -1);
  check_feed(&config, s, ids, 63, 64, STELE_OUTPUT_TOKEN);
  assert_ok(stele_session_step(s, &lane, ids + 63, 1, STELE_OUTPUT_TOKEN, &token, sink));
  assert_int_equal(token, fake_next(&config, ids, 64));
  assert_int_equal(stele_session_step(s, &lane, ids, 1, STELE_OUTPUT_TOKEN, &token, &why),
                   STELE_CAPACITY);
  assert_int_equal(stele_session_length(s, 0), 64);
  stele_session_destroy(s);
  stele_model_close(model);
}

/* Lanes that stand at different lengths take steps in every combination and order. */
static void lanes_do_not_meet(void **state) {
  (void)state;
  static const uint32_t sets[][4] = {{0, 1, 2, 3}, {3}, {2, 0}, {1, 2, 3}, {3, 2, 1, 0}, {0, 2, 3}};
  static const uint32_t sizes[] = {4, 1, 2, 3, 4, 3};
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  for (uint32_t threads = 1; threads <= 2; threads++) {
    stele_session *s = create_session(model, 4, threads, STELE_CACHE_DYNAMIC);
    int32_t ids[4][64], in[4], tokens[4];
    float logits[4 * VOCAB];
    for (uint32_t lane = 0; lane < 4; lane++) {
      fill_ids(ids[lane], 64, lane + 20, VOCAB);
      assert_ok(
          stele_session_feed(s, lane, ids[lane], 3 + 7 * lane, STELE_OUTPUT_NONE, NULL, sink));
    }
    for (size_t i = 0; i < 4 * COUNT(sets); i++) {
      const uint32_t *lanes = sets[i % COUNT(sets)], n = sizes[i % COUNT(sets)];
      for (uint32_t k = 0; k < n; k++) in[k] = ids[lanes[k]][stele_session_length(s, lanes[k])];
      uint32_t output = i % 2 ? STELE_OUTPUT_LAST : STELE_OUTPUT_TOKEN;
      void *out = i % 2 ? (void *)logits : tokens;
      assert_ok(stele_session_step(s, lanes, in, n, output, out, sink));
      for (uint32_t k = 0; k < n; k++) {
        uint32_t length = stele_session_length(s, lanes[k]);
        if (i % 2)
          check_logits(&config, ids[lanes[k]], length, logits + k * VOCAB);
        else
          assert_int_equal(tokens[k], fake_next(&config, ids[lanes[k]], length));
      }
    }
    stele_session_destroy(s);
  }
  stele_model_close(model);
}

static void sessions_are_isolated(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  stele_session *one = create_session(model, 1, 1, STELE_CACHE_DYNAMIC);
  stele_session *two = create_session(model, 1, 1, STELE_CACHE_STATIC);
  int32_t p[10], q[40], a, b;
  uint32_t lane = 0;
  fill_ids(p, 10, 1, VOCAB);
  fill_ids(q, 40, 2, VOCAB);
  assert_ok(stele_session_feed(one, 0, p, 10, STELE_OUTPUT_TOKEN, &a, sink));
  stele_session_reset(one, 0);
  assert_int_equal(stele_session_length(one, 0), 0);
  for (uint32_t i = 0; i < 40; i++) { /* step by step, in turn */
    assert_ok(stele_session_step(one, &lane, q + i, 1, STELE_OUTPUT_TOKEN, &a, sink));
    assert_ok(stele_session_step(two, &lane, q + i, 1, STELE_OUTPUT_TOKEN, &b, sink));
    assert_int_equal(a, b);
    assert_int_equal(a, fake_next(&config, q, i + 1));
  }
  stele_session_destroy(one);
  stele_session_destroy(two);
  stele_model_close(model);
}

static void poisoned_memory_is_never_seen(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 2, 2, STELE_CACHE_DYNAMIC);
  int32_t ids[64];
  fill_ids(ids, 64, 5, VOCAB);
  for (uint32_t g = 0; g < FAKE_GROUPS; g++)
    memset(s->cache.groups[g].pool.memory, 0xff, s->cache.groups[g].pool.bytes);
  memset(s->workspace, 0xff, (size_t)s->artifact->workspace_bytes);
  for (uint32_t output = STELE_OUTPUT_TOKEN; output <= STELE_OUTPUT_HIDDEN; output++)
    check_feed(&config, s, ids, 37, 16, output);
  stele_session_destroy(s);
  stele_model_close(model);
}

static void padding_on_the_left(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 1, 1, STELE_CACHE_DYNAMIC);
  int32_t ids[20], token;
  fill_ids(ids, 20, 5, VOCAB);
  assert_ok(stele_session_feed(s, 0, ids, 5, STELE_OUTPUT_NONE, NULL, sink));
  s->lane[0].first = 5; /* slots that hold tokens are padding now: positions begin again */
  assert_ok(stele_session_feed(s, 0, ids + 5, 15, STELE_OUTPUT_TOKEN, &token, sink));
  uint32_t hash = config.seed, best = 0;
  for (uint32_t i = 5; i < 20; i++)
    for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++)
      for (uint32_t head = 0; head < FAKE_HEADS; head++) {
        uint32_t key = fake_key(fake_weight(1, (uint32_t)ids[i]), i - 5, layer, head);
        hash = fake_see(hash, key, fake_value(key, i));
      }
  for (uint32_t v = 1; v < VOCAB; v++)
    if (fake_logit(hash, v) > fake_logit(hash, best)) best = v;
  assert_int_equal(token, best);
  stele_session_destroy(s);
  stele_model_close(model);
}

static void cache_bytes_follow_use(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  const stele_group *g = stele_model_artifact(model)->groups;
  stele_session *s = create_session(model, 2, 1, STELE_CACHE_DYNAMIC);
  int32_t ids[64];
  fill_ids(ids, 64, 5, VOCAB);
  assert_int_equal(stele_session_cache_bytes(s), 0);
  assert_ok(stele_session_feed(s, 1, ids, 17, STELE_OUTPUT_NONE, NULL, sink));
  uint64_t both = 2 * 2 * g[0].page_bytes + 5 * 1 * g[1].page_bytes; /* pages * layers * bytes */
  assert_int_equal(stele_session_cache_bytes(s), both);
  stele_session_reset(s, 0);
  assert_int_equal(stele_session_cache_bytes(s), both);
  stele_session_reset(s, 1);
  assert_int_equal(stele_session_cache_bytes(s), 0);
  stele_session_destroy(s);
  s = create_session(model, 2, 1, STELE_CACHE_STATIC);
  uint64_t all = 2 * (4 * 2 * g[0].page_bytes + 16 * 1 * g[1].page_bytes);
  assert_int_equal(stele_session_cache_bytes(s), all);
  stele_session_destroy(s);
  stele_model_close(model);
}

/* Any number of tokens dropped at any length, whether pages end there or not: what follows is as if
 * they had never been, and pages without tokens are free. */
static void crops_at_any_place(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  const stele_group *g = stele_model_artifact(model)->groups;
  for (uint32_t implementation = 0; implementation < 2; implementation++) {
    stele_session *s = create_session(model, 2, 1, implementation);
    int32_t ids[64], other[64], token;
    fill_ids(ids, 64, 5, VOCAB);
    fill_ids(other, 64, 6, VOCAB);
    assert_ok(stele_session_feed(s, 1, other, 21, STELE_OUTPUT_NONE, NULL, sink));
    uint64_t others = 2 * 2 * g[0].page_bytes + 6 * 1 * g[1].page_bytes;
    for (uint32_t length = 1; length <= 64; length++)
      for (uint32_t count = 0; count <= length; count += 1 + count / 2) {
        uint32_t kept = length - count;
        stele_session_reset(s, 0);
        assert_ok(stele_session_feed(s, 0, ids, length, STELE_OUTPUT_NONE, NULL, sink));
        assert_ok(stele_session_crop(s, 0, count, sink));
        assert_int_equal(stele_session_length(s, 0), kept);
        uint64_t bytes = (kept + 15) / 16 * 2 * g[0].page_bytes + (kept + 3) / 4 * g[1].page_bytes;
        if (implementation == STELE_CACHE_DYNAMIC)
          assert_int_equal(stele_session_cache_bytes(s), others + bytes);
        assert_int_equal(s->cache.groups[0].pool.used, 2 + (kept + 15) / 16);
        if (kept == 64) continue;
        int32_t all[64];
        memcpy(all, ids, kept * sizeof *all);
        memcpy(all + kept, other, (64 - kept) * sizeof *all);
        assert_ok(stele_session_feed(s, 0, other, 64 - kept, STELE_OUTPUT_TOKEN, &token, sink));
        assert_int_equal(token, fake_next(&config, all, 64));
      }
    assert_ok(stele_session_feed(s, 1, other + 21, 3, STELE_OUTPUT_TOKEN, &token, sink));
    assert_int_equal(token, fake_next(&config, other, 24)); /* the other lane saw nothing of it */
    stele_session_destroy(s);
  }
  stele_model_close(model);
}

static void crops_no_more_than_there_is(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 2, 1, STELE_CACHE_DYNAMIC);
  stele_sink why = {0};
  int32_t ids[20];
  fill_ids(ids, 20, 5, VOCAB);
  assert_ok(stele_session_feed(s, 1, ids, 20, STELE_OUTPUT_NONE, NULL, sink));
  assert_int_equal(stele_session_crop(s, 1, 21, &why), STELE_INVALID_ARGUMENT);
  assert_contains(why.text, "21");
  assert_contains(why.text, "lane 1 has 20");
  assert_int_equal(stele_session_length(s, 1), 20);
  assert_int_equal(stele_session_crop(s, 0, 1, NULL), STELE_INVALID_ARGUMENT);
  assert_int_equal(stele_session_crop(s, 2, 0, &why), STELE_INVALID_ARGUMENT);
  assert_contains(why.text, "lane 2 of 2");
  s->lane[1].first = 15; /* padding that is dropped with its lane's tokens */
  assert_ok(stele_session_crop(s, 1, 10, sink));
  assert_int_equal(s->lane[1].first, 10);
  stele_session_destroy(s);
  stele_model_close(model);
}

/* A verify step says what decode steps say, wherever it begins and however many tokens it has. */
static void verifies_as_it_decodes(void **state) {
  (void)state;
  static const uint32_t widths[] = {3, 8};
  int32_t ids[64], out[8];
  stele_sink why = {0};
  fill_ids(ids, 64, 7, VOCAB);
  for (size_t w = 0; w < COUNT(widths); w++) {
    fake_config config = fake_default();
    config.verify_width = widths[w];
    stele_model *model = open_fake(&config);
    stele_session *s = create_session(model, 3, 1 + (uint32_t)w, STELE_CACHE_DYNAMIC);
    assert_int_equal(session_verify_width(s), widths[w]);
    for (uint32_t lane = 0; lane < 3; lane += 2)
      for (uint32_t begin = 0, n; begin < 64; begin += n) {
        n = (uint32_t)base_min(1 + begin % widths[w], 64 - begin);
        assert_ok(session_verify(s, lane, ids + begin, n, out, sink));
        for (uint32_t i = 0; i < n; i++)
          assert_int_equal(out[i], fake_next(&config, ids, begin + i + 1));
        assert_int_equal(stele_session_length(s, lane), begin + n);
      }
    assert_int_equal(session_verify(s, 0, ids, 1, out, &why), STELE_CAPACITY);
    assert_int_equal(session_verify(s, 1, ids, 0, out, &why), STELE_INVALID_ARGUMENT);
    assert_int_equal(session_verify(s, 1, ids, widths[w] + 1, out, &why), STELE_INVALID_ARGUMENT);
    ids[1] = VOCAB;
    assert_int_equal(session_verify(s, 1, ids, 2, out, &why), STELE_INVALID_ARGUMENT);
    ids[1] = 1;
    stele_session_destroy(s);
    stele_model_close(model);
    fill_ids(ids, 64, 7, VOCAB);
  }
}

static void steps_that_are_not_there(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.outputs = 1 << STELE_OUTPUT_TOKEN; /* nothing is discarded but by its token */
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 2, 1, STELE_CACHE_DYNAMIC);
  int32_t ids[40];
  float logits[VOCAB];
  stele_sink sink = {0};
  fill_ids(ids, 40, 5, VOCAB);
  check_feed(&config, s, ids, 40, 64, STELE_OUTPUT_TOKEN);
  check_feed(&config, s, ids, 40, 3, STELE_OUTPUT_TOKEN);
  assert_int_equal(stele_session_feed(s, 1, ids, 3, STELE_OUTPUT_LAST, logits, &sink),
                   STELE_UNSUPPORTED);
  assert_contains(sink.text, "the last logits");
  assert_int_equal(stele_session_feed(s, 1, ids, 1, STELE_OUTPUT_HIDDEN, logits, &sink),
                   STELE_UNSUPPORTED);
  assert_contains(sink.text, "hidden states");
  uint32_t lanes[2] = {0, 1};
  assert_int_equal(stele_session_step(s, lanes, ids, 2, STELE_OUTPUT_LAST, logits, &sink),
                   STELE_UNSUPPORTED);
  assert_int_equal(stele_session_length(s, 1), 0);
  stele_session_destroy(s);
  stele_model_close(model);
}

static void bad_arguments(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 2, 1, STELE_CACHE_DYNAMIC);
  stele_sink sink = {0};
  int32_t ids[2] = {5, VOCAB}, out[VOCAB];
  const uint32_t twice[2] = {1, 1}, beyond[2] = {0, 2};
#define BAD(call) assert_int_equal(call, STELE_INVALID_ARGUMENT)
  BAD(stele_session_feed(s, 0, ids, 2, STELE_OUTPUT_TOKEN, out, &sink));
  assert_contains(sink.text, "id 97");
  assert_contains(sink.text, "0 to 96");
  ids[1] = -1;
  BAD(stele_session_feed(s, 0, ids, 2, STELE_OUTPUT_TOKEN, out, &sink));
  BAD(stele_session_step(s, beyond, ids, 2, STELE_OUTPUT_TOKEN, out, &sink));
  ids[1] = 1;
  BAD(stele_session_step(s, beyond, ids, 2, STELE_OUTPUT_TOKEN, out, &sink));
  BAD(stele_session_step(s, twice, ids, 2, STELE_OUTPUT_TOKEN, out, &sink));
  assert_contains(sink.text, "twice");
  BAD(stele_session_step(s, twice, ids, 0, STELE_OUTPUT_TOKEN, out, &sink));
  BAD(stele_session_step(s, twice, ids, 3, STELE_OUTPUT_TOKEN, out, &sink));
  BAD(stele_session_step(s, twice, ids, 1, STELE_OUTPUT_ALL, out, &sink));
  BAD(stele_session_feed(s, 2, ids, 2, STELE_OUTPUT_TOKEN, out, &sink));
  BAD(stele_session_feed(s, 0, ids, 0, STELE_OUTPUT_TOKEN, out, &sink));
  BAD(stele_session_feed(s, 0, ids, 2, STELE_OUTPUT_TOKEN, NULL, &sink));
  BAD(stele_session_feed(s, 0, ids, 2, STELE_OUTPUT_NONE, out, &sink));
  BAD(stele_session_feed(s, 0, ids, 2, 5, out, NULL));
  assert_int_equal(stele_session_length(s, 0), 0);
  assert_int_equal(stele_session_length(s, 9), 0);
  stele_session_reset(s, 9);
  stele_session_destroy(s);
  stele_session_destroy(NULL);
  stele_session_options options = {.struct_bytes = sizeof options, .lanes = 5};
  BAD(stele_session_create(model, &options, &sink, &s));
  assert_contains(sink.text, "--lanes 5");
  options = (stele_session_options){.struct_bytes = sizeof options, .threads = 17};
  BAD(stele_session_create(model, &options, &sink, &s));
  assert_contains(sink.text, "17");
  options = (stele_session_options){.struct_bytes = sizeof options, .cache_implementation = 2};
  BAD(stele_session_create(model, &options, &sink, &s));
  options = (stele_session_options){.lanes = 1};
  BAD(stele_session_create(model, &options, &sink, &s));
  options.struct_bytes = offsetof(stele_session_options, threads); /* an older caller */
  assert_int_equal(stele_session_create(model, &options, &sink, &s), STELE_OK);
  assert_true(stele_session_threads(s) >= 1);
  stele_session_destroy(s);
  stele_model_close(model);
#undef BAD
}

static void caches_that_are_not_offered(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.kind[1] = STELE_GROUP_CROSS;
  stele_model *model = open_fake(&config);
  stele_session *s = NULL;
  stele_sink sink = {0};
  assert_int_equal(stele_session_create(model, NULL, &sink, &s), STELE_UNSUPPORTED);
  assert_contains(sink.text, "group 1");
  assert_null(s);
  stele_model_close(model);
}

/* Gigabytes of cache are address space until they are used. */
static void a_long_context_costs_nothing_at_first(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.capacity = 100u << 20;
  config.page_tokens[0] = config.page_tokens[1] = 64;
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 1, 1, STELE_CACHE_DYNAMIC);
  int32_t ids[40];
  fill_ids(ids, 40, 5, VOCAB);
  assert_true(s->cache.groups[0].pool.bytes > (size_t)3 << 30);
  check_feed(&config, s, ids, 40, 16, STELE_OUTPUT_TOKEN);
  assert_true(stele_session_cache_bytes(s) < 8192);
  stele_session_destroy(s);
  stele_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(feeds_of_all_widths_and_outputs),
      cmocka_unit_test(page_sizes_and_odd_capacities),
      cmocka_unit_test(capacity_edges),
      cmocka_unit_test(lanes_do_not_meet),
      cmocka_unit_test(sessions_are_isolated),
      cmocka_unit_test(poisoned_memory_is_never_seen),
      cmocka_unit_test(padding_on_the_left),
      cmocka_unit_test(cache_bytes_follow_use),
      cmocka_unit_test(crops_at_any_place),
      cmocka_unit_test(crops_no_more_than_there_is),
      cmocka_unit_test(verifies_as_it_decodes),
      cmocka_unit_test(steps_that_are_not_there),
      cmocka_unit_test(bad_arguments),
      cmocka_unit_test(caches_that_are_not_offered),
      cmocka_unit_test(a_long_context_costs_nothing_at_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
