/* stele-opt: runs passes on IR text. A thin driver over stele_opt of compiler.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "options.h"

enum { EXIT_USAGE = 2, MAX_INPUT = 1 << 30 };

static int fail(stele_status status, const stele_sink *sink) {
  fprintf(stderr, "stele-opt: %s\n", sink->text[0] ? sink->text : stele_status_string(status));
  return status == STELE_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILURE;
}

/* ---- input and output ------------------------------------------------------------------ */

static stele_status read_standard_input(stele_sink *sink, base_buffer *out) {
  char piece[65536];
  size_t count;
  while ((count = fread(piece, 1, sizeof piece, stdin)) > 0 && out->size < MAX_INPUT)
    base_buffer_append(out, piece, count);
  if (ferror(stdin))
    return base_fail(sink, STELE_IO, "cannot read standard input: %s", strerror(errno));
  if (out->size >= MAX_INPUT)
    return base_fail(sink, STELE_BAD_FORMAT, "standard input is longer than %d bytes", MAX_INPUT);
  base_buffer_append(out, "", 1);
  return out->failed ? base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory") : STELE_OK;
}

static stele_status read_input(const char *path, stele_sink *sink, base_arena *arena,
                               base_buffer *buffer, const char **out_text) {
  if (strcmp(path, "-") == 0) {
    BASE_TRY(read_standard_input(sink, buffer));
    *out_text = (const char *)buffer->data;
    return STELE_OK;
  }
  char *text;
  size_t size;
  BASE_TRY(base_file_read(sink, arena, path, MAX_INPUT, &text, &size));
  if (strlen(text) != size)
    return base_fail(sink, STELE_BAD_FORMAT, "'%s': not text: it has a zero byte", path);
  *out_text = text;
  return STELE_OK;
}

static stele_status write_output(const char *path, const char *text, stele_sink *sink) {
  if (strcmp(path, "-") == 0) {
    if (fputs(text, stdout) == EOF || fflush(stdout) != 0)
      return base_fail(sink, STELE_IO, "cannot write to standard output: %s", strerror(errno));
    return STELE_OK;
  }
  base_output output = {0};
  BASE_TRY(base_output_open(sink, path, &output));
  stele_status status = base_output_write(sink, &output, text, strlen(text));
  if (status == STELE_OK) status = base_output_commit(sink, &output, 0644);
  if (status != STELE_OK) base_output_abort(&output);
  return status;
}

/* ---- what was asked for ---------------------------------------------------------------- */

static int print_tables(void) {
  const char *name, *summary;
  puts("passes:");
  for (size_t i = 0; stele_pass_describe(i, &name, &summary); i++)
    printf("  %-18s %s\n", name, summary);
  puts("targets:");
  for (size_t i = 0; stele_target_describe(i, &name, &summary); i++)
    printf("  %-18s %s\n", name, summary);
  return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void print_timing(const stele_compile_report *report) {
  for (uint32_t i = 0; i < report->phase_count; i++)
    fprintf(stderr, "%9.2f ms  %s\n", report->phases[i].seconds * 1e3, report->phases[i].name);
}

static int run(const opt_arguments *arguments, base_arena *arena, base_buffer *buffer) {
  stele_sink sink = {0};
  stele_compile_report report = {0};
  const char *text = NULL, *name = NULL;
  char *result = NULL;
  stele_status status = STELE_OK;
  if (arguments->input) {
    name = strcmp(arguments->input, "-") == 0 ? "<stdin>" : arguments->input;
    status = read_input(arguments->input, &sink, arena, buffer, &text);
  }
  if (status == STELE_OK) status = stele_opt(text, name, &arguments->opt, &sink, &report, &result);
  if (status == STELE_OK) status = write_output(arguments->output, result, &sink);
  free(result);
  if (status != STELE_OK) return fail(status, &sink);
  if (report.note[0]) fprintf(stderr, "note: %s\n", report.note);
  if (arguments->timing) print_timing(&report);
  return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  opt_arguments arguments;
  int code = EXIT_USAGE;
  opt_next next = opt_arguments_parse(argc, argv, &arguments);
  if (next == OPT_RUN) {
    base_arena arena = {0};
    base_buffer buffer = {0};
    code = arguments.list ? print_tables() : run(&arguments, &arena, &buffer);
    base_buffer_deinit(&buffer);
    base_arena_deinit(&arena);
  } else if (next == OPT_DONE) {
    code = fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  opt_arguments_deinit(&arguments);
  return code;
}
