/* A model as a GGUF file, with the names, metadata and row order that llama.cpp's converter gives
 * (convert_hf_to_gguf.py): where Llama's rotation of Q and K is stored for neighbours, the rows
 * within each head go from halves to neighbours; llama3 scaling becomes the tensor
 * rope_freqs.weight, the divisor of each frequency. What a family keeps in one tensor is put into
 * it weight by weight, at the places that the family's view says. */
#include <math.h>
#include <string.h>

#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"
#include "support/bytes.h"
#include "support/encode.h"
#include "support/test_model.h"
#include "weights/weights.h"

#define ALIGNMENT 32u

/* A tensor being filled. */
typedef struct stored {
  const char *name;
  fe_place place;
  uint32_t scheme;
  float *numbers;
} stored;

typedef struct writer {
  const fe_model *model;
  const fe_family *family;
  stored *list_of;
  size_t stored_count, stored_limit;
  uint32_t scheme, embed_scheme;
  base_arena scratch;
  base_buffer pairs, list, data;
  uint64_t pair_count, tensor_count;
  stele_sink *sink;
} writer;

static const char *architecture(const fe_model *model) {
  const char *name = fe_family_of(model)->gguf_architectures[0];
  return name ? name : "llama";
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

static void put_tensor(writer *w, const char *name, uint32_t dim_count, const uint64_t *dims,
                       uint32_t scheme, const float *numbers) {
  uint64_t sizes[FE_MAX_DIMS], count = 1;
  for (uint32_t i = 0; i < dim_count; i++) count *= sizes[dim_count - 1 - i] = dims[i];
  base_buffer_align(&w->data, ALIGNMENT);
  put_gguf_tensor(&w->list, name, dim_count, sizes, gguf_type(scheme), w->data.size);
  test_encode(scheme, numbers, count, &w->data);
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
  static const char *const permuted[] = {"llama", "smollm3", "granite"};
  if (role != FE_Q && role != FE_K && role != FE_Q_BIAS && role != FE_K_BIAS) return false;
  for (size_t i = 0; i < sizeof permuted / sizeof *permuted; i++)
    if (strcmp(architecture(w->model), permuted[i]) == 0) return true;
  return false;
}

static stele_status no_memory(const writer *w) {
  return base_fail(w->sink, STELE_OUT_OF_MEMORY, "out of memory");
}

/* The tensor of that name, made when it is not there yet. */
static stele_status find_stored(writer *w, const char *name, const fe_place *place, uint32_t scheme,
                                stored **out) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < place->dim_count; i++) count *= place->dims[i];
  for (size_t i = 0; i < w->stored_count; i++)
    if (strcmp(w->list_of[i].name, name) == 0) {
      *out = &w->list_of[i];
      return STELE_OK;
    }
  if (place->dims[place->dim_count - 1] % weights_scheme_get(scheme)->block != 0)
    return base_fail(w->sink, STELE_INVALID_ARGUMENT, "rows of '%s' are no whole blocks of %s",
                     name, weights_scheme_get(scheme)->name);
  *out = &w->list_of[w->stored_count++];
  **out = (stored){.name = name, .place = *place, .scheme = scheme};
  (*out)->numbers = base_arena_alloc(&w->scratch, count, sizeof(float));
  return (*out)->numbers ? STELE_OK : no_memory(w);
}

/* Row r of a weight, whose numbers go where the place says. */
static void scatter(const fe_weight *weight, const fe_place *place, uint64_t r, const float *row,
                    uint64_t columns, float *out) {
  const fe_view *v = &place->view;
  uint64_t wide = place->dim_count > 1 ? place->dims[place->dim_count - 1] : 1;
  uint64_t block = v->block && !strstr(place->name, "%e") ? r / v->block : 0;
  uint64_t at = v->first + (v->block ? r % v->block : r) * v->step, base = block * v->stride;
  bool plain = !v->block && !v->first && v->step == 1 && !v->transposed;
  for (uint64_t c = 0; c < columns; c++) {
    uint64_t index = v->transposed ? (base + c) * wide + at : (base + at) * wide + c;
    if (plain && weight->vector) index = r; /* whatever its dimensions */
    out[index] = row[c] - place->plus;
  }
}

static uint32_t scheme_of(const writer *w, const fe_weight *weight) {
  bool ends = weight->role == FE_EMBED || weight->role == FE_HEAD;
  if (weight->vector || weight->role == FE_POSITIONS || weight->role == FE_ROUTER) return STELE_F32;
  return ends ? w->embed_scheme : w->scheme;
}

