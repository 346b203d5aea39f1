/* Programs of the ops that write or read the cache. Those that read need what was written in the
 * same step, so a cache_update goes before them, and a cache_store after staged ones. */
#include "build.h"

/* Page images of the stage, in a buffer of bytes. */
static int32_t stage_buffer(cts_program *p) {
  const stele_group *g = &p->groups[0];
  uint32_t images = (p->step.width + g->page_tokens - 1) / g->page_tokens + 1;
  uint64_t bytes = (uint64_t)p->step.lanes * images * g->page_bytes;
  return cts_buffer(p, 1, (uint32_t)(bytes / 4), STELE_F32);
}

static void on_layer(stele_op *op) {
  op->layer = 0;
  op->group = 0;
}

/* Makes op write to the stage when the shape says so. */
static void stage(cts_program *p, stele_op *op, int32_t *io_stage) {
  if (!p->shape->staged) return;
  if (*io_stage < 0) *io_stage = stage_buffer(p);
  op->stage = *io_stage;
  op->flags |= STELE_FLAG_STAGED;
}

static void add_update(cts_program *p, int32_t *io_stage) {
  cts_group(p);
  const stele_group *g = &p->groups[0];
  stele_op *op = cts_op(p, STELE_OP_CACHE_UPDATE);
  on_layer(op);
  op->tiles = g->kv_heads;
  op->in[0] = cts_input(p, op->tokens, g->kv_heads * g->key_head, STELE_F32);
  if (!g->value_in_key)
    op->in[1] = cts_input(p, op->tokens, g->kv_heads * g->value_head, STELE_F32);
  stage(p, op, io_stage);
}

static void add_store(cts_program *p, int32_t stage_index) {
  if (!p->shape->staged) return;
  stele_op *op = cts_op(p, STELE_OP_CACHE_STORE);
  on_layer(op);
  op->tiles = p->groups[0].kv_heads;
  op->stage = stage_index;
  op->flags |= STELE_FLAG_STAGED;
}

void cts_build_cache_update(cts_program *p, const cts_shape *s) {
  (void)s;
  int32_t images = -1;
  add_update(p, &images);
  add_store(p, images);
}

void cts_build_cache_store(cts_program *p, const cts_shape *s) { cts_build_cache_update(p, s); }

void cts_sinks(cts_program *p, stele_op *op) {
  if (p->shape->sinks) op->weight[STELE_W_SINKS] = cts_vector(p, op->heads, 1, 2);
}

static stele_op *add_attention(cts_program *p, const cts_shape *s, uint32_t kind,
                               int32_t *io_stage) {
  stele_op *op = cts_op(p, kind);
  on_layer(op);
  op->heads = s->heads;
  op->scale = 0.35f;
  op->soft_cap = s->soft_cap;
  op->query_scale = s->query_scale;
  op->query_floor = 7;
  op->in[0] = cts_input(p, op->tokens, s->heads * s->key_head, STELE_F32);
  stage(p, op, io_stage);
  return op;
}

void cts_build_attention(cts_program *p, const cts_shape *s) {
  int32_t images = -1;
  add_update(p, &images);
  stele_op *op = add_attention(p, s, STELE_OP_ATTENTION, &images);
  op->tile_rows = p->traits->attention_rows ? p->traits->attention_rows : 1;
  op->tiles = s->kv_heads * ((op->tokens + op->tile_rows - 1) / op->tile_rows);
  cts_sinks(p, op);
  op->out = cts_output(p, op->tokens, s->heads * p->groups[0].value_head, STELE_F32);
  add_store(p, images);
}

int32_t cts_attention_parts(cts_program *p, const cts_shape *s) {
  int32_t images = -1;
  add_update(p, &images);
  const stele_group *g = &p->groups[0];
  stele_op *op = add_attention(p, s, STELE_OP_ATTENTION_PARTIAL, &images);
  uint32_t parts = stele_program_part_count(g);
  op->tiles = op->tokens * g->kv_heads * parts;
  op->out = cts_buffer(p, op->tokens, s->heads * parts * (2 + g->value_head), STELE_F32);
  int32_t partial = op->out;
  add_store(p, images);
  return partial;
}

void cts_build_attention_partial(cts_program *p, const cts_shape *s) {
  p->checked[cts_attention_parts(p, s)] = true;
}

void cts_build_attention_combine(cts_program *p, const cts_shape *s) {
  int32_t partial = cts_attention_parts(p, s);
  stele_op *op = cts_op(p, STELE_OP_ATTENTION_COMBINE);
  on_layer(op);
  op->heads = s->heads;
  op->tiles = op->tokens * s->heads;
  cts_sinks(p, op);
  op->in[0] = partial;
  op->out = cts_output(p, op->tokens, s->heads * p->groups[0].value_head, STELE_F32);
}

void cts_build_qkv_cache(cts_program *p, const cts_shape *s) {
  int32_t images = -1;
  cts_group(p);
  const stele_group *g = &p->groups[0];
  stele_op *op = cts_op(p, STELE_OP_QKV_CACHE);
  on_layer(op);
  op->heads = s->heads;
  op->head = g->key_head;
  op->tiles = s->heads + 2 * g->kv_heads;
  uint64_t rows[3] = {(uint64_t)s->heads * g->key_head, (uint64_t)g->kv_heads * g->key_head,
                      (uint64_t)g->kv_heads * g->value_head};
  for (uint32_t i = 0; i < 3; i++) {
    op->weight[STELE_W_A + i] = cts_matrix(p, p->scheme, rows[i], s->columns, false);
    if (s->bias) op->weight[STELE_W_BIAS_A + i] = cts_vector(p, rows[i], 0, 1);
  }
  if (s->head_norm) {
    op->weight[STELE_W_Q_NORM] = cts_vector(p, g->key_head, s->plus_one ? 0 : 1, 0.3f);
    op->weight[STELE_W_K_NORM] = cts_vector(p, g->key_head, s->plus_one ? 0 : 1, 0.3f);
    op->flags |= s->plus_one ? STELE_FLAG_NORM_PLUS_ONE : 0;
  }
  op->rotary = s->rotary;
  op->rope_offset = s->offset;
  op->pairing = s->interleaved ? STELE_PAIR_INTERLEAVED : STELE_PAIR_HALVES;
  if (s->rotary) op->rope = cts_rope(p, s->rotary, s->dynamic);
  cts_linear_input(p, op, s->columns, -1);
  stage(p, op, &images);
  op->out = cts_output(p, op->tokens, s->heads * g->key_head, STELE_F32);
  p->loose[op->out] = cts_linear_tolerance(p->mode);
  add_store(p, images);
}
