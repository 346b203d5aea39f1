/* Workers: every one runs, none overtakes a barrier, sleep and wake lose nobody, more workers than
 * processors still finish; counting processors from made-up system files. */
#include "device/device.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "testing.h"

static const base_allocator heap = {0};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#define MEETINGS 200

/* Written without atomics between barriers: the barrier alone orders it (a race detector agrees).
 */
typedef struct board {
  uint32_t phase[16];
  uint32_t mistakes;
  uint32_t lazy; /* this worker comes late now and then */
} board;

static void play(const stele_env *env, const stele_step_args *args, uint32_t worker, uint32_t n) {
  board *b = (board *)(void *)env->workspace;
  (void)args;
  for (uint32_t i = 0; i < MEETINGS; i++) {
    if (worker == b->lazy && i % 64 == 63) usleep(200); /* the others fall asleep */
    b->phase[worker]++;
    env->barrier(env->barrier_data, worker);
    for (uint32_t w = 0; worker == i % n && w < n; w++) b->mistakes += b->phase[w] != b->phase[0];
    env->barrier(env->barrier_data, worker);
  }
}

static void barriers_hold(void **state) {
  (void)state;
  static const uint32_t counts[] = {1, 2, 3, 8};
  for (size_t c = 0; c < COUNT(counts); c++) {
    device_host *host = NULL;
    board b = {.lazy = counts[c] - 1};
    assert_ok(device_host_create(counts[c], &heap, sink, &host));
    const stele_env env = {
        .workspace = (uint8_t *)&b, .barrier = device_host_barrier, .barrier_data = host};
    for (uint32_t run = 1; run <= 20; run++) {
      device_host_run(host, play, &env, NULL);
      for (uint32_t w = 0; w < counts[c]; w++) assert_int_equal(b.phase[w], run * MEETINGS);
      if (run % 7 == 0) usleep(1000); /* workers sleep between steps too */
    }
    assert_int_equal(b.mistakes, 0);
    device_host_destroy(host);
  }
  device_host_destroy(NULL);
}

static void count_call(const stele_env *env, const stele_step_args *args, uint32_t worker,
                       uint32_t n) {
  (void)args;
  (void)n;
  ((uint32_t *)(void *)env->workspace)[worker * 32]++;
}

/* Reports, does not judge: machines differ and may be busy. */
static void cost_of_meeting(void **state) {
  (void)state;
  static uint32_t calls[16 * 32];
  for (uint32_t workers = 1; workers <= 2; workers++) {
    device_host *host = NULL;
    const stele_env env = {.workspace = (uint8_t *)calls};
    assert_ok(device_host_create(workers, &heap, sink, &host));
    double start = now();
    for (int i = 0; i < 2000; i++) device_host_run(host, count_call, &env, NULL);
    print_message("%u workers: %.0f ns for a run\n", workers, (now() - start) / 2000 * 1e9);
    device_host_destroy(host);
  }
}

static void created_and_destroyed_at_once(void **state) {
  (void)state;
  for (int i = 0; i < 200; i++) {
    device_host *host = NULL;
    assert_ok(device_host_create(4, &heap, sink, &host));
    device_host_destroy(host);
  }
}

/* With one processor for all, 8 workers must still get through: nobody spins for long. */
static void crowded_processor(void **state) {
  (void)state;
  cpu_set_t old, one;
  CPU_ZERO(&one);
  assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
  for (int i = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET(i, &old)) {
      CPU_SET(i, &one);
      break;
    }
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  device_host *host = NULL;
  board b = {.lazy = 99};
  assert_ok(device_host_create(8, &heap, sink, &host));
  const stele_env env = {
      .workspace = (uint8_t *)&b, .barrier = device_host_barrier, .barrier_data = host};
  double start = now();
  device_host_run(host, play, &env, NULL);
  double seconds = now() - start;
  print_message("8 workers on one processor: %.1f us for a barrier\n",
                seconds / (2 * MEETINGS) * 1e6);
  assert_int_equal(b.mistakes, 0);
  device_host_destroy(host);
  assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
}

/* ---- counting processors --------------------------------------------------------------- */

static char root[256];

