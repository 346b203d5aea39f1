/* The index of prompt lookup. A place p of the text is known by the LOOKUP_CONTEXT ids before it;
 * places whose contexts have the same hash are a chain from the latest back, as compressors of the
 * Lempel-Ziv kind keep them (RFC 1951, section 4). Adding an id costs one store; finding the
 * longest context looks at the first CANDIDATES of a chain, however long the text is. */
#include "generate/lookup.h"

#define CANDIDATES 16u

static size_t slots_for(uint32_t limit) {
  size_t slots = 64;
  while (slots < limit) slots *= 2;
  return slots;
}

stele_status lookup_init(lookup *self, uint32_t limit, stele_sink *sink) {
  size_t slots = slots_for(limit), numbers, bytes;
  bool fits = base_mul(limit, 2, &numbers) && base_add(numbers, slots, &numbers) &&
              base_mul(numbers, sizeof(uint32_t), &bytes);
  uint32_t *memory = fits ? base_pages_reserve(bytes, false) : NULL;
  if (!memory)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "memory for prompt lookup could not be had");
  *self = (lookup){.ids = (int32_t *)memory,
                   .before = memory + limit,
                   .latest = memory + 2 * (size_t)limit,
                   .limit = limit,
                   .mask = (uint32_t)(slots - 1),
                   .bytes = bytes};
  return STELE_OK;
}

void lookup_deinit(lookup *self) {
  base_pages_release(self->ids, self->bytes);
  *self = (lookup){0};
}

/* Of the context that ends before a place. */
static uint32_t hash_context(const lookup *self, uint32_t place) {
  uint32_t hash = 0;
  for (uint32_t i = 1; i <= LOOKUP_CONTEXT; i++)
    hash = (hash ^ (uint32_t)self->ids[place - i]) * 0x9e3779b1u;
  return (hash ^ hash >> 15) & self->mask;
}

/* A place is known once an id stands there: what follows it is then not nothing. */
void lookup_append(lookup *self, const int32_t *ids, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t place = self->count;
    self->ids[self->count++] = ids[i];
    if (place < LOOKUP_CONTEXT) continue;
    uint32_t *latest = &self->latest[hash_context(self, place)];
    self->before[place] = *latest;
    *latest = place;
  }
}

/* Ids before a place that are those before the text's end. */
static uint32_t common_context(const lookup *self, uint32_t place, uint32_t longest) {
  uint32_t n = 0, most = (uint32_t)base_min(longest, place);
  while (n < most && self->ids[place - 1 - n] == self->ids[self->count - 1 - n]) n++;
  return n;
}

uint32_t lookup_find(const lookup *self, uint32_t longest, uint32_t *out_context) {
  uint32_t best = 0, best_context = LOOKUP_CONTEXT - 1;
  if (self->count < LOOKUP_CONTEXT) return 0;
  uint32_t place = self->latest[hash_context(self, self->count)];
  for (uint32_t i = 0; place && i < CANDIDATES && best_context < longest; i++) {
    uint32_t context = common_context(self, place, longest);
    if (context > best_context) best = place, best_context = context;
    place = self->before[place];
  }
  if (best) *out_context = best_context;
  return best;
}

void lookup_copy(const lookup *self, uint32_t place, uint32_t count, int32_t *out_ids) {
  uint32_t there = self->count - place;
  for (uint32_t i = 0; i < count; i++)
    out_ids[i] = i < there ? self->ids[place + i] : out_ids[i - there];
}
