/* flatten: the steps, op by op. Each op's operands become buffers through the ops that made them;
 * buffers of equal place and shape are one row of the table. */
#include <string.h>

#include "flatten.h"

static stele_status fail(const flattening *f, MlirOperation op, const char *what,
                         const char *value) {
  return base_fail(f->context->sink, STELE_BAD_FORMAT, "flatten: %s: %s '%s'",
                   ir_op_info_get(ir_kind(op))->mnemonic, what, value);
}

/* ---- buffers --------------------------------------------------------------------------- */

static int32_t intern_buffer(flattening *f, const stele_buffer *wanted) {
  const stele_buffer *list = (const stele_buffer *)(const void *)f->buffers.data;
  size_t count = f->buffers.size / sizeof *list;
  for (size_t i = count; i-- > 0;) /* the last ones are the likeliest */
    if (memcmp(&list[i], wanted, sizeof *wanted) == 0) return (int32_t)i;
  base_buffer_append(&f->buffers, wanted, sizeof *wanted);
  return (int32_t)count;
}

static stele_status read_buffer(flattening *f, MlirOperation op, const char *name,
                                int32_t *out_index) {
  int64_t v[6];
  if (ir_ints(op, name, v, 6) != 6) return fail(f, op, "plan-memory must run first, no", name);
  for (int i = 0; i < 6; i++)
    if (v[i] < 0 || (i > 1 && v[i] > INT32_MAX)) return fail(f, op, "number out of range in", name);
  const stele_buffer buffer = {.offset = (uint64_t)v[0],
                               .bytes = (uint64_t)v[1],
                               .tokens = (uint32_t)v[2],
                               .columns = (uint32_t)v[3],
                               .scheme = (uint32_t)v[4],
                               .per_worker = (uint32_t)v[5]};
  *out_index = intern_buffer(f, &buffer);
  return STELE_OK;
}

/* The buffer that holds operand i of an op. */
static stele_status find_operand(flattening *f, const pass_step *step, MlirOperation op, intptr_t i,
                                 int32_t *out_index) {
  uint32_t maker = pass_map_get(&step->index, pass_source(op, i));
  if (maker == PASS_ABSENT || f->result[maker] < 0)
    return fail(f, op, "an operand has no", "buffer");
  *out_index = f->result[maker];
  return STELE_OK;
}

/* in[] are the operands that are values in memory, in order; token ids come from the arguments. */
static stele_status read_operands(flattening *f, const pass_step *step, MlirOperation op,
                                  stele_op *out) {
  uint32_t count = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirOperation maker = pass_source(op, i);
    uint32_t kind = ir_kind(maker);
    bool cache = kind == STELE_OP_CACHE || kind == STELE_OP_CACHE_UPDATE ||
                 (kind == STELE_OP_QKV_CACHE &&
                  mlirValueEqual(pass_operand(op, i), mlirOperationGetResult(maker, 1)));
    if (kind == STELE_OP_IDS || cache) continue;
    if (count == 2) return fail(f, op, "more operands than", "in[2]");
    BASE_TRY(find_operand(f, step, op, i, &out->in[count++]));
  }
  return STELE_OK;
}

static bool makes_value(MlirOperation op) {
  return mlirOperationGetNumResults(op) > 0 && !ir_is(op, STELE_OP_CACHE_UPDATE);
}

static stele_status read_places(flattening *f, MlirOperation op, uint32_t position, stele_op *out) {
  if (ir_int(op, "logits", 0))
    out->out = STELE_BUFFER_LOGITS;
  else if (makes_value(op))
    BASE_TRY(read_buffer(f, op, "buffer", &out->out));
  f->result[position] = out->out;
  if (pass_is_linear(out->kind) && pass_has_prologue(op))
    BASE_TRY(read_buffer(f, op, "prepared", &out->prepared));
  if (out->kind == STELE_OP_LINEAR_ARGMAX) BASE_TRY(read_buffer(f, op, "scratch", &out->scratch));
  if (ir_int(op, "staged", 0)) {
    out->flags |= STELE_FLAG_STAGED;
    BASE_TRY(read_buffer(f, op, "stage", &out->stage));
  }
  f->stage[position] = out->stage;
  return STELE_OK;
}

/* attention and cache_store work on the pages that the op before them staged. */
static void find_stage(const flattening *f, const pass_step *step, MlirOperation op,
                       stele_op *out) {
  if (out->kind != STELE_OP_ATTENTION && out->kind != STELE_OP_CACHE_STORE) return;
  intptr_t cache = out->kind == STELE_OP_ATTENTION ? 1 : 0;
  uint32_t maker = pass_map_get(&step->index, pass_source(op, cache));
  if (maker == PASS_ABSENT || f->stage[maker] < 0) return;
  out->stage = f->stage[maker];
  out->flags |= STELE_FLAG_STAGED;
}

/* ---- attributes ------------------------------------------------------------------------ */

