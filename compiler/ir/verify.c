/* The verifier: everything about a module that IRDL can't say, all faults in one go.
 *
 * First the declarations (verify_declarations.c), then each step: every op against its row of
 * ops.def (here), its shapes and meanings (verify_ops.c), and what must hold of the step as a
 * whole (here). Where all of that is in order, MLIR's own verifier looks at the structure. */
#include "verify.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[] = {"model", "fused", "scheduled"};

#define MODEL IR_MODEL
#define FUSED IR_FUSED
#define SCHEDULED IR_SCHEDULED
/* Attributes that any op of a step may carry. */
static const struct {
  const char *spec;
  ir_level first;
} common_attributes[] = {
#define OP(...)
#define ATTRIBUTE(spec, first, summary) {spec, first},
#include "stele/ops.def"
#undef OP
};
#undef MODEL
#undef FUSED
#undef SCHEDULED

/* ---- faults ---------------------------------------------------------------------------- */

void ir_fault(ir_checker *checker, MlirOperation op, const char *format, ...) {
  char where[512], what[768];
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  if (strncmp(name.data, "decode.", 7) == 0)
    name = mlirStringRefCreate(name.data + 7, name.length - 7);
  ir_location_text(mlirOperationGetLocation(op), where, sizeof where);
  if (!*where && checker->in_step) snprintf(where, sizeof where, "step %u: ", checker->step_number);
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  checker->faults++;
  base_sink_add(checker->sink, "%s'%.*s': %s", where, (int)name.length, name.data, what);
}

/* ---- an op against its row ------------------------------------------------------------- */

static bool spec_named(const char *list, MlirStringRef name, ir_spec *out_spec) {
  for (const char *cursor = list; ir_spec_next(&cursor, out_spec);)
    if (out_spec->length == name.length && memcmp(out_spec->name, name.data, name.length) == 0)
      return true;
  return false;
}

static const char *kind_name(char kind) {
  switch (kind) {
    case 's':
      return "a string without zero bytes";
    case 'i':
      return "an integer (i64)";
    case 'f':
      return "a number (f64)";
    default:
      return "an array of integers (i64)";
  }
}

static bool common_spec(const ir_checker *checker, MlirStringRef name, ir_spec *out_spec,
                        bool *out_early) {
  for (size_t i = 0; i < sizeof common_attributes / sizeof *common_attributes; i++)
    if (spec_named(common_attributes[i].spec, name, out_spec)) {
      *out_early = common_attributes[i].first > checker->level;
      return true;
    }
  return false;
}

static void check_attribute(ir_checker *checker, MlirOperation op, const ir_op_info *info,
                            MlirNamedAttribute named) {
  MlirStringRef name = mlirIdentifierStr(named.name);
  ir_spec spec;
  bool early = false;
  if (!spec_named(info->attributes, name, &spec) &&
      !(checker->in_step && common_spec(checker, name, &spec, &early))) {
    ir_fault(checker, op, "unknown attribute '%.*s'", (int)name.length, name.data);
    return;
  }
  if (early)
    ir_fault(checker, op, "attribute '%.*s' does not exist yet at the %s level", (int)name.length,
             name.data, level_names[checker->level]);
  bool fits = ir_attribute_is(named.attribute, spec.kind);
  if (fits && spec.kind == 's') {
    MlirStringRef text = mlirStringAttrGetValue(named.attribute);
    fits = !text.length || !memchr(text.data, 0, text.length);
  }
  if (!fits)
    ir_fault(checker, op, "attribute '%.*s' is not %s", (int)name.length, name.data,
             kind_name(spec.kind));
}

static void check_attributes(ir_checker *checker, MlirOperation op, const ir_op_info *info) {
  intptr_t count = mlirOperationGetNumAttributes(op);
  for (intptr_t i = 0; i < count; i++)
    check_attribute(checker, op, info, mlirOperationGetAttribute(op, i));
  ir_spec spec;
  for (const char *cursor = info->attributes; ir_spec_next(&cursor, &spec);) {
    MlirStringRef name = mlirStringRefCreate(spec.name, spec.length);
    if (!spec.optional && mlirAttributeIsNull(mlirOperationGetAttributeByName(op, name)))
      ir_fault(checker, op, "attribute '%.*s' is missing", (int)spec.length, spec.name);
  }
}

