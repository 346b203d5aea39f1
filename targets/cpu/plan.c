/* From the ops of a program to op functions: what of an op is known when code is made goes into its
 * shape, what differs between ops of one shape (weights, buffers, layer) into its place. Layers and
 * steps share both wherever they are equal, so code does not grow with the depth of a model. */
#include <string.h>

#include "cpu/cpu.h"
#include "weights/weights.h"

/* NULL: declarations and inputs, nothing to do at run time. */
static const char *const kernel_names[STELE_OP_COUNT] = {
    [STELE_OP_EMBED] = "embed",
    [STELE_OP_RMS_NORM] = "norm",
    [STELE_OP_LAYER_NORM] = "norm",
    [STELE_OP_POSITION_EMBED] = "position_embed",
    [STELE_OP_LINEAR] = "linear",
    [STELE_OP_HEAD_LINEAR] = "head_linear",
    [STELE_OP_CONCAT] = "concat",
    [STELE_OP_ROPE] = "rope",
    [STELE_OP_CACHE_UPDATE] = "cache_update",
    [STELE_OP_ATTENTION] = "attention",
    [STELE_OP_ACTIVATION] = "elements",
    [STELE_OP_MUL] = "elements",
    [STELE_OP_ADD] = "elements",
    [STELE_OP_SCALE] = "elements",
    [STELE_OP_SOFT_CAP] = "elements",
    [STELE_OP_ROUTE] = "route",
    [STELE_OP_EXPERTS_GATE_UP] = "experts_gate_up",
    [STELE_OP_EXPERTS_DOWN] = "experts_down",
    [STELE_OP_LAST_TOKEN] = "last_token",
    [STELE_OP_ARGMAX] = "argmax",
    [STELE_OP_OUTPUT] = "output",
    [STELE_OP_OUTPUT_TOKEN] = "output_token",
    [STELE_OP_QKV_CACHE] = "qkv_cache",
    [STELE_OP_ATTENTION_PARTIAL] = "attention_partial",
    [STELE_OP_ATTENTION_COMBINE] = "attention_combine",
    [STELE_OP_GATE_UP] = "gate_up",
    [STELE_OP_LINEAR_ADD] = "linear",
    [STELE_OP_LINEAR_ARGMAX] = "linear_argmax",
    [STELE_OP_PREPARE] = "prepare",
    [STELE_OP_CACHE_STORE] = "cache_store",
};

const char *cpu_kernel_name(uint32_t kind) {
  return kind < STELE_OP_COUNT ? kernel_names[kind] : NULL;
}

/* One op on its way into the plan. */
typedef struct planner {
  const stele_program *program;
  const stele_program_step *step;
  const stele_op *op;
  stele_sink *sink;
  cpu_shape *shape;
  cpu_place *place;
} planner;

static bool attends(uint32_t kind) {
  return kind == STELE_OP_QKV_CACHE || kind == STELE_OP_CACHE_UPDATE ||
         kind == STELE_OP_CACHE_STORE || kind == STELE_OP_ATTENTION ||
         kind == STELE_OP_ATTENTION_PARTIAL || kind == STELE_OP_ATTENTION_COMBINE;
}
static bool turns(uint32_t kind) { return kind == STELE_OP_ROPE || kind == STELE_OP_QKV_CACHE; }

/* ---- weights --------------------------------------------------------------------------- */

static const stele_program_weight *weight_of(const planner *p, unsigned slot) {
  int32_t index = p->op->weight[slot];
  return index < 0 ? NULL : stele_program_weights(p->program, (uint64_t)index);
}

static stele_status plan_matrix(const planner *p, unsigned slot) {
  const stele_program_weight *w = weight_of(p, slot);
  if (!w) return STELE_OK;
  size_t panel;
  const char *name = stele_program_strings(p->program, w->name);
  if (w->layout != CPU_LAYOUT_PANELS)
    return base_fail(p->sink, STELE_INVALID_ARGUMENT,
                     "target 'cpu': weight '%s' has layout %u, expected %u", name, w->layout,
                     CPU_LAYOUT_PANELS);
  if (w->rows == 0 || w->rows > UINT32_MAX - CPU_PANEL || w->columns > UINT32_MAX / 8 ||
      !cpu_panel_bytes(w->scheme, w->columns, &panel))
    return base_fail(p->sink, STELE_UNSUPPORTED,
                     "target 'cpu': weight '%s' of %llu x %llu numbers of scheme %u", name,
                     (unsigned long long)w->rows, (unsigned long long)w->columns, w->scheme);
  uint64_t rows = w->rows / base_max(w->experts, 1);
  p->shape->matrix[slot] = (cpu_matrix){w->scheme, (uint32_t)rows, (uint32_t)w->columns,
                                        p->op->weight[STELE_W_BIAS_A + slot] >= 0};
  return STELE_OK;
}

