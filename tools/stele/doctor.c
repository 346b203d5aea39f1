/* stele doctor: what this machine offers, whether the installation is whole, and whether an
 * artefact is intact, by its full hash. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

enum { BUFFER_BYTES = 256 << 20 };

typedef struct doctor_arguments {
  bool json;
} doctor_arguments;

static const cli_option options[] = {
    {CLI_FLAG, 0, "json", NULL, offsetof(doctor_arguments, json), 0, 0, NULL, "print JSON"},
    {0},
};

static bool on_path(const char *program) {
  const char *path = getenv("PATH");
  for (const char *at = path ? path : ""; *at;) {
    size_t length = strcspn(at, ":");
    char file[PATH_MAX];
    if ((size_t)snprintf(file, sizeof file, "%.*s/%s", (int)length, at, program) < sizeof file &&
        access(file, X_OK) == 0)
      return true;
    at += length + (at[length] == ':');
  }
  return false;
}

static json_t *machine_json(void) {
  static const uint64_t known[] = {STELE_FEATURE_AVX2, STELE_FEATURE_AVX512, STELE_FEATURE_VNNI,
                                   STELE_FEATURE_AVX_VNNI, STELE_FEATURE_AMX};
  uint64_t features = stele_machine_features(), absent = 0;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) absent |= known[i] & ~features;
  uint32_t workers = stele_machine_workers();
  double one = cli_read_bandwidth(BUFFER_BYTES, 1);
  double all = workers > 1 ? cli_read_bandwidth(BUFFER_BYTES, workers) : one;
  return json_pack("{s:o,s:o,s:o,s:I,s:f,s:f}", "features", cli_features_json(features),
                   "features_absent", cli_features_json(absent), "levels",
                   cli_levels_json(features), "workers", (json_int_t)workers,
                   "read_gb_per_s_one_thread", one / 1e9, "read_gb_per_s_all_workers", all / 1e9);
}

/* What is needed to compile and isn't there; an empty list when nothing is missing. */
static json_t *missing_json(void) {
  json_t *missing = json_array();
  cli_compiler compiler;
  char reason[1024], line[1200];
  if (cli_compiler_open(&compiler, reason, sizeof reason)) {
    cli_compiler_close(&compiler);
  } else {
    snprintf(line, sizeof line, "the compiler library, so 'stele compile' can't work: %s", reason);
    json_array_append_new(missing, json_string(line));
  }
  if (!on_path("ld.lld-22") && !on_path("ld.lld"))
    json_array_append_new(missing, json_string("ld.lld-22, so 'stele compile' can't link"));
  return missing;
}

/* An artefact that opens, can run here and has all its bytes. */
static int check_artifact(const cli_command *self, const char *path, json_t *report) {
  stele_sink sink = {0};
  stele_model *model = NULL;
  double start = cli_seconds();
  stele_status status = stele_model_open(path, NULL, &sink, &model);
  double open_seconds = cli_seconds() - start;
  if (status == STELE_OK) status = stele_model_verify(model, &sink);
  if (status == STELE_OK)
    json_object_set_new(report, "artefact",
                        json_pack("{s:s,s:b,s:s,s:f,s:f}", "path", path, "intact", 1, "variant",
                                  stele_model_variant(model)->name, "open_s", open_seconds,
                                  "verify_s", cli_seconds() - start - open_seconds));
  else
    json_array_append_new(json_object_get(report, "missing"), json_string("a sound artefact"));
  stele_model_close(model);
  return cli_status(self, status, &sink);
}

static void print_list(const char *title, const json_t *list, const char *none) {
  printf("%-26s", title);
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) printf(i ? ", %s" : "%s", json_string_value(item));
  puts(json_array_size(list) ? "" : none);
}

static void print_people(const json_t *report) {
  const json_t *machine = json_object_get(report, "machine");
  const json_t *artifact = json_object_get(report, "artefact");
  print_list("features", json_object_get(machine, "features"), "none beyond the baseline");
  print_list("features it lacks", json_object_get(machine, "features_absent"), "none");
  print_list("runs code for", json_object_get(machine, "levels"), "no level");
  printf("%-26s%" JSON_INTEGER_FORMAT "\n", "workers",
         json_integer_value(json_object_get(machine, "workers")));
  printf("%-26s%.1f GB/s with one thread, %.1f GB/s with all workers\n", "memory reads",
         json_real_value(json_object_get(machine, "read_gb_per_s_one_thread")),
         json_real_value(json_object_get(machine, "read_gb_per_s_all_workers")));
  print_list("missing", json_object_get(report, "missing"), "nothing");
  if (artifact)
    printf("%-26s%s: intact, runs as %s, opened in %.1f ms\n", "artefact",
           json_string_value(json_object_get(artifact, "path")),
           json_string_value(json_object_get(artifact, "variant")),
           1e3 * json_real_value(json_object_get(artifact, "open_s")));
}

static int run(const cli_command *self, int argc, char **argv) {
  doctor_arguments arguments = {0};
  const char *path;
  int code;
  if (!cli_parse(self, argc, argv, &arguments, &path, &code)) return code;
  json_t *report = json_pack("{s:o,s:o}", "machine", machine_json(), "missing", missing_json());
  if (!report) return cli_fail(self, "out of memory");
  if (path) code = check_artifact(self, path, report);
  if (arguments.json) {
    int printed = cli_json_print(self, report);
    return code == CLI_OK ? printed : code;
  }
  print_people(report);
  json_decref(report);
  return cli_finish(self, code);
}

const cli_command cli_command_doctor = {
    .name = "doctor",
    .operand = "OUT.so",
    .operand_optional = true,
    .synopsis = "[--json]",
    .description =
        "Shows the processor's features, the levels of --cpu that it runs, the workers that a "
        "session takes by default, what memory "
        "reads with one thread and with all, and what is missing to compile. With an artefact it "
        "also checks that it can run here and, by its full hash, that no byte of it changed.",
    .examples =
        "stele doctor\n"
        "stele doctor model.so\n",
    .options = options,
    .run = run,
};
