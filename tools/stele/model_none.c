/* Built without the front-ends: only artefacts can be read. */
#include "cli.h"

static int refuse(const cli_command *command, const char *path) {
  return cli_fail(command,
                  "'%s' is no artefact, and this stele was built without the compiler's front-ends "
                  "that read models (-Dcompiler=disabled)",
                  path);
}

int cli_model_tokenizer(const cli_command *command, const char *path, base_buffer *out_blob) {
  (void)out_blob;
  return refuse(command, path);
}

int cli_model_inspect(const cli_command *command, const char *path, json_t **out_json) {
  (void)out_json;
  return refuse(command, path);
}

int cli_families(const cli_command *command, json_t **out_json) {
  (void)out_json;
  return cli_fail(command,
                  "this stele was built without the compiler's front-ends that read models "
                  "(-Dcompiler=disabled): it knows no families");
}
