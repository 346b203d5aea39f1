/* Arenas and growing buffers. An arena is a stack of heap blocks; a block that does not fit the
 * next allocation is left as it is and a larger one is put on top, so a mark is a block and a
 * fill level. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

#define BLOCK_BYTES ((size_t)64 << 10)

typedef struct base_block {
  struct base_block *below;
  size_t used, capacity;
  _Alignas(16) uint8_t bytes[];
} base_block;

static base_block *push_block(base_arena *arena, size_t size) {
  size_t capacity = base_max(BLOCK_BYTES, size), total;
  if (!base_add(capacity, sizeof(base_block), &total)) return NULL;
  base_block *block = malloc(total);
  if (!block) return NULL;
  *block = (base_block){.below = arena->top, .used = 0, .capacity = capacity};
  arena->top = block;
  return block;
}

void *base_arena_alloc(base_arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (!base_mul(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
  bytes = base_align(base_max(bytes, 1), 16);
  base_block *block = arena->top;
  if (!block || block->capacity - block->used < bytes) block = push_block(arena, bytes);
  if (!block) return NULL;
  void *result = block->bytes + block->used;
  block->used += bytes;
  return memset(result, 0, bytes);
}

char *base_arena_copy(base_arena *arena, const char *text, size_t length) {
  size_t bytes;
  if (!base_add(length, 1, &bytes)) return NULL;
  char *copy = base_arena_alloc(arena, bytes, 1);
  if (copy && length) memcpy(copy, text, length);
  return copy;
}

char *base_arena_format(base_arena *arena, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *text = length < 0 ? NULL : base_arena_alloc(arena, (size_t)length + 1, 1);
  if (text) vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}

base_mark base_arena_mark(const base_arena *arena) {
  return (base_mark){arena->top, arena->top ? arena->top->used : 0};
}

void base_arena_reset(base_arena *arena, base_mark mark) {
  while (arena->top != mark.block) {
    base_block *below = arena->top->below;
    free(arena->top);
    arena->top = below;
  }
  if (arena->top) arena->top->used = mark.used;
}

void base_arena_deinit(base_arena *arena) { base_arena_reset(arena, (base_mark){NULL, 0}); }

static bool reserve(base_buffer *buffer, size_t more) {
  size_t needed;
  if (buffer->failed || !base_add(buffer->size, more, &needed) || needed > SIZE_MAX / 2) {
    buffer->failed = true;
    return false;
  }
  if (needed <= buffer->capacity) return true;
  size_t capacity = base_max(base_max(needed, 256), buffer->capacity * 2);
  uint8_t *data = realloc(buffer->data, capacity);
  if (!data) {
    buffer->failed = true;
    return false;
  }
  buffer->data = data;
  buffer->capacity = capacity;
  return true;
}

void base_buffer_append(base_buffer *buffer, const void *bytes, size_t size) {
  if (!size || !reserve(buffer, size)) return;
  memcpy(buffer->data + buffer->size, bytes, size);
  buffer->size += size;
}

void base_buffer_printf(base_buffer *buffer, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length >= 0 && reserve(buffer, (size_t)length + 1)) {
    vsnprintf((char *)buffer->data + buffer->size, (size_t)length + 1, format, again);
    buffer->size += (size_t)length;
  }
  va_end(again);
}

void base_buffer_align(base_buffer *buffer, size_t to) {
  size_t padding = base_align(buffer->size, to) - buffer->size;
  if (!padding || !reserve(buffer, padding)) return;
  memset(buffer->data + buffer->size, 0, padding);
  buffer->size += padding;
}

void base_buffer_deinit(base_buffer *buffer) {
  free(buffer->data);
  *buffer = (base_buffer){0};
}
