/* A model as a GGUF file, with the names, metadata and row order that llama.cpp's converter gives
 * (convert_hf_to_gguf.py): for the architecture llama the rows of Q and K, within each head, go
 * from halves to neighbours; llama3 scaling becomes the tensor rope_freqs.weight, the divisor of
 * each frequency. */
#include <math.h>
#include <string.h>

#include "frontend/decoder.h"
#include "stele/program.h"
#include "support/bytes.h"
#include "support/encode.h"
#include "support/test_model.h"
#include "weights/weights.h"

#define ALIGNMENT 32u

typedef struct writer {
  const fe_model *model;
  uint32_t scheme, embed_scheme;
  base_arena scratch;
  base_buffer pairs, list, data;
  uint64_t pair_count, tensor_count;
  stele_sink *sink;
} writer;

static const char *architecture(const fe_model *model) {
  size_t count;
  const fe_family *const *all = fe_families(&count);
  for (size_t i = 0; i < count; i++)
    if (strcmp(all[i]->name, model->family) == 0) return all[i]->gguf_architectures[0];
  return model->family;
}

static void pair_u32(writer *w, const char *key, uint32_t value) {
  put_pair_u32(&w->pairs, key, value);
  w->pair_count++;
}

static void pair_f32(writer *w, const char *key, double value) {
  put_pair_f32(&w->pairs, key, (float)value);
  w->pair_count++;
}

static void pair_string(writer *w, const char *key, const char *value) {
  put_pair_string(&w->pairs, key, value);
  w->pair_count++;
}

static const char *key(writer *w, const char *rest) {
  const char *text = base_arena_format(&w->scratch, "%s.%s", architecture(w->model), rest);
  return text ? text : rest;
}

/* ---- tensors --------------------------------------------------------------------------- */

static uint32_t gguf_type(uint32_t scheme) {
  return (uint32_t)weights_scheme_get(scheme)->gguf_type;
}

static void put_tensor(writer *w, const char *name, uint32_t dim_count, uint64_t rows,
                       uint64_t columns, uint32_t scheme, const float *numbers) {
  const uint64_t sizes[] = {columns, rows};
  base_buffer_align(&w->data, ALIGNMENT);
  put_gguf_tensor(&w->list, name, dim_count, sizes, gguf_type(scheme), w->data.size);
  test_encode(scheme, numbers, rows * columns, &w->data);
  w->tensor_count++;
}

/* Row h * head + i of the source, i counting halves, becomes h * head + 2 i or 2 i + 1. */
static void permute(const float *in, uint64_t rows, uint64_t columns, uint64_t head, float *out) {
  uint64_t half = head / 2;
  for (uint64_t r = 0; r < rows; r++) {
    uint64_t h = r / head, i = r % head;
    uint64_t to = h * head + (i < half ? 2 * i : 2 * (i - half) + 1);
    memcpy(out + to * columns, in + r * columns, columns * sizeof *out);
  }
}

static bool is_permuted(const writer *w, uint32_t role) {
  if (strcmp(architecture(w->model), "llama") != 0) return false;
  return role == FE_Q || role == FE_K || role == FE_Q_BIAS || role == FE_K_BIAS;
}

static stele_status add_weight(writer *w, const fe_weight *weight) {
  size_t count = weight->rows * weight->columns;
  bool matrix = weight->rows > 1, ends = weight->role == FE_EMBED || weight->role == FE_HEAD;
  uint32_t scheme = !matrix ? (uint32_t)STELE_F32 : ends ? w->embed_scheme : w->scheme;
  base_mark mark = base_arena_mark(&w->scratch);
  const char *name = fe_role_name(&w->scratch, true, (fe_role)weight->role, weight->layer);
  float *numbers = base_arena_alloc(&w->scratch, count, sizeof *numbers);
  float *moved = base_arena_alloc(&w->scratch, count, sizeof *moved);
  if (!name || !numbers || !moved) return base_fail(w->sink, STELE_OUT_OF_MEMORY, "out of memory");
  if (weight->columns % weights_scheme_get(scheme)->block != 0)
    return base_fail(w->sink, STELE_INVALID_ARGUMENT, "rows of '%s' are no whole blocks of %s",
                     weight->name, weights_scheme_get(scheme)->name);
  weights_decode(weight->scheme, weight->data, count, numbers);
  if (is_permuted(w, weight->role)) {
    bool bias = weight->role == FE_Q_BIAS || weight->role == FE_K_BIAS;
    permute(numbers, bias ? weight->columns : weight->rows, bias ? 1 : weight->columns,
            w->model->key_head, moved);
    numbers = moved;
  }
  put_tensor(w, name, matrix ? 2 : 1, weight->rows, weight->columns, scheme, numbers);
  base_arena_reset(&w->scratch, mark);
  return STELE_OK;
}

