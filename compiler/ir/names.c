/* The numbers of artifact.h and program.h by their names in IR text: one list each, where the
 * position is the number. */
#include <string.h>

#include "ir/ir.h"

static const char *const step_kinds[] = {"decode", "prefill", "verify", "encode", NULL};
static const char *const outputs[] = {"none", "token", "last", "all", "hidden", NULL};
static const char *const group_kinds[] = {"full", "window", "chunk", "cross", "state", NULL};
static const char *const rope_rules[] = {"fixed", "dynamic", "long", NULL};
static const char *const pairings[] = {"halves", "interleaved", NULL};
static const char *const functions[] = {"silu", "gelu",           "gelu_tanh",
                                        "relu", "swiglu_clamped", NULL};
static const char *const routes[] = {"softmax", "sigmoid", NULL};

static const char *const *const namings[] = {
    [IR_STEP_KINDS] = step_kinds, [IR_OUTPUTS] = outputs,   [IR_GROUP_KINDS] = group_kinds,
    [IR_ROPE_RULES] = rope_rules, [IR_PAIRINGS] = pairings, [IR_FUNCTIONS] = functions,
    [IR_ROUTES] = routes,
};

const char *ir_name(ir_naming naming, uint32_t number) {
  const char *const *names = namings[naming];
  for (uint32_t i = 0; names[i]; i++)
    if (i == number) return names[i];
  return NULL;
}

bool ir_number(ir_naming naming, const char *name, uint32_t *out_number) {
  const char *const *names = namings[naming];
  for (uint32_t i = 0; name && names[i]; i++)
    if (strcmp(names[i], name) == 0) {
      *out_number = i;
      return true;
    }
  return false;
}
