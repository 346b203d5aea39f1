/* stele inspect: everything that an artefact or a model says of itself, as JSON or laid out for
 * people. Both forms are made of the same JSON value. */
#include <inttypes.h>
#include <string.h>

#include "cli.h"

typedef struct inspect_arguments {
  bool json, families;
} inspect_arguments;

static const cli_option options[] = {
    {CLI_FLAG, 0, "families", NULL, offsetof(inspect_arguments, families), 0, 0, NULL,
     "list the families of models that can be compiled"},
    {CLI_FLAG, 0, "json", NULL, offsetof(inspect_arguments, json), 0, 0, NULL, "print JSON"},
    {0},
};

/* ---- an artefact as JSON ---------------------------------------------------------------- */

static const char *name_of(const char *const *names, size_t count, uint32_t i) {
  return i < count ? names[i] : "unknown";
}

/* How many ops each device has in a step; an op that meets inside is one, though it has two rows.
 */
static json_t *ops_json(const stele_artifact *artifact, const stele_step_phases *phases) {
  json_t *counts = json_object();
  for (uint32_t i = 0; i < phases->op_count; i++) {
    const stele_phase_op *op = &phases->ops[i], *before = i ? op - 1 : NULL;
    if (before && before->name == op->name && before->weight[0] >= 0 && op->weight[0] < 0) continue;
    char name[64];
    snprintf(name, sizeof name, "device %u", op->device);
    const char *key = op->device ? name : artifact->target;
    json_int_t old = json_integer_value(json_object_get(counts, key));
    json_object_set_new(counts, key, json_integer(old + 1));
  }
  return counts;
}

/* With how many phases, and so meetings of the workers between them, where the artefact says so. */
static json_t *steps_json(const stele_model *model, const stele_variant *variant) {
  static const char *const kinds[] = {"decode", "prefill", "verify", "encode"};
  static const char *const outputs[] = {"none", "token", "last", "all", "hidden"};
  json_t *list = json_array();
  for (uint32_t i = 0; i < variant->step_count; i++) {
    const stele_step *step = &variant->steps[i];
    const stele_step_phases *phases = stele_model_phases(model, step);
    json_array_append_new(
        list, json_pack("{s:s,s:I,s:I,s:s,s:I,s:o*,s:o*}", "kind", name_of(kinds, 4, step->kind),
                        "lanes", (json_int_t)step->lanes, "width", (json_int_t)step->width,
                        "output", name_of(outputs, 5, step->output), "bytes_per_call",
                        (json_int_t)step->bytes_per_call, "phases",
                        phases ? json_integer(phases->phase_count) : NULL, "ops",
                        phases ? ops_json(stele_model_artifact(model), phases) : NULL));
  }
  return list;
}

static json_t *variants_json(const stele_artifact *artifact, const stele_variant *chosen) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < artifact->variant_count; i++) {
    const stele_variant *variant = &artifact->variants[i];
    json_array_append_new(
        list, json_pack("{s:s,s:o,s:b}", "name", variant->name, "features",
                        cli_features_json(variant->features), "chosen", variant == chosen));
  }
  return list;
}

static json_t *groups_json(const stele_artifact *artifact, uint64_t *out_bytes) {
  static const char *const kinds[] = {"full", "window", "chunk", "cross", "state"};
  json_t *list = json_array();
  uint64_t sum = 0;
  for (uint32_t i = 0; i < artifact->group_count; i++) {
    const stele_group *group = &artifact->groups[i];
    uint64_t page = group->page_bytes * group->layers;
    uint64_t bytes = page * stele_group_lane_pages(group) + group->state_bytes * group->layers;
    sum += bytes;
    json_array_append_new(
        list,
        json_pack("{s:s,s:I,s:I,s:I,s:I,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "kind",
                  name_of(kinds, 5, group->kind), "layers", (json_int_t)group->layers, "kv_heads",
                  (json_int_t)group->kv_heads, "key_head", (json_int_t)group->key_head,
                  "value_head", (json_int_t)group->value_head, "key_scheme",
                  cli_scheme_name(group->key_scheme), "value_scheme",
                  cli_scheme_name(group->value_scheme), "capacity", (json_int_t)group->capacity,
                  "window", (json_int_t)group->window, "page_tokens",
                  (json_int_t)group->page_tokens, "page_bytes", (json_int_t)page, "state_bytes",
                  (json_int_t)(group->state_bytes * group->layers), "bytes_at_capacity",
                  (json_int_t)bytes));
  }
  *out_bytes = sum;
  return list;
}

static json_t *classes_json(const stele_artifact *artifact) {
  json_t *classes = json_array();
  for (uint32_t i = 0; i < artifact->weight_count; i++) {
    const stele_weight *weight = &artifact->weights[i];
    cli_tensor_class_add(classes, weight->name, weight->scheme, weight->rows, weight->columns,
                         weight->bytes);
  }
  return classes;
}

/* A JSON text of the artefact as a value, null where there is none. */
static json_t *embedded_json(const char *text) {
  json_t *value = text ? json_loads(text, 0, NULL) : NULL;
  return value ? value : json_null();
}

