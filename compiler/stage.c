/* What the stages of a compile share: finding and running passes, dumps, timing, progress. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "compile.h"

/* ---- time ------------------------------------------------------------------------------ */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void compile_note_phase(compile *c, const char *name) {
  double at = now();
  stele_compile_report *r = &c->report;
  if (name && r->phase_count < sizeof r->phases / sizeof r->phases[0])
    r->phases[r->phase_count++] = (stele_compile_phase){name, at - c->mark};
  c->mark = at;
}

void compile_finish_report(compile *c) {
  struct rusage usage;
  c->report.seconds = now() - c->began;
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    c->report.peak_memory_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

void compile_progress(const compile *c, const char *phase, uint64_t done, uint64_t total) {
  if (c->options.progress) c->options.progress(c->options.progress_data, phase, done, total);
}

/* ---- dumps ----------------------------------------------------------------------------- */

static stele_status dump(compile *c, const char *name, const char *extension,
                         const base_buffer *text) {
  if (text->failed) return base_fail(c->sink, STELE_OUT_OF_MEMORY, "out of memory");
  char *path = base_arena_format(&c->arena, "%s/%02u-%s.%s", c->options.dump_directory, c->dumped++,
                                 name, extension);
  if (!path) return base_fail(c->sink, STELE_OUT_OF_MEMORY, "out of memory");
  base_output file = {0};
  BASE_TRY(base_output_open(c->sink, path, &file));
  stele_status status = base_output_write(c->sink, &file, text->data, text->size);
  if (status == STELE_OK) status = base_output_commit(c->sink, &file, 0644);
  base_output_abort(&file);
  return status;
}

stele_status compile_dump_module(compile *c, const char *name) {
  if (!c->options.dump_directory) return STELE_OK;
  base_buffer text = {0};
  ir_print(c->module, &text);
  stele_status status = dump(c, name, "mlir", &text);
  base_buffer_deinit(&text);
  return status;
}

stele_status compile_dump_program(compile *c) {
  if (!c->options.dump_directory) return STELE_OK;
  base_buffer text = {0};
  c->tables->print_program(c->pass.program, &text);
  stele_status status = dump(c, "program", "txt", &text);
  base_buffer_deinit(&text);
  return status;
}

/* ---- the model ------------------------------------------------------------------------- */

stele_status compile_read_model(compile *c, const char *path) {
  compile_progress(c, "front-end", 0, 1);
  BASE_TRY(fe_model_open(path, c->sink, &c->model));
  BASE_TRY(compile_complete_options(c));
  compile_note_phase(c, "front-end");
  return STELE_OK;
}

stele_status compile_build(compile *c) {
  ir_build_options options = compile_build_options(c);
  BASE_TRY(ir_build(c->ir, c->model, &options, c->sink, &c->module));
  BASE_TRY(ir_verify(c->module, IR_MODEL, c->sink));
  c->pass.module = c->module;
  compile_note_phase(c, "ir");
  return compile_dump_module(c, "model");
}

/* ---- passes ---------------------------------------------------------------------------- */

stele_status compile_find_pass(const compile *c, const char *name, const char *option,
                               size_t *out_index) {
  const compile_tables *tables = c->tables;
  for (size_t i = 0; i < tables->pass_count; i++)
    if (strcmp(tables->passes[i].name, name) == 0) {
      *out_index = i;
      return STELE_OK;
    }
  stele_status status =
      base_fail(c->sink, STELE_INVALID_ARGUMENT, "--%s is '%.64s', expected one of:", option, name);
  for (size_t i = 0; i < tables->pass_count; i++)
    base_sink_add(c->sink, "  %s", tables->passes[i].name);
  return status;
}

static bool is_skipped(const compile *c, const char *name) {
  for (const char *const *skip = c->options.skip_passes; skip && *skip; skip++)
    if (strcmp(*skip, name) == 0) return true;
  return false;
}

stele_status compile_pass(compile *c, size_t i) {
  const pass_info *pass = &c->tables->passes[i];
  bool skipped = is_skipped(c, pass->name);
  if (skipped && pass->kind == PASS_REQUIRED)
    return base_fail(c->sink, STELE_INVALID_ARGUMENT, "the pass '%s' cannot be skipped",
                     pass->name);
  compile_progress(c, pass->name, i, c->tables->pass_count);
  if (!skipped || pass->kind == PASS_LOWERING) {
    BASE_TRY(pass->run(&c->pass, skipped));
    c->module = c->pass.module;
    stele_status status = ir_verify(c->module, pass->after, c->sink);
    if (status != STELE_OK) {
      base_sink_add(c->sink, "after the pass '%s'", pass->name);
      return status;
    }
  }
  compile_note_phase(c, pass->name);
  return compile_dump_module(c, pass->name);
}
