/* The table, reading, changing and walking: what passes are written with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ir.h"

typedef struct fixture {
  stele_sink sink;
  ir_context *context;
  MlirContext mlir;
  MlirModule module;
  MlirOperation step;
  ir_builder at; /* at the end of the step */
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  assert_int_equal(ir_context_create(&f->sink, &f->context), STELE_OK);
  f->mlir = ir_context_mlir(f->context);
  f->module = mlirModuleCreateEmpty(mlirLocationUnknownGet(f->mlir));
  ir_builder outside = ir_builder_at_end(f->mlir, mlirModuleGetBody(f->module));
  f->step = ir_create(&outside, STELE_OP_STEP, NULL, 0, 0, 0);
  f->at = ir_builder_at_end(f->mlir, ir_step_block(f->step));
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  mlirModuleDestroy(f->module);
  ir_context_destroy(f->context);
  free(f);
  return 0;
}

static MlirValue result(MlirOperation op) { return mlirOperationGetResult(op, 0); }

static MlirOperation ids(fixture *f, int64_t tokens) {
  return ir_create(&f->at, STELE_OP_IDS, NULL, 0, tokens, 0);
}

static MlirOperation embed(fixture *f) {
  MlirValue in = result(ids(f, 4));
  return ir_create(&f->at, STELE_OP_EMBED, &in, 1, 4, 16);
}

static MlirOperation unary(fixture *f, uint32_t kind, MlirValue x) {
  return ir_create(&f->at, kind, &x, 1, 4, 16);
}

/* The mnemonics of the step's ops, separated by spaces. */
static stele_status note(MlirOperation op, void *data) {
  strcat(data, ir_op_info_get(ir_kind(op))->mnemonic);
  strcat(data, " ");
  return STELE_OK;
}
static void expect_body(const fixture *f, const char *expected) {
  char text[512] = "";
  assert_int_equal(ir_walk_body(f->step, note, text), STELE_OK);
  assert_string_equal(text, expected);
}

/* ---- the table ------------------------------------------------------------------------- */

static void table_is_well_formed(void **state) {
  (void)state;
  for (uint32_t kind = 0; kind < STELE_OP_COUNT; kind++) {
    const ir_op_info *info = ir_op_info_get(kind);
    assert_true(info->first <= info->last && *info->mnemonic && *info->summary);
    const char *lists[] = {info->operands, info->results, info->attributes};
    for (size_t i = 0; i < 3; i++) {
      char copy[512], *save = NULL;
      int count = 0;
      assert_true((size_t)snprintf(copy, sizeof copy, "%s", lists[i]) < sizeof copy);
      for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        const char *colon = strchr(word, ':');
        assert_non_null(colon);
        assert_non_null(strchr(i < 2 ? "fic" : "sifa", colon[1]));
        count++;
      }
      if (i < 2) assert_in_range(count, 0, 4); /* what ir_create has room for */
    }
  }
  assert_null(ir_op_info_get(STELE_OP_COUNT));
}

static void every_op_is_recognised(void **state) {
  fixture *f = *state;
  MlirValue cache = result(ir_create(&f->at, STELE_OP_CACHE, NULL, 0, 0, 0));
  MlirValue x = result(embed(f)), tokens = result(ids(f, 4));
  for (uint32_t kind = 0; kind < STELE_OP_COUNT; kind++) {
    MlirValue operands[4];
    uint32_t count = 0;
    const char *list = ir_op_info_get(kind)->operands;
    for (const char *p = strchr(list, ':'); p; p = strchr(p + 1, ':'))
      operands[count++] = p[1] == 'c' ? cache : p[1] == 'i' ? tokens : x;
    MlirOperation op = ir_create(&f->at, kind, operands, count, 4, 16);
    assert_int_equal(ir_kind(op), kind);
    assert_true(ir_is(op, kind));
    assert_false(ir_is(op, kind + 1));
  }
  assert_true(mlirOperationVerify(mlirModuleGetOperation(f->module)));
  assert_int_equal(ir_kind(mlirModuleGetOperation(f->module)), STELE_OP_COUNT);
  assert_false(ir_is((MlirOperation){NULL}, STELE_OP_COUNT));
}

