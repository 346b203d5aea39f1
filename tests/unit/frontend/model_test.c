/* Opening whole models: both formats tell the same, and the tensor list is checked at once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "stele/program.h"
#include "support/bytes.h"
#include "support/test_model.h"
#include "weights/weights.h"

typedef struct fixture {
  char directory[64], hf[80], gguf[80];
  test_options options;
  fe_model *model;
  stele_sink sink;
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  make_directory(f->directory);
  snprintf(f->hf, sizeof f->hf, "%s/tiny", f->directory);
  snprintf(f->gguf, sizeof f->gguf, "%s/tiny.gguf", f->directory);
  f->options = test_options_default();
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  fe_model_destroy(f->model);
  remove_directory(f->directory);
  free(f);
  return 0;
}

static void draw(fixture *f) {
  fe_model_destroy(f->model);
  f->model = NULL;
  assert_int_equal(test_model_random(&f->options, &f->sink, &f->model), STELE_OK);
}

static void save_hf(fixture *f, uint32_t scheme) {
  stele_status status = test_model_save_hf(&f->options, f->model, scheme, f->hf, &f->sink);
  if (status != STELE_OK) fail_msg("%s", f->sink.text);
}

static void save_gguf(fixture *f, uint32_t scheme) {
  stele_status status = test_model_save_gguf(f->model, scheme, scheme, f->gguf, &f->sink);
  if (status != STELE_OK) fail_msg("%s", f->sink.text);
}

static fe_model *open_model(fixture *f, const char *path) {
  fe_model *model = NULL;
  if (fe_model_open(path, &f->sink, &model) != STELE_OK) fail_msg("%s", f->sink.text);
  return model;
}

static fe_tensor *tensor(fixture *f, const char *name) {
  for (size_t i = 0; i < f->model->tensors.count; i++)
    if (strcmp(f->model->tensors.list[i].name, name) == 0) return &f->model->tensors.list[i];
  fail_msg("no tensor '%s'", name);
  return NULL;
}

static void drop(fixture *f, const char *name) {
  fe_tensor *place = tensor(f, name);
  *place = f->model->tensors.list[--f->model->tensors.count];
}

static void add(fixture *f, const char *name, const char *like) {
  fe_tensors *all = &f->model->tensors;
  fe_tensor *list = base_arena_alloc(&f->model->arena, all->count + 1, sizeof *list);
  assert_non_null(list);
  memcpy(list, all->list, all->count * sizeof *list);
  list[all->count] = *tensor(f, like);
  list[all->count++].name = name;
  all->list = list;
}

/* ---- sound models ---------------------------------------------------------------------- */

static void decode(const fe_weight *w, uint64_t row, float *out) {
  uint8_t buffer[4096];
  assert_true(w->columns <= sizeof buffer / sizeof *out);
  weights_decode(w->scheme, fe_weight_rows(w, row, 1, buffer), w->columns, out);
}

/* Row r of a matrix of heads, as llama.cpp's converter moves it. */
static uint64_t moved(uint64_t row, uint32_t head) {
  uint64_t i = row % head;
  return row - i + (i < head / 2 ? 2 * i : 2 * (i - head / 2) + 1);
}

static void expect_same_weights(const fe_model *hf, const fe_model *gguf, bool permuted) {
  assert_int_equal(hf->weight_count, gguf->weight_count);
  for (uint32_t i = 0; i < hf->weight_count; i++) {
    const fe_weight *a = &hf->weights[i];
    const fe_weight *b = fe_model_weight(gguf, (fe_role)a->role, a->layer);
    bool turn = permuted && (a->role == FE_Q || a->role == FE_K);
    bool turn_bias = permuted && (a->role == FE_Q_BIAS || a->role == FE_K_BIAS);
    float x[512], y[512];
    assert_true(b && a->rows == b->rows && a->columns == b->columns && a->columns <= 512);
    for (uint64_t r = 0; r < a->rows; r++) {
      decode(a, r, x);
      decode(b, turn ? moved(r, hf->key_head) : r, y);
      for (uint64_t c = 0; c < a->columns; c++)
        if (x[c] != y[turn_bias ? moved(c, hf->key_head) : c])
          fail_msg("%s: row %d, column %d", a->name, (int)r, (int)c);
    }
  }
}

