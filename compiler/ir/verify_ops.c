/* The verifier's second part: shapes and meanings of the ops of a step. One function for each
 * kind of op (or for kinds alike); IR.md states the same rules. Values are [tokens x columns]. */
#include <math.h>
#include <string.h>

#include "stele/program.h"
#include "verify.h"

/* ---- what ops share -------------------------------------------------------------------- */

typedef struct shape {
  int64_t tokens, columns;
} shape;

static shape shape_of(MlirValue value) {
  shape s;
  ir_shape(value, &s.tokens, &s.columns);
  return s;
}
static shape operand(MlirOperation op, intptr_t i) {
  return shape_of(mlirOperationGetOperand(op, i));
}
static shape result(MlirOperation op) { return shape_of(mlirOperationGetResult(op, 0)); }

static void expect_columns(ir_checker *c, MlirOperation op, const char *what, int64_t columns,
                           int64_t expected) {
  if (columns != expected)
    ir_fault(c, op, "%s has %lld columns, expected %lld", what, (long long)columns,
             (long long)expected);
}

static void expect_tokens(ir_checker *c, MlirOperation op, const char *what, int64_t tokens,
                          int64_t expected) {
  if (tokens != expected)
    ir_fault(c, op, "%s has %lld tokens, expected %lld", what, (long long)tokens,
             (long long)expected);
}

static void expect_same(ir_checker *c, MlirOperation op, const char *what, shape s,
                        shape expected) {
  expect_tokens(c, op, what, s.tokens, expected.tokens);
  expect_columns(c, op, what, s.columns, expected.columns);
}

/* The weight that an attribute names, NULL when the op has no such attribute or it isn't declared;
 * expect_weight says so. */
static const ir_known_weight *known(const ir_checker *c, MlirOperation op, const char *attribute) {
  const char *name = ir_string(op, attribute, NULL);
  return name ? ir_known_weight_find(c, name) : NULL;
}

/* rows or columns -1: any. What is one matrix for an op must not be many in its declaration, which
 * are packed one by one. */
static void expect_weight(ir_checker *c, MlirOperation op, const char *attribute, int64_t rows,
                          int64_t columns) {
  const ir_known_weight *w = known(c, op, attribute);
  if (!w && ir_has(op, attribute))
    ir_fault(c, op, "%s '%s' is not declared", attribute, ir_string(op, attribute, ""));
  if (!w) return;
  int64_t experts = w->rows > 1 ? ir_int(op, "experts", 0) : 0;
  if (w->experts != experts)
    ir_fault(c, op, "%s '%s' is declared with %lld experts, expected %lld", attribute, w->name,
             (long long)w->experts, (long long)experts);
  if (rows >= 0 && w->rows != rows)
    ir_fault(c, op, "%s '%s' has %lld rows, expected %lld", attribute, w->name, (long long)w->rows,
             (long long)rows);
  if (columns >= 0 && w->columns != columns)
    ir_fault(c, op, "%s '%s' has %lld columns, expected %lld", attribute, w->name,
             (long long)w->columns, (long long)columns);
}

static void expect_eps(ir_checker *c, MlirOperation op, const char *eps, bool normed) {
  if (ir_has(op, eps) != normed)
    ir_fault(c, op, normed ? "a norm without '%s'" : "'%s' without a norm", eps);
  double value = ir_float(op, eps, 0);
  if (!isfinite(value) || value < 0) ir_fault(c, op, "%s is %g, expected 0 or more", eps, value);
}

/* The norm in an op's prologue: a vector as long as its input. */
static void expect_norm(ir_checker *c, MlirOperation op, int64_t columns) {
  bool normed = ir_has(op, "norm");
  expect_weight(c, op, "norm", 1, columns);
  expect_weight(c, op, "norm_bias", 1, columns);
  if (!normed && (ir_has(op, "norm_bias") || ir_has(op, "center")))
    ir_fault(c, op, "'norm_bias' or 'center' without a norm");
  expect_eps(c, op, "eps", normed);
}