static void names_go_both_ways(void **state) {
  (void)state;
  uint32_t number = 99;
  assert_string_equal(ir_name(IR_OUTPUTS, STELE_OUTPUT_HIDDEN), "hidden");
  assert_null(ir_name(IR_OUTPUTS, 5));
  assert_true(ir_number(IR_FUNCTIONS, "gelu_tanh", &number));
  assert_int_equal(number, STELE_GELU_TANH);
  assert_false(ir_number(IR_FUNCTIONS, "gelu_", &number));
  assert_false(ir_number(IR_FUNCTIONS, NULL, &number));
  assert_int_equal(number, STELE_GELU_TANH);
}

/* ---- attributes ------------------------------------------------------------------------ */

static void attributes_are_kept(void **state) {
  fixture *f = *state;
  MlirOperation op = embed(f);
  ir_set_int(op, "layer", -7);
  ir_set_float(op, "scale", 1e-5);
  ir_set_string(op, "weight", "a.b");
  ir_set_string(op, "empty", "");
  ir_set_ints(op, "buffer", (const int64_t[]){1, INT64_MAX, -3}, 3);
  assert_int_equal(ir_int(op, "layer", 0), -7);
  assert_true(ir_float(op, "scale", 0) == 1e-5);
  assert_string_equal(ir_string(op, "weight", NULL), "a.b");
  assert_string_equal(ir_string(op, "empty", NULL), "");
  int64_t values[3] = {0};
  assert_int_equal(ir_ints(op, "buffer", values, 2), 3);
  assert_true(values[1] == INT64_MAX && values[2] == 0);
  ir_set_ints(op, "buffer", NULL, 0);
  assert_true(ir_has(op, "buffer"));
  assert_int_equal(ir_ints(op, "buffer", values, 3), 0);
}

static void absent_or_other_attributes_fall_back(void **state) {
  fixture *f = *state;
  MlirOperation op = embed(f);
  ir_set_string(op, "weight", "w");
  assert_int_equal(ir_int(op, "weight", 5), 5);
  assert_true(ir_float(op, "weight", 5) == 5);
  assert_string_equal(ir_string(op, "nothing", "x"), "x");
  assert_null(ir_string(op, "nothing", NULL));
  assert_false(ir_has(op, "nothing"));
  assert_int_equal(ir_ints(op, "weight", NULL, 0), 0);
}

static void attributes_are_copied_and_removed(void **state) {
  fixture *f = *state;
  MlirOperation a = embed(f), b = embed(f);
  ir_set_string(a, "weight", "w");
  ir_copy_attribute(b, "norm", a, "weight");
  ir_copy_attribute(b, "bias", a, "bias");
  assert_string_equal(ir_string(b, "norm", NULL), "w");
  assert_false(ir_has(b, "bias"));
  ir_remove(b, "norm");
  ir_remove(b, "norm");
  assert_false(ir_has(b, "norm"));
}

/* ---- values ---------------------------------------------------------------------------- */

static void shapes_are_told(void **state) {
  fixture *f = *state;
  int64_t tokens, columns;
  MlirOperation e = embed(f);
  ir_shape(result(e), &tokens, &columns);
  assert_true(tokens == 4 && columns == 16);
  ir_shape(mlirOperationGetOperand(e, 0), &tokens, &columns);
  assert_true(tokens == 4 && columns == 1);
  ir_shape(result(ir_create(&f->at, STELE_OP_CACHE, NULL, 0, 4, 16)), &tokens, &columns);
  assert_true(tokens == 0 && columns == 0);
}

static void users_are_counted_once(void **state) {
  fixture *f = *state;
  MlirOperation e = embed(f);
  MlirValue twice[] = {result(e), result(e)};
  assert_int_equal(ir_uses(result(e)), 0);
  assert_true(mlirOperationIsNull(ir_only_user(result(e))));
  MlirOperation mul = ir_create(&f->at, STELE_OP_MUL, twice, 2, 4, 16);
  assert_int_equal(ir_uses(result(e)), 1);
  assert_true(mlirOperationEqual(ir_only_user(result(e)), mul));
  unary(f, STELE_OP_ACTIVATION, result(e));
  assert_int_equal(ir_uses(result(e)), 2);
  assert_true(mlirOperationIsNull(ir_only_user(result(e))));
  assert_true(mlirOperationEqual(ir_definer(result(e)), e));
}