static void expect_same_dimensions(const fe_model *a, const fe_model *b) {
  assert_string_equal(a->family, b->family);
  assert_true(a->vocab == b->vocab && a->hidden == b->hidden && a->layers == b->layers);
  assert_true(a->heads == b->heads && a->kv_heads == b->kv_heads && a->key_head == b->key_head);
  assert_true(a->value_head == b->value_head && a->intermediate == b->intermediate);
  assert_true(a->model_positions == b->model_positions && a->function == b->function);
  assert_true(a->tied == b->tied && a->roles == b->roles && a->norm == b->norm);
  assert_true(a->embed_scale == b->embed_scale && a->residual_scale == b->residual_scale);
  assert_true(a->logit_scale == b->logit_scale && a->head_norm == b->head_norm);
  assert_true(a->soft_cap == b->soft_cap && a->logit_soft_cap == b->logit_soft_cap);
  assert_int_equal(a->rope_count, b->rope_count);
  for (uint32_t i = 0; i < a->rope_count; i++) assert_true(a->ropes[i].base == b->ropes[i].base);
  for (uint32_t i = 0; i < a->layers; i++) {
    const fe_layer *x = &a->layer[i], *y = &b->layer[i];
    assert_true(x->roles == y->roles && x->rope == y->rope && x->parallel == y->parallel);
    assert_true(x->group_kind == y->group_kind && x->window == y->window);
    assert_true(fabs(x->attention_scale - y->attention_scale) < 1e-8);
  }
  assert_int_equal(a->ropes->rule, b->ropes->rule);
  for (uint32_t i = 0; a->ropes->long_factors && i < a->ropes->rotary / 2; i++)
    assert_true(a->ropes->long_factors[i] == b->ropes->long_factors[i]);
  assert_true(a->ropes->base == b->ropes->base && a->ropes->rotary == b->ropes->rotary);
  for (uint32_t i = 0; i < a->ropes->rotary / 2; i++)
    assert_true(fabs(a->ropes->inv_freq[i] / b->ropes->inv_freq[i] - 1.0) < 2.5e-7);
}

