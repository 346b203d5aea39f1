/* How fast the CPU target's products are, by scheme: never a pass or a fail.
 *
 *   kernels [--cpu NAME] [--columns N] [--megabytes N] [--threads N] [--filter TEXT]
 *           [--tokens N] [--dump DIR]
 *
 * decode   one token times weights of so many megabytes: GB/s of weights, and the share of what a
 *          plain loop over a buffer of that size reads with as many threads
 * prefill  128 tokens, or as many as said, times a matrix that fits the second-level cache: GMAC/s
 *          of one thread
 *
 * Times are those that the slowest thread spent on a processor, the best of many runs, so that
 * other processes on the machine do little harm. */
#include <dlfcn.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "artifact/artifact.h"
#include "table.h"
#include "weights/weights.h"

#define MAX_THREADS 64u

typedef struct options {
  const char *cpu, *filter, *dump;
  uint32_t columns, threads, tokens;
  double megabytes;
} options;

/* Of this thread. */
static double processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what, const stele_sink *sink) {
  fprintf(stderr, "kernels: %s: %s\n", what, sink ? sink->text : "failed");
  exit(1);
}

/* In small pages, as a mapped file is. */
static void *memory(size_t bytes) {
  void *p = mmap(NULL, bytes + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("memory", NULL);
  madvise(p, bytes + 65536, MADV_NOHUGEPAGE);
  return memset(p, 0x11, bytes + 65536);
}

static void release(void *p, size_t bytes) { munmap(p, bytes + 65536); }

/* ---- threads that meet ----------------------------------------------------------------- */

typedef struct team {
  void (*work)(void *data, uint32_t worker, uint32_t workers);
  void *data;
  uint32_t workers;
  pthread_barrier_t barrier;
  double seconds[MAX_THREADS], best;
  int runs;
} team;

typedef struct member {
  team *team;
  uint32_t worker;
} member;

static void *run_member(void *data) {
  member *m = data;
  team *t = m->team;
  for (int i = 0; i < t->runs; i++) {
    pthread_barrier_wait(&t->barrier);
    double begin = processor_seconds();
    t->work(t->data, m->worker, t->workers);
    t->seconds[m->worker] = processor_seconds() - begin;
    pthread_barrier_wait(&t->barrier);
    double slowest = 0;
    for (uint32_t w = 0; w < t->workers; w++)
      if (t->seconds[w] > slowest) slowest = t->seconds[w];
    if (m->worker == 0 && (i == 0 || slowest < t->best)) t->best = slowest;
  }
  return NULL;
}

/* Seconds of the best of `runs` calls of work by all workers together. */
static double time_team(void (*work)(void *, uint32_t, uint32_t), void *data, uint32_t workers,
                        int runs) {
  team t = {.work = work, .data = data, .workers = workers, .runs = runs};
  pthread_t threads[MAX_THREADS];
  member members[MAX_THREADS];
  pthread_barrier_init(&t.barrier, NULL, workers);
  for (uint32_t i = 0; i < workers; i++) {
    members[i] = (member){&t, i};
    if (i) pthread_create(&threads[i], NULL, run_member, &members[i]);
  }
  run_member(&members[0]);
  for (uint32_t i = 1; i < workers; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&t.barrier);
  return t.best;
}

/* ---- what memory gives ----------------------------------------------------------------- */

typedef uint64_t words __attribute__((vector_size(64)));

typedef struct buffer {
  const uint8_t *data;
  size_t bytes;
  volatile uint64_t sink[MAX_THREADS * 8];
} buffer;

/* Four streams, which the prefetchers of most processors read faster than one. */
static void read_plainly(void *data, uint32_t worker, uint32_t workers) {
  buffer *b = data;
  size_t part = b->bytes / 64 / workers / 4;
  const words *p = (const words *)(const void *)b->data + part * 4 * worker;
  words sums[4] = {{0}};
  for (size_t i = 0; i < part; i++)
    for (size_t j = 0; j < 4; j++) sums[j] += p[j * part + i];
  sums[0] += sums[1] + sums[2] + sums[3];
  b->sink[worker * 8] = sums[0][0] + sums[0][3];
}

/* ---- a program of one linear op -------------------------------------------------------- */

typedef struct block {
  _Alignas(64) stele_program head;
  stele_program_step step;
  stele_op op;
  stele_buffer buffers[2];
  stele_program_weight weight;
  char strings[2];
} block;

typedef struct bench {
  block b;
  void *library;
  stele_step_function step;
  stele_env env;
  stele_step_args args;
  int32_t valid, filled;
} bench;

static void describe(block *b, uint32_t scheme, uint32_t activation, uint32_t rows,
                     uint32_t columns, uint32_t tokens, const stele_target_traits *traits) {
  size_t row = 0;
  (void)weights_row_bytes(scheme, columns, &row);
  uint32_t tile = traits->row_align;
  while ((tile + traits->row_align) * row <= traits->tile_bytes) tile += traits->row_align;
  uint64_t in = base_align(tokens * (uint64_t)columns * 4, 64);
  uint64_t out = base_align(tokens * (uint64_t)rows * 4, 64);
  *b = (block){
      .head = {.magic = STELE_PROGRAM_MAGIC,
               .version = STELE_PROGRAM_VERSION,
               .bytes = sizeof *b,
               .vocab = rows,
               .hidden = columns,
               .layers = 0,
               .capacity = 64,
               .workspace_bytes = in + out},
      .step = {.lanes = 1, .width = tokens, .op_count = 1},
      .op = {.kind = STELE_OP_LINEAR,
             .layer = -1,
             .tokens = tokens,
             .tiles = (rows + tile - 1) / tile,
             .tile_rows = tile,
             .activation = activation,
             .in = {0, -1},
             .out = 1,
             .prepared = -1,
             .scratch = -1,
             .stage = -1},
      .buffers = {{0, in, tokens, columns, activation, 0}, {in, out, tokens, rows, STELE_F32, 0}},
      .weight = {.scheme = scheme, .rows = rows, .columns = columns}};
  for (int i = 1; i < STELE_W_COUNT; i++) b->op.weight[i] = -1;
  stele_program *h = &b->head;
  h->steps = (stele_table){offsetof(block, step), 1};
  h->ops = (stele_table){offsetof(block, op), 1};
  h->buffers = (stele_table){offsetof(block, buffers), 2};
  h->weights = (stele_table){offsetof(block, weight), 1};
  h->strings = (stele_table){offsetof(block, strings), 2};
}

static void load(bench *t, const base_buffer *code) {
  int fd = memfd_create("kernels", MFD_CLOEXEC);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (fd < 0 || write(fd, code->data, code->size) != (ssize_t)code->size) fail("code", NULL);
  t->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  close(fd);
  if (!t->library) fail(dlerror(), NULL);
  stele_artifact_query_function query;
  *(void **)&query = dlsym(t->library, STELE_ARTIFACT_QUERY);
  t->step = query(STELE_ARTIFACT_ABI)->variants[0].steps[0].run;
}

static void compile(bench *t, void *self) {
  stele_sink sink = {{0}};
  const stele_object *objects;
  stele_object all[8];
  uint32_t count, variants;
  stele_step step = {0};
  stele_variant variant = {
      .name = cpu_target.variants(self, &variants)->name, .steps = &step, .step_count = 1};
  stele_artifact artifact = {.variants = &variant, .variant_count = 1, .target = "cpu"};
  base_buffer meta = {0}, code = {0};
  if (cpu_target.emit(self, &t->b.head, &sink, &objects, &count)) fail("emit", &sink);
  if (artifact_emit_meta(&artifact, cpu_target.triple(self), &sink, &meta)) fail("describe", &sink);
  memcpy(all, objects, count * sizeof *all);
  all[count] = (stele_object){"meta.o", meta.data, meta.size};
  if (artifact_link(all, count + 1, &sink, &code)) fail("link", &sink);
  load(t, &code);
  base_buffer_deinit(&meta);
  base_buffer_deinit(&code);
}

static void run_step(void *data, uint32_t worker, uint32_t workers) {
  bench *t = data;
  t->step(&t->env, &t->args, worker, workers);
}

/* Seconds of the best run. */
static double measure(void *self, uint32_t scheme, uint32_t activation, uint32_t rows,
                      uint32_t columns, uint32_t tokens, uint32_t threads, int runs,
                      uint64_t *out_bytes) {
  static bench t;
  stele_sink sink = {{0}};
  stele_target_traits traits;
  cpu_target.traits(self, &traits);
  describe(&t.b, scheme, activation, rows, columns, tokens, &traits);
  stele_program_weight *w = &t.b.weight;
  if (cpu_target.layout(self, scheme, rows, columns, false, &sink, &w->layout, &w->bytes))
    fail("layout", &sink);
  compile(&t, self);
  t.valid = (int32_t)tokens;
  t.args = (stele_step_args){.valid = &t.valid, .filled = &t.filled, .first = &t.filled};
  uint8_t *weights = memory(w->bytes), *workspace = memory(t.b.head.workspace_bytes);
  t.env = (stele_env){.weights = weights, .workspace = workspace};
  double seconds = time_team(run_step, &t, threads, runs);
  *out_bytes = w->bytes;
  release(weights, w->bytes);
  release(workspace, t.b.head.workspace_bytes);
  dlclose(t.library);
  return seconds;
}

/* ---- the table ------------------------------------------------------------------------- */

static void bench_scheme(void *self, const options *o, uint32_t scheme, uint32_t activation,
                         double plain) {
  char name[64];
  const weights_scheme *info = weights_scheme_get(scheme);
  snprintf(name, sizeof name, "%s x %s", info->name, weights_scheme_get(activation)->name);
  if (o->filter && !strstr(name, o->filter)) return;
  size_t row = 0;
  uint64_t bytes, unused;
  (void)weights_row_bytes(scheme, o->columns, &row);
  uint32_t rows = (uint32_t)(o->megabytes * 1e6 / (double)row / 16) * 16;
  double decode = measure(self, scheme, activation, rows, o->columns, 1, o->threads, 30, &bytes);
  double wide = measure(self, scheme, activation, 512, o->columns, o->tokens, 1, 30, &unused);
  double rate = (double)bytes / decode * 1e-9;
  printf("%-14s decode %7.2f GB/s  %5.1f %%   prefill %7.1f GMAC/s\n", name, rate,
         100 * rate / plain, 512.0 * o->columns * o->tokens / wide * 1e-9);
  fflush(stdout);
}

static double measure_plain(const options *o) {
  static buffer b;
  b.bytes = (size_t)(o->megabytes * 1e6);
  uint8_t *data = memory(b.bytes);
  b.data = data;
  double seconds = time_team(read_plainly, &b, o->threads, 30);
  release(data, b.bytes);
  return (double)b.bytes / seconds * 1e-9;
}

int main(int argc, char **argv) {
  static const struct option names[] = {
      {"cpu", required_argument, NULL, 'c'},       {"columns", required_argument, NULL, 'k'},
      {"megabytes", required_argument, NULL, 'm'}, {"threads", required_argument, NULL, 't'},
      {"filter", required_argument, NULL, 'f'},    {"tokens", required_argument, NULL, 'n'},
      {"dump", required_argument, NULL, 'd'},      {NULL, 0, NULL, 0}};
  options o = {"native", NULL, NULL, 576, 1, 128, 80};
  for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    if (c == 'c') o.cpu = optarg;
    if (c == 'd') o.dump = optarg;
    if (c == 'f') o.filter = optarg;
    if (c == 'k') o.columns = (uint32_t)atoi(optarg);
    if (c == 'n') o.tokens = (uint32_t)atoi(optarg);
    if (c == 'm') o.megabytes = atof(optarg);
    if (c == 't') o.threads = (uint32_t)atoi(optarg);
    if (c == '?') return 2;
  }
  if (o.threads < 1 || o.threads > MAX_THREADS || o.tokens < 1 || o.columns < 32 || o.columns % 32)
    return 2;
  stele_sink sink = {{0}};
  stele_target_options options = {
      .struct_bytes = sizeof options, .cpu = o.cpu, .dump_directory = o.dump};
  void *self;
  if (cpu_target.create(&options, &sink, &self)) fail("cpu", &sink);
  double plain = measure_plain(&o);
  printf("plain read     %7.2f GB/s of %g MB, %u threads, %u columns\n", plain, o.megabytes,
         o.threads, o.columns);
  for (uint32_t scheme = STELE_F32; scheme < WEIGHTS_SCHEME_COUNT; scheme++) {
    if (scheme == STELE_I32 || o.columns % weights_scheme_get(scheme)->block) continue;
    bench_scheme(self, &o, scheme, STELE_F32, plain);
    if (weights_scheme_is_quantised(scheme)) bench_scheme(self, &o, scheme, STELE_Q8_0, plain);
  }
  cpu_target.destroy(self);
  return 0;
}
