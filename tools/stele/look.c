/* What a path holds, and tables about artefacts and models that several subcommands show. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* Artefacts are ELF files, GGUF files begin with their name, tokenizer.json with a brace. A file
 * that is none of these is taken for a model, whose reader says what is wrong with it. */
cli_path_kind cli_path_look(const char *path) {
  char head[4] = {0};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CLI_PATH_MODEL;
  ssize_t n = read(fd, head, sizeof head);
  close(fd);
  const char *dot = strrchr(path, '.');
  if (n == 4 && memcmp(head,
                       "\x7f"
                       "ELF",
                       4) == 0)
    return CLI_PATH_ARTIFACT;
  if (n > 0 && dot && strcmp(dot, ".json") == 0) return CLI_PATH_TOKENIZER;
  if (n > 0 && dot && strcmp(dot, ".so") == 0) return CLI_PATH_ARTIFACT;
  return CLI_PATH_MODEL;
}

const char *cli_scheme_name(uint32_t scheme) {
  static const char *const names[] = {
#define SCHEME(id, name, ...) [STELE_##id] = name,
#include "weights/schemes.def"
#undef SCHEME
  };
  return scheme < sizeof names / sizeof names[0] && names[scheme] ? names[scheme] : "unknown";
}

json_t *cli_features_json(uint64_t features) {
  json_t *list = json_array();
  for (uint32_t bit = 0; bit < 64; bit++)
    if (features >> bit & 1)
      json_array_append_new(list, json_string(stele_feature_name((uint64_t)1 << bit)));
  return list;
}

json_t *cli_levels_json(uint64_t features) {
  static const stele_variant levels[] = {
#define LEVEL(id, name, processor, further, needs) {name, needs, NULL, 0, 0},
#define ALIAS(...)
#include "cpu/levels.def"
#undef LEVEL
#undef ALIAS
  };
  json_t *list = json_array();
  for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
    if (!(levels[i].features & ~features)) json_array_append_new(list, json_string(levels[i].name));
  return list;
}

/* "model.layers.7.mlp.up_proj.weight" is of class "model.layers.*.mlp.up_proj.weight". */
static void class_name(const char *name, char *out, size_t size) {
  size_t used = 0;
  for (const char *c = name; *c && used + 2 < size;) {
    bool number = (c == name || c[-1] == '.') && *c >= '0' && *c <= '9';
    size_t digits = number ? strspn(c, "0123456789") : 0;
    if (digits && (c[digits] == '.' || !c[digits])) {
      out[used++] = '*';
      c += digits;
    } else {
      out[used++] = *c++;
    }
  }
  out[used] = 0;
}

void cli_tensor_class_add(json_t *classes, const char *name, uint32_t scheme, uint64_t rows,
                          uint64_t columns, uint64_t bytes) {
  char key[256];
  class_name(name, key, sizeof key);
  size_t i;
  json_t *row;
  json_array_foreach(classes, i, row) {
    if (strcmp(json_string_value(json_object_get(row, "name")), key) != 0 ||
        strcmp(json_string_value(json_object_get(row, "scheme")), cli_scheme_name(scheme)) != 0)
      continue;
    json_t *count = json_object_get(row, "tensors"), *sum = json_object_get(row, "bytes");
    json_integer_set(count, json_integer_value(count) + 1);
    json_integer_set(sum, json_integer_value(sum) + (json_int_t)bytes);
    return;
  }
  json_array_append_new(classes,
                        json_pack("{s:s,s:i,s:s,s:I,s:I,s:I}", "name", key, "tensors", 1, "scheme",
                                  cli_scheme_name(scheme), "rows", (json_int_t)rows, "columns",
                                  (json_int_t)columns, "bytes", (json_int_t)bytes));
}
