/* Changing ops: creation from the table, attributes, replacement. */
#include <assert.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { MAX_VALUES = 4 }; /* operands or results of one op: checked against the table in a test */

/* ---- where ----------------------------------------------------------------------------- */

ir_builder ir_builder_before(MlirOperation op) {
  return (ir_builder){mlirOperationGetContext(op), mlirOperationGetBlock(op), op,
                      mlirOperationGetLocation(op)};
}

/* A step's block ends before its terminator. */
ir_builder ir_builder_at_end(MlirContext context, MlirBlock block) {
  MlirOperation op = mlirBlockGetFirstOperation(block);
  while (!mlirOperationIsNull(op) && !ir_is_terminator(op)) op = mlirOperationGetNextInBlock(op);
  return (ir_builder){context, block, op, mlirLocationUnknownGet(context)};
}

/* ---- creation -------------------------------------------------------------------------- */

static MlirType cache_type(MlirContext context, const MlirValue *operands, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    MlirType type = mlirValueGetType(operands[i]);
    if (!mlirTypeIsARankedTensor(type)) return type; /* parsing it anew is slow */
  }
  return mlirTypeParseGet(context, ir_text("!decode.cache"));
}

static MlirType tensor_type(MlirContext context, char kind, int64_t tokens, int64_t columns) {
  int64_t shape[2] = {tokens, columns};
  MlirType element = kind == 'i' ? mlirIntegerTypeGet(context, 32) : mlirF32TypeGet(context);
  return mlirRankedTensorTypeGet(kind == 'i' ? 1 : 2, shape, element, mlirAttributeGetNull());
}

static void add_region(MlirOperationState *state, MlirLocation location) {
  MlirRegion region = mlirRegionCreate();
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  MlirOperationState end = mlirOperationStateGet(ir_text(IR_TERMINATOR), location);
  mlirBlockAppendOwnedOperation(block, mlirOperationCreate(&end));
  mlirRegionAppendOwnedBlock(region, block);
  mlirOperationStateAddOwnedRegions(state, 1, &region);
}

MlirOperation ir_create(const ir_builder *builder, uint32_t kind, const MlirValue *operands,
                        uint32_t operand_count, int64_t tokens, int64_t columns) {
  const ir_op_info *info = ir_op_info_get(kind);
  MlirValue present[MAX_VALUES];
  uint32_t present_count = 0;
  for (uint32_t i = 0; i < operand_count; i++)
    if (!mlirValueIsNull(operands[i])) {
      assert(present_count < MAX_VALUES);
      present[present_count++] = operands[i];
    }
  MlirType types[MAX_VALUES];
  uint32_t type_count = 0;
  ir_spec spec;
  for (const char *cursor = info->results; ir_spec_next(&cursor, &spec);)
    types[type_count++] = spec.kind == 'c'
                              ? cache_type(builder->context, present, present_count)
                              : tensor_type(builder->context, spec.kind, tokens, columns);
  char name[64] = "decode.";
  strcat(name, info->mnemonic);
  MlirOperationState state = mlirOperationStateGet(ir_text(name), builder->location);
  mlirOperationStateAddOperands(&state, present_count, present);
  mlirOperationStateAddResults(&state, type_count, types);
  if (kind == STELE_OP_STEP) add_region(&state, builder->location);
  MlirOperation op = mlirOperationCreate(&state);
  mlirBlockInsertOwnedOperationBefore(builder->block, builder->before, op);
  return op;
}

/* ---- attributes ------------------------------------------------------------------------ */

static MlirAttribute int_attribute(MlirContext context, int64_t value) {
  return mlirIntegerAttrGet(mlirIntegerTypeGet(context, 64), value);
}

static void set(MlirOperation op, const char *name, MlirAttribute value) {
  mlirOperationSetAttributeByName(op, ir_text(name), value);
}

void ir_set_int(MlirOperation op, const char *name, int64_t value) {
  set(op, name, int_attribute(mlirOperationGetContext(op), value));
}

void ir_set_float(MlirOperation op, const char *name, double value) {
  MlirContext context = mlirOperationGetContext(op);
  set(op, name, mlirFloatAttrDoubleGet(context, mlirF64TypeGet(context), value));
}

void ir_set_string(MlirOperation op, const char *name, const char *value) {
  set(op, name, mlirStringAttrGet(mlirOperationGetContext(op), ir_text(value)));
}

void ir_set_ints(MlirOperation op, const char *name, const int64_t *values, uint32_t count) {
  MlirContext context = mlirOperationGetContext(op);
  MlirAttribute array = mlirArrayAttrGet(context, 0, NULL);
  MlirAttribute *elements = count ? calloc(count, sizeof *elements) : NULL;
  if (elements) {
    for (uint32_t i = 0; i < count; i++) elements[i] = int_attribute(context, values[i]);
    array = mlirArrayAttrGet(context, count, elements);
    free(elements);
  }
  set(op, name, array);
}

void ir_copy_attribute(MlirOperation to, const char *to_name, MlirOperation from,
                       const char *from_name) {
  MlirAttribute value = mlirOperationGetAttributeByName(from, ir_text(from_name));
  if (!mlirAttributeIsNull(value)) set(to, to_name, value);
}

void ir_remove(MlirOperation op, const char *attribute) {
  mlirOperationRemoveAttributeByName(op, ir_text(attribute));
}

/* ---- replacement ----------------------------------------------------------------------- */

void ir_replace(MlirOperation op, const MlirValue *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!mlirValueIsNull(values[i]))
      mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, i), values[i]);
  ir_erase(op);
}

void ir_erase(MlirOperation op) { mlirOperationDestroy(op); }
