/* Windows and chunks: whatever a lane went through, what follows is what follows its ids alone, and
 * no more pages are held than the window and one page of tokens need. */
#include "cache/cache.h"
#include "session/session.h"
#include "testing.h"

#define LANES 4u
#define MOST 256u /* capacity */

/* ---- random sequences of calls ----------------------------------------------------------- */

typedef struct trial {
  fake_config config;
  stele_model *model;
  stele_session *session;
  uint32_t lanes, random;
  int32_t ids[LANES][MOST];
  uint32_t length[LANES], fed[LANES]; /* tokens, and what they were before crops */
  uint32_t crops, refused;            /* in all trials */
} trial;

static uint32_t below(trial *t, uint32_t limit) {
  t->random = fake_mix(t->random, 99);
  return t->random % limit;
}

static uint32_t page_limit(const stele_group *g) {
  uint32_t pages = (g->window + g->page_tokens - 1) / g->page_tokens + 1;
  return pages < g->table_entries ? pages : g->table_entries;
}

static uint32_t pages_of(const cache_group *group, uint32_t lane) {
  const stele_group *g = group->geometry;
  uint32_t count = 0;
  for (uint32_t e = 0; e < g->table_entries; e++) {
    int32_t page = group->read_table[lane * g->table_entries + e];
    assert_int_equal(page, group->store_table[lane * g->table_entries + e]);
    count += page >= 0;
  }
  return count;
}

/* Between steps both tables agree, no page is lost, none is held too long. */
static void check_pages(const trial *t) {
  const cache *held = &t->session->cache;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < FAKE_GROUPS; i++) {
    const cache_group *group = &held->groups[i];
    uint32_t used = 0;
    for (uint32_t lane = 0; lane < t->lanes; lane++) {
      uint32_t pages = pages_of(group, lane);
      if (group->geometry->window) assert_true(pages <= page_limit(group->geometry));
      used += pages;
    }
    assert_int_equal(group->pool.used, used);
    uint32_t count = held->committed ? group->pool.count : used;
    bytes += (uint64_t)count * group->geometry->page_bytes * group->geometry->layers;
    if (group->geometry->window)
      assert_int_equal(group->pool.count, t->lanes * page_limit(group->geometry));
  }
  assert_int_equal(stele_session_cache_bytes(t->session), bytes);
}

static void add_ids(trial *t, uint32_t lane, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    t->ids[lane][t->length[lane] + i] = (int32_t)below(t, t->config.vocab);
}

static void expect_next(const trial *t, uint32_t lane, uint32_t length, int32_t found,
                        const char *what) {
  int32_t expected = fake_next(&t->config, t->ids[lane], length);
  if (found != expected)
    fail_msg("%s, window %u (kind %u) pages %u, %u tokens: %d, %d expected", what,
             t->config.window[0], t->config.kind[0], t->config.page_tokens[0], length, found,
             expected);
}

static void feed(trial *t, uint32_t lane, uint32_t left) {
  uint32_t count = 1 + below(t, left);
  int32_t token;
  add_ids(t, lane, count);
  assert_ok(stele_session_feed(t->session, lane, t->ids[lane] + t->length[lane], count,
                               STELE_OUTPUT_TOKEN, &token, sink));
  t->fed[lane] = t->length[lane] += count;
  expect_next(t, lane, t->length[lane], token, "feed");
}

static void step(trial *t) {
  uint32_t lanes[LANES], count = 0, start = below(t, t->lanes);
  int32_t ids[LANES], tokens[LANES];
  for (uint32_t i = 0; i < t->lanes; i++) {
    uint32_t lane = (start + i) % t->lanes;
    if (t->length[lane] == t->config.capacity || below(t, 3) == 0) continue;
    add_ids(t, lane, 1);
    ids[count] = t->ids[lane][t->length[lane]];
    t->fed[lane] = ++t->length[lane];
    lanes[count++] = lane;
  }
  if (!count) return;
  assert_ok(stele_session_step(t->session, lanes, ids, count, STELE_OUTPUT_TOKEN, tokens, sink));
  for (uint32_t i = 0; i < count; i++)
    expect_next(t, lanes[i], t->length[lanes[i]], tokens[i], "step");
}