/* f: tensor<tokens x n x f32>, i: tensor<tokens x i32>, c: !decode.cache */
static bool type_fits(const ir_checker *checker, MlirType type, char kind) {
  if (kind == 'c') return mlirTypeEqual(type, checker->cache_type);
  if (!mlirTypeIsARankedTensor(type)) return false;
  int64_t rank = mlirShapedTypeGetRank(type);
  if (rank != (kind == 'f' ? 2 : 1) || !mlirShapedTypeHasStaticShape(type)) return false;
  for (intptr_t i = 0; i < rank; i++)
    if (mlirShapedTypeGetDimSize(type, i) < 1) return false;
  MlirType element = mlirShapedTypeGetElementType(type);
  if (kind == 'f') return mlirTypeIsAF32(element);
  return mlirTypeIsAInteger(element) && mlirIntegerTypeIsSignless(element) &&
         mlirIntegerTypeGetWidth(element) == 32;
}

static bool check_values(ir_checker *checker, MlirOperation op, const char *list, bool operands) {
  static const char *const types[] = {"tensor<tokens x columns x f32>", "tensor<tokens x i32>",
                                      "!decode.cache"};
  intptr_t count = operands ? mlirOperationGetNumOperands(op) : mlirOperationGetNumResults(op);
  intptr_t most = 0, least = 0;
  bool ok = true;
  ir_spec spec;
  for (const char *cursor = list; ir_spec_next(&cursor, &spec); most++) {
    least += !spec.optional;
    if (most >= count) continue;
    MlirValue value =
        operands ? mlirOperationGetOperand(op, most) : mlirOperationGetResult(op, most);
    if (type_fits(checker, mlirValueGetType(value), spec.kind)) continue;
    ir_fault(checker, op, "%s '%.*s' is not of type %s", operands ? "operand" : "result",
             (int)spec.length, spec.name,
             types[spec.kind == 'f'   ? 0
                   : spec.kind == 'i' ? 1
                                      : 2]);
    ok = false;
  }
  if (count >= least && count <= most) return ok;
  ir_fault(checker, op, "%ld %s, expected %ld", (long)count, operands ? "operands" : "results",
           (long)(count < least ? least : most));
  return false;
}

static void check_level(ir_checker *checker, MlirOperation op, const ir_op_info *info) {
  const char *level = level_names[checker->level];
  if (info->first > checker->level)
    ir_fault(checker, op, "does not exist yet at the %s level, only from %s on", level,
             level_names[info->first]);
  if (info->last < checker->level)
    ir_fault(checker, op, "is gone at the %s level, %s was its last", level,
             level_names[info->last]);
}

bool ir_check_row(ir_checker *checker, MlirOperation op, uint32_t kind) {
  const ir_op_info *info = ir_op_info_get(kind);
  check_level(checker, op, info);
  check_attributes(checker, op, info);
  bool operands = check_values(checker, op, info->operands, true);
  return check_values(checker, op, info->results, false) && operands;
}

/* ---- steps ----------------------------------------------------------------------------- */

static stele_status check_body_op(MlirOperation op, void *data) {
  ir_checker *checker = data;
  uint32_t kind = ir_kind(op);
  if (kind == STELE_OP_COUNT)
    ir_fault(checker, op, "not an op of the dialect");
  else if (kind <= STELE_OP_STEP) /* the table has declarations first */
    ir_fault(checker, op, "does not belong into a step");
  else if (ir_check_row(checker, op, kind))
    ir_check_op(checker, op, kind);
  return STELE_OK;
}

