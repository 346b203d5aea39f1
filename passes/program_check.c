/* program_check: whether a program can be trusted. First the block itself, its tables inside it;
 * then each row's indices and sizes; then each op against what program.h says of its kind (sizes
 * in program_shapes.c); last, in program_race.c, whether workers keep out of each other's way. */
#include "program_check.h"

#include <stdio.h>
#include <string.h>

#include "weights/weights.h"

void program_fault(program_checker *checker, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  checker->faults++;
  const stele_op *op = stele_program_ops(checker->program, checker->op);
  static const char *const names[] = {
#define OP(name, mnemonic, ...) mnemonic,
#include "stele/ops.def"
#undef OP
  };
  base_sink_add(checker->sink, "program: step %u, op %u '%s': %s", checker->step, checker->op,
                op->kind < STELE_OP_COUNT ? names[op->kind] : "?", text);
}

/* ---- the block ------------------------------------------------------------------------- */

static stele_status check_block(const stele_program *p, stele_sink *sink) {
  if (p->magic != STELE_PROGRAM_MAGIC || p->version != STELE_PROGRAM_VERSION)
    return base_fail(sink, STELE_MISMATCH, "program: version %u, expected %u", p->version,
                     STELE_PROGRAM_VERSION);
  const struct {
    const char *name;
    stele_table table;
    size_t size;
  } tables[] = {{"steps", p->steps, sizeof(stele_program_step)},
                {"ops", p->ops, sizeof(stele_op)},
                {"buffers", p->buffers, sizeof(stele_buffer)},
                {"weights", p->weights, sizeof(stele_program_weight)},
                {"groups", p->groups, sizeof(stele_group)},
                {"ropes", p->ropes, sizeof(stele_program_rope)},
                {"layer_group", p->layer_group, sizeof(uint32_t)},
                {"strings", p->strings, 1}};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    size_t bytes, end;
    if (tables[i].table.offset % 8 != 0 ||
        !base_mul(tables[i].table.count, tables[i].size, &bytes) ||
        !base_add(tables[i].table.offset, bytes, &end) || end > p->bytes)
      return base_fail(sink, STELE_BAD_FORMAT, "program: table '%s' lies outside the program",
                       tables[i].name);
  }
  if (p->strings.count && *stele_program_strings(p, p->strings.count - 1) != 0)
    return base_fail(sink, STELE_BAD_FORMAT, "program: table 'strings' does not end with a zero");
  if (p->layer_group.count != p->layers)
    return base_fail(sink, STELE_BAD_FORMAT, "program: %llu entries in 'layer_group', %u layers",
                     (unsigned long long)p->layer_group.count, p->layers);
  return STELE_OK;
}

/* ---- rows of the tables ---------------------------------------------------------------- */

static bool fits(uint64_t offset, uint64_t bytes, uint64_t copies, uint64_t limit) {
  size_t total, end;
  return offset % 64 == 0 && base_mul(bytes, copies, &total) && base_add(offset, total, &end) &&
         end <= limit;
}

static uint64_t row_bytes(uint32_t scheme, uint64_t columns) {
  if (scheme == STELE_Q8_0) return stele_q8_row_bytes(columns);
  return scheme == STELE_F16 || scheme == STELE_BF16 ? columns * 2 : columns * 4;
}

static bool buffer_is_good(const stele_program *p, const stele_buffer *b) {
  return b->tokens && b->columns && b->bytes % 64 == 0 && weights_scheme_get(b->scheme) &&
         fits(b->offset, b->bytes, b->per_worker ? p->max_workers : 1, p->workspace_bytes) &&
         (b->scheme != STELE_Q8_0 || b->columns % 32 == 0) &&
         b->bytes / row_bytes(b->scheme, b->columns) >= b->tokens;
}

static bool weight_is_good(const stele_program *p, const stele_program_weight *w) {
  return w->name < p->strings.count && weights_scheme_get(w->scheme) && w->rows && w->columns &&
         w->rows <= INT32_MAX && w->columns <= INT32_MAX &&
         (!w->experts || (w->rows % w->experts == 0 && w->bytes % w->experts == 0)) &&
         fits(w->offset, w->bytes, 1, p->weights_bytes);
}

/* Keys or values of a page fit into so many bytes, in whole blocks. */
static bool fits_page(const stele_group *g, uint32_t scheme, uint32_t head, uint64_t bytes) {
  size_t row, all;
  return weights_scheme_is_cache(scheme) && head % weights_scheme_get(scheme)->block == 0 &&
         weights_row_bytes(scheme, (uint64_t)g->page_tokens * head, &row) &&
         base_mul(row, g->kv_heads, &all) && all <= bytes;
}

