/* The command line's own parts: options, numbers, tables, documents, NumPy files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli.h"

typedef struct arguments {
  bool flag;
  const char *text;
  uint32_t count, choice;
  cli_list list;
} arguments;

static const cli_option options[] = {
    {CLI_FLAG, 'q', "flag", NULL, offsetof(arguments, flag), 0, 0, NULL, "a flag"},
    {CLI_TEXT, 't', "text", "TEXT", offsetof(arguments, text), 0, 0, NULL, "a text"},
    {CLI_COUNT, 'n', "count", "N", offsetof(arguments, count), 2, 9, NULL, "a number"},
    {CLI_CHOICE, 0, "choice", "KIND", offsetof(arguments, choice), 0, 0, "one|two|three", "kinds"},
    {CLI_LIST, 0, "list", "NAME", offsetof(arguments, list), 0, 0, NULL, "names"},
    {0},
};

static const cli_command command = {
    .name = "probe",
    .operand = "FILE",
    .synopsis = "[options]",
    .description = "Probes. It's a 'test'.",
    .examples = "stele probe x\n",
    .options = options,
};

static const cli_row table[] = {{&command, "probes"}};
const cli_row *cli_commands(size_t *out_count) {
  *out_count = 1;
  return table;
}
const cli_row *cli_command_find(const char *name) {
  return strcmp(name, "probe") == 0 ? table : NULL;
}

/* Parses a line of words; true when it was accepted. */
static bool parse(const char *line, arguments *out, const char **out_operand, int *out_exit) {
  static char copy[256];
  char *argv[16], *rest = copy;
  int argc = 0;
  snprintf(copy, sizeof copy, "probe %s", line);
  for (char *word; (word = strsep(&rest, " "));)
    if (*word) argv[argc++] = word;
  argv[argc] = NULL;
  optind = 0; /* glibc: begin anew */
  memset(out, 0, sizeof *out);
  *out_exit = CLI_OK;
  return cli_parse(&command, argc, argv, out, out_operand, out_exit);
}

static void test_options(void **state) {
  (void)state;
  arguments a;
  const char *operand;
  int code;
  assert_true(
      parse("x -q --text=word -n 9 --choice three --list a,b --list c", &a, &operand, &code));
  assert_string_equal(operand, "x");
  assert_true(a.flag);
  assert_string_equal(a.text, "word");
  assert_int_equal(a.count, 9);
  assert_int_equal(a.choice, 2);
  assert_int_equal(a.list.count, 3);
  assert_string_equal(a.list.items[1], "b");
  assert_null(a.list.items[3]);
}

static void test_wrong_use(void **state) {
  (void)state;
  static const char *const lines[] = {
      "",           "x y",           "x --nothing",    "x -z",         "x --text",
      "x --flag=1", "x --count 1",   "x --count 10",   "x --count -3", "x --count 3x",
      "x --count ", "x --choice on", "x --choice four"};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    arguments a;
    const char *operand;
    int code;
    if (parse(lines[i], &a, &operand, &code)) fail_msg("'%s' was accepted", lines[i]);
    if (code != CLI_USAGE) fail_msg("'%s' ends with %d", lines[i], code);
  }
}

