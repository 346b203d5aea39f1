/* The code of a fake artefact, a module that the tests' writer completes (fake_artifact.h). Steps
 * follow the contract to the letter: shapes are constants, work is shared between workers, a
 * barrier parts what depends on each other, nothing past a lane's valid tokens is touched. Where
 * an argument breaks the contract the outputs are -7 and NaN. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "fake_model.h"
#include "stele/artifact.h"

static volatile fake_config patched = {.mark = FAKE_MARK};
static volatile fake_tokenizer patched_tokenizer = {.mark = FAKE_TOKENIZER_MARK};
static fake_config config;

typedef struct shape {
  uint32_t kind, lanes, width, output;
} shape;

/* One call: everything that its helpers need. */
typedef struct call {
  const stele_env *env;
  const stele_step_args *args;
  const shape *shape;
  uint32_t worker, workers;
  uint32_t *hashes; /* [lanes * width] in the workspace */
  uint32_t *bests;  /* [lanes, of verify steps width][workers] */
} call;

static stele_group groups[FAKE_GROUPS];

static uint32_t *numbers(const call *c, uint32_t layer, int32_t page, uint32_t head, uint32_t at,
                         bool value) {
  const stele_group *g = &groups[fake_layer_group[layer]];
  uint8_t *memory = c->env->layer_pages[layer] + (uint64_t)page * g->page_bytes;
  if (value) memory += g->value_offset;
  return (uint32_t *)(void *)memory + head * g->page_tokens + at;
}

static const int32_t *table(const int32_t *const *tables, uint32_t layer, uint32_t lane) {
  uint32_t group = fake_layer_group[layer];
  return tables[group] + (uint64_t)lane * groups[group].table_entries;
}

static bool mine(const call *c, uint32_t item) { return item % c->workers == c->worker; }

static uint32_t key_of(const call *c, uint32_t lane, uint32_t t, uint32_t layer, uint32_t head) {
  const uint32_t *weights = (const uint32_t *)(const void *)c->env->weights;
  uint32_t i = lane * c->shape->width + t;
  return fake_key(weights[c->args->ids[i]], (uint32_t)c->args->positions[i], layer, head);
}

static uint32_t value_of(uint32_t key, uint32_t slot) {
  return config.value_in_key ? key : fake_value(key, slot);
}

static void store_token(const call *c, uint32_t lane, uint32_t t, uint32_t layer) {
  const stele_step_args *a = c->args;
  uint32_t slot = (uint32_t)a->filled[lane] + t;
  uint32_t page_tokens = groups[fake_layer_group[layer]].page_tokens;
  int32_t page = table(a->store_pages, layer, lane)[slot / page_tokens];
  for (uint32_t head = 0; page >= 0 && head < FAKE_HEADS; head++) {
    uint32_t key = key_of(c, lane, t, layer, head);
    *numbers(c, layer, page, head, slot % page_tokens, false) = key;
    if (!config.value_in_key)
      *numbers(c, layer, page, head, slot % page_tokens, true) = fake_value(key, slot);
  }
}

static void store_tokens(const call *c) {
  for (uint32_t lane = 0; lane < c->shape->lanes; lane++)
    for (uint32_t t = 0; t < (uint32_t)c->args->valid[lane]; t++)
      for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++)
        if (mine(c, t * FAKE_LAYERS + layer + lane)) store_token(c, lane, t, layer);
}

/* What a layer has of a slot: in wide steps their own tokens come from beside the pages. */
static uint32_t see_slot(const call *c, uint32_t hash, uint32_t lane, uint32_t slot,
                         uint32_t layer) {
  uint32_t filled = (uint32_t)c->args->filled[lane];
  uint32_t page_tokens = groups[fake_layer_group[layer]].page_tokens;
  int32_t page = table(c->args->read_pages, layer, lane)[slot / page_tokens];
  bool own = c->shape->width > 1 && slot >= filled;
  for (uint32_t head = 0; (own || page >= 0) && head < FAKE_HEADS; head++) {
    uint32_t key = own ? key_of(c, lane, slot - filled, layer, head)
                       : *numbers(c, layer, page, head, slot % page_tokens, false);
    bool stored = !own && !config.value_in_key;
    hash = fake_see(
        hash, key,
        stored ? *numbers(c, layer, page, head, slot % page_tokens, true) : value_of(key, slot));
  }
  return hash;
}