static void expect_function(ir_checker *c, MlirOperation op) {
  const char *name = ir_string(op, "function", "");
  uint32_t function;
  if (!ir_number(IR_FUNCTIONS, name, &function) || function == STELE_SWIGLU_CLAMPED)
    ir_fault(c, op, "function '%s', expected silu, gelu, gelu_tanh or relu", name);
}

static void expect_rope(ir_checker *c, MlirOperation op, int64_t head) {
  const char *pairing_name = ir_string(op, "pairing", "");
  int64_t rotary = ir_int(op, "rotary", 0), offset = ir_int(op, "offset", 0);
  int64_t table = ir_int(op, "table", -1);
  uint32_t pairing;
  if (!ir_number(IR_PAIRINGS, pairing_name, &pairing))
    ir_fault(c, op, "pairing '%s', expected halves or interleaved", pairing_name);
  if (offset < 0 || rotary < 0 || offset > head || rotary > head - offset)
    ir_fault(c, op, "%lld elements from %lld on turn, but a head has %lld", (long long)rotary,
             (long long)offset, (long long)head);
  if (table < 0 || table >= c->rope_count)
    ir_fault(c, op, "rope table %lld is not declared", (long long)table);
  else if (c->rope_rotary[table] != rotary)
    ir_fault(c, op, "rotary is %lld, but table %lld has %lld", (long long)rotary, (long long)table,
             (long long)c->rope_rotary[table]);
}

/* ---- caches ---------------------------------------------------------------------------- */

static void check_layer(ir_checker *c, MlirOperation op) {
  int64_t layer = ir_int(op, "layer", 0);
  if (layer < 0 || layer >= c->layers)
    ir_fault(c, op, "layer %lld, but the model has %lld", (long long)layer, (long long)c->layers);
}

/* NULL where the op has no layer, or a wrong one (check_layer tells). */
static ir_known_layer *layer_of(ir_checker *c, MlirOperation op) {
  int64_t layer = ir_int(op, "layer", -1);
  return layer >= 0 && layer < c->layers ? &c->layer_states[layer] : NULL;
}

/* NULL where the op has no group, or one that isn't declared (a fault). */
static const ir_known_group *group_of(ir_checker *c, MlirOperation op) {
  int64_t group = ir_int(op, "group", -1);
  if (group >= 0 && group < c->group_count) return &c->groups[group];
  if (ir_has(op, "group")) ir_fault(c, op, "group %lld is not declared", (long long)group);
  return NULL;
}

/* The cache that an op reads must be of its layer and group. */
static void expect_cache(ir_checker *c, MlirOperation op, intptr_t i) {
  static const char *const names[] = {"layer", "group"};
  MlirOperation maker = ir_definer(mlirOperationGetOperand(op, i));
  if (mlirOperationIsNull(maker)) return; /* a block argument: MLIR's verifier refuses those */
  for (size_t n = 0; n < 2; n++) {
    int64_t own = ir_int(op, names[n], -1), its = ir_int(maker, names[n], -1);
    if (own != its)
      ir_fault(c, op, "%s %lld, but its cache is of %s %lld", names[n], (long long)own, names[n],
               (long long)its);
  }
}

/* An op that writes the cache is the only reader of the value it takes: what was read from that
 * value afterwards would be something else. */
static void written(ir_checker *c, MlirOperation op, intptr_t i) {
  if (ir_uses(mlirOperationGetOperand(op, i)) != 1)
    ir_fault(c, op,
             "the cache it writes has other readers: a value is used once when it is written");
  ir_known_layer *layer = layer_of(c, op);
  if (!layer) return;
  if (layer->written)
    ir_fault(c, op, "the cache of layer %lld is written twice", (long long)ir_int(op, "layer", -1));
  layer->written = true;
  layer->staged = ir_int(op, "staged", 0) != 0;
}

