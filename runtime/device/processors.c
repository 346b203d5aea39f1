/* How many workers are worth starting: the processors that this process may run on (affinity),
 * hyper-threads of one core counted once, at most what its control group grants (a quota smaller
 * than the workers stops them all in the middle of a step), at most OMP_NUM_THREADS.
 *
 * Sources: Linux Documentation/ABI/stable/sysfs-devices-system-cpu (core_cpus_list,
 * thread_siblings_list), admin-guide/cgroup-v2 (cpu.max), scheduler/sched-bwc (cpu.cfs_quota_us).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"

#define MAX_PROCESSORS 4096u

/* A small text file below root, zero-terminated; false when it can't be read. */
static bool read_text(const char *root, const char *path, char *text, size_t bytes) {
  char full[PATH_MAX];
  if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full) return false;
  int fd = open(full, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, bytes - 1);
  close(fd);
  if (n < 0) return false;
  text[n] = 0;
  return true;
}

/* The first processor of the core that processor is on: lists are sorted ("0,4", "2-3"). */
static uint32_t core_of(const char *root, uint32_t processor) {
  static const char *const names[] = {"core_cpus_list", "thread_siblings_list"};
  char path[128], text[256], *end;
  for (size_t i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%" PRIu32 "/topology/%s", processor,
             names[i]);
    if (!read_text(root, path, text, sizeof text)) continue;
    unsigned long first = strtoul(text, &end, 10);
    if (end != text && first < MAX_PROCESSORS) return (uint32_t)first;
  }
  return processor;
}

uint32_t device_count_cores(const char *root, const bool *allowed, uint32_t processors) {
  bool seen[MAX_PROCESSORS] = {false};
  uint32_t cores = 0;
  for (uint32_t i = 0; i < processors && i < MAX_PROCESSORS; i++) {
    if (!allowed[i]) continue;
    uint32_t core = core_of(root, i);
    cores += !seen[core];
    seen[core] = true;
  }
  return cores;
}

static uint32_t processors_of(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return UINT32_MAX;
  long long whole = quota / period;
  return whole < 1 ? 1 : whole > UINT32_MAX ? UINT32_MAX : (uint32_t)whole;
}

/* "max 100000" or "150000 100000". */
static uint32_t quota_v2(const char *root, const char *folder) {
  char path[PATH_MAX], text[128];
  long long quota, period;
  snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
  if (!read_text(root, path, text, sizeof text)) return UINT32_MAX;
  return sscanf(text, "%lld %lld", &quota, &period) == 2 ? processors_of(quota, period)
                                                         : UINT32_MAX;
}

static uint32_t quota_v1(const char *root, const char *folder) {
  char path[PATH_MAX], quota[64], period[64];
  snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", folder);
  if (!read_text(root, path, quota, sizeof quota)) return UINT32_MAX;
  snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", folder);
  if (!read_text(root, path, period, sizeof period)) return UINT32_MAX;
  return processors_of(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* The least of a group's limit and of those above it. In a container the path of /proc/self/cgroup
 * may lie outside of what is mounted; the root of the mount is asked in any case. */
static uint32_t least_upwards(const char *root, char *folder,
                              uint32_t (*quota)(const char *, const char *)) {
  uint32_t least = quota(root, "");
  for (char *slash; *folder; *slash = 0) {
    least = (uint32_t)base_min(least, quota(root, folder));
    slash = strrchr(folder, '/');
    if (!slash) break;
  }
  return least;
}

static bool names_cpu(const char *controllers) {
  for (const char *at = controllers; *at; at += strcspn(at, ","), at += *at == ',')
    if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || !at[3])) return true;
  return false;
}

uint32_t device_cgroup_quota(const char *root) {
  char text[8192], *rest = text;
  uint32_t least = UINT32_MAX;
  if (!read_text(root, "/proc/self/cgroup", text, sizeof text)) return UINT32_MAX;
  for (char *line; (line = strsep(&rest, "\n"));) { /* number:controllers:folder */
    char *controllers = strchr(line, ':');
    char *folder = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!folder || strlen(folder) > PATH_MAX - 64) continue;
    *folder++ = 0;
    controllers++;
    uint32_t found = UINT32_MAX;
    if (!*controllers)
      found = least_upwards(root, folder, quota_v2);
    else if (names_cpu(controllers))
      found = least_upwards(root, folder, quota_v1);
    least = (uint32_t)base_min(least, found);
  }
  return least;
}

static uint32_t openmp_threads(void) {
  const char *text = getenv("OMP_NUM_THREADS");
  char *end;
  if (!text) return UINT32_MAX;
  errno = 0;
  unsigned long n = strtoul(text, &end, 10); /* "4" or "4,2": the outer level counts */
  return end == text || errno || !n || n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

uint32_t stele_machine_workers(void) {
  static const size_t set_bytes = CPU_ALLOC_SIZE(MAX_PROCESSORS);
  unsigned long set[MAX_PROCESSORS / (8 * sizeof(unsigned long))] = {0};
  bool allowed[MAX_PROCESSORS] = {false};
  if (sched_getaffinity(0, set_bytes, (cpu_set_t *)(void *)set) != 0) return 1;
  for (uint32_t i = 0; i < MAX_PROCESSORS; i++)
    allowed[i] = CPU_ISSET_S(i, set_bytes, (cpu_set_t *)(void *)set);
  uint32_t workers = device_count_cores("", allowed, MAX_PROCESSORS);
  workers = (uint32_t)base_min(workers, device_cgroup_quota(""));
  return (uint32_t)base_max(base_min(workers, openmp_threads()), 1);
}
