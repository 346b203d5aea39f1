/* Runs a generation through the artefact's own contract, without libstele, twice: with cache and
 * workspace full of zeros, and full of NaN bits. What was not written may not be read, so all
 * logits must be the same bits, and finite.
 *
 *   poison OUT.so PROMPT-IDS COUNT      prints the ids that were chosen */
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stele/artifact.h"

enum { MAX_GROUPS = 8, MAX_LAYERS = 128, MAX_IDS = 256 };

typedef struct world {
  const stele_artifact *artifact;
  const stele_variant *variant;
  const uint8_t *weights;
  uint8_t *workspace, *pools[MAX_LAYERS];
  int32_t *tables[MAX_GROUPS];
  float *logits;
} world;

static void die(const char *what) {
  fprintf(stderr, "poison: %s\n", what);
  exit(1);
}

/* Memory of this size, all bytes alike. */
static uint8_t *filled_memory(uint64_t bytes, int value) {
  size_t size = (size_t)((bytes + 4095) / 4096 * 4096);
  uint8_t *memory = aligned_alloc(4096, size ? size : 4096);
  if (!memory) die("out of memory");
  memset(memory, value, size ? size : 4096);
  return memory;
}

static const uint8_t *map_weights(const char *path) {
  int fd = open(path, O_RDONLY);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0) die(path);
  uint8_t *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (file == MAP_FAILED) die("mmap");
  stele_trailer trailer;
  memcpy(&trailer, file + st.st_size - sizeof trailer, sizeof trailer);
  close(fd);
  return file + trailer.weights_offset;
}

static const stele_step *find_step(const world *w, uint32_t kind) {
  for (uint32_t i = 0; i < w->variant->step_count; i++) {
    const stele_step *s = &w->variant->steps[i];
    if (s->kind == kind && s->lanes == 1 && s->output == STELE_OUTPUT_LAST) return s;
  }
  die("no such step");
  return NULL;
}

/* Caches and workspace anew, filled with value; each layer has a page for every table entry. */
static void prepare(world *w, int value) {
  const stele_artifact *a = w->artifact;
  w->workspace = filled_memory(a->workspace_bytes, value);
  for (uint32_t i = 0; i < a->layers; i++) {
    const stele_group *g = &a->groups[a->layer_group[i]];
    w->pools[i] = filled_memory(g->page_bytes * g->table_entries, value);
  }
  for (uint32_t g = 0; g < a->group_count; g++) {
    w->tables[g] = malloc(a->groups[g].table_entries * sizeof(int32_t));
    for (uint32_t i = 0; i < a->groups[g].table_entries; i++) w->tables[g][i] = (int32_t)i;
  }
}

static void release(world *w) {
  free(w->workspace);
  for (uint32_t i = 0; i < w->artifact->layers; i++) free(w->pools[i]);
  for (uint32_t g = 0; g < w->artifact->group_count; g++) free(w->tables[g]);
}

/* Feeds count ids (at most the step's width) at slot filled and leaves the last logits. */
static void feed(world *w, uint32_t kind, const int32_t *ids, int32_t count, int32_t filled) {
  const stele_step *step = find_step(w, kind);
  int32_t tokens[MAX_IDS] = {0}, positions[MAX_IDS] = {0}, first = 0;
  for (int32_t i = 0; i < count; i++) {
    tokens[i] = ids[i];
    positions[i] = filled + i;
  }
  const int32_t *tables[MAX_GROUPS];
  for (uint32_t g = 0; g < w->artifact->group_count; g++) tables[g] = w->tables[g];
  stele_env env = {.struct_bytes = sizeof env,
                   .layers = w->artifact->layers,
                   .weights = w->weights,
                   .workspace = w->workspace,
                   .layer_pages = w->pools};
  stele_step_args args = {.struct_bytes = sizeof args,
                          .ids = tokens,
                          .positions = positions,
                          .valid = &count,
                          .filled = &filled,
                          .first = &first,
                          .read_pages = tables,
                          .store_pages = tables,
                          .out_logits = w->logits};
  step->run(&env, &args, 0, 1);
}

static int32_t largest(const float *row, uint32_t count) {
  int32_t best = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!isfinite(row[i])) die("a logit that is not finite");
    if (row[i] > row[best]) best = (int32_t)i;
  }
  return best;
}

/* Prompt in whole prefill steps with a masked tail, then decode steps; all logits go to trace. */
static void generate(world *w, const int32_t *prompt, int32_t prompt_count, int32_t count,
                     int32_t *ids, float *trace) {
  uint32_t vocab = w->artifact->vocab;
  int32_t width = (int32_t)w->artifact->prefill_width, filled = 0;
  uint32_t kind = width > 1 ? STELE_STEP_PREFILL : STELE_STEP_DECODE;
  for (; filled < prompt_count; filled += width) {
    int32_t left = prompt_count - filled;
    feed(w, kind, prompt + filled, left < width ? left : width, filled);
  }
  filled = prompt_count;
  for (int32_t i = 0; i < count; i++) {
    memcpy(trace + (size_t)i * vocab, w->logits, vocab * sizeof *trace);
    ids[i] = largest(w->logits, vocab);
    if (i + 1 < count) feed(w, STELE_STEP_DECODE, &ids[i], 1, filled++);
  }
}

int main(int argc, char **argv) {
  if (argc != 4) die("expected an artefact, ids and a count");
  void *code = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!code) die(dlerror());
  stele_artifact_query_function query;
  *(void **)&query = dlsym(code, STELE_ARTIFACT_QUERY);
  world w = {.artifact = query ? query(STELE_ARTIFACT_ABI) : NULL};
  if (!w.artifact || w.artifact->layers > MAX_LAYERS || w.artifact->group_count > MAX_GROUPS ||
      w.artifact->prefill_width > MAX_IDS)
    die("an artefact that this test can't take");
  w.variant = &w.artifact->variants[w.artifact->variant_count - 1];
  w.weights = map_weights(argv[1]);
  int32_t prompt[MAX_IDS], prompt_count = 0, count = (int32_t)strtol(argv[3], NULL, 10);
  for (char *text = argv[2], *item; (item = strsep(&text, ",")) && prompt_count < MAX_IDS;)
    prompt[prompt_count++] = (int32_t)strtol(item, NULL, 10);

  size_t row =
      w.artifact->vocab_padded > w.artifact->vocab ? w.artifact->vocab_padded : w.artifact->vocab;
  size_t bytes = (size_t)count * w.artifact->vocab * sizeof(float);
  w.logits = malloc(row * sizeof(float));
  float *clean = malloc(bytes), *poisoned = malloc(bytes);
  int32_t *ids = malloc((size_t)count * sizeof *ids);
  if (!w.logits || !clean || !poisoned || !ids) die("out of memory");
  prepare(&w, 0);
  generate(&w, prompt, prompt_count, count, ids, clean);
  release(&w);
  prepare(&w, 0xff);
  generate(&w, prompt, prompt_count, count, ids, poisoned);
  release(&w);
  if (memcmp(clean, poisoned, bytes) != 0) die("logits depend on what was in the memory");
  for (int32_t i = 0; i < count; i++) printf(i ? ",%d" : "%d", ids[i]);
  putchar('\n');
  free(w.logits);
  free(clean);
  free(poisoned);
  free(ids);
  return 0;
}
