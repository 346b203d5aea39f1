/* The host as a device: worker threads that run a step together and meet at barriers. */
#ifndef STELE_DEVICE_DEVICE_H
#define STELE_DEVICE_DEVICE_H

#include "base/base.h"
#include "stele/stele.h"

typedef struct device_host device_host;

/* workers - 1 threads are started; worker 0 is whoever calls device_host_run. The allocator must
 * outlive the host. */
stele_status device_host_create(uint32_t workers, const base_allocator *allocator, stele_sink *sink,
                                device_host **out_host) STELE_MUST_USE;
/* Accepts NULL. */
void device_host_destroy(device_host *host);
/* Runs a step on all workers; returns when all are done. One caller at a time. */
void device_host_run(device_host *host, stele_step_function run, const stele_env *env,
                     const stele_step_args *args);
/* What stele_env wants as its barrier; the data is the host. */
void device_host_barrier(void *host, uint32_t worker);

/* The parts of stele_machine_workers, with the folder that stands for "/" (tests bring their own).
 * Cores: physical cores among the processors set in allowed[processors]. Quota: processors that
 * the control group of this process grants, UINT32_MAX without a limit. */
uint32_t device_count_cores(const char *root, const bool *allowed, uint32_t processors);
uint32_t device_cgroup_quota(const char *root);

#endif