static uint32_t hash_token(const call *c, uint32_t lane, uint32_t t) {
  const stele_step_args *a = c->args;
  uint32_t hash = config.seed, slot = (uint32_t)a->filled[lane] + t;
  uint32_t begin = fake_oldest(&config, slot), first = (uint32_t)a->first[lane];
  for (uint32_t s = begin < first ? first : begin; s <= slot; s++)
    for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++)
      if (s >= fake_seen_from(&config, layer, slot)) hash = see_slot(c, hash, lane, s, layer);
  return fake_settle(hash, slot, config.period);
}

static bool good_arguments(const call *c) {
  const stele_step_args *a = c->args;
  if (a->struct_bytes < sizeof *a || c->env->struct_bytes < sizeof *c->env) return false;
  if (c->env->layers != FAKE_LAYERS || (uintptr_t)c->env->workspace % 64) return false;
  if ((config.rope_rule != STELE_ROPE_FIXED) != (a->rope != NULL)) return false;
  for (uint32_t lane = 0; lane < c->shape->lanes; lane++) {
    if (a->valid[lane] < 0 || (uint32_t)a->valid[lane] > c->shape->width) return false;
    for (int32_t t = 0; t < a->valid[lane]; t++) {
      uint32_t i = lane * c->shape->width + (uint32_t)t;
      if (a->ids[i] < 0 || (uint32_t)a->ids[i] >= config.vocab) return false;
      if (a->positions[i] != a->filled[lane] - a->first[lane] + t) return false;
    }
  }
  return true;
}

static void write_logits(const call *c, uint32_t hash, float *logits, bool good) {
  for (uint32_t v = c->worker; v < config.vocab; v += c->workers)
    logits[v] = good ? fake_logit(hash, v) : NAN;
}

static void write_hidden(const call *c, uint32_t lane, uint32_t t) {
  const shape *s = c->shape;
  uint32_t token = lane * s->width + t;
  for (uint32_t l = 0; l <= FAKE_LAYERS; l++)
    for (uint32_t i = 0; i < FAKE_HIDDEN; i++) {
      float *out = c->args->out_hidden + ((uint64_t)l * s->lanes * s->width + token) * FAKE_HIDDEN;
      bool rope = l == 0 && c->args->rope && i < FAKE_ROTARY;
      out[i] = rope ? c->args->rope[(uint64_t)token * FAKE_ROTARY + i]
                    : fake_hidden(c->hashes[token], l, i);
    }
}

static void find_best(const call *c, uint32_t row, uint32_t hash) {
  uint32_t best = UINT32_MAX;
  for (uint32_t v = c->worker; v < config.vocab; v += c->workers)
    if (best == UINT32_MAX || fake_logit(hash, v) > fake_logit(hash, best)) best = v;
  c->bests[row * c->workers + c->worker] = best;
}

static void reduce_best(const call *c, uint32_t row, uint32_t hash, bool good) {
  uint32_t best = UINT32_MAX;
  for (uint32_t w = 0; w < c->workers; w++) {
    uint32_t v = c->bests[row * c->workers + w];
    if (v == UINT32_MAX) continue;
    float old = best == UINT32_MAX ? -1 : fake_logit(hash, best), new = fake_logit(hash, v);
    if (new > old || (new == old && v < best)) best = v;
  }
  c->args->out_tokens[row] = good ? (int32_t)best : -7;
}

/* Rows of out_tokens that a lane has, and the hash of each. */
static uint32_t answers(const call *c, uint32_t lane) {
  uint32_t valid = (uint32_t)c->args->valid[lane];
  return c->shape->kind == STELE_STEP_VERIFY ? valid : valid > 0;
}
static uint32_t hash_of_answer(const call *c, uint32_t lane, uint32_t i) {
  bool verify = c->shape->kind == STELE_STEP_VERIFY;
  uint32_t last = (uint32_t)c->args->valid[lane] - 1;
  return c->hashes[lane * c->shape->width + (verify ? i : last)];
}

