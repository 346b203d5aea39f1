/* GGUF metadata as a configuration. */
#include <stdio.h>
#include <string.h>

#include "common.h"
#include "frontend/config.h"
#include "frontend/model.h"
#include "stele/program.h"
#include "support/bytes.h"

typedef struct fixture {
  base_buffer pairs;
  uint64_t count;
  fe_model *model;
  stele_sink sink;
} fixture;

static void pair_u32(fixture *f, const char *key, uint32_t value) {
  put_pair_u32(&f->pairs, key, value);
  f->count++;
}

static void pair_f32(fixture *f, const char *key, float value) {
  put_pair_f32(&f->pairs, key, value);
  f->count++;
}

static void pair_string(fixture *f, const char *key, const char *value) {
  put_pair_string(&f->pairs, key, value);
  f->count++;
}

static fixture begin(void) {
  fixture f = {0};
  pair_string(&f, "general.architecture", "llama");
  pair_u32(&f, "llama.embedding_length", 64);
  pair_u32(&f, "llama.block_count", 2);
  pair_u32(&f, "llama.attention.head_count", 4);
  pair_u32(&f, "llama.feed_forward_length", 96);
  return f;
}

/* Opens the metadata as a file without tensors. */
static stele_status fill(fixture *f) {
  base_buffer file = {0};
  put_gguf_header(&file, 3, 0, f->count);
  base_buffer_append(&file, f->pairs.data, f->pairs.size);
  assert_int_equal(fe_model_create("x.gguf", &f->sink, &f->model), STELE_OK);
  uint8_t *copy = base_arena_alloc(&f->model->arena, file.size, 1);
  memcpy(copy, file.data, file.size);
  stele_status status = fe_model_fill_gguf(f->model, copy, file.size, &f->sink);
  base_buffer_deinit(&file);
  return status;
}

static void done(fixture *f) {
  fe_model_destroy(f->model);
  base_buffer_deinit(&f->pairs);
}

/* The description is complete when only the tensors are missing. */
static void expect_described(fixture *f) {
  assert_int_equal(fill(f), STELE_BAD_FORMAT);
  EXPECT_WORDS(&f->sink, "'token_embd.weight' is missing");
}

static void expect_fails(fixture *f, const char *word) {
  assert_true(fill(f) != STELE_OK);
  EXPECT_WORDS(&f->sink, "x.gguf", word);
  done(f);
}

static void rope_scaling_without_a_type_is_linear(void **state) {
  (void)state;
  static const char *const keys[] = {"llama.rope.scaling.factor", "llama.rope.scale_linear"};
  for (size_t i = 0; i < 2; i++) {
    fixture f = begin();
    pair_u32(&f, "llama.vocab_size", 256);
    pair_f32(&f, keys[i], 4.0f);
    expect_described(&f);
    assert_true(f.model->ropes->factor == 4.0 && f.model->ropes->inv_freq[0] == 0.25);
    done(&f);
  }
  fixture f = begin();
  pair_u32(&f, "llama.vocab_size", 256);
  pair_f32(&f, "llama.rope.scaling.factor", 1.0f);
  pair_string(&f, "llama.rope.scaling.type", "none");
  expect_described(&f);
  assert_true(f.model->ropes->inv_freq[0] == 1.0);
  assert_int_equal(f.model->ropes->pairing, STELE_PAIR_INTERLEAVED);
  assert_true(f.model->tied && f.model->kv_heads == 4 && f.model->key_head == 16);
  done(&f);
}

static void the_list_of_tokens_may_give_the_size(void **state) {
  (void)state;
  fixture f = begin();
  put_string(&f.pairs, "tokenizer.ggml.tokens");
  put_u32(&f.pairs, 9), put_u32(&f.pairs, 8), put_u64(&f.pairs, 3);
  put_string(&f.pairs, "a"), put_string(&f.pairs, "b"), put_string(&f.pairs, "c");
  f.count++;
  expect_described(&f);
  assert_int_equal(f.model->vocab, 3);
  done(&f);
  f = begin();
  expect_fails(&f, "'llama.vocab_size' is missing");
}

static void keys_have_the_file_s_names(void **state) {
  (void)state;
  fixture f = begin();
  pair_u32(&f, "llama.vocab_size", 256);
  pair_u32(&f, "llama.attention.head_count_kv", 3);
  pair_f32(&f, "llama.logit_scale", 0.5f);
  pair_u32(&f, "llama.attention.sliding_window", 128);
  pair_u32(&f, "llama.rope.dimension_count", 24);
  pair_string(&f, "llama.rope.scaling.type", "spiral");
  pair_f32(&f, "llama.rope.scaling.factor", 4.0f);
  assert_int_equal(fill(&f), STELE_UNSUPPORTED);
  EXPECT_WORDS(&f.sink, "multiple of the 3 key and value heads", "'llama.logit_scale' is 0.5",
               "'llama.attention.sliding_window' is 128",
               "'llama.rope.dimension_count' is 24, but heads have 16",
               "'llama.rope.scaling.type' is \"spiral\"");
  done(&f);
}

static void values_are_checked(void **state) {
  (void)state;
  fixture f = begin();
  pair_f32(&f, "llama.vocab_size", 256.0f);
  expect_fails(&f, "'llama.vocab_size' is 256.0, expected a whole number");
  f = begin();
  pair_f32(&f, "llama.rope.freq_base", __builtin_nanf(""));
  expect_fails(&f, "'llama.rope.freq_base' has a value that cannot be read (type float32)");
  f = begin();
  put_string(&f.pairs, "llama.attention.head_count_kv");
  put_u32(&f.pairs, 9), put_u32(&f.pairs, 4), put_u64(&f.pairs, 1), put_u32(&f.pairs, 2);
  f.count++;
  expect_fails(&f, "'llama.attention.head_count_kv' is an array");
  f = (fixture){0};
  expect_fails(&f, "'general.architecture' is missing");
  f = (fixture){0};
  pair_u32(&f, "general.architecture", 3);
  expect_fails(&f, "'general.architecture' has the type uint32, expected string");
  f = (fixture){0};
  pair_string(&f, "general.architecture", "falcon");
  expect_fails(&f, "the architecture 'falcon' is not supported; supported: llama, qwen2, qwen3");
  f = begin();
  pair_u32(&f, "split.count", 3);
  expect_fails(&f, "one part of a split model");
}

static void tokenizers_may_be_absent(void **state) {
  (void)state;
  base_buffer blob = {0};
  fixture f = begin();
  pair_u32(&f, "llama.vocab_size", 256);
  pair_string(&f, "tokenizer.ggml.model", "none");
  expect_described(&f);
  assert_int_equal(fe_tokenizer_blob(f.model, &f.sink, &blob), STELE_OK);
  assert_int_equal(blob.size, 0);
  done(&f);
  f = begin();
  pair_u32(&f, "llama.vocab_size", 256);
  pair_string(&f, "tokenizer.ggml.model", "gpt2");
  expect_described(&f);
  assert_int_equal(fe_tokenizer_blob(f.model, &f.sink, &blob), STELE_BAD_FORMAT);
  EXPECT_WORDS(&f.sink, "'tokenizer.ggml.tokens' is not an array of strings");
  done(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rope_scaling_without_a_type_is_linear),
      cmocka_unit_test(the_list_of_tokens_may_give_the_size),
      cmocka_unit_test(keys_have_the_file_s_names),
      cmocka_unit_test(values_are_checked),
      cmocka_unit_test(tokenizers_may_be_absent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
