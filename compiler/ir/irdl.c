/* The dialect as IRDL text, made from ops.def: for each op the types of its operands and results,
 * each by a constraint of its own (one constraint used twice would mean one and the same type),
 * and the region of a step. What else an op must fulfil is verify.c's, which lists all faults.
 *
 * Two parts, loaded one after the other: the type and the op `cache` bear one name, and symbols of
 * one irdl.dialect must differ. The second part adds its ops to the same dialect. */
#include "internal.h"

static const char *constraint(char kind) {
  return kind == 'c' ? "irdl.base \"!decode.cache\"" : "irdl.base \"!builtin.tensor\"";
}

/* A constraint for each value of a list, numbered from first; returns the next number. */
static uint32_t constraints(base_buffer *out, const char *list, uint32_t first) {
  ir_spec spec;
  for (const char *cursor = list; ir_spec_next(&cursor, &spec); first++)
    base_buffer_printf(out, "    %%%u = %s\n", first, constraint(spec.kind));
  return first;
}

static void values(base_buffer *out, const char *keyword, const char *list, uint32_t first) {
  if (!*list) return;
  base_buffer_printf(out, "    irdl.%s(", keyword);
  const char *separator = "";
  ir_spec spec;
  for (const char *cursor = list; ir_spec_next(&cursor, &spec); first++, separator = ", ")
    base_buffer_printf(out, "%s%.*s: %s%%%u", separator, (int)spec.length, spec.name,
                       spec.optional ? "optional " : "", first);
  base_buffer_printf(out, ")\n");
}

static void operation(base_buffer *out, uint32_t kind, const ir_op_info *info) {
  base_buffer_printf(out, "  irdl.operation @%s {\n", info->mnemonic);
  uint32_t results = constraints(out, info->operands, 0);
  constraints(out, info->results, results);
  values(out, "operands", info->operands, 0);
  values(out, "results", info->results, results);
  if (kind == STELE_OP_STEP)
    base_buffer_printf(out,
                       "    %%region = irdl.region() with size 1\n"
                       "    irdl.regions(body: %%region)\n");
  base_buffer_printf(out, "  }\n");
}

void ir_irdl_generate(base_buffer *out) {
  base_buffer_printf(out, "irdl.dialect @decode {\n  irdl.type @cache\n}\n" IR_IRDL_SPLIT
                          "irdl.dialect @decode {\n");
  for (uint32_t kind = 0; kind < STELE_OP_COUNT; kind++) operation(out, kind, ir_op_info_get(kind));
  base_buffer_printf(out, "}\n");
}