static bool group_is_good(const stele_group *g) {
  uint32_t t = g->page_tokens;
  return g->kv_heads && g->key_head && g->value_head && g->capacity && t && t <= 64 &&
         (t & (t - 1)) == 0 && g->table_entries == (g->capacity + t - 1) / t &&
         g->page_bytes % 64 == 0 && g->value_offset <= g->page_bytes &&
         fits_page(g, g->key_scheme, g->key_head, g->value_offset) &&
         (g->value_in_key ||
          fits_page(g, g->value_scheme, g->value_head, g->page_bytes - g->value_offset));
}

static bool rope_is_good(const stele_program *p, const stele_program_rope *r) {
  if (r->rotary % 2) return false;
  if (r->rule != STELE_ROPE_FIXED) return r->weight == -1;
  if (r->weight < 0 || (uint64_t)r->weight >= p->weights.count) return false;
  const stele_program_weight *w = stele_program_weights(p, (uint64_t)r->weight);
  return w->scheme == STELE_F32 && w->layout == 0 && w->rows >= p->capacity &&
         w->columns == r->rotary;
}

static bool step_is_good(const stele_program *p, const stele_program_step *s) {
  return s->lanes && s->width && s->lanes <= p->max_lanes && s->lanes <= INT32_MAX / s->width &&
         s->first_op <= p->ops.count && s->op_count <= p->ops.count - s->first_op;
}

static void check_rows(program_checker *c) {
  const stele_program *p = c->program;
#define CHECK_TABLE(table, good)                                                             \
  for (uint64_t i = 0; i < p->table.count; i++)                                              \
    if (!(good)) {                                                                           \
      c->faults++;                                                                           \
      base_sink_add(c->sink, "program: row %llu of table '" #table "' is out of its bounds", \
                    (unsigned long long)i);                                                  \
    }
  CHECK_TABLE(buffers, buffer_is_good(p, stele_program_buffers(p, i)))
  CHECK_TABLE(weights, weight_is_good(p, stele_program_weights(p, i)))
  CHECK_TABLE(groups, group_is_good(stele_program_groups(p, i)))
  CHECK_TABLE(ropes, rope_is_good(p, stele_program_ropes(p, i)))
  CHECK_TABLE(steps, step_is_good(p, stele_program_steps(p, i)))
  CHECK_TABLE(layer_group, *stele_program_layer_group(p, i) == UINT32_MAX ||
                               *stele_program_layer_group(p, i) < p->groups.count)
#undef CHECK_TABLE
}

/* ---- ops ------------------------------------------------------------------------------- */

/* What an op of a kind has: inputs, a result (1 f32, 2 of any scheme, 3 token ids), matrices, a
 * norm weight of its own, a group, scratch. */
typedef struct needs {
  uint8_t inputs, result, matrices, norm, group, scratch;
} needs;
static const needs needs_of[STELE_OP_COUNT] = {
    [STELE_OP_EMBED] = {0, 1, 1, 0, 0, 0},
    [STELE_OP_RMS_NORM] = {1, 1, 0, 1, 0, 0},
    [STELE_OP_LAYER_NORM] = {1, 1, 0, 1, 0, 0},
    [STELE_OP_POSITION_EMBED] = {1, 1, 1, 0, 0, 0},
    [STELE_OP_HEAD_LINEAR] = {1, 1, 1, 0, 0, 0},
    [STELE_OP_CONCAT] = {2, 1, 0, 0, 0, 0},
    [STELE_OP_SCALE] = {1, 1, 0, 0, 0, 0},
    [STELE_OP_SOFT_CAP] = {1, 1, 0, 0, 0, 0},
    [STELE_OP_PREPARE] = {1, 2, 0, 0, 0, 0},
    [STELE_OP_LINEAR] = {1, 1, 1, 0, 0, 0},
    [STELE_OP_LINEAR_ADD] = {2, 1, 1, 0, 0, 0},
    [STELE_OP_LINEAR_ARGMAX] = {1, 3, 1, 0, 0, 1},
    [STELE_OP_GATE_UP] = {1, 2, 2, 0, 0, 0},
    [STELE_OP_QKV_CACHE] = {1, 1, 3, 0, 1, 0},
    [STELE_OP_ROPE] = {1, 1, 0, 0, 0, 0},
    [STELE_OP_CACHE_UPDATE] = {2, 0, 0, 0, 1, 0},
    [STELE_OP_ATTENTION] = {1, 1, 0, 0, 1, 0},
    [STELE_OP_ATTENTION_PARTIAL] = {1, 1, 0, 0, 1, 0},
    [STELE_OP_ATTENTION_COMBINE] = {1, 1, 0, 0, 1, 0},
    [STELE_OP_CACHE_STORE] = {0, 0, 0, 0, 1, 0},
    [STELE_OP_ACTIVATION] = {1, 1, 0, 0, 0, 0},
    [STELE_OP_MUL] = {2, 1, 0, 0, 0, 0},
    [STELE_OP_ADD] = {2, 1, 0, 0, 0, 0},
    [STELE_OP_ROUTE] = {1, 1, 0, 0, 0, 0},
    [STELE_OP_EXPERTS_GATE_UP] = {2, 2, 2, 0, 0, 0},
    [STELE_OP_EXPERTS_DOWN] = {2, 1, 1, 0, 0, 0},
    [STELE_OP_LAST_TOKEN] = {1, 1, 0, 0, 0, 0},
    [STELE_OP_ARGMAX] = {1, 3, 0, 0, 0, 0},
    [STELE_OP_OUTPUT] = {1, 0, 0, 0, 0, 0},
    [STELE_OP_OUTPUT_TOKEN] = {1, 0, 0, 0, 0, 0},
};