/* As many as there is room for; afterwards any of them can be dropped. */
static void verify(trial *t, uint32_t lane, uint32_t left) {
  uint32_t room = session_verify_room(t->session, lane), most = room < left ? room : left;
  int32_t tokens[8];
  assert_true(room >= 2 || left == 1);
  uint32_t count = below(t, 2) ? most : 1 + below(t, most);
  add_ids(t, lane, count);
  assert_ok(session_verify(t->session, lane, t->ids[lane] + t->length[lane], count, tokens, sink));
  for (uint32_t i = 0; i < count; i++)
    expect_next(t, lane, t->length[lane] + i + 1, tokens[i], "verify");
  t->fed[lane] = t->length[lane] += count;
  uint32_t first = below(t, count + 1), second = below(t, count - first + 1);
  assert_ok(stele_session_crop(t->session, lane, first, sink));
  check_pages(t);
  assert_ok(stele_session_crop(t->session, lane, second, sink));
  t->length[lane] -= first + second;
}

/* Whether the token at a slot sees what the last one that was fed did not. */
static bool sees_more(const trial *t, uint32_t lane, uint32_t slot) {
  bool more = false;
  for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++)
    more |= fake_seen_from(&t->config, layer, slot) <
            fake_seen_from(&t->config, layer, t->fed[lane] - 1);
  return more;
}

/* A crop that is refused changes nothing; what the last token saw is always there. */
static void crop(trial *t, uint32_t lane) {
  uint32_t length = t->length[lane], count = below(t, length + 1);
  if (below(t, 2)) count = count % 5;
  stele_sink why = {0};
  stele_status status = stele_session_crop(t->session, lane, count, &why);
  t->crops++;
  if (status == STELE_OK) {
    t->length[lane] -= count;
  } else {
    assert_int_equal(status, STELE_INVALID_ARGUMENT);
    assert_contains(why.text, "cannot be dropped");
    assert_true(sees_more(t, lane, length - count));
    t->refused++;
  }
  assert_int_equal(stele_session_length(t->session, lane), t->length[lane]);
}

static void act(trial *t) {
  uint32_t lane = below(t, t->lanes), left = t->config.capacity - t->length[lane];
  uint32_t what = below(t, 16);
  if (what == 0) {
    stele_session_reset(t->session, lane);
    t->length[lane] = 0;
  } else if (what < 4) {
    crop(t, lane);
  } else if (what < 8) {
    step(t);
  } else if (left && what < 12) {
    verify(t, lane, left);
  } else if (left) {
    feed(t, lane, below(t, 3) ? left : left < 9 ? left : 9);
  }
  check_pages(t);
}

static void choose(trial *t, uint32_t seed) {
  static const uint32_t widths[] = {1, 5, 16}, verifies[] = {3, 8};
  t->random = seed;
  t->config = fake_default();
  t->config.seed = seed;
  t->config.capacity = 1 + below(t, MOST);
  t->config.prefill_width = widths[below(t, 3)];
  t->config.verify_width = verifies[below(t, 2)];
  t->config.value_in_key = below(t, 4) == 0;
  t->lanes = 1 + below(t, LANES);
  for (uint32_t g = 0; g < FAKE_GROUPS; g++) {
    t->config.kind[g] = below(t, 5) == 0 ? STELE_GROUP_FULL : STELE_GROUP_WINDOW + below(t, 2);
    uint32_t window = 1 + below(t, below(t, 2) ? 100 : 20), most = 64;
    if (t->config.kind[g] != STELE_GROUP_FULL) t->config.window[g] = most = window;
    uint32_t pages = 1;
    while (pages < 64 && pages * 2 <= most && below(t, 4)) pages *= 2;
    t->config.page_tokens[g] = pages;
  }
  memset(t->length, 0, sizeof t->length);
}

