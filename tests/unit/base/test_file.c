/* Files: mapped, read, and written so that they appear whole or not at all. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

static char folder[] = "/tmp/stele-file-XXXXXX";

static const char *in(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static void assert_file(const char *path, const char *text) {
  base_arena arena = {0};
  char *read;
  size_t size;
  assert_int_equal(base_file_read(NULL, &arena, path, 1 << 20, &read, &size), STELE_OK);
  assert_string_equal(read, text);
  assert_int_equal(size, strlen(text));
  base_arena_deinit(&arena);
}

/* Names in the folder, of which temporary ones must not stay. */
static int count_files(void) {
  int n = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

static void maps(void **state) {
  (void)state;
  stele_sink sink;
  base_map map = {0};
  write_file(in("map"), "hello");
  assert_int_equal(base_map_open(&sink, in("map"), &map), STELE_OK);
  assert_int_equal(map.size, 5);
  assert_memory_equal(map.data, "hello", 5);
  base_map_close(&map);
  assert_null(map.data);
  base_map_close(&map);
  write_file(in("map"), "");
  assert_int_equal(base_map_open(&sink, in("map"), &map), STELE_OK);
  assert_int_equal(map.size, 0);
  base_map_close(&map);
  assert_int_equal(base_map_open(&sink, in("absent"), &map), STELE_NOT_FOUND);
  assert_non_null(strstr(sink.text, "absent"));
  assert_int_equal(base_map_open(&sink, folder, &map), STELE_IO);
  assert_non_null(strstr(sink.text, "not a regular file"));
  unlink(in("map"));
  assert_int_equal(mkfifo(in("map"), 0600), 0); /* nobody will ever write to it */
  assert_int_equal(base_map_open(&sink, in("map"), &map), STELE_IO);
  unlink(in("map"));
}

static void reads_with_a_limit(void **state) {
  (void)state;
  stele_sink sink;
  base_arena arena = {0};
  char *text = NULL;
  size_t size = 0;
  write_file(in("read"), "12345");
  assert_file(in("read"), "12345");
  assert_int_equal(base_file_read(&sink, &arena, in("read"), 4, &text, &size), STELE_BAD_FORMAT);
  assert_non_null(strstr(sink.text, "has 5 bytes, at most 4"));
  assert_int_equal(base_file_read(&sink, &arena, in("none"), 4, &text, &size), STELE_NOT_FOUND);
  assert_null(text);
  assert_true(base_file_exists(in("read")));
  assert_false(base_file_exists(in("none")));
  assert_false(base_file_exists(folder));
  assert_true(base_is_directory(folder));
  assert_false(base_is_directory(in("read")));
  base_arena_deinit(&arena);
  unlink(in("read"));
}

static void commits_or_leaves_nothing(void **state) {
  (void)state;
  stele_sink sink;
  base_output out = {0};
  struct stat st;
  base_output_abort(&out);
  write_file(in("out"), "old");
  assert_int_equal(base_output_open(&sink, in("out"), &out), STELE_OK);
  assert_int_equal(base_output_write(&sink, &out, "new ", 4), STELE_OK);
  assert_file(in("out"), "old");
  assert_int_equal(base_output_write(&sink, &out, "text", 4), STELE_OK);
  assert_int_equal(out.size, 8);
  assert_int_equal(base_output_commit(&sink, &out, 0755), STELE_OK);
  assert_file(in("out"), "new text");
  assert_int_equal(stat(in("out"), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0755);
  base_output_abort(&out); /* after a commit: nothing */
  assert_int_equal(base_output_open(&sink, in("out"), &out), STELE_OK);
  assert_int_equal(base_output_write(&sink, &out, "half", 4), STELE_OK);
  base_output_abort(&out);
  assert_file(in("out"), "new text");
  assert_int_equal(count_files(), 1);
  unlink(in("out"));
}

static void places_that_cannot_be_written(void **state) {
  (void)state;
  stele_sink sink;
  base_output out = {0};
  assert_int_equal(base_output_open(&sink, folder, &out), STELE_IO);
  assert_non_null(strstr(sink.text, "is a directory"));
  assert_int_equal(base_output_open(&sink, "/dev/null", &out), STELE_IO); /* would be replaced */
  assert_non_null(strstr(sink.text, "not a regular file"));
  assert_int_equal(base_output_open(&sink, in("no/folder"), &out), STELE_NOT_FOUND);
  assert_null(out.temporary);
  assert_int_equal(base_output_open(&sink, in("taken"), &out), STELE_OK);
  assert_int_equal(mkdir(in("taken"), 0700), 0); /* in the meantime */
  assert_int_equal(base_output_commit(&sink, &out, 0644), STELE_IO);
  rmdir(in("taken"));
  assert_int_equal(count_files(), 0);
}

/* Pieces of all sizes, over the borders of the blocks that the file is written in. */
static void writes_what_it_is_given(void **state) {
  (void)state;
  enum { BYTES = 5 << 20 };
  stele_sink sink;
  base_output out = {0};
  base_map map = {0};
  uint8_t *bytes = malloc(BYTES);
  assert_non_null(bytes);
  for (uint32_t i = 0; i < BYTES; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
  assert_int_equal(base_output_open(&sink, in("pieces"), &out), STELE_OK);
  for (size_t at = 0, size = 1; at < BYTES; size = size * 3 % 700001 + 1) {
    size_t count = base_min(size, BYTES - at);
    assert_int_equal(base_output_write(&sink, &out, bytes + at, count), STELE_OK);
    at += count;
    assert_int_equal(out.size, at);
  }
  assert_int_equal(base_output_commit(&sink, &out, 0644), STELE_OK);
  assert_int_equal(base_map_open(&sink, in("pieces"), &map), STELE_OK);
  assert_int_equal(map.size, BYTES);
  assert_memory_equal(map.data, bytes, BYTES);
  base_map_close(&map);
  free(bytes);
  unlink(in("pieces"));
}

/* A full disk, played by the limit on a file's size. */
static void full_disks(void **state) {
  (void)state;
  struct rlimit old, small;
  stele_sink sink;
  base_output out = {0};
  char block[4096] = {0};
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  small = (struct rlimit){10000, old.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  assert_int_equal(base_output_open(&sink, in("full"), &out), STELE_OK);
  stele_status status = STELE_OK;
  for (int i = 0; i < 1000 && status == STELE_OK; i++)
    status = base_output_write(&sink, &out, block, sizeof block);
  assert_int_equal(status, STELE_IO);
  assert_non_null(strstr(sink.text, "full"));
  base_output_abort(&out);
  assert_int_equal(base_output_open(&sink, in("full"), &out), STELE_OK);
  for (int i = 0; i < 4; i++) /* shows when all of it is written */
    assert_int_equal(base_output_write(&sink, &out, block, sizeof block), STELE_OK);
  assert_int_equal(base_output_commit(&sink, &out, 0644), STELE_IO);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_equal(count_files(), 0);
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(maps),
      cmocka_unit_test(reads_with_a_limit),
      cmocka_unit_test(commits_or_leaves_nothing),
      cmocka_unit_test(places_that_cannot_be_written),
      cmocka_unit_test(writes_what_it_is_given),
      cmocka_unit_test(full_disks),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
