/* stele tokenize: text to ids, with the tokenizer of an artefact, a model or a tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "text/tokenizer.h"

typedef struct tokenize_arguments {
  const char *text, *file;
  bool no_special, json;
} tokenize_arguments;

static const cli_option options[] = {
    {CLI_TEXT, 0, "text", "TEXT", offsetof(tokenize_arguments, text), 0, 0, NULL,
     "the text to turn into ids"},
    {CLI_FILE, 'f', "text-file", "FILE", offsetof(tokenize_arguments, file), 0, 0, NULL,
     "read the text from a file; - is standard input"},
    {CLI_FLAG, 0, "no-special", NULL, offsetof(tokenize_arguments, no_special), 0, 0, NULL,
     "add no special tokens and read none in the text"},
    {CLI_FLAG, 0, "json", NULL, offsetof(tokenize_arguments, json), 0, 0, NULL,
     "print {\"ids\": [...]}"},
    {0},
};

typedef struct text_input {
  const char *text;
  size_t bytes;
  bool special;
} text_input;

static int encode_artifact(const cli_command *self, const char *path, const text_input *input,
                           int32_t **out_ids, size_t *out_count) {
  stele_sink sink = {0};
  stele_model *model = NULL;
  stele_status status = stele_model_open(path, NULL, &sink, &model);
  if (status == STELE_OK)
    status =
        stele_tokenize(model, input->text, input->bytes, input->special, &sink, out_ids, out_count);
  stele_model_close(model);
  return cli_status(self, status, &sink);
}

/* The blob of a tokenizer.json and, if there is one beside it, tokenizer_config.json. */
static stele_status blob_of_json(const char *path, stele_sink *sink, base_buffer *blob) {
  enum { LIMIT = 256 << 20 };
  base_arena arena = {0};
  char *json = NULL, *config = NULL;
  size_t bytes = 0, config_bytes = 0;
  const char *slash = strrchr(path, '/');
  char *beside = base_arena_format(&arena, "%.*stokenizer_config.json",
                                   slash ? (int)(slash + 1 - path) : 0, path);
  stele_status status = base_file_read(sink, &arena, path, LIMIT, &json, &bytes);
  if (status == STELE_OK && beside && base_file_exists(beside))
    status = base_file_read(sink, &arena, beside, LIMIT, &config, &config_bytes);
  if (status == STELE_OK)
    status = text_blob_from_json(json, bytes, config, config_bytes, sink, blob);
  base_arena_deinit(&arena);
  return status;
}

static int encode_blob(const cli_command *self, const char *path, const base_buffer *blob,
                       const text_input *input, int32_t **out_ids, size_t *out_count) {
  if (blob->failed) return cli_fail(self, "out of memory");
  if (!blob->size) return cli_fail(self, "'%s' has no tokenizer", path);
  stele_sink sink = {0};
  text_tokenizer *tokenizer = NULL;
  stele_status status = text_tokenizer_create(blob->data, blob->size, &sink, &tokenizer);
  if (status == STELE_OK)
    status = text_encode(tokenizer, input->text, input->bytes, input->special, &sink, out_ids,
                         out_count);
  text_tokenizer_destroy(tokenizer);
  return cli_status(self, status, &sink);
}

static int encode(const cli_command *self, const char *path, const text_input *input,
                  int32_t **out_ids, size_t *out_count) {
  cli_path_kind kind = cli_path_look(path);
  if (kind == CLI_PATH_ARTIFACT) return encode_artifact(self, path, input, out_ids, out_count);
  base_buffer blob = {0};
  stele_sink sink = {0};
  int code = kind == CLI_PATH_TOKENIZER ? cli_status(self, blob_of_json(path, &sink, &blob), &sink)
                                        : cli_model_tokenizer(self, path, &blob);
  if (code == CLI_OK) code = encode_blob(self, path, &blob, input, out_ids, out_count);
  base_buffer_deinit(&blob);
  return code;
}

static int print_ids(const cli_command *self, const int32_t *ids, size_t count, bool json) {
  if (json) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(list, json_integer(ids[i]));
    return cli_json_print(self, json_pack("{s:o}", "ids", list));
  }
  for (size_t i = 0; i < count; i++) printf(i ? ",%d" : "%d", ids[i]);
  putchar('\n');
  return cli_finish(self, CLI_OK);
}

static int run(const cli_command *self, int argc, char **argv) {
  tokenize_arguments arguments = {0};
  const char *path;
  int code;
  if (!cli_parse(self, argc, argv, &arguments, &path, &code)) return code;
  if (!arguments.text == !arguments.file)
    return cli_wrong_use(self, "--text and --text-file: expected exactly one");
  char *owned = NULL;
  text_input input = {.text = arguments.text, .special = !arguments.no_special};
  if (arguments.file) {
    code = cli_read_text(self, arguments.file, &owned, &input.bytes);
    if (code != CLI_OK) return code;
    input.text = owned;
  } else {
    input.bytes = strlen(input.text);
  }
  int32_t *ids = NULL;
  size_t count = 0;
  code = encode(self, path, &input, &ids, &count);
  if (code == CLI_OK) code = print_ids(self, ids, count, arguments.json);
  free(ids);
  free(owned);
  return code;
}

const cli_command cli_command_tokenize = {
    .name = "tokenize",
    .operand = "(OUT.so | MODEL | tokenizer.json)",
    .synopsis = "--text TEXT [options]",
    .description =
        "Turns text into ids, with the special tokens that the tokenizer adds by "
        "itself. The ids are printed so that --ids takes them.",
    .examples =
        "stele tokenize model.so --text 'Hello there'\n"
        "stele tokenize model/tokenizer.json --text-file story.txt --json\n",
    .options = options,
    .run = run,
};
