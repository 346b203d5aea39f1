/* How `stele` speaks: errors, remarks, JSON, sizes, and the progress bar. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static void say(const cli_command *command, const char *format, va_list list) {
  fprintf(stderr, command ? "stele %s: " : "stele: ", command ? command->name : "");
  vfprintf(stderr, format, list);
}

int cli_fail(const cli_command *command, const char *format, ...) {
  va_list list;
  va_start(list, format);
  say(command, format, list);
  va_end(list);
  fputc('\n', stderr);
  return CLI_FAILED;
}

int cli_wrong_use(const cli_command *command, const char *format, ...) {
  va_list list;
  va_start(list, format);
  say(command, format, list);
  va_end(list);
  if (command) fprintf(stderr, " (see 'stele %s --help')", command->name);
  fputc('\n', stderr);
  return CLI_USAGE;
}

int cli_status(const cli_command *command, stele_status status, const stele_sink *sink) {
  if (status == STELE_OK) return CLI_OK;
  cli_fail(command, "%s", sink->text[0] ? sink->text : stele_status_string(status));
  return status == STELE_INVALID_ARGUMENT ? CLI_USAGE : CLI_FAILED;
}

void cli_note(const char *format, ...) {
  va_list list;
  va_start(list, format);
  vfprintf(stderr, format, list);
  va_end(list);
  fputc('\n', stderr);
}

int cli_finish(const cli_command *command, int code) {
  if (fflush(stdout) != 0 || ferror(stdout)) {
    cli_fail(command, "cannot write to standard output: %s", strerror(errno));
    return CLI_FAILED;
  }
  return code;
}

int cli_json_print(const cli_command *command, json_t *value) {
  char *text = value ? json_dumps(value, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(value);
  if (!text) return cli_fail(command, "cannot write JSON: out of memory or text that is not UTF-8");
  puts(text);
  free(text);
  return cli_finish(command, CLI_OK);
}

const char *cli_bytes(uint64_t bytes, char buffer[32]) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1000;
    unit++;
  }
  snprintf(buffer, 32, unit && value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return buffer;
}

double cli_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- progress --------------------------------------------------------------------------- */

void cli_progress_init(cli_progress *progress, bool quiet) {
  *progress = (cli_progress){.shown = !quiet && isatty(STDERR_FILENO)};
}

void cli_progress_update(void *data, const char *phase, uint64_t done, uint64_t total) {
  enum { WIDTH = 32 };
  cli_progress *progress = data;
  double now = cli_seconds();
  if (!progress->shown || (now - progress->last < 0.05 && done < total)) return;
  progress->last = now;
  double share = total ? (double)done / (double)total : 0;
  if (share > 1) share = 1;
  int filled = (int)(share * (double)WIDTH);
  char bar[WIDTH + 1];
  for (int i = 0; i < WIDTH; i++) bar[i] = i < filled ? '#' : '.';
  bar[WIDTH] = 0;
  fprintf(stderr, "\r\033[K%-20.20s [%s] %3.0f %%", phase, bar, 100 * share);
  fflush(stderr);
}

void cli_progress_end(cli_progress *progress) {
  if (progress->shown) fputs("\r\033[K", stderr);
  progress->shown = false;
}
