/* What an artefact says of itself, checked before anything is sized by it. The code is trusted
 * once its hash is right, but a writer's mistake should end in a message, not in a session that
 * reads beyond a table. */
#include <inttypes.h>
#include <stddef.h>

#include "model/model.h"

#define MAX_LAYERS 65536u
#define MAX_ITEMS 1000000u /* lanes, widths, workers, counts of tables */

typedef struct check {
  const stele_artifact *a;
  const char *name;
  stele_sink *sink;
} check;

static stele_status bad(const check *c, const char *what, uint64_t found) {
  return base_fail(c->sink, STELE_BAD_FORMAT,
                   "'%s' does not describe itself well: %s (%" PRIu64 ")", c->name, what, found);
}

static bool in(uint64_t value, uint64_t low, uint64_t high) {
  return value >= low && value <= high;
}

static stele_status check_dimensions(const check *c) {
  const stele_artifact *a = c->a;
  if (!in(a->vocab, 1, INT32_MAX)) return bad(c, "vocabulary out of range", a->vocab);
  if (a->vocab_padded < a->vocab) return bad(c, "padded vocabulary too small", a->vocab_padded);
  if (!in(a->hidden, 1, INT32_MAX)) return bad(c, "hidden size out of range", a->hidden);
  if (a->layers > MAX_LAYERS) return bad(c, "too many layers", a->layers);
  if (!in(a->capacity, 1, INT32_MAX)) return bad(c, "capacity out of range", a->capacity);
  if (!in(a->max_lanes, 1, MAX_ITEMS)) return bad(c, "lanes out of range", a->max_lanes);
  if (!in(a->prefill_width, 1, MAX_ITEMS)) return bad(c, "prefill out of range", a->prefill_width);
  if (!in(a->max_workers, 1, MAX_ITEMS)) return bad(c, "workers out of range", a->max_workers);
  if (a->workspace_bytes > INT64_MAX) return bad(c, "workspace too large", a->workspace_bytes);
  return STELE_OK;
}

static bool is_cache_scheme(uint32_t scheme) {
  return scheme <= STELE_BF16 || scheme == STELE_Q8_0 || scheme == STELE_Q4_0;
}

/* A page is no larger than what is seen at a time, else it would hold slots of two chunks. */
static bool good_window(const stele_group *g) {
  bool forgets = g->kind == STELE_GROUP_WINDOW || g->kind == STELE_GROUP_CHUNK;
  return forgets ? g->window >= g->page_tokens : g->window == 0;
}

static stele_status check_group(const check *c, uint32_t i) {
  const stele_group *g = &c->a->groups[i];
  if (g->kind > STELE_GROUP_STATE) return bad(c, "unknown kind of layer group", g->kind);
  if (g->shared_with >= (int64_t)c->a->group_count || g->shared_with < -1 ||
      g->shared_with == (int64_t)i)
    return bad(c, "a layer group shared with none", i);
  if (g->state_bytes > INT64_MAX) return bad(c, "state too large in layer group", i);
  if (g->kind == STELE_GROUP_STATE) return STELE_OK;
  if (!in(g->page_tokens, 1, 64) || g->page_tokens & (g->page_tokens - 1))
    return bad(c, "tokens of a page are no power of two up to 64", g->page_tokens);
  if (!in(g->capacity, 1, INT32_MAX)) return bad(c, "capacity of a layer group", g->capacity);
  if (g->kind != STELE_GROUP_CROSS && g->capacity != c->a->capacity)
    return bad(c, "a layer group of another capacity", g->capacity);
  if (!good_window(g)) return bad(c, "tokens of a layer group's window", g->window);
  if (g->table_entries != (g->capacity - 1) / g->page_tokens + 1)
    return bad(c, "entries of a page table do not fit the capacity", g->table_entries);
  if (!g->page_bytes || g->page_bytes % 64 || g->page_bytes > INT64_MAX)
    return bad(c, "bytes of a page are no multiple of 64", g->page_bytes);
  if (!is_cache_scheme(g->key_scheme) || !is_cache_scheme(g->value_scheme))
    return bad(c, "keys or values in a scheme that is none of caches, layer group", i);
  if (!g->value_in_key && g->value_offset > g->page_bytes)
    return bad(c, "values outside of a page", g->value_offset);
  if (g->value_in_key && g->value_head > g->key_head)
    return bad(c, "values larger than the keys that they are in", g->value_head);
  return STELE_OK;
}

