/* Counts allocations of the whole process by interposing the allocator's entry points: the
 * executable defines malloc and its kin, the dynamic linker binds every library to them, and they
 * go on to glibc's own under its second names. free needs no interposing, since the memory is
 * glibc's. mmap goes to the kernel directly, which also means that glibc's internal growth of the
 * heap isn't counted twice. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli.h"

#define INTERPOSE __attribute__((visibility("default"), used))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_bool counting;
static atomic_uint_fast64_t calls;

static inline void note(void) {
  if (atomic_load_explicit(&counting, memory_order_relaxed))
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

INTERPOSE void *malloc(size_t size) {
  note();
  return __libc_malloc(size);
}
INTERPOSE void *calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}
INTERPOSE void *realloc(void *memory, size_t size) {
  note();
  return __libc_realloc(memory, size);
}
INTERPOSE void *aligned_alloc(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}
INTERPOSE int posix_memalign(void **out, size_t alignment, size_t size) {
  note();
  if (alignment % sizeof(void *) || !alignment || (alignment & (alignment - 1))) return EINVAL;
  void *memory = __libc_memalign(alignment, size);
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}
INTERPOSE void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  note();
  long result = syscall(SYS_mmap, address, size, protection, flags, fd, offset);
  return result == -1 ? MAP_FAILED : (void *)result;
}

bool cli_allocations_known(void) { return true; }
void cli_allocations_count(bool on) { atomic_store(&counting, on); }
uint64_t cli_allocations(void) { return atomic_load(&calls); }
