/* Shapes of the usual tensors. Vectors have one row; the matrices of all experts are one weight,
 * one behind the other. */
#include "frontend/decoder.h"

static bool shape(uint64_t rows, uint64_t columns, uint64_t *out_rows, uint64_t *out_columns) {
  *out_rows = rows;
  *out_columns = columns;
  return true;
}

static const struct {
  bool layer, matrix;
} kinds[] = {
#define MODEL false
#define LAYER true
#define VECTOR false
#define MATRIX true
#define ROLE(name, scope, shape, ...) [FE_##name] = {scope, shape},
#include "frontend/roles.def"
#undef ROLE
#undef MATRIX
#undef VECTOR
#undef LAYER
#undef MODEL
};

bool fe_role_in_layers(fe_role role) { return kinds[role].layer; }
bool fe_role_is_vector(fe_role role) { return !kinds[role].matrix; }

bool fe_role_is_norm(fe_role role) {
  switch (role) {
    case FE_ATTENTION_NORM:
    case FE_POST_ATTENTION_NORM:
    case FE_MLP_NORM:
    case FE_POST_MLP_NORM:
    case FE_FINAL_NORM:
    case FE_Q_NORM:
    case FE_K_NORM:
    case FE_Q_A_NORM:
    case FE_KV_A_NORM:
      return true;
    default:
      return false;
  }
}

static bool has_role(const fe_model *model, fe_role role, int32_t layer) {
  if (kinds[role].layer != (layer >= 0)) return false;
  uint64_t roles = layer < 0 ? model->roles : model->layer[layer].roles;
  return roles & FE_ROLE(role);
}

/* A vector for one head, or for all that there are. */
static uint64_t head_norm(const fe_model *model, uint64_t heads) {
  return model->head_norm == FE_HEAD_NORM_SHARED ? model->key_head : heads * model->key_head;
}

static bool attention(const fe_model *m, fe_role role, uint64_t *rows, uint64_t *columns) {
  uint64_t q = (uint64_t)m->heads * m->key_head, k = (uint64_t)m->kv_heads * m->key_head;
  uint64_t v = (uint64_t)m->kv_heads * m->value_head, o = (uint64_t)m->heads * m->value_head;
  switch (role) {
    case FE_Q:
      return shape(q, m->hidden, rows, columns);
    case FE_K:
      return shape(k, m->hidden, rows, columns);
    case FE_V:
      return shape(v, m->hidden, rows, columns);
    case FE_O:
      return shape(m->hidden, o, rows, columns);
    case FE_Q_BIAS:
      return shape(1, q, rows, columns);
    case FE_K_BIAS:
      return shape(1, k, rows, columns);
    case FE_V_BIAS:
      return shape(1, v, rows, columns);
    case FE_Q_NORM:
    case FE_Q_NORM_BIAS:
      return shape(1, head_norm(m, m->heads), rows, columns);
    case FE_K_NORM:
    case FE_K_NORM_BIAS:
      return shape(1, head_norm(m, m->kv_heads), rows, columns);
    case FE_SINKS:
      return shape(1, m->heads, rows, columns);
    default:
      return shape(1, m->hidden, rows, columns);
  }
}

static bool latent(const fe_model *m, fe_role role, uint64_t *rows, uint64_t *columns) {
  const fe_latent *l = &m->latent;
  uint64_t heads = m->heads;
  switch (role) {
    case FE_Q:
      return shape(heads * (l->nope + l->rope), l->q_rank ? l->q_rank : m->hidden, rows, columns);
    case FE_Q_A:
      return shape(l->q_rank, m->hidden, rows, columns);
    case FE_Q_A_NORM:
      return shape(1, l->q_rank, rows, columns);
    case FE_KV_A:
      return shape(l->kv_rank, m->hidden, rows, columns);
    case FE_KV_A_NORM:
      return shape(1, l->kv_rank, rows, columns);
    case FE_K_ROPE:
      return shape(l->rope, m->hidden, rows, columns);
    case FE_K_UP:
      return shape(heads * l->kv_rank, l->nope, rows, columns);
    case FE_V_UP:
      return shape(heads * l->value, l->kv_rank, rows, columns);
    case FE_O:
      return shape(m->hidden, heads * l->value, rows, columns);
    default:
      return attention(m, role, rows, columns);
  }
}

static bool experts(const fe_model *m, fe_role role, uint64_t *rows, uint64_t *columns) {
  const fe_experts *e = &m->experts;
  uint64_t count = e->count, hidden = m->hidden;
  switch (role) {
    case FE_ROUTER:
      return shape(count, hidden, rows, columns);
    case FE_ROUTER_BIAS:
    case FE_ROUTER_CORRECTION:
      return shape(1, count, rows, columns);
    case FE_EXPERT_GATE:
    case FE_EXPERT_UP:
      return shape(count * e->inner, hidden, rows, columns);
    case FE_EXPERT_DOWN:
      return shape(count * hidden, e->inner, rows, columns);
    case FE_EXPERT_GATE_BIAS:
    case FE_EXPERT_UP_BIAS:
      return shape(1, count * e->inner, rows, columns);
    case FE_EXPERT_DOWN_BIAS:
      return shape(1, count * hidden, rows, columns);
    case FE_SHARED_GATE:
    case FE_SHARED_UP:
      return shape(e->shared_inner, hidden, rows, columns);
    default:
      return shape(hidden, e->shared_inner, rows, columns);
  }
}

bool fe_decoder_has(const fe_model *model, fe_role role, int32_t layer, uint64_t *out_rows,
                    uint64_t *out_columns) {
  uint64_t hidden = model->hidden, inner = model->intermediate;
  if (!has_role(model, role, layer)) return false;
  if (role >= FE_ROUTER && role <= FE_SHARED_DOWN)
    return experts(model, role, out_rows, out_columns);
  switch (role) {
    case FE_EMBED:
    case FE_HEAD:
      return shape(model->vocab, hidden, out_rows, out_columns);
    case FE_HEAD_BIAS:
      return shape(1, model->vocab, out_rows, out_columns);
    case FE_POSITIONS:
      return shape((uint64_t)model->model_positions + model->positions_offset, hidden, out_rows,
                   out_columns);
    case FE_GATE:
    case FE_UP:
      return shape(inner, hidden, out_rows, out_columns);
    case FE_DOWN:
      return shape(hidden, inner, out_rows, out_columns);
    case FE_GATE_BIAS:
    case FE_UP_BIAS:
      return shape(1, inner, out_rows, out_columns);
    default:
      if (model->latent.kv_rank) return latent(model, role, out_rows, out_columns);
      return attention(model, role, out_rows, out_columns);
  }
}
