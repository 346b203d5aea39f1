/* The artefact's parts: what it says of itself comes back as it went in, the linker exports and
 * imports what it should, rope rows are transformers', paths of weights. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "artifact/artifact.h"
#include "artifact/llvm.h"
#include "frontend/frontend.h"

/* ---- objects --------------------------------------------------------------------------- */

/* An object with the functions named, each calling `callee` when it is not NULL. */
static base_buffer make_object(const char *const *names, const char *callee) {
  stele_sink sink = {{0}};
  LLVMTargetMachineRef machine;
  char *triple = artifact_llvm_host_triple();
  assert_int_equal(artifact_llvm_machine(triple, "", "", &sink, &machine), STELE_OK);
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext("test", context);
  artifact_llvm_prepare(module, triple, machine);
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
  LLVMValueRef called = callee ? LLVMAddFunction(module, callee, type) : NULL;
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
  for (; *names; names++) {
    LLVMValueRef function = LLVMAddFunction(module, *names, type);
    if (strncmp(*names, "stele_artifact", 14) != 0)
      LLVMSetVisibility(function, LLVMHiddenVisibility);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, ""));
    if (called) LLVMBuildCall2(builder, type, called, NULL, 0, "");
    LLVMBuildRetVoid(builder);
  }
  LLVMDisposeBuilder(builder);
  LLVMMemoryBufferRef object;
  assert_int_equal(artifact_llvm_emit(machine, module, &sink, &object), STELE_OK);
  base_buffer result = {0};
  base_buffer_append(&result, LLVMGetBufferStart(object), LLVMGetBufferSize(object));
  LLVMDisposeMemoryBuffer(object);
  LLVMDisposeModule(module);
  LLVMContextDispose(context);
  LLVMDisposeTargetMachine(machine);
  LLVMDisposeMessage(triple);
  return result;
}