static void any_calls_in_any_order(void **state) {
  (void)state;
  trial t = {0};
  for (uint32_t seed = 1; seed <= 150; seed++) {
    choose(&t, seed);
    t.model = open_fake(&t.config);
    t.session = create_session(t.model, t.lanes, 1 + seed % 2, seed % 3 == 0);
    for (uint32_t i = 0; i < 40; i++) act(&t);
    stele_session_destroy(t.session);
    stele_model_close(t.model);
  }
  assert_true(t.crops > 300 && t.refused > 40 && t.refused < t.crops / 2);
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Layers 0 and 2 keep windows of 16 tokens, layer 1 chunks of 12; the group sizes of pages. */
static fake_config windows(uint32_t capacity) {
  fake_config config = fake_default();
  config.capacity = capacity;
  config.kind[0] = STELE_GROUP_WINDOW;
  config.window[0] = 16;
  config.page_tokens[0] = 8;
  config.kind[1] = STELE_GROUP_CHUNK;
  config.window[1] = 12;
  config.page_tokens[1] = 4;
  return config;
}

/* Decoding, feeding and verifying, however long: the window and one page. */
static void memory_stops_growing(void **state) {
  (void)state;
  fake_config config = windows(100000);
  stele_model *model = open_fake(&config);
  const stele_group *g = stele_model_artifact(model)->groups;
  uint64_t most = 2 * (16 / 8 + 1) * g[0].page_bytes + (12 / 4 + 1) * g[1].page_bytes;
  stele_session *s = create_session(model, 1, 1, STELE_CACHE_DYNAMIC);
  int32_t ids[16], token;
  fill_ids(ids, 16, 3, config.vocab);
  const uint32_t lane = 0;
  for (uint32_t i = 0; i < 1000; i++) {
    uint32_t count = i % 3 ? 1 : 1 + i % 16;
    if (count == 1)
      assert_ok(stele_session_step(s, &lane, ids, 1, STELE_OUTPUT_TOKEN, &token, sink));
    else
      assert_ok(stele_session_feed(s, 0, ids, count, STELE_OUTPUT_NONE, NULL, sink));
    assert_true(stele_session_cache_bytes(s) <= most);
    uint32_t room = session_verify_room(s, 0);
    assert_ok(session_verify(s, 0, ids, room, (int32_t[8]){0}, sink));
    assert_true(stele_session_cache_bytes(s) <= most);
    assert_true(s->cache.groups[0].pool.bytes <= 2 * 4096);
  }
  stele_session_destroy(s);
  s = create_session(model, 1, 1, STELE_CACHE_STATIC);
  assert_int_equal(stele_session_cache_bytes(s), most);
  stele_session_destroy(s);
  stele_model_close(model);
}

/* A window that is never left costs what a full cache costs. */
static void windows_beyond_the_capacity(void **state) {
  (void)state;
  for (uint32_t kind = STELE_GROUP_WINDOW; kind <= STELE_GROUP_CHUNK; kind++) {
    fake_config config = fake_default(), full = fake_default();
    config.kind[0] = config.kind[1] = kind;
    config.window[0] = UINT32_MAX;
    config.window[1] = config.capacity;
    stele_model *model = open_fake(&config);
    stele_session *s = create_session(model, 1, 1, STELE_CACHE_STATIC);
    int32_t ids[64], token;
    fill_ids(ids, 64, 5, config.vocab);
    assert_ok(stele_session_feed(s, 0, ids, 64, STELE_OUTPUT_TOKEN, &token, sink));
    assert_int_equal(token, fake_next(&full, ids, 64));
    assert_int_equal(s->cache.groups[0].pool.count, 4);
    assert_int_equal(s->cache.groups[1].pool.count, 16);
    assert_ok(stele_session_crop(s, 0, 63, sink));
    assert_ok(stele_session_feed(s, 0, ids + 1, 5, STELE_OUTPUT_TOKEN, &token, sink));
    assert_int_equal(token, fake_next(&full, ids, 6));
    stele_session_destroy(s);
    stele_model_close(model);
  }
}

/* Several tokens at once behind a full window, as in a chat's second turn. */
static void continues_behind_a_full_window(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.kind[1] = STELE_GROUP_WINDOW;
  config.window[1] = 8;
  config.page_tokens[1] = 8;
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 1, 1, STELE_CACHE_DYNAMIC);
  int32_t ids[24];
  float logits[97];
  fill_ids(ids, 24, 8, config.vocab);
  assert_ok(stele_session_feed(s, 0, ids, 20, STELE_OUTPUT_NONE, NULL, sink));
  assert_int_equal(s->cache.groups[1].pool.used, 2); /* slots 12 to 19 */
  assert_ok(stele_session_feed(s, 0, ids + 20, 4, STELE_OUTPUT_LAST, logits, sink));
  for (uint32_t v = 0; v < config.vocab; v++)
    assert_true(logits[v] == fake_logit(fake_hash(&config, ids, 24), v));
  assert_int_equal(stele_session_length(s, 0), 24);
  assert_int_equal(s->cache.groups[1].pool.used, 1); /* now those from 16 on */
  stele_session_destroy(s);
  stele_model_close(model);
}

