/* Levels by name, and what emit promises: the same bytes every time, code that needs nothing but
 * libc and libm, one message for what it can't do. That the code computes the right thing is what
 * the conformance suite shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "artifact/artifact.h"
#include "cpu/cpu.h"
#include "table.h"

/* A step of a projection, attention's parts and a linear that merges them, over three layers. */
#define LAYERS 3u
#define OPS (3 * LAYERS)
typedef struct block {
  _Alignas(64) stele_program p;
  stele_program_step step;
  stele_op ops[OPS];
  stele_buffer buffers[5];
  stele_program_weight weights[5 * LAYERS];
  stele_group group;
  stele_program_rope rope;
  uint32_t layer_group[LAYERS];
  char strings[8];
} block;

#define TABLE(field, n) {offsetof(block, field), n}

static stele_op op_of(uint32_t kind, int32_t layer) {
  stele_op op = {.kind = kind,
                 .layer = layer,
                 .tokens = 1,
                 .barrier = 1,
                 .tiles = 1,
                 .tile_rows = 64,
                 .heads = 4,
                 .in = {-1, -1},
                 .out = -1,
                 .prepared = -1,
                 .scratch = -1,
                 .stage = -1,
                 .scale = 0.25f,
                 .eps = 1e-5f};
  for (int i = 0; i < STELE_W_COUNT; i++) op.weight[i] = -1;
  return op;
}

static void make_layer(block *b, uint32_t layer) {
  stele_op *ops = b->ops + 3 * layer;
  int32_t w = (int32_t)(5 * layer);
  uint64_t at = layer * 65536ull;
  for (int i = 0; i < 4; i++)
    b->weights[w + i] = (stele_program_weight){.scheme = STELE_Q8_0,
                                               .layout = 1,
                                               .rows = i == 1 || i == 2 ? 32 : 64,
                                               .columns = 64,
                                               .offset = at + (uint64_t)i * 8192};
  b->weights[w + 4] =
      (stele_program_weight){.scheme = STELE_F32, .rows = 1, .columns = 64, .offset = at + 60000};
  ops[0] = op_of(STELE_OP_QKV_CACHE, (int32_t)layer);
  ops[0].tiles = 8;
  ops[0].activation = STELE_Q8_0;
  ops[0].prologue = STELE_PROLOGUE_NORM;
  ops[0].in[0] = 0;
  ops[0].out = 1;
  ops[0].prepared = 3;
  ops[0].rotary = 16;
  for (int i = 0; i < 3; i++) ops[0].weight[i] = w + i;
  ops[0].weight[STELE_W_NORM] = w + 4;
  ops[1] = op_of(STELE_OP_ATTENTION_PARTIAL, (int32_t)layer);
  ops[1].in[0] = 1;
  ops[1].out = 2;
  ops[2] = op_of(STELE_OP_LINEAR_ADD, (int32_t)layer);
  ops[2].activation = STELE_Q8_0;
  ops[2].prologue = STELE_PROLOGUE_COMBINE;
  ops[2].in[0] = 2;
  ops[2].in[1] = ops[2].out = 0;
  ops[2].prepared = 3;
  ops[2].weight[0] = w + 3;
}

static void make_program(block *b) {
  *b = (block){.p = {.magic = STELE_PROGRAM_MAGIC,
                     .version = STELE_PROGRAM_VERSION,
                     .bytes = sizeof *b,
                     .vocab = 64,
                     .hidden = 64,
                     .layers = LAYERS,
                     .capacity = 64,
                     .max_workers = 4,
                     .workspace_bytes = 65536,
                     .steps = TABLE(step, 1),
                     .ops = TABLE(ops, OPS),
                     .buffers = TABLE(buffers, 5),
                     .weights = TABLE(weights, 5 * LAYERS),
                     .groups = TABLE(group, 1),
                     .ropes = TABLE(rope, 1),
                     .layer_group = TABLE(layer_group, LAYERS),
                     .strings = TABLE(strings, 8)},
               .step = {.lanes = 1, .width = 1, .op_count = OPS},
               .buffers = {{0, 256, 1, 64, STELE_F32, 0},
                           {256, 256, 1, 64, STELE_F32, 0},
                           {512, 1152, 1, 288, STELE_F32, 0},
                           {2048, 128, 1, 64, STELE_Q8_0, 1},
                           {4096, 256, 1, 64, STELE_F32, 0}},
               .group = {.layers = LAYERS,
                         .kv_heads = 2,
                         .key_head = 16,
                         .value_head = 16,
                         .key_scheme = STELE_F16,
                         .value_scheme = STELE_F16,
                         .capacity = 64,
                         .page_tokens = 64,
                         .table_entries = 1,
                         .shared_with = -1,
                         .page_bytes = 8192,
                         .value_offset = 4096},
               .rope = {.rule = STELE_ROPE_DYNAMIC, .rotary = 16, .weight = -1},
               .strings = "w"};
  for (uint32_t layer = 0; layer < LAYERS; layer++) make_layer(b, layer);
}

