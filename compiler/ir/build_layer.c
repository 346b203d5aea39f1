/* One layer of a decoder, op by op; frontend.h gives the forms that layers have.
 *
 * Shapes: T = lanes * width tokens; [T x n] is T rows of n.
 *
 * Latent attention never unfolds the cache: with a head's score q_nope (K_UP c) + q_rope k_rope
 * written as (K_UP^T q_nope) c + q_rope k_rope, the cache holds c and k_rope, one head for all, and
 * what attention gives is the weighted sum of c, which V_UP then unfolds (arXiv 2405.04434). */
#include "build.h"

static const fe_layer *layer_of(const ir_step_state *s) {
  return &s->build->model->layer[s->layer];
}

static MlirValue add(const ir_step_state *s, MlirValue a, MlirValue b, int64_t columns) {
  return ir_value(ir_emit(s, STELE_OP_ADD, a, b, IR_NONE, columns));
}

/* ---- attention ------------------------------------------------------------------------- */

/* x [T x columns], heads of key_head. */
static MlirValue rope(const ir_step_state *s, MlirValue x, int64_t columns) {
  const fe_model *model = s->build->model;
  int32_t index = layer_of(s)->rope;
  if (index < 0) return x;
  const fe_rope *r = &model->ropes[index];
  MlirOperation op = ir_emit(s, STELE_OP_ROPE, x, IR_NONE, IR_NONE, columns);
  ir_set_int(op, "head", model->key_head);
  ir_set_int(op, "rotary", r->rotary);
  ir_set_int(op, "offset", r->offset);
  ir_set_string(op, "pairing", ir_name(IR_PAIRINGS, r->pairing));
  ir_set_int(op, "table", index);
  return ir_value(op);
}

static MlirOperation with_group(const ir_step_state *s, MlirOperation op) {
  ir_set_int(op, "group", s->build->layer_group[s->layer]);
  return op;
}

/* Of heads side by side: each by itself, or all as one vector. */
static MlirValue head_norm(const ir_step_state *s, MlirValue x, fe_role role, fe_role bias,
                           int64_t columns) {
  const fe_model *model = s->build->model;
  bool whole = model->head_norm == FE_HEAD_NORM_WHOLE;
  return ir_norm(s, x, role, bias, whole ? columns : model->key_head, columns);
}

/* Queries, keys and values before rope; v is absent where the cache has it in the key. */
typedef struct projections {
  MlirValue q, k,
      v; /* [T x heads * key_head], [T x kv_heads * key_head], [T x kv_heads * v head] */
} projections;

static projections project(const ir_step_state *s, MlirValue n) {
  const fe_model *model = s->build->model;
  int64_t q_columns = (int64_t)model->heads * model->key_head;
  int64_t k_columns = (int64_t)model->kv_heads * model->key_head;
  projections p = {ir_linear(s, n, FE_Q, FE_Q_BIAS), ir_linear(s, n, FE_K, FE_K_BIAS),
                   ir_linear(s, n, FE_V, FE_V_BIAS)};
  p.q = head_norm(s, p.q, FE_Q_NORM, FE_Q_NORM_BIAS, q_columns);
  p.k = head_norm(s, p.k, FE_K_NORM, FE_K_NORM_BIAS, k_columns);
  return p;
}

/* x [T x heads * (c + kept)] -> [T x heads * (m + kept)] */
static MlirValue head_linear(const ir_step_state *s, MlirValue x, fe_role role, int64_t kept) {
  const fe_weight *w = ir_role(s, role);
  int64_t heads = s->build->model->heads, columns = (int64_t)w->rows + heads * kept;
  MlirOperation op = ir_emit(s, STELE_OP_HEAD_LINEAR, x, IR_NONE, IR_NONE, columns);
  ir_set_int(op, "heads", heads);
  ir_set_string(op, "weight", w->name);
  ir_set_int(op, "kept", kept);
  return ir_value(op);
}

static projections project_latent(const ir_step_state *s, MlirValue n) {
  const fe_model *model = s->build->model;
  const fe_latent *l = &model->latent;
  MlirValue q = n;
  if (l->q_rank) {
    q = ir_linear(s, n, FE_Q_A, FE_ROLE_COUNT);
    q = ir_norm(s, q, FE_Q_A_NORM, FE_ROLE_COUNT, l->q_rank, l->q_rank);
  }
  q = head_linear(s, ir_linear(s, q, FE_Q, FE_Q_BIAS), FE_K_UP, l->rope);
  MlirValue c = ir_linear(s, n, FE_KV_A, FE_ROLE_COUNT);
  c = ir_norm(s, c, FE_KV_A_NORM, FE_ROLE_COUNT, l->kv_rank, l->kv_rank);
  MlirValue turned = ir_linear(s, n, FE_K_ROPE, FE_ROLE_COUNT);
  MlirOperation k = ir_emit(s, STELE_OP_CONCAT, c, turned, IR_NONE, model->key_head);
  ir_set_int(k, "head", model->key_head);
  return (projections){q, ir_value(k), IR_NONE};
}

