/* A compile, from top to bottom: a model's files in, an artefact out. Each stage is one function;
 * what it makes is in the compile struct for the next. */
#include "compile.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

/* True when path is an existing file that is, under whatever name, the model or in its folder. */
static bool is_of_model(const char *model, const char *path) {
  struct stat output, st;
  if (stat(path, &output) != 0) return false;
  if (stat(model, &st) == 0 && st.st_dev == output.st_dev && st.st_ino == output.st_ino)
    return true;
  DIR *folder = opendir(model);
  bool found = false;
  for (const struct dirent *entry; folder && !found && (entry = readdir(folder));) {
    const char *suffix = strrchr(entry->d_name, '.');
    if (suffix && (strcmp(suffix, ".json") == 0 || strcmp(suffix, ".safetensors") == 0 ||
                   strcmp(suffix, ".jinja") == 0))
      found = fstatat(dirfd(folder), entry->d_name, &st, 0) == 0 && st.st_dev == output.st_dev &&
              st.st_ino == output.st_ino;
  }
  if (folder) closedir(folder);
  return found;
}

static stele_status probe(const char *model, const char *path, stele_sink *sink) {
  base_output file = {0};
  BASE_TRY(base_output_open(sink, path, &file));
  base_output_abort(&file);
  if (is_of_model(model, path))
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "'%s' is a file of the model '%s' and would be overwritten", path, model);
  return STELE_OK;
}

/* Refuses outputs that cannot or must not be written before any work is done. */
static stele_status check_outputs(compile *c, const char *model, const char *path) {
  const char *weights, *name;
  if (!path || !*path)
    return base_fail(c->sink, STELE_INVALID_ARGUMENT, "no file to write was given");
  BASE_TRY(probe(model, path, c->sink));
  const artifact_source source = {.output = path, .weights_file = c->options.weights_file};
  BASE_TRY(artifact_weights_path(&source, &c->arena, c->sink, &weights, &name));
  return weights ? probe(model, weights, c->sink) : STELE_OK;
}

static stele_status run_passes(compile *c) {
  for (size_t i = 0; i < c->tables->pass_count; i++) BASE_TRY(compile_pass(c, i));
  if (!c->pass.program)
    return base_fail(c->sink, STELE_FAILED, "the passes ended without a program");
  return compile_dump_program(c);
}

/* The IR has served its purpose; its memory is the target's and the weights' now. */
static void drop_ir(compile *c) {
  mlirModuleDestroy(c->module);
  ir_context_destroy(c->ir);
  c->module = c->pass.module = (MlirModule){NULL};
  c->ir = c->pass.ir = NULL;
}

static stele_status emit(compile *c, const stele_object **out_objects, uint32_t *out_count) {
  compile_progress(c, "code", 0, 1);
  BASE_TRY(c->target->emit(c->target_self, c->pass.program, c->sink, out_objects, out_count));
  compile_note_phase(c, "code");
  return STELE_OK;
}

static artifact_source make_source(const compile *c, const char *output_path) {
  return (artifact_source){.model = c->model,
                           .program = c->pass.program,
                           .target = c->target,
                           .target_self = c->target_self,
                           .cpu = c->options.cpu,
                           .output = output_path,
                           .weights_file = c->options.weights_file,
                           .precise = c->options.precise,
                           .cache_scheme = c->cache_scheme,
                           .threads = c->options.threads,
                           .progress = c->options.progress,
                           .progress_data = c->options.progress_data};
}

/* The artefact's constant data as one more object behind the target's. */
static stele_status describe(compile *c, const artifact_source *source, base_buffer *out_object) {
  stele_artifact artifact;
  BASE_TRY(artifact_describe(source, &c->arena, c->sink, &artifact));
  BASE_TRY(artifact_emit_meta(&artifact, artifact.triple, c->sink, out_object));
  compile_note_phase(c, "description");
  return STELE_OK;
}

static stele_status link(compile *c, const stele_object *objects, uint32_t count,
                         const base_buffer *meta, base_buffer *out_code) {
  compile_progress(c, "link", 0, 1);
  stele_object *all = base_arena_alloc(&c->arena, (size_t)count + 1, sizeof *all);
  if (!all) return base_fail(c->sink, STELE_OUT_OF_MEMORY, "out of memory");
  if (count) memcpy(all, objects, count * sizeof *all);
  all[count] = (stele_object){"artifact.o", meta->data, meta->size};
  BASE_TRY(artifact_link(all, count + 1, c->sink, out_code));
  compile_note_phase(c, "link");
  return STELE_OK;
}

static void note_sizes(compile *c, const base_buffer *code, uint64_t artifact_bytes) {
  const stele_program *program = c->pass.program;
  stele_compile_report *r = &c->report;
  r->artifact_bytes = artifact_bytes;
  r->code_bytes = code->size;
  r->weight_bytes = program->weights_bytes;
  r->workspace_bytes = program->workspace_bytes;
  for (uint64_t i = 0; i < program->groups.count; i++) {
    const stele_group *g = stele_program_groups(program, i);
    r->cache_bytes += g->page_bytes * g->layers * stele_group_lane_pages(g);
  }
}

static stele_status make_artifact(compile *c, const char *output_path, base_buffer *meta,
                                  base_buffer *code) {
  const stele_object *objects;
  uint32_t count;
  uint64_t bytes;
  artifact_source source = make_source(c, output_path);
  BASE_TRY(emit(c, &objects, &count));
  BASE_TRY(describe(c, &source, meta));
  BASE_TRY(link(c, objects, count, meta, code));
  BASE_TRY(artifact_write(&source, code->data, code->size, c->sink, &bytes));
  compile_note_phase(c, "weights");
  note_sizes(c, code, bytes);
  return STELE_OK;
}

static stele_status stages(compile *c, const char *model_path, const char *output_path) {
  BASE_TRY(check_outputs(c, model_path, output_path));
  BASE_TRY(compile_read_model(c, model_path));
  BASE_TRY(compile_build(c));
  BASE_TRY(run_passes(c));
  drop_ir(c);
  base_buffer meta = {0}, code = {0};
  stele_status status = make_artifact(c, output_path, &meta, &code);
  base_buffer_deinit(&meta);
  base_buffer_deinit(&code);
  return status;
}

stele_status compile_run(const compile_tables *tables, const char *model_path,
                         const char *output_path, const stele_compile_options *options,
                         stele_sink *sink, stele_compile_report *out_report) {
  compile c;
  stele_status status = compile_begin(&c, tables, options, sink);
  if (status == STELE_OK) status = stages(&c, model_path, output_path);
  compile_finish_report(&c);
  if (status == STELE_OK && out_report) *out_report = c.report;
  compile_end(&c);
  return status;
}