static stele_status check_groups(const check *c) {
  const stele_artifact *a = c->a;
  if (a->group_count > a->layers) return bad(c, "more layer groups than layers", a->group_count);
  if ((a->group_count && !a->groups) || (a->layers && !a->layer_group))
    return bad(c, "layer groups are missing", a->group_count);
  for (uint32_t i = 0; i < a->group_count; i++) BASE_TRY(check_group(c, i));
  uint32_t grouped = 0, announced = 0;
  for (uint32_t l = 0; l < a->layers; l++) {
    if (a->layer_group[l] == UINT32_MAX) continue;
    if (a->layer_group[l] >= a->group_count) return bad(c, "group of a layer out of range", l);
    grouped++;
  }
  for (uint32_t i = 0; i < a->group_count; i++) {
    uint32_t layers = 0;
    for (uint32_t l = 0; l < a->layers; l++) layers += a->layer_group[l] == i;
    if (layers != a->groups[i].layers) return bad(c, "layers of a group miscounted", i);
    announced += layers;
  }
  return announced == grouped ? STELE_OK : bad(c, "layers of groups miscounted", announced);
}

static stele_status check_variants(const check *c) {
  const stele_artifact *a = c->a;
  if (!in(a->variant_count, 1, MAX_ITEMS) || !a->variants)
    return bad(c, "no variant of the code", a->variant_count);
  for (uint32_t v = 0; v < a->variant_count; v++) {
    const stele_variant *variant = &a->variants[v];
    if (!variant->name || !in(variant->step_count, 1, MAX_ITEMS) || !variant->steps)
      return bad(c, "a variant without steps", v);
    for (uint32_t s = 0; s < variant->step_count; s++) {
      const stele_step *step = &variant->steps[s];
      bool good = step->run && step->kind <= STELE_STEP_ENCODE &&
                  step->output <= STELE_OUTPUT_HIDDEN && in(step->lanes, 1, a->max_lanes) &&
                  in(step->width, 1, MAX_ITEMS) &&
                  (step->kind != STELE_STEP_DECODE || step->width == 1) &&
                  (step->kind != STELE_STEP_VERIFY || step->lanes == 1);
      if (!good) return bad(c, "a step out of range", s);
    }
  }
  return STELE_OK;
}

static stele_status check_phase_op(const check *c, const stele_step_phases *p, uint32_t i) {
  const stele_artifact *a = c->a;
  const stele_phase_op *op = &p->ops[i];
  uint32_t before = i ? p->ops[i - 1].phase : 0;
  if (op->name >= a->op_name_count) return bad(c, "name of an op out of range", op->name);
  if (i ? op->phase < before || op->phase - before > 1 : op->phase != 0)
    return bad(c, "phases of a step out of order", op->phase);
  if (op->layer < -1 || op->layer >= (int64_t)a->layers)
    return bad(c, "layer of an op out of range", i);
  if (op->group < -1 || op->group >= (int64_t)a->group_count)
    return bad(c, "layer group of an op out of range", i);
  for (int w = 0; w < 3; w++)
    if (op->weight[w] < -1 || op->weight[w] >= (int64_t)a->weight_count)
      return bad(c, "weight of an op out of range", i);
  return STELE_OK;
}

static stele_status check_step_phases(const check *c, const stele_step_phases *p) {
  if (p->op_count > MAX_ITEMS || (p->op_count && !p->ops))
    return bad(c, "ops of a step are missing", p->op_count);
  for (uint32_t i = 0; i < p->op_count; i++) BASE_TRY(check_phase_op(c, p, i));
  uint32_t phases = p->op_count ? p->ops[p->op_count - 1].phase + 1 : 0;
  return p->phase_count == phases ? STELE_OK
                                  : bad(c, "phases of a step miscounted", p->phase_count);
}

