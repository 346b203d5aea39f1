/* What the builders of linear ops and of attention share. */
#ifndef CTS_BUILD_H
#define CTS_BUILD_H

#include "cts.h"

bool cts_mode_quantises(cts_mode mode);
/* Sets input, prologue, activation and the buffer of the prepared rows by the case's mode. */
void cts_linear_input(cts_program *p, stele_op *op, uint32_t columns, int32_t partial);
double cts_linear_tolerance(cts_mode mode);
/* A logit per head for the op, where the shape says so. */
void cts_sinks(cts_program *p, stele_op *op);
/* cache_update and attention_partial; returns the buffer of the parts. */
int32_t cts_attention_parts(cts_program *p, const cts_shape *s);

#endif
