/* Matching and copying: how passes look at the ops around an op, and the facts about ops that
 * several lowering passes need. */
#include <mlir-c/BuiltinAttributes.h>
#include <string.h>

#include "internal.h"

MlirOperation pass_source(MlirOperation op, intptr_t i) {
  if (pass_is_null(op) || i >= mlirOperationGetNumOperands(op)) return pass_null();
  return ir_definer(pass_operand(op, i));
}

MlirOperation pass_sole_source(MlirOperation op, intptr_t i, uint32_t kind) {
  MlirOperation source = pass_source(op, i);
  if (!ir_is(source, kind) || ir_uses(pass_operand(op, i)) != 1) return pass_null();
  return source;
}

static MlirValue shape_value(MlirOperation op) {
  return mlirOperationGetNumResults(op) ? pass_result(op) : pass_operand(op, 0);
}

int64_t pass_tokens(MlirOperation op) {
  int64_t tokens, columns;
  ir_shape(shape_value(op), &tokens, &columns);
  return tokens;
}

int64_t pass_columns(MlirOperation op) {
  int64_t tokens, columns;
  ir_shape(shape_value(op), &tokens, &columns);
  return columns;
}

/* ---- attributes ------------------------------------------------------------------------ */

static MlirAttribute attribute(MlirOperation op, const char *name) {
  return mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString(name));
}

bool pass_same(MlirOperation a, MlirOperation b, const char *name) {
  return mlirAttributeEqual(attribute(a, name), attribute(b, name));
}

const char *const pass_norm_names[] = {"norm", "norm_bias", "center", "eps", NULL};

bool pass_same_norm(MlirOperation a, MlirOperation b) {
  for (const char *const *name = pass_norm_names; *name; name++)
    if (!pass_same(a, b, *name)) return false;
  return true;
}

bool pass_same_attributes(MlirOperation a, MlirOperation b) {
  intptr_t count = mlirOperationGetNumAttributes(a);
  if (mlirOperationGetNumAttributes(b) != count) return false;
  for (intptr_t i = 0; i < count; i++) {
    MlirNamedAttribute named = mlirOperationGetAttribute(a, i);
    MlirAttribute other = mlirOperationGetAttributeByName(b, mlirIdentifierStr(named.name));
    if (!mlirAttributeEqual(named.attribute, other)) return false;
  }
  return true;
}

void pass_copy_attributes(MlirOperation to, MlirOperation from) {
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(from); i++) {
    MlirNamedAttribute named = mlirOperationGetAttribute(from, i);
    mlirOperationSetAttributeByName(to, mlirIdentifierStr(named.name), named.attribute);
  }
}

void pass_copy(MlirOperation to, MlirOperation from, const char *const *names) {
  for (; *names; names++) ir_copy_attribute(to, *names, from, *names);
}

/* ---- kinds ----------------------------------------------------------------------------- */

bool pass_is_linear(uint32_t kind) {
  return kind == STELE_OP_LINEAR || kind == STELE_OP_LINEAR_ADD || kind == STELE_OP_LINEAR_ARGMAX ||
         kind == STELE_OP_GATE_UP || kind == STELE_OP_QKV_CACHE ||
         kind == STELE_OP_EXPERTS_GATE_UP || kind == STELE_OP_EXPERTS_DOWN;
}

stele_status pass_same_class(pass_context *context, const pass_weights *weights, MlirOperation a,
                             MlirOperation b, bool *out_same) {
  const pass_weight *wa, *wb;
  BASE_TRY(pass_weight_of(context, weights, a, "weight", false, &wa));
  BASE_TRY(pass_weight_of(context, weights, b, "weight", false, &wb));
  *out_same = weights_scheme_is_quantised(wa->scheme) == weights_scheme_is_quantised(wb->scheme);
  return STELE_OK;
}

/* ---- what lowering shares -------------------------------------------------------------- */

static bool positive_u32(int64_t value) { return value > 0 && value <= INT32_MAX; }

/* Bytes of heads * tokens * size elements, whole blocks of the scheme. */
static bool part_bytes(uint32_t scheme, uint32_t heads, uint32_t tokens, uint32_t size,
                       size_t *out) {
  size_t row;
  return weights_row_bytes(scheme, (uint64_t)tokens * size, &row) && base_mul(row, heads, out);
}

static bool page_layout(stele_group *group) {
  size_t keys, values;
  if (!part_bytes(group->key_scheme, group->kv_heads, group->page_tokens, group->key_head, &keys))
    return false;
  if (group->value_in_key)
    values = 0;
  else if (!part_bytes(group->value_scheme, group->kv_heads, group->page_tokens, group->value_head,
                       &values))
    return false;
  if (keys > INT64_MAX / 4 || values > INT64_MAX / 4) return false;
  group->value_offset = base_align(keys, PASS_LINE);
  group->page_bytes = group->value_offset + base_align(values, PASS_LINE);
  return true;
}

