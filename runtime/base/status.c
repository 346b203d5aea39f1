/* Failing: a code for the program, a message for the person. The message is formatted into the
 * caller's sink, never printed; a sink of fixed size means that failing can't itself fail. */
#include <stdio.h>
#include <string.h>

#include "base.h"

const char *stele_status_string(stele_status status) {
  switch (status) {
#define X(name, code, meaning) \
  case STELE_##name:           \
    return meaning;
#include "stele/status.def"
#undef X
  }
  return "unknown status";
}

void base_message(stele_sink *sink, const char *format, ...) {
  if (!sink) return;
  va_list args;
  va_start(args, format);
  vsnprintf(sink->text, sizeof sink->text, format, args);
  va_end(args);
}

void base_sink_add(stele_sink *sink, const char *format, ...) {
  static const char more[] = "\n...";
  if (!sink) return;
  size_t length = strlen(sink->text);
  if (length >= sizeof more - 1 && strcmp(sink->text + length - (sizeof more - 1), more) == 0)
    return;
  char line[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  const char *separator = length ? "\n" : "";
  if (length + strlen(separator) + strlen(line) + sizeof more > sizeof sink->text) {
    if (length + sizeof more <= sizeof sink->text) memcpy(sink->text + length, more, sizeof more);
    return;
  }
  snprintf(sink->text + length, sizeof sink->text - length, "%s%s", separator, line);
}