static void absent_operands_are_left_out(void **state) {
  fixture *f = *state;
  MlirValue operands[] = {{NULL}, result(embed(f)), {NULL}};
  MlirOperation op = ir_create(&f->at, STELE_OP_ACTIVATION, operands, 3, 4, 16);
  assert_int_equal(mlirOperationGetNumOperands(op), 1);
}

/* ---- changing -------------------------------------------------------------------------- */

static void ops_are_replaced(void **state) {
  fixture *f = *state;
  MlirOperation e = embed(f);
  MlirOperation old = unary(f, STELE_OP_RMS_NORM, result(e));
  MlirOperation user = unary(f, STELE_OP_ACTIVATION, result(old));
  ir_builder before = ir_builder_before(old);
  MlirValue in = result(e);
  MlirValue fresh = result(ir_create(&before, STELE_OP_LINEAR, &in, 1, 4, 16));
  ir_replace(old, &fresh, 1);
  assert_true(mlirValueEqual(mlirOperationGetOperand(user, 0), fresh));
  expect_body(f, "ids embed linear activation ");
}

static void results_are_replaced_one_by_one(void **state) {
  fixture *f = *state;
  MlirValue cache = result(ir_create(&f->at, STELE_OP_CACHE, NULL, 0, 0, 0));
  MlirValue x = result(embed(f)), operands[] = {x, cache};
  MlirOperation qkv = ir_create(&f->at, STELE_OP_QKV_CACHE, operands, 2, 4, 16);
  MlirValue made[] = {mlirOperationGetResult(qkv, 0), mlirOperationGetResult(qkv, 1)};
  MlirOperation attention = ir_create(&f->at, STELE_OP_ATTENTION, made, 2, 4, 16);
  ir_replace(qkv, operands, 2);
  assert_true(mlirValueEqual(mlirOperationGetOperand(attention, 0), x));
  assert_true(mlirValueEqual(mlirOperationGetOperand(attention, 1), cache));
  expect_body(f, "cache ids embed attention ");
}

static void ends_stay_ends(void **state) {
  fixture *f = *state;
  ids(f, 1);
  f->at = ir_builder_at_end(f->mlir, ir_step_block(f->step));
  embed(f);
  expect_body(f, "ids ids embed ");
  assert_true(mlirOperationVerify(mlirModuleGetOperation(f->module)));
}

/* ---- walking --------------------------------------------------------------------------- */

/* Puts a norm before every activation, and takes the activation away. */
static stele_status rewrite(MlirOperation op, void *data) {
  uint32_t *visits = data;
  ++*visits;
  if (!ir_is(op, STELE_OP_ACTIVATION)) return STELE_OK;
  ir_builder at = ir_builder_before(op);
  MlirValue in = mlirOperationGetOperand(op, 0);
  MlirValue out = result(ir_create(&at, STELE_OP_RMS_NORM, &in, 1, 4, 16));
  ir_replace(op, &out, 1);
  return STELE_OK;
}

static void walks_bear_changes(void **state) {
  fixture *f = *state;
  MlirOperation op = embed(f);
  for (int i = 0; i < 3; i++) op = unary(f, STELE_OP_ACTIVATION, result(op));
  uint32_t visits = 0;
  assert_int_equal(ir_walk_body(f->step, rewrite, &visits), STELE_OK);
  assert_int_equal(visits, 5);
  expect_body(f, "ids embed rms_norm rms_norm rms_norm ");
}

static stele_status stop(MlirOperation op, void *data) {
  (void)op;
  ++*(int *)data;
  return STELE_CANCELLED;
}

static void walks_stop_at_a_failure(void **state) {
  fixture *f = *state;
  int visits = 0;
  embed(f);
  assert_int_equal(ir_walk_body(f->step, stop, &visits), STELE_CANCELLED);
  assert_int_equal(ir_walk_steps(f->module, stop, &visits), STELE_CANCELLED);
  assert_int_equal(ir_walk_declarations(f->module, stop, &visits), STELE_OK);
  assert_int_equal(visits, 2);
}

