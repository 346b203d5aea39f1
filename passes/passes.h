/* The passes as a table, and the program that comes out of them: printed, checked.
 *
 * Attributes that the scheduled level adds to ops (flatten reads them, whoever wrote them):
 *   activation = "f32" | "q8_0"   linear ops, prepare: the scheme in which weights meet activations
 *   result = "q8_0"               gate_up: writes its result in that scheme
 *   tiles, tile_rows              as in program.h
 *   barrier = 1                   all workers meet before this op
 *   logits = 1                    linear: writes straight to the step's output
 *   buffer, prepared, scratch, stage = [offset, bytes, tokens, columns, scheme, per_worker]
 *                                 pieces of the workspace, as stele_buffer has them
 *   workspace                     on the step: the bytes it needs */
#ifndef STELE_PASSES_H
#define STELE_PASSES_H

#include "base/base.h"
#include "stele/pass.h"

/* All passes in the order in which they run. */
const pass_info *pass_table(size_t *out_count);

/* Appends the program as text for people, one line per step, op, buffer, weight, group. */
void program_print(const stele_program *program, base_buffer *out);

/* Checks a program before a target trusts it: sizes of tables, indices, that every buffer lies in
 * the workspace and every weight in the weights, that ops have what their kind needs, and that
 * no worker touches memory that another writes unless a barrier lies between. Needs no MLIR.
 * Lists all faults it finds, up to what the sink holds. */
stele_status program_check(const stele_program *program, stele_sink *sink) STELE_MUST_USE;

#endif
