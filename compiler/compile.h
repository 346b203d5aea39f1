/* The compiler's core: the stages of a compile, in order. Passes and targets are handed to it as
 * tables by the library that exports compiler.h; it includes neither.
 *
 *   options.c  what was asked for, checked and completed
 *   stage.c    what the stages share: names of passes, timing, dumps
 *   compile.c  a model's files in, an artefact out
 *   opt.c      IR text in, IR text out */
#ifndef COMPILE_H
#define COMPILE_H

#include "artifact/artifact.h"
#include "frontend/frontend.h"
#include "ir/ir.h"
#include "stele/compiler.h"
#include "stele/pass.h"
#include "stele/target.h"

typedef struct compile_tables {
  const pass_info *passes; /* in their order */
  size_t pass_count;
  const stele_target *const *targets; /* the default first */
  size_t target_count;
  void (*print_program)(const stele_program *program, base_buffer *out);
} compile_tables;

/* As stele_compile and stele_opt, with the tables. */
stele_status compile_run(const compile_tables *tables, const char *model_path,
                         const char *output_path, const stele_compile_options *options,
                         stele_sink *sink, stele_compile_report *out_report) STELE_MUST_USE;
stele_status compile_opt(const compile_tables *tables, const char *text, const char *file_name,
                         const stele_opt_options *options, stele_sink *sink,
                         stele_compile_report *out_report, char **out_text) STELE_MUST_USE;

/* ---- inside ---------------------------------------------------------------------------- */

/* Everything that lives for one compile. */
typedef struct compile {
  const compile_tables *tables;
  stele_compile_options options; /* completed: no field is a default any more */
  stele_sink *sink;
  stele_compile_report report;
  base_arena arena;
  const stele_target *target;
  void *target_self;
  fe_model *model; /* NULL in opt without a model */
  ir_context *ir;
  MlirModule module;
  pass_context pass;
  uint32_t cache_scheme;
  uint32_t dumped;    /* files in the dump directory */
  double began, mark; /* seconds: the compile, the current phase */
} compile;

/* Reads the options that need no model, opens the target, the dump directory and the IR. */
stele_status compile_begin(compile *c, const compile_tables *tables,
                           const stele_compile_options *options, stele_sink *sink) STELE_MUST_USE;
/* Accepts a half-begun compile. */
void compile_end(compile *c);

/* Completes what depends on the model: capacity, scheme of the cache. */
stele_status compile_complete_options(compile *c) STELE_MUST_USE;
ir_build_options compile_build_options(const compile *c);

/* Opens the model, and builds its module and verifies it. */
stele_status compile_read_model(compile *c, const char *path) STELE_MUST_USE;
stele_status compile_build(compile *c) STELE_MUST_USE;

/* A pass by name; fails with the list of those there are. */
stele_status compile_find_pass(const compile *c, const char *name, const char *option,
                               size_t *out_index) STELE_MUST_USE;
/* Runs pass i (or its trivial form, or not at all, where it is to be skipped), verifies what it
 * left behind, notes the time, dumps. */
stele_status compile_pass(compile *c, size_t i) STELE_MUST_USE;

/* The phase that began at the last mark is over. */
void compile_note_phase(compile *c, const char *name);
void compile_finish_report(compile *c);
/* Leaves the module, or the program, as the next numbered file; nothing without a directory. */
stele_status compile_dump_module(compile *c, const char *name) STELE_MUST_USE;
stele_status compile_dump_program(compile *c) STELE_MUST_USE;
void compile_progress(const compile *c, const char *phase, uint64_t done, uint64_t total);

#endif
