/* What a pass is. Passes live in passes/, one file each, in the order of passes.def; the compiler
 * is handed the table and knows none of them. */
#ifndef STELE_PASS_H
#define STELE_PASS_H

#include "ir/ir.h"
#include "stele/target.h"

typedef struct pass_context {
  ir_context *ir;
  MlirModule module;
  const stele_target *target; /* whose traits and layouts lowering follows */
  void *target_self;
  stele_target_traits traits;
  bool precise;
  base_arena *arena;      /* lives with the compile */
  stele_program *program; /* what flatten makes; in the arena */
  stele_sink *sink;
} pass_context;

typedef enum pass_kind {
  PASS_OPTIMISING, /* may be skipped: the ids stay the same */
  PASS_LOWERING,   /* skipped, it takes its trivial form */
  PASS_REQUIRED    /* can't be skipped */
} pass_kind;

typedef struct pass_info {
  const char *name; /* "fuse-norm" */
  pass_kind kind;
  ir_level before, after; /* the level the module is at */
  const char *summary;
  /* trivial: the pass was skipped and is a lowering; take the simplest form. */
  stele_status (*run)(pass_context *context, bool trivial);
} pass_info;

#endif
