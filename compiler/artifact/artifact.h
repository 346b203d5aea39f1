/* From a program, objects and weights to the artefact's file:
 *
 *   describe.c  what the artefact says of itself, as a stele_artifact in memory
 *   phases.c    what its steps consist of
 *   meta.c      that as an object with constant data and the query function
 *   link.c      objects to one shared object, in memory, by ld.lld
 *   rope.c      rows of the rope tables
 *   pack.c      one weight at a time, in the target's layout
 *   write.c     the file: code, weights, trailer */
#ifndef STELE_ARTIFACT_WRITER_H
#define STELE_ARTIFACT_WRITER_H

#include "base/base.h"
#include "stele/target.h"

struct fe_model;
struct fe_rope;

/* What an artefact is made of. Borrowed; lives as long as the calls below. */
typedef struct artifact_source {
  const struct fe_model *model;
  const stele_program *program;
  const stele_target *target;
  void *target_self;
  const char *cpu;
  const char *output;       /* where the artefact goes */
  const char *weights_file; /* as the user gave it, or NULL: in the artefact */
  bool precise;
  uint32_t cache_scheme;
  uint32_t threads; /* that pack weights */
  void (*progress)(void *progress_data, const char *phase, uint64_t done, uint64_t total);
  void *progress_data;
} artifact_source;

/* Fills in everything but the functions of the steps. Reads all weights once, for the
 * fingerprint. What out_artifact points to is the arena's or the source's. */
stele_status artifact_describe(const artifact_source *source, base_arena *arena, stele_sink *sink,
                               stele_artifact *out_artifact) STELE_MUST_USE;

/* Fills in step_phases and op_names; false when there is no memory. */
bool artifact_phases(const stele_program *program, base_arena *arena,
                     stele_artifact *out) STELE_MUST_USE;

/* Emits the constant data of an artefact and stele_artifact_query as an object for a triple.
 * steps[i].run is not read: entry i of variant v refers to the hidden symbol stele_step_v_i. The
 * object is appended to out. */
stele_status artifact_emit_meta(const stele_artifact *artifact, const char *triple,
                                stele_sink *sink, base_buffer *out_object) STELE_MUST_USE;

/* Links objects of one triple into a shared object that exports stele_artifact_query alone and
 * needs libc and libm at most; any other undefined symbol is an error that names it. Deterministic,
 * and leaves no file anywhere. The bytes are appended to out_code. */
stele_status artifact_link(const stele_object *objects, uint32_t count, stele_sink *sink,
                           base_buffer *out_code) STELE_MUST_USE;

/* The row of a rope table for one position: rotary / 2 cosines, then as many sines, both times
 * the attention factor. out has room for rotary floats. */
void artifact_rope_row(const struct fe_rope *rope, uint64_t position, float *out);

/* Writes weight i of the program, packed, to out (bytes of the weight, zeroed). */
stele_status artifact_pack_weight(const artifact_source *source, uint32_t i, stele_sink *sink,
                                  uint8_t *out) STELE_MUST_USE;
/* Tells the system that a piece of a mapped file is no longer needed in memory. */
void artifact_forget(const void *data, size_t bytes);

/* Where the weights go and what the artefact calls that file, both in the arena; NULL where they
 * are inside. */
stele_status artifact_weights_path(const artifact_source *source, base_arena *arena,
                                   stele_sink *sink, const char **out_path,
                                   const char **out_name) STELE_MUST_USE;
/* Writes code and weights to source->output (and the weights' own file), or leaves nothing. */
stele_status artifact_write(const artifact_source *source, const void *code, size_t code_bytes,
                            stele_sink *sink, uint64_t *out_bytes) STELE_MUST_USE;

#endif
