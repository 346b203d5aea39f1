/* The table of ops, and reading: kinds, attributes, shapes, uses. */
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <string.h>

#include "internal.h"

#define MODEL IR_MODEL
#define FUSED IR_FUSED
#define SCHEDULED IR_SCHEDULED
static const ir_op_info ops[] = {
#define OP(name, mnemonic, first, last, operands, results, attributes, summary) \
  {mnemonic, first, last, operands, results, attributes, summary},
#include "stele/ops.def"
#undef OP
};
#undef MODEL
#undef FUSED
#undef SCHEDULED

/* Lengths of the mnemonics: most comparisons end there. */
static const uint8_t mnemonic_lengths[] = {
#define OP(name, mnemonic, ...) sizeof mnemonic - 1,
#include "stele/ops.def"
#undef OP
};

const ir_op_info *ir_op_info_get(uint32_t kind) {
  return kind < STELE_OP_COUNT ? &ops[kind] : NULL;
}

bool ir_spec_next(const char **cursor, ir_spec *out_spec) {
  const char *p = *cursor;
  while (*p == ' ') p++;
  if (!*p) return false;
  out_spec->name = p;
  out_spec->length = strcspn(p, ":?");
  p += out_spec->length;
  out_spec->optional = *p == '?';
  if (*p == '?') p++;
  out_spec->kind = p[1]; /* p is at the colon */
  p += 2;
  if (*p == '?') out_spec->optional = true;
  *cursor = p + strcspn(p, " ");
  return true;
}

uint32_t ir_kind(MlirOperation op) {
  static const char prefix[] = "decode.";
  const size_t skip = sizeof prefix - 1;
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  if (name.length <= skip || memcmp(name.data, prefix, skip) != 0) return STELE_OP_COUNT;
  const char *mnemonic = name.data + skip;
  size_t length = name.length - skip;
  for (uint32_t kind = 0; kind < STELE_OP_COUNT; kind++)
    if (mnemonic_lengths[kind] == length && memcmp(ops[kind].mnemonic, mnemonic, length) == 0)
      return kind;
  return STELE_OP_COUNT;
}

bool ir_is(MlirOperation op, uint32_t kind) {
  return !mlirOperationIsNull(op) && ir_kind(op) == kind;
}

bool ir_is_terminator(MlirOperation op) {
  return mlirStringRefEqual(mlirIdentifierStr(mlirOperationGetName(op)), ir_text(IR_TERMINATOR));
}

/* ---- attributes ------------------------------------------------------------------------ */

static MlirAttribute attribute(MlirOperation op, const char *name) {
  return mlirOperationGetAttributeByName(op, ir_text(name));
}

bool ir_has(MlirOperation op, const char *name) {
  return !mlirAttributeIsNull(attribute(op, name));
}

int64_t ir_int(MlirOperation op, const char *name, int64_t fallback) {
  MlirAttribute a = attribute(op, name);
  return ir_attribute_is(a, 'i') ? mlirIntegerAttrGetValueInt(a) : fallback;
}

double ir_float(MlirOperation op, const char *name, double fallback) {
  MlirAttribute a = attribute(op, name);
  return ir_attribute_is(a, 'f') ? mlirFloatAttrGetValueDouble(a) : fallback;
}

/* MLIR keeps a zero byte behind every string that isn't empty. */
const char *ir_string(MlirOperation op, const char *name, const char *fallback) {
  MlirAttribute a = attribute(op, name);
  if (!ir_attribute_is(a, 's')) return fallback;
  MlirStringRef text = mlirStringAttrGetValue(a);
  return text.length ? text.data : "";
}

uint32_t ir_ints(MlirOperation op, const char *name, int64_t *out, uint32_t limit) {
  MlirAttribute a = attribute(op, name);
  if (!ir_attribute_is(a, 'a')) return 0;
  uint32_t count = (uint32_t)mlirArrayAttrGetNumElements(a);
  for (uint32_t i = 0; i < count && i < limit; i++)
    out[i] = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(a, i));
  return count;
}

static bool is_i64(MlirAttribute a) {
  if (!mlirAttributeIsAInteger(a)) return false;
  MlirType type = mlirAttributeGetType(a);
  return mlirTypeIsAInteger(type) && mlirIntegerTypeIsSignless(type) &&
         mlirIntegerTypeGetWidth(type) == 64;
}

bool ir_attribute_is(MlirAttribute a, char kind) {
  if (mlirAttributeIsNull(a)) return false;
  switch (kind) {
    case 's':
      return mlirAttributeIsAString(a);
    case 'i':
      return is_i64(a);
    case 'f':
      return mlirAttributeIsAFloat(a) && mlirTypeIsAF64(mlirAttributeGetType(a));
    case 'a':
      if (!mlirAttributeIsAArray(a)) return false;
      for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(a); i++)
        if (!is_i64(mlirArrayAttrGetElement(a, i))) return false;
      return true;
    default:
      return false;
  }
}

/* ---- values ---------------------------------------------------------------------------- */

void ir_shape(MlirValue value, int64_t *out_tokens, int64_t *out_columns) {
  MlirType type = mlirValueGetType(value);
  bool tensor = mlirTypeIsARankedTensor(type);
  int64_t rank = tensor ? mlirShapedTypeGetRank(type) : 0;
  *out_tokens = rank >= 1 ? mlirShapedTypeGetDimSize(type, 0) : 0;
  *out_columns = rank >= 2 ? mlirShapedTypeGetDimSize(type, 1) : rank;
}

MlirOperation ir_definer(MlirValue value) {
  return mlirValueIsAOpResult(value) ? mlirOpResultGetOwner(value) : (MlirOperation){NULL};
}

/* An op that reads a value twice counts once: at its first operand that is the value. */
static bool is_first_use(MlirOpOperand use, MlirValue value) {
  MlirOperation owner = mlirOpOperandGetOwner(use);
  unsigned number = mlirOpOperandGetOperandNumber(use);
  for (unsigned i = 0; i < number; i++)
    if (mlirValueEqual(mlirOperationGetOperand(owner, i), value)) return false;
  return true;
}

uint32_t ir_uses(MlirValue value) {
  uint32_t count = 0;
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use))
    count += is_first_use(use, value);
  return count;
}

MlirOperation ir_only_user(MlirValue value) {
  if (ir_uses(value) != 1) return (MlirOperation){NULL};
  return mlirOpOperandGetOwner(mlirValueGetFirstUse(value));
}
