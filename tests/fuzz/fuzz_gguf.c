/* GGUF files, from the header to a description with all its weights and the tokenizer. Every byte
 * of every weight is read once, so that a wrong place shows. */
#include "frontend/gguf.h"
#include "frontend/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned read_all(const fe_model *model) {
  unsigned sum = 0;
  for (size_t i = 0; i < model->tensors.count; i++)
    for (size_t b = 0; b < model->tensors.list[i].bytes; b++) sum += model->tensors.list[i].data[b];
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  stele_sink sink = {{0}};
  base_buffer blob = {0};
  fe_model *model;
  if (fe_model_create("input", &sink, &model) != STELE_OK) return 0;
  volatile unsigned sum = 0;
  if (fe_model_fill_gguf(model, data, size, &sink) == STELE_OK) {
    sum = read_all(model);
    if (fe_tokenizer_blob(model, &sink, &blob) != STELE_OK) sum++;
  }
  (void)sum;
  base_buffer_deinit(&blob);
  fe_model_destroy(model);
  return 0;
}