static void *create_with(const char *cpu, uint32_t threads) {
  stele_sink sink = {{0}};
  stele_target_options options = {.struct_bytes = sizeof options, .cpu = cpu, .threads = threads};
  void *self = NULL;
  assert_int_equal(cpu_target.create(&options, &sink, &self), STELE_OK);
  return self;
}
static void *create(const char *cpu) { return create_with(cpu, 0); }

/* ---- levels ---------------------------------------------------------------------------- */

static void check_variant(const char *cpu, uint32_t index, uint32_t count, const char *name,
                          uint64_t features) {
  uint32_t found;
  void *self = create(cpu);
  const stele_variant_info *infos = cpu_target.variants(self, &found);
  assert_int_equal(found, count);
  assert_string_equal(infos[index].name, name);
  assert_int_equal(infos[index].features, features);
  assert_string_equal(cpu_target.triple(self), "x86_64-unknown-linux-gnu");
  cpu_target.destroy(self);
}

static void test_levels(void **state) {
  (void)state;
  const uint64_t vnni = STELE_FEATURE_AVX2 | STELE_FEATURE_AVX512 | STELE_FEATURE_VNNI;
  const uint64_t avx_vnni = STELE_FEATURE_AVX2 | STELE_FEATURE_AVX_VNNI;
  check_variant("x86-64", 0, 1, "x86-64", 0);
  check_variant("x86-64-v3", 0, 1, "x86-64-v3", STELE_FEATURE_AVX2);
  check_variant("x86-64-v4", 0, 1, "x86-64-v3", STELE_FEATURE_AVX2);
  check_variant("x86-64-v4-vnni", 0, 1, "x86-64-v4-vnni", vnni);
  check_variant("x86-64-v4-amx", 0, 1, "x86-64-v4-amx", vnni | STELE_FEATURE_AMX);
  check_variant("x86-64-v3-vnni", 0, 1, "x86-64-v3-vnni", avx_vnni);
  check_variant("portable", 0, CPU_LEVELS, "x86-64-v4-amx", vnni | STELE_FEATURE_AMX);
  check_variant("portable", 1, CPU_LEVELS, "x86-64-v4-vnni", vnni);
  check_variant("portable", 2, CPU_LEVELS, "x86-64-v3-vnni", avx_vnni);
  check_variant("portable", 3, CPU_LEVELS, "x86-64-v3", STELE_FEATURE_AVX2);
  check_variant("portable", 4, CPU_LEVELS, "x86-64", 0);
}

static void test_native(void **state) {
  (void)state;
  uint32_t count;
  void *self = create("native"), *other = create(NULL);
  const char *name = cpu_target.variants(self, &count)->name;
  assert_int_equal(count, 1);
  assert_string_equal(name, cpu_target.variants(other, &count)->name);
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  assert_true(avx2 == (strcmp(name, "x86-64") != 0));
  cpu_target.destroy(self);
  cpu_target.destroy(other);
}

