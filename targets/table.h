/* The targets inside the tree, as the compiler's core is handed them. */
#ifndef TGT_TABLE_H
#define TGT_TABLE_H

#include "stele/target.h"

#define TARGET(name) extern const stele_target name##_target;
#include "targets.def"
#undef TARGET

/* In the order of targets.def, the default first. */
const stele_target *const *tgt_table(size_t *out_count);
/* NULL when no target has that name. */
const stele_target *tgt_find(const char *name);

#endif
