/* fuse-qkv (optimising)
 * requires: the model level, norms already in the linears if they are to be
 * ensures:  the query, key and value projections of the same input, their biases, the norms of
 *           heads, rope and the cache write are one op
 * gone:     the linear, rms_norm, rope and cache_update ops that it took up
 *
 * The pattern, found from the attention backwards; [] may be absent:
 *     q <- [rope] <- [rms_norm] <- linear <- x
 *     k <- [rope] <- [rms_norm] <- linear <- x       cache_update(cache, k, v)
 *     v <-                         linear <- x
 * Refused unless nothing else reads a value on the way, q and k turn alike or not at all, the
 * matrices are
 * all quantised or none is, and a head is a whole number of the target's aligned rows: the fused
 * op's tiles are heads. */
#include "internal.h"

static const char *const rope_names[] = {"head", "rotary", "offset", "pairing", "table", NULL};

/* One of the projections: the ops on the way from x. */
typedef struct projection {
  MlirOperation rope, norm, linear; /* null where there is none */
} projection;

typedef struct match {
  MlirOperation attention, update;
  projection q, k, v;
} match;

/* The op of a kind that alone makes operand *io_i of *io_reader, which then is the next reader; or
 * null, and the reader stays. */
static MlirOperation step_over(uint32_t kind, MlirOperation *io_reader, intptr_t *io_i) {
  MlirOperation op = pass_sole_source(*io_reader, *io_i, kind);
  if (pass_is_null(op)) return op;
  *io_reader = op;
  *io_i = 0;
  return op;
}

/* Follows operand i of reader back to x. */
static bool find_projection(MlirOperation reader, intptr_t i, bool is_value, projection *out) {
  projection p = {0};
  if (!is_value) {
    p.rope = step_over(STELE_OP_ROPE, &reader, &i);
    p.norm = step_over(STELE_OP_RMS_NORM, &reader, &i);
  }
  p.linear = pass_sole_source(reader, i, STELE_OP_LINEAR);
  *out = p;
  return !pass_is_null(p.linear);
}

static bool same_input(MlirOperation a, MlirOperation b) {
  return mlirValueEqual(pass_operand(a, 0), pass_operand(b, 0)) && pass_same_norm(a, b);
}

static bool same_rope(MlirOperation a, MlirOperation b) {
  if (pass_is_null(a) || pass_is_null(b)) return pass_is_null(a) && pass_is_null(b);
  for (const char *const *name = rope_names; *name; name++)
    if (!pass_same(a, b, *name)) return false;
  return true;
}

/* A norm must be one of heads; two of them share eps. */
static bool norms_fit(const match *m, int64_t key_head) {
  const MlirOperation norms[2] = {m->q.norm, m->k.norm};
  for (int i = 0; i < 2; i++)
    if (!pass_is_null(norms[i]) && ir_int(norms[i], "segment", 0) != key_head) return false;
  return pass_is_null(norms[0]) || pass_is_null(norms[1]) || pass_same(norms[0], norms[1], "eps");
}

static bool heads_fit(const pass_step *step, const match *m, const stele_group *g) {
  int64_t align = base_max(step->context->traits.row_align, 1);
  int64_t heads = ir_int(m->attention, "heads", 0);
  return g->key_head % align == 0 && g->value_head % align == 0 &&
         (pass_is_null(m->q.rope) || ir_int(m->q.rope, "head", 0) == g->key_head) &&
         pass_columns(m->q.linear) == heads * g->key_head &&
         pass_columns(m->k.linear) == (int64_t)g->kv_heads * g->key_head &&
         pass_columns(m->v.linear) == (int64_t)g->kv_heads * g->value_head;
}

