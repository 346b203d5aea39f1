/* Pools of pages: reference counts, what is taken and given back, copies of shared pages. */
#include "cache/cache.h"
#include "testing.h"

static const base_allocator heap = {0};

static stele_group geometry(void) {
  return (stele_group){.kind = STELE_GROUP_FULL,
                       .layers = 3,
                       .capacity = 10,
                       .page_tokens = 4,
                       .table_entries = 3,
                       .shared_with = -1,
                       .page_bytes = 192};
}

static void takes_and_releases(void **state) {
  (void)state;
  stele_group g = geometry();
  cache_pool pool;
  assert_ok(cache_pool_init(&pool, &g, 5, false, &heap, sink));
  for (int32_t i = 0; i < 5; i++) assert_int_equal(cache_pool_take(&pool), i);
  assert_int_equal(cache_pool_take(&pool), -1);
  cache_pool_retain(&pool, 3);
  cache_pool_release(&pool, 3);
  assert_int_equal(pool.used, 5);
  cache_pool_release(&pool, 3);
  assert_int_equal(pool.used, 4);
  cache_pool_release(&pool, 0);
  assert_int_equal(cache_pool_take(&pool), 0); /* the last one given back is the first taken */
  assert_int_equal(cache_pool_take(&pool), 3);
  assert_int_equal(cache_pool_take(&pool), -1);
  cache_pool_deinit(&pool, &heap);
  cache_pool_deinit(&pool, &heap);
}

static uint8_t *page_at(const cache_pool *pool, uint32_t layer, int32_t page) {
  return pool->memory + layer * pool->layer_bytes + (size_t)page * pool->page_bytes;
}

static void copies_what_is_shared(void **state) {
  (void)state;
  stele_group g = geometry();
  cache_pool pool;
  assert_ok(cache_pool_init(&pool, &g, 2, true, &heap, sink));
  int32_t page = cache_pool_take(&pool);
  for (uint32_t layer = 0; layer < 3; layer++)
    memset(page_at(&pool, layer, page), (int)layer + 1, 192);
  assert_int_equal(cache_pool_unshare(&pool, page), page); /* alone */
  cache_pool_retain(&pool, page);
  int32_t own = cache_pool_unshare(&pool, page);
  assert_int_not_equal(own, page);
  assert_int_equal(pool.users[page], 1);
  assert_int_equal(pool.users[own], 1);
  for (uint32_t layer = 0; layer < 3; layer++)
    assert_memory_equal(page_at(&pool, layer, own), page_at(&pool, layer, page), 192);
  cache_pool_retain(&pool, page);
  assert_int_equal(cache_pool_unshare(&pool, page), -1); /* no page is left for the copy */
  assert_int_equal(pool.users[page], 2);
  cache_pool_deinit(&pool, &heap);
}

/* What a fork of lane 0 into lane 1 is: tables of 3 entries, of which 2 are used. */
static void fork_lane(cache_group *group, int32_t *table) {
  for (int e = 0; e < 2; e++) {
    table[3 + e] = table[e];
    cache_pool_retain(&group->pool, table[e]);
  }
}

/* A lane that appends to a page which it shares gets its own; whole pages stay shared. */
static void extending_a_shared_lane(void **state) {
  (void)state;
  stele_group g = geometry();
  int32_t table[2 * 3] = {-1, -1, -1, -1, -1, -1};
  cache_group group = {
      .geometry = &g, .kind = &cache_kind_full, .read_table = table, .store_table = table};
  assert_ok(cache_pool_init(&group.pool, &g, 6, false, &heap, sink));
  assert_true(group.kind->extend(&group, 0, 0, 6)); /* pages 0 and 1, the second half full */
  assert_int_equal(table[1], 1);
  assert_int_equal(table[2], -1);
  fork_lane(&group, table);
  assert_true(group.kind->extend(&group, 1, 6, 1));
  assert_int_equal(table[3], table[0]);
  assert_int_not_equal(table[4], table[1]);
  assert_true(group.kind->extend(&group, 0, 6, 2)); /* alone again: no copy */
  assert_int_equal(table[1], 1);
  assert_true(group.kind->extend(&group, 0, 8, 2));
  assert_int_equal(group.pool.used, 4);
  group.kind->crop(&group, 0, 10, 0);
  assert_int_equal(group.pool.used, 2);
  assert_int_equal(table[0], -1);
  group.kind->crop(&group, 1, 7, 0);
  assert_int_equal(group.pool.used, 0);
  cache_pool_deinit(&group.pool, &heap);
}

/* Dropping tokens of a lane leaves a page that it shares to the other, and takes one of its own
 * when it goes on within. */
static void cropping_a_shared_lane(void **state) {
  (void)state;
  stele_group g = geometry();
  int32_t table[2 * 3] = {-1, -1, -1, -1, -1, -1};
  cache_group group = {
      .geometry = &g, .kind = &cache_kind_full, .read_table = table, .store_table = table};
  assert_ok(cache_pool_init(&group.pool, &g, 6, false, &heap, sink));
  assert_true(group.kind->extend(&group, 0, 0, 8));
  fork_lane(&group, table);
  group.kind->crop(&group, 1, 8, 5); /* the second page is kept for its first token */
  assert_int_equal(table[4], table[1]);
  group.kind->crop(&group, 1, 5, 3);
  assert_int_equal(table[4], -1);
  assert_int_equal(group.pool.users[table[1]], 1);
  assert_true(group.kind->extend(&group, 1, 3, 1));
  assert_int_not_equal(table[3], table[0]);
  assert_int_equal(group.pool.used, 3);
  group.kind->crop(&group, 1, 4, 4); /* nothing to drop */
  assert_int_equal(group.pool.used, 3);
  cache_pool_deinit(&group.pool, &heap);
}

static void running_out_changes_nothing(void **state) {
  (void)state;
  stele_group g = geometry();
  int32_t table[3] = {-1, -1, -1};
  cache_group group = {
      .geometry = &g, .kind = &cache_kind_full, .read_table = table, .store_table = table};
  assert_ok(cache_pool_init(&group.pool, &g, 2, false, &heap, sink));
  assert_false(group.kind->extend(&group, 0, 0, 9));
  assert_int_equal(group.pool.used, 0);
  assert_int_equal(table[0], -1);
  assert_true(group.kind->extend(&group, 0, 0, 8));
  assert_true(group.kind->extend(&group, 0, 5, 3)); /* room that is there already */
  assert_int_equal(group.pool.used, 2);
  cache_pool_deinit(&group.pool, &heap);
}

static void sizes_beyond_the_address_space(void **state) {
  (void)state;
  stele_group g = geometry();
  stele_sink why = {0};
  cache_pool pool = {0};
  g.page_bytes = (uint64_t)1 << 60;
  assert_int_equal(cache_pool_init(&pool, &g, 1u << 20, false, &heap, &why), STELE_OUT_OF_MEMORY);
  g.page_bytes = (uint64_t)1 << 50;
  assert_int_equal(cache_pool_init(&pool, &g, 1u << 10, false, &heap, &why), STELE_OUT_OF_MEMORY);
  assert_null(pool.memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_and_releases),
      cmocka_unit_test(copies_what_is_shared),
      cmocka_unit_test(extending_a_shared_lane),
      cmocka_unit_test(cropping_a_shared_lane),
      cmocka_unit_test(running_out_changes_nothing),
      cmocka_unit_test(sizes_beyond_the_address_space),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
