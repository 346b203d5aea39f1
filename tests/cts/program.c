/* Builds programs by hand: buffers, weights with random contents, ops, and the block of memory
 * that program.h describes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cts.h"
#include "weights/weights.h"

/* splitmix64 (Steele, Lea, Flood 2014) over seed and counter */
uint64_t cts_random(uint64_t seed, uint64_t counter) {
  uint64_t z = seed * 0x9e3779b97f4a7c15u + counter * 0xd1342543de82ef95u + 0x2545f4914f6cdd1du;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

float cts_random_float(uint64_t seed, uint64_t counter) {
  return (float)(cts_random(seed, counter) >> 40) / (float)(1 << 23) - 1.0f;
}

uint32_t cts_tokens(const cts_program *p) { return p->step.lanes * p->step.width; }

/* ---- buffers --------------------------------------------------------------------------- */

static uint64_t row_bytes(uint32_t columns, uint32_t scheme) {
  return scheme == STELE_Q8_0 ? stele_q8_row_bytes(columns) : (uint64_t)columns * 4;
}

int32_t cts_buffer(cts_program *p, uint32_t tokens, uint32_t columns, uint32_t scheme) {
  uint32_t i = p->buffer_count++;
  uint64_t bytes = base_align(tokens * row_bytes(columns, scheme), 64);
  p->buffers[i] = (stele_buffer){p->workspace_bytes, bytes, tokens, columns, scheme, 0};
  p->workspace_bytes += bytes;
  return (int32_t)i;
}

int32_t cts_input(cts_program *p, uint32_t tokens, uint32_t columns, uint32_t scheme) {
  int32_t i = cts_buffer(p, tokens, columns, scheme);
  p->fill[i] = CTS_RANDOM;
  return i;
}

int32_t cts_output(cts_program *p, uint32_t tokens, uint32_t columns, uint32_t scheme) {
  int32_t i = cts_buffer(p, tokens, columns, scheme);
  p->checked[i] = true;
  return i;
}

int32_t cts_per_worker(cts_program *p, uint32_t tokens, uint32_t columns, uint32_t scheme) {
  int32_t i = cts_buffer(p, tokens, columns, scheme);
  p->buffers[i].per_worker = 1;
  p->workspace_bytes += (CTS_WORKERS - 1) * p->buffers[i].bytes;
  return i;
}

/* ---- weights --------------------------------------------------------------------------- */

static void put_half(uint8_t *at, float value) {
  uint16_t half = base_f32_to_f16(value);
  memcpy(at, &half, sizeof half);
}

/* What gives random blocks numbers of about the same size in all schemes: where a block's scale is,
 * the largest product of a number and a scale of parts, and where its minimum is, which is such a
 * multiple of the scale that numbers lie about zero. */
static const struct {
  float range;
  uint32_t d_at, m_at; /* m_at 0: none */
  float m_ratio;
} block_sizes[] = {
    [STELE_Q8_0] = {127, 0, 0, 0},
    [STELE_Q4_0] = {8, 0, 0, 0},
    [STELE_Q4_1] = {8, 0, 2, -7.5f},
    [STELE_Q5_0] = {16, 0, 0, 0},
    [STELE_Q5_1] = {16, 0, 2, -15.5f},
    [STELE_Q2_K] = {1.5f * 15, 80, 82, 1.5f},
    [STELE_Q3_K] = {4 * 32, 108, 0, 0},
    [STELE_Q4_K] = {7.5f * 63, 0, 2, 7.5f},
    [STELE_Q5_K] = {15.5f * 63, 0, 2, 15.5f},
    [STELE_Q6_K] = {32 * 127, 208, 0, 0},
};

static void fill_block(uint32_t scheme, uint64_t seed, uint64_t index, float r, uint8_t *at) {
  const float d = (0.3f + 0.2f * r) / block_sizes[scheme].range;
  const uint32_t d_at = block_sizes[scheme].d_at, m_at = block_sizes[scheme].m_at;
  for (uint32_t i = 0; i < weights_scheme_get(scheme)->block_bytes; i++)
    at[i] = (uint8_t)(cts_random(seed + 1, index * 256 + i) >> 13);
  put_half(at + d_at, d);
  if (m_at) put_half(at + m_at, block_sizes[scheme].m_ratio * d * (1 + 0.1f * r));
}

static void fill_blocks(uint32_t scheme, uint64_t seed, uint8_t *out, size_t blocks) {
  const weights_scheme *info = weights_scheme_get(scheme);
  for (size_t b = 0; b < blocks; b++) {
    uint8_t *at = out + b * info->block_bytes;
    float r = cts_random_float(seed, b);
    if (scheme == STELE_F32) {
      memcpy(at, &r, sizeof r);
    } else if (scheme == STELE_F16 || scheme == STELE_BF16) {
      uint16_t half = scheme == STELE_F16 ? base_f32_to_f16(r) : base_f32_to_bf16(r);
      memcpy(at, &half, sizeof half);
    } else {
      fill_block(scheme, seed, b, r, at);
    }
  }
}

static int32_t add_weight(cts_program *p, uint32_t scheme, uint64_t rows, uint64_t columns) {
  uint32_t i = p->weight_count++;
  cts_weight *w = &p->weights[i];
  size_t row = 0;
  *w = (cts_weight){.scheme = scheme, .rows = rows, .columns = columns};
  (void)weights_row_bytes(scheme, columns, &row);
  w->bytes = row * rows;
  w->plain = base_arena_alloc(p->arena, w->bytes, 1);
  return (int32_t)i;
}

int32_t cts_matrix(cts_program *p, uint32_t scheme, uint64_t rows, uint64_t columns,
                   bool embedding) {
  int32_t i = add_weight(p, scheme, rows, columns);
  p->weights[i].embedding = embedding;
  const weights_scheme *info = weights_scheme_get(scheme);
  fill_blocks(scheme, p->seed + 100 + (uint64_t)i, p->weights[i].plain,
              p->weights[i].bytes / info->block_bytes);
  return i;
}

int32_t cts_vector(cts_program *p, uint64_t columns, float centre, float spread) {
  int32_t i = add_weight(p, STELE_F32, 1, columns);
  p->weights[i].vector = true;
  float *values = (float *)(void *)p->weights[i].plain;
  for (uint64_t c = 0; c < columns; c++)
    values[c] = centre + spread * cts_random_float(p->seed + 200 + (uint64_t)i, c);
  return i;
}

uint32_t cts_rope(cts_program *p, uint32_t rotary, bool dynamic) {
  uint32_t i = p->rope_count++;
  p->ropes[i] =
      (stele_program_rope){dynamic ? STELE_ROPE_DYNAMIC : STELE_ROPE_FIXED, rotary, -1, 0};
  if (!dynamic) {
    p->ropes[i].weight = add_weight(p, STELE_F32, p->capacity, rotary);
    cts_weight *w = &p->weights[p->ropes[i].weight];
    w->vector = true; /* plain, whatever the target */
    for (size_t n = 0; n < w->bytes / 4; n++)
      ((float *)(void *)w->plain)[n] = cts_random_float(p->seed + 300, n);
  }
  return i;
}

/* ---- groups and ops -------------------------------------------------------------------- */

/* Keys or values of a page, in bytes. */
static uint64_t page_part(const cts_program *p, uint32_t head) {
  size_t bytes;
  if (!weights_row_bytes(p->cache_scheme, (uint64_t)p->shape->page_tokens * head, &bytes)) abort();
  return (uint64_t)bytes * p->shape->kv_heads;
}

void cts_group(cts_program *p) {
  const cts_shape *s = p->shape;
  uint32_t value_head = s->value_head ? s->value_head : s->key_head;
  uint64_t keys = page_part(p, s->key_head);
  uint64_t values = s->value_in_key ? 0 : page_part(p, value_head);
  p->groups[0] = (stele_group){.kind = s->chunk    ? STELE_GROUP_CHUNK
                                       : s->window ? STELE_GROUP_WINDOW
                                                   : STELE_GROUP_FULL,
                               .layers = 1,
                               .kv_heads = s->kv_heads,
                               .key_head = s->key_head,
                               .value_head = value_head,
                               .key_scheme = p->cache_scheme,
                               .value_scheme = p->cache_scheme,
                               .capacity = p->capacity,
                               .window = s->chunk ? s->chunk : s->window,
                               .page_tokens = s->page_tokens,
                               .table_entries = (p->capacity + s->page_tokens - 1) / s->page_tokens,
                               .shared_with = -1,
                               .value_in_key = s->value_in_key,
                               .page_bytes = base_align(base_align(keys, 64) + values, 64),
                               .value_offset = base_align(keys, 64)};
  p->group_count = 1;
  p->layers = 1;
}

stele_op *cts_op(cts_program *p, uint32_t kind) {
  stele_op *op = &p->ops[p->op_count++];
  *op = (stele_op){.kind = kind,
                   .layer = -1,
                   .tokens = cts_tokens(p),
                   .barrier = p->op_count > 1,
                   .tiles = cts_tokens(p),
                   .tile_rows = 1,
                   .activation = STELE_F32,
                   .in = {-1, -1},
                   .out = -1,
                   .prepared = -1,
                   .scratch = -1,
                   .stage = -1,
                   .eps = 1e-5f,
                   .head_eps = 1e-6f,
                   .scale = 1};
  for (uint32_t i = 0; i < STELE_W_COUNT; i++) op->weight[i] = -1;
  return op;
}

void cts_tile(const cts_program *p, stele_op *op, uint64_t rows, uint32_t multiple) {
  uint32_t align = p->traits->row_align, unit = align;
  while (unit % multiple) unit += align;
  op->tile_rows = unit * (p->shape->tiles ? p->shape->tiles : 1);
  op->tiles = (uint32_t)((rows + op->tile_rows - 1) / op->tile_rows);
}

/* ---- the block ------------------------------------------------------------------------- */

/* Where the things of one case begin in the tables of the program that holds them all. */
static void place(cts_program **cases, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    cts_program *p = cases[i];
    const cts_program *before = cases[i - 1];
    p->first_op = before->first_op + before->op_count;
    p->first_buffer = before->first_buffer + before->buffer_count;
    p->first_weight = before->first_weight + before->weight_count;
    p->first_group = before->first_group + before->group_count;
    p->first_rope = before->first_rope + before->rope_count;
  }
}

