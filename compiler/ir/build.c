/* From a description to a model-level module: declarations of the model, its cache groups, rope
 * tables and weights, then one step after the other (build_step.c). What the builder takes for
 * granted is checked first (build_check.c). */
#include "build.h"

#include <stdio.h>

#include "weights/weights.h"

/* ---- the steps an artefact has --------------------------------------------------------- */

/* Appends a step if there is room, counts it in any case. */
static void add_step(ir_step *steps, uint32_t limit, uint32_t *count, ir_step step) {
  if (*count < limit) steps[*count] = step;
  ++*count;
}

uint32_t ir_steps(const ir_build_options *options, ir_step *out_steps, uint32_t limit) {
  static const uint32_t decode[] = {STELE_OUTPUT_TOKEN, STELE_OUTPUT_LAST, STELE_OUTPUT_HIDDEN};
  static const uint32_t prefill[] = {STELE_OUTPUT_NONE, STELE_OUTPUT_TOKEN, STELE_OUTPUT_LAST,
                                     STELE_OUTPUT_ALL, STELE_OUTPUT_HIDDEN};
  uint32_t count = 0;
  for (uint64_t lanes = 1; options->max_lanes; lanes *= 2) {
    if (lanes > options->max_lanes) lanes = options->max_lanes;
    for (uint32_t i = 0; i < sizeof decode / sizeof *decode; i++)
      add_step(out_steps, limit, &count,
               (ir_step){STELE_STEP_DECODE, (uint32_t)lanes, 1, decode[i]});
    if (lanes == options->max_lanes) break;
  }
  for (uint32_t i = 0; options->prefill_width > 1 && i < sizeof prefill / sizeof *prefill; i++)
    add_step(out_steps, limit, &count,
             (ir_step){STELE_STEP_PREFILL, 1, options->prefill_width, prefill[i]});
  if (options->verify_width > 1)
    add_step(out_steps, limit, &count,
             (ir_step){STELE_STEP_VERIFY, 1, options->verify_width, STELE_OUTPUT_TOKEN});
  return count;
}

/* ---- declarations ---------------------------------------------------------------------- */

static MlirOperation declare(const ir_build_state *build, uint32_t kind) {
  return ir_create(&build->at, kind, NULL, 0, 0, 0);
}

static void declare_model(const ir_build_state *build) {
  const fe_model *model = build->model;
  MlirOperation op = declare(build, STELE_OP_MODEL);
  ir_set_string(op, "family", model->family);
  ir_set_int(op, "vocab", model->vocab);
  ir_set_int(op, "hidden", model->hidden);
  ir_set_int(op, "layers", model->layers);
  ir_set_int(op, "capacity", build->options->capacity);
}

/* A window's pages are small enough that those which fell out of it can be used again. */
static uint32_t page_tokens(uint32_t capacity, uint32_t window) {
  uint32_t most = window && window < capacity ? window : capacity;
  uint32_t tokens = 64;
  while (tokens > most) tokens /= 2;
  return tokens;
}

static void declare_group(const ir_build_state *build, uint32_t index, const fe_layer *layer) {
  const fe_model *model = build->model;
  uint32_t capacity = build->options->capacity;
  const char *scheme = weights_scheme_get(build->options->cache_scheme)->name;
  MlirOperation op = declare(build, STELE_OP_GROUP);
  ir_set_int(op, "index", index);
  ir_set_string(op, "kind", ir_name(IR_GROUP_KINDS, layer->group_kind));
  ir_set_int(op, "kv_heads", model->kv_heads);
  ir_set_int(op, "key_head", model->key_head);
  ir_set_int(op, "value_head", model->value_head);
  ir_set_string(op, "key_scheme", scheme);
  ir_set_string(op, "value_scheme", scheme);
  ir_set_int(op, "capacity", capacity);
  ir_set_int(op, "window", layer->window);
  ir_set_int(op, "page_tokens", page_tokens(capacity, layer->window));
  if (model->latent.kv_rank) ir_set_int(op, "value_in_key", 1);
}

/* Declares a group for each geometry at its first use and says which group each layer has. Heads
 * and their sizes are the same in all layers of a description, so kind and window decide. */
