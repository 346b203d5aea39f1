/* The compiler as a library: options, reports, the same bytes from several threads at once, and
 * passes on text in pieces. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "stele/compiler.h"
#include "support/test_model.h"

static char folder[64], model[96];

static char *in_folder(const char *name) {
  static char paths[4][128];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static int set_up(void **state) {
  (void)state;
  stele_sink sink = {{0}};
  fe_model *random;
  test_options options = test_options_default();
  snprintf(folder, sizeof folder, "/tmp/stele-compile-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(model, sizeof model, "%s/model", folder);
  if (test_model_random(&options, &sink, &random) != STELE_OK) return -1;
  stele_status status = test_model_save_hf(&options, random, STELE_F32, model, &sink);
  fe_model_destroy(random);
  return status == STELE_OK ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static stele_compile_options with_target(const char *target) {
  return (stele_compile_options){.struct_bytes = sizeof(stele_compile_options), .target = target};
}

/* ---- options --------------------------------------------------------------------------- */

static void refuse(const stele_compile_options *options, const char *words) {
  stele_sink sink = {{0}};
  assert_int_equal(stele_compile(model, in_folder("refused.so"), options, &sink, NULL),
                   STELE_INVALID_ARGUMENT);
  if (!strstr(sink.text, words)) fail_msg("'%s' lacks '%s'", sink.text, words);
  assert_false(base_file_exists(in_folder("refused.so")));
}

static void test_options_refused(void **state) {
  (void)state;
  stele_compile_options o = with_target("ref");
  o.struct_bytes = 0;
  refuse(&o, "struct_bytes");
  o = with_target("ref");
  o.lanes = 17;
  refuse(&o, "--lanes is 17, expected 1 to 16");
  o = with_target("ref");
  o.prefill = 70000;
  refuse(&o, "--prefill is 70000");
  o = with_target("ref");
  o.verify = 65537;
  refuse(&o, "--verify is 65537, expected 1 to 65536");
  o = with_target("ref");
  o.max_cache_len = 1u << 31;
  refuse(&o, "--max-cache-len is 2147483648");
  o = with_target("ref");
  o.cache_dtype = "q4_1";
  refuse(&o, "--cache-dtype is 'q4_1', expected f32, f16, bf16, q8_0 or q4_0");
  o = with_target("nowhere");
  refuse(&o, "--target is 'nowhere', expected one of:\n  cpu\n  ref\n  null");
  static const char *const unknown[] = {"fuse-norm", "polish", NULL};
  o = with_target("ref");
  o.skip_passes = unknown;
  refuse(&o, "--skip-pass is 'polish', expected one of:\n  canonicalise\n");
  static const char *const required[] = {"flatten", NULL};
  o.skip_passes = required;
  refuse(&o, "the pass 'flatten' cannot be skipped");
}

/* ---- compiling ------------------------------------------------------------------------- */

typedef struct steps {
  uint64_t last;
  bool backwards, weights;
} steps;

static void note_progress(void *data, const char *phase, uint64_t done, uint64_t total) {
  steps *s = data;
  if (strcmp(phase, "weights") != 0) return;
  s->backwards |= s->weights && done < s->last;
  s->weights = true;
  s->last = done;
  assert_true(done <= total);
}

static void test_report(void **state) {
  (void)state;
  stele_sink sink = {{0}};
  stele_compile_report report = {0};
  steps seen = {0};
  stele_compile_options o = with_target("null");
  o.max_cache_len = 600;
  o.progress = note_progress;
  o.progress_data = &seen;
  if (stele_compile(model, in_folder("report.so"), &o, &sink, &report) != STELE_OK)
    fail_msg("%s", sink.text);
  assert_int_equal(report.capacity, 600);
  assert_int_equal(report.model_positions, 512);
  assert_non_null(strstr(report.note, "600"));
  assert_non_null(strstr(report.note, "512"));
  assert_true(report.artifact_bytes > report.code_bytes + report.weight_bytes);
  assert_true(report.peak_memory_bytes > 0 && report.seconds > 0);
  assert_string_equal(report.phases[0].name, "start");
  assert_string_equal(report.phases[report.phase_count - 1].name, "weights");
  /* 10 pages of 64 tokens: 2 layers, keys and values of 2 heads of 16 elements in f32 */
  assert_int_equal(report.cache_bytes, 640 * 2 * 2 * 2 * 16 * 4);
  assert_true(seen.weights && !seen.backwards);
  assert_int_equal(seen.last, report.weight_bytes);
}

static void test_default_capacity(void **state) {
  (void)state;
  stele_sink sink = {{0}};
  stele_compile_report report = {0};
  stele_compile_options o = with_target("null");
  assert_int_equal(stele_compile(model, in_folder("default.so"), &o, &sink, &report), STELE_OK);
  assert_int_equal(report.capacity, 512);
  assert_string_equal(report.note, "");
}

