/* Worker threads and their barrier.
 *
 * The barrier is one word of 64 bits: a generation, how many have arrived in it, and whether one of
 * them sleeps. Arriving adds to it; the last to arrive exchanges it for the next generation, which
 * the others watch for. So a meeting costs two journeys of one cache line. They watch for some
 * microseconds with pauses (a step has hundreds of barriers a few microseconds apart) and then
 * sleep on the generation (futex). Not for long: who is late has lost its processor to another
 * program, and may get the sleeper's. With more workers than processors they yield instead, which
 * lets the others arrive, and sleep much later. A run is two meetings at the same barrier: all
 * workers wait in the first one between steps.
 *
 * Who sleeps says so by a compare and exchange that fails once the generation has moved; who moves
 * it sees in what it got back whether anybody has to be woken: no sleeper is missed. */
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

#define SPIN_NANOSECONDS 20000    /* inside a step */
#define REST_NANOSECONDS 100000   /* between steps: the caller looks at the token */
#define CROWD_NANOSECONDS 1500000 /* of yields, with more workers than processors */
#define PAUSES 4                  /* between two looks: looks get in the way of who arrives */
#define LOOKS_PER_TIME 8          /* looks at the clock are dearer */
#define LINE 128                  /* two cache lines: neighbours are fetched in pairs */

#define ARRIVAL ((uint64_t)1 << 32)
#define SLEEPER ((uint64_t)1 << 63)

typedef struct worker {
  device_host *host;
  pthread_t thread;
  uint32_t number;
} worker;

struct device_host {
  uint32_t workers, started;
  bool crowded; /* more workers than processors */
  const base_allocator *allocator;
  worker *threads; /* [workers - 1] */

  /* The job, written by worker 0 before the first meeting of a run. */
  stele_step_function run; /* NULL: end */
  const stele_env *env;
  const stele_step_args *args;

  char before[LINE];
  _Atomic uint64_t word; /* generation, arrivals, a sleeper: 32, 31 and 1 bits */
  char behind[LINE];
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

static uint32_t arrivals(uint64_t word) { return (uint32_t)((word & ~SLEEPER) / ARRIVAL); }

static bool passed(device_host *host, uint32_t generation) {
  return (uint32_t)atomic_load_explicit(&host->word, memory_order_acquire) != generation;
}

/* The half of the word that a futex can wait on. */
static void *generation_of(device_host *host) {
  return (char *)&host->word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);
}

static void wait_a_little(const device_host *host) {
  if (host->crowded)
    sched_yield();
  else
    for (unsigned i = 0; i < PAUSES; i++) pause_briefly();
}

/* True when the generation moved within so many nanoseconds. */
static bool watch(device_host *host, uint32_t generation, uint64_t nanoseconds) {
  uint64_t end = 0;
  for (;;) {
    for (unsigned look = 0; look < LOOKS_PER_TIME; look++) {
      if (passed(host, generation)) return true;
      wait_a_little(host);
    }
    uint64_t now = now_nanoseconds();
    if (!end)
      end = now + nanoseconds;
    else if (now >= end)
      return false;
  }
}

static void sleep_until_passed(device_host *host, uint32_t generation) {
  uint64_t word = atomic_load_explicit(&host->word, memory_order_acquire);
  while ((uint32_t)word == generation) {
    if (!atomic_compare_exchange_weak_explicit(&host->word, &word, word | SLEEPER,
                                               memory_order_acq_rel, memory_order_acquire))
      continue;
    syscall(SYS_futex, generation_of(host), FUTEX_WAIT_PRIVATE, generation, NULL, NULL, 0);
    word = atomic_load_explicit(&host->word, memory_order_acquire);
  }
}

static void meet(device_host *host, uint64_t nanoseconds) {
  uint32_t workers = host->workers; /* before arriving: afterwards destroy may lower it */
  uint64_t word = atomic_fetch_add_explicit(&host->word, ARRIVAL, memory_order_acq_rel);
  uint32_t generation = (uint32_t)word;
  if (arrivals(word) + 1 < workers) {
    if (host->crowded) nanoseconds = CROWD_NANOSECONDS;
    if (!watch(host, generation, nanoseconds)) sleep_until_passed(host, generation);
    return;
  }
  word = atomic_exchange_explicit(&host->word, (uint32_t)(generation + 1), memory_order_acq_rel);
  if (word & SLEEPER)
    syscall(SYS_futex, generation_of(host), FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void device_host_barrier(void *host, uint32_t number) {
  (void)number;
  device_host *h = host;
  if (h->workers > 1) meet(h, SPIN_NANOSECONDS);
}

static void *work(void *data) {
  worker *self = data;
  device_host *host = self->host;
  for (;;) {
    meet(host, REST_NANOSECONDS);
    if (!host->run) return NULL;
    host->run(host->env, host->args, self->number, host->workers);
    meet(host, SPIN_NANOSECONDS);
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
  host->crowded = !fits_processors(workers);
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
  while (arrivals(atomic_load(&host->word)) < host->started) sched_yield();
  host->workers = host->started + 1;
  host->run = NULL;
  if (host->started) meet(host, SPIN_NANOSECONDS);
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
  meet(host, SPIN_NANOSECONDS);
  run(env, args, 0, host->workers);
  meet(host, SPIN_NANOSECONDS);
}
