/* Builds programs by hand: buffers, weights with random contents, ops, and the block of memory
 * that program.h describes. */
#include <stdio.h>
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
  return scheme == STELE_Q8_0 ? columns + (uint64_t)columns / 32 * 8 : (uint64_t)columns * 4;
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

/* Random blocks of a scheme, with scales that give numbers of about the same size in all. */
static void fill_blocks(uint32_t scheme, uint64_t seed, uint8_t *out, size_t blocks) {
  const weights_scheme *info = weights_scheme_get(scheme);
  float range = scheme == STELE_Q8_0 ? 127.0f : 8.0f;
  for (size_t b = 0; b < blocks; b++) {
    uint8_t *at = out + b * info->block_bytes;
    float r = cts_random_float(seed, b), d = (0.3f + 0.2f * r) / range;
    if (scheme == STELE_F32) {
      memcpy(at, &r, sizeof r);
    } else if (scheme == STELE_F16 || scheme == STELE_BF16) {
      uint16_t half = scheme == STELE_F16 ? base_f32_to_f16(r) : base_f32_to_bf16(r);
      memcpy(at, &half, sizeof half);
    } else {
      for (uint32_t i = 0; i < info->block_bytes; i++)
        at[i] = (uint8_t)(cts_random(seed + 1, b * 64 + i) >> 13);
      put_half(at, d);
      if (scheme == STELE_Q4_1) put_half(at + 2, -7.5f * d + 0.1f * r);
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

static uint32_t number_bytes(uint32_t scheme) { return scheme == STELE_F32 ? 4 : 2; }

void cts_group(cts_program *p) {
  const cts_shape *s = p->shape;
  uint32_t value_head = s->value_head ? s->value_head : s->key_head;
  uint64_t keys =
      (uint64_t)s->kv_heads * s->page_tokens * s->key_head * number_bytes(p->cache_scheme);
  uint64_t values =
      (uint64_t)s->kv_heads * s->page_tokens * value_head * number_bytes(p->cache_scheme);
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

static stele_table put_table(base_buffer *block, const void *data, uint64_t count, size_t size) {
  base_buffer_align(block, 64);
  stele_table table = {block->size, count};
  base_buffer_append(block, data, count * size);
  return table;
}

static stele_status lay_out(const cts_program *p, const stele_target *target, void *self,
                            stele_sink *sink, stele_program_weight *out, uint64_t *out_bytes) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < p->weight_count; i++) {
    const cts_weight *w = &p->weights[i];
    out[i] = (stele_program_weight){.scheme = w->scheme,
                                    .rows = w->rows,
                                    .columns = w->columns,
                                    .offset = total,
                                    .bytes = w->bytes};
    if (target && !w->vector)
      BASE_TRY(target->layout(self, w->scheme, w->rows, w->columns, w->embedding, sink,
                              &out[i].layout, &out[i].bytes));
    total = base_align(total + out[i].bytes, 64);
  }
  *out_bytes = total;
  return STELE_OK;
}

/* Packs in two pieces where there are enough rows, as the artefact's writer does in many. */
static stele_status pack(const cts_weight *w, const stele_program_weight *laid,
                         const stele_target *target, void *self, uint32_t align, stele_sink *sink,
                         uint8_t *destination) {
  uint64_t half = w->rows / 2 / align * align;
  size_t row = w->bytes / w->rows;
  if (half)
    BASE_TRY(target->pack(self, w->scheme, laid->layout, w->rows, w->columns, half, w->rows - half,
                          w->plain + half * row, destination, sink));
  return target->pack(self, w->scheme, laid->layout, w->rows, w->columns, 0, half ? half : w->rows,
                      w->plain, destination, sink);
}

static stele_program *assemble(const cts_program *p, const stele_program_weight *weights,
                               uint64_t weights_bytes) {
  stele_program head = {.magic = STELE_PROGRAM_MAGIC,
                        .version = STELE_PROGRAM_VERSION,
                        .vocab = p->vocab,
                        .hidden = p->hidden,
                        .layers = p->layers,
                        .capacity = p->capacity,
                        .max_lanes = p->step.lanes,
                        .prefill_width = p->step.width,
                        .max_workers = CTS_WORKERS,
                        .workspace_bytes = p->workspace_bytes,
                        .weights_bytes = weights_bytes};
  static const uint32_t layer_group[1] = {0};
  stele_program_step step = p->step;
  step.op_count = p->op_count;
  base_buffer block = {0};
  base_buffer_append(&block, &head, sizeof head);
  head.steps = put_table(&block, &step, 1, sizeof step);
  head.ops = put_table(&block, p->ops, p->op_count, sizeof p->ops[0]);
  head.buffers = put_table(&block, p->buffers, p->buffer_count, sizeof p->buffers[0]);
  head.weights = put_table(&block, weights, p->weight_count, sizeof weights[0]);
  head.groups = put_table(&block, p->groups, p->group_count, sizeof p->groups[0]);
  head.ropes = put_table(&block, p->ropes, p->rope_count, sizeof p->ropes[0]);
  head.layer_group = put_table(&block, layer_group, p->layers, sizeof layer_group[0]);
  head.strings = put_table(&block, "", 1, 1);
  base_buffer_align(&block, 64);
  head.bytes = block.size;
  stele_program *result = base_arena_alloc(p->arena, block.size, 1);
  if (block.failed) result = NULL;
  if (result) {
    memcpy(block.data, &head, sizeof head);
    memcpy(result, block.data, block.size);
  }
  base_buffer_deinit(&block);
  return result;
}

stele_status cts_finish(const cts_program *p, const stele_target *target, void *self,
                        stele_sink *sink, cts_built *out) {
  stele_program_weight weights[CTS_MAX];
  uint64_t bytes;
  BASE_TRY(lay_out(p, target, self, sink, weights, &bytes));
  out->program = assemble(p, weights, bytes);
  uint8_t *memory = base_arena_alloc(p->arena, bytes + STELE_ARTIFACT_ALIGN, 1);
  if (!out->program || !memory) return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  out->weights = memory + (STELE_ARTIFACT_ALIGN - (uintptr_t)memory % STELE_ARTIFACT_ALIGN);
  for (uint32_t i = 0; i < p->weight_count; i++) {
    const cts_weight *w = &p->weights[i];
    if (target && !w->vector)
      BASE_TRY(pack(w, &weights[i], target, self, p->traits->row_align, sink,
                    out->weights + weights[i].offset));
    else
      memcpy(out->weights + weights[i].offset, w->plain, w->bytes);
  }
  return STELE_OK;
}
