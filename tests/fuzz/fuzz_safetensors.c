/* Safetensors headers: the input as a file; once more as a header alone (up to the first zero
 * byte) with its length put before it, which mutation rarely gets right; and where that text looks
 * like the index of a sharded model, as one whose only shard, "s", is the rest of the input. */
#include "frontend/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/model.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const uint8_t *data, size_t size) {
  base_arena arena = {0};
  fe_tensors tensors;
  stele_sink sink = {{0}};
  if (fe_safetensors_parse(&arena, "input", data, size, &sink, &tensors) == STELE_OK)
    for (size_t i = 0; i < tensors.count; i++)
      if (fe_tensors_find(&tensors, tensors.list[i].name) != &tensors.list[i]) abort();
  base_arena_deinit(&arena);
}

static void parse_text(const uint8_t *data, size_t size, size_t length) {
  uint8_t *file = malloc(size + 8);
  if (!file) return;
  for (unsigned i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)length >> (8 * i));
  if (size) memcpy(file + 8, data, size);
  parse(file, size + 8);
  free(file);
}

static void open_index(const uint8_t *text, size_t length, const uint8_t *shard, size_t size) {
  stele_sink sink = {{0}};
  fe_model *model;
  scratch_write("model.safetensors.index.json", text, length);
  scratch_write("s", shard, size);
  if (fe_model_create(scratch_directory(), &sink, &model) != STELE_OK) return;
  if (fe_safetensors_open(model, scratch_directory(), &sink) != STELE_OK && !sink.text[0]) abort();
  fe_model_destroy(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
  size_t length = zero ? (size_t)(zero - data) : size;
  parse(data, size);
  parse_text(data, size, length);
  if (memmem(data, length, "weight_map", 10)) {
    size_t rest = size - length - (zero ? 1 : 0);
    open_index(data, length, data + size - rest, rest);
  }
  return 0;
}
