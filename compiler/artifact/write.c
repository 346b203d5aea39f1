/* The artefact's file (artifact.h): code, zeros up to a page, the weights one after the other,
 * the trailer. Or the weights in a file of their own. Everything is written under temporary names
 * and takes its place when all of it is there. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "artifact/artifact.h"

/* A file with the hash of what went into it. */
typedef struct stream {
  base_output output;
  XXH3_state_t *hash; /* of the weights */
  uint64_t written;   /* bytes of weights */
} stream;

static stele_status put(stream *s, const void *bytes, size_t size, stele_sink *sink) {
  XXH3_64bits_update(s->hash, bytes, size);
  s->written += size;
  return base_output_write(sink, &s->output, bytes, size);
}

static stele_status put_zeros(base_output *output, uint64_t count, stele_sink *sink) {
  static const uint8_t zeros[STELE_ARTIFACT_ALIGN];
  for (; count; count -= base_min(count, sizeof zeros))
    BASE_TRY(base_output_write(sink, output, zeros, base_min(count, sizeof zeros)));
  return STELE_OK;
}

/* Zeros up to where the next weight begins: less than a line of 64 bytes. */
static stele_status put_gap(stream *s, uint64_t offset, stele_sink *sink) {
  static const uint8_t zeros[64];
  while (s->written < offset)
    BASE_TRY(put(s, zeros, base_min(offset - s->written, sizeof zeros), sink));
  return STELE_OK;
}

static stele_status put_weight(const artifact_source *source, uint32_t i, stream *s,
                               stele_sink *sink) {
  const stele_program_weight *weight = stele_program_weights(source->program, i);
  BASE_TRY(put_gap(s, weight->offset, sink));
  uint8_t *packed = calloc(base_max(weight->bytes, 1), 1);
  if (!packed)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory for %llu bytes of weights",
                     (unsigned long long)weight->bytes);
  stele_status status = artifact_pack_weight(source, i, sink, packed);
  if (status == STELE_OK) status = put(s, packed, weight->bytes, sink);
  free(packed);
  return status;
}

static stele_status put_weights(const artifact_source *source, stream *s, stele_sink *sink) {
  const stele_program *program = source->program;
  for (uint32_t i = 0; i < program->weights.count; i++) {
    if (source->progress)
      source->progress(source->progress_data, "weights", s->written, program->weights_bytes);
    BASE_TRY(put_weight(source, i, s, sink));
  }
  BASE_TRY(put_gap(s, program->weights_bytes, sink));
  if (source->progress)
    source->progress(source->progress_data, "weights", s->written, program->weights_bytes);
  return STELE_OK;
}

static stele_status put_trailer(const artifact_source *source, stream *s, base_output *file,
                                const void *code, size_t code_bytes, uint64_t offset,
                                stele_sink *sink) {
  stele_trailer t = {.magic = STELE_ARTIFACT_MAGIC,
                     .abi = STELE_ARTIFACT_ABI,
                     .code_bytes = code_bytes,
                     .code_hash = XXH3_64bits(code, code_bytes),
                     .weights_offset = offset,
                     .weights_bytes = source->program->weights_bytes,
                     .weights_hash = XXH3_64bits_digest(s->hash)};
  uint16_t machine; /* e_machine, byte 18 of an ELF header */
  memcpy(&machine, (const uint8_t *)code + 18, sizeof machine);
  t.machine = machine;
  t.self_hash = XXH3_64bits(&t, offsetof(stele_trailer, self_hash));
  if (!offset) BASE_TRY(base_output_write(sink, &s->output, &t, sizeof t));
  return base_output_write(sink, file, &t, sizeof t);
}

/* ---- one file, or two ------------------------------------------------------------------ */

static stele_status put_inside(const artifact_source *source, stream *s, const void *code,
                               size_t code_bytes, stele_sink *sink) {
  uint64_t offset = base_align(code_bytes, STELE_ARTIFACT_ALIGN);
  BASE_TRY(base_output_open(sink, source->output, &s->output));
  BASE_TRY(base_output_write(sink, &s->output, code, code_bytes));
  BASE_TRY(put_zeros(&s->output, offset - code_bytes, sink));
  BASE_TRY(put_weights(source, s, sink));
  return put_trailer(source, s, &s->output, code, code_bytes, offset, sink);
}

