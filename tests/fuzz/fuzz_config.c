/* The small files of a Hugging Face directory. The input is config.json, generation_config.json,
 * tokenizer_config.json and chat_template.jinja, a zero byte between two of them; what is empty is
 * not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/families.h"
#include "frontend/hf.h"
#include "frontend/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static char directory[64];

static void clean(void) {
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", directory);
  if (system(command) != 0) fputs("cannot remove the scratch directory\n", stderr);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  snprintf(directory, sizeof directory, "/tmp/stele-fuzz-XXXXXX");
  if (!mkdtemp(directory)) abort();
  atexit(clean);
  return 0;
}

static void write_files(const uint8_t *data, size_t size) {
  static const char *const names[] = {"config.json", "generation_config.json",
                                      "tokenizer_config.json", "chat_template.jinja"};
  for (size_t i = 0; i < 4; i++) {
    char path[128];
    const uint8_t *zero = size && i < 3 ? memchr(data, 0, size) : NULL;
    size_t length = zero ? (size_t)(zero - data) : size;
    snprintf(path, sizeof path, "%s/%s", directory, names[i]);
    unlink(path);
    FILE *file = length ? fopen(path, "w") : NULL;
    if (file) {
      fwrite(data, 1, length, file);
      fclose(file);
    }
    data += length + (zero ? 1 : 0);
    size -= length + (zero ? 1 : 0);
  }
}

static stele_status fill(fe_model *model, const fe_config *config, stele_sink *sink) {
  const fe_family *family;
  BASE_TRY(fe_family_find(config->path, config->type, false, sink, &family));
  model->family = family->name;
  BASE_TRY(family->describe(config, model, sink));
  for (uint32_t i = 0; i < model->ropes->rotary / 2; i++)
    if (model->ropes->inv_freq[i] != model->ropes->inv_freq[i]) abort(); /* NaN */
  return fe_hf_extras(model, directory, config, sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  stele_sink sink = {{0}};
  fe_model *model;
  fe_config config = {0};
  write_files(data, size);
  if (fe_model_create(directory, &sink, &model) != STELE_OK) return 0;
  stele_status status = fe_hf_config(model, directory, &sink, &config);
  if (status == STELE_OK) status = fill(model, &config, &sink);
  if (status != STELE_OK && !sink.text[0]) abort(); /* a failure says why */
  fe_config_deinit(&config);
  fe_model_destroy(model);
  return 0;
}