/* ---- tables ------------------------------------------------------------------------------- */

static const base_allocator heap = {0};
static const stele_group geometry = {.kind = STELE_GROUP_WINDOW,
                                     .layers = 2,
                                     .capacity = 40,
                                     .window = 8,
                                     .page_tokens = 4,
                                     .table_entries = 10,
                                     .shared_with = -1,
                                     .page_bytes = 64};

typedef struct tables {
  cache_group group;
  int32_t read[2 * 10], store[2 * 10];
} tables;

static void open_tables(tables *t) {
  memset(t->read, -1, sizeof t->read);
  memset(t->store, -1, sizeof t->store);
  t->group = (cache_group){.geometry = &geometry,
                           .kind = &cache_kind_window,
                           .read_table = t->read,
                           .store_table = t->store};
  assert_ok(cache_pool_init(&t->group.pool, &geometry, 6, true, &heap, sink));
}

static void run(tables *t, uint32_t lane, uint32_t filled, uint32_t count, bool staged) {
  const cache_step step = {.lane = lane, .filled = filled, .count = count, .staged = staged};
  t->group.kind->begin(&t->group, &step);
  t->group.kind->end(&t->group, &step);
}

/* A wide step reads pages that it then stores to, and stores nothing that is out of the window
 * when it ends. */
static void pages_are_read_then_stored_anew(void **state) {
  (void)state;
  tables t;
  open_tables(&t);
  run(&t, 0, 0, 22, true);
  assert_int_equal(t.group.pool.used, 3); /* slots 14 to 21: pages 3 to 5 */
  int32_t old[3] = {t.read[3], t.read[4], t.read[5]};
  const cache_step wide = {.filled = 22, .count = 15, .staged = true};
  t.group.kind->begin(&t.group, &wide);
  for (uint32_t e = 0; e < 10; e++) {
    assert_int_equal(t.read[e], e >= 3 && e <= 5 ? old[e - 3] : -1);
    if (e < 7) assert_int_equal(t.store[e], -1); /* the last token sees slots from 29 on */
  }
  for (uint32_t e = 7; e < 10; e++) {
    bool again = t.store[e] == old[0] || t.store[e] == old[1] || t.store[e] == old[2];
    assert_true(again);
  }
  t.group.kind->end(&t.group, &wide);
  assert_int_equal(t.read[5], -1);
  assert_int_equal(t.read[9], t.store[9]);
  assert_int_equal(t.group.pool.used, 3);
  cache_pool_deinit(&t.group.pool, &heap);
}

/* A step of one token stores before it reads: it never takes a page that it reads. */
static void one_token_takes_no_page_that_it_reads(void **state) {
  (void)state;
  tables t;
  open_tables(&t);
  for (uint32_t slot = 0; slot < 40; slot++) {
    const cache_step step = {.filled = slot, .count = 1};
    t.group.kind->begin(&t.group, &step);
    uint32_t from = slot >= 8 ? slot - 7 : 0;
    for (uint32_t e = 0; e < 10; e++) {
      assert_int_equal(t.read[e] >= 0, e >= from / 4 && e <= slot / 4);
      assert_int_equal(t.read[e], t.store[e]);
      for (uint32_t other = 0; t.read[e] >= 0 && other < e; other++)
        assert_int_not_equal(t.read[e], t.read[other]);
    }
    t.group.kind->end(&t.group, &step);
    assert_true(t.group.pool.used <= 3);
  }
  cache_pool_deinit(&t.group.pool, &heap);
}

static uint8_t *page_at(const cache_pool *pool, int32_t page) {
  return pool->memory + pool->layer_bytes + (size_t)page * pool->page_bytes;
}

/* A lane that shares pages copies the one that it stores to, before it can be taken for another,
 * and leaves the rest to the other lane when they leave its window. */