static void check_cache(ir_checker *c, MlirOperation op) {
  group_of(c, op);
  ir_known_layer *layer = layer_of(c, op);
  if (!layer) return;
  if (layer->declared)
    ir_fault(c, op, "layer %lld has a cache already", (long long)ir_int(op, "layer", -1));
  layer->declared = true;
}

static void check_cache_update(ir_checker *c, MlirOperation op) {
  const ir_known_group *g = group_of(c, op);
  shape k = operand(op, 1);
  bool has_values = mlirOperationGetNumOperands(op) > 2;
  expect_cache(c, op, 0);
  written(c, op, 0);
  expect_tokens(c, op, "k", k.tokens, c->lanes * c->width);
  if (g) expect_columns(c, op, "k", k.columns, g->kv_heads * g->key_head);
  if (g && has_values == g->value_in_key)
    ir_fault(c, op,
             has_values ? "values, but its group has them in the keys"
                        : "no values, and its group does not have them in the keys");
  if (!has_values) return;
  expect_tokens(c, op, "v", operand(op, 2).tokens, c->lanes * c->width);
  if (g) expect_columns(c, op, "v", operand(op, 2).columns, g->kv_heads * g->value_head);
}

static void check_cache_store(ir_checker *c, MlirOperation op) {
  expect_cache(c, op, 0);
  group_of(c, op);
  ir_known_layer *layer = layer_of(c, op);
  if (!layer) return;
  if (layer->stored)
    ir_fault(c, op, "layer %lld is stored twice", (long long)ir_int(op, "layer", -1));
  layer->stored = true;
}

/* ---- attention ------------------------------------------------------------------------- */

static int64_t heads_of(ir_checker *c, MlirOperation op, const ir_known_group *g) {
  int64_t heads = ir_int(op, "heads", 0);
  if (heads >= 1 && heads <= UINT16_MAX && (!g->kv_heads || heads % g->kv_heads == 0)) return heads;
  ir_fault(c, op, "%lld heads, expected a multiple of the group's %lld", (long long)heads,
           (long long)g->kv_heads);
  return 0;
}

/* heads * parts * (2 + value_head), or the most there is where that can't be counted. */
static int64_t partial_columns(int64_t heads, const ir_known_group *g) {
  if (g->page_tokens < 1 || g->capacity < 1 || g->window < 0) return 0;
  size_t pages = ((size_t)g->capacity - 1) / (size_t)g->page_tokens + 1, columns;
  if (pages > UINT32_MAX || g->window > UINT32_MAX || g->page_tokens > UINT32_MAX) return INT64_MAX;
  const stele_group pager = {.window = (uint32_t)g->window,
                             .page_tokens = (uint32_t)g->page_tokens,
                             .table_entries = (uint32_t)pages};
  if (!base_mul((size_t)heads * (size_t)(2 + g->value_head), stele_program_part_count(&pager),
                &columns) ||
      columns > INT64_MAX)
    return INT64_MAX;
  return (int64_t)columns;
}

/* Queries that grow with their position: both numbers or none. */
static void expect_query_scale(ir_checker *c, MlirOperation op) {
  double scale = ir_float(op, "query_scale", 0), floor = ir_float(op, "query_floor", 1);
  if (ir_has(op, "query_scale") != ir_has(op, "query_floor"))
    ir_fault(c, op, "'query_scale' and 'query_floor' come together");
  if (!isfinite(scale)) ir_fault(c, op, "query_scale is %g", scale);
  if (!isfinite(floor) || floor <= 0) ir_fault(c, op, "query_floor is %g, expected above 0", floor);
}

