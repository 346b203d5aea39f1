/* program_check: sizes of what an op reads and writes, kind by kind, as program.h states them. */
#include "program_check.h"

static const stele_buffer *buffer_at(const program_checker *c, int32_t i) {
  return i >= 0 ? stele_program_buffers(c->program, (uint64_t)i) : NULL;
}

static void expect(program_checker *c, const char *what, int32_t buffer, uint64_t tokens,
                   uint64_t columns) {
  const stele_buffer *b = buffer_at(c, buffer);
  if (b && (b->tokens != tokens || b->columns != columns))
    program_fault(c, "%s is %u x %u, expected %llu x %llu", what, b->tokens, b->columns,
                  (unsigned long long)tokens, (unsigned long long)columns);
}

static void expect_bytes(program_checker *c, const char *what, int32_t buffer, size_t bytes) {
  const stele_buffer *b = buffer_at(c, buffer);
  if (b && b->bytes < bytes)
    program_fault(c, "%s has %llu bytes, expected %zu", what, (unsigned long long)b->bytes, bytes);
}

static void expect_vector(program_checker *c, const stele_op *op, int slot, uint64_t columns) {
  if (op->weight[slot] < 0) return;
  const stele_program_weight *w = stele_program_weights(c->program, (uint64_t)op->weight[slot]);
  if (w->scheme != STELE_F32 || w->layout != 0 || w->rows != 1 || w->columns != columns)
    program_fault(c, "vector '%s' is %llu x %llu of scheme %u, expected %llu numbers in f32",
                  stele_program_strings(c->program, w->name), (unsigned long long)w->rows,
                  (unsigned long long)w->columns, w->scheme, (unsigned long long)columns);
}

/* Columns of attention's parts; none at all where they can't be counted. */
static uint64_t part_columns(const stele_op *op, const stele_group *g) {
  size_t columns;
  if (!base_mul((size_t)op->heads * stele_program_part_count(g), (size_t)g->value_head + 2,
                &columns))
    return 0;
  return columns;
}

static void check_cache_shapes(program_checker *c, const stele_program_step *step,
                               const stele_op *op) {
  const stele_group *g = stele_program_groups(c->program, op->group);
  uint64_t q = (uint64_t)op->heads * g->key_head, v = (uint64_t)op->heads * g->value_head;
  if (op->kind == STELE_OP_QKV_CACHE) {
    expect(c, "q", op->out, op->tokens, q);
    expect_vector(c, op, STELE_W_Q_NORM, g->key_head);
    expect_vector(c, op, STELE_W_K_NORM, g->key_head);
  } else if (op->kind == STELE_OP_CACHE_UPDATE) {
    expect(c, "k", op->in[0], op->tokens, (uint64_t)g->kv_heads * g->key_head);
    expect(c, "v", op->in[1], op->tokens, (uint64_t)g->kv_heads * g->value_head);
  } else if (op->kind == STELE_OP_ATTENTION || op->kind == STELE_OP_ATTENTION_PARTIAL) {
    bool whole = op->kind == STELE_OP_ATTENTION;
    expect(c, "q", op->in[0], op->tokens, q);
    expect(c, "the result", op->out, op->tokens, whole ? v : part_columns(op, g));
  } else if (op->kind != STELE_OP_CACHE_STORE) { /* attention_combine, or the prologue of one */
    expect(c, "the parts", op->in[0], op->tokens, part_columns(op, g));
    if (op->kind == STELE_OP_ATTENTION_COMBINE) expect(c, "the result", op->out, op->tokens, v);
  }
  expect_vector(c, op, STELE_W_SINKS, op->heads);
  if (op->query_scale != 0 && !(op->query_floor > 0))
    program_fault(c, "queries scaled at every %g positions", (double)op->query_floor);
  uint64_t images = ((uint64_t)step->width + g->page_tokens - 1) / g->page_tokens + 1;
  size_t bytes;
  if (!base_mul(images * step->lanes, g->page_bytes, &bytes)) bytes = SIZE_MAX;
  expect_bytes(c, "the stage", op->stage, bytes);
}

