/* Decodes from an artefact with artifact.h alone: no libstele, one worker, one lane.
 *     minimal ./model.so 20 1 15043 3186     20 ids after the prompt 1 15043 3186
 * The cache is the simplest one: every group's pages for a full lane, page e of a table is e. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "stele/artifact.h"

static int fail(const char *what) { return fprintf(stderr, "minimal: %s\n", what), 1; }

static uint64_t machine_features(void) {
  uint64_t bits = 0;
#ifdef __x86_64__
  if (__builtin_cpu_supports("x86-64-v3")) bits |= STELE_FEATURE_AVX2;
  if (__builtin_cpu_supports("x86-64-v4")) bits |= STELE_FEATURE_AVX512;
  if (__builtin_cpu_supports("avx512vnni")) bits |= STELE_FEATURE_VNNI;
#endif
  return bits;
}

static const stele_step *find_step(const stele_artifact *a) {
  for (uint32_t v = 0; v < a->variant_count; v++) {
    if (a->variants[v].features & ~machine_features()) continue;
    for (uint32_t s = 0; s < a->variants[v].step_count; s++) {
      const stele_step *step = &a->variants[v].steps[s];
      if (step->kind == STELE_STEP_DECODE && step->lanes == 1 && step->output == STELE_OUTPUT_TOKEN)
        return step;
    }
  }
  return NULL;
}

/* Full attention everywhere, rope that does not depend on the length. */
static int is_simple(const stele_artifact *a) {
  for (uint32_t g = 0; g < a->group_count; g++)
    if (a->groups[g].kind != STELE_GROUP_FULL) return 0;
  for (uint32_t i = 0; i < a->rope_count; i++)
    if (a->ropes[i].rule != STELE_ROPE_FIXED) return 0;
  return 1;
}

/* The whole file and its trailer; NULL when it is no artefact with its weights inside. */
static const uint8_t *map_file(const char *path, stele_trailer *trailer) {
  struct stat st;
  int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &st) != 0 || (size_t)st.st_size < sizeof *trailer) return NULL;
  const uint8_t *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
  if (file == MAP_FAILED) return NULL;
  memcpy(trailer, file + st.st_size - sizeof *trailer, sizeof *trailer);
  int good = memcmp(trailer->magic, STELE_ARTIFACT_MAGIC, 8) == 0;
  return good && trailer->abi == STELE_ARTIFACT_ABI && trailer->weights_offset ? file : NULL;
}

int main(int argc, char **argv) {
  stele_trailer trailer;
  if (argc < 4) return fail("usage: minimal ./MODEL.so COUNT ID...");
  const uint8_t *file = map_file(argv[1], &trailer);
  if (!file) return fail("not an artefact of this version with its weights inside");
  void *code = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  stele_artifact_query_function query;
  if (!code || !(*(void **)&query = dlsym(code, STELE_ARTIFACT_QUERY))) return fail(dlerror());
  const stele_artifact *a = query(STELE_ARTIFACT_ABI);
  const stele_step *step = a ? find_step(a) : NULL;
  if (!step || !is_simple(a)) return fail("it asks for more than this machine or example has");
  const int32_t **tables = calloc(a->group_count, sizeof *tables);
  uint8_t **pages = calloc(a->layers, sizeof *pages);
  for (uint32_t g = 0; g < a->group_count; g++) {
    int32_t *table = calloc(a->groups[g].table_entries, sizeof *table);
    for (uint32_t e = 0; e < a->groups[g].table_entries; e++) table[e] = (int32_t)e;
    tables[g] = table;
    for (uint32_t layer = 0; layer < a->layers; layer++)
      if (a->layer_group[layer] == g)
        pages[layer] = aligned_alloc(64, a->groups[g].table_entries * a->groups[g].page_bytes);
  }
  int32_t id = 0, position = 0, valid = 1, first = 0, block = 0, next = 0;
  int count = atoi(argv[2]), prompt = argc - 3;
  /* clang-format off */
  const stele_env env = {
      .struct_bytes = sizeof env, .layers = a->layers, .layer_pages = pages,
      .weights = file + trailer.weights_offset,
      .workspace = aligned_alloc(64, (a->workspace_bytes + 63) / 64 * 64)};
  const stele_step_args args = {
      .struct_bytes = sizeof args, .ids = &id, .positions = &position, .valid = &valid,
      .filled = &position, .first = &first, .read_pages = tables, .store_pages = tables,
      .state_blocks = &block, .out_tokens = &next};
  /* clang-format on */
  for (; position < prompt + count - 1 && (uint32_t)position < a->capacity; position++) {
    id = position < prompt ? atoi(argv[3 + position]) : next;
    if (id < 0 || (uint32_t)id >= a->vocab) return fail("an id outside of the vocabulary");
    step->run(&env, &args, 0, 1);
    if (position >= prompt - 1) printf("%d\n", next);
  }
  return 0;
}
