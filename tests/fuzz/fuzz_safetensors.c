/* Safetensors headers: the input as a file, and once more as a header alone (up to the first zero
 * byte) with its length put before it, which mutation rarely gets right. */
#include <stdlib.h>
#include <string.h>

#include "frontend/safetensors.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  parse(data, size);
  const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
  uint64_t length = zero ? (uint64_t)(zero - data) : size;
  uint8_t *file = malloc(size + 8);
  if (!file) return 0;
  for (unsigned i = 0; i < 8; i++) file[i] = (uint8_t)(length >> (8 * i));
  if (size) memcpy(file + 8, data, size);
  parse(file, size + 8);
  free(file);
  return 0;
}
