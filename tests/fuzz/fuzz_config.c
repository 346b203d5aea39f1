/* The small files of a Hugging Face directory. The input is config.json, generation_config.json,
 * tokenizer_config.json and chat_template.jinja, a zero byte between two of them; what is empty is
 * not there. */
#include <stdlib.h>
#include <string.h>

#include "frontend/families.h"
#include "frontend/hf.h"
#include "frontend/model.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_files(const uint8_t *data, size_t size) {
  static const char *const names[] = {"config.json", "generation_config.json",
                                      "tokenizer_config.json", "chat_template.jinja"};
  for (size_t i = 0; i < 4; i++) {
    const uint8_t *zero = size && i < 3 ? memchr(data, 0, size) : NULL;
    size_t length = zero ? (size_t)(zero - data) : size;
    scratch_write(names[i], data, length);
    data += length + (zero ? 1 : 0);
    size -= length + (zero ? 1 : 0);
  }
}

static stele_status fill(fe_model *model, const fe_config *config, stele_sink *sink) {
  const fe_family *family;
  BASE_TRY(fe_family_find(config->path, config->type, false, sink, &family));
  model->family = family->name;
  BASE_TRY(family->describe(config, model, sink));
  for (uint32_t i = 0; model->rope_count && i < model->ropes->rotary / 2; i++)
    if (model->ropes->inv_freq[i] != model->ropes->inv_freq[i]) abort(); /* NaN */
  return fe_hf_extras(model, scratch_directory(), config, sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  stele_sink sink = {{0}};
  fe_model *model;
  fe_config config = {0};
  write_files(data, size);
  if (fe_model_create(scratch_directory(), &sink, &model) != STELE_OK) return 0;
  stele_status status = fe_hf_config(model, scratch_directory(), &sink, &config);
  if (status == STELE_OK) status = fill(model, &config, &sink);
  if (status != STELE_OK && !sink.text[0]) abort(); /* a failure says why */
  fe_config_deinit(&config);
  fe_model_destroy(model);
  return 0;
}