static void declarations_are_found(void **state) {
  fixture *f = *state;
  ir_builder at = ir_builder_before(f->step);
  MlirOperation model = ir_create(&at, STELE_OP_MODEL, NULL, 0, 0, 0);
  MlirOperation group = ir_create(&at, STELE_OP_GROUP, NULL, 0, 0, 0);
  MlirOperation table = ir_create(&at, STELE_OP_ROPE_TABLE, NULL, 0, 0, 0);
  MlirOperation weight = ir_create(&at, STELE_OP_WEIGHT, NULL, 0, 0, 0);
  ir_set_int(group, "index", 1);
  ir_set_int(table, "index", 1);
  ir_set_string(weight, "name", "w");
  assert_true(mlirOperationEqual(ir_find_model(f->module), model));
  assert_true(mlirOperationEqual(ir_find_group(f->module, 1), group));
  assert_true(mlirOperationEqual(ir_find_rope_table(f->module, 1), table));
  assert_true(mlirOperationEqual(ir_find_weight(f->module, "w"), weight));
  assert_true(mlirOperationIsNull(ir_find_group(f->module, 0)));
  assert_true(mlirOperationIsNull(ir_find_weight(f->module, "")));
}

/* ---- text ------------------------------------------------------------------------------ */

static void text_need_not_end_with_a_zero(void **state) {
  fixture *f = *state;
  static const char text[] = "module {\n}";
  MlirModule module;
  char *copy = malloc(sizeof text - 1); /* no byte more: a sanitizer watches the end */
  memcpy(copy, text, sizeof text - 1);
  assert_int_equal(ir_parse(f->context, copy, sizeof text - 1, "x.mlir", &f->sink, &module),
                   STELE_OK);
  free(copy);
  mlirModuleDestroy(module);
}

static void bad_text_is_told(void **state) {
  fixture *f = *state;
  MlirModule module;
  assert_int_equal(ir_parse(f->context, "module {", 8, "x.mlir", &f->sink, &module),
                   STELE_BAD_FORMAT);
  assert_non_null(strstr(f->sink.text, "x.mlir:1:"));
  assert_int_equal(ir_parse(f->context, "mod\0le", 6, "x.mlir", &f->sink, &module),
                   STELE_BAD_FORMAT);
  assert_string_equal(f->sink.text, "'x.mlir': not text: it has a zero byte");
  assert_int_equal(ir_parse(f->context, "", 0, "x.mlir", NULL, &module), STELE_BAD_FORMAT);
  static char deep[100000];
  memset(deep, '[', sizeof deep);
  assert_int_equal(ir_parse(f->context, deep, sizeof deep, "x.mlir", &f->sink, &module),
                   STELE_BAD_FORMAT);
  assert_string_equal(f->sink.text, "'x.mlir': brackets nest too deep");
}

static void irdl_has_every_op(void **state) {
  fixture *f = *state;
  for (uint32_t kind = 0; kind < STELE_OP_COUNT; kind++) {
    char line[128];
    snprintf(line, sizeof line, "  irdl.operation @%s {\n", ir_op_info_get(kind)->mnemonic);
    assert_non_null(strstr(ir_context_irdl(f->context), line));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(table_is_well_formed),
      cmocka_unit_test_setup_teardown(every_op_is_recognised, set_up, tear_down),
      cmocka_unit_test(names_go_both_ways),
      cmocka_unit_test_setup_teardown(attributes_are_kept, set_up, tear_down),
      cmocka_unit_test_setup_teardown(absent_or_other_attributes_fall_back, set_up, tear_down),
      cmocka_unit_test_setup_teardown(attributes_are_copied_and_removed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(shapes_are_told, set_up, tear_down),
      cmocka_unit_test_setup_teardown(users_are_counted_once, set_up, tear_down),
      cmocka_unit_test_setup_teardown(absent_operands_are_left_out, set_up, tear_down),
      cmocka_unit_test_setup_teardown(ops_are_replaced, set_up, tear_down),
      cmocka_unit_test_setup_teardown(results_are_replaced_one_by_one, set_up, tear_down),
      cmocka_unit_test_setup_teardown(ends_stay_ends, set_up, tear_down),
      cmocka_unit_test_setup_teardown(walks_bear_changes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(walks_stop_at_a_failure, set_up, tear_down),
      cmocka_unit_test_setup_teardown(declarations_are_found, set_up, tear_down),
      cmocka_unit_test_setup_teardown(text_need_not_end_with_a_zero, set_up, tear_down),
      cmocka_unit_test_setup_teardown(bad_text_is_told, set_up, tear_down),
      cmocka_unit_test_setup_teardown(irdl_has_every_op, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
