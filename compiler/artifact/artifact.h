/* From a program, objects and weights to the artefact's file:
 *
 *   describe.c  what the artefact says of itself, as a stele_artifact in memory
 *   meta.c      that as an object with constant data and the query function
 *   link.c      objects to one shared object, in memory, by ld.lld
 *   rope.c      rows of the rope tables
 *   write.c     the file: code, weights, trailer */
#ifndef STELE_ARTIFACT_WRITER_H
#define STELE_ARTIFACT_WRITER_H

#include "base/base.h"
#include "stele/target.h"

struct fe_model;
struct fe_rope;

/* Emits the constant data of an artefact and stele_artifact_query as an object for a triple.
 * steps[i].run is not read: entry i of variant v refers to the hidden symbol stele_step_v_i. The
 * object is appended to out. */
stele_status artifact_emit_meta(const stele_artifact *artifact, const char *triple,
                                stele_sink *sink, base_buffer *out_object) STELE_MUST_USE;

/* Links objects of one triple into a shared object that exports stele_artifact_query alone and
 * needs libc and libm at most; any other undefined symbol is an error that names it. Deterministic,
 * and leaves no file anywhere. The bytes are appended to out_code. */
stele_status artifact_link(const stele_object *objects, uint32_t count, const char *triple,
                           stele_sink *sink, base_buffer *out_code) STELE_MUST_USE;

/* The row of a rope table for one position: rotary / 2 cosines, then as many sines, both times
 * the attention factor. out has room for rotary floats. */
void artifact_rope_row(const struct fe_rope *rope, uint64_t position, float *out);

#endif