static bool is_runnable(uint32_t kind) {
  return kind < STELE_OP_COUNT &&
         (needs_of[kind].inputs || needs_of[kind].result || needs_of[kind].group);
}

static const stele_buffer *buffer_at(const program_checker *c, int32_t i) {
  return i >= 0 ? stele_program_buffers(c->program, (uint64_t)i) : NULL;
}

static bool is_index(int32_t i, uint64_t count) {
  return i == -1 || (i >= 0 && (uint64_t)i < count);
}

static bool check_indices(program_checker *c, const stele_op *op) {
  const stele_program *p = c->program;
  uint32_t before = c->faults;
  const int32_t buffers[] = {op->in[0], op->in[1], op->prepared, op->scratch, op->stage};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
    if (!is_index(buffers[i], p->buffers.count))
      program_fault(c, "buffer %d of %llu", buffers[i], (unsigned long long)p->buffers.count);
  bool logits = op->out == STELE_BUFFER_LOGITS && op->kind == STELE_OP_LINEAR;
  if (!logits && !is_index(op->out, p->buffers.count))
    program_fault(c, "result in buffer %d of %llu", op->out, (unsigned long long)p->buffers.count);
  for (int slot = 0; slot < STELE_W_COUNT; slot++)
    if (!is_index(op->weight[slot], p->weights.count))
      program_fault(c, "weight %d of %llu", op->weight[slot], (unsigned long long)p->weights.count);
  if (op->layer < -1 || op->layer >= (int64_t)p->layers)
    program_fault(c, "layer %d of %u", op->layer, p->layers);
  bool grouped = needs_of[op->kind].group || op->prologue == STELE_PROLOGUE_COMBINE;
  if (grouped && op->group >= p->groups.count)
    program_fault(c, "group %u of %llu", op->group, (unsigned long long)p->groups.count);
  if (op->kind == STELE_OP_ROPE || (op->kind == STELE_OP_QKV_CACHE && op->rotary))
    if (op->rope >= p->ropes.count || stele_program_ropes(p, op->rope)->rotary != op->rotary ||
        op->rope_offset > op->head || op->rotary > op->head - op->rope_offset)
      program_fault(c, "rope %u with %u of %u elements at %u does not fit", op->rope, op->rotary,
                    op->head, op->rope_offset);
  return c->faults == before;
}