static void shared_pages(void **state) {
  (void)state;
  for (uint32_t count = 1; count <= 14; count++)
    for (uint32_t staged = count > 1; staged <= 1; staged++) {
      tables t;
      open_tables(&t);
      run(&t, 0, 0, 22, true);
      for (uint32_t e = 3; e <= 5; e++) {
        memset(page_at(&t.group.pool, t.read[e]), (int)e, 64);
        t.read[10 + e] = t.store[10 + e] = t.read[e];
        cache_pool_retain(&t.group.pool, t.read[e]);
      }
      int32_t shared[3] = {t.read[3], t.read[4], t.read[5]};
      const cache_step step = {.lane = 1, .filled = 22, .count = count, .staged = staged};
      t.group.kind->begin(&t.group, &step);
      assert_int_equal(t.read[13], shared[0]);
      assert_int_equal(t.read[14], shared[1]);
      assert_int_equal(*page_at(&t.group.pool, t.read[15]), 5);
      for (uint32_t e = 0; e < 10; e++)
        for (uint32_t k = 0; k < 3 && t.store[10 + e] >= 0 && e >= 5; k++)
          assert_int_not_equal(t.store[10 + e], shared[k]);
      t.group.kind->end(&t.group, &step);
      run(&t, 0, 22, 15, true); /* the other lane goes on */
      t.group.kind->crop(&t.group, 0, 37, 0);
      t.group.kind->crop(&t.group, 1, 22 + count, 0);
      assert_int_equal(t.group.pool.used, 0);
      cache_pool_deinit(&t.group.pool, &heap);
    }
}

/* ---- crops and prompt lookup --------------------------------------------------------------- */

static void a_refused_crop_changes_nothing(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.kind[1] = STELE_GROUP_WINDOW;
  config.window[1] = 8;
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 1, 1, STELE_CACHE_DYNAMIC);
  stele_sink why = {0};
  int32_t ids[64], token;
  fill_ids(ids, 64, 8, config.vocab);
  assert_ok(stele_session_feed(s, 0, ids, 7, STELE_OUTPUT_NONE, NULL, sink));
  assert_ok(stele_session_crop(s, 0, 3, sink)); /* the window is not full yet */
  assert_ok(stele_session_feed(s, 0, ids + 4, 26, STELE_OUTPUT_NONE, NULL, sink));
  uint64_t bytes = stele_session_cache_bytes(s); /* slots 23 to 29 are seen, those from 20 held */
  assert_int_equal(stele_session_crop(s, 0, 4, &why), STELE_INVALID_ARGUMENT);
  assert_contains(why.text, "4 tokens cannot be dropped from lane 0");
  assert_contains(why.text, "the 26 that would be left sees tokens from number 19 on");
  assert_contains(why.text,
                  "layer group 1 (a window of 8 tokens) has kept those from number 20 on");
  assert_int_equal(stele_session_length(s, 0), 30);
  assert_int_equal(stele_session_cache_bytes(s), bytes);
  assert_ok(stele_session_crop(s, 0, 0, sink));
  assert_ok(stele_session_feed(s, 0, ids + 30, 1, STELE_OUTPUT_TOKEN, &token, sink));
  assert_int_equal(token, fake_next(&config, ids, 31));
  assert_ok(stele_session_crop(s, 0, 1, sink)); /* one decoded token */
  assert_ok(stele_session_crop(s, 0, 3, sink));
  assert_ok(stele_session_feed(s, 0, ids + 27, 3, STELE_OUTPUT_TOKEN, &token, sink));
  assert_int_equal(token, fake_next(&config, ids, 30));
  assert_ok(stele_session_crop(s, 0, 30, sink)); /* all */
  assert_int_equal(stele_session_cache_bytes(s), 0);
  stele_session_destroy(s);
  stele_model_close(model);
}