/* All numbers of a weight, in llama.cpp's order of rows. */
static float *numbers_of(writer *w, const fe_weight *weight) {
  size_t count = weight->rows * weight->columns;
  float *numbers = base_arena_alloc(&w->scratch, count, sizeof *numbers);
  float *moved = base_arena_alloc(&w->scratch, count, sizeof *moved);
  if (!numbers || !moved) return NULL;
  weights_decode(weight->scheme, fe_weight_rows(weight, 0, weight->rows, (uint8_t *)moved), count,
                 numbers);
  if (!is_permuted(w, weight->role)) return numbers;
  permute(numbers, weight->vector ? weight->columns : weight->rows,
          weight->vector ? 1 : weight->columns, w->model->key_head, moved);
  return moved;
}

static stele_status add_weight(writer *w, const fe_weight *weight) {
  fe_place place = fe_place_of(w->model, w->family, (fe_role)weight->role, weight->layer, true);
  if (!place.name) return STELE_OK;
  const float *numbers = numbers_of(w, weight);
  if (!numbers) return no_memory(w);
  uint64_t rows = weight->vector ? weight->columns : weight->rows;
  uint64_t columns = weight->vector ? 1 : weight->columns;
  for (uint64_t r = 0; r < rows; r++) {
    uint32_t expert = place.view.block ? (uint32_t)(r / place.view.block) : 0;
    const char *name = fe_place_name(&w->scratch, place.name, weight->layer, expert);
    stored *to;
    if (!name) return no_memory(w);
    BASE_TRY(find_stored(w, name, &place, scheme_of(w, weight), &to));
    scatter(weight, &place, r, numbers + r * columns, columns, to->numbers);
  }
  return STELE_OK;
}

static stele_status add_weights(writer *w) {
  const fe_model *m = w->model;
  w->list_of =
      base_arena_alloc(&w->scratch, m->weight_count * (m->experts.count + 1u), sizeof *w->list_of);
  if (!w->list_of) return no_memory(w);
  for (uint32_t i = 0; i < m->weight_count; i++) BASE_TRY(add_weight(w, &m->weights[i]));
  for (size_t i = 0; i < w->stored_count; i++) {
    const stored *t = &w->list_of[i];
    put_tensor(w, t->name, t->place.dim_count, t->place.dims, t->scheme, t->numbers);
  }
  return STELE_OK;
}

/* ---- rope ------------------------------------------------------------------------------ */

static stele_status add_rope(writer *w) {
  if (!w->model->rope_count) return STELE_OK;
  const fe_rope *rope = &w->model->ropes[0];
  uint64_t pairs = rope->rotary / 2;
  pair_f32(w, key(w, "rope.freq_base"), rope->base);
  pair_u32(w, key(w, "rope.dimension_count"), rope->rotary);
  if (w->model->rope_count > 1) pair_f32(w, key(w, "rope.freq_base_swa"), rope[1].base);
  if (rope->rule == STELE_ROPE_LONG) {
    pair_u32(w, key(w, "rope.scaling.original_context_length"), rope->original);
    pair_f32(w, key(w, "rope.scaling.attn_factor"), rope->attention_factor);
    put_tensor(w, "rope_factors_long.weight", 1, &pairs, STELE_F32, rope->long_factors);
    put_tensor(w, "rope_factors_short.weight", 1, &pairs, STELE_F32, rope->short_factors);
    return STELE_OK;
  }
  if (rope->rule != STELE_ROPE_FIXED)
    return base_fail(w->sink, STELE_UNSUPPORTED, "GGUF files have no rope by length");
  if (rope->factor == 1.0) return STELE_OK;
  if (!rope->original || rope->attention_factor != 1.0) {
    pair_string(w, key(w, "rope.scaling.type"), rope->original ? "yarn" : "linear");
    pair_f32(w, key(w, "rope.scaling.factor"), rope->factor);
    if (rope->original) pair_u32(w, key(w, "rope.scaling.original_context_length"), rope->original);
    return STELE_OK;
  }
  float *divisors = base_arena_alloc(&w->scratch, pairs, sizeof *divisors);
  if (!divisors) return no_memory(w);
  for (uint32_t i = 0; i < pairs; i++) {
    float plain = 1.0f / (float)pow(rope->base, 2.0 * i / (double)rope->rotary);
    divisors[i] = plain / (float)rope->inv_freq[i];
  }
  put_tensor(w, "rope_freqs.weight", 1, &pairs, STELE_F32, divisors);
  return STELE_OK;
}

/* ---- the file -------------------------------------------------------------------------- */

/* Where some layers only have a window, a flag for each. */
static void add_window(writer *w) {
  const fe_model *m = w->model;
  bool flags[64] = {false};
  uint32_t window = 0, count = 0;
  for (uint32_t i = 0; i < m->layers && i < 64; i++) {
    flags[i] = m->layer[i].group_kind == STELE_GROUP_WINDOW;
    if (flags[i]) window = m->layer[i].window;
    count += flags[i];
  }
  if (window) pair_u32(w, key(w, "attention.sliding_window"), window);
  if (!count || count == m->layers) return;
  put_pair_bools(&w->pairs, key(w, "attention.sliding_window_pattern"), flags, m->layers);
  w->pair_count++;
}

