/* What every room of stele builds on: failing with a message, arenas, growing buffers,
 * overflow-checked sizes, half floats, the processor's features, mapped files, files that appear
 * whole or not at all. */
#ifndef STELE_BASE_H
#define STELE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stele/status.h"

/* ---- failing -------------------------------------------------------------------------- */

/* Writes the message into sink (NULL is allowed) and gives code, which is never STELE_OK, so that a
 * failing function ends with `return base_fail(sink, STELE_IO, "cannot open '%s': %s", ...)`. A
 * macro, so that compilers see that a function which failed did not set its outputs. */
#define base_fail(sink, code, ...)                           \
  __extension__({                                            \
    stele_status base_fail_code = (code);                    \
    base_message((sink), __VA_ARGS__);                       \
    if (base_fail_code == STELE_OK) __builtin_unreachable(); \
    base_fail_code;                                          \
  })
void base_message(stele_sink *sink, const char *format, ...) STELE_PRINTF(2, 3);
/* Adds a line to the message that is there; lines that no longer fit are dropped, and a last
 * line "..." says so. */
void base_sink_add(stele_sink *sink, const char *format, ...) STELE_PRINTF(2, 3);

#define BASE_TRY(expression)                                 \
  do {                                                       \
    stele_status base_try_status = (expression);             \
    if (base_try_status != STELE_OK) return base_try_status; \
  } while (0)

/* Options of a caller built with an older or a newer header: copies what both know from `from`
 * (NULL: nothing) over the defaults in `to`. false when struct_bytes, the first field, is not set.
 */
bool base_options(void *to, size_t bytes, const void *from);

/* ---- sizes ---------------------------------------------------------------------------- */

/* a * b and a + b into *out; false on overflow, *out untouched. */
static inline bool base_mul(size_t a, size_t b, size_t *out) {
  size_t r;
  if (__builtin_mul_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}
static inline bool base_add(size_t a, size_t b, size_t *out) {
  size_t r;
  if (__builtin_add_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}
static inline size_t base_align(size_t n, size_t to) { return (n + to - 1) / to * to; }
static inline size_t base_min(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t base_max(size_t a, size_t b) { return a > b ? a : b; }

/* ---- arenas --------------------------------------------------------------------------- */

/* A stack of blocks. Everything allocated lives until the arena is reset to a mark taken before
 * or destroyed. Zero-initialise to create an empty one. */
typedef struct base_arena {
  struct base_block *top;
} base_arena;
typedef struct base_mark {
  struct base_block *block;
  size_t used;
} base_mark;

/* Zeroed memory, aligned to 16 bytes; NULL when there is none (or the size overflows). */
void *base_arena_alloc(base_arena *arena, size_t count, size_t size);
/* Copies of text; NULL when there is no memory. */
char *base_arena_copy(base_arena *arena, const char *text, size_t length);
char *base_arena_format(base_arena *arena, const char *format, ...) STELE_PRINTF(2, 3);
base_mark base_arena_mark(const base_arena *arena);
void base_arena_reset(base_arena *arena, base_mark mark);
void base_arena_deinit(base_arena *arena);

/* ---- allocators and pages -------------------------------------------------------------- */

/* Where an object's memory comes from. Zero-initialised: malloc and free. */
typedef struct base_allocator {
  void *(*allocate)(void *allocate_data, size_t bytes);
  void (*release)(void *allocate_data, void *memory);
  void *allocate_data;
} base_allocator;
/* Zeroed memory for count elements; NULL when there is none (or the size overflows). */
void *base_allocate(const base_allocator *allocator, size_t count, size_t size);
/* Accepts NULL. */
void base_release(const base_allocator *allocator, void *memory);

/* Zeroed memory straight from the system, aligned to its pages. whole: it will be used as a whole,
 * so a lack of memory should show now and huge pages are welcome; else address space alone is had
 * and memory is committed as it is touched. NULL when there is none; zero bytes are NULL too. */
void *base_pages_reserve(size_t bytes, bool whole);
/* Touches every page, so that a lack of memory shows now and not in a step. */
void base_pages_commit(void *pages, size_t bytes);
/* Accepts NULL. */
void base_pages_release(void *pages, size_t bytes);

/* ---- growing buffers ------------------------------------------------------------------ */

/* Bytes on the heap. Zero-initialise; `failed` stays set after the first lack of memory, so a
 * writer may append many times and check once at the end. */
typedef struct base_buffer {
  uint8_t *data;
  size_t size, capacity;
  bool failed;
} base_buffer;
void base_buffer_append(base_buffer *buffer, const void *bytes, size_t size);
void base_buffer_printf(base_buffer *buffer, const char *format, ...) STELE_PRINTF(2, 3);
/* Appends zero bytes until the size is a multiple of to. */
void base_buffer_align(base_buffer *buffer, size_t to);
void base_buffer_deinit(base_buffer *buffer);

/* ---- half floats ---------------------------------------------------------------------- */

/* IEEE 754 binary16 and bfloat16, round to nearest even; NaN stays NaN. */
float base_f16_to_f32(uint16_t half);
uint16_t base_f32_to_f16(float value);
static inline float base_bf16_to_f32(uint16_t b) {
  union {
    uint32_t u;
    float f;
  } v = {.u = (uint32_t)b << 16};
  return v.f;
}
uint16_t base_f32_to_bf16(float value);

/* ---- the processor -------------------------------------------------------------------- */

/* What this machine has, and the system lets a process use: bits of stele_feature. */
uint64_t base_machine_features(void);
/* Asks the system for the features among bits that a process must ask for (AMX); false when it
 * refuses. */
bool base_enable_features(uint64_t bits);

/* ---- files ---------------------------------------------------------------------------- */

/* A whole file, mapped read-only. */
typedef struct base_map {
  const uint8_t *data;
  size_t size;
} base_map;
stele_status base_map_open(stele_sink *sink, const char *path, base_map *out_map) STELE_MUST_USE;
void base_map_close(base_map *map);

/* Reads a whole file into the arena, with a zero byte after it; fails above limit bytes. */
stele_status base_file_read(stele_sink *sink, base_arena *arena, const char *path, size_t limit,
                            char **out_text, size_t *out_size) STELE_MUST_USE;
bool base_file_exists(const char *path);
bool base_is_directory(const char *path);

/* A file that appears whole or not at all: it is written without a name in its destination's
 * folder (under a temporary one where the file system can't) and takes the destination's place on
 * commit. Abort, a failure or the end of the process leave nothing behind and the old file, if
 * any, untouched. Zero-initialise. */
typedef struct base_output {
  char *path, *temporary; /* temporary: NULL while the file has no name */
  int fd;
  uint64_t size;
  uint8_t *held; /* the last size % BASE_OUTPUT_BLOCK bytes, not yet in the file; NULL: none */
} base_output;
#define BASE_OUTPUT_BLOCK ((size_t)2 << 20)
stele_status base_output_open(stele_sink *sink, const char *path, base_output *out) STELE_MUST_USE;
stele_status base_output_write(stele_sink *sink, base_output *out, const void *bytes,
                               size_t size) STELE_MUST_USE;
/* mode: permission bits, for example 0755. */
stele_status base_output_commit(stele_sink *sink, base_output *out, unsigned mode) STELE_MUST_USE;
/* Accepts a zeroed or committed output. */
void base_output_abort(base_output *out);

#endif