static void put(const char *path, const char *text) {
  char full[512];
  snprintf(full, sizeof full, "%s%s", root, path);
  for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    mkdir(full, 0700);
    *slash = '/';
  }
  assert_int_equal(fake_write_bytes(full, text, strlen(text)), 0);
}

static void new_root(const char *name) {
  snprintf(root, sizeof root, "%s", fake_path(name));
  assert_int_equal(mkdir(root, 0700), 0);
}

static void threads_of_a_core_count_once(void **state) {
  (void)state;
  bool allowed[8] = {true, true, true, true, true, true, true, true};
  new_root("cores");
  assert_int_equal(device_count_cores(root, allowed, 8), 8); /* nothing is known */
  for (int i = 0; i < 8; i++) {                              /* 4 cores: i and i + 4 */
    char path[128], list[16];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", i,
             i % 2 ? "core_cpus_list" : "thread_siblings_list");
    snprintf(list, sizeof list, "%d,%d\n", i % 4, i % 4 + 4);
    put(path, list);
  }
  assert_int_equal(device_count_cores(root, allowed, 8), 4);
  allowed[0] = allowed[1] = false; /* their siblings 4 and 5 remain */
  assert_int_equal(device_count_cores(root, allowed, 8), 4);
  allowed[4] = false;
  assert_int_equal(device_count_cores(root, allowed, 8), 3);
  put("/sys/devices/system/cpu/cpu6/topology/thread_siblings_list", "nonsense");
  assert_int_equal(device_count_cores(root, allowed, 8), 4);
}

static void quotas_of_control_groups(void **state) {
  (void)state;
  new_root("none");
  assert_int_equal(device_cgroup_quota(root), UINT32_MAX);
  new_root("v2");
  put("/proc/self/cgroup", "0::/system/stele.service\n");
  assert_int_equal(device_cgroup_quota(root), UINT32_MAX);
  put("/sys/fs/cgroup/system/stele.service/cpu.max", "max 100000\n");
  assert_int_equal(device_cgroup_quota(root), UINT32_MAX);
  put("/sys/fs/cgroup/system/cpu.max", "350000 100000\n"); /* of a group above */
  assert_int_equal(device_cgroup_quota(root), 3);
  put("/sys/fs/cgroup/system/stele.service/cpu.max", "50000 100000\n");
  assert_int_equal(device_cgroup_quota(root), 1);
  new_root("container"); /* its own group is the root of what it sees */
  put("/proc/self/cgroup", "0::/docker/abc\n");
  put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  assert_int_equal(device_cgroup_quota(root), 2);
  new_root("v1");
  put("/proc/self/cgroup",
      "9:memory:/a\n3:cpuset:/a\n2:cpuacct,cpu:/box\n1:name=systemd:/\n0::/\n");
  put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  assert_int_equal(device_cgroup_quota(root), UINT32_MAX);
  put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "400000\n");
  assert_int_equal(device_cgroup_quota(root), 4);
  put("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "0\n");
  assert_int_equal(device_cgroup_quota(root), UINT32_MAX);
  put("/proc/self/cgroup", "nonsense\n\n:\n::\n");
  assert_int_equal(device_cgroup_quota(root), UINT32_MAX);
}

static void openmp_is_respected(void **state) {
  (void)state;
  unsetenv("OMP_NUM_THREADS");
  uint32_t all = stele_machine_workers();
  assert_true(all >= 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  assert_int_equal(stele_machine_workers(), 1);
  setenv("OMP_NUM_THREADS", "1,4", 1);
  assert_int_equal(stele_machine_workers(), 1);
  setenv("OMP_NUM_THREADS", "100000", 1);
  assert_int_equal(stele_machine_workers(), all);
  setenv("OMP_NUM_THREADS", "many", 1);
  assert_int_equal(stele_machine_workers(), all);
  setenv("OMP_NUM_THREADS", "0", 1);
  assert_int_equal(stele_machine_workers(), all);
  unsetenv("OMP_NUM_THREADS");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(barriers_hold),
      cmocka_unit_test(cost_of_meeting),
      cmocka_unit_test(created_and_destroyed_at_once),
      cmocka_unit_test(crowded_processor),
      cmocka_unit_test(threads_of_a_core_count_once),
      cmocka_unit_test(quotas_of_control_groups),
      cmocka_unit_test(openmp_is_respected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
