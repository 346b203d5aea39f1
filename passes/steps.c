/* What every pass needs: the steps as arrays of ops, numbers by op, weights by name.
 * Maps are open-addressing tables, at most half full, so that passes stay linear in the ops. */
#include <string.h>

#include "internal.h"

stele_status pass_no_memory(pass_context *context) {
  return base_fail(context->sink, STELE_OUT_OF_MEMORY, "out of memory while running passes");
}

/* ---- maps ------------------------------------------------------------------------------ */

static uint32_t mask_for(size_t limit) {
  size_t slots = 8;
  while (slots < limit * 2) slots *= 2;
  return (uint32_t)(slots - 1);
}

static uint32_t hash_pointer(const void *key) {
  return (uint32_t)(((uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u) >> 32);
}

bool pass_map_init(pass_map *map, base_arena *arena, size_t limit) {
  map->mask = mask_for(limit);
  map->slots = base_arena_alloc(arena, (size_t)map->mask + 1, sizeof *map->slots);
  return map->slots != NULL;
}

static struct pass_slot *map_slot(const pass_map *map, MlirOperation op) {
  uint32_t i = hash_pointer(op.ptr) & map->mask;
  while (map->slots[i].key && map->slots[i].key != op.ptr) i = (i + 1) & map->mask;
  return &map->slots[i];
}

void pass_map_put(pass_map *map, MlirOperation op, uint32_t value) {
  *map_slot(map, op) = (struct pass_slot){op.ptr, value};
}

uint32_t pass_map_get(const pass_map *map, MlirOperation op) {
  if (pass_is_null(op)) return PASS_ABSENT;
  const struct pass_slot *slot = map_slot(map, op);
  return slot->key ? slot->value : PASS_ABSENT;
}

/* ---- weights --------------------------------------------------------------------------- */

static uint32_t hash_text(const char *text) {
  uint32_t h = 2166136261u; /* FNV-1a */
  for (; *text; text++) h = (h ^ (uint8_t)*text) * 16777619u;
  return h;
}

static stele_status count_weight(MlirOperation op, void *data) {
  *(size_t *)data += ir_is(op, STELE_OP_WEIGHT);
  return STELE_OK;
}

typedef struct loading {
  pass_context *context;
  pass_weights *weights;
} loading;

static stele_status load_weight(MlirOperation op, void *data) {
  loading *l = data;
  if (!ir_is(op, STELE_OP_WEIGHT)) return STELE_OK;
  pass_weights *weights = l->weights;
  pass_weight *w = &weights->list[weights->count];
  w->name = ir_string(op, "name", "");
  w->op = op;
  w->rows = (uint64_t)ir_int(op, "rows", 0);
  w->columns = (uint64_t)ir_int(op, "columns", 0);
  w->experts = (uint32_t)ir_int(op, "experts", 0);
  w->plain = w->rows == 1;
  w->gathered = ir_int(op, "embedding", 0) != 0;
  const char *scheme = ir_string(op, "scheme", "");
  if (!weights_scheme_by_name(scheme, &w->scheme))
    return base_fail(l->context->sink, STELE_BAD_FORMAT, "weight '%s': unknown scheme '%s'",
                     w->name, scheme);
  if (pass_weights_find(weights, w->name) != PASS_ABSENT)
    return base_fail(l->context->sink, STELE_BAD_FORMAT, "weight '%s' is declared twice", w->name);
  uint32_t i = hash_text(w->name) & weights->mask;
  while (weights->slots[i]) i = (i + 1) & weights->mask;
  weights->slots[i] = ++weights->count; /* plus one: zero is an empty slot */
  return STELE_OK;
}

static stele_status mark_gathered(MlirOperation op, void *data) {
  pass_weights *weights = data;
  if (!ir_is(op, STELE_OP_EMBED) && !ir_is(op, STELE_OP_POSITION_EMBED)) return STELE_OK;
  uint32_t i = pass_weights_find(weights, ir_string(op, "weight", NULL));
  if (i != PASS_ABSENT) weights->list[i].gathered = true;
  return STELE_OK;
}

static stele_status mark_table(MlirOperation op, void *data) {
  pass_weights *weights = data;
  if (!ir_is(op, STELE_OP_ROPE_TABLE)) return STELE_OK;
  uint32_t i = pass_weights_find(weights, ir_string(op, "weight", NULL));
  if (i != PASS_ABSENT) weights->list[i].plain = true;
  return STELE_OK;
}

static stele_status mark_step(MlirOperation step, void *data) {
  return ir_walk_body(step, mark_gathered, data);
}

stele_status pass_weights_load(pass_context *context, pass_weights *out_weights) {
  size_t count = 0;
  BASE_TRY(ir_walk_declarations(context->module, count_weight, &count));
  pass_weights weights = {.mask = mask_for(count)};
  weights.list = base_arena_alloc(context->arena, count + 1, sizeof *weights.list);
  weights.slots = base_arena_alloc(context->arena, (size_t)weights.mask + 1, sizeof *weights.slots);
  if (!weights.list || !weights.slots) return pass_no_memory(context);
  loading l = {context, &weights};
  BASE_TRY(ir_walk_declarations(context->module, load_weight, &l));
  BASE_TRY(ir_walk_declarations(context->module, mark_table, &weights));
  BASE_TRY(ir_walk_steps(context->module, mark_step, &weights));
  *out_weights = weights;
  return STELE_OK;
}

uint32_t pass_weights_find(const pass_weights *weights, const char *name) {
  if (!name) return PASS_ABSENT;
  for (uint32_t i = hash_text(name) & weights->mask; weights->slots[i];
       i = (i + 1) & weights->mask) {
    uint32_t index = weights->slots[i] - 1;
    if (strcmp(weights->list[index].name, name) == 0) return index;
  }
  return PASS_ABSENT;
}

stele_status pass_weight_of(pass_context *context, const pass_weights *weights, MlirOperation op,
                            const char *attribute, bool absent, const pass_weight **out_weight) {
  const char *name = ir_string(op, attribute, NULL);
  if (!name && absent) {
    *out_weight = NULL;
    return STELE_OK;
  }
  uint32_t index = pass_weights_find(weights, name);
  if (index == PASS_ABSENT)
    return base_fail(context->sink, STELE_BAD_FORMAT,
                     "%s: attribute '%s' names '%s', which is no declared weight",
                     ir_op_info_get(ir_kind(op))->mnemonic, attribute, name ? name : "");
  *out_weight = &weights->list[index];
  return STELE_OK;
}

/* Many matrices lie one behind the other, each as if it were alone. */
stele_status pass_weight_layout(pass_context *context, const pass_weight *weight,
                                uint32_t *out_scheme, uint32_t *out_layout, uint64_t *out_bytes) {
  uint64_t matrices = base_max(weight->experts, 1), one;
  size_t row, bytes;
  bool fits;
  *out_scheme = weight->plain ? STELE_F32 : weight->scheme;
  *out_layout = 0;
  if (weight->plain) {
    fits =
        weights_row_bytes(STELE_F32, weight->columns, &row) && base_mul(row, weight->rows, &bytes);
  } else {
    BASE_TRY(context->target->layout(context->target_self, weight->scheme, weight->rows / matrices,
                                     weight->columns, weight->gathered, context->sink, out_layout,
                                     &one));
    fits = base_mul(one, matrices, &bytes);
  }
  if (!fits)
    return base_fail(context->sink, STELE_BAD_FORMAT, "weight '%s': %llu x %llu is too large",
                     weight->name, (unsigned long long)weight->rows,
                     (unsigned long long)weight->columns);
  *out_bytes = bytes;
  return STELE_OK;
}

/* ---- steps ----------------------------------------------------------------------------- */

typedef struct walk {
  pass_context *context;
  pass_visit visit;
  void *data;
} walk;

static stele_status count_op(MlirOperation op, void *data) {
  (void)op;
  ++*(size_t *)data;
  return STELE_OK;
}

static stele_status collect_op(MlirOperation op, void *data) {
  pass_step *step = data;
  pass_map_put(&step->index, op, step->count);
  step->ops[step->count++] = op;
  return STELE_OK;
}

static stele_status visit_step(MlirOperation op, walk *w) {
  pass_step step = {.context = w->context,
                    .op = op,
                    .lanes = ir_int(op, "lanes", 1),
                    .width = ir_int(op, "width", 1)};
  size_t count = 0;
  BASE_TRY(ir_walk_body(op, count_op, &count));
  step.ops = base_arena_alloc(w->context->arena, count + 1, sizeof *step.ops);
  if (!step.ops || !pass_map_init(&step.index, w->context->arena, count))
    return pass_no_memory(w->context);
  BASE_TRY(ir_walk_body(op, collect_op, &step));
  return w->visit(&step, w->data);
}

static stele_status visit_step_op(MlirOperation op, void *data) {
  walk *w = data;
  base_mark mark = base_arena_mark(w->context->arena);
  stele_status status = visit_step(op, w);
  base_arena_reset(w->context->arena, mark);
  return status;
}

stele_status pass_steps(pass_context *context, pass_visit visit, void *data) {
  walk w = {context, visit, data};
  return ir_walk_steps(context->module, visit_step_op, &w);
}

typedef struct op_walk {
  pass_visit_op visit;
  void *data;
} op_walk;

static stele_status visit_ops(pass_step *step, void *data) {
  const op_walk *w = data;
  for (uint32_t i = 0; i < step->count; i++)
    if (!pass_is_null(step->ops[i])) BASE_TRY(w->visit(step, step->ops[i], w->data));
  return STELE_OK;
}

stele_status pass_ops(pass_context *context, pass_visit_op visit, void *data) {
  op_walk w = {visit, data};
  return pass_steps(context, visit_ops, &w);
}