static int32_t shift(int32_t index, uint32_t by) { return index < 0 ? index : index + (int32_t)by; }

/* An op with the indices of the program that holds all cases; a group has a layer of its own. */
static stele_op placed_op(const cts_program *p, stele_op op) {
  for (int i = 0; i < 2; i++) op.in[i] = shift(op.in[i], p->first_buffer);
  op.out = shift(op.out, p->first_buffer);
  op.prepared = shift(op.prepared, p->first_buffer);
  op.scratch = shift(op.scratch, p->first_buffer);
  op.stage = shift(op.stage, p->first_buffer);
  for (int i = 0; i < STELE_W_COUNT; i++) op.weight[i] = shift(op.weight[i], p->first_weight);
  op.layer = shift(op.layer, p->first_group);
  if (p->group_count) op.group += p->first_group;
  if (p->rope_count) op.rope += p->first_rope;
  return op;
}

/* The tables in the making. */
typedef struct tables {
  base_buffer steps, ops, buffers, weights, groups, ropes, layer_group;
  stele_program head;
} tables;

static stele_status add_weights(const cts_program *p, const stele_target *target, void *self,
                                stele_sink *sink, tables *t) {
  for (uint32_t i = 0; i < p->weight_count; i++) {
    const cts_weight *w = &p->weights[i];
    stele_program_weight laid = {.scheme = w->scheme,
                                 .rows = w->rows,
                                 .columns = w->columns,
                                 .experts = w->experts,
                                 .offset = t->head.weights_bytes,
                                 .bytes = w->bytes};
    uint64_t matrices = base_max(w->experts, 1);
    if (target && !w->vector) {
      BASE_TRY(target->layout(self, w->scheme, w->rows / matrices, w->columns, w->embedding, sink,
                              &laid.layout, &laid.bytes));
      laid.bytes *= matrices;
    }
    t->head.weights_bytes = base_align(t->head.weights_bytes + laid.bytes, 64);
    base_buffer_append(&t->weights, &laid, sizeof laid);
  }
  return STELE_OK;
}