static void both_formats_tell_the_same(void **state) {
  fixture *f = *state;
  static const struct {
    const char *family, *rope;
    bool tied, bias;
    const char *fields;
  } cases[] = {
      {"llama", NULL, false, false, NULL},
      {"llama", "{\"rope_type\":\"linear\",\"factor\":4.0,\"rope_theta\":20000.0}", true, true,
       NULL},
      {"llama",
       "{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
       "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":64,\"rope_theta\":10000.0}",
       false, false, NULL},
      {"llama",
       "{\"rope_type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":32,"
       "\"rope_theta\":10000.0}",
       false, false, NULL},
      {"qwen2", NULL, false, false, NULL},
      {"qwen3", NULL, true, false, NULL},
      {"qwen3", NULL, false, true, NULL},
      {"phi3", NULL, false, false, "\"sliding_window\":8"},
      {"phi3",
       "{\"rope_type\":\"longrope\",\"original_max_position_embeddings\":32,"
       "\"rope_theta\":10000.0,\"short_factor\":[1,1,1,1,1,1,1,1],"
       "\"long_factor\":[1,2,3,4,5,6,7,8]}",
       false, false, NULL},
      {"gemma", NULL, true, false, "\"hidden_activation\":\"gelu_pytorch_tanh\""},
      {"gemma2", NULL, true, false,
       "\"hidden_activation\":\"gelu_pytorch_tanh\",\"sliding_window\":8,"
       "\"query_pre_attn_scalar\":16,\"attn_logit_softcapping\":4.0"},
      {"gemma3_text", "{\"rope_type\":\"linear\",\"factor\":8.0,\"rope_theta\":50000.0}", true,
       false,
       "\"hidden_activation\":\"gelu_pytorch_tanh\",\"sliding_window\":8,"
       "\"query_pre_attn_scalar\":16,\"rope_local_base_freq\":5000.0,"
       "\"layer_types\":[\"full_attention\",\"sliding_attention\"]"},
      {"smollm3", NULL, true, true, NULL},
      {"olmo2", NULL, false, false, NULL},
      {"granite", NULL, false, false,
       "\"attention_multiplier\":0.2,\"embedding_multiplier\":3.0,\"residual_multiplier\":0.5,"
       "\"logits_scaling\":2.0"},
      {"cohere", NULL, true, false, "\"use_qk_norm\":true,\"logit_scale\":0.5"},
      {"qwen3_moe", NULL, false, false,
       "\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,"
       "\"norm_topk_prob\":true"},
      {"gpt_oss", NULL, false, false,
       "\"num_local_experts\":4,\"num_experts_per_tok\":2,\"sliding_window\":8"},
      {"llama4_text", NULL, false, false,
       "\"num_local_experts\":4,\"num_experts_per_tok\":1,\"intermediate_size_mlp\":96,"
       "\"attention_chunk_size\":8,\"floor_scale\":4"},
      {"deepseek_v3", NULL, false, false,
       "\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"n_group\":2,\"topk_group\":1,"
       "\"moe_intermediate_size\":32,\"first_k_dense_replace\":1,\"kv_lora_rank\":16,"
       "\"q_lora_rank\":24,\"qk_nope_head_dim\":16,\"qk_rope_head_dim\":8,\"v_head_dim\":16"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    f->options.family = cases[i].family;
    f->options.rope = cases[i].rope;
    f->options.tied = cases[i].tied;
    f->options.attention_bias = cases[i].bias;
    f->options.mlp_bias = cases[i].bias && strcmp(cases[i].family, "qwen3") != 0;
    f->options.fields = cases[i].fields;
    draw(f);
    save_hf(f, STELE_F32);
    save_gguf(f, STELE_F32);
    fe_model *hf = open_model(f, f->hf), *gguf = open_model(f, f->gguf);
    expect_same_dimensions(hf, gguf);
    expect_same_weights(hf, gguf, hf->ropes->pairing != gguf->ropes->pairing);
    fe_model_destroy(hf);
    fe_model_destroy(gguf);
  }
}

static void schemes_stay_as_they_are(void **state) {
  fixture *f = *state;
  draw(f);
  for (uint32_t scheme = STELE_F32; scheme <= STELE_BF16; scheme++) {
    save_hf(f, scheme);
    fe_model *model = open_model(f, f->hf);
    assert_int_equal(fe_model_weight(model, FE_DOWN, 1)->scheme, scheme);
    assert_int_equal(fe_model_weight(model, FE_FINAL_NORM, -1)->scheme, scheme);
    assert_int_equal(model->weight_scheme_class, scheme);
    fe_model_destroy(model);
  }
  for (uint32_t scheme = STELE_F32; scheme <= STELE_Q5_1; scheme++) {
    if (scheme == STELE_I32) continue;
    save_gguf(f, scheme);
    fe_model *model = open_model(f, f->gguf);
    assert_int_equal(fe_model_weight(model, FE_DOWN, 1)->scheme, scheme);
    assert_int_equal(fe_model_weight(model, FE_FINAL_NORM, -1)->scheme, STELE_F32);
    assert_int_equal(model->weight_scheme_class, scheme);
    fe_model_destroy(model);
  }
}

static void weights_come_in_order(void **state) {
  fixture *f = *state;
  draw(f);
  save_hf(f, STELE_F32);
  fe_model *model = open_model(f, in(f->directory, "tiny/."));
  assert_string_equal(model->name, "tiny");
  fe_model_destroy(model);
  model = open_model(f, in(f->directory, "tiny/"));
  assert_string_equal(model->name, "tiny");
  assert_string_equal(model->weights[0].name, "model.embed_tokens.weight");
  assert_string_equal(model->weights[1].name, "model.layers.0.input_layernorm.weight");
  for (uint32_t i = 2; i + 2 < model->weight_count; i++)
    assert_true(model->weights[i].layer >= model->weights[i - 1].layer);
  assert_string_equal(model->weights[model->weight_count - 1].name, "lm_head.weight");
  assert_null(fe_model_weight(model, FE_Q_BIAS, 0));
  assert_null(fe_model_weight(model, FE_Q, 2));
  assert_int_equal(model->layer[1].group_kind, STELE_GROUP_FULL);
  fe_model_destroy(model);
}

/* ---- weights in shared tensors --------------------------------------------------------- */

/* Row r of a tensor that the model was drawn with. */
static const float *row_of(fixture *f, const char *name, uint64_t row) {
  const fe_tensor *t = tensor(f, name);
  uint64_t columns = t->dim_count > 1 ? t->dims[t->dim_count - 1] : 1;
  return (const float *)(const void *)t->data + row * columns;
}

static void fused_tensors_are_taken_apart(void **state) {
  fixture *f = *state;
  f->options.family = "phi3"; /* 64 rows of Q, 32 of K, 32 of V; 96 of gate, 96 of up */
  draw(f);
  const fe_model *m = f->model;
  const char *qkv = "model.layers.1.self_attn.qkv_proj.weight";
  const char *both = "model.layers.1.mlp.gate_up_proj.weight";
  const fe_weight *k = fe_model_weight(m, FE_K, 1), *v = fe_model_weight(m, FE_V, 1);
  const fe_weight *up = fe_model_weight(m, FE_UP, 1);
  assert_string_equal(k->name, "model.layers.1.self_attn.qkv_proj.weight:k");
  assert_ptr_equal(k->data, row_of(f, qkv, 64)); /* nothing is copied */
  assert_ptr_equal(v->data, row_of(f, qkv, 96));
  assert_ptr_equal(up->data, row_of(f, both, 96));
  uint64_t run = 0;
  assert_ptr_equal(fe_weight_run(v, 3, &run), row_of(f, qkv, 99));
  assert_int_equal(run, 29);
  tensor(f, qkv)->dims[0] = 120;
  save_hf(f, STELE_F32);
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "qkv_proj.weight' has the shape [120, 64], expected [128, 64]");
}