static void expect_norm(program_checker *c, const stele_op *op, uint64_t columns) {
  expect_vector(c, op, STELE_W_NORM, columns);
  expect_vector(c, op, STELE_W_NORM_BIAS, columns);
}

/* A number per element of a segment; layer_norm may have one per column. */
static uint64_t norm_numbers(const program_checker *c, const stele_op *op, uint32_t columns) {
  const stele_program_weight *w =
      stele_program_weights(c->program, (uint64_t)op->weight[STELE_W_NORM]);
  return op->kind == STELE_OP_LAYER_NORM && w->columns == columns ? columns : op->head;
}

static void check_rows_alike(program_checker *c, const stele_op *op) {
  const stele_buffer *in = buffer_at(c, op->in[0]);
  expect(c, "the input", op->in[0], op->tokens, in->columns);
  expect(c, "the second input", op->in[1], op->tokens, in->columns);
  expect(c, "the result", op->out, op->tokens, in->columns);
  if (op->kind == STELE_OP_PREPARE) expect_norm(c, op, in->columns);
  if (op->kind == STELE_OP_RMS_NORM || op->kind == STELE_OP_LAYER_NORM)
    expect_norm(c, op, norm_numbers(c, op, in->columns));
  bool segments =
      op->kind == STELE_OP_RMS_NORM || op->kind == STELE_OP_LAYER_NORM || op->kind == STELE_OP_ROPE;
  if (segments && (op->head == 0 || in->columns % op->head))
    program_fault(c, "segments of %u in rows of %u", op->head, in->columns);
}

static void check_positions(program_checker *c, const stele_op *op) {
  const stele_program_weight *w =
      stele_program_weights(c->program, (uint64_t)op->weight[STELE_W_A]);
  check_rows_alike(c, op);
  expect(c, "the result", op->out, op->tokens, w->columns);
  if (op->rope_offset > w->rows || w->rows - op->rope_offset < c->program->capacity)
    program_fault(c, "%llu rows for %u positions from row %u on", (unsigned long long)w->rows,
                  c->program->capacity, op->rope_offset);
}

static void check_head_linear(program_checker *c, const stele_op *op) {
  const stele_program_weight *w =
      stele_program_weights(c->program, (uint64_t)op->weight[STELE_W_A]);
  uint64_t kept = (uint64_t)op->heads * op->kept;
  if (op->heads == 0 || w->rows % op->heads)
    program_fault(c, "%u heads in %llu rows", op->heads, (unsigned long long)w->rows);
  expect(c, "the input", op->in[0], op->tokens, op->heads * w->columns + kept);
  expect(c, "the result", op->out, op->tokens, w->rows + kept);
}

static void check_concat(program_checker *c, const stele_op *op) {
  const stele_buffer *a = buffer_at(c, op->in[0]), *b = buffer_at(c, op->in[1]);
  uint64_t all = (uint64_t)a->columns + b->columns, heads = op->head ? all / op->head : 0;
  if (heads == 0 || all % op->head || a->columns % heads || b->columns % heads)
    program_fault(c, "heads of %u of %u and %u columns", op->head, a->columns, b->columns);
  expect(c, "the input", op->in[0], op->tokens, a->columns);
  expect(c, "the second input", op->in[1], op->tokens, b->columns);
  expect(c, "the result", op->out, op->tokens, all);
}

static void check_output(program_checker *c, const stele_program_step *step, const stele_op *op) {
  bool hidden = op->output_kind == STELE_OUTPUT_HIDDEN;
  expect(c, "the value", op->in[0], op->tokens, hidden ? c->program->hidden : c->program->vocab);
  if (op->output_kind < STELE_OUTPUT_LAST || op->output_kind > STELE_OUTPUT_HIDDEN ||
      op->output_kind != step->output)
    program_fault(c, "output of kind %u in a step of kind %u", op->output_kind, step->output);
  if (hidden && op->output_index > c->program->layers)
    program_fault(c, "hidden state %u of %u layers", op->output_index, c->program->layers);
}