static bool check_step_attributes(ir_checker *checker, MlirOperation op) {
  const char *kind = ir_string(op, "kind", ""), *output = ir_string(op, "output", "");
  checker->lanes = ir_int(op, "lanes", 0);
  checker->width = ir_int(op, "width", 0);
  uint32_t before = checker->faults;
  if (!ir_number(IR_STEP_KINDS, kind, &checker->step_kind))
    ir_fault(checker, op, "kind '%s', expected decode, prefill, verify or encode", kind);
  if (!ir_number(IR_OUTPUTS, output, &checker->step_output))
    ir_fault(checker, op, "output '%s', expected none, token, last, all or hidden", output);
  if (checker->lanes < 1 || checker->width < 1 || checker->lanes > INT32_MAX / checker->width)
    ir_fault(checker, op, "%lld lanes of %lld tokens, expected at least 1 of each",
             (long long)checker->lanes, (long long)checker->width);
  if (checker->faults > before) return false;
  if (checker->step_kind == STELE_STEP_DECODE && checker->width != 1)
    ir_fault(checker, op, "a decode step of width %lld, expected 1", (long long)checker->width);
  if (checker->step_kind == STELE_STEP_PREFILL && checker->lanes != 1)
    ir_fault(checker, op, "a prefill step of %lld lanes, expected 1", (long long)checker->lanes);
  if (checker->step_kind == STELE_STEP_VERIFY &&
      (checker->lanes != 1 || checker->step_output != STELE_OUTPUT_TOKEN))
    ir_fault(checker, op, "a verify step of %lld lanes with output '%s', expected 1 and 'token'",
             (long long)checker->lanes, output);
  return true;
}

static void check_outputs(ir_checker *checker, MlirOperation op) {
  const char *output = ir_name(IR_OUTPUTS, checker->step_output);
  if (checker->step_output == STELE_OUTPUT_HIDDEN) {
    for (int64_t i = 0; i <= checker->layers; i++)
      if (!checker->hidden_seen[i])
        ir_fault(checker, op, "leaves no hidden state %lld", (long long)i);
    return;
  }
  uint32_t expected = checker->step_output == STELE_OUTPUT_NONE ? 0 : 1;
  if (checker->output_count != expected)
    ir_fault(checker, op, "%u outputs, expected %u with output '%s'", checker->output_count,
             expected, output);
}

/* Every step must leave the caches alike: each layer's written, in steps of one kind as of any. */
static void check_caches(ir_checker *checker, MlirOperation op) {
  for (int64_t i = 0; i < checker->layers; i++) {
    const ir_known_layer *layer = &checker->layer_states[i];
    if (layer->declared && !layer->written)
      ir_fault(checker, op, "the cache of layer %lld is not written", (long long)i);
    if (checker->first_states && layer->written != checker->first_states[i].written)
      ir_fault(checker, op, "the cache of layer %lld is %s, unlike in the first step", (long long)i,
               layer->written ? "written" : "not written");
    if (checker->level < IR_SCHEDULED || !layer->written) continue;
    if (checker->width > 1 && !layer->staged)
      ir_fault(checker, op, "layer %lld writes its cache unstaged in a step of width %lld",
               (long long)i, (long long)checker->width);
    if (layer->staged != layer->stored)
      ir_fault(checker, op, "layer %lld: staged keys and values are %s", (long long)i,
               layer->stored ? "stored, but there are none" : "never stored");
  }
}

static void check_end(ir_checker *checker, MlirOperation step) {
  MlirOperation op = mlirBlockGetFirstOperation(ir_step_block(step));
  while (!mlirOperationIsNull(op) && !ir_is_terminator(op)) op = mlirOperationGetNextInBlock(op);
  if (mlirOperationIsNull(op)) {
    ir_fault(checker, step, "does not end with '" IR_TERMINATOR "'");
    return;
  }
  MlirOperation next = mlirOperationGetNextInBlock(op);
  if (!mlirOperationIsNull(next)) ir_fault(checker, next, "follows '" IR_TERMINATOR "'");
}