static void norms_are_stored_less_one(void **state) {
  fixture *f = *state;
  f->options.family = "gemma";
  f->options.tied = true;
  draw(f);
  const char *name = "model.layers.0.input_layernorm.weight";
  const fe_weight *w = fe_model_weight(f->model, FE_ATTENTION_NORM, 0);
  uint8_t buffer[256];
  const float *found = (const float *)(const void *)fe_weight_rows(w, 0, 1, buffer);
  assert_null(w->data);
  for (uint64_t i = 0; i < 64; i++) assert_true(found[i] == *row_of(f, name, i) + 1.0f);
}

/* Blocks, steps, columns, parts, constants: what each number must be follows from its tensor. */
static void views_are_followed(void **state) {
  (void)state;
  float numbers[2][24], out[24];
  fe_tensor tensors[2] = {{.scheme = STELE_F32, .dim_count = 2, .dims = {6, 4}},
                          {.scheme = STELE_F32, .dim_count = 2, .dims = {6, 4}}};
  const fe_tensor *parts[] = {&tensors[0], &tensors[1]};
  for (int t = 0; t < 2; t++) {
    tensors[t].data = (const uint8_t *)numbers[t];
    for (int i = 0; i < 24; i++) numbers[t][i] = (float)(100 * t + i);
  }
  fe_weight w = {.scheme = STELE_F32, .rows = 4, .columns = 4, .parts = parts, .part_count = 1};
  w.view = (fe_view){.block = 2, .first = 1, .stride = 3, .step = 1}; /* rows 1, 2, 4, 5 */
  uint64_t run;
  assert_ptr_equal(fe_weight_rows(&w, 0, 2, (uint8_t *)out), &numbers[0][4]);
  assert_ptr_equal(fe_weight_run(&w, 1, &run), &numbers[0][8]);
  assert_int_equal(run, 1);
  fe_weight_rows(&w, 1, 2, (uint8_t *)out);
  assert_true(out[0] == 8 && out[3] == 11 && out[4] == 16 && out[7] == 19);
  w.view = (fe_view){.first = 1, .step = 2, .transposed = true}; /* columns 1 and 3 */
  w.rows = 2, w.columns = 6;
  fe_weight_rows(&w, 0, 2, (uint8_t *)out);
  for (int i = 0; i < 6; i++)
    assert_true(out[i] == numbers[0][4 * i + 1] && out[6 + i] == numbers[0][4 * i + 3]);
  w.view = (fe_view){.block = 2, .stride = 3, .step = 1, .transposed = true};
  w.rows = 4, w.columns = 3; /* columns 0 and 1 of rows 0 to 2, then of rows 3 to 5 */
  fe_weight_rows(&w, 1, 2, (uint8_t *)out);
  assert_true(out[0] == 1 && out[1] == 5 && out[2] == 9 && out[3] == 12 && out[5] == 20);
  w.view = (fe_view){.block = 6, .step = 1};
  w.rows = 12, w.columns = 4, w.part_count = 2;
  assert_ptr_equal(fe_weight_rows(&w, 7, 2, (uint8_t *)out), &numbers[1][4]);
  fe_weight_rows(&w, 5, 2, (uint8_t *)out);
  assert_true(out[0] == 20 && out[4] == 100);
  w = (fe_weight){.scheme = STELE_F32, .rows = 1, .columns = 5, .vector = true, .plus = 1};
  fe_weight_rows(&w, 0, 1, (uint8_t *)out);
  assert_true(out[0] == 1 && out[4] == 1);
}

