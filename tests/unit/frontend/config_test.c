/* Configurations: old and new form, GGUF metadata, every mistake named. */
#include "frontend/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common.h"
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "frontend/json.h"
#include "frontend/model.h"
#include "stele/program.h"

typedef struct reading {
  fe_model *model;
  stele_sink sink;
  stele_status status;
} reading;

/* What a family makes of a config.json's text. */
static reading describe(const char *text) {
  reading r = {0};
  json_t *root;
  fe_config config = {0};
  const fe_family *family;
  assert_int_equal(fe_model_create("m", &r.sink, &r.model), STELE_OK);
  assert_int_equal(fe_json_parse("config.json", text, strlen(text), &r.sink, &root), STELE_OK);
  r.status = fe_config_from_json(&r.model->arena, "config.json", root, &r.sink, &config);
  if (r.status == STELE_OK)
    r.status = fe_family_find(config.path, config.type, false, &r.sink, &family);
  if (r.status == STELE_OK) {
    r.model->family = family->name;
    r.status = family->describe(&config, r.model, &r.sink);
  }
  fe_config_deinit(&config);
  json_decref(root);
  return r;
}

static void done(reading *r) { fe_model_destroy(r->model); }

#define BASE                                                              \
  "\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4," \
  "\"intermediate_size\":96,\"vocab_size\":256"
#define LLAMA "\"model_type\":\"llama\"," BASE

static void expect_fails(const char *text, const char *word) {
  reading r = describe(text);
  if (r.status == STELE_OK) fail_msg("read, but '%s' was expected: %s", word, text);
  EXPECT_WORDS(&r.sink, "config.json", word);
  done(&r);
}

/* ---- the goldens' configurations ------------------------------------------------------- */

static reading describe_file(const char *name, const char *form) {
  char path[512], *text;
  size_t bytes;
  base_arena arena = {0};
  stele_sink sink;
  snprintf(path, sizeof path, CONFIGS "/%s.%s.json", name, form);
  assert_int_equal(base_file_read(&sink, &arena, path, 1 << 20, &text, &bytes), STELE_OK);
  reading r = describe(text);
  if (r.status != STELE_OK) fail_msg("%s: %s", path, r.sink.text);
  base_arena_deinit(&arena);
  return r;
}

static void expect_same(const fe_model *a, const fe_model *b) {
  assert_true(a->vocab == b->vocab && a->hidden == b->hidden && a->layers == b->layers);
  assert_true(a->heads == b->heads && a->kv_heads == b->kv_heads && a->key_head == b->key_head);
  assert_true(a->value_head == b->value_head && a->intermediate == b->intermediate);
  assert_true(a->model_positions == b->model_positions && a->function == b->function);
  assert_true(a->tied == b->tied && a->roles == b->roles && a->norm_eps == b->norm_eps);
  assert_true(a->layer->attention_scale == b->layer->attention_scale &&
              a->rope_count == b->rope_count);
  for (uint32_t i = 0; i < a->layers; i++) {
    const fe_layer *p = &a->layer[i], *q = &b->layer[i];
    assert_true(p->group_kind == q->group_kind && p->window == q->window && p->rope == q->rope);
    assert_true(p->roles == q->roles);
  }
  if (!a->rope_count) return;
  const fe_rope *x = a->ropes, *y = b->ropes;
  assert_true(x->rotary == y->rotary && x->rule == y->rule && x->pairing == y->pairing);
  assert_true(x->base == y->base && x->factor == y->factor && x->original == y->original);
  assert_memory_equal(x->inv_freq, y->inv_freq, x->rotary / 2 * sizeof *x->inv_freq);
}

static void old_and_new_form_agree(void **state) {
  (void)state;
  static const char *const names[] = {
      "llama2",  "llama3",    "llama_bias", "llama_linear",  "llama_dynamic", "llama_yarn",
      "qwen2",   "qwen3",     "mistral",    "qwen2_sliding", "phi3",          "phi3_longrope",
      "gemma",   "gemma2",    "gemma3",     "smollm3",       "olmo2",         "granite",
      "cohere",  "gpt2",      "opt",        "starcoder2",    "phi",           "gpt_neox",
      "mixtral", "qwen3_moe", "gpt_oss",    "llama4",        "deepseek_v3"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    reading a = describe_file(names[i], "new"), b = describe_file(names[i], "old");
    expect_same(a.model, b.model);
    done(&a);
    done(&b);
  }
}

