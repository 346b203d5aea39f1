/* One step at the model level: embedding, layers (build_layer.c), and at its end what the step's
 * output asks for.
 *
 * Shapes: T = lanes * width tokens; [T x n] is T rows of n. */
#include "build.h"

/* ---- pieces ---------------------------------------------------------------------------- */

MlirOperation ir_emit(const ir_step_state *s, uint32_t kind, MlirValue a, MlirValue b, MlirValue c,
                      int64_t columns) {
  MlirValue operands[] = {a, b, c};
  MlirOperation op = ir_create(&s->at, kind, operands, 3, s->tokens, columns);
  if (s->layer >= 0) ir_set_int(op, "layer", s->layer);
  return op;
}

MlirValue ir_value(MlirOperation op) { return mlirOperationGetResult(op, 0); }

const fe_weight *ir_role(const ir_step_state *s, fe_role role) {
  return role == FE_ROLE_COUNT ? NULL : fe_model_weight(s->build->model, role, s->layer);
}

MlirValue ir_norm(const ir_step_state *s, MlirValue x, fe_role role, fe_role bias, int64_t segment,
                  int64_t columns) {
  const fe_model *model = s->build->model;
  const fe_weight *w = ir_role(s, role), *b = ir_role(s, bias);
  if (!w) return x;
  uint32_t kind = model->norm == FE_NORM_LAYER ? STELE_OP_LAYER_NORM : STELE_OP_RMS_NORM;
  MlirOperation op = ir_emit(s, kind, x, IR_NONE, IR_NONE, columns);
  ir_set_string(op, "weight", w->name);
  if (b) ir_set_string(op, "bias", b->name);
  ir_set_float(op, "eps", model->norm_eps);
  ir_set_int(op, "segment", segment);
  return ir_value(op);
}

MlirValue ir_linear(const ir_step_state *s, MlirValue x, fe_role role, fe_role bias) {
  const fe_weight *w = ir_role(s, role), *b = ir_role(s, bias);
  MlirOperation op = ir_emit(s, STELE_OP_LINEAR, x, IR_NONE, IR_NONE, (int64_t)w->rows);
  ir_set_string(op, "weight", w->name);
  if (b) ir_set_string(op, "bias", b->name);
  return ir_value(op);
}

MlirValue ir_scale(const ir_step_state *s, MlirValue x, double factor, int64_t columns) {
  if (factor == 1.0) return x;
  MlirOperation op = ir_emit(s, STELE_OP_SCALE, x, IR_NONE, IR_NONE, columns);
  ir_set_float(op, "factor", factor);
  return ir_value(op);
}

/* ---- the ends -------------------------------------------------------------------------- */

static void output(const ir_step_state *s, MlirValue value, uint32_t kind, int64_t index) {
  MlirOperation op = ir_emit(s, STELE_OP_OUTPUT, value, IR_NONE, IR_NONE, 0);
  ir_set_string(op, "kind", ir_name(IR_OUTPUTS, kind));
  ir_set_int(op, "index", index);
}

/* x [T x hidden] -> [T x vocab] */
static MlirValue logits(const ir_step_state *s, MlirValue x) {
  const fe_model *model = s->build->model;
  MlirValue out = ir_linear(s, x, model->tied ? FE_EMBED : FE_HEAD, FE_HEAD_BIAS);
  out = ir_scale(s, out, model->logit_scale, model->vocab);
  if (model->logit_soft_cap <= 0) return out;
  MlirOperation op = ir_emit(s, STELE_OP_SOFT_CAP, out, IR_NONE, IR_NONE, model->vocab);
  ir_set_float(op, "cap", model->logit_soft_cap);
  return ir_value(op);
}

/* x [T x hidden], the residual stream after the last layer. */
static void end(ir_step_state *s, const ir_step *step, MlirValue x) {
  const fe_model *model = s->build->model;
  uint32_t kind = step->output;
  if (kind == STELE_OUTPUT_NONE) return;
  bool last = kind == STELE_OUTPUT_TOKEN || kind == STELE_OUTPUT_LAST;
  if (last && step->kind != STELE_STEP_VERIFY) { /* which answers every token */
    s->tokens = s->lanes;
    x = ir_value(ir_emit(s, STELE_OP_LAST_TOKEN, x, IR_NONE, IR_NONE, model->hidden));
  }
  x = ir_norm(s, x, FE_FINAL_NORM, FE_FINAL_NORM_BIAS, model->hidden, model->hidden);
  if (kind == STELE_OUTPUT_HIDDEN) {
    output(s, x, kind, model->layers);
    return;
  }
  if (kind != STELE_OUTPUT_TOKEN) {
    output(s, logits(s, x), kind, 0);
    return;
  }
  MlirValue token = ir_value(ir_emit(s, STELE_OP_ARGMAX, logits(s, x), IR_NONE, IR_NONE, 0));
  ir_emit(s, STELE_OP_OUTPUT_TOKEN, token, IR_NONE, IR_NONE, 0);
}

static MlirValue embed(const ir_step_state *s) {
  const fe_model *model = s->build->model;
  const fe_weight *positions = ir_role(s, FE_POSITIONS);
  MlirValue ids = ir_value(ir_emit(s, STELE_OP_IDS, IR_NONE, IR_NONE, IR_NONE, 0));
  MlirOperation op = ir_emit(s, STELE_OP_EMBED, ids, IR_NONE, IR_NONE, model->hidden);
  ir_set_string(op, "weight", ir_role(s, FE_EMBED)->name);
  ir_set_float(op, "scale", model->embed_scale);
  if (!positions) return ir_value(op);
  op = ir_emit(s, STELE_OP_POSITION_EMBED, ir_value(op), IR_NONE, IR_NONE, model->hidden);
  ir_set_string(op, "weight", positions->name);
  ir_set_int(op, "offset", model->positions_offset);
  return ir_value(op);
}

void ir_build_step(const ir_build_state *build, const ir_step *step) {
  MlirOperation op = ir_create(&build->at, STELE_OP_STEP, NULL, 0, 0, 0);
  ir_set_string(op, "kind", ir_name(IR_STEP_KINDS, step->kind));
  ir_set_int(op, "lanes", step->lanes);
  ir_set_int(op, "width", step->width);
  ir_set_string(op, "output", ir_name(IR_OUTPUTS, step->output));

  ir_step_state s = {.build = build,
                     .at = ir_builder_at_end(build->at.context, ir_step_block(op)),
                     .lanes = step->lanes,
                     .tokens = (int64_t)step->lanes * step->width,
                     .layer = -1};
  bool hidden = step->output == STELE_OUTPUT_HIDDEN;
  MlirValue x = embed(&s);
  if (hidden) output(&s, x, STELE_OUTPUT_HIDDEN, 0);
  for (uint32_t i = 0; i < build->model->layers; i++) {
    s.layer = (int32_t)i;
    x = ir_build_layer(&s, x);
    s.layer = -1;
    if (hidden && i + 1 < build->model->layers) output(&s, x, STELE_OUTPUT_HIDDEN, i + 1);
  }
  end(&s, step, x);
}
