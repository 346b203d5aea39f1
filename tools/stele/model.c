/* What `tokenize` and `inspect` need of a model's files: the front-ends, which need no LLVM. */
#include "cli.h"
#include "frontend/frontend.h"
#include "weights/weights.h"

int cli_model_tokenizer(const cli_command *command, const char *path, base_buffer *out_blob) {
  stele_sink sink = {0};
  fe_model *model = NULL;
  stele_status status = fe_model_open(path, &sink, &model);
  if (status == STELE_OK) status = fe_tokenizer_blob(model, &sink, out_blob);
  fe_model_destroy(model);
  return cli_status(command, status, &sink);
}

static json_t *description_json(const fe_model *model) {
  return json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b,s:s}", "family", model->family,
                   "name", model->name, "vocab", (json_int_t)model->vocab, "hidden",
                   (json_int_t)model->hidden, "layers", (json_int_t)model->layers, "heads",
                   (json_int_t)model->heads, "kv_heads", (json_int_t)model->kv_heads, "key_head",
                   (json_int_t)model->key_head, "value_head", (json_int_t)model->value_head,
                   "intermediate", (json_int_t)model->intermediate, "model_positions",
                   (json_int_t)model->model_positions, "tied", (int)model->tied, "weight_scheme",
                   cli_scheme_name(model->weight_scheme_class));
}

static json_t *classes_json(const fe_model *model, uint64_t *out_bytes) {
  json_t *classes = json_array();
  uint64_t sum = 0;
  for (uint32_t i = 0; i < model->weight_count; i++) {
    const fe_weight *weight = &model->weights[i];
    size_t row = 0;
    uint64_t bytes =
        weights_row_bytes(weight->scheme, weight->columns, &row) ? weight->rows * row : 0;
    cli_tensor_class_add(classes, weight->name, weight->scheme, weight->rows, weight->columns,
                         bytes);
    sum += bytes;
  }
  *out_bytes = sum;
  return classes;
}

int cli_model_inspect(const cli_command *command, const char *path, json_t **out_json) {
  stele_sink sink = {0};
  fe_model *model = NULL;
  stele_status status = fe_model_open(path, &sink, &model);
  if (status != STELE_OK) return cli_status(command, status, &sink);
  uint64_t bytes;
  json_t *classes = classes_json(model, &bytes), *stops = json_array();
  for (uint32_t i = 0; i < model->stop_count; i++)
    json_array_append_new(stops, json_integer(model->stop_ids[i]));
  bool tokenizer = model->tokenizer_json || model->gguf;
  json_t *json =
      json_pack("{s:s,s:s,s:o,s:o,s:I,s:o,s:s*,s:b,s:b}", "kind", "model", "path", path,
                "description", description_json(model), "tensor_classes", classes, "weight_bytes",
                (json_int_t)bytes, "stop_ids", stops, "stop_source", model->stop_source,
                "tokenizer", (int)tokenizer, "chat_template", (int)(model->chat_template != NULL));
  fe_model_destroy(model);
  if (!json) return cli_fail(command, "cannot describe '%s': a name in it is not UTF-8", path);
  *out_json = json;
  return CLI_OK;
}

static json_t *names_json(const char *const *names) {
  json_t *list = json_array();
  for (; *names; names++) json_array_append_new(list, json_string(*names));
  return list;
}

int cli_families(const cli_command *command, json_t **out_json) {
  size_t count;
  const fe_family *const *families = fe_families(&count);
  json_t *list = json_array();
  for (size_t i = 0; i < count; i++)
    json_array_append_new(
        list, json_pack("{s:s,s:s,s:o,s:o}", "name", families[i]->name, "models",
                        families[i]->summary, "model_type", names_json(families[i]->hf_types),
                        "gguf", names_json(families[i]->gguf_architectures)));
  *out_json = json_pack("{s:o}", "families", list);
  return *out_json ? CLI_OK : cli_fail(command, "out of memory");
}
