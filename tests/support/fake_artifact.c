/* The writer: takes the module that the build made, patches the configuration into it, and appends
 * weights and trailer as artifact.h says. */
#include "fake_artifact.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

fake_config fake_default(void) {
  return (fake_config){.mark = FAKE_MARK,
                       .seed = 1,
                       .vocab = 97,
                       .capacity = 64,
                       .max_lanes = 4,
                       .prefill_width = 16,
                       .verify_width = 8,
                       .max_workers = 16,
                       .page_tokens = {16, 4},
                       .outputs = 0x1f,
                       .variant_count = 1,
                       .weights_bytes = 97 * 4};
}

static uint8_t *read_module(size_t *out_size) {
  FILE *file = fopen(FAKE_MODULE, "rb");
  struct stat st;
  if (!file) return NULL;
  uint8_t *bytes = fstat(fileno(file), &st) == 0 ? malloc((size_t)st.st_size) : NULL;
  if (bytes && fread(bytes, 1, (size_t)st.st_size, file) != (size_t)st.st_size) {
    free(bytes);
    bytes = NULL;
  }
  fclose(file);
  *out_size = (size_t)st.st_size;
  return bytes;
}

static void fill_weights(const fake_config *config, uint8_t *weights) {
  for (uint32_t id = 0; id < config->vocab; id++) {
    uint32_t w = fake_weight(config->seed, id);
    memcpy(weights + id * sizeof w, &w, sizeof w);
  }
}

stele_trailer fake_trailer(const uint8_t *bytes, size_t size) {
  stele_trailer t;
  memcpy(&t, bytes + size - sizeof t, sizeof t);
  return t;
}

void fake_set_trailer(uint8_t *bytes, size_t size, stele_trailer trailer) {
  trailer.self_hash = XXH3_64bits(&trailer, offsetof(stele_trailer, self_hash));
  memcpy(bytes + size - sizeof trailer, &trailer, sizeof trailer);
}

void fake_seal(uint8_t *bytes, size_t size) {
  stele_trailer t = fake_trailer(bytes, size);
  t.code_hash = XXH3_64bits(bytes, (size_t)t.code_bytes);
  fake_set_trailer(bytes, size, t);
}

uint8_t *fake_bytes(const fake_config *config, size_t *out_size) {
  size_t code;
  uint8_t *module = read_module(&code);
  uint8_t *mark = module ? memmem(module, code, FAKE_MARK, sizeof config->mark) : NULL;
  if (!mark) {
    free(module);
    return NULL;
  }
  memcpy(mark, config, sizeof *config);
  int inside = !config->weights_file[0];
  size_t begin = (code + STELE_ARTIFACT_ALIGN - 1) / STELE_ARTIFACT_ALIGN * STELE_ARTIFACT_ALIGN;
  size_t size = begin + (inside ? config->weights_bytes : 0) + sizeof(stele_trailer);
  uint8_t *bytes = calloc(1, size), *weights = calloc(1, config->weights_bytes + 1);
  if (!bytes || !weights) return NULL;
  memcpy(bytes, module, code);
  fill_weights(config, weights);
  if (inside) memcpy(bytes + begin, weights, config->weights_bytes);
  Elf64_Ehdr elf;
  memcpy(&elf, module, sizeof elf);
  stele_trailer t = {.magic = STELE_ARTIFACT_MAGIC,
                     .abi = STELE_ARTIFACT_ABI,
                     .machine = elf.e_machine,
                     .code_bytes = code,
                     .weights_offset = inside ? begin : 0,
                     .weights_bytes = config->weights_bytes,
                     .weights_hash = XXH3_64bits(weights, config->weights_bytes)};
  fake_set_trailer(bytes, size, t);
  fake_seal(bytes, size);
  free(weights);
  free(module);
  *out_size = size;
  return bytes;
}

int fake_put_tokenizer(uint8_t *bytes, size_t size, const void *blob, size_t blob_bytes) {
  uint8_t *at = memmem(bytes, size, FAKE_TOKENIZER_MARK, sizeof FAKE_TOKENIZER_MARK);
  uint32_t count = (uint32_t)blob_bytes;
  if (!at || blob_bytes > sizeof((fake_tokenizer *)0)->data) return -1;
  memcpy(at + offsetof(fake_tokenizer, bytes), &count, sizeof count);
  memcpy(at + offsetof(fake_tokenizer, data), blob, blob_bytes);
  fake_seal(bytes, size);
  return 0;
}

int fake_write_bytes(const char *path, const void *bytes, size_t size) {
  unlink(path); /* the file may be mapped: it gets a new inode, as a renamed one would */
  FILE *file = fopen(path, "wb");
  if (!file) return -1;
  int failed = size && fwrite(bytes, 1, size, file) != size;
  return fclose(file) != 0 || failed ? -1 : 0;
}

/* The weights' own file: the weights and the artefact's trailer. */
static int write_weights(const char *path, const fake_config *config, stele_trailer t) {
  char full[4096];
  uint8_t *weights = calloc(1, config->weights_bytes + sizeof t);
  if (!weights) return -1;
  fill_weights(config, weights);
  memcpy(weights + config->weights_bytes, &t, sizeof t);
  snprintf(full, sizeof full, "%.*s%s", (int)(strrchr(path, '/') - path) + 1, path,
           config->weights_file);
  int result = fake_write_bytes(full, weights, config->weights_bytes + sizeof t);
  free(weights);
  return result;
}

int fake_write(const char *path, const fake_config *config) {
  size_t size;
  uint8_t *bytes = fake_bytes(config, &size);
  if (!bytes) return -1;
  int result = fake_write_bytes(path, bytes, size);
  if (result == 0 && config->weights_file[0])
    result = write_weights(path, config, fake_trailer(bytes, size));
  free(bytes);
  return result;
}

uint32_t fake_hash(const fake_config *config, const int32_t *ids, uint32_t count) {
  uint32_t hash = config->seed;
  for (uint32_t s = 0; s < count; s++)
    for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++)
      for (uint32_t head = 0; head < FAKE_HEADS; head++) {
        uint32_t key = fake_key(fake_weight(config->seed, (uint32_t)ids[s]), s, layer, head);
        if (s >= fake_seen_from(config, layer, count - 1))
          hash = fake_see(hash, key, config->value_in_key ? key : fake_value(key, s));
      }
  return count ? fake_settle(hash, count - 1, config->period) : hash;
}

int32_t fake_next(const fake_config *config, const int32_t *ids, uint32_t count) {
  uint32_t hash = fake_hash(config, ids, count), best = 0;
  for (uint32_t v = 1; v < config->vocab; v++)
    if (fake_logit(hash, v) > fake_logit(hash, best)) best = v;
  return (int32_t)best;
}

/* ---- temporary files ------------------------------------------------------------------- */

static char folder[64];

static void remove_folder(void) {
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command) != 0) perror("cannot remove the temporary folder");
}

const char *fake_path(const char *name) {
  static char path[256];
  if (!folder[0]) {
    snprintf(folder, sizeof folder, "/tmp/stele-test-XXXXXX");
    if (!mkdtemp(folder)) return NULL;
    atexit(remove_folder);
  }
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}