/* What the kind needs is there, and of the right scheme. */
static bool check_needs(program_checker *c, const stele_op *op) {
  const needs *n = &needs_of[op->kind];
  uint32_t before = c->faults;
  bool without_values = op->kind == STELE_OP_CACHE_UPDATE &&
                        stele_program_groups(c->program, op->group)->value_in_key;
  for (int i = 0; i < 2; i++)
    if ((op->in[i] >= 0) != (i < n->inputs - without_values))
      program_fault(c, "input %d is buffer %d", i, op->in[i]);
  if (n->result ? op->out == -1 : op->out != -1) program_fault(c, "result in buffer %d", op->out);
  const stele_buffer *out = buffer_at(c, op->out);
  if (out && ((n->result == 1 && out->scheme != STELE_F32) ||
              (n->result == 3 && out->scheme != STELE_I32)))
    program_fault(c, "result of scheme %u", out->scheme);
  bool alone = op->kind == STELE_OP_GATE_UP && op->weight[STELE_W_B] < 0; /* no up */
  for (int i = 0; i < 3; i++)
    if ((op->weight[STELE_W_A + i] >= 0) != (i < n->matrices - alone))
      program_fault(c, "matrix %d is weight %d", i, op->weight[STELE_W_A + i]);
  bool norm = n->norm || op->prologue == STELE_PROLOGUE_NORM;
  if (norm && op->weight[STELE_W_NORM] < 0) program_fault(c, "a norm without weight");
  if (n->group && op->kind == STELE_OP_QKV_CACHE &&
      stele_program_groups(c->program, op->group)->value_in_key)
    program_fault(c, "values of its own, but its group has them in the keys");
  if (n->scratch && op->scratch < 0) program_fault(c, "no scratch");
  bool staged = (op->flags & STELE_FLAG_STAGED) || op->kind == STELE_OP_CACHE_STORE;
  if (staged && op->stage < 0) program_fault(c, "no stage");
  if ((n->group || op->kind == STELE_OP_CACHE_STORE) && op->kind != STELE_OP_ATTENTION_COMBINE &&
      op->layer < 0)
    program_fault(c, "works on a cache outside layers");
  return c->faults == before;
}

static bool is_matrix_op(uint32_t kind) {
  return needs_of[kind].matrices && kind != STELE_OP_EMBED && kind != STELE_OP_POSITION_EMBED &&
         kind != STELE_OP_HEAD_LINEAR;
}

/* The input as the matrices read it: what the prologue leaves, or the buffer itself. */
static void check_input(program_checker *c, const stele_op *op, uint64_t columns) {
  const stele_buffer *in = buffer_at(c, op->in[0]), *prepared = buffer_at(c, op->prepared);
  bool quantises = op->activation == STELE_Q8_0 && in->scheme == STELE_F32;
  bool wanted = op->prologue != STELE_PROLOGUE_NONE || quantises;
  if (wanted != (prepared != NULL)) {
    program_fault(c, "prologue %u with prepared buffer %d", op->prologue, op->prepared);
    return;
  }
  const stele_buffer *read = prepared ? prepared : in;
  if (read->scheme != op->activation || read->columns != columns || read->tokens != op->tokens)
    program_fault(c, "reads %u x %u of scheme %u, expected %u x %llu of scheme %u", read->tokens,
                  read->columns, read->scheme, op->tokens, (unsigned long long)columns,
                  op->activation);
  if (prepared && !prepared->per_worker) program_fault(c, "a prepared buffer that workers share");
}

/* The matrices of an op of experts are theirs, those of any other are one. */
static void check_experts(program_checker *c, const stele_op *op) {
  bool wanted = op->kind == STELE_OP_EXPERTS_GATE_UP || op->kind == STELE_OP_EXPERTS_DOWN;
  uint32_t experts = wanted ? op->experts : 0;
  for (int i = 0; i < needs_of[op->kind].matrices; i++) {
    int32_t index = op->weight[STELE_W_A + i];
    if (index < 0) continue; /* gate_up may lack the second */
    const stele_program_weight *w = stele_program_weights(c->program, (uint64_t)index);
    if (w->experts != experts)
      program_fault(c, "matrix %d of %u experts, expected %u", i, w->experts, experts);
  }
  bool named = wanted || op->kind == STELE_OP_ROUTE;
  if (named && (!op->experts_used || op->experts_used > op->experts))
    program_fault(c, "%u of %u experts", op->experts_used, op->experts);
  if (op->kind == STELE_OP_ROUTE && op->expert_groups &&
      (op->experts % op->expert_groups || op->expert_groups_used > op->expert_groups ||
       op->experts / op->expert_groups * op->expert_groups_used < op->experts_used))
    program_fault(c, "%u experts out of %u of %u groups", op->experts_used, op->expert_groups_used,
                  op->expert_groups);
}

/* Tiles cover the rows of a matrix. */
static void check_tiles(program_checker *c, const stele_op *op, uint64_t rows) {
  uint64_t tiles = op->tiles;
  if (op->kind == STELE_OP_EXPERTS_GATE_UP) {
    uint64_t most = base_min(op->experts, (uint64_t)op->tokens * op->experts_used);
    tiles = tiles % most ? 0 : tiles / most;
  }
  uint64_t covered = tiles * op->tile_rows;
  if (covered < rows || covered - op->tile_rows >= rows)
    program_fault(c, "%u tiles of %u rows for %llu rows", op->tiles, op->tile_rows,
                  (unsigned long long)rows);
}