/* ---- tied and untied ------------------------------------------------------------------- */

static void tied_heads_are_the_embedding(void **state) {
  fixture *f = *state;
  f->options.tied = true;
  draw(f);
  save_hf(f, STELE_F32);
  fe_model *model = open_model(f, f->hf);
  assert_true(model->tied);
  assert_ptr_equal(fe_model_weight(model, FE_HEAD, -1), fe_model_weight(model, FE_EMBED, -1));
  fe_model_destroy(model);
  add(f, "lm_head.weight", "model.embed_tokens.weight"); /* the same bytes once more: fine */
  save_hf(f, STELE_F32);
  model = open_model(f, f->hf);
  assert_string_equal(fe_model_weight(model, FE_HEAD, -1)->name, "model.embed_tokens.weight");
  fe_model_destroy(model);
}

static void tied_but_different_is_an_error(void **state) {
  fixture *f = *state;
  draw(f);
  f->options.tied = true; /* the weights were drawn untied */
  save_hf(f, STELE_F32);
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "'lm_head.weight' differs from 'model.embed_tokens.weight'",
               "tie_word_embeddings is true");
}

/* GPT-2's published files were written from a part of the model. */
static void prefixes_may_be_left_out(void **state) {
  static const char prefix[] = "transformer.";
  fixture *f = *state;
  f->options.family = "gpt2";
  draw(f);
  f->options.tied = true; /* the weights were drawn untied */
  for (size_t i = 0; i < f->model->tensors.count; i++)
    if (strncmp(f->model->tensors.list[i].name, prefix, strlen(prefix)) == 0)
      f->model->tensors.list[i].name += strlen(prefix);
  save_hf(f, STELE_F32);
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "1 tensors do not fit", "'lm_head.weight' differs from");
  drop(f, "lm_head.weight");
  save_hf(f, STELE_F32);
  fe_model_destroy(open_model(f, f->hf));
}

static void tensors_of_heads_are_one_weight(void **state) {
  fixture *f = *state;
  f->options.family = "stablelm";
  f->options.fields = "\"qk_layernorm\": true";
  draw(f);
  const fe_weight *w = fe_model_weight(f->model, FE_Q_NORM, 1);
  float buffer[64];
  const float *found = (const float *)(const void *)fe_weight_rows(w, 0, 1, (uint8_t *)buffer);
  assert_true(w->part_count == f->options.heads && w->columns == 64);
  for (uint64_t i = 0; i < 16; i++)
    assert_true(found[32 + i] ==
                *row_of(f, "model.layers.1.self_attn.q_layernorm.norms.2.weight", i));
  drop(f, "model.layers.1.self_attn.q_layernorm.norms.2.weight");
  save_hf(f, STELE_F32);
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "'model.layers.1.self_attn.q_layernorm.norms.2.weight' is missing");
}

static void untied_without_head_is_an_error(void **state) {
  fixture *f = *state;
  draw(f);
  drop(f, "lm_head.weight");
  save_hf(f, STELE_F32);
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "'lm_head.weight' is missing (tie_word_embeddings is false)");
}

/* ---- the tensor list ------------------------------------------------------------------- */

