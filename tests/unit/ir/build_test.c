/* From descriptions to model-level modules: which steps there are, what each holds, what is
 * declared, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ir.h"
#include "support/test_model.h"

typedef struct fixture {
  stele_sink sink;
  ir_context *context;
  fe_model *model;
  MlirModule module;
} fixture;

static const ir_build_options usual = {.capacity = 512,
                                       .max_lanes = 1,
                                       .prefill_width = 16,
                                       .verify_width = 8,
                                       .cache_scheme = STELE_F16};

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  assert_int_equal(ir_context_create(&f->sink, &f->context), STELE_OK);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  if (!mlirModuleIsNull(f->module)) mlirModuleDestroy(f->module);
  fe_model_destroy(f->model);
  ir_context_destroy(f->context);
  free(f);
  return 0;
}

static void make_with(fixture *f, const char *family, bool bias, const char *fields) {
  test_options options = test_options_default();
  options.family = family;
  options.attention_bias = bias;
  options.fields = fields;
  if (test_model_random(&options, &f->sink, &f->model) != STELE_OK) fail_msg("%s", f->sink.text);
}

static void make(fixture *f, const char *family, bool bias) { make_with(f, family, bias, NULL); }

/* Builds, verifies, prints, reads again. */
static void build(fixture *f, const ir_build_options *options) {
  MlirModule again;
  base_buffer first = {0}, second = {0};
  if (ir_build(f->context, f->model, options, &f->sink, &f->module) != STELE_OK ||
      ir_verify(f->module, IR_MODEL, &f->sink) != STELE_OK)
    fail_msg("%s", f->sink.text);
  ir_print(f->module, &first);
  assert_int_equal(
      ir_parse(f->context, (const char *)first.data, first.size, "printed", &f->sink, &again),
      STELE_OK);
  ir_print(again, &second);
  assert_int_equal(first.size, second.size);
  assert_memory_equal(first.data, second.data, first.size);
  mlirModuleDestroy(again);
  base_buffer_deinit(&first);
  base_buffer_deinit(&second);
}

/* The step of a kind, number of lanes and output. */
typedef struct wanted {
  const char *kind, *output;
  int64_t lanes;
  MlirOperation found;
} wanted;
static stele_status match(MlirOperation op, void *data) {
  wanted *w = data;
  if (strcmp(ir_string(op, "kind", ""), w->kind) == 0 &&
      strcmp(ir_string(op, "output", ""), w->output) == 0 && ir_int(op, "lanes", 0) == w->lanes)
    w->found = op;
  return STELE_OK;
}
static MlirOperation step(const fixture *f, const char *kind, int64_t lanes, const char *output) {
  wanted w = {.kind = kind, .output = output, .lanes = lanes};
  assert_int_equal(ir_walk_steps(f->module, match, &w), STELE_OK);
  assert_false(mlirOperationIsNull(w.found));
  return w.found;
}

/* Ops of a step, as "ids embed 0:rms_norm ...": with their layer where they have one. */
static stele_status note(MlirOperation op, void *data) {
  base_buffer *text = data;
  if (ir_has(op, "layer")) base_buffer_printf(text, "%d:", (int)ir_int(op, "layer", -1));
  base_buffer_printf(text, "%s ", ir_op_info_get(ir_kind(op))->mnemonic);
  return STELE_OK;
}
static void expect_ops(MlirOperation op, const char *expected) {
  base_buffer text = {0};
  assert_int_equal(ir_walk_body(op, note, &text), STELE_OK);
  base_buffer_append(&text, "", 1);
  assert_string_equal((const char *)text.data, expected);
  base_buffer_deinit(&text);
}

#define ATTENTION(l)                                                                     \
  l ":cache " l ":cache_update " l ":attention " l ":linear " l ":add " l ":rms_norm " l \
    ":linear " l ":linear " l ":activation " l ":mul " l ":linear " l ":add "
#define LLAMA(l) \
  l ":rms_norm " l ":linear " l ":linear " l ":linear " l ":rope " l ":rope " ATTENTION(l)
#define QWEN3(l)                                                                                   \
  l ":rms_norm " l ":linear " l ":linear " l ":linear " l ":rms_norm " l ":rms_norm " l ":rope " l \
    ":rope " ATTENTION(l)

