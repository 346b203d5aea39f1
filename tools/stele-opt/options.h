/* The command line of stele-opt, parsed. */
#ifndef STELE_OPT_OPTIONS_H
#define STELE_OPT_OPTIONS_H

#include "stele/compiler.h"

typedef struct opt_arguments {
  const char *input;  /* NULL: the module is built from the model */
  const char *output; /* "-": standard output */
  stele_opt_options opt;
  const char **skip; /* names, NULL at the end; opt.compile.skip_passes points here */
  bool timing, list;
} opt_arguments;

/* What to do next. */
typedef enum opt_next { OPT_RUN, OPT_DONE, OPT_WRONG } opt_next;

/* Parses; prints help, version or what is wrong by itself. Strings point into argv;
 * opt_arguments_deinit frees the rest. */
opt_next opt_arguments_parse(int argc, char **argv, opt_arguments *out_arguments);
void opt_arguments_deinit(opt_arguments *arguments);

#endif
