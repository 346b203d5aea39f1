/* Windows and chunks: a token at slot s sees, in a window of w tokens, the slots from s - w + 1 on,
 * in chunks of w those from w * floor(s / w) on. What the last token does not see is not kept, so
 * however long a lane grows it has no more pages than a window and one page of tokens need.
 *
 * Tables stay absolute: entry e is for slots [e * page_tokens, (e + 1) * page_tokens), -1 where
 * the lane has none; those that it has are neighbours, the last one holds its last token.
 *
 * A step of tokens [f, e) begins by giving back the pages that its first token no longer sees. If
 * it is staged, those that its last token does not see are read and given back as well: since the
 * step stores only when it has read, they take its own tokens, but for those that its last token
 * does not see, which are stored nowhere. So that any of a step's tokens can be dropped, all pages
 * that its first token sees must remain; `room` says how many tokens that leaves space for. */
#include <assert.h>

#include "cache/cache.h"

static uint32_t seen_from(const stele_group *g, uint32_t slot) {
  return slot + 1 - stele_group_seen(g, slot + 1);
}

static uint32_t first_page(const stele_group *g, uint32_t slot) {
  return seen_from(g, slot) / g->page_tokens;
}

/* The page behind those of so many tokens. */
static uint32_t end_page(const stele_group *g, uint32_t filled) {
  return filled / g->page_tokens + (filled % g->page_tokens != 0);
}

static int32_t *row_of(const cache_group *group, int32_t *table, uint32_t lane) {
  return table + (size_t)lane * group->geometry->table_entries;
}

/* A lane has as many pages as it ever needs. */
static bool extend(cache_group *group, uint32_t lane, uint32_t filled, uint32_t count) {
  (void)group, (void)lane, (void)filled, (void)count;
  return true;
}

/* Gives back the pages from `begin`, at the least, up to `end`. */
static void give_back(cache_group *group, uint32_t lane, uint32_t begin, uint32_t end) {
  int32_t *read = row_of(group, group->read_table, lane);
  int32_t *store = row_of(group, group->store_table, lane);
  for (uint32_t e = end; e-- > begin && read[e] >= 0;) {
    cache_pool_release(&group->pool, read[e]);
    read[e] = store[e] = -1;
  }
}

static void begin(cache_group *group, const cache_step *step) {
  const stele_group *g = group->geometry;
  int32_t *read = row_of(group, group->read_table, step->lane);
  int32_t *store = row_of(group, group->store_table, step->lane);
  uint32_t filled = step->filled, first = filled / g->page_tokens;
  uint32_t end = end_page(g, filled + step->count), seen = first_page(g, filled);
  uint32_t kept = step->droppable ? seen : first_page(g, filled + step->count - 1);
  give_back(group, step->lane, 0, seen);
  if (kept <= first &&
      read[first] >= 0) /* before pages are given back that are read in this step */
    read[first] = store[first] = cache_pool_unshare(&group->pool, read[first]);
  for (uint32_t e = seen; e < kept && read[e] >= 0; e++) {
    cache_pool_release(&group->pool, read[e]);
    store[e] = -1;
  }
  for (uint32_t e = (uint32_t)base_max(first, kept); e < end; e++) {
    if (store[e] < 0) store[e] = cache_pool_take(&group->pool);
    if (!step->staged) read[e] = store[e];
    assert(store[e] >= 0);
  }
}

static void end(cache_group *group, const cache_step *step) {
  const stele_group *g = group->geometry;
  int32_t *read = row_of(group, group->read_table, step->lane);
  const int32_t *store = row_of(group, group->store_table, step->lane);
  uint32_t stop = end_page(g, step->filled + step->count);
  for (uint32_t e = first_page(g, step->filled); e < stop; e++) read[e] = store[e];
}

static void crop(cache_group *group, uint32_t lane, uint32_t filled, uint32_t length) {
  give_back(group, lane, end_page(group->geometry, length), end_page(group->geometry, filled));
}

static uint32_t held_from(const cache_group *group, uint32_t lane, uint32_t filled) {
  const stele_group *g = group->geometry;
  const int32_t *read = row_of(group, group->read_table, lane);
  uint32_t e = end_page(g, filled);
  while (e > 0 && read[e - 1] >= 0) e--;
  return e * g->page_tokens;
}

static uint64_t room(const stele_group *g, uint32_t filled) {
  uint64_t end = (uint64_t)first_page(g, filled) + stele_group_lane_pages(g);
  return base_min(end, g->table_entries) * g->page_tokens - filled;
}

/* They differ only in what a token sees. */
#define KIND(number, text) {number, text, extend, crop, begin, end, seen_from, held_from, room}
const cache_kind cache_kind_window = KIND(STELE_GROUP_WINDOW, "a window");
const cache_kind cache_kind_chunk = KIND(STELE_GROUP_CHUNK, "chunks");
