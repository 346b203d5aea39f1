/* stele compile: hands a model to the compiler and reports what was made. */
#include <stdlib.h>
#include <string.h>

#include "library.h"

typedef struct compile_arguments {
  const char *output, *target, *cpu, *cache_dtype, *weights_file, *dump_directory;
  uint32_t max_cache_len, prefill, verify, lanes, threads;
  bool precise, timing, quiet, json, list;
  cli_list skip;
} compile_arguments;

/* Values of --cpu, and what they are. */
static const char cpu_names[] =
    "native"
#define LEVEL(id, name, ...) "|" name
#define ALIAS(name, ...) "|" name
#include "cpu/levels.def"
#undef LEVEL
#undef ALIAS
    "|portable";
static const char cpu_help[] =
    "the processor: native"
#define LEVEL(id, name, ...) ", " name
#define ALIAS(name, ...) ", " name
#include "cpu/levels.def"
#undef LEVEL
#undef ALIAS
    ", or portable, which holds them all and picks when it is loaded "
    "[native]";

#define FIELD(name) offsetof(compile_arguments, name)
static const cli_option options[] = {
    {CLI_FILE, 'o', "output", "OUT.so", FIELD(output), 0, 0, NULL, "the artefact to write"},
    {CLI_COUNT, 'c', "max-cache-len", "N", FIELD(max_cache_len), 1, INT32_MAX, NULL,
     "tokens that a lane can hold [4096 or the model's maximum, whichever is less]"},
    {CLI_COUNT, 0, "prefill", "W", FIELD(prefill), 1, 65536, NULL,
     "tokens of a prompt that one step takes; 1: none but the decode step [128]"},
    {CLI_COUNT, 0, "verify", "W", FIELD(verify), 1, 65536, NULL,
     "tokens that a verify step checks at once, one more than run --prompt-lookup-num-tokens can "
     "draft; 1: no such step [8]"},
    {CLI_COUNT, 0, "lanes", "N", FIELD(lanes), 1, 16, NULL,
     "sequences that can be decoded at once; steps for 1, 2, 4 ... lanes are made [1]"},
    {CLI_TEXT, 0, "target", "NAME", FIELD(target), 0, 0, "cpu|ref|null",
     "what runs the model: cpu, ref (a plain interpreter) or null [cpu]"},
    {CLI_TEXT, 0, "cpu", "NAME", FIELD(cpu), 0, 0, cpu_names, cpu_help},
    {CLI_TEXT, 0, "cache-dtype", "NAME", FIELD(cache_dtype), 0, 0, "f32|f16|bf16|q8_0|q4_0",
     "how keys and values are stored: f32, f16, bf16, q8_0, q4_0 [f16; f32 for models in f32 and "
     "with "
     "--precise]"},
    {CLI_FILE, 0, "weights-file", "FILE", FIELD(weights_file), 0, 0, NULL,
     "put the weights into a file of their own, beside the artefact"},
    {CLI_FLAG, 0, "precise", NULL, FIELD(precise), 0, 0, NULL,
     "activations, cache and sums in float32"},
    {CLI_LIST, 0, "skip-pass", "NAME", FIELD(skip), 0, 0, NULL,
     "leave a pass out; may be repeated. Generated ids stay the same"},
    {CLI_FILE, 0, "dump-dir", "DIR", FIELD(dump_directory), 0, 0, NULL,
     "leave the IR after each stage, the program and the code in a folder"},
    {CLI_COUNT, 't', "threads", "N", FIELD(threads), 1, 4096, NULL,
     "threads that make code and pack weights [the processors at hand]"},
    {CLI_FLAG, 0, "list", NULL, FIELD(list), 0, 0, NULL,
     "list the targets and the passes in their order, and end"},
    {CLI_FLAG, 0, "timing", NULL, FIELD(timing), 0, 0, NULL, "show how long each stage took"},
    {CLI_FLAG, 0, "json", NULL, FIELD(json), 0, 0, NULL, "report as JSON on standard output"},
    {CLI_FLAG, 'q', "quiet", NULL, FIELD(quiet), 0, 0, NULL, "no progress, no summary"},
    {0},
};
#undef FIELD

static json_t *report_json(const char *path, const stele_compile_report *report) {
  json_t *phases = json_array();
  for (uint32_t i = 0; i < report->phase_count; i++)
    json_array_append_new(phases, json_pack("{s:s,s:f}", "name", report->phases[i].name, "seconds",
                                            report->phases[i].seconds));
  return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:s,s:o}", "output", path,
                   "artifact_bytes", (json_int_t)report->artifact_bytes, "code_bytes",
                   (json_int_t)report->code_bytes, "weight_bytes", (json_int_t)report->weight_bytes,
                   "workspace_bytes", (json_int_t)report->workspace_bytes, "cache_bytes",
                   (json_int_t)report->cache_bytes, "peak_memory_bytes",
                   (json_int_t)report->peak_memory_bytes, "capacity", (json_int_t)report->capacity,
                   "model_positions", (json_int_t)report->model_positions, "seconds",
                   report->seconds, "note", report->note, "phases", phases);
}

