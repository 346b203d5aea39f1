/* Linking by ld.lld as a program. Everything goes through anonymous files in memory: inputs are
 * named /proc/self/fd/N, the result comes back by standard output and complaints by standard
 * error, so that nothing is left behind even when the process is killed.
 *
 * The imports of an artefact are libc's and libm's. Instead of this machine's libraries (which a
 * foreign triple lacks, and whose versions would leak into the artefact) two stand-ins are linked
 * against (stand_in.c): shared objects with the right names that define what may be imported. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifact/artifact.h"
#include "artifact/internal.h"

extern char **environ;

#define MAX_ARGUMENTS 64
#define NAME_BYTES 48 /* of an option and /proc/self/fd/N */

/* One run of the linker: its arguments and the descriptors that it inherits. */
typedef struct link_run {
  stele_sink *sink;
  const char *arguments[MAX_ARGUMENTS];
  uint32_t argument_count;
  int files[MAX_ARGUMENTS];
  char names[MAX_ARGUMENTS][NAME_BYTES];
  uint32_t file_count;
  bool full;
} link_run;

static void add_argument(link_run *linker, const char *argument) {
  if (linker->argument_count + 1 >= MAX_ARGUMENTS)
    linker->full = true;
  else
    linker->arguments[linker->argument_count++] = argument;
}

static stele_status memory_file(stele_sink *sink, const void *data, size_t bytes, int *out_fd) {
  int fd = memfd_create("stele", MFD_CLOEXEC);
  if (fd < 0)
    return base_fail(sink, STELE_IO, "cannot link: no file in memory: %s", strerror(errno));
  for (const uint8_t *at = data; bytes;) {
    ssize_t n = write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      close(fd);
      return base_fail(sink, STELE_OUT_OF_MEMORY, "cannot link: no file in memory: %s",
                       strerror(errno));
    }
    at += n;
    bytes -= (size_t)n;
  }
  *out_fd = fd;
  return STELE_OK;
}

/* Adds a file in memory as an argument, after a prefix (at most a few letters). */
static stele_status add_file(link_run *linker, const char *prefix, const void *data, size_t bytes) {
  if (linker->file_count >= MAX_ARGUMENTS)
    return base_fail(linker->sink, STELE_FAILED, "cannot link: too many objects");
  int fd;
  BASE_TRY(memory_file(linker->sink, data, bytes, &fd));
  uint32_t i = linker->file_count++;
  linker->files[i] = fd;
  snprintf(linker->names[i], NAME_BYTES, "%s/proc/self/fd/%d", prefix, fd);
  add_argument(linker, linker->names[i]);
  return STELE_OK;
}

static void close_files(link_run *linker) {
  for (uint32_t i = 0; i < linker->file_count; i++) close(linker->files[i]);
}

/* ---- running --------------------------------------------------------------------------- */

/* Starts ld.lld from the path, or from where LLVM lives. */
static int spawn_linker(link_run *linker, int out, int error, pid_t *out_pid) {
  static const char *const programs[] = {"ld.lld-22", STELE_LLVM_PREFIX "/bin/ld.lld"};
  posix_spawn_file_actions_t actions;
  int result = posix_spawn_file_actions_init(&actions);
  if (result != 0) return result;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, error, 2);
  /* onto itself: the child's copy stays open */
  for (uint32_t i = 0; i < linker->file_count; i++)
    posix_spawn_file_actions_adddup2(&actions, linker->files[i], linker->files[i]);
  result = ENOENT;
  for (size_t i = 0; i < 2 && result != 0; i++) {
    linker->arguments[0] = "ld.lld"; /* chooses the flavour */
    result = posix_spawnp(out_pid, programs[i], &actions, NULL,
                          (char *const *)(uintptr_t)linker->arguments, environ);
  }
  posix_spawn_file_actions_destroy(&actions);
  return result;
}

/* Appends the whole of a descriptor's file. */
static bool read_all(int fd, base_buffer *out) {
  uint8_t chunk[1 << 14];
  off_t at = 0;
  for (;;) {
    ssize_t n = pread(fd, chunk, sizeof chunk, at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) return !out->failed;
    base_buffer_append(out, chunk, (size_t)n);
    at += n;
  }
}

/* The linker's complaints as a message: its own name and our descriptors mean nothing to people. */
static stele_status complain(link_run *linker, int error, int wait_status) {
  base_buffer text = {0};
  read_all(error, &text);
  base_buffer_append(&text, "", 1);
  char *message = text.failed ? NULL : (char *)text.data, *end = message;
  if (message) {
    if (strncmp(message, "ld.lld: error: ", 15) == 0) message += 15;
    end = message + strlen(message);
    while (end > message && isspace((unsigned char)end[-1])) *--end = 0;
    if (end - message > 1500) message[1500] = 0;
  }
  stele_status status = message && *message
                            ? base_fail(linker->sink, STELE_FAILED, "cannot link: %s", message)
                            : base_fail(linker->sink, STELE_FAILED,
                                        "cannot link: 'ld.lld' ended with status %d", wait_status);
  base_buffer_deinit(&text);
  return status;
}

