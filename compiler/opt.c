/* Passes on IR text: what stele-opt does. The text stands for what comes before the pass that
 * start_from names; what stop_after leaves behind is printed, as IR, or as a program once flatten
 * has run. */
#include <stdlib.h>
#include <string.h>

#include "compile.h"

typedef struct pass_range {
  size_t first, last; /* last: the last pass that runs */
} pass_range;

static stele_status find_range(const compile *c, const stele_opt_options *options,
                               pass_range *out) {
  *out = (pass_range){0, c->tables->pass_count - 1};
  if (options->start_from)
    BASE_TRY(compile_find_pass(c, options->start_from, "start-from", &out->first));
  if (options->stop_after)
    BASE_TRY(compile_find_pass(c, options->stop_after, "stop-after", &out->last));
  if (out->last < out->first)
    return base_fail(c->sink, STELE_INVALID_ARGUMENT, "--stop-after '%s' comes before '%s'",
                     options->stop_after, options->start_from);
  return STELE_OK;
}

static stele_status read_input(compile *c, const char *text, const char *file_name,
                               ir_level level) {
  if (!text && !c->model)
    return base_fail(c->sink, STELE_INVALID_ARGUMENT, "neither a text nor a model was given");
  if (!text && level != IR_MODEL)
    return base_fail(c->sink, STELE_INVALID_ARGUMENT,
                     "--start-from needs the text that comes before that pass");
  if (!text) return compile_build(c);
  BASE_TRY(
      ir_parse(c->ir, text, strlen(text), file_name ? file_name : "<text>", c->sink, &c->module));
  c->pass.module = c->module;
  BASE_TRY(ir_verify(c->module, level, c->sink));
  compile_note_phase(c, "ir");
  return compile_dump_module(c, "input");
}

/* Passes by name, separated by commas. */
static stele_status run_only(compile *c, const char *names) {
  size_t index;
  while (*names) {
    size_t length = strcspn(names, ",");
    char *name = base_arena_copy(&c->arena, names, length);
    if (!name) return base_fail(c->sink, STELE_OUT_OF_MEMORY, "out of memory");
    BASE_TRY(compile_find_pass(c, name, "passes", &index));
    BASE_TRY(compile_pass(c, index));
    names += length + (names[length] == ',');
  }
  return STELE_OK;
}

/* The level that a text should be at: what its first pass expects. */
static stele_status first_level(const compile *c, const stele_opt_options *options,
                                const pass_range *range, ir_level *out) {
  size_t index = range->first;
  if (options->only) {
    char name[64];
    size_t length = base_min(strcspn(options->only, ","), sizeof name - 1);
    memcpy(name, options->only, length);
    name[length] = 0;
    BASE_TRY(compile_find_pass(c, name, "passes", &index));
  }
  *out = c->tables->passes[index].before;
  return STELE_OK;
}

static stele_status print(compile *c, char **out_text) {
  base_buffer text = {0};
  if (c->pass.program)
    c->tables->print_program(c->pass.program, &text);
  else
    ir_print(c->module, &text);
  base_buffer_append(&text, "", 1);
  if (text.failed) {
    base_buffer_deinit(&text);
    return base_fail(c->sink, STELE_OUT_OF_MEMORY, "out of memory");
  }
  *out_text = (char *)text.data;
  return STELE_OK;
}

static stele_status stages(compile *c, const char *text, const char *file_name,
                           const stele_opt_options *options, char **out_text) {
  pass_range range;
  ir_level level;
  BASE_TRY(find_range(c, options, &range));
  BASE_TRY(first_level(c, options, &range, &level));
  if (options->model_path) BASE_TRY(compile_read_model(c, options->model_path));
  BASE_TRY(read_input(c, text, file_name, level));
  if (options->only)
    BASE_TRY(run_only(c, options->only));
  else
    for (size_t i = range.first; i <= range.last; i++) BASE_TRY(compile_pass(c, i));
  if (c->pass.program) BASE_TRY(compile_dump_program(c));
  return print(c, out_text);
}

stele_status compile_opt(const compile_tables *tables, const char *text, const char *file_name,
                         const stele_opt_options *given, stele_sink *sink,
                         stele_compile_report *out_report, char **out_text) {
  stele_opt_options options = {0};
  if (!base_options(&options, sizeof options, given))
    return base_fail(sink, STELE_INVALID_ARGUMENT, "struct_bytes of the options is not set");
  if (!options.compile.struct_bytes) options.compile.struct_bytes = sizeof options.compile;
  compile c;
  char *result = NULL;
  stele_status status = compile_begin(&c, tables, &options.compile, sink);
  if (status == STELE_OK) status = stages(&c, text, file_name, &options, &result);
  compile_finish_report(&c);
  if (status == STELE_OK && out_report) *out_report = c.report;
  compile_end(&c);
  if (status == STELE_OK) *out_text = result;
  return status;
}
