/* How fast this machine reads memory, to compare a decode step with: threads read disjoint parts
 * of a buffer, each part in four streams of vectors, xor-ed together, with a prefetch a page
 * ahead. Nothing here knows of models. The buffer is anonymous memory in huge pages where the
 * machine has them, touched by the thread that reads it: the best case. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cli.h"

enum { PASSES = 9, MAX_THREADS = 256, STREAMS = 4, AHEAD = 4096 };

typedef uint64_t vector __attribute__((vector_size(64), aligned(64)));

/* count is a multiple of STREAMS. */
static inline __attribute__((always_inline)) uint64_t read_part(const vector *data, size_t count) {
  size_t part = count / STREAMS;
  const vector *a = data, *b = data + part, *c = data + 2 * part, *d = data + 3 * part;
  vector p = {0}, q = {0}, r = {0}, s = {0};
  for (size_t i = 0; i < part; i++) {
    __builtin_prefetch((const char *)(a + i) + AHEAD);
    __builtin_prefetch((const char *)(b + i) + AHEAD);
    __builtin_prefetch((const char *)(c + i) + AHEAD);
    __builtin_prefetch((const char *)(d + i) + AHEAD);
    p ^= a[i];
    q ^= b[i];
    r ^= c[i];
    s ^= d[i];
  }
  p ^= q ^ r ^ s;
  return p[0] ^ p[1] ^ p[2] ^ p[3] ^ p[4] ^ p[5] ^ p[6] ^ p[7];
}

static uint64_t read_plain(const vector *data, size_t count) { return read_part(data, count); }
#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t read_avx2(const vector *data, size_t count) {
  return read_part(data, count);
}
#endif

typedef uint64_t (*read_function)(const vector *data, size_t count);
static read_function choose_read(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return read_avx2;
#endif
  return read_plain;
}

typedef struct bandwidth_job {
  pthread_barrier_t *barrier;
  vector *data;
  size_t count;
  read_function read;
  uint64_t result;
} bandwidth_job;

/* Passes are fenced by barriers; the main thread, at the same barriers, takes the time. */
static void *work(void *argument) {
  bandwidth_job *job = argument;
  for (size_t i = 0; i < job->count; i++) job->data[i] = (vector){i, i, i, i, i, i, i, i};
  for (int pass = 0; pass < PASSES; pass++) {
    pthread_barrier_wait(job->barrier);
    job->result += job->read(job->data, job->count);
    pthread_barrier_wait(job->barrier);
  }
  return NULL;
}

static double measure(pthread_barrier_t *barrier) {
  double best = 0;
  for (int pass = 0; pass < PASSES; pass++) {
    pthread_barrier_wait(barrier);
    double start = cli_seconds();
    pthread_barrier_wait(barrier);
    double seconds = cli_seconds() - start;
    if (pass == 0 || seconds < best) best = seconds;
  }
  return best;
}

double cli_read_bandwidth(uint64_t bytes, uint32_t threads) {
  if (threads == 0 || threads > MAX_THREADS) return 0;
  size_t share = (size_t)bytes / threads / sizeof(vector) / STREAMS * STREAMS;
  if (!share) return 0;
  size_t size = share * threads * sizeof(vector);
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  madvise(memory, size, MADV_HUGEPAGE);
  pthread_barrier_t barrier;
  pthread_t ids[MAX_THREADS];
  bandwidth_job jobs[MAX_THREADS];
  read_function read = choose_read();
  pthread_barrier_init(&barrier, NULL, threads + 1);
  uint32_t started = 0;
  for (; started < threads; started++) {
    vector *data = (vector *)memory + share * started;
    jobs[started] = (bandwidth_job){&barrier, data, share, read, 0};
    if (pthread_create(&ids[started], NULL, work, &jobs[started]) != 0) break;
  }
  double seconds = 0;
  if (started == threads) {
    seconds = measure(&barrier);
    for (uint32_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
  } else {
    for (uint32_t i = 0; i < started; i++) pthread_cancel(ids[i]);
    for (uint32_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
  }
  pthread_barrier_destroy(&barrier);
  munmap(memory, size);
  return seconds > 0 ? (double)size / seconds : 0;
}
