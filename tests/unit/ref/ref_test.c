/* The reference interpreter against numbers worked out by hand. Everything else is tested against
 * the interpreter, so what is here is what can be seen to be right on paper. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ref/interpret.h"

/* A program with room for a few of everything, as one block. */
typedef struct small {
  stele_program p;
  stele_program_step step;
  stele_op ops[3];
  stele_buffer buffers[4];
  stele_program_weight weights[2];
  stele_group groups[1];
  stele_program_rope ropes[2];
  uint32_t layer_group[2];
} small;

#define TABLE(field, n) {offsetof(small, field), n}

static void small_init(small *s, uint32_t lanes, uint32_t width, uint32_t ops) {
  *s = (small){.p = {.vocab = 8,
                     .hidden = 4,
                     .layers = 2,
                     .capacity = 16,
                     .max_workers = 4,
                     .steps = TABLE(step, 1),
                     .ops = TABLE(ops, 3),
                     .buffers = TABLE(buffers, 4),
                     .weights = TABLE(weights, 2),
                     .groups = TABLE(groups, 1),
                     .ropes = TABLE(ropes, 2),
                     .layer_group = TABLE(layer_group, 2)},
               .step = {.lanes = lanes, .width = width, .op_count = ops}};
  for (int i = 0; i < 3; i++) {
    s->ops[i] = (stele_op){.layer = -1,
                           .tokens = lanes * width,
                           .tiles = lanes * width,
                           .tile_rows = 1,
                           .in = {0, 1},
                           .out = 2,
                           .prepared = -1,
                           .scratch = -1,
                           .stage = -1};
    memset(s->ops[i].weight, -1, sizeof s->ops[i].weight);
  }
}

/* Buffers of 64 floats each, one behind the other. */
static void small_buffers(small *s, uint32_t columns) {
  for (uint32_t i = 0; i < 4; i++)
    s->buffers[i] =
        (stele_buffer){256 * i, 256, s->step.lanes * s->step.width, columns, STELE_F32, 0};
}

typedef struct call {
  stele_env env;
  stele_step_args args;
  float workspace[4][64];
  int32_t valid[4], filled[4], first[4], positions[4];
} call;

static void call_init(call *c, const void *weights) {
  memset(c, 0, sizeof *c);
  c->env.workspace = (uint8_t *)c->workspace;
  c->env.weights = weights;
  for (int i = 0; i < 4; i++) c->valid[i] = 1;
  c->args.valid = c->valid;
  c->args.filled = c->filled;
  c->args.first = c->first;
  c->args.positions = c->positions;
}

static void near(float found, double expected) {
  if (fabs((double)found - expected) > 1e-6)
    fail_msg("expected %.9g, found %.9g", expected, (double)found);
}

/* ---- formulas -------------------------------------------------------------------------- */

static void test_functions(void **state) {
  (void)state;
  near(ref_function(STELE_SILU, 1), 0.7310585786);
  near(ref_function(STELE_GELU, 1), 0.8413447461);
  near(ref_function(STELE_GELU_TANH, 1), 0.8411919906);
  near(ref_function(STELE_RELU, -2), 0);
  near(ref_function(STELE_RELU, 2), 2);
  near(ref_function(STELE_SILU, -200), 0);
}

static void test_norm(void **state) {
  (void)state;
  small s;
  call c;
  const float weight[2] = {2, 1};
  small_init(&s, 1, 1, 1);
  small_buffers(&s, 4);
  s.weights[0] = (stele_program_weight){.scheme = STELE_F32, .rows = 1, .columns = 2};
  s.ops[0].kind = STELE_OP_RMS_NORM;
  s.ops[0].head = 2;
  s.ops[0].weight[STELE_W_NORM] = 0;
  call_init(&c, weight);
  memcpy(c.workspace[0], (const float[]){3, 4, 6, 8}, 16);
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  /* rms of (3, 4) is sqrt(12.5), each segment has its own */
  near(c.workspace[2][0], 2 * 3 / sqrt(12.5));
  near(c.workspace[2][1], 4 / sqrt(12.5));
  near(c.workspace[2][2], 2 * 3 / sqrt(12.5));
  s.ops[0].flags = STELE_FLAG_NORM_PLUS_ONE;
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  near(c.workspace[2][0], 3 * 3 / sqrt(12.5));
}

