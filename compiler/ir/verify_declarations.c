/* The verifier's first part: the model's dimensions, weights, cache groups and rope tables, each
 * checked by itself and kept for the checks of the ops that name them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify.h"
#include "weights/weights.h"

enum { MAX_LAYERS = 1 << 16, MAX_PAGE_TOKENS = 64 };

/* An integer attribute that must be within [least, most]; 0 after a fault. */
static int64_t bounded(ir_checker *checker, MlirOperation op, const char *name, int64_t least,
                       int64_t most) {
  int64_t value = ir_int(op, name, least);
  if (value >= least && value <= most) return value;
  ir_fault(checker, op, "%s is %lld, expected %lld to %lld", name, (long long)value,
           (long long)least, (long long)most);
  return 0;
}

/* ---- model ----------------------------------------------------------------------------- */

static void check_model(ir_checker *checker, MlirOperation op) {
  if (checker->vocab) {
    ir_fault(checker, op, "declared twice");
    return;
  }
  checker->vocab = bounded(checker, op, "vocab", 1, INT32_MAX);
  checker->hidden = bounded(checker, op, "hidden", 1, INT32_MAX);
  checker->layers = bounded(checker, op, "layers", 1, MAX_LAYERS);
  checker->capacity = bounded(checker, op, "capacity", 1, INT32_MAX);
}

/* ---- weights --------------------------------------------------------------------------- */

static bool scheme_of(ir_checker *checker, MlirOperation op, const char *attribute,
                      uint32_t *out_scheme) {
  const char *name = ir_string(op, attribute, "");
  if (weights_scheme_by_name(name, out_scheme)) return true;
  ir_fault(checker, op, "%s '%s' is not known", attribute, name);
  return false;
}

static void check_weight(ir_checker *checker, MlirOperation op) {
  ir_known_weight w = {.name = ir_string(op, "name", ""),
                       .op = op,
                       .rows = bounded(checker, op, "rows", 1, INT32_MAX),
                       .columns = bounded(checker, op, "columns", 1, INT32_MAX),
                       .experts = ir_int(op, "experts", 0)};
  size_t row;
  if (!*w.name) ir_fault(checker, op, "the name is empty");
  if (scheme_of(checker, op, "scheme", &w.scheme) && w.columns &&
      !weights_row_bytes(w.scheme, (uint64_t)w.columns, &row))
    ir_fault(checker, op, "'%s': %lld columns are no multiple of the block of %u that '%s' has",
             w.name, (long long)w.columns, weights_scheme_get(w.scheme)->block,
             weights_scheme_get(w.scheme)->name);
  if (ir_has(op, "experts") && (w.experts < 1 || w.rows % w.experts))
    ir_fault(checker, op, "'%s': %lld rows are no multiple of its %lld experts", w.name,
             (long long)w.rows, (long long)w.experts);
  checker->weights[checker->weight_count++] = w;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const ir_known_weight *)a)->name, ((const ir_known_weight *)b)->name);
}

static void sort_weights(ir_checker *checker) {
  qsort(checker->weights, checker->weight_count, sizeof *checker->weights, by_name);
  for (uint32_t i = 1; i < checker->weight_count; i++)
    if (strcmp(checker->weights[i - 1].name, checker->weights[i].name) == 0)
      ir_fault(checker, checker->weights[i].op, "'%s' is declared twice", checker->weights[i].name);
}

const ir_known_weight *ir_known_weight_find(const ir_checker *checker, const char *name) {
  ir_known_weight key = {.name = name};
  if (!checker->weight_count) return NULL;
  return bsearch(&key, checker->weights, checker->weight_count, sizeof key, by_name);
}

/* ---- cache groups ---------------------------------------------------------------------- */

static void check_cache_scheme(ir_checker *checker, MlirOperation op, const char *attribute,
                               int64_t head) {
  uint32_t scheme;
  if (!scheme_of(checker, op, attribute, &scheme)) return;
  const weights_scheme *known = weights_scheme_get(scheme);
  if (!weights_scheme_is_cache(scheme))
    ir_fault(checker, op, "%s '%s', expected f32, f16, bf16, q8_0 or q4_0", attribute, known->name);
  else if (head % known->block)
    ir_fault(checker, op, "%s '%s' with heads of %lld, expected a multiple of %u", attribute,
             known->name, (long long)head, known->block);
}

