/* The compiler's functions, opened at run time. */
#ifndef STELE_CLI_LIBRARY_H
#define STELE_CLI_LIBRARY_H

#include <limits.h>

#include "cli.h"
#include "stele/compiler.h"

typedef struct cli_compiler {
  void *handle;
  char path[PATH_MAX];
  stele_status (*compile)(const char *model_path, const char *output_path,
                          const stele_compile_options *options, stele_sink *sink,
                          stele_compile_report *out_report);
  bool (*pass_describe)(size_t i, const char **out_name, const char **out_summary);
  bool (*target_describe)(size_t i, const char **out_name, const char **out_summary);
} cli_compiler;

/* False with a reason when the library isn't there or can't be loaded. */
bool cli_compiler_open(cli_compiler *out_compiler, char *reason, size_t reason_size);
void cli_compiler_close(cli_compiler *compiler);

#endif
