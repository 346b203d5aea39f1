/* A model as a Hugging Face directory: config.json and one safetensors file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/bytes.h"
#include "support/encode.h"
#include "support/test_model.h"
#include "weights/weights.h"

static const struct {
  const char *dtype, *torch;
} names[] = {[STELE_F32] = {"F32", "float32"},
             [STELE_F16] = {"F16", "float16"},
             [STELE_BF16] = {"BF16", "bfloat16"}};

static uint64_t numbers_of(const fe_tensor *tensor) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < tensor->dim_count; i++) count *= tensor->dims[i];
  return count;
}

static void put_header(const fe_model *model, uint32_t scheme, base_buffer *out) {
  uint64_t offset = 0, element = weights_scheme_get(scheme)->block_bytes;
  base_buffer text = {0};
  base_buffer_printf(&text, "{\"__metadata__\":{\"format\":\"pt\"}");
  for (size_t i = 0; i < model->tensors.count; i++) {
    const fe_tensor *t = &model->tensors.list[i];
    uint64_t bytes = numbers_of(t) * element;
    base_buffer_printf(&text, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name,
                       names[scheme].dtype);
    for (uint32_t d = 0; d < t->dim_count; d++)
      base_buffer_printf(&text, "%s%" PRIu64, d ? "," : "", t->dims[d]);
    base_buffer_printf(&text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset,
                       offset + bytes);
    offset += bytes;
  }
  base_buffer_printf(&text, "}");
  while (text.size % 8 != 0) base_buffer_append(&text, " ", 1);
  put_u64(out, text.size);
  base_buffer_append(out, text.data, text.size);
  out->failed = out->failed || text.failed;
  base_buffer_deinit(&text);
}

static stele_status save_weights(const fe_model *model, uint32_t scheme, const char *path,
                                 stele_sink *sink) {
  base_buffer out = {0};
  put_header(model, scheme, &out);
  for (size_t i = 0; i < model->tensors.count; i++) {
    const fe_tensor *t = &model->tensors.list[i];
    test_encode(scheme, (const float *)(const void *)t->data, numbers_of(t), &out);
  }
  stele_status status = out.failed ? base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory")
                                   : put_file(path, out.data, out.size, sink);
  base_buffer_deinit(&out);
  return status;
}

stele_status test_model_save_hf(const test_options *options, const fe_model *model, uint32_t scheme,
                                const char *directory, stele_sink *sink) {
  char path[4096];
  base_buffer config = {0};
  if (scheme > STELE_BF16)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "safetensors files hold f32, f16 or bf16");
  if (mkdir(directory, 0777) != 0 && errno != EEXIST)
    return base_fail(sink, STELE_IO, "cannot make '%s': %s", directory, strerror(errno));
  test_config_text(options, names[scheme].torch, &config);
  snprintf(path, sizeof path, "%s/config.json", directory);
  stele_status status = put_file(path, config.data, config.size, sink);
  base_buffer_deinit(&config);
  if (status != STELE_OK) return status;
  snprintf(path, sizeof path, "%s/model.safetensors", directory);
  return save_weights(model, scheme, path, sink);
}