static void add_case(const cts_program *p, tables *t) {
  stele_program_step step = p->step;
  step.first_op = p->first_op;
  step.op_count = p->op_count;
  base_buffer_append(&t->steps, &step, sizeof step);
  for (uint32_t i = 0; i < p->op_count; i++) {
    stele_op op = placed_op(p, p->ops[i]);
    base_buffer_append(&t->ops, &op, sizeof op);
  }
  base_buffer_append(&t->buffers, p->buffers, p->buffer_count * sizeof p->buffers[0]);
  base_buffer_append(&t->groups, p->groups, p->group_count * sizeof p->groups[0]);
  for (uint32_t i = 0; i < p->rope_count; i++) {
    stele_program_rope rope = p->ropes[i];
    rope.weight = shift(rope.weight, p->first_weight);
    base_buffer_append(&t->ropes, &rope, sizeof rope);
  }
  if (p->group_count) base_buffer_append(&t->layer_group, &p->first_group, sizeof p->first_group);
  t->head.layers += p->group_count;
  t->head.workspace_bytes = base_max(t->head.workspace_bytes, p->workspace_bytes);
  t->head.max_lanes = p->step.lanes;
  t->head.prefill_width = p->step.width;
  t->head.precise = p->precise;
}

static stele_table put_table(base_buffer *block, const base_buffer *rows, size_t size) {
  base_buffer_align(block, 64);
  stele_table table = {block->size, rows->size / size};
  base_buffer_append(block, rows->data, rows->size);
  return table;
}