static stele_status check_step(MlirOperation op, void *data) {
  ir_checker *checker = data;
  base_mark mark = base_arena_mark(&checker->arena);
  size_t layers = (size_t)checker->layers;
  checker->layer_states = base_arena_alloc(&checker->arena, layers, sizeof *checker->layer_states);
  checker->hidden_seen = base_arena_alloc(&checker->arena, layers + 1, sizeof(bool));
  if (!checker->layer_states || !checker->hidden_seen) return STELE_OUT_OF_MEMORY;
  checker->output_count = 0;
  bool block = !mlirBlockIsNull(ir_step_block(op));
  if (ir_check_row(checker, op, STELE_OP_STEP) && check_step_attributes(checker, op) && block) {
    checker->in_step = true;
    BASE_TRY(ir_walk_body(op, check_body_op, checker));
    checker->in_step = false;
    check_outputs(checker, op);
    check_caches(checker, op);
    if (!checker->first_states) {
      checker->first_states = checker->layer_states; /* kept until the end */
      mark = base_arena_mark(&checker->arena);
    }
  }
  if (block) check_end(checker, op);
  base_arena_reset(&checker->arena, mark);
  checker->step_number++;
  return STELE_OK;
}

/* ---- steps beside each other ----------------------------------------------------------- */

/* No two steps may be the same entry of the artefact's table. */
static void check_distinct(ir_checker *checker) {
  static const char *const names[] = {"kind", "lanes", "width", "output"};
  MlirOperation first = mlirBlockGetFirstOperation(mlirModuleGetBody(checker->module));
  for (MlirOperation a = first; !mlirOperationIsNull(a); a = mlirOperationGetNextInBlock(a)) {
    if (!ir_is(a, STELE_OP_STEP)) continue;
    for (MlirOperation b = first; !mlirOperationEqual(a, b); b = mlirOperationGetNextInBlock(b)) {
      if (!ir_is(b, STELE_OP_STEP)) continue;
      size_t same = 0;
      for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        same += mlirAttributeEqual(mlirOperationGetAttributeByName(a, ir_text(names[i])),
                                   mlirOperationGetAttributeByName(b, ir_text(names[i])));
      if (same == sizeof names / sizeof *names)
        ir_fault(checker, a, "a step of this kind, lanes, width and output is there already");
    }
  }
}

/* ---- all of it ------------------------------------------------------------------------- */

/* MLIR's own faults: values used before they are made and the like. */
static MlirLogicalResult mlir_fault(MlirDiagnostic diagnostic, void *data) {
  ir_checker *checker = data;
  ir_diagnostic_add(diagnostic, checker->sink);
  checker->faults++;
  return mlirLogicalResultSuccess();
}

static void check_structure(ir_checker *checker, MlirContext context) {
  MlirDiagnosticHandlerID id =
      mlirContextAttachDiagnosticHandler(context, mlir_fault, checker, NULL);
  bool ok = mlirOperationVerify(mlirModuleGetOperation(checker->module));
  mlirContextDetachDiagnosticHandler(context, id);
  if (!ok && !checker->faults) {
    checker->faults++;
    base_sink_add(checker->sink, "the module's structure is broken");
  }
}

stele_status ir_verify(MlirModule module, ir_level level, stele_sink *sink) {
  MlirContext context = mlirModuleGetContext(module);
  ir_checker checker = {.module = module,
                        .level = level,
                        .sink = sink,
                        .cache_type = mlirTypeParseGet(context, ir_text("!decode.cache"))};
  if (sink) sink->text[0] = 0;
  stele_status status = ir_check_declarations(&checker) ? STELE_OK : STELE_OUT_OF_MEMORY;
  if (status == STELE_OK && checker.layers) status = ir_walk_steps(module, check_step, &checker);
  if (status == STELE_OK) check_distinct(&checker);
  if (status == STELE_OK && !checker.faults) check_structure(&checker, context);
  base_arena_deinit(&checker.arena);
  if (status != STELE_OK) return base_fail(sink, status, "out of memory while verifying");
  return checker.faults ? STELE_BAD_FORMAT : STELE_OK;
}
