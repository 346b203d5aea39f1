/* Helpers of the front-end's tests. */
#include "common.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void make_directory(char path[64]) {
  snprintf(path, 64, "/tmp/stele-test-XXXXXX");
  assert_non_null(mkdtemp(path));
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where) {
  (void)st;
  (void)type;
  (void)where;
  return remove(path);
}

void remove_directory(const char *path) { nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS); }

const char *in(const char *directory, const char *name) {
  static char paths[4][512];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", directory, name);
  return path;
}

void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

void expect_words(const stele_sink *sink, ...) {
  va_list words;
  va_start(words, sink);
  for (const char *word; (word = va_arg(words, const char *));)
    if (!strstr(sink->text, word)) fail_msg("no '%s' in the message: %s", word, sink->text);
  va_end(words);
}

void expect_open_fails(const char *path, stele_status code, stele_sink *sink) {
  fe_model *model = NULL;
  stele_status status = fe_model_open(path, sink, &model);
  if (status != code) fail_msg("status %d, expected %d: %s", status, code, sink->text);
  assert_null(model);
  assert_true(sink->text[0] != 0);
}
