/* The program as text for people and for golden tests: a line per row, only the fields that count
 * for it. Weights, strings and buffers are named where they are used. */
#include <inttypes.h>

#include "passes.h"
#include "weights/weights.h"

static const char *op_name(uint32_t kind) {
  static const char *const names[] = {
#define OP(name, mnemonic, ...) mnemonic,
#include "stele/ops.def"
#undef OP
  };
  return kind < STELE_OP_COUNT ? names[kind] : "?";
}

static const char *scheme_name(uint32_t scheme) {
  const weights_scheme *s = weights_scheme_get(scheme);
  return s ? s->name : "?";
}

static void print_name(const stele_program *p, base_buffer *out, const char *label, int32_t i) {
  if (i < 0 || (uint64_t)i >= p->weights.count) return;
  base_buffer_printf(out, " %s=%s", label,
                     stele_program_strings(p, stele_program_weights(p, (uint64_t)i)->name));
}

static void print_index(base_buffer *out, const char *label, int32_t i) {
  if (i == STELE_BUFFER_LOGITS)
    base_buffer_printf(out, " %s=logits", label);
  else if (i >= 0)
    base_buffer_printf(out, " %s=b%d", label, i);
}

static void print_number(base_buffer *out, const char *label, uint64_t value) {
  if (value) base_buffer_printf(out, " %s=%" PRIu64, label, value);
}

static void print_real(base_buffer *out, const char *label, float value) {
  if (value != 0) base_buffer_printf(out, " %s=%.9g", label, (double)value);
}

static void print_op_names(const stele_op *op, base_buffer *out) {
  static const char *const prologues[] = {NULL, "norm", "combine"};
  if (op->prologue && op->prologue < 3)
    base_buffer_printf(out, " prologue=%s", prologues[op->prologue]);
  if (op->activation != STELE_F32)
    base_buffer_printf(out, " activation=%s", scheme_name(op->activation));
  if (op->kind == STELE_OP_ROUTE) base_buffer_printf(out, " rule=%s", ir_name(IR_ROUTES, op->rule));
  if (op->kind == STELE_OP_GATE_UP || op->kind == STELE_OP_EXPERTS_GATE_UP ||
      op->kind == STELE_OP_ACTIVATION)
    base_buffer_printf(out, " function=%s", ir_name(IR_FUNCTIONS, op->function));
  if (op->kind == STELE_OP_OUTPUT)
    base_buffer_printf(out, " kind=%s", ir_name(IR_OUTPUTS, op->output_kind));
  if (op->flags & STELE_FLAG_STAGED) base_buffer_printf(out, " staged");
  if (op->flags & STELE_FLAG_NORM_PLUS_ONE) base_buffer_printf(out, " norm_plus_one");
  if (op->flags & STELE_FLAG_CENTER) base_buffer_printf(out, " center");
  if (op->pairing == STELE_PAIR_INTERLEAVED) base_buffer_printf(out, " interleaved");
}

static void print_op_numbers(const stele_op *op, base_buffer *out) {
  print_number(out, "group", op->group);
  print_number(out, "heads", op->heads);
  print_number(out, "head", op->head);
  print_number(out, "kept", op->kept);
  print_number(out, "rotary", op->rotary);
  print_number(out, "offset", op->rope_offset);
  print_number(out, "rope", op->rope);
  print_number(out, "index", op->output_index);
  print_real(out, "eps", op->eps);
  print_real(out, "head_eps", op->head_eps);
  print_real(out, "scale", op->scale);
  print_real(out, "soft_cap", op->soft_cap);
  print_real(out, "query_scale", op->query_scale);
  print_real(out, "query_floor", op->query_floor);
  print_number(out, "experts", op->experts);
  print_number(out, "used", op->experts_used);
  print_number(out, "groups", op->expert_groups);
  print_number(out, "used_groups", op->expert_groups_used);
  print_number(out, "normalise", op->normalise);
  print_number(out, "scale_input", op->scale_input);
  print_real(out, "alpha", op->alpha);
  print_real(out, "limit", op->limit);
}