stele_status pass_group(pass_context *context, int64_t index, stele_group *out_group) {
  MlirOperation op = ir_find_group(context->module, index);
  if (pass_is_null(op))
    return base_fail(context->sink, STELE_BAD_FORMAT, "group %lld is not declared",
                     (long long)index);
  stele_group g = {.shared_with = -1};
  const struct {
    const char *name;
    uint32_t *field;
  } sizes[] = {{"kv_heads", &g.kv_heads},
               {"key_head", &g.key_head},
               {"value_head", &g.value_head},
               {"capacity", &g.capacity},
               {"page_tokens", &g.page_tokens}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int64_t value = ir_int(op, sizes[i].name, 0);
    if (!positive_u32(value))
      return base_fail(context->sink, STELE_BAD_FORMAT,
                       "group %lld: '%s' is %lld, expected above 0", (long long)index,
                       sizes[i].name, (long long)value);
    *sizes[i].field = (uint32_t)value;
  }
  g.window = (uint32_t)ir_int(op, "window", 0);
  g.value_in_key = ir_int(op, "value_in_key", 0) != 0;
  if (!ir_number(IR_GROUP_KINDS, ir_string(op, "kind", ""), &g.kind) ||
      !weights_scheme_by_name(ir_string(op, "key_scheme", ""), &g.key_scheme) ||
      !weights_scheme_by_name(ir_string(op, "value_scheme", ""), &g.value_scheme) ||
      !page_layout(&g))
    return base_fail(context->sink, STELE_BAD_FORMAT,
                     "group %lld: kind '%s' with keys in '%s' and values in '%s' is not known",
                     (long long)index, ir_string(op, "kind", ""), ir_string(op, "key_scheme", ""),
                     ir_string(op, "value_scheme", ""));
  g.table_entries = (g.capacity + g.page_tokens - 1) / g.page_tokens;
  *out_group = g;
  return STELE_OK;
}

uint32_t pass_activation(MlirOperation op) {
  return strcmp(ir_string(op, "activation", "f32"), "q8_0") == 0 ? STELE_Q8_0 : STELE_F32;
}

uint32_t pass_scheme(MlirOperation maker) {
  switch (ir_kind(maker)) {
    case STELE_OP_IDS:
    case STELE_OP_ARGMAX:
    case STELE_OP_LINEAR_ARGMAX:
      return STELE_I32;
    case STELE_OP_PREPARE:
      return pass_activation(maker);
    default:
      return strcmp(ir_string(maker, "result", "f32"), "q8_0") == 0 ? STELE_Q8_0 : STELE_F32;
  }
}

bool pass_has_prologue(MlirOperation op) {
  if (ir_has(op, "norm") || ir_int(op, "combine", 0)) return true;
  if (ir_is(op, STELE_OP_EXPERTS_DOWN)) return false;
  return pass_activation(op) == STELE_Q8_0 && pass_scheme(pass_source(op, 0)) != STELE_Q8_0;
}

bool pass_is_work(uint32_t kind) {
  return kind != STELE_OP_IDS && kind != STELE_OP_CACHE && kind != STELE_OP_COUNT;
}

/* Ops whose tiles are tokens, each reading what it reads of the same token. */
static bool is_by_token(uint32_t kind) {
  switch (kind) {
    case STELE_OP_EMBED:
    case STELE_OP_RMS_NORM:
    case STELE_OP_LAYER_NORM:
    case STELE_OP_POSITION_EMBED:
    case STELE_OP_PREPARE:
    case STELE_OP_CONCAT:
    case STELE_OP_ROPE:
    case STELE_OP_ACTIVATION:
    case STELE_OP_MUL:
    case STELE_OP_ADD:
    case STELE_OP_SCALE:
    case STELE_OP_SOFT_CAP:
    case STELE_OP_ROUTE:
    case STELE_OP_LAST_TOKEN:
    case STELE_OP_ARGMAX:
    case STELE_OP_OUTPUT:
    case STELE_OP_OUTPUT_TOKEN:
      return true;
    default:
      return false;
  }
}

bool pass_is_aligned(MlirOperation a, MlirOperation b) {
  uint32_t first = ir_kind(a), second = ir_kind(b);
  if (first == STELE_OP_CACHE_UPDATE && second == STELE_OP_CACHE_STORE) return true; /* kv heads */
  return is_by_token(first) && is_by_token(second) && pass_tokens(a) == pass_tokens(b);
}

uint64_t pass_row_bytes(uint32_t scheme, uint64_t columns) {
  if (scheme == STELE_Q8_0) return stele_q8_row_bytes(columns);
  return columns * 4;
}
