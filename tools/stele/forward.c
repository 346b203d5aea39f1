/* stele forward: feeds ids once and writes what the model computed of them. */
#include <stdlib.h>

#include "cli.h"

typedef struct forward_arguments {
  cli_prompt prompt;
  const char *output;
  bool all, hidden;
  uint32_t threads, cache;
} forward_arguments;

static const cli_option options[] = {
    CLI_PROMPT_OPTIONS(forward_arguments),
    {CLI_FILE, 'o', "output", "FILE", offsetof(forward_arguments, output), 0, 0, NULL,
     "the NumPy file to write, float32"},
    {CLI_FLAG, 0, "all", NULL, offsetof(forward_arguments, all), 0, 0, NULL,
     "logits of every id, [ids, vocabulary], not of the last alone, [1, vocabulary]"},
    {CLI_FLAG, 0, "hidden", NULL, offsetof(forward_arguments, hidden), 0, 0, NULL,
     "hidden states, [layers + 1, ids, hidden]: the embedding, then after each layer, the last "
     "one after the final norm"},
    CLI_SESSION_OPTIONS(forward_arguments),
    {0},
};

/* Shape and kind of the output. */
static uint32_t choose(const forward_arguments *arguments, const stele_artifact *artifact,
                       uint32_t count, size_t shape[3], size_t *out_dimensions) {
  if (arguments->hidden) {
    shape[0] = (size_t)artifact->layers + 1;
    shape[1] = count;
    shape[2] = artifact->hidden;
    *out_dimensions = 3;
    return STELE_OUTPUT_HIDDEN;
  }
  shape[0] = arguments->all ? count : 1;
  shape[1] = artifact->vocab;
  *out_dimensions = 2;
  return arguments->all ? STELE_OUTPUT_ALL : STELE_OUTPUT_LAST;
}

static int feed_and_write(const cli_command *self, const forward_arguments *arguments,
                          const stele_model *model, stele_session *session, const int32_t *ids,
                          uint32_t count) {
  size_t shape[3], dimensions, bytes = sizeof(float);
  uint32_t output = choose(arguments, stele_model_artifact(model), count, shape, &dimensions);
  bool fits = true;
  for (size_t i = 0; i < dimensions; i++) fits = fits && base_mul(bytes, shape[i], &bytes);
  float *data = fits ? malloc(bytes) : NULL;
  if (!data) return cli_fail(self, "out of memory for %u ids of output", count);
  stele_sink sink = {0};
  stele_status status = stele_session_feed(session, 0, ids, count, output, data, &sink);
  if (status == STELE_OK) status = cli_npy_write(arguments->output, data, shape, dimensions, &sink);
  free(data);
  return cli_status(self, status, &sink);
}

static int run(const cli_command *self, int argc, char **argv) {
  forward_arguments arguments = {0};
  const char *path;
  int code;
  if (!cli_parse(self, argc, argv, &arguments, &path, &code)) return code;
  if (!cli_prompt_check(self, &arguments.prompt, &code)) return code;
  if (!arguments.output) return cli_wrong_use(self, "--output is missing");
  if (arguments.all && arguments.hidden)
    return cli_wrong_use(self, "--all and --hidden: expected at most one");

  stele_sink sink = {0};
  stele_model *model = NULL;
  stele_session *session = NULL;
  int32_t *ids = NULL;
  uint32_t count = 0;
  code = cli_status(self, stele_model_open(path, NULL, &sink, &model), &sink);
  if (code == CLI_OK) code = cli_prompt_ids(self, &arguments.prompt, model, &ids, &count);
  if (code == CLI_OK)
    code = cli_session_create(self, model, arguments.threads, arguments.cache, &session);
  if (code == CLI_OK) code = feed_and_write(self, &arguments, model, session, ids, count);
  free(ids);
  stele_session_destroy(session);
  stele_model_close(model);
  return code;
}

const cli_command cli_command_forward = {
    .name = "forward",
    .operand = "OUT.so",
    .synopsis = "--ids LIST [--all | --hidden] -o FILE.npy [options]",
    .description =
        "Feeds a prompt to a compiled model once and writes logits or hidden states as "
        "a NumPy file of float32.",
    .examples =
        "# logits after the last id, [1, vocabulary]\n"
        "stele forward model.so --ids 504,3575,282 -o last.npy\n"
        "# the residual stream, [layers + 1, 3, hidden]\n"
        "stele forward model.so --ids 504,3575,282 --hidden -o hidden.npy\n",
    .options = options,
    .run = run,
};