/* The numbers of a norm's weight: of a segment, or of a whole row. */
static uint32_t norm_columns(const planner *p) {
  const stele_program_weight *w = weight_of(p, STELE_W_NORM);
  return w ? (uint32_t)w->columns : 0;
}

static stele_status plan_weights(const planner *p) {
  for (unsigned slot = STELE_W_A; slot <= STELE_W_C; slot++) BASE_TRY(plan_matrix(p, slot));
  for (unsigned slot = 0; slot < STELE_W_COUNT; slot++) {
    const stele_program_weight *w = weight_of(p, slot);
    if (!w) continue;
    p->place->weight[slot] = w->offset;
    if (slot > STELE_W_C && w->scheme != STELE_F32)
      return base_fail(p->sink, STELE_UNSUPPORTED,
                       "target 'cpu': vector '%s' has scheme %u, expected float32",
                       stele_program_strings(p->program, w->name), w->scheme);
  }
  p->shape->norm_bias = p->op->weight[STELE_W_NORM_BIAS] >= 0;
  p->shape->center = p->op->kind == STELE_OP_LAYER_NORM || p->op->flags & STELE_FLAG_CENTER;
  p->shape->sinks = p->op->weight[STELE_W_SINKS] >= 0;
  p->shape->q_norm = p->op->weight[STELE_W_Q_NORM] >= 0;
  p->shape->k_norm = p->op->weight[STELE_W_K_NORM] >= 0;
  return STELE_OK;
}

/* ---- buffers --------------------------------------------------------------------------- */

static const stele_buffer *buffer_of(const planner *p, int32_t index) {
  return index < 0 ? NULL : stele_program_buffers(p->program, (uint64_t)index);
}

static uint64_t offset_of(const stele_buffer *b) { return b ? b->offset : 0; }

static stele_status plan_buffers(const planner *p) {
  const stele_op *op = p->op;
  const stele_buffer *in = buffer_of(p, op->in[0]), *out = buffer_of(p, op->out);
  const stele_buffer *prepared = buffer_of(p, op->prepared);
  cpu_shape *s = p->shape;
  if (in) s->in_scheme = in->scheme, s->in_columns = in->columns;
  if (out) s->out_scheme = out->scheme, s->out_columns = out->columns;
  s->out_logits = op->out == STELE_BUFFER_LOGITS;
  if (prepared) {
    if (prepared->bytes > UINT32_MAX)
      return base_fail(p->sink, STELE_UNSUPPORTED,
                       "target 'cpu': a buffer of %llu bytes per worker",
                       (unsigned long long)prepared->bytes);
    s->prepared = 1;
    s->prepared_scheme = prepared->scheme;
    s->prepared_bytes = (uint32_t)prepared->bytes;
  }
  *p->place = (cpu_place){.in = {offset_of(in), offset_of(buffer_of(p, op->in[1]))},
                          .out = offset_of(out),
                          .prepared = offset_of(prepared),
                          .scratch = offset_of(buffer_of(p, op->scratch)),
                          .stage = offset_of(buffer_of(p, op->stage))};
  return STELE_OK;
}

/* ---- cache and rope -------------------------------------------------------------------- */

/* Block schemes want whole blocks in a head. */
static bool is_cache_scheme(uint32_t scheme, uint32_t head) {
  return scheme <= STELE_BF16 ||
         ((scheme == STELE_Q8_0 || scheme == STELE_Q4_0) && head % CPU_BLOCK == 0);
}

