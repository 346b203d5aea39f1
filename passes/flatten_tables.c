/* flatten: declarations into the program's tables. Weights lie in the order of their declarations,
 * each at a multiple of 64 bytes; pages are laid out as artifact.h says. */
#include <string.h>

#include "flatten.h"

static stele_status add_weight(flattening *f, const pass_weight *weight) {
  stele_program_weight w = {.name = (uint32_t)f->strings.size,
                            .rows = weight->rows,
                            .columns = weight->columns,
                            .experts = weight->experts,
                            .offset = f->header.weights_bytes};
  BASE_TRY(pass_weight_layout(f->context, weight, &w.scheme, &w.layout, &w.bytes));
  if (w.bytes > INT64_MAX / 2 || w.offset > INT64_MAX / 2)
    return base_fail(f->context->sink, STELE_UNSUPPORTED, "weight '%s' is too large", weight->name);
  f->header.weights_bytes = base_align(w.offset + w.bytes, PASS_LINE);
  base_buffer_append(&f->strings, weight->name, strlen(weight->name) + 1);
  base_buffer_append(&f->program_weights, &w, sizeof w);
  return STELE_OK;
}

static stele_status read_model(flattening *f) {
  MlirOperation model = ir_find_model(f->context->module);
  if (pass_is_null(model))
    return base_fail(f->context->sink, STELE_BAD_FORMAT, "flatten: no 'decode.model' is declared");
  stele_program *h = &f->header;
  h->vocab = (uint32_t)ir_int(model, "vocab", 0);
  h->hidden = (uint32_t)ir_int(model, "hidden", 0);
  h->layers = (uint32_t)ir_int(model, "layers", 0);
  h->capacity = (uint32_t)ir_int(model, "capacity", 0);
  h->max_workers = (uint32_t)base_max(f->context->traits.max_workers, 1);
  h->precise = f->context->precise;
  h->prefill_width = 1;
  return STELE_OK;
}

/* ---- groups ---------------------------------------------------------------------------- */

/* Which group each layer's cache belongs to, from the steps. */
static stele_status note_layer(pass_step *step, MlirOperation op, void *data) {
  flattening *f = data;
  if (!ir_is(op, STELE_OP_CACHE)) return STELE_OK;
  int64_t layer = ir_int(op, "layer", -1), group = ir_int(op, "group", -1);
  uint32_t *layer_group = (uint32_t *)(void *)f->layer_group.data;
  if (layer < 0 || layer >= f->header.layers || group < 0 || group >= UINT32_MAX)
    return base_fail(step->context->sink, STELE_BAD_FORMAT,
                     "cache: layer %lld in group %lld, the model has %u layers", (long long)layer,
                     (long long)group, f->header.layers);
  if (layer_group[layer] != UINT32_MAX && layer_group[layer] != group)
    return base_fail(step->context->sink, STELE_BAD_FORMAT,
                     "cache: layer %lld is in groups %u and %lld", (long long)layer,
                     layer_group[layer], (long long)group);
  layer_group[layer] = (uint32_t)group;
  return STELE_OK;
}

static stele_status add_groups(flattening *f) {
  const uint32_t none = UINT32_MAX;
  for (uint32_t i = 0; i < f->header.layers; i++)
    base_buffer_append(&f->layer_group, &none, sizeof none);
  if (f->layer_group.failed) return pass_no_memory(f->context);
  BASE_TRY(pass_ops(f->context, note_layer, f));
  const uint32_t *layer_group = (const uint32_t *)(const void *)f->layer_group.data;
  for (int64_t i = 0; !pass_is_null(ir_find_group(f->context->module, i)); i++) {
    stele_group group;
    BASE_TRY(pass_group(f->context, i, &group));
    for (uint32_t layer = 0; layer < f->header.layers; layer++)
      group.layers += layer_group[layer] == i;
    base_buffer_append(&f->groups, &group, sizeof group);
  }
  return STELE_OK;
}

/* ---- ropes ----------------------------------------------------------------------------- */

static stele_status add_ropes(flattening *f) {
  MlirOperation op;
  for (int64_t i = 0; !pass_is_null(op = ir_find_rope_table(f->context->module, i)); i++) {
    stele_program_rope rope = {.rotary = (uint32_t)ir_int(op, "rotary", 0), .weight = -1};
    if (!ir_number(IR_ROPE_RULES, ir_string(op, "rule", ""), &rope.rule))
      return base_fail(f->context->sink, STELE_BAD_FORMAT, "rope_table %lld: unknown rule '%s'",
                       (long long)i, ir_string(op, "rule", ""));
    if (rope.rule == STELE_ROPE_FIXED) {
      const char *name = ir_string(op, "weight", NULL);
      uint32_t weight = pass_weights_find(&f->weights, name);
      if (weight == PASS_ABSENT)
        return base_fail(f->context->sink, STELE_BAD_FORMAT,
                         "rope_table %lld: its table '%s' is no declared weight", (long long)i,
                         name ? name : "");
      rope.weight = (int32_t)weight;
    }
    base_buffer_append(&f->ropes, &rope, sizeof rope);
  }
  return STELE_OK;
}

stele_status flatten_declarations(flattening *f) {
  BASE_TRY(read_model(f));
  for (uint32_t i = 0; i < f->weights.count; i++) BASE_TRY(add_weight(f, &f->weights.list[i]));
  BASE_TRY(add_groups(f));
  return add_ropes(f);
}

/* ---- bytes read ------------------------------------------------------------------------ */

uint64_t flatten_bytes_read(flattening *f, const stele_op *op) {
  const stele_program_weight *weights =
      (const stele_program_weight *)(const void *)f->program_weights.data;
  uint64_t bytes = 0;
  for (int slot = 0; slot < STELE_W_COUNT; slot++) {
    int32_t i = op->weight[slot];
    if (i < 0) continue;
    if (f->read[i]) continue;
    /* rows of a table of them are not all that is read of it */
    f->read[i] = op->kind != STELE_OP_EMBED && op->kind != STELE_OP_POSITION_EMBED;
    bytes += stele_op_weight_bytes(op, slot, &weights[i]);
  }
  return bytes;
}
