/* The compiler as a library: a model's files in, an artefact out. Loaded only by who compiles;
 * running an artefact needs libstele alone. */
#ifndef STELE_COMPILER_H
#define STELE_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stele/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise, set struct_bytes, then what differs from the defaults in brackets. Strings
 * are read during the call only. */
typedef struct stele_compile_options {
  uint32_t struct_bytes;
  uint32_t max_cache_len;   /* tokens a lane can hold [4096 or the model's maximum] */
  uint32_t prefill;         /* tokens of a prefill step, 1: none [128] */
  uint32_t verify;          /* tokens of a verify step, 1: none [8] */
  uint32_t lanes;           /* 1 to 16 [1] */
  uint32_t threads;         /* that make code and pack weights [the processors at hand] */
  const char *target;       /* ["cpu"] */
  const char *cpu;          /* ["native"] */
  const char *cache_dtype;  /* f32, f16, bf16, q8_0, q4_0 [f16, f32 when precise or the weights
                               are f32] */
  const char *weights_file; /* put the weights into this file instead [NULL] */
  bool precise;
  const char *dump_directory;     /* IR after each stage, program, code [NULL] */
  const char *const *skip_passes; /* names, NULL at the end [NULL] */

  /* Called now and then with how much of the work is done; NULL: not. */
  void (*progress)(void *progress_data, const char *phase, uint64_t done, uint64_t total);
  void *progress_data;
} stele_compile_options;

typedef struct stele_compile_phase {
  const char *name;
  double seconds;
} stele_compile_phase;

/* What was made. */
typedef struct stele_compile_report {
  uint64_t artifact_bytes, code_bytes, weight_bytes, workspace_bytes;
  uint64_t cache_bytes; /* of a lane that is full */
  uint64_t peak_memory_bytes;
  double seconds;
  uint32_t capacity, model_positions;
  uint32_t phase_count;
  stele_compile_phase phases[40]; /* front-end, each pass, target, link, weights */
  char note[256];                 /* something the user should know, or empty */
} stele_compile_report;

/* Compiles the model at model_path into output_path. On failure nothing is left at output_path
 * that was not there before, and the sink says why. */
STELE_API stele_status stele_compile(const char *model_path, const char *output_path,
                                     const stele_compile_options *options, stele_sink *sink,
                                     stele_compile_report *out_report) STELE_MUST_USE;

/* Runs passes on IR text: what stele-opt does. text is a module at the level that start_from
 * expects (NULL: at model level); model_path: the model that its weights come from, may be NULL.
 * With text NULL the module is built from the model. The printed result is malloc'd. */
typedef struct stele_opt_options {
  uint32_t struct_bytes;
  const char *model_path;
  const char *start_from, *stop_after;
  const char *only; /* comma-separated pass names instead of the whole order, or NULL */
  stele_compile_options compile;
} stele_opt_options;
STELE_API stele_status stele_opt(const char *text, const char *file_name,
                                 const stele_opt_options *options, stele_sink *sink,
                                 stele_compile_report *out_report, char **out_text) STELE_MUST_USE;

/* Tables for people: name and summary of pass or target i; false above the last. */
STELE_API bool stele_pass_describe(size_t i, const char **out_name, const char **out_summary);
STELE_API bool stele_target_describe(size_t i, const char **out_name, const char **out_summary);

#ifdef __cplusplus
}
#endif
#endif