static void check_pages(ir_checker *checker, MlirOperation op, int64_t window) {
  int64_t page = ir_int(op, "page_tokens", 0), capacity = ir_int(op, "capacity", 0);
  if (page < 1 || page > MAX_PAGE_TOKENS || (page & (page - 1)))
    ir_fault(checker, op, "page_tokens is %lld, expected a power of two up to %d", (long long)page,
             MAX_PAGE_TOKENS);
  else if (page > capacity || (window > 0 && page > window))
    ir_fault(checker, op, "a page of %lld tokens is larger than the %s of %lld", (long long)page,
             page > capacity ? "capacity" : "window",
             (long long)(page > capacity ? capacity : window));
}

/* The value is the beginning of the key. */
static void check_value_in_key(ir_checker *checker, MlirOperation op, const ir_known_group *g) {
  const char *key = ir_string(op, "key_scheme", ""), *value = ir_string(op, "value_scheme", "");
  if (g->value_head > g->key_head)
    ir_fault(checker, op, "values of %lld numbers in keys of %lld", (long long)g->value_head,
             (long long)g->key_head);
  if (strcmp(key, value) != 0)
    ir_fault(checker, op, "values in keys of scheme '%s', but value_scheme is '%s'", key, value);
}

static void check_group(ir_checker *checker, MlirOperation op) {
  const char *kind_name = ir_string(op, "kind", "");
  int64_t index = ir_int(op, "index", -1), window = ir_int(op, "window", 0);
  ir_known_group g = {.kv_heads = bounded(checker, op, "kv_heads", 1, UINT16_MAX),
                      .key_head = bounded(checker, op, "key_head", 1, UINT16_MAX),
                      .value_head = bounded(checker, op, "value_head", 1, UINT16_MAX),
                      .capacity = ir_int(op, "capacity", 0),
                      .window = window,
                      .page_tokens = ir_int(op, "page_tokens", 0),
                      .value_in_key = ir_int(op, "value_in_key", 0) != 0};
  uint32_t kind;
  if (!ir_number(IR_GROUP_KINDS, kind_name, &kind))
    ir_fault(checker, op, "kind '%s', expected full, window, chunk, cross or state", kind_name);
  else if ((kind == STELE_GROUP_WINDOW || kind == STELE_GROUP_CHUNK) ? window < 1 : window != 0)
    ir_fault(checker, op, "kind '%s' with a window of %lld tokens", kind_name, (long long)window);
  if (index != checker->group_count)
    ir_fault(checker, op, "index %lld, expected %u: groups are numbered in order", (long long)index,
             checker->group_count);
  if (checker->capacity && g.capacity != checker->capacity)
    ir_fault(checker, op, "capacity %lld, but the model's is %lld", (long long)g.capacity,
             (long long)checker->capacity);
  check_cache_scheme(checker, op, "key_scheme", g.key_head);
  check_cache_scheme(checker, op, "value_scheme", g.value_in_key ? g.key_head : g.value_head);
  if (g.value_in_key) check_value_in_key(checker, op, &g);
  check_pages(checker, op, window);
  checker->groups[checker->group_count++] = g;
}

/* ---- rope tables ----------------------------------------------------------------------- */

/* The rows of a fixed rule are a weight: one row for each position. */
static void check_rope_weight(ir_checker *checker, MlirOperation op, int64_t rotary) {
  const char *name = ir_string(op, "weight", NULL);
  if (!name) {
    ir_fault(checker, op, "rule 'fixed' without a weight that has the rows");
    return;
  }
  const ir_known_weight *w = ir_known_weight_find(checker, name);
  if (!w) {
    ir_fault(checker, op, "weight '%s' is not declared", name);
    return;
  }
  if (w->scheme != STELE_F32 || w->rows != checker->capacity || w->columns != rotary)
    ir_fault(checker, op, "weight '%s' is %lld x %lld, expected %lld x %lld in f32", name,
             (long long)w->rows, (long long)w->columns, (long long)checker->capacity,
             (long long)rotary);
}

