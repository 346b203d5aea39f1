/* plan-memory (lowering; trivial: every value has memory of its own)
 * requires: the scheduled level, after schedule
 * ensures:  every value, every worker's prepared input, linear_argmax's bests and the staged pages
 *           have a place in one workspace; each step says how many bytes it needs. A linear whose
 *           values are the step's logits writes to the output itself; linear_add writes over its
 *           residual where nobody else still reads that
 * gone:     nothing
 *
 * Time is counted in barriers passed. Memory goes from one value to another only when a barrier
 * lies between the last reader of the one and the maker of the other: then no worker can be behind
 * it. Places are found by size, largest first, each at the lowest offset that is free for its whole
 * life (greedy by size: Pisarchyk and Lee, "Efficient memory management for deep neural net
 * inference", 2020). Layers repeat, so their values come to lie at the same offsets. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct piece {
  uint64_t bytes; /* of one copy */
  uint64_t total; /* of all copies */
  uint64_t offset;
  uint32_t first, last; /* barriers passed, inclusive */
  uint32_t order;       /* of creation, to break ties */
  int32_t over;         /* piece whose memory it takes over, -1: its own */
  MlirOperation op;
  const char *name; /* the attribute that tells its place */
  int64_t tokens, columns;
  uint32_t scheme, per_worker;
} piece;

typedef struct plan {
  pass_step *step;
  bool trivial;
  piece *pieces;
  uint32_t count;
  uint32_t *begin; /* barriers passed as op i begins */
  int32_t *result; /* piece of op i's result, -1: none */
} plan;

/* ---- time ------------------------------------------------------------------------------ */

static void count_barriers(plan *p) {
  uint32_t now = 0;
  for (uint32_t i = 0; i < p->step->count; i++) {
    now += ir_int(p->step->ops[i], "barrier", 0) != 0;
    p->begin[i] = now;
    now += ir_is(p->step->ops[i], STELE_OP_LINEAR_ARGMAX);
  }
}

static uint32_t begin_of(const plan *p, MlirOperation op) {
  uint32_t i = pass_map_get(&p->step->index, op);
  return i == PASS_ABSENT ? 0 : p->begin[i];
}

/* The last time that a value is read, at least `made`. */
static uint32_t last_read(const plan *p, MlirValue value, uint32_t made) {
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use)) {
    uint32_t time = begin_of(p, mlirOpOperandGetOwner(use));
    if (time > made) made = time;
  }
  return made;
}

/* ---- pieces ---------------------------------------------------------------------------- */

static stele_status add_piece(plan *p, piece made, uint64_t bytes, int32_t *out_index) {
  uint64_t copies = made.per_worker ? base_max(p->step->context->traits.max_workers, 1) : 1;
  if (bytes > INT64_MAX / 2 / copies / 2)
    return base_fail(p->step->context->sink, STELE_UNSUPPORTED,
                     "a value of %lld tokens and %lld columns does not fit into memory",
                     (long long)made.tokens, (long long)made.columns);
  made.bytes = base_align(base_max(bytes, 1), PASS_LINE);
  made.total = made.bytes * copies;
  made.order = p->count;
  made.over = -1;
  if (out_index) *out_index = (int32_t)p->count;
  p->pieces[p->count++] = made;
  return STELE_OK;
}

static stele_status value_bytes(const plan *p, uint32_t scheme, int64_t tokens, int64_t columns,
                                uint64_t *out_bytes) {
  if (tokens <= 0 || columns <= 0 || columns > INT32_MAX || tokens > INT32_MAX)
    return base_fail(p->step->context->sink, STELE_BAD_FORMAT,
                     "a value has %lld tokens and %lld columns, expected 1 to 2147483647",
                     (long long)tokens, (long long)columns);
  *out_bytes = (uint64_t)tokens * pass_row_bytes(scheme, (uint64_t)columns);
  return STELE_OK;
}

static bool makes_value(MlirOperation op) {
  uint32_t kind = ir_kind(op);
  return pass_is_work(kind) && kind != STELE_OP_CACHE_UPDATE && mlirOperationGetNumResults(op) > 0;
}

static stele_status add_result(plan *p, uint32_t i) {
  MlirOperation op = p->step->ops[i];
  if (!makes_value(op) || ir_int(op, "logits", 0)) return STELE_OK;
  uint32_t made = p->begin[i] + ir_is(op, STELE_OP_LINEAR_ARGMAX);
  piece r = {.first = p->begin[i], .op = op, .name = "buffer", .scheme = pass_scheme(op)};
  r.last = last_read(p, pass_result(op), made);
  ir_shape(pass_result(op), &r.tokens, &r.columns);
  uint64_t bytes;
  BASE_TRY(value_bytes(p, r.scheme, r.tokens, r.columns, &bytes));
  return add_piece(p, r, bytes, &p->result[i]);
}