static void test_old_file_stays(void **state) {
  (void)state;
  stele_sink sink = {{0}};
  stele_compile_options o = with_target("null");
  FILE *old = fopen(in_folder("old.so"), "w");
  assert_non_null(old);
  fputs("old", old);
  fclose(old);
  assert_int_not_equal(stele_compile("/nonexistent", in_folder("old.so"), &o, &sink, NULL),
                       STELE_OK);
  assert_non_null(strstr(sink.text, "/nonexistent"));
  base_map map;
  assert_int_equal(base_map_open(&sink, in_folder("old.so"), &map), STELE_OK);
  assert_int_equal(map.size, 3);
  base_map_close(&map);
}

static void *compile_it(void *path) {
  stele_sink sink = {{0}};
  stele_compile_options o = with_target("ref");
  o.threads = 3;
  return stele_compile(model, path, &o, &sink, NULL) == STELE_OK ? path : NULL;
}

static void test_threads_same_bytes(void **state) {
  (void)state;
  pthread_t threads[2];
  char paths[2][128];
  base_map maps[2];
  stele_sink sink = {{0}};
  for (int i = 0; i < 2; i++) {
    snprintf(paths[i], sizeof paths[i], "%s/thread%d.so", folder, i);
    assert_int_equal(pthread_create(&threads[i], NULL, compile_it, paths[i]), 0);
  }
  for (int i = 0; i < 2; i++) {
    void *done;
    pthread_join(threads[i], &done);
    assert_non_null(done);
    assert_int_equal(base_map_open(&sink, paths[i], &maps[i]), STELE_OK);
  }
  assert_int_equal(maps[0].size, maps[1].size);
  assert_memory_equal(maps[0].data, maps[1].data, maps[0].size);
  for (int i = 0; i < 2; i++) base_map_close(&maps[i]);
}

/* ---- passes on text -------------------------------------------------------------------- */

static stele_opt_options opt_options(void) {
  return (stele_opt_options){.struct_bytes = sizeof(stele_opt_options),
                             .model_path = model,
                             .compile = with_target("ref")};
}

static char *opt(const char *text, const stele_opt_options *options) {
  stele_sink sink = {{0}};
  char *out = NULL;
  if (stele_opt(text, "test.mlir", options, &sink, NULL, &out) != STELE_OK)
    fail_msg("%s", sink.text);
  return out;
}

/* Stopped and started again anywhere, the passes end with the same program. */
static void test_opt_in_pieces(void **state) {
  (void)state;
  stele_opt_options whole = opt_options();
  char *expected = opt(NULL, &whole);
  assert_non_null(strstr(expected, "qkv_cache"));
  const char *name, *next, *summary;
  for (size_t i = 0; stele_pass_describe(i + 1, &next, &summary); i++) {
    assert_true(stele_pass_describe(i, &name, &summary));
    stele_opt_options first = opt_options(), second = opt_options();
    first.stop_after = name;
    second.start_from = next;
    char *middle = opt(NULL, &first), *found = opt(middle, &second);
    assert_string_equal(found, expected);
    free(middle);
    free(found);
  }
  free(expected);
}

static void test_opt_only(void **state) {
  (void)state;
  stele_opt_options stop = opt_options(), only = opt_options();
  stop.stop_after = "fuse-norm";
  only.only = "canonicalise,fuse-norm";
  char *a = opt(NULL, &stop), *b = opt(NULL, &only);
  assert_string_equal(a, b);
  free(a);
  free(b);
}

static void opt_refuses(const char *text, const stele_opt_options *options, const char *words) {
  stele_sink sink = {{0}};
  char *out = NULL;
  assert_int_not_equal(stele_opt(text, "test.mlir", options, &sink, NULL, &out), STELE_OK);
  if (!strstr(sink.text, words)) fail_msg("'%s' lacks '%s'", sink.text, words);
  assert_null(out);
}

static void test_opt_refused(void **state) {
  (void)state;
  stele_opt_options o = opt_options();
  o.model_path = NULL;
  opt_refuses(NULL, &o, "neither a text nor a model");
  opt_refuses("this is no module", &o, "test.mlir");
  o = opt_options();
  o.start_from = "tile";
  o.stop_after = "fuse-norm";
  opt_refuses(NULL, &o, "'fuse-norm' comes before 'tile'");
  o.stop_after = NULL;
  opt_refuses(NULL, &o, "--start-from needs the text");
  o = opt_options();
  o.only = "fuse-norm,nothing";
  opt_refuses(NULL, &o, "--passes is 'nothing'");
  o.struct_bytes = 0;
  opt_refuses(NULL, &o, "struct_bytes");
}

static void test_tables(void **state) {
  (void)state;
  const char *name, *summary;
  assert_true(stele_target_describe(0, &name, &summary));
  assert_string_equal(name, "cpu");
  assert_true(strlen(summary) > 10);
  assert_false(stele_target_describe(1000, &name, &summary));
  assert_false(stele_pass_describe(1000, &name, &summary));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options_refused),
      cmocka_unit_test(test_report),
      cmocka_unit_test(test_default_capacity),
      cmocka_unit_test(test_old_file_stays),
      cmocka_unit_test(test_threads_same_bytes),
      cmocka_unit_test(test_opt_in_pieces),
      cmocka_unit_test(test_opt_only),
      cmocka_unit_test(test_opt_refused),
      cmocka_unit_test(test_tables),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