static void check_attention(ir_checker *c, MlirOperation op) {
  const ir_known_group *g = group_of(c, op);
  shape q = operand(op, 0), out = result(op);
  double scale = ir_float(op, "scale", 1), cap = ir_float(op, "soft_cap", 0);
  expect_cache(c, op, 1);
  if (!isfinite(scale)) ir_fault(c, op, "scale is %g", scale);
  if (!isfinite(cap) || cap < 0) ir_fault(c, op, "soft_cap is %g, expected 0 or more", cap);
  expect_query_scale(c, op);
  expect_tokens(c, op, "q", q.tokens, c->lanes * c->width);
  expect_tokens(c, op, "the result", out.tokens, q.tokens);
  int64_t heads = g ? heads_of(c, op, g) : 0;
  if (!heads) return;
  expect_weight(c, op, "sinks", 1, heads);
  expect_columns(c, op, "q", q.columns, heads * g->key_head);
  expect_columns(c, op, "the result", out.columns,
                 ir_is(op, STELE_OP_ATTENTION) ? heads * g->value_head : partial_columns(heads, g));
}

static void check_attention_combine(ir_checker *c, MlirOperation op) {
  const ir_known_group *g = group_of(c, op);
  shape in = operand(op, 0), out = result(op);
  expect_tokens(c, op, "the result", out.tokens, in.tokens);
  int64_t heads = g ? heads_of(c, op, g) : 0;
  if (!heads) return;
  expect_weight(c, op, "sinks", 1, heads);
  expect_columns(c, op, "partial", in.columns, partial_columns(heads, g));
  expect_columns(c, op, "the result", out.columns, heads * g->value_head);
}

static void check_qkv_cache(ir_checker *c, MlirOperation op) {
  const ir_known_group *g = group_of(c, op);
  shape x = operand(op, 0), q = result(op);
  expect_cache(c, op, 1);
  written(c, op, 1);
  expect_norm(c, op, x.columns);
  expect_tokens(c, op, "x", x.tokens, c->lanes * c->width);
  expect_tokens(c, op, "q", q.tokens, x.tokens);
  if (g && g->value_in_key) ir_fault(c, op, "its group has values in the keys");
  int64_t heads = g ? heads_of(c, op, g) : 0;
  if (!heads) return;
  expect_columns(c, op, "q", q.columns, heads * g->key_head);
  expect_weight(c, op, "q", heads * g->key_head, x.columns);
  expect_weight(c, op, "k", g->kv_heads * g->key_head, x.columns);
  expect_weight(c, op, "v", g->kv_heads * g->value_head, x.columns);
  expect_weight(c, op, "q_bias", 1, heads * g->key_head);
  expect_weight(c, op, "k_bias", 1, g->kv_heads * g->key_head);
  expect_weight(c, op, "v_bias", 1, g->kv_heads * g->value_head);
  expect_weight(c, op, "q_norm", 1, g->key_head);
  expect_weight(c, op, "k_norm", 1, g->key_head);
  expect_eps(c, op, "head_eps", ir_has(op, "q_norm") || ir_has(op, "k_norm"));
  if (ir_int(op, "rotary", 0)) expect_rope(c, op, g->key_head);
}

/* ---- what takes weights ---------------------------------------------------------------- */

/* A weight of which single rows are read. */
static void expect_gathered(ir_checker *c, MlirOperation op, const ir_known_weight *w) {
  if (w && !ir_int(w->op, "embedding", 0))
    ir_fault(c, op, "weight '%s' is not declared with embedding = 1", w->name);
}

static void check_embed(ir_checker *c, MlirOperation op) {
  shape ids = operand(op, 0), out = result(op);
  expect_tokens(c, op, "the result", out.tokens, ids.tokens);
  expect_weight(c, op, "weight", c->vocab, out.columns);
  expect_gathered(c, op, known(c, op, "weight"));
  if (!isfinite(ir_float(op, "scale", 1))) ir_fault(c, op, "scale is not finite");
}