static stele_status plan_group(const planner *p) {
  const stele_op *op = p->op;
  bool combines = op->prologue == STELE_PROLOGUE_COMBINE;
  if (!attends(op->kind) && !combines) return STELE_OK;
  const stele_group *g = stele_program_groups(p->program, op->group);
  if (!is_cache_scheme(g->key_scheme, g->key_head) ||
      (!g->value_in_key && !is_cache_scheme(g->value_scheme, g->value_head)) ||
      g->value_head > UINT16_MAX || g->page_tokens == 0 || g->page_tokens > 64 ||
      g->page_tokens & (g->page_tokens - 1) || g->kv_heads == 0 || op->heads % g->kv_heads ||
      g->page_bytes > UINT32_MAX || g->kind == STELE_GROUP_STATE)
    return base_fail(p->sink, STELE_UNSUPPORTED,
                     "target 'cpu': cache group %u (kind %u, schemes %u and %u, %u tokens a page, "
                     "%u of %u heads)",
                     op->group, g->kind, g->key_scheme, g->value_scheme, g->page_tokens,
                     g->kv_heads, op->heads);
  cpu_shape *s = p->shape;
  s->heads = op->heads;
  s->kv_heads = g->kv_heads;
  s->value_head = g->value_head;
  s->page_tokens = g->page_tokens;
  s->table_entries = g->table_entries;
  s->group_kind = g->kind;
  s->window = g->window;
  s->parts = stele_program_part_count(g);
  s->part_limit = stele_program_part_limit(g);
  if (!attends(op->kind)) return STELE_OK; /* merging parts needs no more */
  s->group = op->group;
  s->key_head = g->key_head;
  s->key_scheme = g->key_scheme;
  s->value_scheme = g->value_scheme;
  s->value_in_key = g->value_in_key;
  s->page_bytes = (uint32_t)g->page_bytes;
  s->value_offset = (uint32_t)g->value_offset;
  s->stage_images = (s->width + g->page_tokens - 1) / g->page_tokens + 1;
  s->mask_words = (p->program->capacity + 63) / 64;
  p->place->layer = op->layer < 0 ? 0 : (uint32_t)op->layer;
  return STELE_OK;
}

static void plan_rope(const planner *p) {
  const stele_op *op = p->op;
  if (!turns(op->kind)) return;
  cpu_shape *s = p->shape;
  s->rotary = op->rotary;
  s->pairing = op->pairing;
  if (op->rotary == 0) return;
  const stele_program_rope *rope = stele_program_ropes(p->program, op->rope);
  s->rope_fixed = rope->weight >= 0;
  if (rope->weight >= 0)
    p->place->rope = stele_program_weights(p->program, (uint64_t)rope->weight)->offset;
  else
    for (uint32_t i = 0; i < op->rope; i++)
      s->rope_before += s->lanes * s->width * stele_program_ropes(p->program, i)->rotary;
}

enum { MAX_EXPERTS = 4096 }; /* lists of their tokens are in a function's frame */

/* A token has a row for each of its experts between the two ops of experts. */
static stele_status plan_experts(const planner *p) {
  const stele_op *op = p->op;
  cpu_shape *s = p->shape;
  if (op->experts > MAX_EXPERTS)
    return base_fail(p->sink, STELE_UNSUPPORTED, "target 'cpu': %u experts, expected up to %d",
                     op->experts, MAX_EXPERTS);
  s->experts = op->experts;
  s->experts_used = op->experts_used;
  s->rule = op->rule;
  s->normalise = op->normalise;
  s->correction = op->kind == STELE_OP_ROUTE && op->weight[STELE_W_BIAS_A] >= 0;
  s->expert_groups = op->expert_groups;
  s->expert_groups_used = op->expert_groups_used;
  s->scale_input = op->scale_input;
  s->alpha = op->alpha;
  s->limit = op->limit;
  if (op->kind == STELE_OP_EXPERTS_GATE_UP) s->out_columns /= op->experts_used;
  if (op->kind == STELE_OP_EXPERTS_DOWN) s->in_columns /= op->experts_used;
  return STELE_OK;
}

static bool has_experts(uint32_t kind) {
  return kind == STELE_OP_ROUTE || kind == STELE_OP_EXPERTS_GATE_UP ||
         kind == STELE_OP_EXPERTS_DOWN;
}

/* Whether float activations may be rounded to 16 bits where they meet quantised weights. */
static bool is_wide(const planner *p) {
  const cpu_shape *s = p->shape;
  if (p->program->precise || (s->prepared ? s->prepared_scheme : s->in_scheme) != STELE_F32)
    return false;
  for (int i = 0; i < 3; i++)
    if (s->matrix[i].rows && weights_scheme_is_quantised(s->matrix[i].scheme))
      return p->op->kind != STELE_OP_EMBED && p->op->kind != STELE_OP_POSITION_EMBED &&
             !has_experts(p->op->kind);
  return false;
}

