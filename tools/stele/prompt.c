/* Prompts: from the command line, a file, standard input or a list of ids. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MAX_TEXT = 64 << 20 };

bool cli_prompt_check(const cli_command *command, const cli_prompt *prompt, int *out_exit) {
  int given = !!prompt->text + !!prompt->file + !!prompt->ids;
  if (given == 1) return true;
  *out_exit =
      cli_wrong_use(command, "%s of --prompt, --prompt-file and --ids: expected exactly one",
                    given ? "several" : "none");
  return false;
}

static int read_stream(const cli_command *command, const char *name, FILE *stream,
                       base_buffer *buffer) {
  char piece[65536];
  size_t n;
  while ((n = fread(piece, 1, sizeof piece, stream)) > 0) {
    if (buffer->size + n > MAX_TEXT)
      return cli_fail(command, "'%s' has more than %d bytes", name, MAX_TEXT);
    base_buffer_append(buffer, piece, n);
  }
  if (ferror(stream)) return cli_fail(command, "cannot read '%s': %s", name, strerror(errno));
  return CLI_OK;
}

int cli_read_text(const cli_command *command, const char *path, char **out_text,
                  size_t *out_bytes) {
  bool standard = strcmp(path, "-") == 0;
  FILE *stream = standard ? stdin : fopen(path, "rb");
  if (!stream) return cli_fail(command, "cannot open '%s': %s", path, strerror(errno));
  base_buffer buffer = {0};
  int code = read_stream(command, standard ? "standard input" : path, stream, &buffer);
  if (!standard) fclose(stream);
  size_t size = buffer.size;
  base_buffer_append(&buffer, "", 1);
  if (code == CLI_OK && buffer.failed) code = cli_fail(command, "out of memory");
  if (code != CLI_OK) {
    base_buffer_deinit(&buffer);
    return code;
  }
  *out_text = (char *)buffer.data;
  *out_bytes = size;
  return CLI_OK;
}

static int parse_ids(const cli_command *command, const char *text, int32_t **out_ids,
                     size_t *out_count) {
  base_buffer ids = {0};
  for (const char *at = text;;) {
    char item[16];
    size_t length = strcspn(at, ",");
    uint32_t id;
    snprintf(item, sizeof item, "%.*s", (int)base_min(length, sizeof item - 1), at);
    if (length >= sizeof item || !cli_number(item, 0, INT32_MAX, &id)) {
      size_t place = ids.size / sizeof id + 1;
      base_buffer_deinit(&ids);
      return cli_wrong_use(
          command, "--ids: number %zu is '%.*s', expected ids from 0 to %d, separated by commas",
          place, (int)base_min(length, 40), at, INT32_MAX);
    }
    base_buffer_append(&ids, &id, sizeof id);
    if (!at[length]) break;
    at += length + 1;
  }
  if (ids.failed) {
    base_buffer_deinit(&ids);
    return cli_fail(command, "out of memory");
  }
  *out_ids = (int32_t *)(void *)ids.data;
  *out_count = ids.size / sizeof **out_ids;
  return CLI_OK;
}

static int encode(const cli_command *command, const cli_prompt *prompt, const stele_model *model,
                  int32_t **out_ids, size_t *out_count) {
  char *owned = NULL;
  const char *text = prompt->text;
  size_t bytes = text ? strlen(text) : 0;
  if (!text) {
    int code = cli_read_text(command, prompt->file, &owned, &bytes);
    if (code != CLI_OK) return code;
    text = owned;
  }
  stele_sink sink = {0};
  stele_status status = stele_tokenize(model, text, bytes, true, &sink, out_ids, out_count);
  free(owned);
  return cli_status(command, status, &sink);
}

int cli_prompt_ids(const cli_command *command, const cli_prompt *prompt, const stele_model *model,
                   int32_t **out_ids, uint32_t *out_count) {
  int32_t *ids = NULL;
  size_t count = 0;
  int code = prompt->ids ? parse_ids(command, prompt->ids, &ids, &count)
                         : encode(command, prompt, model, &ids, &count);
  if (code != CLI_OK) return code;
  uint32_t capacity = stele_model_artifact(model)->capacity;
  if (count == 0)
    code = cli_fail(command, "the prompt has no tokens: expected at least one");
  else if (count > capacity)
    code = cli_fail(command,
                    "the prompt has %zu tokens, but the artefact holds at most %u: compile it "
                    "with a larger --max-cache-len",
                    count, capacity);
  if (code != CLI_OK) {
    free(ids);
    return code;
  }
  *out_ids = ids;
  *out_count = (uint32_t)count;
  return CLI_OK;
}

int cli_session_create(const cli_command *command, const stele_model *model, uint32_t threads,
                       uint32_t cache, stele_session **out_session) {
  stele_session_options options = {.struct_bytes = sizeof options,
                                   .lanes = 1,
                                   .threads = threads,
                                   .cache_implementation = cache};
  stele_sink sink = {0};
  return cli_status(command, stele_session_create(model, &options, &sink, out_session), &sink);
}
