/* Shared by the files of this folder only. */
#ifndef STELE_IR_INTERNAL_H
#define STELE_IR_INTERNAL_H

#include <mlir-c/Diagnostics.h>

#include "ir/ir.h"

struct ir_context {
  MlirContext mlir;
  stele_sink *sink; /* where diagnostics go now; may be NULL */
  base_buffer irdl;
};

/* One entry of a list in ops.def: "name:kind", a '?' after name or kind when it may be absent. */
typedef struct ir_spec {
  const char *name;
  size_t length;
  char kind; /* f, i, c for values; s, i, f, a for attributes */
  bool optional;
} ir_spec;
/* Reads the next entry and moves the cursor past it; false at the end of the list. */
bool ir_spec_next(const char **cursor, ir_spec *out_spec);

/* Whether an attribute is of a kind of ops.def: s string, i 64-bit integer, f double, a array of
 * 64-bit integers. False for a null attribute. */
bool ir_attribute_is(MlirAttribute attribute, char kind);

/* A step's block ends with an op of this name: MLIR wants a terminator, and ops that IRDL defines
 * can't be one, so this op is left unregistered. It means nothing and no walk visits it. */
#define IR_TERMINATOR "step.end"
bool ir_is_terminator(MlirOperation op);

static inline MlirStringRef ir_text(const char *text) {
  return mlirStringRefCreateFromCString(text);
}

/* "file:line:column: ", or nothing where the location is none of a file. */
void ir_location_text(MlirLocation location, char *out, size_t size);

/* Adds a diagnostic of MLIR to the sink as a line, its place first. */
void ir_diagnostic_add(MlirDiagnostic diagnostic, stele_sink *sink);

/* Appends the dialect as IRDL text, in parts with this line (MLIR's own for such files) between. */
#define IR_IRDL_SPLIT "// -----\n"
void ir_irdl_generate(base_buffer *out);

#endif