static bool has(const fe_model *model, fe_role role) {
  uint64_t rows, columns;
  int32_t layer = fe_role_in_layers(role) ? 0 : -1;
  return fe_family_of(model)->has(model, role, layer, &rows, &columns);
}

static void families_differ_as_they_should(void **state) {
  (void)state;
  reading llama = describe_file("llama3", "new"), bias = describe_file("llama_bias", "new");
  reading qwen2 = describe_file("qwen2", "old"), qwen3 = describe_file("qwen3", "old");
  assert_false(has(llama.model, FE_Q_BIAS) || has(llama.model, FE_Q_NORM));
  assert_true(has(llama.model, FE_HEAD) && !llama.model->tied);
  assert_true(has(bias.model, FE_O_BIAS) && has(bias.model, FE_DOWN_BIAS));
  assert_true(has(qwen2.model, FE_Q_BIAS) && has(qwen2.model, FE_V_BIAS));
  assert_false(has(qwen2.model, FE_O_BIAS) || has(qwen2.model, FE_GATE_BIAS));
  assert_true(has(qwen3.model, FE_Q_NORM) && has(qwen3.model, FE_K_NORM));
  assert_false(has(qwen3.model, FE_Q_BIAS) || has(qwen3.model, FE_HEAD));
  assert_true(qwen3.model->tied && qwen3.model->key_head == 32);
  assert_true(fabs(qwen3.model->layer->attention_scale - 1.0 / sqrt(32.0)) < 1e-15);
  done(&llama);
  done(&bias);
  done(&qwen2);
  done(&qwen3);
}

static void layers_side_by_side_share_a_norm(void **state) {
  (void)state;
  reading a = describe("{\"model_type\":\"stablelm\"," BASE "}");
  assert_true(a.status == STELE_OK && !a.model->layer[1].parallel && has(a.model, FE_MLP_NORM));
  assert_true(a.model->ropes->rotary == 4 && has(a.model, FE_GATE) && !has(a.model, FE_Q_BIAS));
  reading b = describe("{\"model_type\":\"stablelm\"," BASE
                       ",\"use_parallel_residual\":true,\"use_qkv_bias\":true}");
  assert_true(b.status == STELE_OK && b.model->layer[1].parallel && !has(b.model, FE_MLP_NORM));
  assert_true(has(b.model, FE_V_BIAS) && !has(b.model, FE_O_BIAS) && !has(b.model, FE_Q_NORM));
  done(&a);
  done(&b);
}

static void scores_may_depend_on_the_layer(void **state) {
  (void)state;
  reading r =
      describe("{\"model_type\":\"gpt2\"," BASE ",\"scale_attn_by_inverse_layer_idx\":true}");
  assert_int_equal(r.status, STELE_OK);
  assert_true(r.model->layer[0].attention_scale == 0.25);
  assert_true(r.model->layer[1].attention_scale == 0.125);
  done(&r);
}

static void silent_configurations_take_defaults(void **state) {
  (void)state;
  reading r = describe("{" LLAMA "}");
  assert_int_equal(r.status, STELE_OK);
  assert_true(r.model->kv_heads == 4 && r.model->key_head == 16 && !r.model->tied);
  assert_true(r.model->norm_eps == 1e-6 && r.model->ropes->base == 10000.0);
  assert_true(r.model->function == STELE_SILU && r.model->model_positions == 2048);
  done(&r);
  r = describe("{\"model_type\":\"qwen3\"," BASE "}");
  assert_true(r.status == STELE_OK && r.model->key_head == 128);
  done(&r);
  r = describe("{" LLAMA ",\"head_dim\":null,\"rope_scaling\":null,\"num_key_value_heads\":null}");
  assert_true(r.status == STELE_OK && r.model->key_head == 16);
  done(&r);
}

/* A number beyond 64 bits anywhere in the file must not turn the others into reals. */
static void huge_numbers_are_harmless(void **state) {
  (void)state;
  reading r = describe("{" LLAMA
                       ",\"model_max_length\":1000000000000000019884624838656,"
                       "\"rope_theta\":500000.0,\"rms_norm_eps\":1e-5,"
                       "\"layer_types\":[\"full_attention\"]}");
  if (r.status != STELE_OK) fail_msg("%s", r.sink.text);
  assert_true(r.model->hidden == 64 && r.model->ropes->base == 500000.0);
  assert_true(r.model->norm_eps == 1e-5);
  done(&r);
  expect_fails("{" LLAMA ",\"head_dim\":1000000000000000019884624838656}", "'head_dim' is 1e30");
}

