/* Full attention: every token that a lane has seen is kept, so page e of the table holds slots
 * [e * page_tokens, (e + 1) * page_tokens) and is read from and stored to under the same number. */
#include "cache/cache.h"

static int32_t *row_of(const cache_group *group, uint32_t lane) {
  return group->read_table + (size_t)lane * group->geometry->table_entries;
}

static bool extend(cache_group *group, uint32_t lane, uint32_t filled, uint32_t count) {
  uint32_t page_tokens = group->geometry->page_tokens;
  uint32_t first = filled / page_tokens, end = (filled + count - 1) / page_tokens + 1;
  int32_t *row = row_of(group, lane);
  bool shared = row[first] >= 0 && group->pool.users[row[first]] > 1;
  uint32_t wanted = shared;
  for (uint32_t e = first; e < end; e++) wanted += row[e] < 0;
  if (wanted > group->pool.count - group->pool.used) return false;
  if (shared) row[first] = cache_pool_unshare(&group->pool, row[first]);
  for (uint32_t e = first; e < end; e++)
    if (row[e] < 0) row[e] = cache_pool_take(&group->pool);
  return true;
}

static void crop(cache_group *group, uint32_t lane, uint32_t filled, uint32_t length) {
  (void)filled;
  const stele_group *g = group->geometry;
  int32_t *row = row_of(group, lane);
  uint32_t kept = (uint32_t)(((uint64_t)length + g->page_tokens - 1) / g->page_tokens);
  for (uint32_t e = kept; e < g->table_entries && row[e] >= 0; e++) { /* there are no gaps */
    cache_pool_release(&group->pool, row[e]);
    row[e] = -1;
  }
}

const cache_kind cache_kind_full = {
    .kind = STELE_GROUP_FULL, .name = "full", .extend = extend, .crop = crop};
