/* Small models for tests: drawn at random, or an opened one, written in either format.
 *
 * The shapes and names of the tensors come from the front-end's own tables, so a new family is
 * here at once. */
#ifndef STELE_TEST_MODEL_H
#define STELE_TEST_MODEL_H

#include "frontend/frontend.h"

typedef struct test_options {
  const char *family; /* a model_type: "llama", "phi3" ... */
  uint32_t hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, positions;
  bool tied, attention_bias, mlp_bias;
  const char *rope;   /* rope_parameters as JSON text; NULL: {"rope_theta": 10000.0, ...} */
  const char *fields; /* more fields of config.json, as JSON text: "\"sliding_window\": 8" */
  uint64_t seed;
} test_options;

/* llama, 64 hidden, 2 layers, 4 heads on 2, 16 a head, 96 intermediate, 256 ids, 512 positions. */
test_options test_options_default(void);

/* The options as the text of a config.json in the new form; dtype as "float32". */
void test_config_text(const test_options *options, const char *dtype, base_buffer *out);

/* A model with random float32 weights in memory. Destroy it with fe_model_destroy. */
stele_status test_model_random(const test_options *options, stele_sink *sink,
                               fe_model **out_model) STELE_MUST_USE;

/* Writes config.json and model.safetensors into a directory, made if it is not there; all tensors
 * in one of f32, f16, bf16. */
stele_status test_model_save_hf(const test_options *options, const fe_model *model, uint32_t scheme,
                                const char *directory, stele_sink *sink) STELE_MUST_USE;

/* Writes a GGUF file (version 3) with llama.cpp's names and its order of the rows of Q and K.
 * Matrices take the scheme, the embedding (and the head) its own; vectors are F32. Any model
 * whose weights are plain will do, as fe_model_open gives it for a Hugging Face directory. */
stele_status test_model_save_gguf(const fe_model *model, uint32_t scheme, uint32_t embed_scheme,
                                  const char *path, stele_sink *sink) STELE_MUST_USE;

#endif
