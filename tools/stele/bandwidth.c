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

/* What the threads of a measurement share. Holding the gate keeps them from beginning until all
 * were created; should one not be, the others leave at once. */
typedef struct bandwidth_team {
  pthread_mutex_t gate;
  pthread_barrier_t barrier;
  bool incomplete;
} bandwidth_team;

typedef struct bandwidth_job {
  bandwidth_team *team;
  vector *data;
  size_t count;
  read_function read;
  uint64_t result;
  double begin[PASSES], end[PASSES];
} bandwidth_job;

/* Passes begin together. Each thread takes its own times: a thread that only watched could come
 * late to a pass and find it done. */
static void *work(void *argument) {
  bandwidth_job *job = argument;
  pthread_mutex_lock(&job->team->gate);
  bool incomplete = job->team->incomplete;
  pthread_mutex_unlock(&job->team->gate);
  if (incomplete) return NULL;
  for (size_t i = 0; i < job->count; i++) job->data[i] = (vector){i, i, i, i, i, i, i, i};
  for (int pass = 0; pass < PASSES; pass++) {
    pthread_barrier_wait(&job->team->barrier);
    job->begin[pass] = cli_seconds();
    job->result += job->read(job->data, job->count);
    job->end[pass] = cli_seconds();
  }
  return NULL;
}

/* The shortest pass, from the first thread's begin to the last one's end. */
static double shortest(const bandwidth_job *jobs, uint32_t threads) {
  double best = 0;
  for (int pass = 0; pass < PASSES; pass++) {
    double begin = jobs[0].begin[pass], end = jobs[0].end[pass];
    for (uint32_t i = 1; i < threads; i++) {
      if (jobs[i].begin[pass] < begin) begin = jobs[i].begin[pass];
      if (jobs[i].end[pass] > end) end = jobs[i].end[pass];
    }
    if (pass == 0 || end - begin < best) best = end - begin;
  }
  return best;
}

/* Seconds of the best pass; 0 when not all threads could be created. */
static double read_with_team(vector *memory, size_t share, uint32_t threads) {
  bandwidth_team team = {.incomplete = false};
  pthread_t ids[MAX_THREADS];
  bandwidth_job jobs[MAX_THREADS];
  read_function read = choose_read();
  uint32_t started = 0;
  pthread_mutex_init(&team.gate, NULL);
  pthread_barrier_init(&team.barrier, NULL, threads);
  pthread_mutex_lock(&team.gate);
  for (; started < threads; started++) {
    jobs[started] = (bandwidth_job){
        .team = &team, .data = memory + share * started, .count = share, .read = read};
    if (pthread_create(&ids[started], NULL, work, &jobs[started]) != 0) break;
  }
  team.incomplete = started < threads;
  pthread_mutex_unlock(&team.gate);
  for (uint32_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
  pthread_barrier_destroy(&team.barrier);
  pthread_mutex_destroy(&team.gate);
  return team.incomplete ? 0 : shortest(jobs, threads);
}

double cli_read_bandwidth(uint64_t bytes, uint32_t threads) {
  if (threads == 0 || threads > MAX_THREADS) return 0;
  size_t share = (size_t)bytes / threads / sizeof(vector) / STREAMS * STREAMS;
  if (!share) return 0;
  size_t size = share * threads * sizeof(vector);
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  madvise(memory, size, MADV_HUGEPAGE);
  double seconds = read_with_team(memory, share, threads);
  munmap(memory, size);
  return seconds > 0 ? (double)size / seconds : 0;
}
