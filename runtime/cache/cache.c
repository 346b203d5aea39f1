/* All groups of an artefact's cache for the lanes of one session. */
#include <inttypes.h>

#include "cache/cache.h"

static const cache_kind *const kinds[] = {
#define X(name) &cache_kind_##name,
#include "cache/cache_kinds.def"
#undef X
};

static const cache_kind *find_kind(const stele_group *group) {
  if (group->shared_with >= 0 || group->residual) return NULL;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i]->kind == group->kind) return kinds[i];
  return NULL;
}

static stele_status init_group(cache *self, uint32_t index, uint32_t rows,
                               const base_allocator *allocator, stele_sink *sink) {
  cache_group *group = &self->groups[index];
  const stele_group *geometry = &self->artifact->groups[index];
  const cache_kind *kind = find_kind(geometry);
  size_t entries, pages;
  if (!kind)
    return base_fail(sink, STELE_UNSUPPORTED,
                     "layer group %" PRIu32 " keeps its cache in a way (kind %" PRIu32
                     ") that this library does not offer",
                     index, geometry->kind);
  if (!base_mul(rows, geometry->table_entries, &entries) ||
      !base_mul(self->lanes, stele_group_lane_pages(geometry), &pages) || pages > INT32_MAX)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "a cache of %" PRIu32 " lanes has too many pages",
                     self->lanes);
  group->geometry = geometry;
  group->kind = kind;
  group->read_table = base_allocate(allocator, entries, sizeof *group->read_table);
  group->store_table = kind->begin ? base_allocate(allocator, entries, sizeof *group->store_table)
                                   : group->read_table;
  if (!group->read_table || !group->store_table)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "page tables could not be had");
  for (size_t i = 0; i < entries; i++) group->read_table[i] = group->store_table[i] = -1;
  return cache_pool_init(&group->pool, geometry, (uint32_t)pages, self->committed, allocator, sink);
}

static void point_layers(cache *self) {
  const stele_artifact *a = self->artifact;
  for (uint32_t g = 0; g < a->group_count; g++) {
    uint8_t *pages = self->groups[g].pool.memory;
    for (uint32_t layer = 0; layer < a->layers; layer++) {
      if (a->layer_group[layer] != g) continue;
      self->layer_pages[layer] = pages;
      pages += self->groups[g].pool.layer_bytes;
    }
  }
}

stele_status cache_init(cache *self, const stele_artifact *artifact, uint32_t lanes, uint32_t rows,
                        bool commit, const base_allocator *allocator, stele_sink *sink) {
  *self = (cache){.artifact = artifact, .lanes = lanes, .committed = commit};
  self->groups = base_allocate(allocator, artifact->group_count, sizeof *self->groups);
  self->layer_pages = base_allocate(allocator, artifact->layers, sizeof *self->layer_pages);
  if (!self->groups || !self->layer_pages)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "memory for the cache could not be had");
  for (uint32_t g = 0; g < artifact->group_count; g++)
    BASE_TRY(init_group(self, g, rows, allocator, sink));
  point_layers(self);
  return STELE_OK;
}

void cache_deinit(cache *self, const base_allocator *allocator) {
  for (uint32_t g = 0; self->groups && g < self->artifact->group_count; g++) {
    cache_group *group = &self->groups[g];
    cache_pool_deinit(&group->pool, allocator);
    if (group->store_table != group->read_table) base_release(allocator, group->store_table);
    base_release(allocator, group->read_table);
  }
  base_release(allocator, self->groups);
  base_release(allocator, self->layer_pages);
  *self = (cache){0};
}

bool cache_extend(cache *self, uint32_t lane, uint32_t filled, uint32_t count) {
  for (uint32_t g = 0; g < self->artifact->group_count; g++)
    if (!self->groups[g].kind->extend(&self->groups[g], lane, filled, count)) return false;
  return true;
}

void cache_begin(cache *self, const cache_step *step) {
  for (uint32_t g = 0; g < self->artifact->group_count; g++)
    if (self->groups[g].kind->begin) self->groups[g].kind->begin(&self->groups[g], step);
}

void cache_end(cache *self, const cache_step *step) {
  for (uint32_t g = 0; g < self->artifact->group_count; g++)
    if (self->groups[g].kind->end) self->groups[g].kind->end(&self->groups[g], step);
}

uint32_t cache_room(const cache *self, uint32_t filled, uint32_t most) {
  for (uint32_t g = 0; g < self->artifact->group_count; g++) {
    const cache_group *group = &self->groups[g];
    if (group->kind->room)
      most = (uint32_t)base_min(most, group->kind->room(group->geometry, filled));
  }
  return most;
}

/* Whether the next token would see what the lane no longer has. */
static stele_status check_crop(const cache *self, uint32_t index, uint32_t lane, uint32_t filled,
                               uint32_t length, stele_sink *sink) {
  const cache_group *group = &self->groups[index];
  if (!group->kind->held_from) return STELE_OK;
  uint32_t seen = group->kind->seen_from(group->geometry, length);
  uint32_t held = group->kind->held_from(group, lane, filled);
  if (seen == length || seen >= held) return STELE_OK;
  return base_fail(
      sink, STELE_INVALID_ARGUMENT,
      "%" PRIu32 " tokens cannot be dropped from lane %" PRIu32 ": a token behind the %" PRIu32
      " that would be left sees tokens from number %" PRIu32 " on, but layer group %" PRIu32
      " (%s of %" PRIu32 " tokens) has kept those from number %" PRIu32 " on",
      filled - length, lane, length, seen, index, group->kind->name, group->geometry->window, held);
}

void cache_reset(cache *self, uint32_t lane, uint32_t filled) {
  for (uint32_t g = 0; g < self->artifact->group_count; g++)
    self->groups[g].kind->crop(&self->groups[g], lane, filled, 0);
}

stele_status cache_crop(cache *self, uint32_t lane, uint32_t filled, uint32_t length,
                        stele_sink *sink) {
  for (uint32_t g = 0; g < self->artifact->group_count; g++)
    BASE_TRY(check_crop(self, g, lane, filled, length, sink));
  for (uint32_t g = 0; g < self->artifact->group_count; g++)
    self->groups[g].kind->crop(&self->groups[g], lane, filled, length);
  return STELE_OK;
}

uint64_t cache_bytes(const cache *self) {
  uint64_t bytes = 0;
  for (uint32_t g = 0; g < self->artifact->group_count; g++) {
    const cache_pool *pool = &self->groups[g].pool;
    uint32_t pages = self->committed ? pool->count : pool->used;
    bytes += (uint64_t)pages * pool->page_bytes * pool->layers;
  }
  return bytes;
}
