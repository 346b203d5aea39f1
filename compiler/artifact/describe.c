/* What an artefact says of itself, gathered from the description, the program and the options.
 *
 * The fingerprint is the XXH3 128-bit hash of the model's tensors (names, schemes, shapes, bytes),
 * the program and the options: it binds artefact, weights and saved caches together. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "artifact/artifact.h"
#include "frontend/frontend.h"
#include "weights/weights.h"

typedef struct describing {
  const artifact_source *source;
  base_arena *arena;
  stele_sink *sink;
} describing;

static stele_status no_memory(const describing *d) {
  return base_fail(d->sink, STELE_OUT_OF_MEMORY, "out of memory");
}

/* ---- fingerprint ----------------------------------------------------------------------- */

static void hash_text(XXH3_state_t *state, const char *text) {
  XXH3_128bits_update(state, text, strlen(text) + 1);
}

/* Each tensor's bytes once, however many weights are taken out of it, then what is taken. */
static void hash_tensors(const fe_model *model, XXH3_state_t *state) {
  for (size_t i = 0; i < model->tensors.count; i++) {
    const fe_tensor *t = &model->tensors.list[i];
    if (!t->used) continue;
    hash_text(state, t->name);
    XXH3_128bits_update(state, &t->scheme, sizeof t->scheme);
    XXH3_128bits_update(state, t->dims, t->dim_count * sizeof *t->dims);
    XXH3_128bits_update(state, t->data, t->bytes);
    artifact_forget(t->data, t->bytes);
  }
}

static void hash_weights(const artifact_source *source, XXH3_state_t *state) {
  const fe_model *model = source->model;
  hash_tensors(model, state);
  for (uint32_t i = 0; i < model->weight_count; i++) {
    const fe_weight *w = &model->weights[i];
    const fe_view *v = &w->view;
    uint64_t numbers[] = {w->scheme, w->rows,   w->columns, w->experts,   v->block,
                          v->first,  v->stride, v->step,    v->transposed};
    hash_text(state, w->name);
    XXH3_128bits_update(state, numbers, sizeof numbers);
    XXH3_128bits_update(state, &w->plus, sizeof w->plus);
  }
}

static stele_status fingerprint(const describing *d, uint64_t out[2]) {
  const artifact_source *source = d->source;
  XXH3_state_t *state = XXH3_createState();
  if (!state || XXH3_128bits_reset(state) != XXH_OK) {
    XXH3_freeState(state);
    return no_memory(d);
  }
  uint32_t options[2] = {source->precise, source->cache_scheme};
  hash_weights(source, state);
  hash_text(state, source->target->name);
  hash_text(state, source->cpu);
  XXH3_128bits_update(state, options, sizeof options);
  XXH3_128bits_update(state, source->program, source->program->bytes);
  XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  out[0] = hash.low64;
  out[1] = hash.high64;
  return STELE_OK;
}

/* ---- the description for people -------------------------------------------------------- */

static const char *scheme_name(uint32_t scheme) {
  const weights_scheme *info = weights_scheme_get(scheme);
  return info ? info->name : "unknown";
}

static json_t *model_json(const fe_model *m) {
  return json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b,s:s,s:f}", "family", m->family,
                   "name", m->name, "vocab", (json_int_t)m->vocab, "hidden", (json_int_t)m->hidden,
                   "layers", (json_int_t)m->layers, "heads", (json_int_t)m->heads, "kv_heads",
                   (json_int_t)m->kv_heads, "key_head", (json_int_t)m->key_head, "value_head",
                   (json_int_t)m->value_head, "intermediate", (json_int_t)m->intermediate,
                   "model_positions", (json_int_t)m->model_positions, "tied", (int)m->tied,
                   "weight_scheme", scheme_name(m->weight_scheme_class), "norm_eps", m->norm_eps);
}

/* Tokens of the verify step, 1: there is none. */
static uint32_t verify_width(const stele_program *program) {
  for (uint64_t i = 0; i < program->steps.count; i++)
    if (stele_program_steps(program, i)->kind == STELE_STEP_VERIFY)
      return stele_program_steps(program, i)->width;
  return 1;
}

static json_t *options_json(const artifact_source *source) {
  const stele_program *program = source->program;
  return json_pack("{s:s,s:s,s:b,s:s,s:I,s:I,s:I,s:I}", "target", source->target->name, "cpu",
                   source->cpu, "precise", (int)source->precise, "cache_dtype",
                   scheme_name(source->cache_scheme), "capacity", (json_int_t)program->capacity,
                   "lanes", (json_int_t)program->max_lanes, "prefill",
                   (json_int_t)program->prefill_width, "verify", (json_int_t)verify_width(program));
}

static stele_status description(const describing *d, const char **out) {
  json_t *root = model_json(d->source->model), *options = options_json(d->source);
  char *text = NULL;
  if (root && options && json_object_set(root, "options", options) == 0)
    text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9));
  json_decref(options);
  json_decref(root);
  if (!text)
    return base_fail(d->sink, STELE_BAD_FORMAT, "'%s': the model's name is not UTF-8",
                     d->source->model->path);
  *out = base_arena_copy(d->arena, text, strlen(text));
  free(text);
  return *out ? STELE_OK : no_memory(d);
}

/* ---- tables ---------------------------------------------------------------------------- */