/* (1, 3) has mean 2 and variance 1. */
static void test_layer_norm(void **state) {
  (void)state;
  small s;
  call c;
  const float weights[2][4] = {{2, 1, 4, 3}, {0, 10, 20, 30}};
  small_init(&s, 1, 1, 1);
  small_buffers(&s, 4);
  for (uint32_t i = 0; i < 2; i++)
    s.weights[i] = (stele_program_weight){
        .scheme = STELE_F32, .rows = 1, .columns = 2, .offset = i * sizeof weights[0]};
  s.ops[0].kind = STELE_OP_LAYER_NORM;
  s.ops[0].head = 2;
  s.ops[0].weight[STELE_W_NORM] = 0;
  call_init(&c, weights);
  memcpy(c.workspace[0], (const float[]){1, 3, -1, 1}, 16);
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_memory_equal(c.workspace[2], ((const float[]){-2, 1, -2, 1}), 16);
  s.ops[0].weight[STELE_W_NORM_BIAS] = 1;
  s.weights[0].columns = s.weights[1].columns = 4; /* a number for each column */
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_memory_equal(c.workspace[2], ((const float[]){-2, 11, 16, 33}), 16);
}

/* ---- heads ----------------------------------------------------------------------------- */

/* Two heads of one column and one that is kept, times (2, 3) and (5, 7). */
static void test_head_linear(void **state) {
  (void)state;
  small s;
  call c;
  const float weight[4] = {2, 3, 5, 7};
  small_init(&s, 1, 1, 1);
  small_buffers(&s, 4);
  s.buffers[2].columns = 6;
  s.weights[0] = (stele_program_weight){.scheme = STELE_F32, .rows = 4, .columns = 1};
  s.ops[0].kind = STELE_OP_HEAD_LINEAR;
  s.ops[0].heads = 2;
  s.ops[0].kept = 1;
  s.ops[0].weight[STELE_W_A] = 0;
  call_init(&c, weight);
  memcpy(c.workspace[0], (const float[]){1, 8, 10, 9}, 16);
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_memory_equal(c.workspace[2], ((const float[]){2, 3, 8, 50, 70, 9}), 24);
}

static void test_concat(void **state) {
  (void)state;
  small s;
  call c;
  small_init(&s, 1, 1, 1);
  small_buffers(&s, 4);
  s.buffers[1].columns = 2;
  s.buffers[2].columns = 6;
  s.ops[0].kind = STELE_OP_CONCAT;
  s.ops[0].head = 3;
  call_init(&c, NULL);
  memcpy(c.workspace[0], (const float[]){1, 2, 4, 5}, 16);
  memcpy(c.workspace[1], (const float[]){3, 6}, 8);
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_memory_equal(c.workspace[2], ((const float[]){1, 2, 3, 4, 5, 6}), 24);
}

/* ---- positions and logits -------------------------------------------------------------- */

static void test_position_embed(void **state) {
  (void)state;
  small s;
  call c;
  const float rows[3][2] = {{9, 9}, {1, 2}, {3, 4}};
  small_init(&s, 1, 1, 1);
  small_buffers(&s, 2);
  s.weights[0] = (stele_program_weight){.scheme = STELE_F32, .rows = 3, .columns = 2};
  s.ops[0].kind = STELE_OP_POSITION_EMBED;
  s.ops[0].rope_offset = 1;
  s.ops[0].weight[STELE_W_A] = 0;
  call_init(&c, rows);
  memcpy(c.workspace[0], (const float[]){10, 20}, 8);
  c.positions[0] = 1;
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_memory_equal(c.workspace[2], ((const float[]){13, 24}), 8);
}

static void test_scale_and_cap(void **state) {
  (void)state;
  small s;
  call c;
  small_init(&s, 1, 1, 2);
  small_buffers(&s, 2);
  s.ops[0].kind = STELE_OP_SCALE;
  s.ops[0].scale = 0.5f;
  s.ops[1].kind = STELE_OP_SOFT_CAP;
  s.ops[1].soft_cap = 3;
  s.ops[1].in[0] = 2;
  s.ops[1].out = 3;
  call_init(&c, NULL);
  memcpy(c.workspace[0], (const float[]){4, -100}, 8);
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  near(c.workspace[2][0], 2);
  near(c.workspace[3][0], 3 * tanh(2.0 / 3));
  near(c.workspace[3][1], -3);
}