static json_t *artifact_json(const char *path, const stele_model *model) {
  const stele_artifact *a = stele_model_artifact(model);
  const stele_variant *variant = stele_model_variant(model);
  char fingerprint[40];
  snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64 "%016" PRIx64, a->fingerprint[0],
           a->fingerprint[1]);
  uint64_t cache_bytes;
  json_t *groups = groups_json(a, &cache_bytes), *stops = json_array();
  for (uint32_t i = 0; i < a->stop_count; i++)
    json_array_append_new(stops, json_integer(a->stop_ids[i]));
  json_t *json = json_pack(
      "{s:s,s:s,s:I,s:s,s:s,s:s,s:s,s:o,s:I,s:I,s:I,s:I,s:I,s:I}", "kind", "artefact", "path", path,
      "abi", (json_int_t)a->abi, "producer", a->producer, "fingerprint", fingerprint, "target",
      a->target, "triple", a->triple, "description", embedded_json(a->description), "capacity",
      (json_int_t)a->capacity, "model_positions", (json_int_t)a->model_positions, "max_lanes",
      (json_int_t)a->max_lanes, "prefill_width", (json_int_t)a->prefill_width, "max_workers",
      (json_int_t)a->max_workers, "workspace_bytes", (json_int_t)a->workspace_bytes);
  json_t *rest = json_pack(
      "{s:o,s:o,s:o,s:I,s:o,s:I,s:s*,s:b,s:I,s:b,s:o,s:o,s:s*}", "variants",
      variants_json(a, variant), "steps", steps_json(model, variant), "layer_groups", groups,
      "cache_bytes_at_capacity", (json_int_t)cache_bytes, "tensor_classes", classes_json(a),
      "weight_bytes", (json_int_t)a->weights_bytes, "weights_file", a->weights_file, "tokenizer",
      (int)(a->tokenizer != NULL), "tokenizer_bytes", (json_int_t)a->tokenizer_bytes,
      "chat_template", (int)(a->chat_template != NULL), "generation_defaults",
      embedded_json(a->generation_defaults), "stop_ids", stops, "stop_source", a->stop_source);
  if (json && rest) json_object_update(json, rest);
  json_decref(rest);
  return json;
}

/* ---- for people ------------------------------------------------------------------------- */

static void print_scalar(const json_t *value) {
  switch (json_typeof(value)) {
    case JSON_STRING:
      fputs(json_string_value(value), stdout);
      break;
    case JSON_INTEGER:
      printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
      break;
    case JSON_REAL:
      printf("%g", json_real_value(value));
      break;
    case JSON_TRUE:
      fputs("yes", stdout);
      break;
    case JSON_FALSE:
      fputs("no", stdout);
      break;
    case JSON_NULL:
      fputs("none", stdout);
      break;
    default:
      json_dumpf(value, stdout, JSON_COMPACT);
  }
}

static bool is_bytes(const char *key) { return strstr(key, "bytes") != NULL; }

static void print_value(const char *key, const json_t *value) {
  char size[32];
  if (json_is_integer(value) && is_bytes(key))
    fputs(cli_bytes((uint64_t)json_integer_value(value), size), stdout);
  else
    print_scalar(value);
}

static bool is_table(const json_t *value) {
  return json_is_array(value) && json_array_size(value) && json_is_object(json_array_get(value, 0));
}

/* One line a row: "key value, key value". The first value stands alone. */
static void print_table(const char *title, json_t *rows) {
  printf("%s\n", title);
  size_t i;
  json_t *row, *value;
  const char *key;
  json_array_foreach(rows, i, row) {
    bool first = true;
    json_object_foreach(row, key, value) {
      fputs(first ? "  " : ", ", stdout);
      if (!first) printf("%s ", key);
      print_value(key, value);
      first = false;
    }
    putchar('\n');
  }
}

static void print_people(const char *indent, json_t *json) {
  const char *key;
  json_t *value;
  json_object_foreach(json, key, value) {
    if (is_table(value)) {
      print_table(key, value);
    } else if (json_is_object(value)) {
      printf("%s%s\n", indent, key);
      print_people("  ", value);
    } else {
      printf("%s%-24s ", indent, key);
      print_value(key, value);
      putchar('\n');
    }
  }
}

static int run(const cli_command *self, int argc, char **argv) {
  inspect_arguments arguments = {0};
  const char *path;
  int code;
  if (!cli_parse(self, argc, argv, &arguments, &path, &code)) return code;
  json_t *json = NULL;
  if (arguments.families && path)
    return cli_wrong_use(self, "--families lists all of them: it takes no '%s'", path);
  if (!arguments.families && !path) return cli_wrong_use(self, "%s is missing", self->operand);
  if (arguments.families) {
    code = cli_families(self, &json);
  } else if (cli_path_look(path) == CLI_PATH_ARTIFACT) {
    stele_sink sink = {0};
    stele_model *model = NULL;
    code = cli_status(self, stele_model_open(path, NULL, &sink, &model), &sink);
    if (code == CLI_OK) json = artifact_json(path, model);
    stele_model_close(model);
  } else {
    code = cli_model_inspect(self, path, &json);
  }
  if (code != CLI_OK) return code;
  if (!json) return cli_fail(self, "cannot describe '%s': a text in it is not UTF-8", path);
  if (arguments.json) return cli_json_print(self, json);
  print_people("", json);
  json_decref(json);
  return cli_finish(self, CLI_OK);
}

const cli_command cli_command_inspect = {
    .name = "inspect",
    .operand = "(OUT.so | MODEL)",
    .operand_optional = true,
    .synopsis = "[--json]",
    .description =
        "Shows what an artefact or a model holds: description, steps, layer groups and "
        "their bytes of cache, scheme and bytes of each class of tensors, processor "
        "features, stop ids and where they came from. With --families, the families of models that "
        "can be compiled, with the model_type of config.json and the architecture of GGUF files "
        "that belong to each.",
    .examples =
        "stele inspect model.so\n"
        "# a model's files, before compiling\n"
        "stele inspect SmolLM2-135M-Instruct.Q4_1.gguf --json\n"
        "stele inspect --families\n",
    .options = options,
    .run = run,
};