/* ---- mistakes -------------------------------------------------------------------------- */

static void fields_are_checked(void **state) {
  (void)state;
  expect_fails("{" BASE "}", "'model_type' is missing");
  expect_fails("{\"model_type\":3}", "'model_type' is 3, expected a string");
  expect_fails("{\"model_type\":\"mamba\"}",
               "'mamba' is not supported; supported: llama, mistral, mixtral, qwen2, qwen3");
  expect_fails("{" LLAMA ",\"num_key_value_heads\":3}", "multiple of the 3 key and value heads");
  expect_fails("{" LLAMA ",\"num_key_value_heads\":0}", "'num_key_value_heads' is 0, expected a");
  expect_fails("{" LLAMA ",\"num_key_value_heads\":\"2\"}", "is \"2\", expected a whole number");
  expect_fails("{" LLAMA ",\"num_key_value_heads\":[2]}", "is an array");
  expect_fails("{" LLAMA ",\"num_key_value_heads\":2.0}", "is 2.0");
  expect_fails("{" LLAMA ",\"head_dim\":15}", "'head_dim' is 15, but rope turns pairs");
  expect_fails("{" LLAMA ",\"head_dim\":70000}", "expected at most 65536");
  expect_fails("{" LLAMA ",\"rms_norm_eps\":0}", "'rms_norm_eps' is 0, expected a number above 0");
  expect_fails("{" LLAMA ",\"tie_word_embeddings\":1}", "is 1, expected true or false");
  expect_fails("{" LLAMA ",\"hidden_act\":\"mish\"}", "\"mish\", which is not supported");
  expect_fails("{" LLAMA ",\"hidden_act\":{}}", "'hidden_act' is an object");
  expect_fails(
      "{\"model_type\":\"llama\",\"hidden_size\":65,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"intermediate_size\":96,\"vocab_size\":256}",
      "'hidden_size' is 65, expected a multiple of the 4 attention heads");
  expect_fails(
      "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":20000,"
      "\"num_attention_heads\":4,\"intermediate_size\":96,\"vocab_size\":256}",
      "expected at most 10000");
}

static void every_mistake_is_listed(void **state) {
  (void)state;
  reading r = describe(
      "{\"model_type\":\"llama\",\"hidden_size\":-1,\"num_attention_heads\":4.5,"
      "\"vocab_size\":256,\"hidden_act\":\"tanh\",\"rope_scaling\":{\"type\":\"spiral\","
      "\"factor\":2}}");
  assert_int_equal(r.status, STELE_BAD_FORMAT);
  EXPECT_WORDS(&r.sink, "'hidden_size' is -1", "'num_attention_heads' is 4.5",
               "'num_hidden_layers' is missing", "'intermediate_size' is missing",
               "'hidden_act' is \"tanh\"", "'rope_scaling.rope_type' is \"spiral\"");
  done(&r);
}

