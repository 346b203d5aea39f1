/* Sessions on different threads: one model shared, one model each. Built with a race detector this
 * proves more than that the ids are right. */
#include <pthread.h>
#include <stdio.h>

#include "testing.h"

typedef struct job {
  const stele_model *model; /* NULL: opens its own */
  char path[256];
  fake_config config;
  uint32_t seed, threads;
  bool failed;
} job;

static bool generates(const stele_model *model, const job *j) {
  stele_session_options options = {.struct_bytes = sizeof options, .threads = j->threads};
  stele_session *session = NULL;
  int32_t ids[64];
  bool good = stele_session_create(model, &options, NULL, &session) == STELE_OK;
  for (uint32_t round = 0; good && round < 3; round++) {
    fill_ids(ids, 10, j->seed + round, j->config.vocab);
    good = stele_generate(session, ids, 10, NULL, ids + 10, 50, NULL, NULL) == STELE_OK;
    for (uint32_t i = 10; good && i < 60; i++) good = ids[i] == fake_next(&j->config, ids, i);
    stele_session_reset(session, 0);
  }
  stele_session_destroy(session);
  return good;
}

static void *run_job(void *data) {
  job *j = data;
  stele_model *own = NULL;
  if (!j->model) j->failed = stele_model_open(j->path, NULL, NULL, &own) != STELE_OK;
  if (!j->failed) j->failed = !generates(j->model ? j->model : own, j);
  stele_model_close(own);
  return NULL;
}

static void run_all(job *jobs, uint32_t count) {
  pthread_t threads[8];
  for (uint32_t i = 0; i < count; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
  for (uint32_t i = 0; i < count; i++) {
    pthread_join(threads[i], NULL);
    assert_false(jobs[i].failed);
  }
}

static void sessions_of_one_model(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  job jobs[4];
  for (uint32_t i = 0; i < 4; i++)
    jobs[i] = (job){.model = model, .config = config, .seed = i * 10, .threads = 1 + i % 2};
  run_all(jobs, 4);
  stele_model_close(model);
}

static void models_of_their_own(void **state) {
  (void)state;
  job jobs[4];
  for (uint32_t i = 0; i < 4; i++) {
    fake_config config = fake_default();
    config.seed = i / 2; /* two open the same file */
    jobs[i] = (job){.config = config, .seed = i, .threads = 1};
    char name[32];
    snprintf(name, sizeof name, "own-%u.so", i / 2);
    strcpy(jobs[i].path, fake_path(name));
    if (i % 2 == 0) assert_int_equal(fake_write(jobs[i].path, &config), 0);
  }
  run_all(jobs, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sessions_of_one_model),
      cmocka_unit_test(models_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