static void meet(const call *c) {
  if (c->env->barrier) c->env->barrier(c->env->barrier_data, c->worker);
}

static void write_outputs(const call *c, bool good) {
  const shape *s = c->shape;
  for (uint32_t lane = 0; lane < s->lanes; lane++) {
    uint32_t valid = (uint32_t)c->args->valid[lane], token = lane * s->width;
    if (!valid) continue;
    uint32_t last = c->hashes[token + valid - 1];
    float *logits = c->args->out_logits;
    for (uint32_t i = 0; s->output == STELE_OUTPUT_TOKEN && i < answers(c, lane); i++)
      find_best(c, lane + i, hash_of_answer(c, lane, i));
    if (s->output == STELE_OUTPUT_LAST)
      write_logits(c, last, logits + (uint64_t)lane * config.vocab, good);
    for (uint32_t t = 0; t < valid; t++) {
      if (s->output == STELE_OUTPUT_ALL)
        write_logits(c, c->hashes[token + t], logits + (uint64_t)(token + t) * config.vocab, good);
      if (s->output == STELE_OUTPUT_HIDDEN && mine(c, t)) write_hidden(c, lane, t);
    }
  }
}

static void run(const shape *s, const stele_env *env, const stele_step_args *args, uint32_t worker,
                uint32_t workers) {
  uint32_t *memory = (uint32_t *)(void *)env->workspace;
  const call c = {env, args, s, worker, workers, memory, memory + s->lanes * s->width};
  bool good = good_arguments(&c);
  if (good && s->width == 1) store_tokens(&c);
  meet(&c);
  for (uint32_t lane = 0; lane < s->lanes; lane++)
    for (uint32_t t = 0; good && t < (uint32_t)args->valid[lane]; t++)
      if (mine(&c, lane + t)) c.hashes[lane * s->width + t] = hash_token(&c, lane, t);
  meet(&c);
  if (good && s->width > 1) store_tokens(&c);
  write_outputs(&c, good);
  if (s->output != STELE_OUTPUT_TOKEN) return;
  meet(&c);
  for (uint32_t lane = 0; worker == 0 && lane < s->lanes; lane++)
    for (uint32_t i = 0; i < answers(&c, lane); i++)
      reduce_best(&c, lane + i, hash_of_answer(&c, lane, i), good);
}

/* ---- the table of steps ---------------------------------------------------------------- */

#define STEPS(X)            \
  X(DECODE, 1, 1, NONE)     \
  X(DECODE, 1, 1, TOKEN)    \
  X(DECODE, 1, 1, LAST)     \
  X(DECODE, 1, 1, HIDDEN)   \
  X(DECODE, 2, 1, TOKEN)    \
  X(DECODE, 2, 1, LAST)     \
  X(DECODE, 4, 1, TOKEN)    \
  X(DECODE, 4, 1, LAST)     \
  X(PREFILL, 1, 5, NONE)    \
  X(PREFILL, 1, 5, TOKEN)   \
  X(PREFILL, 1, 5, LAST)    \
  X(PREFILL, 1, 5, ALL)     \
  X(PREFILL, 1, 5, HIDDEN)  \
  X(PREFILL, 1, 16, NONE)   \
  X(PREFILL, 1, 16, TOKEN)  \
  X(PREFILL, 1, 16, LAST)   \
  X(PREFILL, 1, 16, ALL)    \
  X(PREFILL, 1, 16, HIDDEN) \
  X(VERIFY, 1, 3, TOKEN)    \
  X(VERIFY, 1, 8, TOKEN)

