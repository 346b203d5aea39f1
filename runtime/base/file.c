/* Files: mapped for reading, read whole with a limit, and written without a name until everything
 * is there, so that a reader never sees half a file and an interruption leaves none behind.
 *
 * What is written goes to the file in whole blocks of 2 MiB: a file system with large folios then
 * keeps it in pages of that size, and a mapping shares them. Weights that were written piece by
 * piece are read up to a fifth more slowly: every 4 KiB of them are another entry of the
 * processor's translation buffers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

static stele_status code_of_errno(int error) {
  return error == ENOENT ? STELE_NOT_FOUND : error == ENOMEM ? STELE_OUT_OF_MEMORY : STELE_IO;
}

static stele_status open_file(stele_sink *sink, const char *path, int *out_fd, size_t *out_size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait */
  if (fd < 0)
    return base_fail(sink, code_of_errno(errno), "cannot open '%s': %s", path, strerror(errno));
  struct stat st;
  stele_status status = STELE_OK;
  if (fstat(fd, &st) != 0)
    status = base_fail(sink, STELE_IO, "cannot read '%s': %s", path, strerror(errno));
  else if (!S_ISREG(st.st_mode))
    status = base_fail(sink, STELE_IO, "cannot read '%s': it is not a regular file", path);
  if (status != STELE_OK) {
    close(fd);
    return status;
  }
  *out_fd = fd;
  *out_size = (size_t)st.st_size;
  return STELE_OK;
}

stele_status base_map_open(stele_sink *sink, const char *path, base_map *out_map) {
  int fd;
  size_t size;
  BASE_TRY(open_file(sink, path, &fd, &size));
  void *data = NULL;
  if (size) data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int error = errno;
  close(fd);
  if (data == MAP_FAILED)
    return base_fail(sink, code_of_errno(error), "cannot map '%s': %s", path, strerror(error));
  *out_map = (base_map){data, size};
  return STELE_OK;
}

void base_map_close(base_map *map) {
  if (map->data) munmap((void *)(uintptr_t)map->data, map->size);
  *map = (base_map){0};
}

stele_status base_file_read(stele_sink *sink, base_arena *arena, const char *path, size_t limit,
                            char **out_text, size_t *out_size) {
  int fd;
  size_t size;
  BASE_TRY(open_file(sink, path, &fd, &size));
  stele_status status = STELE_OK;
  char *text = NULL;
  size_t done = 0;
  if (size > limit)
    status = base_fail(sink, STELE_BAD_FORMAT, "'%s' has %zu bytes, at most %zu are expected", path,
                       size, limit);
  else if (!(text = base_arena_alloc(arena, size + 1, 1)))
    status = base_fail(sink, STELE_OUT_OF_MEMORY, "cannot read '%s': out of memory", path);
  while (status == STELE_OK && done < size) {
    ssize_t n = read(fd, text + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      status = base_fail(sink, STELE_IO, "cannot read '%s': %s", path, strerror(errno));
    else if (n == 0)
      break;
    else
      done += (size_t)n;
  }
  close(fd);
  if (status != STELE_OK) return status;
  *out_text = text;
  *out_size = done;
  return STELE_OK;
}

bool base_file_exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool base_is_directory(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A file without a name in the folder of path, or -1. */
static int open_nameless(const char *path) {
  const char *slash = strrchr(path, '/');
  char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
  int fd = folder ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
  free(folder);
  return fd;
}

/* Opens a file for path; *out_temporary is its name, NULL when it has none. */
static int open_output(const char *path, char **out_temporary) {
  int fd = open_nameless(path);
  *out_temporary = NULL;
  if (fd >= 0) return fd;
  char *temporary = NULL;
  if (asprintf(&temporary, "%s.XXXXXX", path) < 0) {
    errno = ENOMEM;
    return -1;
  }
  fd = mkostemp(temporary, O_CLOEXEC);
  if (fd >= 0)
    *out_temporary = temporary;
  else
    free(temporary);
  return fd;
}

stele_status base_output_open(stele_sink *sink, const char *path, base_output *out) {
  struct stat st; /* renaming onto a device would take the device away */
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
    return base_fail(sink, STELE_IO, "cannot write '%s': it is %s", path,
                     S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
  char *copy = strdup(path), *temporary;
  if (!copy) return base_fail(sink, STELE_OUT_OF_MEMORY, "cannot write '%s': out of memory", path);
  int fd = open_output(path, &temporary);
  if (fd < 0) {
    stele_status status =
        base_fail(sink, code_of_errno(errno), "cannot write '%s': %s", path, strerror(errno));
    free(copy);
    return status;
  }
  *out = (base_output){.path = copy, .temporary = temporary, .fd = fd};
  return STELE_OK;
}

/* Into the file what is held of its last block. */
static bool write_held(const base_output *out, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t n = write(out->fd, out->held + at, size - at);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) at += (size_t)n;
  }
  return true;
}

stele_status base_output_write(stele_sink *sink, base_output *out, const void *bytes, size_t size) {
  const uint8_t *from = bytes;
  if (size && !out->held && !(out->held = malloc(BASE_OUTPUT_BLOCK)))
    return base_fail(sink, STELE_OUT_OF_MEMORY, "cannot write '%s': out of memory", out->path);
  while (size) {
    size_t at = out->size % BASE_OUTPUT_BLOCK, count = base_min(size, BASE_OUTPUT_BLOCK - at);
    memcpy(out->held + at, from, count);
    if (at + count == BASE_OUTPUT_BLOCK && !write_held(out, BASE_OUTPUT_BLOCK))
      return base_fail(sink, STELE_IO, "cannot write '%s': %s", out->path, strerror(errno));
    from += count;
    size -= count;
    out->size += count;
  }
  return STELE_OK;
}

/* Gives a nameless file its temporary name, beside the destination. */
static bool name_output(base_output *out) {
  char self[64];
  snprintf(self, sizeof self, "/proc/self/fd/%d", out->fd);
  for (unsigned i = 0; i < 1000; i++) {
    char *name = NULL;
    if (asprintf(&name, "%s.%ld-%u", out->path, (long)getpid(), i) < 0) return false;
    if (linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
      out->temporary = name;
      return true;
    }
    int error = errno;
    free(name);
    errno = error;
    if (error != EEXIST) return false;
  }
  return false;
}

/* A full disk may only show when a file is closed; closing a copy asks while there is no name. */
static bool flush_output(const base_output *out) {
  if (!write_held(out, out->size % BASE_OUTPUT_BLOCK)) return false;
  int copy = dup(out->fd);
  return copy >= 0 && close(copy) == 0;
}

static void end_output(base_output *out) {
  close(out->fd);
  free(out->temporary);
  free(out->path);
  free(out->held);
  *out = (base_output){.fd = -1};
}

stele_status base_output_commit(stele_sink *sink, base_output *out, unsigned mode) {
  bool good = fchmod(out->fd, (mode_t)mode) == 0 && flush_output(out) &&
              (out->temporary || name_output(out)) && rename(out->temporary, out->path) == 0;
  if (!good) {
    stele_status status =
        base_fail(sink, STELE_IO, "cannot write '%s': %s", out->path, strerror(errno));
    base_output_abort(out);
    return status;
  }
  end_output(out);
  return STELE_OK;
}

void base_output_abort(base_output *out) {
  if (!out->path) return;
  if (out->temporary) unlink(out->temporary);
  end_output(out);
}