static stele_status put_beside(const artifact_source *source, stream *s, base_output *file,
                               const char *path, const void *code, size_t code_bytes,
                               stele_sink *sink) {
  BASE_TRY(base_output_open(sink, source->output, file));
  BASE_TRY(base_output_write(sink, file, code, code_bytes));
  BASE_TRY(base_output_open(sink, path, &s->output));
  BASE_TRY(put_weights(source, s, sink));
  return put_trailer(source, s, file, code, code_bytes, 0, sink);
}

static stele_status write_beside(const artifact_source *source, stream *s, const char *path,
                                 const void *code, size_t code_bytes, stele_sink *sink,
                                 uint64_t *out_bytes) {
  base_output file = {0};
  stele_status status = put_beside(source, s, &file, path, code, code_bytes, sink);
  *out_bytes = file.size + s->output.size;
  bool old = base_file_exists(path);
  if (status == STELE_OK) status = base_output_commit(sink, &s->output, 0644);
  if (status == STELE_OK) {
    status = base_output_commit(sink, &file, 0755);
    if (status != STELE_OK && !old) unlink(path);
  }
  base_output_abort(&file);
  return status;
}

static stele_status write_inside(const artifact_source *source, stream *s, const void *code,
                                 size_t code_bytes, stele_sink *sink, uint64_t *out_bytes) {
  BASE_TRY(put_inside(source, s, code, code_bytes, sink));
  *out_bytes = s->output.size;
  return base_output_commit(sink, &s->output, 0755);
}

stele_status artifact_write(const artifact_source *source, const void *code, size_t code_bytes,
                            stele_sink *sink, uint64_t *out_bytes) {
  base_arena arena = {0};
  const char *path, *name;
  stream s = {.hash = XXH3_createState()};
  uint64_t bytes = 0;
  stele_status status = STELE_OK;
  if (code_bytes < 64)
    status = base_fail(sink, STELE_FAILED, "the linker made %zu bytes of code", code_bytes);
  else if (!s.hash || XXH3_64bits_reset(s.hash) != XXH_OK)
    status = base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  if (status == STELE_OK) status = artifact_weights_path(source, &arena, sink, &path, &name);
  if (status == STELE_OK)
    status = path ? write_beside(source, &s, path, code, code_bytes, sink, &bytes)
                  : write_inside(source, &s, code, code_bytes, sink, &bytes);
  if (status != STELE_OK) base_output_abort(&s.output);
  XXH3_freeState(s.hash);
  base_arena_deinit(&arena);
  if (status == STELE_OK) *out_bytes = bytes;
  return status;
}

/* ---- where the weights are ------------------------------------------------------------- */

static stele_status folder_of(const char *path, stele_sink *sink, char out[PATH_MAX]) {
  char folder[PATH_MAX] = ".";
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) : 1;
  if (length >= sizeof folder)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "the path '%.100s...' is too long", path);
  if (slash) {
    memcpy(folder, length ? path : "/", base_max(length, 1));
    folder[base_max(length, 1)] = 0;
  }
  if (!realpath(folder, out))
    return base_fail(sink, STELE_NOT_FOUND, "cannot write '%s': no folder '%s'", path, folder);
  return STELE_OK;
}

stele_status artifact_weights_path(const artifact_source *source, base_arena *arena,
                                   stele_sink *sink, const char **out_path, const char **out_name) {
  const char *given = source->weights_file;
  *out_path = *out_name = NULL;
  if (!given) return STELE_OK;
  const char *slash = strrchr(given, '/'), *base = slash ? slash + 1 : given;
  if (!*base)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "the weights file '%s' has no name", given);
  /* a bare name is beside the artefact; found there wherever both are moved */
  char beside[PATH_MAX], folder[PATH_MAX];
  BASE_TRY(folder_of(source->output, sink, beside));
  if (slash)
    BASE_TRY(folder_of(given, sink, folder));
  else
    strcpy(folder, beside);
  *out_path = base_arena_format(arena, "%s/%s", folder, base);
  *out_name = strcmp(folder, beside) == 0 ? base_arena_copy(arena, base, strlen(base)) : *out_path;
  if (!*out_path || !*out_name) return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  const char *output = strrchr(source->output, '/');
  if (strcmp(folder, beside) == 0 && strcmp(base, output ? output + 1 : source->output) == 0)
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "'%s' cannot be the artefact and its weights file at once", given);
  return STELE_OK;
}