static void every_wrong_tensor_is_listed(void **state) {
  fixture *f = *state;
  draw(f);
  drop(f, "model.layers.1.mlp.up_proj.weight");
  drop(f, "model.norm.weight");
  add(f, "model.layers.7.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight");
  add(f, "model.layers.0.self_attn.q_proj.bias", "model.layers.0.input_layernorm.weight");
  tensor(f, "model.layers.0.self_attn.k_proj.weight")->dims[0] = 16;
  tensor(f, "model.layers.1.input_layernorm.weight")->dims[0] = 32;
  save_hf(f, STELE_F16);
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "6 tensors", "missing: 2", "not expected: 2", "another shape: 2",
               "'model.layers.1.mlp.up_proj.weight' is missing", "'model.norm.weight' is missing",
               "'model.layers.7.mlp.up_proj.weight' is not expected",
               "'model.layers.0.self_attn.q_proj.bias' is not expected",
               "'model.layers.0.self_attn.k_proj.weight' has the shape [16, 64], expected [32, 64]",
               "'model.layers.1.input_layernorm.weight' has the shape [32], expected [64]");
}

static void biases_are_there_exactly_when_said(void **state) {
  fixture *f = *state;
  draw(f);
  f->options.attention_bias = f->options.mlp_bias = true;
  save_hf(f, STELE_F32);
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "missing: 14", "'model.layers.1.self_attn.o_proj.bias' is missing",
               "'model.layers.0.mlp.down_proj.bias' is missing");
}

static void old_buffers_are_ignored(void **state) {
  fixture *f = *state;
  draw(f);
  add(f, "model.layers.0.self_attn.rotary_emb.inv_freq", "model.norm.weight");
  save_hf(f, STELE_F32);
  fe_model_destroy(open_model(f, f->hf));
}

/* Changes the first occurrence of a text in a file to another of the same length. */
static void patch(const char *path, const char *from, const char *to) {
  base_arena arena = {0};
  stele_sink sink;
  char *bytes;
  size_t size;
  assert_int_equal(base_file_read(&sink, &arena, path, 1 << 24, &bytes, &size), STELE_OK);
  char *at = memmem(bytes, size, from, strlen(from));
  assert_non_null(at);
  memcpy(at, to, strlen(to));
  assert_int_equal(put_file(path, bytes, size, &sink), STELE_OK);
  base_arena_deinit(&arena);
}

static void unsupported_types_are_named(void **state) {
  fixture *f = *state;
  draw(f);
  save_hf(f, STELE_F32);
  patch(in(f->hf, "model.safetensors"), "\"dtype\":\"F32\",\"shape\":[256,64]",
        "\"dtype\":\"I32\",\"shape\":[256,64]");
  patch(in(f->hf, "model.safetensors"), "\"dtype\":\"F32\",\"shape\":[96,64]",
        "\"dtype\":\"U32\",\"shape\":[96,64]");
  expect_open_fails(f->hf, STELE_UNSUPPORTED, &f->sink);
  EXPECT_WORDS(&f->sink, "'I32' of tensor 'lm_head.weight' is not supported",
               "'U32' of tensor 'model.layers.0.mlp.gate_proj.weight'", "F32, F16, BF16");
}

/* Another type for a tensor of one dimension in a GGUF file: its entry is the name, the number of
 * dimensions, one size, the type. */
static void retype(const char *path, const char *name, uint8_t type) {
  base_arena arena = {0};
  stele_sink sink;
  char *bytes;
  size_t size;
  assert_int_equal(base_file_read(&sink, &arena, path, 1 << 24, &bytes, &size), STELE_OK);
  char *at = memmem(bytes, size, name, strlen(name));
  assert_non_null(at);
  at[strlen(name) + 4 + 8] = (char)type;
  assert_int_equal(put_file(path, bytes, size, &sink), STELE_OK);
  base_arena_deinit(&arena);
}

static void unsupported_gguf_types_are_named(void **state) {
  fixture *f = *state;
  draw(f);
  save_gguf(f, STELE_F32);
  retype(f->gguf, "blk.0.attn_norm.weight", 8);
  expect_open_fails(f->gguf, STELE_UNSUPPORTED, &f->sink);
  EXPECT_WORDS(&f->sink, "'blk.0.attn_norm.weight' is a vector of type Q8_0, expected F32");
  retype(f->gguf, "blk.0.attn_norm.weight", 16);
  retype(f->gguf, "blk.1.attn_norm.weight", 16);
  expect_open_fails(f->gguf, STELE_UNSUPPORTED, &f->sink);
  EXPECT_WORDS(&f->sink, "the type 'IQ2_XXS' of tensor 'blk.0.attn_norm.weight' and others",
               "supported: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K");
}