/* ---- steps ----------------------------------------------------------------------------- */

static void steps_follow_the_options(void **state) {
  (void)state;
  ir_step steps[32];
  ir_build_options o = usual;
  assert_int_equal(ir_steps(&o, steps, 32), 9);
  assert_true(steps[0].kind == STELE_STEP_DECODE && steps[0].output == STELE_OUTPUT_TOKEN &&
              steps[0].lanes == 1 && steps[0].width == 1);
  assert_true(steps[3].kind == STELE_STEP_PREFILL && steps[3].output == STELE_OUTPUT_NONE &&
              steps[3].width == 16);
  assert_true(steps[8].kind == STELE_STEP_VERIFY && steps[8].output == STELE_OUTPUT_TOKEN &&
              steps[8].lanes == 1 && steps[8].width == 8);
  o.max_lanes = 6;
  assert_int_equal(ir_steps(&o, steps, 32), 4 * 3 + 5 + 1);
  const uint32_t lanes[] = {1, 2, 4, 6};
  for (size_t i = 0; i < 4; i++) assert_int_equal(steps[3 * i].lanes, lanes[i]);
  o.max_lanes = 16;
  assert_int_equal(ir_steps(&o, steps, 3), 5 * 3 + 5 + 1);
  o.prefill_width = 1;
  assert_int_equal(ir_steps(&o, NULL, 0), 5 * 3 + 1);
  o.verify_width = 1;
  assert_int_equal(ir_steps(&o, NULL, 0), 5 * 3);
}

static void llama_is_written_out(void **state) {
  fixture *f = *state;
  make(f, "llama", false);
  build(f, &usual);
  expect_ops(step(f, "decode", 1, "token"),
             "ids embed " LLAMA("0") LLAMA("1") "last_token rms_norm linear argmax output_token ");
  expect_ops(step(f, "prefill", 1, "last"),
             "ids embed " LLAMA("0") LLAMA("1") "last_token rms_norm linear output ");
  expect_ops(step(f, "prefill", 1, "all"),
             "ids embed " LLAMA("0") LLAMA("1") "rms_norm linear output ");
  expect_ops(step(f, "prefill", 1, "none"), "ids embed " LLAMA("0") LLAMA("1"));
  expect_ops(step(f, "prefill", 1, "hidden"),
             "ids embed output " LLAMA("0") "output " LLAMA("1") "rms_norm output ");
  expect_ops(step(f, "verify", 1, "token"),
             "ids embed " LLAMA("0") LLAMA("1") "rms_norm linear argmax output_token ");
}

static void qwen3_norms_heads(void **state) {
  fixture *f = *state;
  make(f, "qwen3", false);
  build(f, &usual);
  expect_ops(step(f, "decode", 1, "last"),
             "ids embed " QWEN3("0") QWEN3("1") "last_token rms_norm linear output ");
}

/* The second layer, and what comes behind it. */
static void expect_last_layer(fixture *f, const char *family, const char *fields,
                              const char *expected) {
  make_with(f, family, false, fields);
  build(f, &usual);
  base_buffer text = {0};
  assert_int_equal(ir_walk_body(step(f, "prefill", 1, "all"), note, &text), STELE_OK);
  base_buffer_append(&text, "", 1);
  const char *layer = strstr((const char *)text.data, "1:");
  assert_non_null(layer);
  assert_string_equal(layer, expected);
  base_buffer_deinit(&text);
}

#define QKV "1:linear 1:linear 1:linear "
#define CACHED "1:cache 1:cache_update 1:attention 1:linear "
#define GATED "1:linear 1:linear 1:activation 1:mul 1:linear "

static void norms_may_come_behind(void **state) {
  expect_last_layer(*state, "olmo2", NULL,
                    QKV "1:rms_norm 1:rms_norm 1:rope 1:rope " CACHED "1:rms_norm 1:add " GATED
                        "1:rms_norm 1:add rms_norm linear output ");
}

