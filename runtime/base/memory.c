/* Memory that is not an arena's: single objects through an allocator that the user may supply,
 * and large regions straight from the system. Those that fill up slowly are reserved without
 * accounting, so a cache for a long context costs address space until its pages are used. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base.h"

void *base_allocate(const base_allocator *allocator, size_t count, size_t size) {
  size_t bytes;
  if (!base_mul(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
  bytes = base_max(bytes, 1);
  if (!allocator->allocate) return calloc(1, bytes);
  void *memory = allocator->allocate(allocator->allocate_data, bytes);
  return memory ? memset(memory, 0, bytes) : NULL;
}

void base_release(const base_allocator *allocator, void *memory) {
  if (!memory) return;
  if (!allocator->allocate)
    free(memory);
  else if (allocator->release)
    allocator->release(allocator->allocate_data, memory);
}

void *base_pages_reserve(size_t bytes, bool whole) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (whole ? 0 : MAP_NORESERVE);
  if (!bytes) return NULL;
  void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages == MAP_FAILED) return NULL;
  if (whole) madvise(pages, bytes, MADV_HUGEPAGE); /* a hint: failure costs speed alone */
  return pages;
}

void base_pages_commit(void *pages, size_t bytes) {
  volatile uint8_t *at = pages;
  for (size_t i = 0; i < bytes; i += 4096) at[i] = 0;
}

void base_pages_release(void *pages, size_t bytes) {
  if (pages) munmap(pages, bytes);
}

bool base_options(void *to, size_t bytes, const void *from) {
  uint32_t given;
  if (!from) return true;
  memcpy(&given, from, sizeof given);
  if (given < sizeof given) return false;
  memcpy(to, from, base_min(given, bytes));
  return true;
}