static void print_op(const stele_program *p, const stele_op *op, base_buffer *out) {
  static const char *const slots[STELE_W_COUNT] = {"a",      "b",         "c",    "bias_a",
                                                   "bias_b", "bias_c",    "norm", "q_norm",
                                                   "k_norm", "norm_bias", "sinks"};
  if (op->barrier) base_buffer_printf(out, "  ----\n");
  base_buffer_printf(out, "  %s T=%u tiles=%u x %u", op_name(op->kind), op->tokens, op->tiles,
                     op->tile_rows);
  if (op->layer >= 0) base_buffer_printf(out, " layer=%d", op->layer);
  print_index(out, "in", op->in[0]);
  print_index(out, "in2", op->in[1]);
  print_index(out, "out", op->out);
  print_index(out, "prepared", op->prepared);
  print_index(out, "scratch", op->scratch);
  print_index(out, "stage", op->stage);
  print_op_names(op, out);
  for (int slot = 0; slot < STELE_W_COUNT; slot++)
    print_name(p, out, slots[slot], op->weight[slot]);
  print_op_numbers(op, out);
  print_number(out, "device", op->device);
  base_buffer_printf(out, "\n");
}

static void print_steps(const stele_program *p, base_buffer *out) {
  for (uint64_t i = 0; i < p->steps.count; i++) {
    const stele_program_step *s = stele_program_steps(p, i);
    const char *kind = ir_name(IR_STEP_KINDS, s->kind), *output = ir_name(IR_OUTPUTS, s->output);
    base_buffer_printf(out, "step %" PRIu64 ": %s %u x %u, output %s, %" PRIu64 " bytes per call\n",
                       i, kind ? kind : "?", s->lanes, s->width, output ? output : "?",
                       s->bytes_per_call);
    for (uint32_t op = 0; op < s->op_count; op++)
      print_op(p, stele_program_ops(p, s->first_op + op), out);
  }
}

static void print_tables(const stele_program *p, base_buffer *out) {
  for (uint64_t i = 0; i < p->buffers.count; i++) {
    const stele_buffer *b = stele_program_buffers(p, i);
    base_buffer_printf(out, "buffer b%" PRIu64 ": %u x %u %s at %" PRIu64 ", %" PRIu64 " bytes%s\n",
                       i, b->tokens, b->columns, scheme_name(b->scheme), b->offset, b->bytes,
                       b->per_worker ? " per worker" : "");
  }
  for (uint64_t i = 0; i < p->weights.count; i++) {
    const stele_program_weight *w = stele_program_weights(p, i);
    base_buffer_printf(
        out, "weight %s: %" PRIu64 " x %" PRIu64 " %s layout %u at %" PRIu64 ", %" PRIu64 " bytes",
        stele_program_strings(p, w->name), w->rows, w->columns, scheme_name(w->scheme), w->layout,
        w->offset, w->bytes);
    if (w->experts) base_buffer_printf(out, " of %u experts", w->experts);
    base_buffer_printf(out, "\n");
  }
  for (uint64_t i = 0; i < p->groups.count; i++) {
    const stele_group *g = stele_program_groups(p, i);
    base_buffer_printf(out,
                       "group %" PRIu64
                       ": %s, %u layers, %u kv heads of %u and %u, %s and %s, "
                       "capacity %u, window %u, %u pages of %u tokens, %" PRIu64
                       " bytes each, values %s %" PRIu64 "\n",
                       i, ir_name(IR_GROUP_KINDS, g->kind), g->layers, g->kv_heads, g->key_head,
                       g->value_head, scheme_name(g->key_scheme), scheme_name(g->value_scheme),
                       g->capacity, g->window, g->table_entries, g->page_tokens, g->page_bytes,
                       g->value_in_key ? "in keys, which end at" : "at", g->value_offset);
  }
  for (uint64_t i = 0; i < p->ropes.count; i++) {
    const stele_program_rope *r = stele_program_ropes(p, i);
    base_buffer_printf(out, "rope %" PRIu64 ": %s, rotary %u", i, ir_name(IR_ROPE_RULES, r->rule),
                       r->rotary);
    print_name(p, out, "table", r->weight);
    base_buffer_printf(out, "\n");
  }
}

void program_print(const stele_program *p, base_buffer *out) {
  base_buffer_printf(out,
                     "program: vocab %u, hidden %u, layers %u, capacity %u, lanes %u, prefill %u, "
                     "workers %u%s\nworkspace %" PRIu64 " bytes, weights %" PRIu64 " bytes\n",
                     p->vocab, p->hidden, p->layers, p->capacity, p->max_lanes, p->prefill_width,
                     p->max_workers, p->precise ? ", precise" : "", p->workspace_bytes,
                     p->weights_bytes);
  print_steps(p, out);
  print_tables(p, out);
}