/* ---- rope ------------------------------------------------------------------------------ */

static stele_status add_rope(writer *w) {
  const fe_rope *rope = &w->model->ropes[0];
  pair_f32(w, key(w, "rope.freq_base"), rope->base);
  pair_u32(w, key(w, "rope.dimension_count"), rope->rotary);
  if (rope->rule != STELE_ROPE_FIXED)
    return base_fail(w->sink, STELE_UNSUPPORTED, "GGUF files have no rope by length");
  if (rope->factor == 1.0) return STELE_OK;
  if (!rope->original) { /* linear */
    pair_string(w, key(w, "rope.scaling.type"), "linear");
    pair_f32(w, key(w, "rope.scaling.factor"), rope->factor);
    return STELE_OK;
  }
  float *divisors = base_arena_alloc(&w->scratch, rope->rotary / 2, sizeof *divisors);
  if (!divisors) return base_fail(w->sink, STELE_OUT_OF_MEMORY, "out of memory");
  for (uint32_t i = 0; i < rope->rotary / 2; i++) {
    float plain = 1.0f / (float)pow(rope->base, 2.0 * i / (double)rope->rotary);
    divisors[i] = plain / (float)rope->inv_freq[i];
  }
  put_tensor(w, "rope_freqs.weight", 1, 1, rope->rotary / 2, STELE_F32, divisors);
  return STELE_OK;
}

/* ---- the file -------------------------------------------------------------------------- */

static stele_status add_metadata(writer *w) {
  const fe_model *m = w->model;
  pair_string(w, "general.architecture", architecture(m));
  pair_string(w, "general.name", m->name);
  pair_u32(w, key(w, "context_length"), m->model_positions);
  pair_u32(w, key(w, "embedding_length"), m->hidden);
  pair_u32(w, key(w, "block_count"), m->layers);
  pair_u32(w, key(w, "feed_forward_length"), m->intermediate);
  pair_u32(w, key(w, "attention.head_count"), m->heads);
  pair_u32(w, key(w, "attention.head_count_kv"), m->kv_heads);
  pair_u32(w, key(w, "attention.key_length"), m->key_head);
  pair_u32(w, key(w, "attention.value_length"), m->value_head);
  pair_f32(w, key(w, "attention.layer_norm_rms_epsilon"), m->norm_eps);
  pair_u32(w, key(w, "vocab_size"), m->vocab);
  pair_string(w, "tokenizer.ggml.model", "none");
  if (m->stop_count) pair_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)m->stop_ids[0]);
  if (m->bos_id >= 0) pair_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)m->bos_id);
  return add_rope(w);
}

static stele_status assemble(writer *w, const char *path) {
  base_buffer out = {0};
  put_gguf_header(&out, 3, w->tensor_count, w->pair_count);
  base_buffer_append(&out, w->pairs.data, w->pairs.size);
  base_buffer_append(&out, w->list.data, w->list.size);
  base_buffer_align(&out, ALIGNMENT);
  base_buffer_append(&out, w->data.data, w->data.size);
  bool failed = out.failed || w->pairs.failed || w->list.failed || w->data.failed;
  stele_status status = failed ? base_fail(w->sink, STELE_OUT_OF_MEMORY, "out of memory")
                               : put_file(path, out.data, out.size, w->sink);
  base_buffer_deinit(&out);
  return status;
}

stele_status test_model_save_gguf(const fe_model *model, uint32_t scheme, uint32_t embed_scheme,
                                  const char *path, stele_sink *sink) {
  writer w = {.model = model, .scheme = scheme, .embed_scheme = embed_scheme, .sink = sink};
  stele_status status = add_metadata(&w);
  for (uint32_t i = 0; status == STELE_OK && i < model->weight_count; i++)
    status = add_weight(&w, &model->weights[i]);
  if (status == STELE_OK) status = assemble(&w, path);
  base_buffer_deinit(&w.pairs);
  base_buffer_deinit(&w.list);
  base_buffer_deinit(&w.data);
  base_arena_deinit(&w.scratch);
  return status;
}