static void layers_may_be_parallel(void **state) {
  expect_last_layer(*state, "cohere", "\"logit_scale\":0.5,\"use_qk_norm\":true",
                    "1:layer_norm " QKV "1:layer_norm 1:layer_norm 1:rope 1:rope " CACHED
                    "1:add " GATED "1:add layer_norm linear scale output ");
}

static void what_is_added_may_be_scaled(void **state) {
  expect_last_layer(*state, "granite", "\"residual_multiplier\":0.5",
                    "1:rms_norm " QKV "1:rope 1:rope " CACHED "1:scale 1:add 1:rms_norm " GATED
                    "1:scale 1:add rms_norm linear output ");
}

static void layers_may_have_no_rope(void **state) {
  expect_last_layer(*state, "smollm3", "\"no_rope_layers\":[1,0]",
                    "1:rms_norm " QKV CACHED "1:add 1:rms_norm " GATED
                    "1:add rms_norm linear output ");
}

static stele_status count_biases(MlirOperation op, void *data) {
  *(int *)data += ir_is(op, STELE_OP_LINEAR) && ir_has(op, "bias");
  return STELE_OK;
}

static void biases_are_named(void **state) {
  fixture *f = *state;
  int biases = 0;
  make(f, "llama", true);
  build(f, &usual);
  assert_int_equal(ir_walk_body(step(f, "decode", 1, "token"), count_biases, &biases), STELE_OK);
  assert_int_equal(biases, 2 * 4); /* query, key, value and output of two layers */
}

static void lanes_widen_values(void **state) {
  fixture *f = *state;
  ir_build_options o = usual;
  int64_t tokens, columns;
  o.max_lanes = 6;
  make(f, "llama", false);
  build(f, &o);
  MlirOperation op = mlirBlockGetFirstOperation(ir_step_block(step(f, "decode", 6, "token")));
  ir_shape(mlirOperationGetResult(op, 0), &tokens, &columns);
  assert_int_equal(tokens, 6);
}

/* ---- declarations ---------------------------------------------------------------------- */

static void page_of(fixture *f, uint32_t capacity, int64_t expected) {
  ir_build_options o = usual;
  o.capacity = capacity;
  build(f, &o);
  assert_int_equal(ir_int(ir_find_group(f->module, 0), "page_tokens", 0), expected);
  assert_int_equal(ir_int(ir_find_weight(f->module, "rope.0"), "rows", 0), capacity);
  mlirModuleDestroy(f->module);
  f->module = (MlirModule){NULL};
}

static void pages_fit_any_capacity(void **state) {
  fixture *f = *state;
  make(f, "llama", false);
  page_of(f, 1, 1);
  page_of(f, 3, 2);
  page_of(f, 63, 32);
  page_of(f, 64, 64);
  page_of(f, 100000, 64);
}

static void geometries_become_groups(void **state) {
  fixture *f = *state;
  test_options options = test_options_default();
  options.layers = 4;
  assert_int_equal(test_model_random(&options, &f->sink, &f->model), STELE_OK);
  for (uint32_t i = 0; i < 4; i += 2) { /* window, full, window, full */
    f->model->layer[i].group_kind = STELE_GROUP_WINDOW;
    f->model->layer[i].window = 12;
  }
  build(f, &usual);
  MlirOperation first = ir_find_group(f->module, 0), second = ir_find_group(f->module, 1);
  assert_string_equal(ir_string(first, "kind", ""), "window");
  assert_int_equal(ir_int(first, "window", 0), 12);
  assert_int_equal(ir_int(first, "page_tokens", 0), 8);
  assert_int_equal(ir_int(first, "capacity", 0), 512);
  assert_string_equal(ir_string(second, "kind", ""), "full");
  assert_int_equal(ir_int(second, "page_tokens", 0), 64);
  assert_true(mlirOperationIsNull(ir_find_group(f->module, 2)));
}

static void rope_by_length_has_no_rows(void **state) {
  fixture *f = *state;
  make(f, "llama", false);
  f->model->ropes[0].rule = STELE_ROPE_DYNAMIC;
  f->model->ropes[0].factor = 2;
  f->model->ropes[0].original = 32;
  build(f, &usual);
  MlirOperation table = ir_find_rope_table(f->module, 0);
  assert_string_equal(ir_string(table, "rule", ""), "dynamic");
  assert_int_equal(ir_int(table, "original", 0), 32);
  assert_true(mlirOperationIsNull(ir_find_weight(f->module, "rope.0")));
}