static void test_unknown_name(void **state) {
  (void)state;
  static const char *const names[] = {"", "x86-64-v2", "skylake", "x86-64-v", "nativ"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    stele_sink sink = {{0}};
    stele_target_options options = {.struct_bytes = sizeof options, .cpu = names[i]};
    void *self = NULL;
    assert_int_equal(cpu_target.create(&options, &sink, &self), STELE_INVALID_ARGUMENT);
    assert_null(self);
    assert_non_null(strstr(sink.text, "x86-64-v4-vnni"));
    assert_non_null(strstr(sink.text, "portable"));
  }
  cpu_target.destroy(NULL);
}

/* ---- code ------------------------------------------------------------------------------ */

/* Objects and an artefact's constant data, which refers to the step of each variant. */
static void check_link(const stele_object *objects, uint32_t count) {
  stele_sink sink = {{0}};
  stele_object all[CPU_JOBS + 1];
  stele_step step = {0};
  stele_variant variants[CPU_LEVELS];
  for (uint32_t i = 0; i < CPU_LEVELS; i++) variants[i] = (stele_variant){"v", 0, &step, 1, 0};
  stele_artifact artifact = {.variants = variants, .variant_count = CPU_LEVELS, .target = "cpu"};
  base_buffer meta = {0}, code = {0};
  assert_int_equal(artifact_emit_meta(&artifact, cpu_target.triple(NULL), &sink, &meta), 0);
  memcpy(all, objects, count * sizeof *all);
  all[count] = (stele_object){"meta.o", meta.data, meta.size};
  if (artifact_link(all, count + 1, &sink, &code)) fail_msg("%s", sink.text);
  base_buffer_deinit(&meta);
  base_buffer_deinit(&code);
}

/* However often, and on however many threads. */
static void test_same_bytes(void **state) {
  (void)state;
  static block program;
  stele_sink sink = {{0}};
  make_program(&program);
  const stele_object *first, *second;
  uint32_t first_count, second_count;
  void *a = create("portable"), *b = create_with("portable", 3);
  assert_int_equal(cpu_target.emit(a, &program.p, &sink, &first, &first_count), STELE_OK);
  assert_int_equal(cpu_target.emit(b, &program.p, &sink, &second, &second_count), STELE_OK);
  assert_int_equal(first_count, CPU_JOBS); /* the parts of all levels */
  assert_int_equal(second_count, CPU_JOBS);
  for (uint32_t i = 0; i < CPU_JOBS; i++) {
    assert_int_equal(first[i].bytes, second[i].bytes);
    assert_memory_equal(first[i].data, second[i].data, first[i].bytes);
  }
  /* linked alone, the objects leave nothing undefined but what libc and libm have */
  check_link(first, first_count);
  assert_int_equal(cpu_target.emit(a, &program.p, &sink, &first, &first_count), STELE_OK);
  assert_memory_equal(first[0].data, second[0].data, second[0].bytes);
  cpu_target.destroy(a);
  cpu_target.destroy(b);
}

static void refuses(block *b, const char *text) {
  stele_sink sink = {{0}};
  const stele_object *objects = NULL;
  uint32_t count = 0;
  void *self = create("x86-64");
  assert_int_not_equal(cpu_target.emit(self, &b->p, &sink, &objects, &count), STELE_OK);
  assert_null(objects);
  assert_non_null(strstr(sink.text, text));
  cpu_target.destroy(self);
}

static void test_refusals(void **state) {
  (void)state;
  static block b;
  make_program(&b);
  b.weights[0].layout = 0;
  refuses(&b, "layout 0");
  make_program(&b);
  b.weights[3].columns = 65;
  refuses(&b, "64 x 65");
  make_program(&b);
  b.weights[4].scheme = STELE_F16;
  refuses(&b, "vector");
  make_program(&b);
  b.group.key_scheme = STELE_Q4_1;
  refuses(&b, "cache group");
  make_program(&b);
  b.group.page_tokens = 48;
  refuses(&b, "cache group");
  make_program(&b);
  b.group.kv_heads = 3;
  refuses(&b, "cache group");
  make_program(&b);
  b.ops[4].device = 1;
  refuses(&b, "device 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_levels),       cmocka_unit_test(test_native),
      cmocka_unit_test(test_unknown_name), cmocka_unit_test(test_same_bytes),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests_name("emit", tests, NULL, NULL);
}