#define DEFINE(kind, lanes, width, output)                                              \
  static void step_##kind##_##lanes##_##width##_##output(                               \
      const stele_env *env, const stele_step_args *args, uint32_t worker, uint32_t n) { \
    static const shape s = {STELE_STEP_##kind, lanes, width, STELE_OUTPUT_##output};    \
    run(&s, env, args, worker, n);                                                      \
  }
STEPS(DEFINE)

#define ROW(kind, lanes, width, output)        \
  {STELE_STEP_##kind,                          \
   lanes,                                      \
   width,                                      \
   STELE_OUTPUT_##output,                      \
   step_##kind##_##lanes##_##width##_##output, \
   FAKE_LAYERS * 64},
static const stele_step all_steps[] = {STEPS(ROW)};
#define ALL_STEPS (sizeof all_steps / sizeof *all_steps)

/* ---- what it says of itself -------------------------------------------------------------- */

/* Steps with other outputs than a token end with their third phase. */
static const char *const op_names[] = {"store", "hash", "output", "best"};
static stele_phase_op phase_ops[] = {
    {.name = 0, .phase = 0, .layer = 1, .group = -1, .weight = {0, -1, -1}, .weight_bytes = 4},
    {.name = 1, .phase = 1, .layer = 2, .group = 0, .weight = {-1, -1, -1}},
    {.name = 2, .phase = 2, .layer = -1, .group = -1, .weight = {-1, -1, -1}},
    {.name = 3, .phase = 3, .layer = -1, .group = -1, .weight = {-1, -1, -1}}};

static stele_step steps[ALL_STEPS];
static stele_step_phases step_phases[ALL_STEPS];
static stele_variant variants[2];
static stele_weight weight = {.name = "table"};
static stele_rope rope;
static stele_artifact artifact;
static const float long_factors[FAKE_ROTARY / 2] = {4, 3, 2, 1.5f};
static const float short_factors[FAKE_ROTARY / 2] = {1, 1.1f, 1.2f, 1.3f};

static uint32_t choose_steps(void) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < ALL_STEPS; i++) {
    const stele_step *s = &all_steps[i];
    bool wanted = s->lanes <= config.max_lanes && (config.outputs >> s->output & 1);
    if (s->kind == STELE_STEP_PREFILL) wanted = wanted && s->width == config.prefill_width;
    if (s->kind == STELE_STEP_VERIFY) wanted = wanted && s->width == config.verify_width;
    uint32_t phases = s->output == STELE_OUTPUT_TOKEN ? 4 : 3;
    if (wanted) step_phases[n] = (stele_step_phases){phase_ops, phases, phases};
    if (wanted) steps[n++] = *s;
  }
  return n;
}

static void describe_groups(void) {
  for (uint32_t i = 0; i < FAKE_GROUPS; i++) {
    uint32_t page_tokens = config.page_tokens[i];
    groups[i] = (stele_group){.kind = config.kind[i],
                              .layers = i == 0 ? 2 : 1,
                              .kv_heads = FAKE_HEADS,
                              .key_head = 1,
                              .value_head = 1,
                              .capacity = config.capacity,
                              .window = config.window[i],
                              .value_in_key = config.value_in_key,
                              .page_tokens = page_tokens,
                              .table_entries = (config.capacity + page_tokens - 1) / page_tokens,
                              .shared_with = -1,
                              .value_offset = FAKE_HEADS * page_tokens * 4};
    groups[i].page_bytes = groups[i].value_offset * (config.value_in_key ? 1 : 2);
    groups[i].page_bytes = (groups[i].page_bytes + 63) / 64 * 64;
  }
}

