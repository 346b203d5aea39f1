/* Opening an artefact: check its bytes, load its code, ask it what it is, choose a variant, map
 * its weights. The loader maps only the ELF part; the weights behind it are mapped here, read-only
 * and shared with every process that runs the same file. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "model/model.h"

static stele_status out_of_memory(const char *path, stele_sink *sink) {
  return base_fail(sink, STELE_OUT_OF_MEMORY, "cannot open '%s': out of memory", path);
}

/* The loader takes two equal names for the same file, even when the file was replaced since; two
 * equal inodes are the same file. So the path is spelled by its inode: each bit a "/" or a "./",
 * which changes nothing for the system. */
static char *spell_by_inode(const char *path, uint64_t inode) {
  size_t length = strlen(path), used;
  const char *slash = strrchr(path, '/');
  char *spelled = malloc(length + 64 * 2 + 2);
  if (!spelled) return NULL;
  used = (size_t)(slash - path) + 1;
  memcpy(spelled, path, used);
  for (; inode; inode >>= 1) {
    if (inode & 1) spelled[used++] = '.';
    spelled[used++] = '/';
  }
  memcpy(spelled + used, slash + 1, length - (size_t)(slash - path));
  return spelled;
}

static stele_status load_code(stele_model *model, const struct stat *checked, const char *path,
                              stele_sink *sink) {
  char *spelled = spell_by_inode(model->path, checked->st_ino);
  if (!spelled) return out_of_memory(path, sink);
  model->handle = dlopen(spelled, RTLD_NOW | RTLD_LOCAL);
  free(spelled);
  if (!model->handle)
    return base_fail(sink, STELE_BAD_FORMAT, "cannot load the code of '%s': %s", path, dlerror());
  struct stat now;
  if (stat(model->path, &now) != 0 || now.st_ino != checked->st_ino ||
      now.st_dev != checked->st_dev)
    return base_fail(sink, STELE_IO, "'%s' was replaced while it was opened: open it again", path);
  stele_artifact_query_function query;
  *(void **)&query = dlsym(model->handle, STELE_ARTIFACT_QUERY);
  if (!query)
    return base_fail(sink, STELE_BAD_FORMAT, "'%s' is not an artefact: it does not export %s", path,
                     STELE_ARTIFACT_QUERY);
  model->artifact = query(STELE_ARTIFACT_ABI);
  if (!model->artifact)
    return base_fail(sink, STELE_MISMATCH,
                     "the code of '%s' does not speak version %u of the artefact format", path,
                     STELE_ARTIFACT_ABI);
  return STELE_OK;
}

/* The weights' own file: the weights, then the trailer of an artefact with the same weights. */
static stele_status check_beside(const stele_model *model, const char *path, const char *full,
                                 stele_sink *sink) {
  stele_trailer t;
  size_t size = model->beside.size, bytes = (size_t)model->artifact->weights_bytes;
  if (size < sizeof t || size - sizeof t != bytes)
    return base_fail(sink, STELE_MISMATCH,
                     "'%s' has %zu bytes, '%s' expects %zu bytes of weights and a trailer there",
                     full, size, path, bytes);
  memcpy(&t, model->beside.data + bytes, sizeof t);
  if (memcmp(t.magic, model->trailer.magic, sizeof t.magic) != 0 || t.weights_bytes != bytes ||
      t.weights_hash != model->trailer.weights_hash)
    return base_fail(sink, STELE_MISMATCH,
                     "'%s' has the weights of another artefact: their hash is %016" PRIx64
                     ", '%s' expects %016" PRIx64,
                     full, t.weights_hash, path, model->trailer.weights_hash);
  return STELE_OK;
}

static stele_status map_beside(stele_model *model, const char *path, stele_sink *sink) {
  const char *file = model->artifact->weights_file, *slash = strrchr(model->path, '/');
  int folder = file[0] == '/' ? 0 : (int)(slash - model->path) + 1;
  size_t length = (size_t)folder + strlen(file) + 1;
  char *full = malloc(length);
  if (!full) return out_of_memory(path, sink);
  snprintf(full, length, "%.*s%s", folder, model->path, file);
  stele_sink why = {0};
  stele_status status = base_map_open(&why, full, &model->beside);
  if (status != STELE_OK)
    base_fail(sink, status, "the weights of '%s' are in a file of their own: %s", path, why.text);
  else
    status = check_beside(model, path, full, sink);
  model->weights = model->beside.data;
  free(full);
  return status;
}

/* What is not in memory yet comes as it is read, in huge pages where the file system has them:
 * reading ahead of that would bring it in small ones. */
static void ask_for(void *weights, size_t bytes) {
  if (madvise(weights, bytes, MADV_HUGEPAGE) != 0) madvise(weights, bytes, MADV_WILLNEED);
}

