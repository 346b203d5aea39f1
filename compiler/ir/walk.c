/* Walking a module: declarations, steps, the ops of a step; finding declarations by name. */
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

#include "internal.h"

static stele_status walk_block(MlirBlock block, ir_visit visit, void *data) {
  MlirOperation op = mlirBlockGetFirstOperation(block);
  while (!mlirOperationIsNull(op) && !ir_is_terminator(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op); /* op may be gone afterwards */
    BASE_TRY(visit(op, data));
    op = next;
  }
  return STELE_OK;
}

/* A walk over the module's body that keeps to steps, or to what isn't one. */
typedef struct filter {
  bool steps;
  ir_visit visit;
  void *data;
} filter;

static stele_status visit_filtered(MlirOperation op, void *data) {
  const filter *f = data;
  return ir_is(op, STELE_OP_STEP) == f->steps ? f->visit(op, f->data) : STELE_OK;
}

stele_status ir_walk_declarations(MlirModule module, ir_visit visit, void *data) {
  filter f = {false, visit, data};
  return walk_block(mlirModuleGetBody(module), visit_filtered, &f);
}

stele_status ir_walk_steps(MlirModule module, ir_visit visit, void *data) {
  filter f = {true, visit, data};
  return walk_block(mlirModuleGetBody(module), visit_filtered, &f);
}

stele_status ir_walk_body(MlirOperation step, ir_visit visit, void *data) {
  MlirBlock block = ir_step_block(step);
  return mlirBlockIsNull(block) ? STELE_OK : walk_block(block, visit, data);
}

MlirBlock ir_step_block(MlirOperation step) {
  if (mlirOperationGetNumRegions(step) == 0) return (MlirBlock){NULL};
  return mlirRegionGetFirstBlock(mlirOperationGetRegion(step, 0));
}

/* ---- declarations by name -------------------------------------------------------------- */

/* The first declaration of a kind whose attribute has the value; attributes are unique in their
 * context, so a comparison is one of pointers. name NULL: the first of the kind. */
static MlirOperation find(MlirModule module, uint32_t kind, const char *name, MlirAttribute value) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (name && !mlirAttributeEqual(mlirOperationGetAttributeByName(op, ir_text(name)), value))
      continue;
    if (ir_is(op, kind)) return op;
  }
  return (MlirOperation){NULL};
}

MlirOperation ir_find_weight(MlirModule module, const char *name) {
  MlirContext context = mlirModuleGetContext(module);
  return find(module, STELE_OP_WEIGHT, "name", mlirStringAttrGet(context, ir_text(name)));
}

static MlirOperation find_index(MlirModule module, uint32_t kind, int64_t index) {
  MlirType i64 = mlirIntegerTypeGet(mlirModuleGetContext(module), 64);
  return find(module, kind, "index", mlirIntegerAttrGet(i64, index));
}

MlirOperation ir_find_group(MlirModule module, int64_t index) {
  return find_index(module, STELE_OP_GROUP, index);
}

MlirOperation ir_find_rope_table(MlirModule module, int64_t index) {
  return find_index(module, STELE_OP_ROPE_TABLE, index);
}

MlirOperation ir_find_model(MlirModule module) {
  return find(module, STELE_OP_MODEL, NULL, mlirAttributeGetNull());
}