/* ---- shards ---------------------------------------------------------------------------- */

/* Writes the even tensors into one shard and the odd ones into another, and an index. */
static void save_shards(fixture *f) {
  char index[8192] = "{\"metadata\":{},\"weight_map\":{";
  fe_model all = *f->model, part = all;
  save_hf(f, STELE_F32);
  assert_int_equal(remove(in(f->hf, "model.safetensors")), 0);
  for (uint32_t shard = 0; shard < 2; shard++) {
    fe_tensor some[64];
    char target[64];
    part.tensors = (fe_tensors){.list = some};
    snprintf(target, sizeof target, "model-0000%u-of-00002.safetensors", shard + 1);
    for (size_t i = shard; i < all.tensors.count; i += 2) {
      size_t at = strlen(index);
      snprintf(index + at, sizeof index - at, "%s\"%s\":\"%s\"", i ? "," : "",
               all.tensors.list[i].name, target);
      some[part.tensors.count++] = all.tensors.list[i];
    }
    assert_int_equal(test_model_save_hf(&f->options, &part, STELE_F32, f->hf, &f->sink), STELE_OK);
    assert_int_equal(rename(in(f->hf, "model.safetensors"), in(f->hf, target)), 0);
  }
  strcat(index, "}}");
  write_text(in(f->hf, "model.safetensors.index.json"), index);
}

static void shards_are_joined(void **state) {
  fixture *f = *state;
  draw(f);
  save_hf(f, STELE_F32);
  fe_model *whole = open_model(f, f->hf);
  save_shards(f);
  fe_model *joined = open_model(f, f->hf);
  assert_int_equal(joined->map_count, 2);
  expect_same_weights(whole, joined, false);
  fe_model_destroy(whole);
  fe_model_destroy(joined);
}

static void indices_are_checked(void **state) {
  fixture *f = *state;
  draw(f);
  save_shards(f);
  const char *index = in(f->hf, "model.safetensors.index.json");
  patch(index, "model.norm.weight", "model.form.weight");
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "'model.form.weight' is not in the shard", "that the index names",
               "'model.norm.weight' of the shard");
  write_text(index, "{\"weight_map\":{\"a\":\"../x\"}}");
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "the shard of tensor 'a' is no file name");
  write_text(index, "{\"weight_map\":{\"a\":\"x\"}}");
  expect_open_fails(f->hf, STELE_NOT_FOUND, &f->sink);
  write_text(index, "{\"weight_map\":[]}");
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "'weight_map' is not an object");
  write_text(index, "{\"weight_map\":{}}");
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "'model.embed_tokens.weight' is missing");
  assert_int_equal(remove(index), 0);
  expect_open_fails(f->hf, STELE_NOT_FOUND, &f->sink);
  EXPECT_WORDS(&f->sink, "neither 'model.safetensors' nor 'model.safetensors.index.json'");
}

/* ---- the rest -------------------------------------------------------------------------- */

static void expect_stops(fixture *f, const char *source, uint32_t count, int32_t first) {
  fe_model *model = open_model(f, f->hf);
  assert_int_equal(model->stop_count, count);
  assert_string_equal(model->stop_source, source);
  assert_int_equal(model->stop_ids[0], first);
  fe_model_destroy(model);
}