static void check_matrix_vectors(program_checker *c, const stele_op *op) {
  for (int i = 0; i < 3; i++) {
    if (op->weight[STELE_W_A + i] < 0) continue;
    const stele_program_weight *w =
        stele_program_weights(c->program, (uint64_t)op->weight[STELE_W_A + i]);
    expect_vector(c, op, STELE_W_BIAS_A + i, w->rows);
    if (i == 0) expect_norm(c, op, w->columns);
  }
}

/* Routing, and what is made of it; matrices and their rows have been checked. */
static void check_experts(program_checker *c, const stele_op *op) {
  if (op->kind == STELE_OP_ROUTE) {
    expect(c, "the logits", op->in[0], op->tokens, op->experts);
    expect(c, "the routing", op->out, op->tokens, 2 * (uint64_t)op->experts_used);
    expect_vector(c, op, STELE_W_BIAS_A, op->experts);
    return;
  }
  check_matrix_vectors(c, op);
  expect(c, "the routing", op->in[1], op->tokens, 2 * (uint64_t)op->experts_used);
}

static void check_argmax(program_checker *c, const stele_op *op) {
  size_t bytes;
  if (!base_mul((size_t)op->tiles * op->tokens, 8, &bytes)) bytes = SIZE_MAX;
  if (op->kind == STELE_OP_LINEAR_ARGMAX) expect_bytes(c, "scratch", op->scratch, bytes);
  if (op->kind == STELE_OP_ARGMAX)
    expect(c, "the logits", op->in[0], op->tokens, c->program->vocab);
  expect(c, "the tokens", op->out, op->tokens, 1);
}

void program_check_shapes(program_checker *c, const stele_program_step *step, const stele_op *op) {
  switch (op->kind) {
    case STELE_OP_EMBED:
      expect(c, "the result", op->out, op->tokens, c->program->hidden);
      break;
    case STELE_OP_RMS_NORM:
    case STELE_OP_LAYER_NORM:
    case STELE_OP_PREPARE:
    case STELE_OP_ROPE:
    case STELE_OP_ACTIVATION:
    case STELE_OP_MUL:
    case STELE_OP_ADD:
    case STELE_OP_SCALE:
    case STELE_OP_SOFT_CAP:
      check_rows_alike(c, op);
      break;
    case STELE_OP_POSITION_EMBED:
      check_positions(c, op);
      break;
    case STELE_OP_HEAD_LINEAR:
      check_head_linear(c, op);
      break;
    case STELE_OP_CONCAT:
      check_concat(c, op);
      break;
    case STELE_OP_LAST_TOKEN: {
      const stele_buffer *in = buffer_at(c, op->in[0]);
      expect(c, "the input", op->in[0], (uint64_t)step->lanes * step->width, in->columns);
      expect(c, "the result", op->out, step->lanes, in->columns);
      break;
    }
    case STELE_OP_LINEAR_ADD:
      check_matrix_vectors(c, op);
      expect(c, "the residual", op->in[1], op->tokens, buffer_at(c, op->out)->columns);
      if (op->prologue == STELE_PROLOGUE_COMBINE) check_cache_shapes(c, step, op);
      break;
    case STELE_OP_LINEAR:
    case STELE_OP_GATE_UP:
      check_matrix_vectors(c, op);
      break;
    case STELE_OP_ROUTE:
    case STELE_OP_EXPERTS_GATE_UP:
    case STELE_OP_EXPERTS_DOWN:
      check_experts(c, op);
      break;
    case STELE_OP_LINEAR_ARGMAX:
      check_matrix_vectors(c, op); /* fall through */
    case STELE_OP_ARGMAX:
      check_argmax(c, op);
      break;
    case STELE_OP_QKV_CACHE:
      check_matrix_vectors(c, op); /* fall through */
    case STELE_OP_CACHE_UPDATE:
    case STELE_OP_ATTENTION:
    case STELE_OP_ATTENTION_PARTIAL:
    case STELE_OP_ATTENTION_COMBINE:
    case STELE_OP_CACHE_STORE:
      check_cache_shapes(c, step, op);
      break;
    case STELE_OP_OUTPUT:
      check_output(c, step, op);
      break;
    case STELE_OP_OUTPUT_TOKEN:
      expect(c, "the tokens", op->in[0], op->tokens, 1);
      break;
    default:
      break;
  }
}