static void declare_groups(const ir_build_state *build, uint32_t *layer_group) {
  const fe_model *model = build->model;
  uint32_t count = 0;
  for (uint32_t i = 0; i < model->layers; i++) {
    const fe_layer *layer = &model->layer[i];
    uint32_t same = 0;
    while (same < i && (model->layer[same].group_kind != layer->group_kind ||
                        model->layer[same].window != layer->window))
      same++;
    layer_group[i] = same < i ? layer_group[same] : count;
    if (same == i) declare_group(build, count++, layer);
  }
}

static MlirOperation declare_weight(const ir_build_state *build, const char *name, uint32_t scheme,
                                    uint64_t rows, uint64_t columns) {
  MlirOperation op = declare(build, STELE_OP_WEIGHT);
  ir_set_string(op, "name", name);
  ir_set_string(op, "scheme", weights_scheme_get(scheme)->name);
  ir_set_int(op, "rows", (int64_t)rows);
  ir_set_int(op, "columns", (int64_t)columns);
  return op;
}

static void declare_rope(const ir_build_state *build, uint32_t index) {
  const fe_rope *rope = &build->model->ropes[index];
  MlirOperation op = declare(build, STELE_OP_ROPE_TABLE);
  ir_set_int(op, "index", index);
  ir_set_string(op, "rule", ir_name(IR_ROPE_RULES, rope->rule));
  ir_set_int(op, "rotary", rope->rotary);
  ir_set_float(op, "base", rope->base);
  ir_set_float(op, "attention_factor", rope->attention_factor);
  if (rope->rule != STELE_ROPE_FIXED) {
    ir_set_float(op, "factor", rope->factor);
    ir_set_int(op, "original", rope->original);
    return;
  }
  char name[32];
  snprintf(name, sizeof name, "rope.%u", index);
  ir_set_string(op, "weight", name);
  declare_weight(build, name, STELE_F32, build->options->capacity, rope->rotary);
}

static void declare_weights(const ir_build_state *build) {
  const fe_model *model = build->model;
  for (uint32_t i = 0; i < model->weight_count; i++) {
    const fe_weight *w = &model->weights[i];
    MlirOperation op = declare_weight(build, w->name, w->scheme, w->rows, w->columns);
    if (w->role == FE_EMBED || w->role == FE_POSITIONS) ir_set_int(op, "embedding", 1);
    if (w->experts) ir_set_int(op, "experts", w->experts);
  }
}

/* ---- all of it ------------------------------------------------------------------------- */

static stele_status build_steps(const ir_build_state *build, base_arena *arena) {
  uint32_t count = ir_steps(build->options, NULL, 0);
  ir_step *steps = base_arena_alloc(arena, count, sizeof *steps);
  if (!steps) return STELE_OUT_OF_MEMORY;
  ir_steps(build->options, steps, count);
  for (uint32_t i = 0; i < count; i++) ir_build_step(build, &steps[i]);
  return STELE_OK;
}

static stele_status build_module(ir_build_state *build, base_arena *arena) {
  uint32_t *layer_group = base_arena_alloc(arena, build->model->layers, sizeof *layer_group);
  if (!layer_group) return STELE_OUT_OF_MEMORY;
  build->layer_group = layer_group;
  declare_model(build);
  declare_groups(build, layer_group);
  for (uint32_t i = 0; i < build->model->rope_count; i++) declare_rope(build, i);
  declare_weights(build);
  return build_steps(build, arena);
}

stele_status ir_build(ir_context *context, const fe_model *model, const ir_build_options *options,
                      stele_sink *sink, MlirModule *out_module) {
  BASE_TRY(ir_build_check(model, options, sink));
  MlirContext mlir = ir_context_mlir(context);
  MlirModule module = mlirModuleCreateEmpty(mlirLocationUnknownGet(mlir));
  ir_build_state build = {
      .model = model, .options = options, .at = ir_builder_at_end(mlir, mlirModuleGetBody(module))};
  base_arena arena = {0};
  stele_status status = build_module(&build, &arena);
  base_arena_deinit(&arena);
  if (status != STELE_OK) {
    mlirModuleDestroy(module);
    return base_fail(sink, status, "out of memory while building the module");
  }
  *out_module = module;
  return STELE_OK;
}