static void print_timing(const stele_compile_report *report) {
  for (uint32_t i = 0; i < report->phase_count; i++)
    cli_note("  %8.3f s  %s", report->phases[i].seconds, report->phases[i].name);
}

static void print_summary(const char *path, const stele_compile_report *report) {
  char file[32], code[32], weights[32], peak[32], cache[32];
  cli_note("%s: %s (code %s, weights %s), cache of %u tokens %s; %.2f s, peak memory %s", path,
           cli_bytes(report->artifact_bytes, file), cli_bytes(report->code_bytes, code),
           cli_bytes(report->weight_bytes, weights), report->capacity,
           cli_bytes(report->cache_bytes, cache), report->seconds,
           cli_bytes(report->peak_memory_bytes, peak));
}

static int list_tables(const cli_command *self, const cli_compiler *compiler) {
  const char *name, *summary;
  puts("targets:");
  for (size_t i = 0; compiler->target_describe(i, &name, &summary); i++)
    printf("  %-22s %s\n", name, summary);
  puts("passes:");
  for (size_t i = 0; compiler->pass_describe(i, &name, &summary); i++)
    printf("  %-22s %s\n", name, summary);
  return cli_finish(self, CLI_OK);
}

static stele_compile_options to_options(const compile_arguments *arguments,
                                        cli_progress *progress) {
  return (stele_compile_options){
      .struct_bytes = sizeof(stele_compile_options),
      .max_cache_len = arguments->max_cache_len,
      .prefill = arguments->prefill,
      .verify = arguments->verify,
      .lanes = arguments->lanes,
      .threads = arguments->threads,
      .target = arguments->target,
      .cpu = arguments->cpu,
      .cache_dtype = arguments->cache_dtype,
      .weights_file = arguments->weights_file,
      .precise = arguments->precise,
      .dump_directory = arguments->dump_directory,
      .skip_passes = arguments->skip.count ? arguments->skip.items : NULL,
      .progress = cli_progress_update,
      .progress_data = progress,
  };
}

static int compile(const cli_command *self, const compile_arguments *arguments, const char *model,
                   const cli_compiler *compiler) {
  cli_progress progress;
  cli_progress_init(&progress, arguments->quiet);
  stele_compile_options given = to_options(arguments, &progress);
  stele_compile_report report = {0};
  stele_sink sink = {0};
  stele_status status = compiler->compile(model, arguments->output, &given, &sink, &report);
  cli_progress_end(&progress);
  if (status != STELE_OK) return cli_status(self, status, &sink);
  if (report.note[0] && !arguments->quiet) cli_note("note: %s", report.note);
  if (arguments->timing && !arguments->json) print_timing(&report);
  if (arguments->json) return cli_json_print(self, report_json(arguments->output, &report));
  if (!arguments->quiet) print_summary(arguments->output, &report);
  return CLI_OK;
}

static int run(const cli_command *self, int argc, char **argv) {
  compile_arguments arguments = {0};
  const char *model;
  int code;
  if (!cli_parse(self, argc, argv, &arguments, &model, &code)) return code;
  if (arguments.list && arguments.json)
    return cli_wrong_use(self, "--list is for people: it can't be combined with --json");
  if (!arguments.list && !model) return cli_wrong_use(self, "MODEL is missing");
  if (!arguments.list && !arguments.output) return cli_wrong_use(self, "--output is missing");
  cli_compiler compiler;
  char reason[1024];
  if (!cli_compiler_open(&compiler, reason, sizeof reason))
    return cli_fail(self, "the compiler can't be loaded: %s", reason);
  code =
      arguments.list ? list_tables(self, &compiler) : compile(self, &arguments, model, &compiler);
  cli_compiler_close(&compiler);
  return code;
}

const cli_command cli_command_compile = {
    .name = "compile",
    .operand = "MODEL",
    .operand_optional = true,
    .synopsis = "-o OUT.so [options]",
    .description =
        "Compiles a model into one shared object that holds its code, its weights in the layout "
        "its kernels read, and its tokenizer. MODEL is a Hugging Face directory (config.json, "
        "model.safetensors, tokenizer.json) or a GGUF file. The file appears under its name only "
        "when it is complete; compiling twice gives the same bytes.",
    .examples =
        "stele compile SmolLM2-135M-Instruct.Q4_1.gguf -o smol.so\n"
        "# a longer cache, for any x86-64 processor, with timings\n"
        "stele compile model/ -o model.so --max-cache-len 8192 --cpu portable --timing\n"
        "# the reference interpreter in float32, to compare with\n"
        "stele compile model/ -o ref.so --target ref --precise\n",
    .options = options,
    .run = run,
};
