/* The table of targets.def as data. */
#include "table.h"

#include <string.h>

static const stele_target *const targets[] = {
#define TARGET(name) &name##_target,
#include "targets.def"
#undef TARGET
};

const stele_target *const *tgt_table(size_t *out_count) {
  *out_count = sizeof targets / sizeof targets[0];
  return targets;
}

const stele_target *tgt_find(const char *name) {
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
    if (strcmp(targets[i]->name, name) == 0) return targets[i];
  return NULL;
}
