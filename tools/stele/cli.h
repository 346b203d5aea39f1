/* What the subcommands of `stele` share: their table, the table of options that parsing, --help,
 * manual pages and completions are made of, how errors are said, and small readers and writers.
 *
 * Text goes to standard output, all else to standard error. Exit codes: 0, 1 for a failure, 2 for
 * a wrong use. */
#ifndef STELE_CLI_H
#define STELE_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "stele/stele.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* ---- options --------------------------------------------------------------------------- */

/* What an option is, and the type of the field it is stored in. */
typedef enum cli_kind {
  CLI_END = 0,
  CLI_FLAG,   /* bool */
  CLI_TEXT,   /* const char * */
  CLI_FILE,   /* const char *, completed as a file */
  CLI_COUNT,  /* uint32_t from least to most */
  CLI_CHOICE, /* uint32_t, position in choices */
  CLI_LIST    /* cli_list, may be given several times; commas separate items as well */
} cli_kind;

#define CLI_LIST_MAX 63u
typedef struct cli_list {
  const char *items[CLI_LIST_MAX + 1]; /* NULL at the end */
  uint32_t count;
} cli_list;

typedef struct cli_option {
  cli_kind kind;
  char letter;       /* 0: none */
  const char *name;  /* without the dashes */
  const char *value; /* how help calls the value, NULL for flags */
  size_t offset;     /* of the field in the command's arguments */
  uint32_t least, most;
  const char *choices; /* separated by '|'; for CLI_TEXT only offered by completions */
  const char *help;
} cli_option;

typedef struct cli_command {
  const char *name;
  const char *operand; /* how help calls it: "OUT.so", NULL when there is none */
  bool operand_optional;
  const char *synopsis; /* the options that matter, after the operand */
  const char *description;
  const char *examples; /* lines of "# comment" and "command" */
  const cli_option *options;
  int (*run)(const struct cli_command *self, int argc, char **argv);
} cli_command;

typedef struct cli_row {
  const cli_command *command;
  const char *summary;
} cli_row;
/* All subcommands, in the order of commands.def. */
const cli_row *cli_commands(size_t *out_count);
const cli_row *cli_command_find(const char *name);

/* Reads argv (argv[0] is the subcommand) into arguments and the operand. True: go on; false:
 * --help was printed or the use was wrong, and *out_exit says how to end. */
bool cli_parse(const cli_command *command, int argc, char **argv, void *arguments,
               const char **out_operand, int *out_exit);
/* A whole decimal number from least to most. */
bool cli_number(const char *text, uint32_t least, uint32_t most, uint32_t *out);
/* How an option is written, "-o, --output FILE", into a buffer. */
void cli_option_text(const cli_option *option, char *buffer, size_t size);

void cli_help_program(FILE *stream);
void cli_help_command(const cli_command *command, FILE *stream);
/* Made of the same tables (documents.c). man: command NULL is the page of the program. */
void cli_write_man(const cli_command *command, FILE *stream);
bool cli_write_completion(const char *shell, FILE *stream);

/* ---- errors and output ------------------------------------------------------------------ */

/* One line on standard error that begins with the command's name; the exit code to end with. */
int cli_fail(const cli_command *command, const char *format, ...) STELE_PRINTF(2, 3);
int cli_wrong_use(const cli_command *command, const char *format, ...) STELE_PRINTF(2, 3);
int cli_status(const cli_command *command, stele_status status, const stele_sink *sink);
/* A remark on standard error. */
void cli_note(const char *format, ...) STELE_PRINTF(1, 2);

/* Prints a JSON value on standard output, gives up the reference, and returns the exit code. */
int cli_json_print(const cli_command *command, json_t *value);
/* Flushes standard output; a full disk or a closed pipe becomes a failure. */
int cli_finish(const cli_command *command, int code);
/* "98.4 MB", "312 kB": decimal units. */
const char *cli_bytes(uint64_t bytes, char buffer[32]);
double cli_seconds(void);

/* A bar on standard error, drawn only when that is a terminal. */
typedef struct cli_progress {
  bool shown;
  double last;
} cli_progress;
void cli_progress_init(cli_progress *progress, bool quiet);
/* Fits stele_compile_options.progress. */
void cli_progress_update(void *progress, const char *phase, uint64_t done, uint64_t total);
void cli_progress_end(cli_progress *progress);