/* Artefacts of before have none. */
static stele_status check_phases(const check *c) {
  const stele_artifact *a = c->a;
  if (!model_has_phases(a)) return STELE_OK;
  if (a->op_name_count > MAX_ITEMS || (a->op_name_count && !a->op_names))
    return bad(c, "names of ops are missing", a->op_name_count);
  for (uint32_t i = 0; i < a->op_name_count; i++)
    if (!a->op_names[i]) return bad(c, "names of ops are missing", i);
  if (a->step_phases_count > MAX_ITEMS || (a->step_phases_count && !a->step_phases))
    return bad(c, "phases of steps are missing", a->step_phases_count);
  for (uint32_t i = 0; i < a->step_phases_count; i++)
    BASE_TRY(check_step_phases(c, &a->step_phases[i]));
  return STELE_OK;
}

static stele_status check_ropes(const check *c) {
  const stele_artifact *a = c->a;
  if (a->rope_count > MAX_ITEMS || (a->rope_count && !a->ropes))
    return bad(c, "rope tables are missing", a->rope_count);
  for (uint32_t i = 0; i < a->rope_count; i++) {
    const stele_rope *r = &a->ropes[i];
    if (r->rule > STELE_ROPE_LONG) return bad(c, "unknown rope rule", r->rule);
    if (r->rule == STELE_ROPE_FIXED) continue;
    if (!in(r->rotary, 2, 65536) || r->rotary % 2) return bad(c, "rotary size", r->rotary);
    if (!(r->base > 0) || !r->original) return bad(c, "rope without base or length", i);
    if (r->rule == STELE_ROPE_DYNAMIC && r->rotary == 2) return bad(c, "rotary size", 2);
    if (r->rule == STELE_ROPE_LONG && (!r->short_factors || !r->long_factors))
      return bad(c, "rope factors are missing", i);
  }
  return STELE_OK;
}

static stele_status check_weights(const check *c, const stele_trailer *t) {
  const stele_artifact *a = c->a;
  if (a->weights_bytes != t->weights_bytes)
    return bad(c, "bytes of weights differ from the trailer's", a->weights_bytes);
  if (!a->weights_file != (t->weights_offset != 0))
    return bad(c, "place of weights differs from the trailer's", t->weights_offset);
  if (a->weight_count && !a->weights) return bad(c, "weights are missing", a->weight_count);
  for (uint32_t i = 0; i < a->weight_count; i++) {
    const stele_weight *w = &a->weights[i];
    if (!w->name || w->offset > a->weights_bytes || w->bytes > a->weights_bytes - w->offset)
      return bad(c, "a weight outside of the weights", i);
  }
  return STELE_OK;
}

bool model_has_phases(const stele_artifact *artifact) {
  return artifact->struct_bytes >=
         offsetof(stele_artifact, op_name_count) + sizeof artifact->op_name_count;
}

stele_status model_check_artifact(const stele_artifact *artifact, const stele_trailer *trailer,
                                  const char *name, stele_sink *sink) {
  const check c = {artifact, name, sink};
  if (artifact->abi != STELE_ARTIFACT_ABI)
    return base_fail(sink, STELE_MISMATCH,
                     "'%s' follows version %" PRIu32
                     " of the artefact format, this library reads version %u: compile it again",
                     name, artifact->abi, STELE_ARTIFACT_ABI);
  if (artifact->struct_bytes < offsetof(stele_artifact, step_phases))
    return bad(&c, "its description is too short", artifact->struct_bytes);
  BASE_TRY(check_dimensions(&c));
  BASE_TRY(check_groups(&c));
  BASE_TRY(check_variants(&c));
  BASE_TRY(check_ropes(&c));
  BASE_TRY(check_weights(&c, trailer));
  BASE_TRY(check_phases(&c));
  if (artifact->tokenizer_bytes && !artifact->tokenizer)
    return bad(&c, "its tokenizer is missing", artifact->tokenizer_bytes);
  if (artifact->stop_count > MAX_ITEMS || (artifact->stop_count && !artifact->stop_ids))
    return bad(&c, "its stop ids are missing", artifact->stop_count);
  return STELE_OK;
}