static void test_numbers(void **state) {
  (void)state;
  uint32_t n = 7;
  assert_true(cli_number("0", 0, 5, &n));
  assert_int_equal(n, 0);
  assert_true(cli_number("4294967295", 0, UINT32_MAX, &n));
  assert_int_equal(n, UINT32_MAX);
  static const char *const wrong[] = {
      "", " 1", "+1", "-1", "1 ", "1.0", "0x10", "4294967296", "99999999999999999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    if (cli_number(wrong[i], 0, UINT32_MAX, &n)) fail_msg("'%s' is a number", wrong[i]);
}

static void test_sizes(void **state) {
  (void)state;
  char text[32];
  assert_string_equal(cli_bytes(999, text), "999 B");
  assert_string_equal(cli_bytes(1500, text), "1.5 kB");
  assert_string_equal(cli_bytes(98362432, text), "98.4 MB");
  assert_string_equal(cli_bytes(312000, text), "312 kB");
}

static void test_classes(void **state) {
  (void)state;
  json_t *classes = json_array();
  cli_tensor_class_add(classes, "model.layers.0.mlp.up_proj.weight", STELE_F32, 4, 8, 128);
  cli_tensor_class_add(classes, "model.layers.11.mlp.up_proj.weight", STELE_F32, 4, 8, 128);
  cli_tensor_class_add(classes, "model.layers.12.mlp.up_proj.weight", STELE_F16, 4, 8, 64);
  cli_tensor_class_add(classes, "blk.3.ffn_up1.weight", STELE_F16, 4, 8, 64);
  assert_int_equal(json_array_size(classes), 3);
  json_t *first = json_array_get(classes, 0), *last = json_array_get(classes, 2);
  assert_string_equal(json_string_value(json_object_get(first, "name")),
                      "model.layers.*.mlp.up_proj.weight");
  assert_int_equal(json_integer_value(json_object_get(first, "tensors")), 2);
  assert_int_equal(json_integer_value(json_object_get(first, "bytes")), 256);
  assert_string_equal(json_string_value(json_object_get(last, "name")), "blk.*.ffn_up1.weight");
  json_decref(classes);
}

static void test_numpy(void **state) {
  (void)state;
  char path[] = "/tmp/stele-npy-XXXXXX";
  close(mkstemp(path));
  static const float data[6] = {1, 2, 3, 4, 5, 6};
  static const size_t shape[] = {1, 2, 3};
  stele_sink sink = {0};
  assert_int_equal(cli_npy_write(path, data, shape, 3, &sink), STELE_OK);
  base_arena arena = {0};
  char *bytes;
  size_t size;
  assert_int_equal(base_file_read(&sink, &arena, path, 1 << 20, &bytes, &size), STELE_OK);
  assert_int_equal(size, 128 + sizeof data);
  assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, ",
                      50);
  assert_non_null(strstr(bytes + 10, "'shape': (1, 2, 3), }"));
  assert_int_equal(bytes[127], '\n');
  assert_memory_equal(bytes + 128, data, sizeof data);
  base_arena_deinit(&arena);
  unlink(path);
  assert_int_not_equal(cli_npy_write("/nowhere/x.npy", data, shape, 3, &sink), STELE_OK);
  assert_non_null(strstr(sink.text, "'/nowhere/x.npy'"));
}

/* What a writer prints, as a string. */
static char *printed(bool (*write)(FILE *stream)) {
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  assert_true(write(stream));
  fclose(stream);
  return text;
}
static bool write_man(FILE *stream) {
  cli_write_man(&command, stream);
  return true;
}
static bool write_help(FILE *stream) {
  cli_help_command(&command, stream);
  return true;
}
static bool write_bash(FILE *stream) { return cli_write_completion("bash", stream); }
static bool write_zsh(FILE *stream) { return cli_write_completion("zsh", stream); }
static bool write_fish(FILE *stream) { return cli_write_completion("fish", stream); }

/* Every option is in the help, the manual page and each completion: they come from one table. */
static void test_documents(void **state) {
  (void)state;
  bool (*const writers[])(FILE *) = {write_man, write_help, write_bash, write_zsh, write_fish};
  for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++) {
    char *text = printed(writers[i]);
    for (const cli_option *o = options; o->kind != CLI_END; o++)
      if (!strstr(text, o->name)) fail_msg("writer %zu lacks --%s", i, o->name);
    free(text);
  }
  assert_false(cli_write_completion("tcsh", stdout));
}

static void test_bandwidth(void **state) {
  (void)state;
  assert_true(cli_read_bandwidth(8 << 20, 1) > 0);
  assert_true(cli_read_bandwidth(8 << 20, 3) > 0);
  assert_true(cli_read_bandwidth(0, 1) == 0);
  assert_true(cli_read_bandwidth(8 << 20, 0) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options),   cmocka_unit_test(test_wrong_use),
      cmocka_unit_test(test_numbers),   cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_classes),   cmocka_unit_test(test_numpy),
      cmocka_unit_test(test_documents), cmocka_unit_test(test_bandwidth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