/* ---- prompts, models, files ------------------------------------------------------------- */

/* The three ways to give a prompt; exactly one is needed. */
typedef struct cli_prompt {
  const char *text, *file, *ids;
} cli_prompt;
#define CLI_PROMPT_OPTIONS(type)                            \
  {CLI_TEXT,                                                \
   'p',                                                     \
   "prompt",                                                \
   "TEXT",                                                  \
   offsetof(type, prompt.text),                             \
   0,                                                       \
   0,                                                       \
   NULL,                                                    \
   "the prompt as raw text"},                               \
      {CLI_FILE,                                            \
       'f',                                                 \
       "prompt-file",                                       \
       "FILE",                                              \
       offsetof(type, prompt.file),                         \
       0,                                                   \
       0,                                                   \
       NULL,                                                \
       "read the prompt from a file; - is standard input"}, \
      {CLI_TEXT,                                            \
       0,                                                   \
       "ids",                                               \
       "LIST",                                              \
       offsetof(type, prompt.ids),                          \
       0,                                                   \
       0,                                                   \
       NULL,                                                \
       "the prompt as ids, 1,2,3; taken as they are"}
#define CLI_SESSION_OPTIONS(type)       \
  {CLI_COUNT,                           \
   't',                                 \
   "threads",                           \
   "N",                                 \
   offsetof(type, threads),             \
   1,                                   \
   4096,                                \
   NULL,                                \
   "workers [the processors at hand]"}, \
      {CLI_CHOICE,                      \
       0,                               \
       "cache-implementation",          \
       "KIND",                          \
       offsetof(type, cache),           \
       0,                               \
       0,                               \
       "dynamic|static",                \
       "dynamic commits pages of cache when they are first used, static all at once [dynamic]"}

/* False after saying that not exactly one way was used; *out_exit is set. */
bool cli_prompt_check(const cli_command *command, const cli_prompt *prompt, int *out_exit);
/* The prompt's ids, malloc'd; checked against the artefact's capacity before anything runs. */
int cli_prompt_ids(const cli_command *command, const cli_prompt *prompt, const stele_model *model,
                   int32_t **out_ids, uint32_t *out_count);
/* A whole file or standard input ("-"), malloc'd, zero-terminated. */
int cli_read_text(const cli_command *command, const char *path, char **out_text, size_t *out_bytes);

int cli_session_create(const cli_command *command, const stele_model *model, uint32_t threads,
                       uint32_t cache, stele_session **out_session);

/* What a path holds, judged by its first and last bytes. */
typedef enum cli_path_kind { CLI_PATH_ARTIFACT, CLI_PATH_MODEL, CLI_PATH_TOKENIZER } cli_path_kind;
cli_path_kind cli_path_look(const char *path);

/* A model's files, without LLVM (model.c; model_none.c where the front-ends were not built). */
int cli_model_tokenizer(const cli_command *command, const char *path, base_buffer *out_blob);
int cli_model_inspect(const cli_command *command, const char *path, json_t **out_json);
/* The families of models that there are: {"families": [...]}. */
int cli_families(const cli_command *command, json_t **out_json);

/* Tensors by class: a name whose numbers are replaced by '*'. Adds one tensor to classes. */
void cli_tensor_class_add(json_t *classes, const char *name, uint32_t scheme, uint64_t rows,
                          uint64_t columns, uint64_t bytes);
const char *cli_scheme_name(uint32_t scheme);
json_t *cli_features_json(uint64_t features);
/* The values of --cpu whose code runs with those features, best first. */
json_t *cli_levels_json(uint64_t features);

/* A NumPy file (format 1.0) of little-endian float32; appears whole or not at all. */
stele_status cli_npy_write(const char *path, const float *data, const size_t *shape,
                           size_t dimensions, stele_sink *sink);

/* ---- measuring -------------------------------------------------------------------------- */

/* Bytes per second that plain wide loads read from a buffer of so many bytes with so many
 * threads: the best of a few passes. 0 when there is no memory or no thread. */
double cli_read_bandwidth(uint64_t bytes, uint32_t threads);

/* Counts calls of malloc and its kin, and of mmap, made by any thread of this process while
 * counting is on (allocations.c interposes them; allocations_none.c where that cannot be). */
bool cli_allocations_known(void);
void cli_allocations_count(bool on);
uint64_t cli_allocations(void);

#endif