static void check_position_embed(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0);
  int64_t offset = ir_int(op, "offset", 0);
  const ir_known_weight *w = known(c, op, "weight");
  expect_same(c, op, "the result", result(op), x);
  expect_tokens(c, op, "x", x.tokens, c->lanes * c->width);
  expect_weight(c, op, "weight", -1, x.columns);
  expect_gathered(c, op, w);
  if (w && (offset < 0 || offset > w->rows || w->rows - offset < c->capacity))
    ir_fault(c, op, "weight '%s' has %lld rows, not %lld from row %lld on", w->name,
             (long long)w->rows, (long long)c->capacity, (long long)offset);
}

/* rms_norm has a number per element of a segment; layer_norm that, or one per column. */
static void check_segments(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0);
  int64_t segment = ir_int(op, "segment", 0), numbers = segment;
  const ir_known_weight *w = known(c, op, "weight");
  expect_same(c, op, "the result", result(op), x);
  expect_eps(c, op, "eps", true);
  if (segment < 1 || x.columns % segment) {
    ir_fault(c, op, "segments of %lld do not divide %lld columns", (long long)segment,
             (long long)x.columns);
    return;
  }
  if (w && ir_is(op, STELE_OP_LAYER_NORM) && w->columns == x.columns) numbers = x.columns;
  expect_weight(c, op, "weight", 1, numbers);
  expect_weight(c, op, "bias", 1, numbers);
}

static void check_linear(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0), out = result(op);
  bool argmax = ir_is(op, STELE_OP_LINEAR_ARGMAX);
  expect_tokens(c, op, "the result", out.tokens, x.tokens);
  int64_t rows = argmax ? c->vocab : out.columns;
  expect_weight(c, op, "weight", rows, x.columns);
  expect_weight(c, op, "bias", 1, rows);
  expect_norm(c, op, x.columns);
}

static void check_linear_add(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0), out = result(op);
  int64_t columns = x.columns;
  expect_tokens(c, op, "the result", out.tokens, x.tokens);
  expect_same(c, op, "residual", operand(op, 1), out);
  if (ir_int(op, "combine", 0)) {
    const ir_known_group *g = group_of(c, op);
    if (!ir_has(op, "group")) ir_fault(c, op, "'combine' without 'group'");
    int64_t heads = g ? heads_of(c, op, g) : 0;
    if (!heads) return;
    expect_columns(c, op, "x", x.columns, partial_columns(heads, g));
    columns = heads * g->value_head;
    expect_weight(c, op, "sinks", 1, heads);
  } else if (ir_has(op, "sinks")) {
    ir_fault(c, op, "'sinks' without 'combine'");
  }
  expect_weight(c, op, "weight", out.columns, columns);
  expect_weight(c, op, "bias", 1, out.columns);
}

static void check_gate_up(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0), out = result(op);
  expect_tokens(c, op, "the result", out.tokens, x.tokens);
  expect_function(c, op);
  expect_weight(c, op, "gate", out.columns, x.columns);
  expect_weight(c, op, "up", out.columns, x.columns);
  if (!ir_has(op, "up") && ir_has(op, "up_bias")) ir_fault(c, op, "'up_bias' without 'up'");
  expect_weight(c, op, "gate_bias", 1, out.columns);
  expect_weight(c, op, "up_bias", 1, out.columns);
  expect_norm(c, op, x.columns);
}

/* Heads of c + kept columns become heads of m + kept: W has m rows of c columns for each. */
static void check_head_linear(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0), out = result(op);
  int64_t heads = ir_int(op, "heads", 0), kept = ir_int(op, "kept", 0);
  const ir_known_weight *w = known(c, op, "weight");
  expect_tokens(c, op, "the result", out.tokens, x.tokens);
  if (heads < 1 || heads > UINT16_MAX || kept < 0 || kept > UINT16_MAX || x.columns % heads) {
    ir_fault(c, op, "%lld heads with %lld columns kept do not fit %lld columns", (long long)heads,
             (long long)kept, (long long)x.columns);
    return;
  }
  expect_weight(c, op, "weight", -1, x.columns / heads - kept);
  if (!w) return;
  if (w->rows % heads)
    ir_fault(c, op, "weight '%s' has %lld rows, expected a multiple of %lld heads", w->name,
             (long long)w->rows, (long long)heads);
  expect_columns(c, op, "the result", out.columns, w->rows + heads * kept);
}

