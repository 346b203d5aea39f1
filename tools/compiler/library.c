/* The compiler as a shared library: hands the tables of passes and targets to the core and exports
 * what compiler.h promises. */
#include "compile.h"
#include "passes.h"
#include "table.h"

static compile_tables make_tables(void) {
  compile_tables tables = {.print_program = program_print};
  tables.passes = pass_table(&tables.pass_count);
  tables.targets = tgt_table(&tables.target_count);
  return tables;
}

stele_status stele_compile(const char *model_path, const char *output_path,
                           const stele_compile_options *options, stele_sink *sink,
                           stele_compile_report *out_report) {
  compile_tables tables = make_tables();
  return compile_run(&tables, model_path, output_path, options, sink, out_report);
}

stele_status stele_opt(const char *text, const char *file_name, const stele_opt_options *options,
                       stele_sink *sink, stele_compile_report *out_report, char **out_text) {
  compile_tables tables = make_tables();
  return compile_opt(&tables, text, file_name, options, sink, out_report, out_text);
}

bool stele_pass_describe(size_t i, const char **out_name, const char **out_summary) {
  size_t count;
  const pass_info *passes = pass_table(&count);
  if (i >= count) return false;
  *out_name = passes[i].name;
  *out_summary = passes[i].summary;
  return true;
}

bool stele_target_describe(size_t i, const char **out_name, const char **out_summary) {
  size_t count;
  const stele_target *const *targets = tgt_table(&count);
  if (i >= count) return false;
  *out_name = targets[i]->name;
  *out_summary = targets[i]->summary;
  return true;
}