static void tied_models_have_one_matrix(void **state) {
  fixture *f = *state;
  test_options options = test_options_default();
  options.tied = true;
  assert_int_equal(test_model_random(&options, &f->sink, &f->model), STELE_OK);
  build(f, &usual);
  const char *name = fe_model_weight(f->model, FE_EMBED, -1)->name;
  MlirOperation weight = ir_find_weight(f->module, name);
  assert_int_equal(ir_int(weight, "embedding", 0), 1);
  MlirOperation op = mlirBlockGetFirstOperation(ir_step_block(step(f, "prefill", 1, "all")));
  const char *last = NULL;
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    if (ir_is(op, STELE_OP_LINEAR)) last = ir_string(op, "weight", "");
  assert_string_equal(last, name);
}

/* ---- what is refused ------------------------------------------------------------------- */

static void refuse(fixture *f, const ir_build_options *options, const char *text) {
  MlirModule module = {NULL};
  assert_int_not_equal(ir_build(f->context, f->model, options, &f->sink, &module), STELE_OK);
  assert_true(mlirModuleIsNull(module));
  if (!strstr(f->sink.text, text)) fail_msg("expected '%s' in: %s", text, f->sink.text);
}

static void missing_weights_are_all_listed(void **state) {
  fixture *f = *state;
  make(f, "llama", false);
  for (uint32_t i = 0; i < f->model->weight_count; i++) {
    fe_weight *w = &f->model->weights[i];
    if (w->role == FE_K && w->layer == 1) w->role = FE_ROLE_COUNT;
    if (w->role == FE_FINAL_NORM) w->role = FE_ROLE_COUNT;
  }
  refuse(f, &usual, "no weight for FINAL_NORM");
  refuse(f, &usual, "no weight for K of layer 1");
}

static void impossible_options_are_refused(void **state) {
  fixture *f = *state;
  ir_build_options o = usual;
  make(f, "llama", false);
  o.capacity = 0;
  refuse(f, &o, "capacity 0");
  o = usual;
  o.max_lanes = 0;
  refuse(f, &o, "lanes 0");
  o = usual;
  o.prefill_width = 0;
  refuse(f, &o, "prefill width 0");
  o = usual;
  o.verify_width = 0;
  refuse(f, &o, "verify width 0");
  o = usual;
  o.cache_scheme = STELE_Q8_0;
  refuse(f, &o, "block of 32");
}

static void what_the_graph_lacks_is_refused(void **state) {
  fixture *f = *state;
  make(f, "llama", false);
  f->model->layer[1].group_kind = STELE_GROUP_STATE;
  refuse(f, &usual, "layer 1: caches of kind 4");
  f->model->layer[1].group_kind = STELE_GROUP_FULL;
  f->model->layer[1].rope = 7;
  refuse(f, &usual, "layer 1: rope 7, but the model has 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_follow_the_options),
      cmocka_unit_test_setup_teardown(llama_is_written_out, set_up, tear_down),
      cmocka_unit_test_setup_teardown(qwen3_norms_heads, set_up, tear_down),
      cmocka_unit_test_setup_teardown(norms_may_come_behind, set_up, tear_down),
      cmocka_unit_test_setup_teardown(layers_may_be_parallel, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_is_added_may_be_scaled, set_up, tear_down),
      cmocka_unit_test_setup_teardown(layers_may_have_no_rope, set_up, tear_down),
      cmocka_unit_test_setup_teardown(biases_are_named, set_up, tear_down),
      cmocka_unit_test_setup_teardown(lanes_widen_values, set_up, tear_down),
      cmocka_unit_test_setup_teardown(pages_fit_any_capacity, set_up, tear_down),
      cmocka_unit_test_setup_teardown(geometries_become_groups, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rope_by_length_has_no_rows, set_up, tear_down),
      cmocka_unit_test_setup_teardown(tied_models_have_one_matrix, set_up, tear_down),
      cmocka_unit_test_setup_teardown(missing_weights_are_all_listed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(impossible_options_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_the_graph_lacks_is_refused, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
