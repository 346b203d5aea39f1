/* The table of tokenizer models. */
#include <stdio.h>

#include "text/model.h"

static const text_model models[] = {
#define X(name, code, prefix, type, bytes, gguf) \
  {code, type, bytes, gguf, prefix##_from_json, prefix##_from_gguf, prefix##_encode},
#include "text/models.def"
#undef X
};
#define COUNT (sizeof models / sizeof *models)

const text_model *text_model_by_code(uint32_t code) {
  for (size_t i = 0; i < COUNT; i++)
    if (models[i].code == code) return &models[i];
  return NULL;
}

const text_model *text_model_by_type(const char *json_type, bool byte_level) {
  for (size_t i = 0; i < COUNT; i++)
    if (models[i].byte_level == byte_level && strcmp(models[i].json_type, json_type) == 0)
      return &models[i];
  return NULL;
}

const text_model *text_model_by_gguf(const char *gguf_name) {
  for (size_t i = 0; i < COUNT; i++)
    if (strcmp(models[i].gguf_name, gguf_name) == 0) return &models[i];
  return NULL;
}

void text_model_list(bool gguf, char *out, size_t bytes) {
  size_t used = 0;
  out[0] = 0;
  for (size_t i = 0; i < COUNT && used < bytes; i++) {
    if (!gguf && i && strcmp(models[i].json_type, models[i - 1].json_type) == 0) continue;
    used += (size_t)snprintf(out + used, bytes - used, "%s'%s'", i ? ", " : "",
                             gguf ? models[i].gguf_name : models[i].json_type);
  }
}