static void unknown_mathematics_is_refused(void **state) {
  (void)state;
  expect_fails("{" LLAMA ",\"sliding_window\":4096}", "'sliding_window' is 4096");
  expect_fails("{" LLAMA ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]}",
               "has \"sliding_attention\" at 1");
  expect_fails("{" LLAMA ",\"quantization_config\":{\"bits\":4}}", "'quantization_config'");
  expect_fails("{" LLAMA ",\"num_local_experts\":8}", "'num_local_experts' is 8");
  expect_fails("{\"model_type\":\"mixtral\"," BASE
               ",\"num_key_value_heads\":2,\"num_local_experts\":4,\"num_experts_per_tok\":5}",
               "'num_experts_per_tok' is 5");
  expect_fails("{\"model_type\":\"qwen3_moe\"," BASE
               ",\"num_experts\":4,\"num_experts_per_tok\":2,\"mlp_only_layers\":1}",
               "'mlp_only_layers' is not a list");
  expect_fails("{\"model_type\":\"qwen3_moe\"," BASE
               ",\"num_experts\":4,\"num_experts_per_tok\":2,\"mlp_only_layers\":[0,\"1\"]}",
               "'mlp_only_layers' is not a list");
  expect_fails("{\"model_type\":\"llama4_text\"," BASE
               ",\"num_local_experts\":4,\"num_experts_per_tok\":1,\"moe_layers\":[-1]}",
               "'moe_layers' is not a list");
  expect_fails("{\"model_type\":\"deepseek_v3\"," BASE
               ",\"n_routed_experts\":8,\"first_k_dense_replace\":-1,"
               "\"num_nextn_predict_layers\":\"one\"}",
               "'first_k_dense_replace' is -1, expected a whole number from 0");
  expect_fails("{\"model_type\":\"deepseek_v3\"," BASE
               ",\"n_routed_experts\":8,\"num_nextn_predict_layers\":-1}",
               "'num_nextn_predict_layers' is -1, expected a whole number from 0");
  expect_fails("{\"model_type\":\"qwen2\"," BASE
               ",\"use_sliding_window\":true,\"sliding_window\":16,\"max_window_layers\":\"x\"}",
               "'max_window_layers' is \"x\", expected a whole number from 0");
  expect_fails("{" LLAMA ",\"partial_rotary_factor\":0.5}", "partial_rotary_factor");
  expect_fails("{" LLAMA ",\"logits_scaling\":8.0}", "'logits_scaling' is 8.0");
  expect_fails("{" LLAMA ",\"attention_bias\":true,\"qkv_bias\":true}", "'qkv_bias' is true");
  expect_fails("{\"model_type\":\"opt\"," BASE ",\"word_embed_proj_dim\":32}",
               "'word_embed_proj_dim' is 32, which is not supported");
  expect_fails("{\"model_type\":\"opt\"," BASE ",\"do_layer_norm_before\":false}",
               "'do_layer_norm_before' is false");
}

/* What config.json says of layers that differ. */
static void layers_are_checked(void **state) {
  (void)state;
  expect_fails("{\"model_type\":\"mistral\"," BASE ",\"sliding_window\":0}",
               "'sliding_window' is 0, expected a whole number from 1");
  expect_fails("{\"model_type\":\"qwen2\"," BASE
               ",\"use_sliding_window\":true,\"sliding_window\":16,"
               "\"layer_types\":[\"full_attention\",\"banded_attention\"]}",
               "'layer_types' has \"banded_attention\" at 1, which is not supported");
  expect_fails("{\"model_type\":\"qwen2\"," BASE
               ",\"use_sliding_window\":true,\"sliding_window\":16,"
               "\"layer_types\":[\"full_attention\"]}",
               "'layer_types' is not a list of 2 entries");
  expect_fails("{\"model_type\":\"smollm3\"," BASE
               ",\"num_key_value_heads\":2,\"no_rope_layers\":[1,\"x\"]}",
               "'no_rope_layers' has no number at 1");
}

static void layers_differ_as_they_should(void **state) {
  (void)state;
  reading a = describe("{\"model_type\":\"mistral\"," BASE "}");
  assert_true(a.status == STELE_OK && a.model->layer[1].window == 4096);
  assert_int_equal(a.model->layer[0].group_kind, STELE_GROUP_WINDOW);
  reading b = describe_file("qwen2_sliding", "new"), c = describe_file("smollm3", "old");
  assert_true(b.model->layer[0].window == 0 && b.model->layer[1].window == 16);
  assert_true(c.model->layer[2].rope == 0 && c.model->layer[3].rope == -1);
  reading d = describe("{\"model_type\":\"qwen2\"," BASE
                       ",\"use_sliding_window\":true,\"sliding_window\":16,"
                       "\"max_window_layers\":1}");
  assert_true(d.model->layer[0].window == 0 && d.model->layer[1].window == 16);
  done(&a);
  done(&b);
  done(&c);
  done(&d);
}