static stele_status run_with(link_run *linker, int out, int error, base_buffer *out_bytes) {
  linker->arguments[linker->argument_count] = NULL;
  pid_t pid;
  int result = spawn_linker(linker, out, error, &pid), wait_status = 0;
  if (result != 0)
    return base_fail(linker->sink, STELE_NOT_FOUND,
                     "cannot link: cannot run 'ld.lld-22' (of the package lld-22): %s",
                     strerror(result));
  while (waitpid(pid, &wait_status, 0) < 0)
    if (errno != EINTR)
      return base_fail(linker->sink, STELE_FAILED, "cannot link: %s", strerror(errno));
  if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0)
    return complain(linker, error, wait_status);
  if (!read_all(out, out_bytes))
    return base_fail(linker->sink, STELE_OUT_OF_MEMORY, "cannot link: out of memory");
  return STELE_OK;
}

static stele_status run(link_run *linker, base_buffer *out_bytes) {
  if (linker->full) return base_fail(linker->sink, STELE_FAILED, "cannot link: too many objects");
  int out, error;
  BASE_TRY(memory_file(linker->sink, NULL, 0, &out));
  stele_status status = memory_file(linker->sink, NULL, 0, &error);
  if (status == STELE_OK) {
    status = run_with(linker, out, error, out_bytes);
    close(error);
  }
  close(out);
  return status;
}

/* ---- the artefact ---------------------------------------------------------------------- */

/* What an artefact may import. */
static const char *const libc_symbols[] = {"memcpy",  "memmove", "memset", "memcmp",
                                           "bcmp",    "memchr",  "strlen", "strcmp",
                                           "strncmp", "syscall", NULL};
#define BOTH(name) name, name "f"
static const char *const libm_symbols[] = {
    BOTH("exp"),       BOTH("exp2"),  BOTH("expm1"),     BOTH("log"),
    BOTH("log2"),      BOTH("log1p"), BOTH("pow"),       BOTH("sin"),
    BOTH("cos"),       BOTH("tan"),   BOTH("sincos"),    BOTH("tanh"),
    BOTH("sinh"),      BOTH("cosh"),  BOTH("erf"),       BOTH("erfc"),
    BOTH("sqrt"),      BOTH("floor"), BOTH("ceil"),      BOTH("trunc"),
    BOTH("nearbyint"), BOTH("rint"),  BOTH("round"),     BOTH("fma"),
    BOTH("fmod"),      BOTH("fmin"),  BOTH("fmax"),      BOTH("fabs"),
    BOTH("atan"),      BOTH("atan2"), BOTH("ldexp"),     BOTH("frexp"),
    BOTH("cbrt"),      BOTH("lrint"), BOTH("roundeven"), NULL};
static const artifact_library libraries[] = {{"libc.so.6", libc_symbols},
                                             {"libm.so.6", libm_symbols}};

static stele_status add_libraries(link_run *linker, const stele_object *object) {
  uint16_t machine; /* e_machine, byte 18 of an ELF header */
  if (object->bytes < 64)
    return base_fail(linker->sink, STELE_FAILED, "cannot link: '%s' is no object", object->name);
  memcpy(&machine, (const uint8_t *)object->data + 18, sizeof machine);
  for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
    base_buffer bytes = {0};
    artifact_stand_in(&libraries[i], machine, &bytes);
    stele_status status =
        bytes.failed ? base_fail(linker->sink, STELE_OUT_OF_MEMORY, "cannot link: out of memory")
                     : add_file(linker, "", bytes.data, bytes.size);
    base_buffer_deinit(&bytes);
    if (status != STELE_OK) return status;
  }
  return STELE_OK;
}

static stele_status add_inputs(link_run *linker, const stele_object *objects, uint32_t count) {
  static const char script[] = "{ global: " STELE_ARTIFACT_QUERY "; local: *; };";
  BASE_TRY(add_file(linker, "--version-script=", script, sizeof script - 1));
  for (uint32_t i = 0; i < count; i++)
    BASE_TRY(add_file(linker, "", objects[i].data, objects[i].bytes));
  return add_libraries(linker, &objects[0]);
}

stele_status artifact_link(const stele_object *objects, uint32_t count, stele_sink *sink,
                           base_buffer *out_code) {
  static const char *const options[] = {"-shared",
                                        "--gc-sections",
                                        "--hash-style=gnu",
                                        "--build-id=none",
                                        "-z",
                                        "defs",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "relro",
                                        "-z",
                                        "now",
                                        "--as-needed",
                                        "-o",
                                        "-"};
  link_run linker = {.sink = sink, .argument_count = 1};
  if (!count) return base_fail(sink, STELE_FAILED, "cannot link: no objects");
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) add_argument(&linker, options[i]);
  stele_status status = add_inputs(&linker, objects, count);
  if (status == STELE_OK) status = run(&linker, out_code);
  close_files(&linker);
  return status;
}