static void check_prepare(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0);
  expect_same(c, op, "the result", result(op), x);
  expect_norm(c, op, x.columns);
}

/* ---- experts --------------------------------------------------------------------------- */

/* How many experts there are, and how many of them a token has; false after a fault. */
static bool expect_experts(ir_checker *c, MlirOperation op, int64_t *out_experts,
                           int64_t *out_used) {
  *out_experts = ir_int(op, "experts", 0);
  *out_used = ir_int(op, "used", 0);
  if (*out_experts >= 1 && *out_experts <= UINT16_MAX && *out_used >= 1 &&
      *out_used <= *out_experts)
    return true;
  ir_fault(c, op, "%lld of %lld experts are used, expected 1 to all of at most %d",
           (long long)*out_used, (long long)*out_experts, UINT16_MAX);
  return false;
}

static void check_groups(ir_checker *c, MlirOperation op, int64_t experts, int64_t used) {
  int64_t groups = ir_int(op, "groups", 1), used_groups = ir_int(op, "used_groups", groups);
  if (groups < 1 || experts % groups || used_groups < 1 || used_groups > groups ||
      used > experts / groups * used_groups)
    ir_fault(c, op, "%lld experts out of %lld of %lld groups of %lld", (long long)used,
             (long long)used_groups, (long long)groups, (long long)experts);
}

static void check_route(ir_checker *c, MlirOperation op) {
  shape logits = operand(op, 0), out = result(op);
  const char *rule_name = ir_string(op, "rule", "");
  int64_t experts, used;
  uint32_t rule;
  expect_tokens(c, op, "the result", out.tokens, logits.tokens);
  if (!ir_number(IR_ROUTES, rule_name, &rule))
    ir_fault(c, op, "rule '%s', expected softmax or sigmoid", rule_name);
  if (!isfinite(ir_float(op, "scale", 1))) ir_fault(c, op, "scale is not finite");
  if (!expect_experts(c, op, &experts, &used)) return;
  check_groups(c, op, experts, used);
  expect_columns(c, op, "logits", logits.columns, experts);
  expect_columns(c, op, "the result", out.columns, 2 * used);
  expect_weight(c, op, "correction", 1, experts);
}

static void check_experts_gate_up(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0), routing = operand(op, 1), out = result(op);
  const char *name = ir_string(op, "function", "");
  double limit = ir_float(op, "limit", 0);
  int64_t experts, used;
  uint32_t function;
  expect_tokens(c, op, "routing", routing.tokens, x.tokens);
  expect_tokens(c, op, "the result", out.tokens, x.tokens);
  expect_norm(c, op, x.columns);
  if (!ir_number(IR_FUNCTIONS, name, &function))
    ir_fault(c, op, "function '%s', expected silu, gelu, gelu_tanh, relu or swiglu_clamped", name);
  else if (function == STELE_SWIGLU_CLAMPED && (!ir_has(op, "alpha") || !(limit > 0)))
    ir_fault(c, op, "function '%s' with limit %g, expected 'alpha' and a limit above 0", name,
             limit);
  if (ir_int(op, "scale_input", 0) && (ir_has(op, "gate_bias") || ir_has(op, "up_bias")))
    ir_fault(c, op, "'scale_input' with biases");
  if (!expect_experts(c, op, &experts, &used)) return;
  expect_columns(c, op, "routing", routing.columns, 2 * used);
  if (out.columns % used) {
    ir_fault(c, op, "%lld columns for %lld experts of each token", (long long)out.columns,
             (long long)used);
    return;
  }
  int64_t rows = experts * (out.columns / used);
  expect_weight(c, op, "gate", rows, x.columns);
  expect_weight(c, op, "up", rows, x.columns);
  expect_weight(c, op, "gate_bias", 1, rows);
  expect_weight(c, op, "up_bias", 1, rows);
}