/* The own weight and bias of a norm are where those of a norm in a prologue are. */
static int slot_of(uint32_t kind, int slot) {
  if (kind != STELE_OP_RMS_NORM && kind != STELE_OP_LAYER_NORM) return slot;
  return slot == STELE_W_A ? STELE_W_NORM : STELE_W_NORM_BIAS;
}

static stele_status read_weights(flattening *f, MlirOperation op, stele_op *out) {
  static const struct {
    const char *attribute;
    int slot;
  } slots[] = {{"weight", STELE_W_A},      {"gate", STELE_W_A},
               {"q", STELE_W_A},           {"up", STELE_W_B},
               {"k", STELE_W_B},           {"v", STELE_W_C},
               {"bias", STELE_W_BIAS_A},   {"gate_bias", STELE_W_BIAS_A},
               {"q_bias", STELE_W_BIAS_A}, {"up_bias", STELE_W_BIAS_B},
               {"k_bias", STELE_W_BIAS_B}, {"v_bias", STELE_W_BIAS_C},
               {"norm", STELE_W_NORM},     {"q_norm", STELE_W_Q_NORM},
               {"k_norm", STELE_W_K_NORM}, {"norm_bias", STELE_W_NORM_BIAS},
               {"sinks", STELE_W_SINKS},   {"correction", STELE_W_BIAS_A}};
  for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
    const pass_weight *weight;
    BASE_TRY(pass_weight_of(f->context, &f->weights, op, slots[i].attribute, true, &weight));
    if (!weight) continue;
    out->weight[slot_of(out->kind, slots[i].slot)] = (int32_t)(weight - f->weights.list);
  }
  return STELE_OK;
}

static uint32_t read_u32(MlirOperation op, const char *name) {
  int64_t value = ir_int(op, name, 0);
  return value < 0 || value > UINT32_MAX ? 0 : (uint32_t)value;
}

static void read_numbers(MlirOperation op, stele_op *out) {
  out->layer = (int32_t)ir_int(op, "layer", -1);
  out->barrier = ir_int(op, "barrier", 0) != 0;
  out->tiles = read_u32(op, "tiles");
  out->tile_rows = read_u32(op, "tile_rows");
  out->device = read_u32(op, "device");
  out->group = read_u32(op, "group");
  out->heads = read_u32(op, "heads");
  bool norm = out->kind == STELE_OP_RMS_NORM || out->kind == STELE_OP_LAYER_NORM;
  out->head = read_u32(op, norm ? "segment" : "head");
  out->kept = read_u32(op, "kept");
  out->rotary = read_u32(op, "rotary");
  out->rope_offset = read_u32(op, "offset");
  out->rope = read_u32(op, "table");
  out->output_index = read_u32(op, "index");
  out->eps = (float)ir_float(op, "eps", 0);
  out->head_eps = (float)ir_float(op, "head_eps", 0);
  out->scale = (float)ir_float(op, out->kind == STELE_OP_SCALE ? "factor" : "scale", 0);
  out->soft_cap = (float)ir_float(op, out->kind == STELE_OP_SOFT_CAP ? "cap" : "soft_cap", 0);
  out->query_scale = (float)ir_float(op, "query_scale", 0);
  out->query_floor = (float)ir_float(op, "query_floor", 0);
}

static void read_expert_numbers(MlirOperation op, stele_op *out) {
  out->experts = read_u32(op, "experts");
  out->experts_used = read_u32(op, "used");
  out->normalise = ir_int(op, "normalise", 0) != 0;
  out->expert_groups = read_u32(op, "groups");
  out->expert_groups_used = read_u32(op, "used_groups");
  out->scale_input = ir_int(op, "scale_input", 0) != 0;
  out->alpha = (float)ir_float(op, "alpha", 0);
  out->limit = (float)ir_float(op, "limit", 0);
}

/* An attribute that names one of several, where the op has it. */
static stele_status read_name(const flattening *f, MlirOperation op, const char *attribute,
                              ir_naming naming, uint32_t *out) {
  const char *name = ir_string(op, attribute, NULL);
  if (name && !ir_number(naming, name, out)) return fail(f, op, attribute, name);
  return STELE_OK;
}

static stele_status read_names(const flattening *f, MlirOperation op, stele_op *out) {
  BASE_TRY(read_name(f, op, "pairing", IR_PAIRINGS, &out->pairing));
  BASE_TRY(read_name(f, op, "function", IR_FUNCTIONS, &out->function));
  BASE_TRY(read_name(f, op, "rule", IR_ROUTES, &out->rule));
  return read_name(f, op, "kind", IR_OUTPUTS, &out->output_kind);
}

