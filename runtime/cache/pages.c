/* Pools of pages with reference counts. Free pages are a stack, so that a page that was just
 * given back, still warm in the processor's caches, is the next to be taken. */
#include <inttypes.h>
#include <string.h>

#include "cache/cache.h"

#define SYSTEM_PAGE 4096

static stele_status too_large(stele_sink *sink) {
  return base_fail(sink, STELE_OUT_OF_MEMORY, "the cache is larger than the address space");
}

stele_status cache_pool_init(cache_pool *pool, const stele_group *group, uint32_t count,
                             bool commit, const base_allocator *allocator, stele_sink *sink) {
  size_t layer_bytes, bytes;
  if (!base_mul((size_t)group->page_bytes, count, &layer_bytes) || layer_bytes > SIZE_MAX / 2)
    return too_large(sink);
  layer_bytes = base_align(layer_bytes, SYSTEM_PAGE);
  if (!base_mul(layer_bytes, group->layers, &bytes)) return too_large(sink);
  *pool = (cache_pool){.bytes = bytes,
                       .layer_bytes = layer_bytes,
                       .page_bytes = (size_t)group->page_bytes,
                       .layers = group->layers,
                       .count = count};
  pool->memory = base_pages_reserve(bytes, commit);
  pool->free = base_allocate(allocator, count, sizeof *pool->free);
  pool->users = base_allocate(allocator, count, sizeof *pool->users);
  if ((bytes && !pool->memory) || !pool->free || !pool->users) {
    cache_pool_deinit(pool, allocator);
    return base_fail(sink, STELE_OUT_OF_MEMORY,
                     "%zu bytes of memory for the cache could not be had", bytes);
  }
  for (uint32_t i = 0; i < count; i++) pool->free[i] = (int32_t)(count - 1 - i);
  if (commit) base_pages_commit(pool->memory, bytes);
  return STELE_OK;
}

void cache_pool_deinit(cache_pool *pool, const base_allocator *allocator) {
  base_pages_release(pool->memory, pool->bytes);
  base_release(allocator, pool->free);
  base_release(allocator, pool->users);
  *pool = (cache_pool){0};
}

int32_t cache_pool_take(cache_pool *pool) {
  if (pool->used == pool->count) return -1;
  int32_t page = pool->free[pool->count - ++pool->used];
  pool->users[page] = 1;
  return page;
}

void cache_pool_retain(cache_pool *pool, int32_t page) { pool->users[page]++; }

void cache_pool_release(cache_pool *pool, int32_t page) {
  if (--pool->users[page]) return;
  pool->free[pool->count - pool->used--] = page;
}

int32_t cache_pool_unshare(cache_pool *pool, int32_t page) {
  if (pool->users[page] == 1) return page;
  int32_t own = cache_pool_take(pool);
  if (own < 0) return -1;
  for (uint32_t layer = 0; layer < pool->layers; layer++) {
    uint8_t *pages = pool->memory + layer * pool->layer_bytes;
    memcpy(pages + (size_t)own * pool->page_bytes, pages + (size_t)page * pool->page_bytes,
           pool->page_bytes);
  }
  cache_pool_release(pool, page);
  return own;
}