static void stop_ids_have_an_order(void **state) {
  fixture *f = *state;
  draw(f);
  save_hf(f, STELE_F32);
  expect_stops(f, "config.json eos_token_id", 1, 2);
  write_text(in(f->hf, "tokenizer_config.json"),
             "{\"model_max_length\":1000000000000000019884624838656,"
             "\"eos_token\":{\"content\":\"</s>\"},\"added_tokens_decoder\":"
             "{\"9\":{\"content\":\"</s>\"}}}");
  expect_stops(f, "config.json eos_token_id", 1, 2);
  write_text(in(f->hf, "generation_config.json"), "{\"eos_token_id\":[7,2],\"temperature\":0.6}");
  expect_stops(f, "generation_config.json eos_token_id", 2, 7);
  write_text(in(f->hf, "generation_config.json"), "{\"eos_token_id\":[]}");
  expect_stops(f, "config.json eos_token_id", 1, 2);
  write_text(in(f->hf, "generation_config.json"), "{\"eos_token_id\":null}");
  patch(in(f->hf, "config.json"), "\"eos_token_id\": 2", "\"eos_token_xx\": 2");
  expect_stops(f, "tokenizer_config.json eos_token", 1, 9);
  write_text(in(f->hf, "generation_config.json"), "{\"eos_token_id\":256}");
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "generation_config.json", "'eos_token_id' is 256, expected an id from 0");
  write_text(in(f->hf, "generation_config.json"), "{\"eos_token_id\":\"x\"}");
  expect_open_fails(f->hf, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "neither a whole number nor a list");
}

static void texts_are_kept(void **state) {
  fixture *f = *state;
  draw(f);
  save_hf(f, STELE_F32);
  write_text(in(f->hf, "generation_config.json"), "{\"temperature\":0.6}");
  write_text(in(f->hf, "tokenizer_config.json"),
             "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"t\"},"
             "{\"name\":\"default\",\"template\":\"d\"}]}");
  fe_model *model = open_model(f, f->hf);
  assert_string_equal(model->generation_defaults, "{\"temperature\":0.6}");
  assert_string_equal(model->chat_template, "d");
  assert_null(model->tokenizer_json);
  assert_int_equal(model->bos_id, 1);
  fe_model_destroy(model);
  write_text(in(f->hf, "chat_template.jinja"), "j");
  write_text(in(f->hf, "tokenizer.json"), "{}");
  model = open_model(f, f->hf);
  assert_string_equal(model->chat_template, "j");
  assert_non_null(strstr(model->tokenizer_json, "tiny/tokenizer.json"));
  fe_model_destroy(model);
}

static void what_is_no_model_is_refused(void **state) {
  fixture *f = *state;
  expect_open_fails(f->directory, STELE_NOT_FOUND, &f->sink);
  EXPECT_WORDS(&f->sink, "it has no 'config.json'");
  expect_open_fails(in(f->directory, "missing"), STELE_NOT_FOUND, &f->sink);
  write_text(in(f->directory, "text"), "hello");
  expect_open_fails(in(f->directory, "text"), STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "is no GGUF file");
  write_text(in(f->directory, "config.json"), "{\"model_type\":");
  expect_open_fails(f->directory, STELE_BAD_FORMAT, &f->sink);
  EXPECT_WORDS(&f->sink, "config.json': bad JSON at line 1");
  write_text(in(f->directory, "empty"), "");
  expect_open_fails(in(f->directory, "empty"), STELE_BAD_FORMAT, &f->sink);
  fe_model_destroy(NULL);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FIXTURE(both_formats_tell_the_same),
      WITH_FIXTURE(schemes_stay_as_they_are),
      WITH_FIXTURE(weights_come_in_order),
      WITH_FIXTURE(fused_tensors_are_taken_apart),
      WITH_FIXTURE(norms_are_stored_less_one),
      cmocka_unit_test(views_are_followed),
      WITH_FIXTURE(tied_heads_are_the_embedding),
      WITH_FIXTURE(tied_but_different_is_an_error),
      WITH_FIXTURE(prefixes_may_be_left_out),
      WITH_FIXTURE(tensors_of_heads_are_one_weight),
      WITH_FIXTURE(untied_without_head_is_an_error),
      WITH_FIXTURE(every_wrong_tensor_is_listed),
      WITH_FIXTURE(biases_are_there_exactly_when_said),
      WITH_FIXTURE(old_buffers_are_ignored),
      WITH_FIXTURE(unsupported_types_are_named),
      WITH_FIXTURE(unsupported_gguf_types_are_named),
      WITH_FIXTURE(shards_are_joined),
      WITH_FIXTURE(indices_are_checked),
      WITH_FIXTURE(stop_ids_have_an_order),
      WITH_FIXTURE(texts_are_kept),
      WITH_FIXTURE(what_is_no_model_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
