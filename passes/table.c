/* The table of passes: passes.def, readable. */
#include "internal.h"

#define OPTIMISING PASS_OPTIMISING
#define LOWERING PASS_LOWERING
#define REQUIRED PASS_REQUIRED
#define MODEL IR_MODEL
#define FUSED IR_FUSED
#define SCHEDULED IR_SCHEDULED
static const pass_info table[] = {
#define PASS(name, function, kind, before, after, summary) \
  {name, kind, before, after, summary, pass_##function},
#include "passes.def"
#undef PASS
};

const pass_info *pass_table(size_t *out_count) {
  *out_count = sizeof table / sizeof *table;
  return table;
}