/* A quarter turn: (x, y) becomes (-y, x), whichever elements make a pair. */
static void test_rope_pairs(void **state) {
  (void)state;
  small s;
  call c;
  const float rows[2][4] = {{1, 1, 0, 0}, {0, 0, 1, 1}}; /* position 0: none, 1: a quarter */
  small_init(&s, 1, 1, 1);
  small_buffers(&s, 6);
  s.weights[0] = (stele_program_weight){.scheme = STELE_F32, .rows = 2, .columns = 4};
  s.ropes[0] = (stele_program_rope){STELE_ROPE_FIXED, 4, 0, 0};
  s.ops[0].kind = STELE_OP_ROPE;
  s.ops[0].head = 6;
  s.ops[0].rotary = 4;
  s.ops[0].rope_offset = 1;
  call_init(&c, rows);
  memcpy(c.workspace[0], (const float[]){1, 2, 3, 4, 5, 6}, 24);
  c.positions[0] = 1;
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_memory_equal(c.workspace[2], ((const float[]){1, -4, -5, 2, 3, 6}), 24);
  s.ops[0].pairing = STELE_PAIR_INTERLEAVED;
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_memory_equal(c.workspace[2], ((const float[]){1, -3, 2, -5, 4, 6}), 24);
  c.positions[0] = 0;
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_memory_equal(c.workspace[2], c.workspace[0], 24);
}

/* Rows that come with the call: those of the second kind lie behind all of the first. */
static void test_rope_rows(void **state) {
  (void)state;
  small s;
  call c;
  const float rows[6] = {9, 9, 1, 0, 0, 1}; /* kind 0: token 0; kind 1 (rotary 4): token 0 */
  small_init(&s, 1, 1, 1);
  small_buffers(&s, 4);
  s.ropes[0] = (stele_program_rope){STELE_ROPE_DYNAMIC, 2, -1, 0};
  s.ropes[1] = (stele_program_rope){STELE_ROPE_DYNAMIC, 4, -1, 0};
  s.ops[0].kind = STELE_OP_ROPE;
  s.ops[0].head = 4;
  s.ops[0].rotary = 4;
  s.ops[0].rope = 1;
  call_init(&c, NULL);
  c.args.rope = rows;
  memcpy(c.workspace[0], (const float[]){1, 2, 3, 4}, 16);
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_memory_equal(c.workspace[2], ((const float[]){1, -4, 3, 2}), 16);
}

/* d = 127 / 127 = 1: numbers are themselves, halves go to the even neighbour. */
static void test_quantise(void **state) {
  (void)state;
  _Alignas(4) uint8_t memory[64 + 2 * 8 + 4 * 2] = {0};
  int16_t sums[4];
  const ref_rows rows = {memory, STELE_Q8_0, 64};
  float x[64] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -127}, back[64], scales[4];
  ref_write(&rows, 0, 0, 64, x);
  ref_read(&rows, 0, 0, 64, back);
  assert_memory_equal(back, ((const float[]){127, 0, 2, 2, 0, -2, -127}), 28);
  memcpy(scales, memory + 64, sizeof scales);
  near(scales[0], 1);
  near(scales[1], 0); /* a block of zeros */
  near(scales[2], 2); /* d times the sum of the block */
  near(scales[3], 0);
  memcpy(sums, memory + 80, sizeof sums);
  assert_memory_equal(sums, ((const int16_t[]){2, 0, 0, 0}), sizeof sums);
}

/* ---- attention ------------------------------------------------------------------------- */

/* One head of one element, pages of two slots, three slots filled with keys 0 and values 1, 2, 3;
 * the query's own key is 0 too, its value 4: all scores are equal, the result is a mean. */
static void attention_init(small *s, call *c, float pages[2][4], const int32_t *tables[1]) {
  small_init(s, 1, 1, 2);
  small_buffers(s, 1);
  s->groups[0] = (stele_group){.kv_heads = 1,
                               .key_head = 1,
                               .value_head = 1,
                               .key_scheme = STELE_F32,
                               .value_scheme = STELE_F32,
                               .page_tokens = 2,
                               .table_entries = 8,
                               .page_bytes = 16,
                               .value_offset = 8};
  s->ops[0].kind = STELE_OP_CACHE_UPDATE;
  s->ops[0].layer = 0;
  s->ops[1].kind = STELE_OP_ATTENTION;
  s->ops[1].layer = 0;
  s->ops[1].heads = 1;
  s->ops[1].scale = 1;
  s->ops[1].barrier = 1;
  static const int32_t table[8] = {1, 0, -1, -1, -1, -1, -1, -1};
  static const float filled[2][4] = {{0, NAN, 3, NAN}, {0, 0, 1, 2}};
  tables[0] = table;
  memcpy(pages, filled, sizeof filled);
  call_init(c, NULL);
  c->filled[0] = 3;
  c->workspace[1][0] = 4;
  c->args.read_pages = c->args.store_pages = tables;
}

static float attend(small *s, call *c, float pages[2][4]) {
  uint8_t *layers[2] = {(uint8_t *)pages, NULL};
  c->env.layer_pages = layers;
  ref_step(&s->p, 0, &c->env, &c->args, 0, 1);
  return c->workspace[2][0];
}