static void check_experts_down(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0), routing = operand(op, 1), out = result(op);
  int64_t experts, used;
  expect_tokens(c, op, "routing", routing.tokens, x.tokens);
  expect_tokens(c, op, "the result", out.tokens, x.tokens);
  if (!expect_experts(c, op, &experts, &used)) return;
  expect_columns(c, op, "routing", routing.columns, 2 * used);
  if (x.columns % used)
    ir_fault(c, op, "%lld columns for %lld experts of each token", (long long)x.columns,
             (long long)used);
  else
    expect_weight(c, op, "weight", experts * out.columns, x.columns / used);
  expect_weight(c, op, "bias", 1, experts * out.columns);
}

/* ---- the others ------------------------------------------------------------------------ */

static void check_ids(ir_checker *c, MlirOperation op) {
  expect_tokens(c, op, "the result", result(op).tokens, c->lanes * c->width);
}

static void check_rope(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0);
  int64_t head = ir_int(op, "head", 0);
  expect_same(c, op, "the result", result(op), x);
  expect_tokens(c, op, "x", x.tokens, c->lanes * c->width);
  if (head < 1 || x.columns % head)
    ir_fault(c, op, "heads of %lld do not divide %lld columns", (long long)head,
             (long long)x.columns);
  else
    expect_rope(c, op, head);
}

static void check_concat(ir_checker *c, MlirOperation op) {
  shape a = operand(op, 0), b = operand(op, 1), out = result(op);
  int64_t head = ir_int(op, "head", 0);
  expect_tokens(c, op, "b", b.tokens, a.tokens);
  expect_tokens(c, op, "the result", out.tokens, a.tokens);
  expect_columns(c, op, "the result", out.columns, a.columns + b.columns);
  if (head < 1 || out.columns % head || a.columns % (out.columns / head) ||
      b.columns % (out.columns / head))
    ir_fault(c, op, "heads of %lld of %lld and %lld columns", (long long)head, (long long)a.columns,
             (long long)b.columns);
}

static void check_scale(ir_checker *c, MlirOperation op) {
  double factor = ir_float(op, "factor", 1), cap = ir_float(op, "cap", 1);
  expect_same(c, op, "the result", result(op), operand(op, 0));
  if (!isfinite(factor)) ir_fault(c, op, "factor is %g", factor);
  if (!isfinite(cap) || cap <= 0) ir_fault(c, op, "cap is %g, expected above 0", cap);
}

static void check_element_wise(ir_checker *c, MlirOperation op) {
  expect_same(c, op, "the result", result(op), operand(op, 0));
  if (ir_is(op, STELE_OP_ACTIVATION))
    expect_function(c, op);
  else
    expect_same(c, op, "b", operand(op, 1), operand(op, 0));
}

static void check_last_token(ir_checker *c, MlirOperation op) {
  shape x = operand(op, 0), out = result(op);
  expect_tokens(c, op, "x", x.tokens, c->lanes * c->width);
  expect_tokens(c, op, "the result", out.tokens, c->lanes);
  expect_columns(c, op, "the result", out.columns, x.columns);
}

static void check_argmax(ir_checker *c, MlirOperation op) {
  expect_tokens(c, op, "the result", result(op).tokens, operand(op, 0).tokens);
  expect_columns(c, op, "logits", operand(op, 0).columns, c->vocab);
}

static void check_output_token(ir_checker *c, MlirOperation op) {
  c->output_count++;
  if (c->step_output != STELE_OUTPUT_TOKEN)
    ir_fault(c, op, "the step's output is '%s'", ir_name(IR_OUTPUTS, c->step_output));
  expect_tokens(c, op, "token", operand(op, 0).tokens,
                c->step_kind == STELE_STEP_VERIFY ? c->lanes * c->width : c->lanes);
}

