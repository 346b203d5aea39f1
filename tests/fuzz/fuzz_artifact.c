/* The check of an artefact's bytes, as they are and once more with the hashes made right, so that
 * what lies behind them is reached. */
#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *data, size_t size) {
  stele_sink sink = {0};
  stele_trailer t = {0};
  stele_status status = model_check_file(data, size, "fuzz", EM_X86_64, &sink, &t);
  if (status != STELE_OK && (!sink.text[0] || t.code_bytes)) abort();
  if (status != STELE_OK) return;
  if (t.code_bytes > size || t.weights_offset + (t.weights_offset ? t.weights_bytes : 0) > size)
    abort();
}

static void seal(uint8_t *data, size_t size) {
  stele_trailer t;
  memcpy(&t, data + size - sizeof t, sizeof t);
  memcpy(t.magic, STELE_ARTIFACT_MAGIC, sizeof t.magic);
  t.abi = STELE_ARTIFACT_ABI;
  t.machine = EM_X86_64;
  if (t.code_bytes > size) t.code_bytes %= size + 1;
  t.code_hash = XXH3_64bits(data, t.code_bytes);
  t.self_hash = XXH3_64bits(&t, offsetof(stele_trailer, self_hash));
  memcpy(data + size - sizeof t, &t, sizeof t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check(data, size);
  if (size < sizeof(stele_trailer)) return 0;
  uint8_t *copy = malloc(size);
  if (!copy) return 0;
  memcpy(copy, data, size);
  seal(copy, size);
  check(copy, size);
  free(copy);
  return 0;
}
