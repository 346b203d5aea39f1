/* One table gives getopt_long its options, the help its lines and the parser its fields. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stele/stele.h"

typedef enum kind { FLAG, TEXT, COUNT, SKIP } kind;

typedef struct option_row {
  char letter; /* 0: none */
  const char *name, *value;
  kind kind;
  size_t field; /* in opt_arguments */
  uint32_t most;
  const char *help;
} option_row;

#define FIELD(name) offsetof(opt_arguments, name)
static const option_row rows[] = {
    {'m', "model", "PATH", TEXT, FIELD(opt.model_path), 0,
     "the model whose weights the text names; without FILE, the module is built from it"},
    {0, "start-from", "PASS", TEXT, FIELD(opt.start_from), 0,
     "FILE is what comes before this pass [the first pass of the order]"},
    {0, "stop-after", "PASS", TEXT, FIELD(opt.stop_after), 0,
     "print what comes out of this pass [the last, flatten: the program is printed]"},
    {0, "passes", "A,B,C", TEXT, FIELD(opt.only), 0, "run these, in this order, and no others"},
    {0, "skip", "PASS", SKIP, 0, 0, "leave a pass out; may be repeated"},
    {'o', "output", "OUT", TEXT, FIELD(output), 0, "where the text goes [-: standard output]"},
    {0, "dump-dir", "DIR", TEXT, FIELD(opt.compile.dump_directory), 0,
     "leave the text after each pass in a folder"},
    {0, "timing", NULL, FLAG, FIELD(timing), 0, "how long each pass took, on standard error"},
    {0, "list", NULL, FLAG, FIELD(list), 0, "list the passes in their order, and the targets"},
    {'c', "max-cache-len", "N", COUNT, FIELD(opt.compile.max_cache_len), INT32_MAX,
     "tokens that a lane can hold [4096 or the model's maximum]"},
    {0, "prefill", "W", COUNT, FIELD(opt.compile.prefill), 65536,
     "tokens of a prefill step, 1: no such step [128]"},
    {0, "verify", "W", COUNT, FIELD(opt.compile.verify), 65536,
     "tokens of a verify step, 1: no such step [8]"},
    {0, "lanes", "N", COUNT, FIELD(opt.compile.lanes), 16, "lanes of the widest decode step [1]"},
    {0, "target", "NAME", TEXT, FIELD(opt.compile.target), 0, "whose layouts and tiles [cpu]"},
    {0, "cpu", "NAME", TEXT, FIELD(opt.compile.cpu), 0, "the processor [native]"},
    {0, "cache-dtype", "NAME", TEXT, FIELD(opt.compile.cache_dtype), 0,
     "f32, f16, bf16, q8_0 or q4_0 [f16; f32 for models in f32 and with --precise]"},
    {0, "precise", NULL, FLAG, FIELD(opt.compile.precise), 0,
     "activations, cache and sums in float32"},
    {'h', "help", NULL, FLAG, 0, 0, "show this help"},
    {'V', "version", NULL, FLAG, 0, 0, "show the version"},
};
#undef FIELD

enum { ROW_COUNT = sizeof rows / sizeof *rows, FIRST_CODE = 256 };

static void print_help(void) {
  fputs(
      "usage: stele-opt [FILE | -] [options]\n\n"
      "Runs the compiler's passes on a module in IR text (FILE, or - for standard input), or on\n"
      "the module that a model gives, checks it after each and prints what comes out.\n\n",
      stdout);
  for (size_t i = 0; i < ROW_COUNT; i++) {
    char left[64];
    const option_row *row = &rows[i];
    int length = row->letter ? snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name)
                             : snprintf(left, sizeof left, "      --%s", row->name);
    if (row->value) snprintf(left + length, sizeof left - (size_t)length, " %s", row->value);
    printf("%-26s  %s\n", left, row->help);
  }
  fputs(
      "\nexamples:\n"
      "  stele-opt --model MODEL --stop-after fuse-qkv -o qkv.mlir\n"
      "      the module of a model as it is after a pass\n"
      "  stele-opt qkv.mlir --start-from fuse-mlp --stop-after fuse-residual\n"
      "      on from there\n"
      "  stele-opt x.mlir --passes canonicalise,fuse-norm\n"
      "      some passes alone\n"
      "  stele-opt --model MODEL --dump-dir stages --timing -o last.mlir\n"
      "      every stage in a folder, and what each pass took\n\n"
      "No pass reads a weight's data, so text is enough by itself.\n"
      "compiler/ir/IR.md describes the text.\n"
      "Exit code: 0 done, 1 the module or a file is wrong, 2 wrong use.\n",
      stdout);
}