/* What a linear op's workers make of its input, each for itself. */
static stele_status add_prepared(plan *p, uint32_t i) {
  MlirOperation op = p->step->ops[i];
  if (!pass_is_linear(ir_kind(op)) || !pass_has_prologue(op)) return STELE_OK;
  piece r = {.first = p->begin[i],
             .last = p->begin[i],
             .op = op,
             .name = "prepared",
             .scheme = pass_activation(op),
             .per_worker = 1};
  ir_shape(pass_operand(op, 0), &r.tokens, &r.columns);
  if (ir_int(op, "combine", 0)) { /* what comes of the parts, not the parts */
    stele_group g;
    BASE_TRY(pass_group(p->step->context, ir_int(op, "group", 0), &g));
    r.columns = ir_int(op, "heads", 0) * g.value_head;
  }
  uint64_t bytes;
  BASE_TRY(value_bytes(p, r.scheme, r.tokens, r.columns, &bytes));
  return add_piece(p, r, bytes, NULL);
}

static stele_status add_scratch(plan *p, uint32_t i) {
  MlirOperation op = p->step->ops[i];
  if (!ir_is(op, STELE_OP_LINEAR_ARGMAX)) return STELE_OK;
  piece r = {.first = p->begin[i],
             .last = p->begin[i] + 1,
             .op = op,
             .name = "scratch",
             .tokens = ir_int(op, "tiles", 1) * pass_tokens(op),
             .columns = 2};
  uint64_t bytes;
  BASE_TRY(value_bytes(p, STELE_F32, r.tokens, r.columns, &bytes));
  return add_piece(p, r, bytes, NULL);
}

static stele_status add_stage(plan *p, uint32_t i) {
  MlirOperation op = p->step->ops[i];
  if (!ir_int(op, "staged", 0)) return STELE_OK;
  stele_group g;
  BASE_TRY(pass_group(p->step->context, ir_int(op, "group", 0), &g));
  uint64_t images = ((uint64_t)p->step->width + g.page_tokens - 1) / g.page_tokens + 1;
  images *= (uint64_t)p->step->lanes;
  size_t bytes;
  if (!base_mul(images, g.page_bytes, &bytes)) bytes = SIZE_MAX;
  piece r = {.first = p->begin[i],
             .op = op,
             .name = "stage",
             .scheme = STELE_F32, /* whatever is in them: so many words an image */
             .tokens = (int64_t)images,
             .columns = (int64_t)(g.page_bytes / sizeof(float))};
  intptr_t cache = mlirOperationGetNumResults(op) - 1;
  r.last = last_read(p, mlirOperationGetResult(op, cache), p->begin[i]);
  return add_piece(p, r, bytes, NULL);
}

/* ---- in place -------------------------------------------------------------------------- */

static int32_t root(const plan *p, int32_t i) {
  while (p->pieces[i].over >= 0) i = p->pieces[i].over;
  return i;
}

/* Lets linear_add write over its residual: each row is read and written by the same tile. Every
 * other reader of the residual must be behind a barrier by then. */
static void take_over(plan *p, uint32_t i) {
  MlirOperation op = p->step->ops[i];
  if (!ir_is(op, STELE_OP_LINEAR_ADD)) return;
  MlirValue residual = pass_operand(op, 1);
  uint32_t maker = pass_map_get(&p->step->index, ir_definer(residual));
  if (mlirValueEqual(residual, pass_operand(op, 0)) || maker == PASS_ABSENT ||
      p->result[maker] < 0 || pass_scheme(p->step->ops[maker]) != STELE_F32)
    return;
  for (MlirOpOperand use = mlirValueGetFirstUse(residual); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use)) {
    MlirOperation reader = mlirOpOperandGetOwner(use);
    if (!mlirOperationEqual(reader, op) && begin_of(p, reader) >= p->begin[i]) return;
  }
  piece *out = &p->pieces[p->result[i]];
  piece *under = &p->pieces[root(p, p->result[maker])];
  if (out->total != under->total) return;
  out->over = (int32_t)(under - p->pieces);
  if (out->last > under->last) under->last = out->last;
}

