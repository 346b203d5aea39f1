/* Reading configuration fields. Which fields were read is kept in a set: what neutral.def lists
 * and nobody read must have its neutral value, so a family need only read what it understands. */
#include "frontend/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frontend/config_internal.h"

static const struct {
  const char *name, *gguf;
} fields[] = {
#define FIELD(name, gguf) {name, gguf},
#include "frontend/fields.def"
#undef FIELD
};

static const struct {
  const char *alias, *name;
} aliases[] = {
#define ALIAS(alias, name) {alias, name},
#include "frontend/aliases.def"
#undef ALIAS
};

static const struct {
  const char *name, *value;
} neutral[] = {
#define NEUTRAL(name, value) {name, value},
#include "frontend/neutral.def"
#undef NEUTRAL
};

static bool starts(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The field's name in the file that the user has before him. */
static void file_name(const fe_config *config, const char *field, char text[128]) {
  if (config->gguf)
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
      if (strcmp(fields[i].name, field) == 0) {
        snprintf(text, 128, "%s.%s", config->type, fields[i].gguf);
        return;
      }
  const char *alias = json_string_value(json_object_get(config->log->aliases, field));
  if (alias)
    snprintf(text, 128, "%s", alias);
  else if (config->old_form && strcmp(field, "rope_parameters.rope_theta") == 0)
    snprintf(text, 128, "rope_theta");
  else if (config->old_form && starts(field, "rope_parameters."))
    snprintf(text, 128, "rope_scaling.%s", field + strlen("rope_parameters."));
  else
    snprintf(text, 128, "%s", field);
}

void fe_config_bad(const fe_config *config, const char *field, const char *format, ...) {
  char name[128], message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  file_name(config, field, name);
  base_sink_add(config->log->sink, "'%s': '%s' %s", config->path, name, message);
  config->log->bad = true;
}

static json_t *lookup(const fe_config *config, const char *field) {
  const json_t *object = config->root;
  for (const char *dot; (dot = strchr(field, '.')); field = dot + 1)
    object = json_object_getn(object, field, (size_t)(dot - field));
  json_t *value = json_object_get(object, field);
  return json_is_null(value) ? NULL : value;
}

static const json_t *read_field(const fe_config *config, const char *field) {
  if (json_object_set_new(config->log->read, field, json_true()) != 0) config->log->failed = true;
  return lookup(config, field);
}

/* A value as a person may want to see it in a message. */
static void value_text(const json_t *value, char text[64]) {
  static const char *const names[] = {"an object", "an array"};
  if (json_is_object(value) || json_is_array(value)) {
    snprintf(text, 64, "%s", names[json_is_array(value)]);
    return;
  }
  size_t length = json_dumpb(value, text, 63, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
  if (length > 63) {
    snprintf(text, 64, "a long text");
    return;
  }
  text[length] = 0;
}

static void wrong(const fe_config *config, const char *field, const json_t *value,
                  const char *expected) {
  char text[64];
  value_text(value, text);
  fe_config_bad(config, field, "is %s, expected %s", text, expected);
  config->log->broken = true;
}

static void missing(const fe_config *config, const char *field) {
  fe_config_bad(config, field, "is missing");
  config->log->broken = true;
}

/* ---- readers --------------------------------------------------------------------------- */

const json_t *fe_config_get(const fe_config *config, const char *field) {
  return read_field(config, field);
}

static bool is_whole(const json_t *value, json_int_t least) {
  return json_is_integer(value) && json_integer_value(value) >= least &&
         json_integer_value(value) <= INT32_MAX;
}

uint32_t fe_config_count(const fe_config *config, const char *field, uint32_t fallback) {
  const json_t *value = read_field(config, field);
  if (!value) {
    if (fallback == FE_REQUIRED) missing(config, field);
    return fallback == FE_REQUIRED ? 1 : fallback;
  }
  if (is_whole(value, 1)) return (uint32_t)json_integer_value(value);
  wrong(config, field, value, "a whole number from 1 to 2147483647");
  return 1;
}

uint32_t fe_config_index(const fe_config *config, const char *field, uint32_t fallback) {
  const json_t *value = read_field(config, field);
  if (!value) return fallback;
  if (is_whole(value, 0)) return (uint32_t)json_integer_value(value);
  wrong(config, field, value, "a whole number from 0 to 2147483647");
  return fallback;
}

const json_t *fe_config_list(const fe_config *config, const char *field) {
  const json_t *list = read_field(config, field), *entry;
  bool good = json_is_array(list);
  size_t i;
  if (!list) return NULL;
  json_array_foreach(list, i, entry) good = good && is_whole(entry, 0);
  if (!good) fe_config_bad(config, field, "is not a list of whole numbers from 0");
  return good ? list : NULL;
}

bool fe_config_listed(const json_t *list, uint32_t number) {
  size_t i;
  const json_t *entry;
  json_array_foreach(list, i, entry) if (json_integer_value(entry) == number) return true;
  return false;
}

double fe_config_number(const fe_config *config, const char *field, double fallback) {
  const json_t *value = read_field(config, field);
  if (!value) {
    if (fallback < 0) missing(config, field);
    return fallback < 0 ? 1.0 : fallback;
  }
  double number = json_number_value(value);
  if (json_is_number(value) && isfinite(number) && number > 0) return number;
  wrong(config, field, value, "a number above 0");
  return 1.0;
}

bool fe_config_bool(const fe_config *config, const char *field, bool fallback) {
  const json_t *value = read_field(config, field);
  if (!value) return fallback;
  if (!json_is_boolean(value)) wrong(config, field, value, "true or false");
  return json_is_true(value);
}

const char *fe_config_text(const fe_config *config, const char *field, const char *fallback) {
  const json_t *value = read_field(config, field);
  if (!value) return fallback;
  if (!json_is_string(value)) wrong(config, field, value, "a string");
  return json_is_string(value) ? json_string_value(value) : fallback;
}

/* ---- neutral values -------------------------------------------------------------------- */

static bool same(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
  return json_equal(a, b);
}

static void check_neutral(const fe_config *config, const char *field, const json_t *expected) {
  const json_t *value = lookup(config, field);
  char text[64];
  if (!value || json_object_get(config->log->read, field) || same(value, expected)) return;
  value_text(expected, text);
  if (!json_is_array(value) || json_is_null(expected)) {
    char found[64];
    value_text(value, found);
    fe_config_bad(config, field, "is %s, which is not supported; only %s is", found, text);
    return;
  }
  for (size_t i = 0; i < json_array_size(value); i++) {
    if (same(json_array_get(value, i), expected)) continue;
    char found[64];
    value_text(json_array_get(value, i), found);
    fe_config_bad(config, field, "has %s at %zu, which is not supported; only %s is", found, i,
                  text);
    return;
  }
}

bool fe_config_sound(const fe_config *config) { return !config->log->broken; }

stele_status fe_config_status(const fe_config *config) {
  for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++) {
    json_t *expected = json_loads(neutral[i].value, JSON_DECODE_ANY, NULL);
    if (!expected)
      config->log->failed = true;
    else
      check_neutral(config, neutral[i].name, expected);
    json_decref(expected);
  }
  if (config->log->failed)
    return base_fail(config->log->sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", config->path);
  if (config->log->broken) return STELE_BAD_FORMAT;
  return config->log->bad ? STELE_UNSUPPORTED : STELE_OK;
}

/* ---- making one ------------------------------------------------------------------------ */

stele_status fe_config_create(base_arena *arena, const char *path, stele_sink *sink,
                              fe_config *out_config) {
  fe_config config = {.path = path, .root = json_object()};
  config.log = base_arena_alloc(arena, 1, sizeof *config.log);
  if (config.log)
    *config.log = (fe_config_log){.sink = sink, .read = json_object(), .aliases = json_object()};
  if (!config.root || !config.log || !config.log->read || !config.log->aliases) {
    fe_config_deinit(&config);
    return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", path);
  }
  *out_config = config;
  return STELE_OK;
}

void fe_config_deinit(fe_config *config) {
  json_decref(config->root);
  if (config->log) json_decref(config->log->read);
  if (config->log) json_decref(config->log->aliases);
  *config = (fe_config){0};
}

/* Fields under their usual names. A file that has both has one too many, unless they agree. */
static int resolve_aliases(fe_config *config) {
  int failed = 0;
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
    json_t *value = lookup(config, aliases[i].alias), *other = lookup(config, aliases[i].name);
    if (!value) continue;
    if (other && !json_equal(value, other)) {
      fe_config_bad(config, aliases[i].alias, "differs from '%s', which means the same",
                    aliases[i].name);
      continue;
    }
    failed |= json_object_set(config->root, aliases[i].name, value);
    failed |=
        json_object_set_new(config->log->aliases, aliases[i].name, json_string(aliases[i].alias));
    failed |= json_object_del(config->root, aliases[i].alias);
  }
  return failed;
}

/* rope_parameters as new files have them: rope_parameters, else rope_scaling with rope_theta. */
static int join_rope(fe_config *config) {
  json_t *rope = lookup(config, "rope_parameters");
  json_t *scaling = lookup(config, "rope_scaling");
  config->old_form = !rope;
  rope = rope ? json_incref(rope) : json_is_object(scaling) ? json_copy(scaling) : json_object();
  int failed = rope ? 0 : -1;
  if (config->old_form && scaling && !json_is_object(scaling))
    wrong(config, "rope_scaling", scaling, "an object");
  if (!json_is_object(rope)) {
    wrong(config, "rope_parameters", rope, "an object");
  } else {
    static const char *const outside[] = {"rope_theta", "partial_rotary_factor",
                                          "original_max_position_embeddings"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
      json_t *value = lookup(config, outside[i]);
      if (value && !json_object_get(rope, outside[i]))
        failed |= json_object_set(rope, outside[i], value);
    }
    json_t *type = json_object_get(rope, "type");
    if (type && !json_object_get(rope, "rope_type"))
      failed |= json_object_set(rope, "rope_type", type);
  }
  return failed | json_object_set_new(config->root, "rope_parameters", rope);
}

stele_status fe_config_from_json(base_arena *arena, const char *path, const json_t *root,
                                 stele_sink *sink, fe_config *out_config) {
  fe_config config = {0};
  BASE_TRY(fe_config_create(arena, path, sink, &config));
  int failed = json_object_update(config.root, (json_t *)(uintptr_t)root);
  failed |= resolve_aliases(&config);
  failed |= join_rope(&config);
  const char *type = fe_config_text(&config, "model_type", NULL);
  if (type) config.type = base_arena_copy(arena, type, strlen(type));
  stele_status status = STELE_OK;
  if (failed || config.log->failed || (type && !config.type))
    status = base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", path);
  else if (config.log->bad)
    status = STELE_BAD_FORMAT;
  else if (!type)
    status = base_fail(sink, STELE_BAD_FORMAT, "'%s': 'model_type' is missing", path);
  if (status != STELE_OK) {
    fe_config_deinit(&config);
    return status;
  }
  *out_config = config;
  return STELE_OK;
}