static void check_hidden(ir_checker *c, MlirOperation op) {
  int64_t index = ir_int(op, "index", -1);
  if (index < 0 || index > c->layers)
    ir_fault(c, op, "hidden state %lld, expected 0 to %lld", (long long)index,
             (long long)c->layers);
  else if (c->hidden_seen[index])
    ir_fault(c, op, "hidden state %lld is left twice", (long long)index);
  else
    c->hidden_seen[index] = true;
}

static void check_output(ir_checker *c, MlirOperation op) {
  const char *name = ir_string(op, "kind", "");
  shape value = operand(op, 0);
  uint32_t kind;
  c->output_count++;
  if (!ir_number(IR_OUTPUTS, name, &kind) || kind < STELE_OUTPUT_LAST) {
    ir_fault(c, op, "kind '%s', expected last, all or hidden", name);
    return;
  }
  if (kind != c->step_output)
    ir_fault(c, op, "kind '%s', but the step's output is '%s'", name,
             ir_name(IR_OUTPUTS, c->step_output));
  if (kind == STELE_OUTPUT_HIDDEN) check_hidden(c, op);
  expect_tokens(c, op, "value", value.tokens,
                kind == STELE_OUTPUT_LAST ? c->lanes : c->lanes * c->width);
  expect_columns(c, op, "value", value.columns, kind == STELE_OUTPUT_HIDDEN ? c->hidden : c->vocab);
}

/* ---- by kind --------------------------------------------------------------------------- */

void ir_check_op(ir_checker *checker, MlirOperation op, uint32_t kind) {
  static void (*const checks[STELE_OP_COUNT])(ir_checker *, MlirOperation) = {
      [STELE_OP_IDS] = check_ids,
      [STELE_OP_CACHE] = check_cache,
      [STELE_OP_OUTPUT] = check_output,
      [STELE_OP_OUTPUT_TOKEN] = check_output_token,
      [STELE_OP_EMBED] = check_embed,
      [STELE_OP_RMS_NORM] = check_segments,
      [STELE_OP_LAYER_NORM] = check_segments,
      [STELE_OP_POSITION_EMBED] = check_position_embed,
      [STELE_OP_LINEAR] = check_linear,
      [STELE_OP_HEAD_LINEAR] = check_head_linear,
      [STELE_OP_CONCAT] = check_concat,
      [STELE_OP_ROPE] = check_rope,
      [STELE_OP_CACHE_UPDATE] = check_cache_update,
      [STELE_OP_ATTENTION] = check_attention,
      [STELE_OP_ACTIVATION] = check_element_wise,
      [STELE_OP_MUL] = check_element_wise,
      [STELE_OP_ADD] = check_element_wise,
      [STELE_OP_SCALE] = check_scale,
      [STELE_OP_SOFT_CAP] = check_scale,
      [STELE_OP_ROUTE] = check_route,
      [STELE_OP_EXPERTS_GATE_UP] = check_experts_gate_up,
      [STELE_OP_EXPERTS_DOWN] = check_experts_down,
      [STELE_OP_LAST_TOKEN] = check_last_token,
      [STELE_OP_ARGMAX] = check_argmax,
      [STELE_OP_QKV_CACHE] = check_qkv_cache,
      [STELE_OP_ATTENTION_PARTIAL] = check_attention,
      [STELE_OP_ATTENTION_COMBINE] = check_attention_combine,
      [STELE_OP_GATE_UP] = check_gate_up,
      [STELE_OP_LINEAR_ADD] = check_linear_add,
      [STELE_OP_LINEAR_ARGMAX] = check_linear,
      [STELE_OP_PREPARE] = check_prepare,
      [STELE_OP_CACHE_STORE] = check_cache_store,
  };
  check_layer(checker, op);
  if (checks[kind]) checks[kind](checker, op);
}
