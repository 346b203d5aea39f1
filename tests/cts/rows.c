/* The rows of cts.def as data. */
#include "cts.h"

const cts_row cts_rows[] = {
#define CTS(op, builder, name, ...) \
  {STELE_OP_##op, #builder, name, cts_build_##builder, {__VA_ARGS__}},
#include "cts.def"
#undef CTS
};
const size_t cts_row_count = sizeof cts_rows / sizeof cts_rows[0];