/* Without layer_types every sixth layer of Gemma 3 is full, every second of Gemma 2. */
static void gemmas_are_silent_of_much(void **state) {
  (void)state;
  static const char rest[] =
      "\"hidden_size\":64,\"num_hidden_layers\":7,\"num_attention_heads\":4,"
      "\"intermediate_size\":96,\"vocab_size\":256,\"final_logit_softcapping\":null}";
  char text[512];
  snprintf(text, sizeof text, "{\"model_type\":\"gemma3_text\",%s", rest);
  reading a = describe(text);
  snprintf(text, sizeof text, "{\"model_type\":\"gemma2\",%s", rest);
  reading b = describe(text);
  assert_true(a.status == STELE_OK && b.status == STELE_OK);
  for (uint32_t i = 0; i < 7; i++) {
    const fe_layer *x = &a.model->layer[i], *y = &b.model->layer[i];
    assert_int_equal(x->window, i == 5 ? 0 : 4096);
    assert_true(a.model->ropes[x->rope].base == (i == 5 ? 1e6 : 1e4));
    assert_int_equal(y->window, i % 2 ? 0 : 4096);
    assert_true(x->attention_scale == 0.0625 && y->attention_scale == 0.0625);
  }
  assert_true(a.model->soft_cap == 0 && a.model->logit_soft_cap == 0);
  assert_true(b.model->soft_cap == 50 && b.model->logit_soft_cap == 0);
  done(&a);
  done(&b);
}

static void neutral_values_are_fine(void **state) {
  (void)state;
  static const char *const texts[] = {
      "{" LLAMA
      ",\"rope_interleaved\":false,\"is_llama_config\":true,\"layer_types\":"
      "[\"full_attention\",\"full_attention\"],\"logits_scaling\":1,\"sliding_window\":null}",
      "{\"model_type\":\"mistral\"," BASE ",\"sliding_window\":null}",
      "{\"model_type\":\"qwen2\"," BASE
      ",\"sliding_window\":131072,\"max_window_layers\":28,"
      "\"use_sliding_window\":false}",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    reading r = describe(texts[i]);
    if (r.status != STELE_OK) fail_msg("%s", r.sink.text);
    done(&r);
  }
}

static void rope_parameters_are_checked(void **state) {
  (void)state;
  expect_fails("{" LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2.0}}",
               "'rope_scaling.original_max_position_embeddings' is missing");
  expect_fails("{" LLAMA ",\"rope_scaling\":{\"type\":\"mrope\"}}", "is \"mrope\", which is not");
  expect_fails("{\"model_type\":\"phi3\"," BASE
               ",\"original_max_position_embeddings\":32,\"rope_scaling\":{\"type\":\"longrope\","
               "\"short_factor\":[1,1],\"long_factor\":[1,1,1,1,1,1,1,0]}}",
               "'rope_scaling.short_factor' is not a list of 8 numbers");
  expect_fails("{\"model_type\":\"phi3\"," BASE
               ",\"original_max_position_embeddings\":32,\"rope_scaling\":{\"type\":\"longrope\","
               "\"short_factor\":[1,1],\"long_factor\":[1,1,1,1,1,1,1,0]}}",
               "'rope_scaling.long_factor' has 0 at 7");
  expect_fails("{\"model_type\":\"phi3\"," BASE ",\"partial_rotary_factor\":0.2}",
               "makes 3 elements");
  expect_fails("{" LLAMA ",\"rope_scaling\":{\"type\":\"linear\"}}",
               "'rope_scaling.factor' is missing");
  expect_fails("{" LLAMA ",\"rope_scaling\":7}", "'rope_scaling' is 7, expected an object");
  expect_fails("{" LLAMA ",\"rope_parameters\":[1]}", "'rope_parameters' is an array");
  expect_fails("{" LLAMA ",\"rope_parameters\":{\"mrope_section\":[1]}}",
               "'rope_parameters.mrope_section' is not understood");
  expect_fails("{" LLAMA
               ",\"rope_parameters\":{\"rope_type\":\"llama3\",\"factor\":8,"
               "\"low_freq_factor\":4,\"high_freq_factor\":1,"
               "\"original_max_position_embeddings\":64}}",
               "expected more than 'low_freq_factor'");
  expect_fails("{" LLAMA ",\"rope_parameters\":{\"rope_type\":\"llama3\",\"factor\":8}}",
               "'rope_parameters.low_freq_factor' is missing");
  expect_fails("{" LLAMA ",\"rope_theta\":-1}", "'rope_theta' is -1");
  expect_fails("{" LLAMA ",\"head_dim\":2,\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}}",
               "at least 4 elements");
}

/* ---- rope ------------------------------------------------------------------------------ */

