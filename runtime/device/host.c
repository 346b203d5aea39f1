/* Worker threads and their barrier.
 *
 * The barrier counts arrivals on one cache line; the last one resets the count and advances a
 * generation on another line, which the others watch. They watch it for some microseconds with
 * pauses (a step has hundreds of barriers a few microseconds apart) and then sleep on it (futex),
 * so that a busy machine gets its processors back. A run is two meetings at the same barrier: all
 * workers wait in the first one between steps. With more workers than processors nobody watches.
 *
 * Sleeping is announced before the generation is looked at again, and the generation is advanced
 * before the sleepers are counted, both sequentially consistent: one of the two sees the other. */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"

#define SPIN_NANOSECONDS 40000
#define PAUSES_PER_LOOK 32 /* looks at the clock are dearer than pauses */
#define LINE 128           /* two cache lines: neighbours are fetched in pairs */

typedef struct worker {
  device_host *host;
  pthread_t thread;
  uint32_t number;
} worker;

struct device_host {
  uint32_t workers, started;
  bool spin;
  const base_allocator *allocator;
  worker *threads; /* [workers - 1] */

  /* The job, written by worker 0 before the first meeting of a run. */
  stele_step_function run; /* NULL: end */
  const stele_env *env;
  const stele_step_args *args;

  char line_0[LINE];
  _Atomic uint32_t arrived;
  char line_1[LINE];
  _Atomic uint32_t generation;
  char line_2[LINE];
  _Atomic uint32_t sleepers;
  char line_3[LINE];
};

static inline void pause_briefly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static uint64_t now_nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool passed(device_host *host, uint32_t generation) {
  return atomic_load_explicit(&host->generation, memory_order_acquire) != generation;
}

/* True when the generation moved while it was watched. */
static bool watch(device_host *host, uint32_t generation) {
  uint64_t end = 0;
  for (;;) {
    for (unsigned i = 0; i < PAUSES_PER_LOOK; i++) {
      if (passed(host, generation)) return true;
      pause_briefly();
    }
    uint64_t now = now_nanoseconds();
    if (!end)
      end = now + SPIN_NANOSECONDS;
    else if (now >= end)
      return false;
  }
}

static void sleep_until_passed(device_host *host, uint32_t generation) {
  atomic_fetch_add(&host->sleepers, 1);
  while (atomic_load(&host->generation) == generation)
    syscall(SYS_futex, &host->generation, FUTEX_WAIT_PRIVATE, generation, NULL, NULL, 0);
  atomic_fetch_sub(&host->sleepers, 1);
}

static void meet(device_host *host) {
  uint32_t workers = host->workers; /* before arriving: afterwards destroy may lower it */
  uint32_t generation = atomic_load_explicit(&host->generation, memory_order_relaxed);
  uint32_t before = atomic_fetch_add_explicit(&host->arrived, 1, memory_order_acq_rel);
  if (before + 1 < workers) {
    if (passed(host, generation) || (host->spin && watch(host, generation))) return;
    sleep_until_passed(host, generation);
    return;
  }
  atomic_store_explicit(&host->arrived, 0, memory_order_relaxed);
  atomic_store(&host->generation, generation + 1);
  if (atomic_load(&host->sleepers))
    syscall(SYS_futex, &host->generation, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void device_host_barrier(void *host, uint32_t number) {
  (void)number;
  device_host *h = host;
  if (h->workers > 1) meet(h);
}

static void *work(void *data) {
  worker *self = data;
  device_host *host = self->host;
  for (;;) {
    meet(host);
    if (!host->run) return NULL;
    host->run(host->env, host->args, self->number, host->workers);
    meet(host);
  }
}

static int start_thread(worker *w) {
  char name[16];
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); /* signals belong to the caller's threads */
  int error = pthread_create(&w->thread, NULL, work, w);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  snprintf(name, sizeof name, "stele-%u", w->number % 10000);
  if (!error) pthread_setname_np(w->thread, name);
  return error;
}

static bool fits_processors(uint32_t workers) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return true; /* more than a set holds */
  return workers <= (uint32_t)CPU_COUNT(&set);
}

stele_status device_host_create(uint32_t workers, const base_allocator *allocator, stele_sink *sink,
                                device_host **out_host) {
  device_host *host = base_allocate(allocator, 1, sizeof *host);
  worker *threads = base_allocate(allocator, workers, sizeof *threads);
  if (!host || !threads) {
    base_release(allocator, host);
    base_release(allocator, threads);
    return base_fail(sink, STELE_OUT_OF_MEMORY, "cannot start %" PRIu32 " workers: out of memory",
                     workers);
  }
  host->workers = workers;
  host->allocator = allocator;
  host->threads = threads;
  host->spin = fits_processors(workers);
  for (uint32_t i = 1; i < workers; i++) {
    threads[i - 1] = (worker){.host = host, .number = i};
    int error = start_thread(&threads[i - 1]);
    if (error) {
      device_host_destroy(host);
      return base_fail(sink, STELE_OUT_OF_MEMORY,
                       "cannot start worker %" PRIu32 " of %" PRIu32 ": %s", i + 1, workers,
                       strerror(error));
    }
    host->started++;
  }
  *out_host = host;
  return STELE_OK;
}

/* Also ends a host of which only some threads came to be: they all wait in the first meeting, which
 * is made to need just them and the caller. */
void device_host_destroy(device_host *host) {
  if (!host) return;
  const base_allocator *allocator = host->allocator;
  while (atomic_load(&host->arrived) < host->started) sched_yield();
  host->workers = host->started + 1;
  host->run = NULL;
  if (host->started) meet(host);
  for (uint32_t i = 0; i < host->started; i++) pthread_join(host->threads[i].thread, NULL);
  base_release(allocator, host->threads);
  base_release(allocator, host);
}

void device_host_run(device_host *host, stele_step_function run, const stele_env *env,
                     const stele_step_args *args) {
  if (host->workers == 1) {
    run(env, args, 0, 1);
    return;
  }
  host->run = run;
  host->env = env;
  host->args = args;
  meet(host);
  run(env, args, 0, host->workers);
  meet(host);
}