static stele_status read_prologue(const flattening *f, MlirOperation op, stele_op *out) {
  bool norm = ir_has(op, "norm"), combine = ir_int(op, "combine", 0) != 0;
  if (norm && combine) return fail(f, op, "has a norm and", "combine");
  if (norm) out->prologue = STELE_PROLOGUE_NORM;
  if (combine) out->prologue = STELE_PROLOGUE_COMBINE;
  if (ir_int(op, "center", 0)) out->flags |= STELE_FLAG_CENTER;
  out->activation = pass_activation(op);
  if (out->kind == STELE_OP_QKV_CACHE) {
    stele_group group;
    BASE_TRY(pass_group(f->context, out->group, &group));
    out->head = group.key_head;
  }
  return STELE_OK;
}

/* ---- ops and steps --------------------------------------------------------------------- */

static stele_op empty_op(MlirOperation op) {
  stele_op out = {.kind = ir_kind(op),
                  .layer = -1,
                  .in = {-1, -1},
                  .out = -1,
                  .prepared = -1,
                  .scratch = -1,
                  .stage = -1};
  for (int i = 0; i < STELE_W_COUNT; i++) out.weight[i] = -1;
  return out;
}

static uint32_t count_tokens(const pass_step *step, MlirOperation op) {
  bool valueless = ir_is(op, STELE_OP_CACHE_UPDATE) || ir_is(op, STELE_OP_CACHE_STORE);
  return (uint32_t)(valueless ? step->lanes * step->width : pass_tokens(op));
}

static stele_status flatten_op(flattening *f, pass_step *step, uint32_t position, stele_op *out) {
  MlirOperation op = step->ops[position];
  *out = empty_op(op);
  read_numbers(op, out);
  read_expert_numbers(op, out);
  out->tokens = count_tokens(step, op);
  if (!out->tiles) return fail(f, op, "tile must run first, no", "tiles");
  BASE_TRY(read_names(f, op, out));
  BASE_TRY(read_weights(f, op, out));
  BASE_TRY(read_prologue(f, op, out));
  BASE_TRY(read_operands(f, step, op, out));
  BASE_TRY(read_places(f, op, position, out));
  find_stage(f, step, op, out);
  return STELE_OK;
}

/* An output whose value the linear before it has already put in its place. */
static bool is_written_already(MlirOperation op) {
  return ir_is(op, STELE_OP_OUTPUT) && ir_int(pass_source(op, 0), "logits", 0) != 0;
}

static stele_status begin_step(flattening *f, const pass_step *step, stele_program_step *out) {
  *out = (stele_program_step){.lanes = (uint32_t)step->lanes,
                              .width = (uint32_t)step->width,
                              .first_op = (uint32_t)(f->ops.size / sizeof(stele_op))};
  BASE_TRY(read_name(f, step->op, "kind", IR_STEP_KINDS, &out->kind));
  BASE_TRY(read_name(f, step->op, "output", IR_OUTPUTS, &out->output));
  f->result = base_arena_alloc(f->context->arena, step->count + 1, sizeof *f->result);
  f->stage = base_arena_alloc(f->context->arena, step->count + 1, sizeof *f->stage);
  if (!f->result || !f->stage) return pass_no_memory(f->context);
  memset(f->result, -1, step->count * sizeof *f->result);
  memset(f->stage, -1, step->count * sizeof *f->stage);
  memset(f->read, 0, f->weights.count);
  return STELE_OK;
}

static void end_step(flattening *f, const pass_step *step, stele_program_step *made) {
  stele_program *h = &f->header;
  made->op_count = (uint32_t)(f->ops.size / sizeof(stele_op)) - made->first_op;
  if (made->lanes > h->max_lanes) h->max_lanes = made->lanes;
  if (made->kind == STELE_STEP_PREFILL && made->width > h->prefill_width)
    h->prefill_width = made->width;
  uint64_t workspace = (uint64_t)ir_int(step->op, "workspace", 0);
  if (workspace > h->workspace_bytes) h->workspace_bytes = workspace;
  base_buffer_append(&f->steps, made, sizeof *made);
}

stele_status flatten_step(pass_step *step, void *flattening_data) {
  flattening *f = flattening_data;
  stele_program_step made;
  BASE_TRY(begin_step(f, step, &made));
  uint32_t barrier = 0; /* of a dropped op, for the next one */
  for (uint32_t i = 0; i < step->count; i++) {
    MlirOperation op = step->ops[i];
    if (!pass_is_work(ir_kind(op))) continue;
    if (is_written_already(op)) {
      barrier |= ir_int(op, "barrier", 0) != 0;
      continue;
    }
    stele_op out;
    BASE_TRY(flatten_op(f, step, i, &out));
    out.barrier |= barrier;
    barrier = 0;
    made.bytes_per_call += flatten_bytes_read(f, &out);
    if (out.kind == STELE_OP_ROPE || out.kind == STELE_OP_QKV_CACHE)
      made.bytes_per_call += (uint64_t)out.rotary * sizeof(float) * out.tokens;
    base_buffer_append(&f->ops, &out, sizeof out);
  }
  end_step(f, step, &made);
  return STELE_OK;
}