static stele_program *assemble(base_arena *arena, tables *t) {
  stele_program *head = &t->head, *result = NULL;
  base_buffer block = {0}, strings = {0};
  base_buffer_append(&strings, "", 1);
  base_buffer_append(&block, head, sizeof *head);
  head->steps = put_table(&block, &t->steps, sizeof(stele_program_step));
  head->ops = put_table(&block, &t->ops, sizeof(stele_op));
  head->buffers = put_table(&block, &t->buffers, sizeof(stele_buffer));
  head->weights = put_table(&block, &t->weights, sizeof(stele_program_weight));
  head->groups = put_table(&block, &t->groups, sizeof(stele_group));
  head->ropes = put_table(&block, &t->ropes, sizeof(stele_program_rope));
  head->layer_group = put_table(&block, &t->layer_group, sizeof(uint32_t));
  head->strings = put_table(&block, &strings, 1);
  base_buffer_align(&block, 64);
  head->bytes = block.size;
  if (!block.failed) result = base_arena_alloc(arena, block.size, 1);
  if (result) {
    memcpy(block.data, head, sizeof *head);
    memcpy(result, block.data, block.size);
  }
  base_buffer_deinit(&block);
  base_buffer_deinit(&strings);
  return result;
}

static void free_tables(tables *t) {
  base_buffer *const all[] = {&t->steps,  &t->ops,   &t->buffers,    &t->weights,
                              &t->groups, &t->ropes, &t->layer_group};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) base_buffer_deinit(all[i]);
}

/* Packs each matrix in two pieces where there are enough rows, as the artefact's writer does in
 * many. */
static stele_status pack(const cts_weight *w, const stele_program_weight *laid,
                         const stele_target *target, void *self, uint32_t align, stele_sink *sink,
                         uint8_t *destination) {
  uint64_t matrices = base_max(w->experts, 1), rows = w->rows / matrices;
  uint64_t half = rows / 2 / align * align;
  size_t row = w->bytes / w->rows;
  for (uint64_t i = 0; i < matrices; i++) {
    const uint8_t *from = w->plain + i * rows * row;
    uint8_t *to = destination + i * (laid->bytes / matrices);
    if (half)
      BASE_TRY(target->pack(self, w->scheme, laid->layout, rows, w->columns, half, rows - half,
                            from + half * row, to, sink));
    BASE_TRY(target->pack(self, w->scheme, laid->layout, rows, w->columns, 0, half ? half : rows,
                          from, to, sink));
  }
  return STELE_OK;
}

static stele_status fill_weights(const cts_program *p, const stele_target *target, void *self,
                                 stele_sink *sink, const cts_built *built) {
  for (uint32_t i = 0; i < p->weight_count; i++) {
    const cts_weight *w = &p->weights[i];
    const stele_program_weight *laid = stele_program_weights(built->program, p->first_weight + i);
    if (target && !w->vector)
      BASE_TRY(
          pack(w, laid, target, self, p->traits->row_align, sink, built->weights + laid->offset));
    else
      memcpy(built->weights + laid->offset, w->plain, w->bytes);
  }
  return STELE_OK;
}

static stele_status finish(cts_program **cases, uint32_t count, const stele_target *target,
                           void *self, stele_sink *sink, tables *t, cts_built *out) {
  base_arena *arena = cases[0]->arena;
  place(cases, count);
  t->head = (stele_program){.magic = STELE_PROGRAM_MAGIC,
                            .version = STELE_PROGRAM_VERSION,
                            .vocab = cases[0]->vocab,
                            .hidden = cases[0]->hidden,
                            .capacity = cases[0]->capacity,
                            .max_workers = CTS_WORKERS};
  for (uint32_t i = 0; i < count; i++) {
    BASE_TRY(add_weights(cases[i], target, self, sink, t));
    add_case(cases[i], t);
  }
  out->program = assemble(arena, t);
  uint8_t *memory = base_arena_alloc(arena, t->head.weights_bytes + STELE_ARTIFACT_ALIGN, 1);
  if (!out->program || !memory) return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  out->weights = memory + (STELE_ARTIFACT_ALIGN - (uintptr_t)memory % STELE_ARTIFACT_ALIGN);
  for (uint32_t i = 0; i < count; i++) BASE_TRY(fill_weights(cases[i], target, self, sink, out));
  return STELE_OK;
}

stele_status cts_finish(cts_program **cases, uint32_t count, const stele_target *target, void *self,
                        stele_sink *sink, cts_built *out) {
  tables t = {0};
  stele_status status = finish(cases, count, target, self, sink, &t, out);
  free_tables(&t);
  return status;
}