static void check_rope_table(ir_checker *checker, MlirOperation op) {
  const char *rule_name = ir_string(op, "rule", "");
  int64_t index = ir_int(op, "index", -1);
  int64_t rotary = bounded(checker, op, "rotary", 2, UINT16_MAX);
  double base = ir_float(op, "base", 1);
  uint32_t rule;
  if (index != checker->rope_count)
    ir_fault(checker, op, "index %lld, expected %u: tables are numbered in order", (long long)index,
             checker->rope_count);
  if (rotary % 2) ir_fault(checker, op, "rotary is %lld, expected pairs", (long long)rotary);
  if (!isfinite(base) || base <= 0) ir_fault(checker, op, "base is %g, expected above 0", base);
  if (!ir_number(IR_ROPE_RULES, rule_name, &rule))
    ir_fault(checker, op, "rule '%s', expected fixed, dynamic or long", rule_name);
  else if (rule == STELE_ROPE_FIXED)
    check_rope_weight(checker, op, rotary);
  else if (ir_has(op, "weight"))
    ir_fault(checker, op, "rule '%s' with a weight: its rows come with each call", rule_name);
  else if (ir_int(op, "original", 0) < 1)
    ir_fault(checker, op, "rule '%s' without 'original', the tokens of the original model",
             rule_name);
  checker->rope_rotary[checker->rope_count++] = rotary;
}

/* ---- all of them ----------------------------------------------------------------------- */

/* Counts per kind first, so that the tables have room. */
static stele_status count_op(MlirOperation op, void *data) {
  uint32_t *counts = data;
  counts[ir_kind(op)]++;
  return STELE_OK;
}

typedef struct pass_over {
  ir_checker *checker;
  uint32_t kind;
  void (*check)(ir_checker *checker, MlirOperation op);
} pass_over;

static stele_status visit_kind(MlirOperation op, void *data) {
  const pass_over *over = data;
  if (ir_kind(op) != over->kind) return STELE_OK;
  if (ir_check_row(over->checker, op, over->kind)) over->check(over->checker, op);
  return STELE_OK;
}

static stele_status visit_stranger(MlirOperation op, void *data) {
  uint32_t kind = ir_kind(op);
  if (kind == STELE_OP_COUNT)
    ir_fault(data, op, "not an op of the dialect");
  else if (kind > STELE_OP_STEP)
    ir_fault(data, op, "belongs into a step");
  return STELE_OK;
}

static bool allocate(ir_checker *c) {
  uint32_t counts[STELE_OP_COUNT + 1] = {0};
  if (ir_walk_declarations(c->module, count_op, counts) != STELE_OK) return false;
  c->weights = base_arena_alloc(&c->arena, (size_t)counts[STELE_OP_WEIGHT] + 1, sizeof *c->weights);
  c->groups = base_arena_alloc(&c->arena, (size_t)counts[STELE_OP_GROUP] + 1, sizeof *c->groups);
  c->rope_rotary =
      base_arena_alloc(&c->arena, (size_t)counts[STELE_OP_ROPE_TABLE] + 1, sizeof *c->rope_rotary);
  if (!counts[STELE_OP_MODEL])
    ir_fault(c, mlirModuleGetOperation(c->module), "no 'model' is declared");
  return c->weights && c->groups && c->rope_rotary;
}

bool ir_check_declarations(ir_checker *checker) {
  /* In this order: weights and groups are checked against the model, tables against weights. */
  const pass_over passes[] = {{checker, STELE_OP_MODEL, check_model},
                              {checker, STELE_OP_WEIGHT, check_weight},
                              {checker, STELE_OP_GROUP, check_group},
                              {checker, STELE_OP_ROPE_TABLE, check_rope_table}};
  if (!allocate(checker)) return false;
  stele_status status = ir_walk_declarations(checker->module, visit_stranger, checker);
  for (size_t i = 0; i < sizeof passes / sizeof *passes && status == STELE_OK; i++) {
    pass_over over = passes[i];
    status = ir_walk_declarations(checker->module, visit_kind, &over);
    if (over.kind == STELE_OP_WEIGHT) sort_weights(checker);
  }
  return status == STELE_OK;
}