static void tell_lie(void) {
  static const uint32_t wrong_groups[FAKE_LAYERS] = {0, 7, 0};
  switch (config.lie) {
    case FAKE_LIE_NO_VARIANT:
      artifact.variant_count = 0;
      break;
    case FAKE_LIE_NO_STEPS:
      variants[0].step_count = 0;
      break;
    case FAKE_LIE_PAGE_TOKENS:
      groups[1].page_tokens = 24;
      break;
    case FAKE_LIE_TABLE_ENTRIES:
      groups[0].table_entries++;
      break;
    case FAKE_LIE_LAYER_GROUP:
      artifact.layer_group = wrong_groups;
      break;
    case FAKE_LIE_WEIGHTS_BYTES:
      artifact.weights_bytes++;
      break;
    case FAKE_LIE_GROUP_KIND:
      groups[0].kind = 9;
      break;
    case FAKE_LIE_ABI:
      artifact.abi = STELE_ARTIFACT_ABI + 1;
      break;
    case FAKE_LIE_VOCAB:
      artifact.vocab = 0;
      break;
    case FAKE_LIE_WEIGHT_RANGE:
      weight.bytes++;
      break;
    case FAKE_LIE_ROPE:
      rope.rule = 77;
      break;
    case FAKE_LIE_PHASE_NAME:
      phase_ops[1].name = 4;
      break;
    case FAKE_LIE_PHASE_ORDER:
      phase_ops[1].phase = 2;
      break;
    case FAKE_LIE_PHASE_COUNT:
      step_phases[0].phase_count++;
      break;
    case FAKE_LIE_PHASE_LAYER:
      phase_ops[2].layer = FAKE_LAYERS;
      break;
    case FAKE_LIE_PHASE_GROUP:
      phase_ops[1].group = FAKE_GROUPS;
      break;
    case FAKE_LIE_PHASE_WEIGHT:
      phase_ops[2].weight[2] = -2;
      break;
    default:
      break;
  }
}

__attribute__((constructor)) static void describe(void) {
  for (size_t i = 0; i < sizeof config; i++)
    ((char *)&config)[i] = ((const volatile char *)&patched)[i];
  describe_groups();
  variants[0] = (stele_variant){"first", config.features[0], steps, choose_steps(), 0};
  variants[1] = (stele_variant){"second", config.features[1], steps, variants[0].step_count, 0};
  weight.rows = 1;
  weight.columns = config.vocab;
  weight.scheme = STELE_I32;
  weight.bytes = config.weights_bytes;
  rope = (stele_rope){.rule = config.rope_rule,
                      .rotary = FAKE_ROTARY,
                      .base = 10000,
                      .factor = config.rope_factor,
                      .original = config.rope_original,
                      .attention_factor = 1.25,
                      .short_factors = short_factors,
                      .long_factors = long_factors};
  artifact = (stele_artifact){.struct_bytes = sizeof artifact,
                              .abi = STELE_ARTIFACT_ABI,
                              .fingerprint = {config.seed, 42},
                              .producer = "tests",
                              .target = "fake",
                              .triple = "none",
                              .description = "{\"family\":\"fake\"}",
                              .vocab = config.vocab,
                              .vocab_padded = config.vocab,
                              .hidden = FAKE_HIDDEN,
                              .layers = FAKE_LAYERS,
                              .capacity = config.capacity,
                              .max_lanes = config.max_lanes,
                              .prefill_width = config.prefill_width,
                              .groups = groups,
                              .group_count = FAKE_GROUPS,
                              .layer_group = fake_layer_group,
                              .ropes = &rope,
                              .rope_count = 1,
                              .workspace_bytes = 4096 + 64 * config.max_workers,
                              .max_workers = config.max_workers,
                              .variants = variants,
                              .variant_count = config.variant_count,
                              .weights = &weight,
                              .weight_count = 1,
                              .weights_bytes = config.weights_bytes,
                              .weights_file = config.weights_file[0] ? config.weights_file : NULL,
                              .stop_ids = config.stop_ids,
                              .stop_count = config.stop_count,
                              .stop_source = "tests",
                              .step_phases = step_phases,
                              .op_names = op_names,
                              .step_phases_count = variants[0].step_count,
                              .op_name_count = 4};
  if (config.old) artifact.struct_bytes = offsetof(stele_artifact, step_phases);
  artifact.tokenizer_bytes = patched_tokenizer.bytes;
  if (patched_tokenizer.bytes)
    artifact.tokenizer = (const uint8_t *)(uintptr_t)patched_tokenizer.data;
  tell_lie();
}

__attribute__((visibility("default"))) const stele_artifact *stele_artifact_query(uint32_t abi);
const stele_artifact *stele_artifact_query(uint32_t abi) {
  return abi == STELE_ARTIFACT_ABI && config.lie != FAKE_LIE_SILENT ? &artifact : NULL;
}