static stele_status add_variants(const describing *d, stele_artifact *out) {
  const stele_program *program = d->source->program;
  uint32_t count, steps = (uint32_t)program->steps.count;
  const stele_variant_info *info = d->source->target->variants(d->source->target_self, &count);
  stele_variant *variants = base_arena_alloc(d->arena, count, sizeof *variants);
  stele_step *list = base_arena_alloc(d->arena, steps, sizeof *list);
  if (!variants || !list) return no_memory(d);
  for (uint32_t i = 0; i < steps; i++) {
    const stele_program_step *s = stele_program_steps(program, i);
    list[i] = (stele_step){s->kind, s->lanes, s->width, s->output, NULL, s->bytes_per_call};
  }
  for (uint32_t i = 0; i < count; i++)
    variants[i] = (stele_variant){info[i].name, info[i].features, list, steps, 0};
  out->variants = variants;
  out->variant_count = count;
  return STELE_OK;
}

static stele_status add_weights(const describing *d, stele_artifact *out) {
  const stele_program *program = d->source->program;
  uint32_t count = (uint32_t)program->weights.count;
  stele_weight *weights = base_arena_alloc(d->arena, count, sizeof *weights);
  if (!weights) return no_memory(d);
  for (uint32_t i = 0; i < count; i++) {
    const stele_program_weight *w = stele_program_weights(program, i);
    weights[i] = (stele_weight){stele_program_strings(program, w->name),
                                w->scheme,
                                w->layout,
                                w->rows,
                                w->columns,
                                w->offset,
                                w->bytes};
  }
  out->weights = weights;
  out->weight_count = count;
  out->weights_bytes = program->weights_bytes;
  return STELE_OK;
}

static stele_status add_ropes(const describing *d, stele_artifact *out) {
  const fe_model *model = d->source->model;
  stele_rope *ropes = base_arena_alloc(d->arena, model->rope_count + 1, sizeof *ropes);
  if (!ropes) return no_memory(d);
  for (uint32_t i = 0; i < model->rope_count; i++) {
    const fe_rope *r = &model->ropes[i];
    ropes[i] = (stele_rope){.rule = r->rule,
                            .rotary = r->rotary,
                            .base = r->base,
                            .factor = r->factor,
                            .original = r->original,
                            .attention_factor = r->attention_factor,
                            .short_factors = r->short_factors,
                            .long_factors = r->long_factors};
  }
  out->ropes = ropes;
  out->rope_count = model->rope_count;
  return STELE_OK;
}

/* The rows of the embedding, or of the matrix that gives logits, whichever are more. */
static uint32_t padded_vocabulary(const fe_model *model) {
  uint64_t rows = model->vocab;
  for (int i = 0; i < 2; i++) {
    const fe_weight *weight = fe_model_weight(model, i ? FE_HEAD : FE_EMBED, -1);
    if (weight && weight->rows > rows && weight->rows <= UINT32_MAX) rows = weight->rows;
  }
  return (uint32_t)rows;
}

/* ---- texts ----------------------------------------------------------------------------- */

static stele_status add_texts(const describing *d, stele_artifact *out) {
  const fe_model *model = d->source->model;
  const char *path;
  base_buffer blob = {0};
  stele_status status = fe_tokenizer_blob(model, d->sink, &blob);
  if (status == STELE_OK && blob.failed) status = no_memory(d);
  if (status == STELE_OK && blob.size) {
    uint8_t *copy = base_arena_alloc(d->arena, blob.size, 1);
    if (copy) memcpy(copy, blob.data, blob.size);
    out->tokenizer = copy;
    out->tokenizer_bytes = blob.size;
    if (!copy) status = no_memory(d);
  }
  base_buffer_deinit(&blob);
  if (status != STELE_OK) return status;
  out->chat_template = model->chat_template;
  out->generation_defaults = model->generation_defaults;
  out->stop_ids = model->stop_ids;
  out->stop_count = model->stop_count;
  out->stop_source = model->stop_source;
  BASE_TRY(artifact_weights_path(d->source, d->arena, d->sink, &path, &out->weights_file));
  return description(d, &out->description);
}

stele_status artifact_describe(const artifact_source *source, base_arena *arena, stele_sink *sink,
                               stele_artifact *out_artifact) {
  const describing d = {source, arena, sink};
  const stele_program *program = source->program;
  stele_artifact artifact = {
      .struct_bytes = sizeof artifact,
      .abi = STELE_ARTIFACT_ABI,
      .producer = STELE_PRODUCER,
      .target = source->target->name,
      .triple = source->target->triple(source->target_self),
      .vocab = program->vocab,
      .vocab_padded = padded_vocabulary(source->model),
      .hidden = program->hidden,
      .layers = program->layers,
      .capacity = program->capacity,
      .max_lanes = program->max_lanes,
      .prefill_width = program->prefill_width,
      .model_positions = source->model->model_positions,
      .groups = stele_program_groups(program, 0),
      .group_count = (uint32_t)program->groups.count,
      .layer_group = stele_program_layer_group(program, 0),
      .workspace_bytes = program->workspace_bytes,
      .max_workers = program->max_workers,
  };
  BASE_TRY(add_variants(&d, &artifact));
  if (!artifact_phases(program, arena, &artifact)) return no_memory(&d);
  BASE_TRY(add_weights(&d, &artifact));
  BASE_TRY(add_ropes(&d, &artifact));
  BASE_TRY(add_texts(&d, &artifact));
  BASE_TRY(fingerprint(&d, artifact.fingerprint));
  *out_artifact = artifact;
  return STELE_OK;
}