static void test_attention(void **state) {
  (void)state;
  small s;
  call c;
  float pages[2][4];
  const int32_t *tables[1];
  attention_init(&s, &c, pages, tables);
  near(attend(&s, &c, pages), 2.5);
  near(pages[0][3], 4); /* the own value is in its slot */
  c.first[0] = 2;
  near(attend(&s, &c, pages), 3.5);
  c.first[0] = 4;
  near(attend(&s, &c, pages), 0);
  c.first[0] = 0;
  s.groups[0].window = 3;
  s.groups[0].kind = STELE_GROUP_WINDOW;
  near(attend(&s, &c, pages), 3);
  s.groups[0].window = 2;
  s.groups[0].kind = STELE_GROUP_CHUNK; /* chunks of slots (0, 1) and (2, 3) */
  near(attend(&s, &c, pages), 3.5);
  s.groups[0].window = 0;
  const uint64_t mask = 0x5; /* slots 0 and 2 */
  c.args.mask = &mask;
  near(attend(&s, &c, pages), 2);
  const uint64_t nothing = 0;
  c.args.mask = &nothing;
  near(attend(&s, &c, pages), 0);
}

/* Scores 0, 0, 0 and s give the own value the weight e^s. */
static void test_attention_scores(void **state) {
  (void)state;
  small s;
  call c;
  float pages[2][4];
  const int32_t *tables[1];
  attention_init(&s, &c, pages, tables);
  c.workspace[3][0] = 2;
  s.ops[1].in[0] = 3;
  c.workspace[0][0] = 0.5f; /* own key */
  near(attend(&s, &c, pages), (1 + 2 + 3 + 4 * exp(1)) / (3 + exp(1)));
  s.ops[1].scale = 3;
  s.ops[1].soft_cap = 2;
  double capped = exp(2 * tanh(3.0 / 2));
  near(attend(&s, &c, pages), (1 + 2 + 3 + 4 * capped) / (3 + capped));
}

/* A sink of s among four equal scores of 0 leaves 4 / (4 + e^s) of their mean. */
static void test_attention_sinks(void **state) {
  (void)state;
  small s;
  call c;
  float pages[2][4], sink = 1.5f;
  const int32_t *tables[1];
  attention_init(&s, &c, pages, tables);
  s.weights[0] = (stele_program_weight){.scheme = STELE_F32, .rows = 1, .columns = 1};
  s.ops[1].weight[STELE_W_SINKS] = 0;
  c.env.weights = (const uint8_t *)&sink;
  near(attend(&s, &c, pages), 2.5 * 4 / (4 + exp(1.5)));
  sink = -INFINITY;
  near(attend(&s, &c, pages), 2.5);
  c.first[0] = 4; /* nothing is seen */
  sink = 1;
  near(attend(&s, &c, pages), 0);
}

/* At position 5 and a floor of 2, 1 + log(1 + 3) / 2 = 1 + log 2. */
static void test_attention_query_scale(void **state) {
  (void)state;
  small s;
  call c;
  float pages[2][4];
  const int32_t *tables[1];
  attention_init(&s, &c, pages, tables);
  c.workspace[3][0] = 2;
  s.ops[1].in[0] = 3;
  c.workspace[0][0] = 0.5f; /* own key */
  c.positions[0] = 5;
  s.ops[1].query_scale = 0.5f;
  s.ops[1].query_floor = 2;
  double own = exp(1 + log(2));
  near(attend(&s, &c, pages), (1 + 2 + 3 + 4 * own) / (3 + own));
}

/* Keys 1, 2, 3 and 4 are the values too; a query of 0 makes their mean. */
static void test_attention_value_in_key(void **state) {
  (void)state;
  small s;
  call c;
  float pages[2][4];
  const int32_t *tables[1];
  attention_init(&s, &c, pages, tables);
  s.groups[0].value_in_key = 1;
  s.groups[0].value_offset = 16;
  s.ops[0].in[1] = -1;
  s.ops[1].in[0] = 3;
  memcpy(pages, (const float[2][4]){{3, NAN, NAN, NAN}, {1, 2, NAN, NAN}}, sizeof pages);
  c.workspace[0][0] = 4;
  near(attend(&s, &c, pages), 2.5);
  near(pages[0][1], 4);
}

/* ---- choosing a token ------------------------------------------------------------------ */

