/* The verifier on modules that no text can give: MLIR's reader would refuse them before. The
 * messages that text can provoke have golden files in tests/ir. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ir.h"

static const char text[] =
    "module {\n"
    "  \"decode.model\"() {family = \"llama\", vocab = 32 : i64, hidden = 16 : i64, layers = 1 : "
    "i64, capacity = 8 : i64} : () -> ()\n"
    "  \"decode.step\"() ({\n"
    "    %i = \"decode.ids\"() : () -> tensor<1xi32>\n"
    "    \"step.end\"() : () -> ()\n"
    "  }) {kind = \"decode\", lanes = 1 : i64, width = 1 : i64, output = \"none\"} : () -> ()\n"
    "}\n";

static stele_status first_step(MlirOperation op, void *data) {
  *(MlirOperation *)data = op;
  return STELE_OK;
}

/* Reads the text, appends an op with that many operands and expects a message of the verifier. */
static void expect(uint32_t kind, uint32_t operands, const char *message) {
  stele_sink sink = {0};
  ir_context *context;
  MlirModule module;
  MlirOperation step = {NULL};
  assert_int_equal(ir_context_create(&sink, &context), STELE_OK);
  assert_int_equal(ir_parse(context, text, strlen(text), "x", &sink, &module), STELE_OK);
  assert_int_equal(ir_verify(module, IR_MODEL, &sink), STELE_OK);
  assert_int_equal(ir_walk_steps(module, first_step, &step), STELE_OK);
  ir_builder at = ir_builder_at_end(ir_context_mlir(context), ir_step_block(step));
  MlirValue ids = mlirOperationGetResult(mlirBlockGetFirstOperation(ir_step_block(step)), 0);
  MlirValue values[] = {ids, ids, ids};
  ir_create(&at, kind, values, operands, 1, 16);
  assert_int_equal(ir_verify(module, IR_MODEL, &sink), STELE_BAD_FORMAT);
  if (!strstr(sink.text, message)) fail_msg("expected '%s' in: %s", message, sink.text);
  mlirModuleDestroy(module);
  ir_context_destroy(context);
}

static void operands_are_counted(void **state) {
  (void)state;
  expect(STELE_OP_OUTPUT_TOKEN, 0, "step 0: 'output_token': 0 operands, expected 1");
  expect(STELE_OP_OUTPUT_TOKEN, 3, "step 0: 'output_token': 3 operands, expected 1");
}

static void types_are_checked(void **state) {
  (void)state;
  expect(STELE_OP_CACHE_UPDATE, 3,
         "step 0: 'cache_update': operand 'cache' is not of type !decode.cache");
}

static void a_missing_sink_is_fine(void **state) {
  (void)state;
  ir_context *context;
  MlirModule module;
  assert_int_equal(ir_context_create(NULL, &context), STELE_OK);
  assert_int_equal(ir_parse(context, text, strlen(text), "x", NULL, &module), STELE_OK);
  mlirOperationRemoveAttributeByName(mlirBlockGetFirstOperation(mlirModuleGetBody(module)),
                                     mlirStringRefCreateFromCString("vocab"));
  assert_int_equal(ir_verify(module, IR_MODEL, NULL), STELE_BAD_FORMAT);
  mlirModuleDestroy(module);
  ir_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operands_are_counted),
      cmocka_unit_test(types_are_checked),
      cmocka_unit_test(a_missing_sink_is_fine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