static void expect_frequencies(const fe_rope *rope, const double *expected) {
  for (uint32_t i = 0; i < rope->rotary / 2; i++)
    assert_true(fabs(rope->inv_freq[i] / expected[i] - 1.0) < 1.3e-7); /* one float32 step */
}

/* Expected values: transformers' formulas evaluated by numpy in float32. */
static void frequencies_are_those_of_transformers(void **state) {
  (void)state;
  static const double plain[] = {1.0,
                                 0.3162277638912201,
                                 0.10000000149011612,
                                 0.03162277862429619,
                                 0.009999999776482582,
                                 0.003162277862429619,
                                 0.0010000000474974513,
                                 0.0003162277862429619};
  static const double scaled[] = {1.0,
                                  0.24438458681106567,
                                  0.013042256236076355,
                                  0.0039528473280370235,
                                  0.0012499999720603228,
                                  0.00039528473280370235,
                                  0.0001250000059371814,
                                  3.9528473280370235e-05};
  double quarter[8];
  for (int i = 0; i < 8; i++) quarter[i] = plain[i] / 4.0;
  reading a = describe_file("llama2", "new"), b = describe_file("llama3", "old");
  reading c = describe_file("llama_linear", "new"), d = describe_file("llama_dynamic", "old");
  expect_frequencies(a.model->ropes, plain);
  expect_frequencies(b.model->ropes, scaled);
  expect_frequencies(c.model->ropes, quarter);
  expect_frequencies(d.model->ropes, plain);
  assert_true(d.model->ropes->rule == STELE_ROPE_DYNAMIC && d.model->ropes->factor == 2.0);
  assert_true(d.model->ropes->original == 32 && a.model->ropes->rule == STELE_ROPE_FIXED);
  assert_true(a.model->ropes->pairing == STELE_PAIR_HALVES);
  done(&a);
  done(&b);
  done(&c);
  done(&d);
}

/* Llama 3.2 1B: 64 a head, theta 500000. */
static void frequencies_of_llama_3_2(void **state) {
  (void)state;
  static const double expected[] = {1.0,
                                    0.663601279258728,
                                    0.44036662578582764,
                                    0.2922278344631195,
                                    0.193922758102417,
                                    0.12868738174438477,
                                    0.08539710193872452,
                                    0.05666961893439293,
                                    0.03760603070259094,
                                    0.02495540864765644,
                                    0.016560440883040428,
                                    0.010989529080688953,
                                    0.00729266507551074,
                                    0.00483942124992609,
                                    0.0032114461064338684,
                                    0.0012905480107292533,
                                    0.000429556705057621,
                                    9.708286233944818e-05,
                                    1.9461638657958247e-05,
                                    1.291476746700937e-05,
                                    8.570255886297673e-06,
                                    5.687232260243036e-06,
                                    3.7740544485131977e-06,
                                    2.504467147446121e-06,
                                    1.6619674170215148e-06,
                                    1.1028836297555245e-06,
                                    7.318749339901842e-07,
                                    4.856731266045244e-07,
                                    3.2229328894572973e-07,
                                    2.1387423032592778e-07,
                                    1.4192720243499934e-07,
                                    9.418306490260875e-08};
  reading r = describe("{" LLAMA
                       ",\"head_dim\":64,\"rope_theta\":500000.0,\"rope_scaling\":"
                       "{\"factor\":32.0,\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
                       "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"}}");
  assert_int_equal(r.status, STELE_OK);
  expect_frequencies(r.model->ropes, expected);
  done(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(old_and_new_form_agree),
      cmocka_unit_test(families_differ_as_they_should),
      cmocka_unit_test(layers_side_by_side_share_a_norm),
      cmocka_unit_test(scores_may_depend_on_the_layer),
      cmocka_unit_test(silent_configurations_take_defaults),
      cmocka_unit_test(huge_numbers_are_harmless),
      cmocka_unit_test(fields_are_checked),
      cmocka_unit_test(every_mistake_is_listed),
      cmocka_unit_test(unknown_mathematics_is_refused),
      cmocka_unit_test(layers_are_checked),
      cmocka_unit_test(layers_differ_as_they_should),
      cmocka_unit_test(gemmas_are_silent_of_much),
      cmocka_unit_test(neutral_values_are_fine),
      cmocka_unit_test(rope_parameters_are_checked),
      cmocka_unit_test(frequencies_are_those_of_transformers),
      cmocka_unit_test(frequencies_of_llama_3_2),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