static void *load(const base_buffer *code) {
  char path[64];
  int fd = memfd_create("test", MFD_CLOEXEC);
  assert_int_equal(write(fd, code->data, code->size), (ssize_t)code->size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  close(fd);
  return library;
}

/* ---- linking --------------------------------------------------------------------------- */

static stele_status link_one(const char *const *names, const char *callee, stele_sink *sink,
                             base_buffer *out) {
  base_buffer bytes = make_object(names, callee);
  const stele_object object = {"test.o", bytes.data, bytes.size};
  stele_status status = artifact_link(&object, 1, sink, out);
  base_buffer_deinit(&bytes);
  return status;
}

static const char *const query_and_step[] = {"stele_artifact_query", "stele_step_0_0", NULL};

static void test_link_same_bytes(void **state) {
  (void)state;
  stele_sink sink = {{0}};
  base_buffer a = {0}, b = {0};
  assert_int_equal(link_one(query_and_step, "expf", &sink, &a), STELE_OK);
  assert_int_equal(link_one(query_and_step, "expf", &sink, &b), STELE_OK);
  assert_int_equal(a.size, b.size);
  assert_memory_equal(a.data, b.data, a.size);
  base_buffer_deinit(&a);
  base_buffer_deinit(&b);
}

static void test_link_exports(void **state) {
  (void)state;
  stele_sink sink = {{0}};
  base_buffer code = {0};
  assert_int_equal(link_one(query_and_step, "memcpy", &sink, &code), STELE_OK);
  void *library = load(&code);
  assert_non_null(dlsym(library, "stele_artifact_query"));
  assert_null(dlsym(library, "stele_step_0_0"));
  dlclose(library);
  base_buffer_deinit(&code);
}

static void test_link_foreign_import(void **state) {
  (void)state;
  stele_sink sink = {{0}};
  base_buffer code = {0};
  assert_int_equal(link_one(query_and_step, "malloc", &sink, &code), STELE_FAILED);
  assert_non_null(strstr(sink.text, "cannot link: undefined symbol: malloc"));
  assert_int_equal(code.size, 0);
}

static void test_link_not_an_object(void **state) {
  (void)state;
  stele_sink sink = {{0}};
  base_buffer code = {0};
  static const char text[100] = "this is not an object";
  stele_object object = {"text.o", text, sizeof text};
  assert_int_equal(artifact_link(&object, 1, &sink, &code), STELE_FAILED);
  assert_non_null(strstr(sink.text, "cannot link: "));
  object.bytes = 3;
  assert_int_equal(artifact_link(&object, 1, &sink, &code), STELE_FAILED);
  assert_non_null(strstr(sink.text, "'text.o'"));
  assert_int_equal(artifact_link(&object, 0, &sink, &code), STELE_FAILED);
}

/* ---- constant data --------------------------------------------------------------------- */

static const stele_group groups[2] = {
    {.kind = STELE_GROUP_WINDOW,
     .layers = 1,
     .kv_heads = 3,
     .key_head = 20,
     .value_head = 24,
     .key_scheme = STELE_F16,
     .value_scheme = STELE_BF16,
     .capacity = 1000,
     .window = 77,
     .page_tokens = 64,
     .table_entries = 16,
     .residual = 5,
     .shared_with = -1,
     .value_in_key = 1,
     .page_bytes = (uint64_t)5 << 32,
     .value_offset = 64,
     .state_bytes = 8},
    {.kind = STELE_GROUP_FULL, .layers = 1, .shared_with = 0},
};

static stele_artifact sample(void) {
  static const uint32_t layer_group[2] = {1, 0};
  static const float factors[4] = {1, 2, 3, 4};
  static const stele_rope ropes[2] = {{.rule = STELE_ROPE_LONG,
                                       .rotary = 8,
                                       .base = 1e4,
                                       .factor = 0.25,
                                       .original = 4096,
                                       .attention_factor = 1.19,
                                       .short_factors = factors,
                                       .long_factors = factors},
                                      {.rule = STELE_ROPE_FIXED, .rotary = 2, .base = 5e5}};
  static const stele_step steps[2] = {
      {STELE_STEP_DECODE, 1, 1, STELE_OUTPUT_TOKEN, NULL, (uint64_t)3 << 33},
      {STELE_STEP_PREFILL, 1, 128, STELE_OUTPUT_LAST, NULL, 7}};
  static const stele_variant variants[2] = {{"x86-64-v3", STELE_FEATURE_AVX2, steps, 2, 0},
                                            {"x86-64", 0, steps, 2, 0}};
  static const stele_weight weights[2] = {{"a.weight", STELE_Q4_0, 3, 100, 64, 0, 4096},
                                          {"b", STELE_F32, 0, 1, 9, 4096, 36}};
  static const stele_phase_op ops[2] = {
      {.name = 1,
       .layer = -1,
       .group = -1,
       .weight = {0, -1, 1},
       .weight_bytes = (uint64_t)9 << 40},
      {.name = 0, .phase = 1, .layer = 1, .group = 1, .weight = {-1, -1, -1}}};
  static const stele_step_phases phases[2] = {{ops, 2, 2}, {ops, 1, 1}};
  static const char *const names[2] = {"attention", "linear"};
  static const int32_t stops[3] = {2, -1, 128009};
  return (stele_artifact){.fingerprint = {0x1122334455667788u, 42},
                          .producer = "stele 0",
                          .target = "ref",
                          .triple = "x86_64-pc-linux-gnu",
                          .description = "{\"name\":\"\\u00e9\"}",
                          .vocab = 50,
                          .vocab_padded = 64,
                          .hidden = 16,
                          .layers = 2,
                          .capacity = 1000,
                          .max_lanes = 4,
                          .prefill_width = 128,
                          .model_positions = 2048,
                          .groups = groups,
                          .group_count = 2,
                          .layer_group = layer_group,
                          .ropes = ropes,
                          .rope_count = 2,
                          .workspace_bytes = (uint64_t)1 << 40,
                          .max_workers = 9,
                          .variants = variants,
                          .variant_count = 2,
                          .weights = weights,
                          .weight_count = 2,
                          .weights_bytes = 5000,
                          .weights_file = "w.bin",
                          .tokenizer = (const uint8_t *)"tok\0en",
                          .tokenizer_bytes = 6,
                          .chat_template = "{{ x }}",
                          .stop_ids = stops,
                          .stop_count = 3,
                          .stop_source = "config.json",
                          .step_phases = phases,
                          .op_names = names,
                          .step_phases_count = 2,
                          .op_name_count = 2};
}

static void check_tables(const stele_artifact *a, const stele_artifact *b) {
  assert_memory_equal(a->groups, b->groups, sizeof groups);
  assert_memory_equal(a->layer_group, b->layer_group, 8);
  assert_int_equal(a->ropes[0].rule, STELE_ROPE_LONG);
  assert_true(a->ropes[0].attention_factor == 1.19);
  assert_memory_equal(a->ropes[0].long_factors, b->ropes[0].long_factors, 16);
  assert_null(a->ropes[1].short_factors);
  assert_string_equal(a->variants[0].name, "x86-64-v3");
  assert_int_equal(a->variants[0].features, STELE_FEATURE_AVX2);
  for (int v = 0; v < 2; v++)
    for (int s = 0; s < 2; s++) {
      const stele_step *found = &a->variants[v].steps[s], *given = &b->variants[v].steps[s];
      assert_int_equal(found->width, given->width);
      assert_int_equal(found->output, given->output);
      assert_int_equal(found->bytes_per_call, given->bytes_per_call);
      assert_non_null(found->run);
    }
  assert_ptr_not_equal(a->variants[0].steps[1].run, a->variants[1].steps[1].run);
  assert_string_equal(a->weights[0].name, "a.weight");
  assert_int_equal(a->weights[0].layout, 3);
  assert_int_equal(a->weights[1].offset, 4096);
  assert_int_equal(a->step_phases_count, 2);
  for (int s = 0; s < 2; s++) {
    const stele_step_phases *found = &a->step_phases[s], *given = &b->step_phases[s];
    assert_int_equal(found->op_count, given->op_count);
    assert_int_equal(found->phase_count, given->phase_count);
    assert_memory_equal(found->ops, given->ops, given->op_count * sizeof *given->ops);
  }
  assert_int_equal(a->op_name_count, 2);
  assert_string_equal(a->op_names[1], "linear");
  assert_memory_equal(a->stop_ids, b->stop_ids, 12);
  assert_memory_equal(a->tokenizer, b->tokenizer, 6);
}

static void check_fields(const stele_artifact *a, const stele_artifact *b) {
  assert_int_equal(a->struct_bytes, sizeof *a);
  assert_int_equal(a->abi, STELE_ARTIFACT_ABI);
  assert_memory_equal(a->fingerprint, b->fingerprint, 16);
  assert_string_equal(a->producer, b->producer);
  assert_string_equal(a->target, b->target);
  assert_string_equal(a->triple, b->triple);
  assert_string_equal(a->description, b->description);
  assert_int_equal(a->vocab_padded, 64);
  assert_int_equal(a->model_positions, 2048);
  assert_int_equal(a->workspace_bytes, b->workspace_bytes);
  assert_int_equal(a->max_workers, 9);
  assert_int_equal(a->weights_bytes, 5000);
  assert_string_equal(a->weights_file, "w.bin");
  assert_string_equal(a->chat_template, b->chat_template);
  assert_null(a->generation_defaults);
  assert_int_equal(a->stop_count, 3);
  assert_string_equal(a->stop_source, b->stop_source);
}

static void test_meta(void **state) {
  (void)state;
  static const char *const steps[] = {"stele_step_0_0", "stele_step_0_1", "stele_step_1_0",
                                      "stele_step_1_1", NULL};
  stele_sink sink = {{0}};
  const stele_artifact given = sample();
  char *triple = artifact_llvm_host_triple();
  base_buffer meta = {0}, code = {0}, other = make_object(steps, NULL);
  assert_int_equal(artifact_emit_meta(&given, triple, &sink, &meta), STELE_OK);
  const stele_object objects[] = {{"meta.o", meta.data, meta.size},
                                  {"steps.o", other.data, other.size}};
  if (artifact_link(objects, 2, &sink, &code) != STELE_OK) fail_msg("%s", sink.text);
  void *library = load(&code);
  stele_artifact_query_function query;
  *(void **)&query = dlsym(library, STELE_ARTIFACT_QUERY);
  assert_non_null(query);
  assert_null(query(STELE_ARTIFACT_ABI + 1));
  const stele_artifact *found = query(STELE_ARTIFACT_ABI);
  assert_non_null(found);
  check_fields(found, &given);
  check_tables(found, &given);
  dlclose(library);
  LLVMDisposeMessage(triple);
  base_buffer_deinit(&meta);
  base_buffer_deinit(&other);
  base_buffer_deinit(&code);
}

/* ---- rope ------------------------------------------------------------------------------ */

static void test_rope(void **state) {
  (void)state;
  double inv_freq[2] = {1, 0.01};
  const fe_rope rope = {.rotary = 4, .attention_factor = 1, .inv_freq = inv_freq};
  float row[4];
  artifact_rope_row(&rope, 0, row);
  assert_memory_equal(row, ((const float[]){1, 1, 0, 0}), 16);
  artifact_rope_row(&rope, 3, row);
  assert_float_equal(row[0], (float)cos(3), 1e-7);
  assert_float_equal(row[2], (float)sin(3), 1e-7);
  assert_float_equal(row[3], (float)sin(0.03), 1e-7);
  /* far out the angle is the rounded product: 100003 * 0.01f in float32, not 1000.03 */
  artifact_rope_row(&rope, 100003, row);
  float angle = 100003.0f * 0.01f;
  assert_float_equal(row[1], (float)cos((double)angle), 1e-7);
}

static void test_rope_factor(void **state) {
  (void)state;
  double inv_freq[1] = {1};
  const fe_rope rope = {.rotary = 2, .attention_factor = 1.5, .inv_freq = inv_freq};
  float row[2];
  artifact_rope_row(&rope, 1, row);
  assert_float_equal(row[0], (float)(1.5 * cos(1)), 1e-6);
  assert_float_equal(row[1], (float)(1.5 * sin(1)), 1e-6);
}

/* ---- paths ----------------------------------------------------------------------------- */

static stele_status weights_path(const char *output, const char *file, stele_sink *sink,
                                 base_arena *arena, const char **path, const char **name) {
  const artifact_source source = {.output = output, .weights_file = file};
  return artifact_weights_path(&source, arena, sink, path, name);
}

static void test_weights_path(void **state) {
  (void)state;
  stele_sink sink = {{0}};
  base_arena arena = {0};
  const char *path, *name;
  assert_int_equal(weights_path("/tmp/m.so", NULL, &sink, &arena, &path, &name), STELE_OK);
  assert_null(path);
  assert_int_equal(weights_path("/tmp/m.so", "w.bin", &sink, &arena, &path, &name), STELE_OK);
  assert_string_equal(path, "/tmp/w.bin");
  assert_string_equal(name, "w.bin");
  assert_int_equal(weights_path("/tmp/m.so", "/tmp/../tmp/w", &sink, &arena, &path, &name),
                   STELE_OK);
  assert_string_equal(name, "w");
  assert_int_equal(weights_path("/tmp/m.so", "/usr/w", &sink, &arena, &path, &name), STELE_OK);
  assert_string_equal(name, "/usr/w");
  assert_int_equal(weights_path("/m.so", "w", &sink, &arena, &path, &name), STELE_OK);
  assert_string_equal(name, "w");
  assert_int_equal(weights_path("/tmp/m.so", "m.so", &sink, &arena, &path, &name),
                   STELE_INVALID_ARGUMENT);
  assert_int_equal(weights_path("/tmp/m.so", "/tmp/", &sink, &arena, &path, &name),
                   STELE_INVALID_ARGUMENT);
  assert_int_equal(weights_path("/tmp/m.so", "/nowhere/w", &sink, &arena, &path, &name),
                   STELE_NOT_FOUND);
  assert_non_null(strstr(sink.text, "/nowhere"));
  base_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_link_same_bytes),
      cmocka_unit_test(test_link_exports),
      cmocka_unit_test(test_link_foreign_import),
      cmocka_unit_test(test_link_not_an_object),
      cmocka_unit_test(test_meta),
      cmocka_unit_test(test_rope),
      cmocka_unit_test(test_rope_factor),
      cmocka_unit_test(test_weights_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