static void verifies_no_more_than_can_be_dropped(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.kind[1] = STELE_GROUP_CHUNK;
  config.window[1] = 4;
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 1, 1, STELE_CACHE_DYNAMIC);
  stele_sink why = {0};
  int32_t ids[8], tokens[8];
  fill_ids(ids, 8, 8, config.vocab);
  assert_int_equal(session_verify_room(s, 0), 8);
  assert_ok(stele_session_feed(s, 0, ids, 3, STELE_OUTPUT_NONE, NULL, sink));
  assert_int_equal(session_verify_room(s, 0), 5);
  assert_int_equal(session_verify(s, 0, ids, 6, tokens, &why), STELE_INVALID_ARGUMENT);
  assert_contains(why.text, "6 ids to verify");
  assert_contains(why.text, "lane 0 can take 5");
  assert_int_equal(stele_session_length(s, 0), 3);
  assert_ok(session_verify(s, 0, ids, 5, tokens, sink));
  stele_session_destroy(s);
  stele_model_close(model);
}

/* Guesses, right and wrong ones, far beyond the window: ids and cache as without. */
static void prompt_lookup_is_exact(void **state) {
  (void)state;
  uint32_t drafted = 0, accepted = 0;
  for (uint32_t window = 1; window <= 24; window++)
    for (uint32_t kind = STELE_GROUP_WINDOW; kind <= STELE_GROUP_CHUNK; kind++) {
      fake_config config = fake_default();
      config.capacity = 256;
      config.period = 7;
      config.seed = window;
      config.kind[window % 2] = kind;
      config.window[window % 2] = window;
      config.page_tokens[window % 2] = window < 4 ? 1 : window < 16 ? 4 : 16;
      stele_model *model = open_fake(&config);
      stele_session *s = create_session(model, 1, 1, kind % 2);
      stele_generate_options options = {.struct_bytes = sizeof options, .max_new_tokens = 150};
      stele_generate_result result;
      int32_t prompt[40], plain[150], guessed[150], all[256], token;
      fill_ids(prompt, 40, window, config.vocab);
      assert_ok(stele_generate(s, prompt, 40, &options, plain, 150, sink, &result));
      stele_session_reset(s, 0);
      options.prompt_lookup_num_tokens = 7;
      assert_ok(stele_generate(s, prompt, 40, &options, guessed, 150, sink, &result));
      assert_memory_equal(plain, guessed, sizeof plain);
      drafted += result.drafted_tokens;
      accepted += result.accepted_tokens;
      memcpy(all, prompt, sizeof prompt);
      memcpy(all + 40, plain, sizeof plain);
      assert_ok(stele_session_feed(s, 0, plain + 149, 1, STELE_OUTPUT_TOKEN, &token, sink));
      assert_int_equal(token, fake_next(&config, all, 190));
      stele_session_destroy(s);
      stele_model_close(model);
    }
  assert_true(accepted > 48 * 30 && drafted > accepted + 48 * 10);
}

/* ---- values in keys ------------------------------------------------------------------------ */

static void values_that_are_in_keys(void **state) {
  (void)state;
  fake_config config = fake_default(), usual = fake_default();
  config.value_in_key = 1;
  config.page_tokens[0] = config.page_tokens[1] = 64;
  usual.page_tokens[0] = usual.page_tokens[1] = 64;
  uint64_t bytes[2];
  for (int i = 0; i < 2; i++) {
    const fake_config *c = i ? &config : &usual;
    stele_model *model = open_fake(c);
    stele_session *s = create_session(model, 1, 1, STELE_CACHE_DYNAMIC);
    int32_t ids[40], token;
    fill_ids(ids, 40, 8, config.vocab);
    assert_ok(stele_session_feed(s, 0, ids, 40, STELE_OUTPUT_TOKEN, &token, sink));
    assert_int_equal(token, fake_next(c, ids, 40));
    bytes[i] = stele_session_cache_bytes(s);
    stele_session_destroy(s);
    stele_model_close(model);
  }
  assert_int_equal(bytes[0], 2 * bytes[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_calls_in_any_order),
      cmocka_unit_test(memory_stops_growing),
      cmocka_unit_test(windows_beyond_the_capacity),
      cmocka_unit_test(continues_behind_a_full_window),
      cmocka_unit_test(pages_are_read_then_stored_anew),
      cmocka_unit_test(one_token_takes_no_page_that_it_reads),
      cmocka_unit_test(shared_pages),
      cmocka_unit_test(a_refused_crop_changes_nothing),
      cmocka_unit_test(verifies_no_more_than_can_be_dropped),
      cmocka_unit_test(prompt_lookup_is_exact),
      cmocka_unit_test(values_that_are_in_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
