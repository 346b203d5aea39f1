/* Status codes that every fallible stele function returns.
 *
 * The text that goes with a failure is kept in the sink that the caller passed (or that the
 * object at hand owns); the code alone is enough to branch on. */
#ifndef STELE_STATUS_H
#define STELE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stele_status {
#define X(name, code, meaning) STELE_##name = (code), /* meaning */
#include "stele/status.def"
#undef X
} stele_status;

#if defined(__GNUC__)
#define STELE_MUST_USE __attribute__((warn_unused_result))
#define STELE_API __attribute__((visibility("default")))
#define STELE_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define STELE_MUST_USE
#define STELE_API
#define STELE_PRINTF(f, a)
#endif

/* Where a failure's message goes: plain text, lower case, no newline at the end, several lines
 * when several things are wrong at once. Zero-initialise it; the caller owns it. Not shared
 * between threads. */
typedef struct stele_sink {
  char text[4096];
} stele_sink;

/* The meaning of a status as a constant string; never NULL. */
STELE_API const char *stele_status_string(stele_status status);

#ifdef __cplusplus
}
#endif
#endif