static void test_argmax_ties(void **state) {
  (void)state;
  small s;
  call c;
  small_init(&s, 1, 1, 1);
  small_buffers(&s, 10);
  s.ops[0].kind = STELE_OP_ARGMAX;
  s.buffers[2].scheme = STELE_I32;
  call_init(&c, NULL);
  memcpy(c.workspace[0], (const float[]){1, 7, 2, 7, 0, 0, 0, 7, 9, 9}, 40);
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  int32_t token;
  memcpy(&token, c.workspace[2], 4);
  assert_int_equal(token, 1); /* the first 7; 9 is beyond the vocabulary of 8 */
}

/* ---- tokens ---------------------------------------------------------------------------- */

/* Lanes with 3, 1 and 0 valid tokens of 3: rows of the others are left alone. */
static void test_ragged_lanes(void **state) {
  (void)state;
  small s;
  call c;
  small_init(&s, 3, 3, 2);
  small_buffers(&s, 1);
  s.ops[0].kind = STELE_OP_ACTIVATION;
  s.ops[0].function = STELE_RELU;
  s.ops[1].kind = STELE_OP_LAST_TOKEN;
  s.ops[1].tokens = 3;
  s.ops[1].in[0] = 2;
  s.ops[1].out = 3;
  call_init(&c, NULL);
  memcpy(c.valid, (const int32_t[]){3, 1, 0}, 12);
  for (int i = 0; i < 9; i++) c.workspace[0][i] = (float)i + 1;
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_memory_equal(c.workspace[2], ((const float[]){1, 2, 3, 4, 0, 0, 0, 0, 0}), 36);
  assert_memory_equal(c.workspace[3], ((const float[]){3, 4, 0}), 12);
}

/* ---- workers --------------------------------------------------------------------------- */

typedef struct trace {
  char text[128];
} trace;

static void note_barrier(void *data, uint32_t worker) {
  trace *t = data;
  snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "b%u ", worker);
}

static void note_hook(void *data, uint32_t layer, uint32_t end) {
  trace *t = data;
  snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "h%u%s ", layer,
           end ? "e" : "");
}

/* Each worker's own sequence of meetings: the same for all, with hooks by worker 0 only. */
static void test_hooks(void **state) {
  (void)state;
  small s;
  call c;
  trace t = {{0}};
  small_init(&s, 1, 1, 3);
  small_buffers(&s, 1);
  for (int i = 0; i < 3; i++) s.ops[i].kind = STELE_OP_ACTIVATION;
  s.ops[0].layer = 0;
  s.ops[1].layer = 0;
  s.ops[1].barrier = 1;
  s.ops[2].layer = 1;
  call_init(&c, NULL);
  c.env.barrier = note_barrier;
  c.env.layer_hook = note_hook;
  c.env.barrier_data = c.env.hook_data = &t;
  ref_step(&s.p, 0, &c.env, &c.args, 0, 2);
  assert_string_equal(t.text, "b0 h0 b0 b0 b0 h0e b0 b0 h1 b0 b0 h1e b0 ");
  t.text[0] = 0;
  ref_step(&s.p, 0, &c.env, &c.args, 1, 2);
  assert_string_equal(t.text, "b1 b1 b1 b1 b1 b1 b1 b1 b1 ");
  t.text[0] = 0;
  c.env.barrier = NULL; /* alone there is nobody to meet */
  ref_step(&s.p, 0, &c.env, &c.args, 0, 1);
  assert_string_equal(t.text, "h0 h0e h1 h1e ");
}

static void test_shares(void **state) {
  (void)state;
  for (uint32_t workers = 1; workers <= 5; workers++) {
    uint64_t next = 0;
    for (uint32_t w = 0; w < workers; w++) {
      const ref_run run = {.worker = w, .workers = workers};
      uint64_t begin, end;
      ref_share(&run, 7, &begin, &end);
      assert_int_equal(begin, next);
      next = end;
    }
    assert_int_equal(next, 7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_functions),
      cmocka_unit_test(test_norm),
      cmocka_unit_test(test_layer_norm),
      cmocka_unit_test(test_head_linear),
      cmocka_unit_test(test_concat),
      cmocka_unit_test(test_position_embed),
      cmocka_unit_test(test_scale_and_cap),
      cmocka_unit_test(test_rope_pairs),
      cmocka_unit_test(test_rope_rows),
      cmocka_unit_test(test_quantise),
      cmocka_unit_test(test_attention),
      cmocka_unit_test(test_attention_scores),
      cmocka_unit_test(test_attention_sinks),
      cmocka_unit_test(test_attention_query_scale),
      cmocka_unit_test(test_attention_value_in_key),
      cmocka_unit_test(test_argmax_ties),
      cmocka_unit_test(test_ragged_lanes),
      cmocka_unit_test(test_hooks),
      cmocka_unit_test(test_shares),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