/* ---- an op ----------------------------------------------------------------------------- */

static stele_status plan_op(const planner *p) {
  const stele_op *op = p->op;
  if (op->device != 0)
    return base_fail(p->sink, STELE_UNSUPPORTED, "target 'cpu': an op for device %u", op->device);
  cpu_shape *s = p->shape;
  *s = (cpu_shape){.kind = op->kind,
                   .lanes = p->step->lanes,
                   .width = p->step->width,
                   .tokens = op->tokens,
                   .tiles = op->tiles,
                   .tile_rows = op->tile_rows,
                   .flags = op->flags,
                   .prologue = op->prologue,
                   .function = op->function,
                   .head = op->head,
                   .kept = op->kept,
                   .rope_offset = op->rope_offset,
                   .vocab = p->program->vocab,
                   .hidden = p->program->hidden,
                   .output_kind = op->output_kind,
                   .eps = op->eps,
                   .head_eps = op->head_eps,
                   .scale = op->scale,
                   .soft_cap = op->soft_cap,
                   .query_scale = op->query_scale,
                   .query_floor = op->query_floor};
  BASE_TRY(plan_buffers(p)); /* first: it sets the whole place */
  BASE_TRY(plan_weights(p));
  s->norm = norm_columns(p);
  s->wide = is_wide(p);
  if (op->kind == STELE_OP_HEAD_LINEAR) s->heads = op->heads;
  BASE_TRY(plan_group(p));
  if (has_experts(op->kind)) BASE_TRY(plan_experts(p));
  plan_rope(p);
  p->place->output_index = op->output_index;
  return STELE_OK;
}

/* Index of the shape in the plan, added when it is new. */
static uint32_t intern_shape(cpu_plan *plan, const cpu_shape *shape) {
  for (uint32_t i = 0; i < plan->shape_count; i++)
    if (memcmp(&plan->shapes[i], shape, sizeof *shape) == 0) return i;
  plan->shapes[plan->shape_count] = *shape;
  return plan->shape_count++;
}

static uint32_t intern_place(cpu_plan *plan, uint32_t shape, const cpu_place *place) {
  for (uint32_t i = 0; i < plan->place_count; i++)
    if (plan->place_shapes[i] == shape && memcmp(&plan->places[i], place, sizeof *place) == 0)
      return i;
  plan->place_shapes[plan->place_count] = shape;
  plan->places[plan->place_count] = *place;
  return plan->place_count++;
}

static stele_status plan_step(cpu_plan *plan, const stele_program *program,
                              const stele_program_step *step, stele_sink *sink) {
  for (uint32_t i = 0; i < step->op_count; i++) {
    uint32_t index = step->first_op + i;
    const stele_op *op = stele_program_ops(program, index);
    plan->ops[index] = (cpu_planned){CPU_NO_OP, CPU_NO_OP};
    if (!cpu_kernel_name(op->kind)) continue;
    cpu_shape shape;
    cpu_place place;
    planner p = {program, step, op, sink, &shape, &place};
    BASE_TRY(plan_op(&p));
    uint32_t at = intern_shape(plan, &shape);
    plan->ops[index] = (cpu_planned){at, intern_place(plan, at, &place)};
  }
  return STELE_OK;
}

stele_status cpu_plan_make(const stele_program *program, base_arena *arena, stele_sink *sink,
                           cpu_plan *out_plan) {
  size_t ops = program->ops.count ? program->ops.count : 1;
  cpu_plan plan = {.shapes = base_arena_alloc(arena, ops, sizeof(cpu_shape)),
                   .places = base_arena_alloc(arena, ops, sizeof(cpu_place)),
                   .place_shapes = base_arena_alloc(arena, ops, sizeof(uint32_t)),
                   .ops = base_arena_alloc(arena, ops, sizeof(cpu_planned))};
  if (!plan.shapes || !plan.places || !plan.place_shapes || !plan.ops)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  for (uint64_t s = 0; s < program->steps.count; s++)
    BASE_TRY(plan_step(&plan, program, stele_program_steps(program, s), sink));
  *out_plan = plan;
  return STELE_OK;
}