/* ---- places ---------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b) {
  const piece *const *x = a, *const *y = b;
  if ((*x)->total != (*y)->total) return (*x)->total < (*y)->total ? 1 : -1;
  return (*x)->order < (*y)->order ? -1 : 1;
}

/* The lowest offset at which a piece lies beside all that live while it does. placed is sorted by
 * offset; returns where the piece belongs in that order. */
static uint32_t find_place(piece *const *placed, uint32_t count, piece *made) {
  uint64_t offset = 0;
  for (uint32_t i = 0; i < count; i++) {
    const piece *other = placed[i];
    if (other->last < made->first || made->last < other->first) continue;
    if (other->offset >= offset + made->total) break;
    if (other->offset + other->total > offset) offset = other->offset + other->total;
  }
  made->offset = offset;
  uint32_t at = 0;
  while (at < count && placed[at]->offset <= offset) at++;
  return at;
}

static stele_status place(plan *p) {
  piece **queue = base_arena_alloc(p->step->context->arena, p->count + 1, sizeof *queue);
  piece **placed = base_arena_alloc(p->step->context->arena, p->count + 1, sizeof *placed);
  if (!queue || !placed) return pass_no_memory(p->step->context);
  uint32_t waiting = 0;
  uint64_t end = 0;
  for (uint32_t i = 0; i < p->count; i++)
    if (p->pieces[i].over < 0) queue[waiting++] = &p->pieces[i];
  if (!p->trivial) qsort(queue, waiting, sizeof *queue, by_size);
  for (uint32_t i = 0; i < waiting; i++) {
    if (p->trivial) {
      queue[i]->offset = end;
    } else {
      uint32_t at = find_place(placed, i, queue[i]);
      memmove(placed + at + 1, placed + at, (i - at) * sizeof *placed);
      placed[at] = queue[i];
    }
    if (queue[i]->offset + queue[i]->total > end) end = queue[i]->offset + queue[i]->total;
  }
  ir_set_int(p->step->op, "workspace", (int64_t)end);
  return STELE_OK;
}

static void write_places(const plan *p) {
  for (uint32_t i = 0; i < p->count; i++) {
    const piece *r = &p->pieces[i];
    const int64_t place[] = {(int64_t)p->pieces[root(p, (int32_t)i)].offset,
                             (int64_t)r->bytes,
                             r->tokens,
                             r->columns,
                             r->scheme,
                             r->per_worker};
    ir_set_ints(r->op, r->name, place, 6);
  }
}

/* ---- the pass -------------------------------------------------------------------------- */

/* Marks a linear that makes the step's logits and nothing else. */
static stele_status mark_logits(pass_step *step, MlirOperation op, void *data) {
  (void)step;
  const int64_t *vocab = data;
  const char *kind = ir_string(op, "kind", "");
  if (!ir_is(op, STELE_OP_OUTPUT) || (strcmp(kind, "last") != 0 && strcmp(kind, "all") != 0))
    return STELE_OK;
  MlirOperation linear = pass_sole_source(op, 0, STELE_OP_LINEAR);
  if (!pass_is_null(linear) && pass_columns(linear) == *vocab) ir_set_int(linear, "logits", 1);
  return STELE_OK;
}

static stele_status plan_step(pass_step *step, void *data) {
  const bool *trivial = data;
  base_arena *arena = step->context->arena;
  plan p = {.step = step, .trivial = *trivial};
  p.pieces = base_arena_alloc(arena, 4 * (size_t)step->count + 1, sizeof *p.pieces);
  p.begin = base_arena_alloc(arena, step->count + 1, sizeof *p.begin);
  p.result = base_arena_alloc(arena, step->count + 1, sizeof *p.result);
  if (!p.pieces || !p.begin || !p.result) return pass_no_memory(step->context);
  count_barriers(&p);
  for (uint32_t i = 0; i < step->count; i++) {
    p.result[i] = -1;
    BASE_TRY(add_result(&p, i));
    BASE_TRY(add_prepared(&p, i));
    BASE_TRY(add_scratch(&p, i));
    BASE_TRY(add_stage(&p, i));
    if (!p.trivial) take_over(&p, i);
  }
  BASE_TRY(place(&p));
  write_places(&p);
  return STELE_OK;
}

stele_status pass_plan_memory(pass_context *context, bool trivial) {
  MlirOperation model = ir_find_model(context->module);
  int64_t vocab = pass_is_null(model) ? 0 : ir_int(model, "vocab", 0);
  if (!trivial) BASE_TRY(pass_ops(context, mark_logits, &vocab));
  return pass_steps(context, plan_step, &trivial);
}