static void check_matrix_op(program_checker *c, const stele_op *op) {
  const stele_program_weight *a =
      stele_program_weights(c->program, (uint64_t)op->weight[STELE_W_A]);
  uint64_t columns = a->columns, rows = a->rows / base_max(a->experts, 1);
  uint64_t many = op->kind == STELE_OP_EXPERTS_DOWN ? op->experts_used : 1;
  uint64_t written = op->kind == STELE_OP_EXPERTS_GATE_UP ? rows * op->experts_used : rows;
  for (int i = 1; i < needs_of[op->kind].matrices && op->weight[STELE_W_A + i] >= 0; i++) {
    const stele_program_weight *w =
        stele_program_weights(c->program, (uint64_t)op->weight[STELE_W_A + i]);
    if (w->columns != columns || (op->kind != STELE_OP_QKV_CACHE && w->rows != a->rows))
      program_fault(c, "matrices of %llu x %llu and %llu x %llu", (unsigned long long)rows,
                    (unsigned long long)columns, (unsigned long long)w->rows,
                    (unsigned long long)w->columns);
  }
  check_input(c, op, columns * many);
  const stele_buffer *out = buffer_at(c, op->out);
  if (out && op->kind != STELE_OP_LINEAR_ARGMAX &&
      (out->columns != written || out->tokens != op->tokens))
    program_fault(c, "writes %u x %u, expected %u x %llu", out->tokens, out->columns, op->tokens,
                  (unsigned long long)written);
  if (op->out == STELE_BUFFER_LOGITS && rows != c->program->vocab)
    program_fault(c, "%llu logits, the vocabulary has %u", (unsigned long long)rows,
                  c->program->vocab);
  if (op->kind == STELE_OP_QKV_CACHE) return;
  check_tiles(c, op, rows);
  if (out && out->scheme == STELE_Q8_0 && op->tile_rows % 32)
    program_fault(c, "tiles of %u rows written in blocks of 32", op->tile_rows);
}

static void check_heads(program_checker *c, const stele_op *op) {
  const stele_group *g = stele_program_groups(c->program, op->group);
  bool has_heads = op->kind != STELE_OP_CACHE_UPDATE && op->kind != STELE_OP_CACHE_STORE;
  if (has_heads && (op->heads == 0 || op->heads % g->kv_heads))
    program_fault(c, "%u heads over %u of the cache", op->heads, g->kv_heads);
  if (op->layer >= 0 && *stele_program_layer_group(c->program, (uint64_t)op->layer) != op->group)
    program_fault(c, "group %u, but layer %d is in another", op->group, op->layer);
}

static void check_op(program_checker *c, const stele_program_step *step) {
  const stele_op *op = stele_program_ops(c->program, c->op);
  if (!is_runnable(op->kind)) {
    program_fault(c, "kind %u does not run", op->kind);
    return;
  }
  if (op->tokens != step->lanes && op->tokens != step->lanes * step->width)
    program_fault(c, "%u tokens in a step of %u lanes x %u", op->tokens, step->lanes, step->width);
  if (!op->tiles || !op->tile_rows) program_fault(c, "%u tiles of %u", op->tiles, op->tile_rows);
  if (op->activation != STELE_F32 && op->activation != STELE_Q8_0)
    program_fault(c, "activations of scheme %u", op->activation);
  if (!check_indices(c, op) || !check_needs(c, op)) return;
  uint32_t before = c->faults;
  check_experts(c, op);
  if (c->faults == before && is_matrix_op(op->kind)) check_matrix_op(c, op);
  if (needs_of[op->kind].group || op->prologue == STELE_PROLOGUE_COMBINE) check_heads(c, op);
  if (c->faults == before) program_check_shapes(c, step, op);
}

stele_status program_check(const stele_program *program, stele_sink *sink) {
  if (sink) sink->text[0] = 0;
  BASE_TRY(check_block(program, sink));
  program_checker c = {.program = program, .sink = sink};
  check_rows(&c);
  if (c.faults) return STELE_BAD_FORMAT;
  for (; c.step < program->steps.count; c.step++) {
    const stele_program_step *step = stele_program_steps(program, c.step);
    uint32_t before = c.faults;
    for (uint32_t i = 0; i < step->op_count; i++) {
      c.op = step->first_op + i;
      check_op(&c, step);
    }
    if (c.faults == before && !program_check_races(&c, step))
      return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory while checking a program");
  }
  return c.faults ? STELE_BAD_FORMAT : STELE_OK;
}
