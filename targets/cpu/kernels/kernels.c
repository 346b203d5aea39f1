/* All kernels as one unit: compiled once per instruction-set variant to the bitcode that the
 * emitter links into a model's module. */
#include "linear.c"

#include "attention.c"
#include "experts.c"
#include "heads.c"
#include "qkv.c"
#include "route.c"
#include "rows.c"
#include "step.c"
