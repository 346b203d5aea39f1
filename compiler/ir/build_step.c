/* One step at the model level: the decoder that llama-like families share, written out op by op,
 * and at its end what the step's output asks for.
 *
 * Shapes: T = lanes * width tokens; [T x n] is T rows of n. A layer is
 *   x = x + O attention(rope(norm(Q n)), cache with rope(norm(K n)), V n)    n = norm(x)
 *   x = x + down(function(gate n) * up n)                                    n = norm(x)  */
#include "build.h"

typedef struct step_state {
  const ir_build_state *build;
  ir_builder at; /* in the step's block */
  int64_t lanes, tokens;
  int32_t layer; /* -1 outside layers: what ops are marked with */
} step_state;

/* Appends an op; inside a layer it is marked with the layer's number. */
static MlirOperation emit(const step_state *s, uint32_t kind, MlirValue a, MlirValue b, MlirValue c,
                          int64_t columns) {
  MlirValue operands[] = {a, b, c};
  MlirOperation op = ir_create(&s->at, kind, operands, 3, s->tokens, columns);
  if (s->layer >= 0) ir_set_int(op, "layer", s->layer);
  return op;
}

static const MlirValue none = {NULL};

static MlirValue result(MlirOperation op) { return mlirOperationGetResult(op, 0); }

static const fe_weight *weight(const step_state *s, fe_role role) {
  return fe_model_weight(s->build->model, role, s->layer);
}

/* ---- pieces ---------------------------------------------------------------------------- */

/* x [T x columns], each run of `segment` columns normed by itself; no weight: x as it is. */
static MlirValue norm(const step_state *s, MlirValue x, fe_role role, int64_t columns) {
  const fe_weight *w = weight(s, role);
  if (!w) return x;
  MlirOperation op = emit(s, STELE_OP_RMS_NORM, x, none, none, columns);
  ir_set_string(op, "weight", w->name);
  ir_set_float(op, "eps", s->build->model->norm_eps);
  ir_set_int(op, "segment", (int64_t)w->columns);
  return result(op);
}

/* FE_ROLE_COUNT: no bias. */
static MlirValue linear(const step_state *s, MlirValue x, fe_role role, fe_role bias) {
  const fe_weight *w = weight(s, role);
  const fe_weight *b = bias == FE_ROLE_COUNT ? NULL : weight(s, bias);
  MlirOperation op = emit(s, STELE_OP_LINEAR, x, none, none, (int64_t)w->rows);
  ir_set_string(op, "weight", w->name);
  if (b) ir_set_string(op, "bias", b->name);
  return result(op);
}

static MlirValue rope(const step_state *s, MlirValue x, int64_t columns) {
  const fe_model *model = s->build->model;
  int32_t index = model->layer[s->layer].rope;
  if (index < 0) return x;
  const fe_rope *r = &model->ropes[index];
  MlirOperation op = emit(s, STELE_OP_ROPE, x, none, none, columns);
  ir_set_int(op, "head", model->key_head);
  ir_set_int(op, "rotary", r->rotary);
  ir_set_int(op, "offset", r->offset);
  ir_set_string(op, "pairing", ir_name(IR_PAIRINGS, r->pairing));
  ir_set_int(op, "table", index);
  return result(op);
}

static MlirOperation with_group(const step_state *s, MlirOperation op) {
  ir_set_int(op, "group", s->build->layer_group[s->layer]);
  return op;
}

/* n [T x hidden] -> [T x heads * value_head]. The cache takes keys [T x kv_heads * key_head] and
 * values [T x kv_heads * value_head]. */
static MlirValue attention(const step_state *s, MlirValue n) {
  const fe_model *model = s->build->model;
  int64_t q_columns = (int64_t)model->heads * model->key_head;
  int64_t k_columns = (int64_t)model->kv_heads * model->key_head;
  MlirValue q = linear(s, n, FE_Q, FE_Q_BIAS);
  MlirValue k = linear(s, n, FE_K, FE_K_BIAS);
  MlirValue v = linear(s, n, FE_V, FE_V_BIAS);
  q = norm(s, q, FE_Q_NORM, q_columns);
  k = norm(s, k, FE_K_NORM, k_columns);
  q = rope(s, q, q_columns);
  k = rope(s, k, k_columns);
  MlirOperation before = with_group(s, emit(s, STELE_OP_CACHE, none, none, none, 0));
  MlirOperation after = with_group(s, emit(s, STELE_OP_CACHE_UPDATE, result(before), k, v, 0));
  MlirOperation op = with_group(s, emit(s, STELE_OP_ATTENTION, q, result(after), none,
                                        (int64_t)model->heads * model->value_head));
  ir_set_int(op, "heads", model->heads);
  ir_set_float(op, "scale", model->layer[s->layer].attention_scale);
  ir_set_float(op, "soft_cap", model->soft_cap);
  return result(op);
}