static void add_soft_caps(writer *w) {
  const fe_model *m = w->model;
  if (m->soft_cap > 0) pair_f32(w, key(w, "attn_logit_softcapping"), m->soft_cap);
  if (m->logit_soft_cap > 0) pair_f32(w, key(w, "final_logit_softcapping"), m->logit_soft_cap);
}

/* Granite's file holds what the logits are divided by. */
static void add_scales(writer *w) {
  const fe_model *m = w->model;
  bool granite = strcmp(architecture(m), "granite") == 0;
  if (m->logit_scale != 1.0)
    pair_f32(w, key(w, "logit_scale"), granite ? 1.0 / m->logit_scale : m->logit_scale);
  if (!granite) return;
  pair_f32(w, key(w, "attention.scale"), m->layer->attention_scale);
  pair_f32(w, key(w, "embedding_scale"), m->embed_scale);
  pair_f32(w, key(w, "residual_scale"), m->residual_scale);
}

static void add_experts(writer *w) {
  const fe_experts *e = &w->model->experts;
  if (!e->count) return;
  pair_u32(w, key(w, "expert_count"), e->count);
  pair_u32(w, key(w, "expert_used_count"), e->used);
  pair_u32(w, key(w, "expert_feed_forward_length"), e->inner);
}

static void add_llama4(writer *w) {
  const fe_model *m = w->model;
  if (strcmp(architecture(m), "llama4") != 0) return;
  pair_u32(w, key(w, "interleave_moe_layer_step"), 1);
  for (uint32_t i = 0; i < m->layers; i++) {
    const fe_layer *layer = &m->layer[i];
    if (i == 0) pair_u32(w, key(w, "attention.chunk_size"), layer->window);
    if (layer->rope >= 0 || layer->query_floor <= 0) continue;
    pair_f32(w, key(w, "attention.temperature_scale"), layer->query_scale);
    pair_u32(w, key(w, "attention.temperature_length"), (uint32_t)layer->query_floor);
  }
}

static void add_deepseek(writer *w) {
  const fe_model *m = w->model;
  const fe_latent *l = &m->latent;
  const fe_experts *e = &m->experts;
  uint32_t dense = 0;
  if (!l->kv_rank) return;
  while (dense < m->layers && (m->layer[dense].roles & FE_ROLE(FE_GATE))) dense++;
  if (l->q_rank) pair_u32(w, key(w, "attention.q_lora_rank"), l->q_rank);
  pair_u32(w, key(w, "attention.kv_lora_rank"), l->kv_rank);
  pair_u32(w, key(w, "attention.key_length_mla"), l->nope + l->rope);
  pair_u32(w, key(w, "attention.value_length_mla"), l->value);
  pair_u32(w, key(w, "leading_dense_block_count"), dense);
  pair_u32(w, key(w, "expert_gating_func"), 2);
  pair_u32(w, key(w, "expert_shared_count"), e->shared_inner / e->inner);
  pair_u32(w, key(w, "expert_group_count"), e->groups);
  pair_u32(w, key(w, "expert_group_used_count"), e->used_groups);
  pair_f32(w, key(w, "expert_weights_scale"), e->scale);
  put_pair_bool(&w->pairs, key(w, "expert_weights_norm"), e->normalise);
  w->pair_count++;
}

static stele_status add_metadata(writer *w) {
  const fe_model *m = w->model;
  const char *eps =
      m->norm == FE_NORM_RMS ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
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
  pair_f32(w, key(w, eps), m->norm_eps);
  pair_u32(w, key(w, "vocab_size"), m->vocab);
  pair_string(w, "tokenizer.ggml.model", "none");
  if (m->stop_count) pair_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)m->stop_ids[0]);
  if (m->bos_id >= 0) pair_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)m->bos_id);
  add_window(w);
  add_soft_caps(w);
  add_experts(w);
  add_scales(w);
  add_llama4(w);
  add_deepseek(w);
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
  writer w = {.model = model,
              .family = fe_family_of(model),
              .scheme = scheme,
              .embed_scheme = embed_scheme,
              .sink = sink};
  stele_status status = add_metadata(&w);
  if (status == STELE_OK) status = add_weights(&w);
  if (status == STELE_OK) status = assemble(&w, path);
  base_buffer_deinit(&w.pairs);
  base_buffer_deinit(&w.list);
  base_buffer_deinit(&w.data);
  base_arena_deinit(&w.scratch);
  return status;
}