static void set_attention(const ir_step_state *s, MlirOperation op) {
  const fe_model *model = s->build->model;
  const fe_layer *layer = layer_of(s);
  const fe_weight *sinks = ir_role(s, FE_SINKS);
  ir_set_int(op, "heads", model->heads);
  ir_set_float(op, "scale", layer->attention_scale);
  ir_set_float(op, "soft_cap", model->soft_cap);
  if (sinks) ir_set_string(op, "sinks", sinks->name);
  if (layer->query_floor <= 0) return;
  ir_set_float(op, "query_scale", layer->query_scale);
  ir_set_float(op, "query_floor", layer->query_floor);
}

/* n [T x hidden] -> [T x hidden] */
static MlirValue attention(const ir_step_state *s, MlirValue n) {
  const fe_model *model = s->build->model;
  bool latent = model->latent.kv_rank != 0;
  projections p = latent ? project_latent(s, n) : project(s, n);
  p.q = rope(s, p.q, (int64_t)model->heads * model->key_head);
  p.k = rope(s, p.k, (int64_t)model->kv_heads * model->key_head);
  MlirOperation before = with_group(s, ir_emit(s, STELE_OP_CACHE, IR_NONE, IR_NONE, IR_NONE, 0));
  MlirOperation after =
      with_group(s, ir_emit(s, STELE_OP_CACHE_UPDATE, ir_value(before), p.k, p.v, 0));
  MlirOperation op = with_group(s, ir_emit(s, STELE_OP_ATTENTION, p.q, ir_value(after), IR_NONE,
                                           (int64_t)model->heads * model->value_head));
  set_attention(s, op);
  MlirValue out = ir_value(op);
  if (latent) out = head_linear(s, out, FE_V_UP, 0);
  return ir_linear(s, out, FE_O, FE_O_BIAS);
}

/* ---- feed-forward ---------------------------------------------------------------------- */

/* The roles of a gated or plain block. */
typedef struct dense_roles {
  fe_role gate, up, down, gate_bias, up_bias, down_bias;
} dense_roles;

static const dense_roles own = {FE_GATE, FE_UP, FE_DOWN, FE_GATE_BIAS, FE_UP_BIAS, FE_DOWN_BIAS};
static const dense_roles shared = {FE_SHARED_GATE, FE_SHARED_UP,  FE_SHARED_DOWN,
                                   FE_ROLE_COUNT,  FE_ROLE_COUNT, FE_ROLE_COUNT};

/* n [T x hidden] -> [T x hidden], by way of [T x intermediate] */
static MlirValue dense(const ir_step_state *s, MlirValue n, const dense_roles *roles) {
  const fe_model *model = s->build->model;
  bool gated = ir_role(s, roles->gate) != NULL;
  MlirValue gate = gated ? ir_linear(s, n, roles->gate, roles->gate_bias) : IR_NONE;
  MlirValue up = ir_linear(s, n, roles->up, roles->up_bias);
  int64_t columns = (int64_t)ir_role(s, roles->up)->rows;
  MlirOperation op = ir_emit(s, STELE_OP_ACTIVATION, gated ? gate : up, IR_NONE, IR_NONE, columns);
  ir_set_string(op, "function", ir_name(IR_FUNCTIONS, model->function));
  MlirValue h = ir_value(op);
  if (gated) h = ir_value(ir_emit(s, STELE_OP_MUL, h, up, IR_NONE, columns));
  return ir_linear(s, h, roles->down, roles->down_bias);
}

/* n [T x hidden] -> [T x hidden]; shared experts are computed for all tokens. */
static MlirValue feed_forward(const ir_step_state *s, MlirValue n) {
  if (!ir_role(s, FE_ROUTER)) return dense(s, n, &own);
  MlirValue out = ir_build_experts(s, n);
  if (!ir_role(s, FE_SHARED_UP)) return out;
  return add(s, dense(s, n, &shared), out, s->build->model->hidden);
}

/* ---- the whole ------------------------------------------------------------------------- */

static MlirValue norm(const ir_step_state *s, MlirValue x, fe_role role, fe_role bias) {
  int64_t hidden = s->build->model->hidden;
  return ir_norm(s, x, role, bias, hidden, hidden);
}

/* x + residual_scale * post(y) */
static MlirValue residual(const ir_step_state *s, MlirValue x, MlirValue y, fe_role post) {
  const fe_model *model = s->build->model;
  y = norm(s, y, post, FE_ROLE_COUNT);
  y = ir_scale(s, y, model->residual_scale, model->hidden);
  return add(s, y, x, model->hidden);
}

MlirValue ir_build_layer(const ir_step_state *s, MlirValue x) {
  MlirValue n = norm(s, x, FE_ATTENTION_NORM, FE_ATTENTION_NORM_BIAS);
  MlirValue m = n;
  if (layer_of(s)->parallel && ir_role(s, FE_MLP_NORM))
    m = norm(s, x, FE_MLP_NORM, FE_MLP_NORM_BIAS);
  x = residual(s, x, attention(s, n), FE_POST_ATTENTION_NORM);
  if (!layer_of(s)->parallel) m = norm(s, x, FE_MLP_NORM, FE_MLP_NORM_BIAS);
  return residual(s, x, feed_forward(s, m), FE_POST_MLP_NORM);
}