static stele_status map_weights(stele_model *model, const char *path, stele_sink *sink) {
  if (model->artifact->weights_file)
    BASE_TRY(map_beside(model, path, sink));
  else
    model->weights = model->file.data + model->trailer.weights_offset;
  size_t bytes = (size_t)model->artifact->weights_bytes;
  if (bytes) ask_for((void *)(uintptr_t)model->weights, bytes);
  return STELE_OK;
}

/* Bits of STELE_DISABLE_FEATURES="avx512_vnni,avx2": makes a machine look like a lesser one. */
static uint64_t disabled_by_environment(void) {
  const char *at = getenv("STELE_DISABLE_FEATURES");
  uint64_t bits = 0;
  while (at && *at) {
    size_t length = strcspn(at, ",");
    for (unsigned i = 0; i < 5; i++) {
      const char *name = stele_feature_name((uint64_t)1 << i);
      if (strlen(name) == length && strncmp(name, at, length) == 0) bits |= (uint64_t)1 << i;
    }
    at += length + (at[length] == ',');
  }
  return bits;
}

static stele_status open_model(stele_model *model, const char *path,
                               const stele_model_options *options, stele_sink *sink) {
  struct stat st;
  model->path = realpath(path, NULL);
  if (!model->path || stat(model->path, &st) != 0) {
    if (errno == ENOMEM) return out_of_memory(path, sink);
    return base_fail(sink, errno == ENOENT ? STELE_NOT_FOUND : STELE_IO, "cannot open '%s': %s",
                     path, strerror(errno));
  }
  BASE_TRY(base_map_open(sink, model->path, &model->file));
  BASE_TRY(model_check_file(model->file.data, model->file.size, path, model_host_machine(), sink,
                            &model->trailer));
  BASE_TRY(load_code(model, &st, path, sink));
  BASE_TRY(model_check_artifact(model->artifact, &model->trailer, path, sink));
  uint64_t disabled = options->disable_features | disabled_by_environment();
  BASE_TRY(model_choose_variant(model->artifact, stele_machine_features() & ~disabled, path, sink,
                                &model->variant));
  BASE_TRY(map_weights(model, path, sink));
  return model_text_init(model, sink);
}

stele_status stele_model_open(const char *path, const stele_model_options *options,
                              stele_sink *sink, stele_model **out_model) {
  stele_model_options own = {.struct_bytes = sizeof own};
  if (!path || !out_model) return base_fail(sink, STELE_INVALID_ARGUMENT, "no path of an artefact");
  if (!base_options(&own, sizeof own, options))
    return base_fail(sink, STELE_INVALID_ARGUMENT, "struct_bytes of the model options is not set");
  stele_model *model = calloc(1, sizeof *model);
  if (!model) return out_of_memory(path, sink);
  stele_status status = open_model(model, path, &own, sink);
  if (status != STELE_OK) {
    stele_model_close(model);
    return status;
  }
  *out_model = model;
  return STELE_OK;
}

void stele_model_close(stele_model *model) {
  if (!model) return;
  model_text_deinit(model);
  if (model->handle) dlclose(model->handle);
  base_map_close(&model->beside);
  base_map_close(&model->file);
  free(model->path);
  free(model);
}

const stele_artifact *stele_model_artifact(const stele_model *model) { return model->artifact; }

const stele_variant *stele_model_variant(const stele_model *model) { return model->variant; }

const stele_step_phases *stele_model_phases(const stele_model *model, const stele_step *step) {
  const stele_artifact *a = model->artifact;
  for (uint32_t i = 0; i < model->variant->step_count; i++)
    if (step == &model->variant->steps[i] && model_has_phases(a) && i < a->step_phases_count)
      return &a->step_phases[i];
  return NULL;
}

const uint8_t *stele_model_weights(const stele_model *model, uint64_t *out_bytes) {
  if (out_bytes) *out_bytes = model->artifact->weights_bytes;
  return model->weights;
}

stele_status stele_model_verify(const stele_model *model, stele_sink *sink) {
  const stele_trailer *t = &model->trailer;
  uint64_t code = XXH3_64bits(model->file.data, (size_t)t->code_bytes);
  uint64_t weights = XXH3_64bits(model->weights, (size_t)t->weights_bytes);
  if (code == t->code_hash && weights == t->weights_hash) return STELE_OK;
  bool in_code = code != t->code_hash;
  const char *file = model->artifact->weights_file;
  return base_fail(sink, STELE_MISMATCH,
                   "the %s of '%s' are damaged: their hash is %016" PRIx64 ", %016" PRIx64
                   " was expected",
                   in_code ? "instructions" : "weights", !in_code && file ? file : model->path,
                   in_code ? code : weights, in_code ? t->code_hash : t->weights_hash);
}
