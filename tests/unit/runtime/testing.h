/* What the runtime's tests begin with: CMocka, opened fake artefacts, fed lanes. */
#ifndef RUNTIME_TESTING_H
#define RUNTIME_TESTING_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>
#include <string.h>

#include "fake_artifact.h"
#include "stele/stele.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Fails with the library's own words. */
#define assert_ok(call)                                                     \
  do {                                                                      \
    stele_sink test_sink = {0};                                             \
    stele_sink *sink = &test_sink;                                          \
    stele_status test_status = (call);                                      \
    if (test_status != STELE_OK) fail_msg("%s: %s", #call, test_sink.text); \
  } while (0)

static inline void assert_contains(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("'%s' does not contain '%s'", text, part);
}

/* Writes the artefact and opens it. */
static inline stele_model *open_fake(const fake_config *config) {
  stele_model *model = NULL;
  const char *path = fake_path("model.so");
  assert_int_equal(fake_write(path, config), 0);
  assert_ok(stele_model_open(path, NULL, sink, &model));
  return model;
}

static inline stele_session *create_session(const stele_model *model, uint32_t lanes,
                                            uint32_t threads, uint32_t implementation) {
  const stele_session_options options = {.struct_bytes = sizeof options,
                                         .lanes = lanes,
                                         .threads = threads,
                                         .cache_implementation = implementation};
  stele_session *session = NULL;
  assert_ok(stele_session_create(model, &options, sink, &session));
  return session;
}

/* Some ids that depend on a seed. */
static inline void fill_ids(int32_t *ids, uint32_t count, uint32_t seed, uint32_t vocab) {
  for (uint32_t i = 0; i < count; i++) ids[i] = (int32_t)(fake_mix(seed, i) % vocab);
}

#endif