/* n [T x hidden] -> [T x intermediate] */
static MlirValue gated(const step_state *s, MlirValue n) {
  const fe_model *model = s->build->model;
  bool gate = weight(s, FE_GATE) != NULL;
  MlirValue a = gate ? linear(s, n, FE_GATE, FE_GATE_BIAS) : none;
  MlirValue up = linear(s, n, FE_UP, FE_UP_BIAS);
  int64_t columns = (int64_t)weight(s, FE_UP)->rows;
  MlirOperation op = emit(s, STELE_OP_ACTIVATION, gate ? a : up, none, none, columns);
  ir_set_string(op, "function", ir_name(IR_FUNCTIONS, model->function));
  if (!gate) return result(op);
  return result(emit(s, STELE_OP_MUL, result(op), up, none, columns));
}

static MlirValue layer(step_state *s, uint32_t index, MlirValue x) {
  int64_t hidden = s->build->model->hidden;
  s->layer = (int32_t)index;
  MlirValue a = attention(s, norm(s, x, FE_ATTENTION_NORM, hidden));
  x = result(emit(s, STELE_OP_ADD, linear(s, a, FE_O, FE_O_BIAS), x, none, hidden));
  MlirValue m = gated(s, norm(s, x, FE_MLP_NORM, hidden));
  x = result(emit(s, STELE_OP_ADD, linear(s, m, FE_DOWN, FE_DOWN_BIAS), x, none, hidden));
  s->layer = -1;
  return x;
}

/* ---- the ends -------------------------------------------------------------------------- */

static void output(const step_state *s, MlirValue value, uint32_t kind, int64_t index) {
  MlirOperation op = emit(s, STELE_OP_OUTPUT, value, none, none, 0);
  ir_set_string(op, "kind", ir_name(IR_OUTPUTS, kind));
  ir_set_int(op, "index", index);
}

/* x [T x hidden], the residual stream after the last layer. */
static void end(step_state *s, const ir_step *step, MlirValue x) {
  const fe_model *model = s->build->model;
  uint32_t kind = step->output;
  if (kind == STELE_OUTPUT_NONE) return;
  bool last = kind == STELE_OUTPUT_TOKEN || kind == STELE_OUTPUT_LAST;
  if (last && step->kind != STELE_STEP_VERIFY) { /* which answers every token */
    s->tokens = s->lanes;
    x = result(emit(s, STELE_OP_LAST_TOKEN, x, none, none, model->hidden));
  }
  x = norm(s, x, FE_FINAL_NORM, model->hidden);
  if (kind == STELE_OUTPUT_HIDDEN) {
    output(s, x, kind, model->layers);
    return;
  }
  MlirValue logits = linear(s, x, model->tied ? FE_EMBED : FE_HEAD, FE_ROLE_COUNT);
  if (kind != STELE_OUTPUT_TOKEN) {
    output(s, logits, kind, 0);
    return;
  }
  MlirValue token = result(emit(s, STELE_OP_ARGMAX, logits, none, none, 0));
  emit(s, STELE_OP_OUTPUT_TOKEN, token, none, none, 0);
}

static MlirValue embed(const step_state *s) {
  const fe_model *model = s->build->model;
  MlirValue ids = result(emit(s, STELE_OP_IDS, none, none, none, 0));
  MlirOperation op = emit(s, STELE_OP_EMBED, ids, none, none, model->hidden);
  ir_set_string(op, "weight", weight(s, FE_EMBED)->name);
  ir_set_float(op, "scale", model->embed_scale);
  return result(op);
}

void ir_build_step(const ir_build_state *build, const ir_step *step) {
  MlirOperation op = ir_create(&build->at, STELE_OP_STEP, NULL, 0, 0, 0);
  ir_set_string(op, "kind", ir_name(IR_STEP_KINDS, step->kind));
  ir_set_int(op, "lanes", step->lanes);
  ir_set_int(op, "width", step->width);
  ir_set_string(op, "output", ir_name(IR_OUTPUTS, step->output));

  step_state s = {.build = build,
                  .at = ir_builder_at_end(build->at.context, ir_step_block(op)),
                  .lanes = step->lanes,
                  .tokens = (int64_t)step->lanes * step->width,
                  .layer = -1};
  bool hidden = step->output == STELE_OUTPUT_HIDDEN;
  MlirValue x = embed(&s);
  if (hidden) output(&s, x, STELE_OUTPUT_HIDDEN, 0);
  for (uint32_t i = 0; i < build->model->layers; i++) {
    x = layer(&s, i, x);
    if (hidden && i + 1 < build->model->layers) output(&s, x, STELE_OUTPUT_HIDDEN, i + 1);
  }
  end(&s, step, x);
}