static opt_next wrong(const char *format, const char *a, const char *b) {
  fputs("stele-opt: ", stderr);
  fprintf(stderr, format, a, b);
  fputs(" (see 'stele-opt --help')\n", stderr);
  return OPT_WRONG;
}

/* ---- values ---------------------------------------------------------------------------- */

static bool parse_count(const char *text, uint32_t most, uint32_t *out) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno || value < 1 || value > most) return false;
  *out = (uint32_t)value;
  return true;
}

static opt_next add_skip(opt_arguments *arguments, const char *name) {
  size_t count = 0;
  while (arguments->skip && arguments->skip[count]) count++;
  const char **grown = realloc(arguments->skip, (count + 2) * sizeof *grown);
  if (!grown) return wrong("%s%s", "out of memory", "");
  grown[count] = name;
  grown[count + 1] = NULL;
  arguments->skip = grown;
  return OPT_RUN;
}

static opt_next set(opt_arguments *arguments, const option_row *row, const char *value) {
  char *field = (char *)arguments + row->field;
  switch (row->kind) {
    case FLAG:
      *(bool *)(void *)field = true;
      return OPT_RUN;
    case TEXT:
      *(const char **)(void *)field = value;
      return OPT_RUN;
    case SKIP:
      return add_skip(arguments, value);
    case COUNT: {
      char expected[64];
      if (parse_count(value, row->most, (uint32_t *)(void *)field)) return OPT_RUN;
      snprintf(expected, sizeof expected, "--%s is '%%s', expected 1 to %u%%s", row->name,
               row->most);
      return wrong(expected, value, "");
    }
  }
  return OPT_RUN;
}

/* ---- all of it ------------------------------------------------------------------------- */

static void fill(struct option *longs, char *letters) {
  *letters++ = ':'; /* a missing value is told by ':' */
  for (size_t i = 0; i < ROW_COUNT; i++) {
    longs[i] = (struct option){rows[i].name, rows[i].value ? required_argument : no_argument, NULL,
                               FIRST_CODE + (int)i};
    if (!rows[i].letter) continue;
    *letters++ = rows[i].letter;
    if (rows[i].value) *letters++ = ':';
  }
  *letters = 0;
  longs[ROW_COUNT] = (struct option){0};
}

static const option_row *row_of(int code) {
  if (code >= FIRST_CODE) return &rows[code - FIRST_CODE];
  for (size_t i = 0; i < ROW_COUNT; i++)
    if (rows[i].letter == code) return &rows[i];
  return NULL;
}

static opt_next finish(opt_arguments *arguments, int count, char **rest) {
  if (count > 1) return wrong("'%s' is one file too many%s", rest[1], "");
  if (count == 1) arguments->input = rest[0];
  if (!arguments->list && !arguments->input && !arguments->opt.model_path)
    return wrong("FILE or --model is missing%s%s", "", "");
  if (arguments->opt.only && (arguments->opt.start_from || arguments->opt.stop_after))
    return wrong("--passes says all: --start-from and --stop-after can't go with it%s%s", "", "");
  arguments->opt.compile.skip_passes = arguments->skip;
  return OPT_RUN;
}

opt_next opt_arguments_parse(int argc, char **argv, opt_arguments *out_arguments) {
  struct option longs[ROW_COUNT + 1];
  char letters[2 * ROW_COUNT + 2];
  fill(longs, letters);
  *out_arguments = (opt_arguments){
      .output = "-",
      .opt = {.struct_bytes = sizeof(stele_opt_options),
              .compile = {.struct_bytes = sizeof(stele_compile_options)}},
  };
  opterr = 0;
  optind = 1;
  for (int code; (code = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
    if (code == ':') return wrong("'%s' needs a value%s", argv[optind - 1], "");
    const option_row *row = code == '?' ? NULL : row_of(code);
    if (!row) return wrong("unknown option '%s'%s", argv[optind - 1], "");
    if (row->letter == 'h') {
      print_help();
      return OPT_DONE;
    }
    if (row->letter == 'V') {
      puts("stele-opt " STELE_VERSION);
      return OPT_DONE;
    }
    opt_next next = set(out_arguments, row, optarg);
    if (next != OPT_RUN) return next;
  }
  return finish(out_arguments, argc - optind, argv + optind);
}

void opt_arguments_deinit(opt_arguments *arguments) { free(arguments->skip); }