static stele_status find(pass_step *step, MlirOperation attention, const pass_weights *weights,
                         match *m, bool *out_found) {
  *out_found = false;
  *m = (match){.attention = attention, .update = pass_source(attention, 1)};
  if (!ir_is(m->update, STELE_OP_CACHE_UPDATE) || ir_uses(pass_operand(attention, 1)) != 1 ||
      !pass_same(attention, m->update, "group") || !pass_same(attention, m->update, "layer") ||
      mlirOperationGetNumOperands(m->update) < 3 || !find_projection(attention, 0, false, &m->q) ||
      !find_projection(m->update, 1, false, &m->k) || !find_projection(m->update, 2, true, &m->v))
    return STELE_OK;
  stele_group group;
  BASE_TRY(pass_group(step->context, ir_int(attention, "group", 0), &group));
  if (!same_input(m->q.linear, m->k.linear) || !same_input(m->q.linear, m->v.linear) ||
      !same_rope(m->q.rope, m->k.rope) || !norms_fit(m, group.key_head) ||
      !heads_fit(step, m, &group))
    return STELE_OK;
  bool k_same, v_same;
  BASE_TRY(pass_same_class(step->context, weights, m->q.linear, m->k.linear, &k_same));
  BASE_TRY(pass_same_class(step->context, weights, m->q.linear, m->v.linear, &v_same));
  *out_found = k_same && v_same;
  return STELE_OK;
}

/* Nothing turns where there is no rope. */
static void set_rope(MlirOperation fused, MlirOperation rope) {
  if (!pass_is_null(rope)) {
    pass_copy(fused, rope, rope_names + 1);
    return;
  }
  ir_set_int(fused, "rotary", 0);
  ir_set_int(fused, "offset", 0);
  ir_set_string(fused, "pairing", ir_name(IR_PAIRINGS, STELE_PAIR_HALVES));
  ir_set_int(fused, "table", 0);
}

static void set_attributes(MlirOperation fused, const match *m) {
  const char *const places[] = {"layer", "group", NULL};
  pass_copy(fused, m->update, places);
  ir_copy_attribute(fused, "heads", m->attention, "heads");
  ir_copy_attribute(fused, "q", m->q.linear, "weight");
  ir_copy_attribute(fused, "k", m->k.linear, "weight");
  ir_copy_attribute(fused, "v", m->v.linear, "weight");
  ir_copy_attribute(fused, "q_bias", m->q.linear, "bias");
  ir_copy_attribute(fused, "k_bias", m->k.linear, "bias");
  ir_copy_attribute(fused, "v_bias", m->v.linear, "bias");
  pass_copy(fused, m->q.linear, pass_norm_names);
  set_rope(fused, m->q.rope);
  if (!pass_is_null(m->q.norm)) ir_copy_attribute(fused, "q_norm", m->q.norm, "weight");
  if (!pass_is_null(m->k.norm)) ir_copy_attribute(fused, "k_norm", m->k.norm, "weight");
  MlirOperation head_norm = pass_is_null(m->q.norm) ? m->k.norm : m->q.norm;
  if (!pass_is_null(head_norm)) ir_copy_attribute(fused, "head_eps", head_norm, "eps");
}

static void erase_projection(const projection *p) {
  if (!pass_is_null(p->rope)) ir_erase(p->rope);
  if (!pass_is_null(p->norm)) ir_erase(p->norm);
  ir_erase(p->linear);
}

static void replace(const match *m) {
  ir_builder builder = ir_builder_before(m->attention);
  const MlirValue operands[] = {pass_operand(m->q.linear, 0), pass_operand(m->update, 0)};
  MlirOperation fused = ir_create(&builder, STELE_OP_QKV_CACHE, operands, 2,
                                  pass_tokens(m->q.linear), pass_columns(m->q.linear));
  set_attributes(fused, m);
  mlirOperationSetOperand(m->attention, 0, mlirOperationGetResult(fused, 0));
  mlirOperationSetOperand(m->attention, 1, mlirOperationGetResult(fused, 1));
  ir_erase(m->update);
  erase_projection(&m->q);
  erase_projection(&m->k);
  erase_projection(&m->v);
}

static stele_status fuse(pass_step *step, MlirOperation op, void *data) {
  if (!ir_is(op, STELE_OP_ATTENTION)) return STELE_OK;
  match m;
  bool found;
  BASE_TRY(find(step, op, data, &m, &found));
  if (found) replace(&m);
  return STELE_OK;
}

stele_status pass_fuse_qkv(pass_context *context, bool trivial) {
  (void)trivial;
  pass_weights weights;
  BASE_TRY(pass_weights_load(context, &weights));
  return pass_ops(context, fuse, &weights);
}
