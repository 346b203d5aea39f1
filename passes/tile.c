/* tile (lowering; trivial: one tile per matrix)
 * requires: the scheduled level, after prepare
 * ensures:  every op that becomes an op of the program has `tiles` and `tile_rows`, as program.h
 *           counts them for its kind; every weight has the target's `layout`
 * gone:     nothing
 *
 * Rows of a matrix: tiles are multiples of the target's row_align (and of 32 where the result is
 * written in blocks of 32), hold about tile_bytes of weights, and are chosen for an even split
 * among 1 to 8 workers: the cost of a size is the time of the busiest worker relative to a
 * perfect split, plus a fixed cost per tile. */
#include "internal.h"

enum { TILE_COST_BYTES = 256 }; /* starting a tile costs as much as reading so many bytes */

static uint64_t greatest_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

/* Sum over 1, 2, 4 and 8 workers of the busiest one's bytes, in units of a perfect split's. */
static double split_cost(uint64_t rows, uint64_t tile_rows, uint64_t row_bytes) {
  uint64_t tiles = (rows + tile_rows - 1) / tile_rows;
  double cost = 0;
  for (uint64_t workers = 1; workers <= 8; workers *= 2) {
    uint64_t busiest = (tiles + workers - 1) / workers;
    cost += (double)(busiest * workers) / (double)rows *
            ((double)tile_rows + (double)TILE_COST_BYTES / (double)row_bytes);
  }
  return cost;
}

static uint64_t choose_rows(const stele_target_traits *traits, uint64_t rows, uint64_t row_bytes,
                            uint64_t unit) {
  uint64_t limit = traits->tile_bytes / base_max(row_bytes, 1);
  uint64_t best = unit;
  double best_cost = split_cost(rows, unit, base_max(row_bytes, 1));
  for (uint64_t size = 2 * unit; size <= limit && size < rows + unit; size += unit) {
    double cost = split_cost(rows, size, base_max(row_bytes, 1));
    if (cost <= best_cost) best = size, best_cost = cost;
  }
  return best;
}

static void set_tiles(MlirOperation op, uint64_t tiles, uint64_t tile_rows) {
  ir_set_int(op, "tiles", (int64_t)tiles);
  ir_set_int(op, "tile_rows", (int64_t)tile_rows);
}

typedef struct tiling {
  pass_weights weights;
  bool trivial;
} tiling;

/* linear, linear_add, linear_argmax, gate_up: runs of rows. */
static stele_status tile_rows(pass_step *step, MlirOperation op, const tiling *t) {
  const stele_target_traits *traits = &step->context->traits;
  bool gate_up = ir_is(op, STELE_OP_GATE_UP);
  const pass_weight *first, *second;
  BASE_TRY(
      pass_weight_of(step->context, &t->weights, op, gate_up ? "gate" : "weight", false, &first));
  BASE_TRY(pass_weight_of(step->context, &t->weights, op, "up", true, &second));
  size_t bytes, more = 0;
  if (!weights_row_bytes(first->scheme, first->columns, &bytes) ||
      (second && !weights_row_bytes(second->scheme, second->columns, &more)))
    return base_fail(step->context->sink, STELE_BAD_FORMAT,
                     "weight '%s': %llu columns are no whole blocks of its scheme", first->name,
                     (unsigned long long)first->columns);
  uint64_t unit = base_max(traits->row_align, 1);
  if (pass_scheme(op) == STELE_Q8_0) unit *= PASS_Q8_BLOCK / greatest_divisor(unit, PASS_Q8_BLOCK);
  uint64_t rows = base_max(first->rows, 1);
  uint64_t size =
      t->trivial ? base_align(rows, unit) : choose_rows(traits, rows, bytes + more, unit);
  set_tiles(op, (rows + size - 1) / size, size);
  return STELE_OK;
}

/* experts_gate_up: (expert, run of its rows), of the experts that there can be at most;
 * experts_down: runs of rows of all experts that a token has. */
static stele_status tile_experts(pass_step *step, MlirOperation op, const tiling *t) {
  const stele_target_traits *traits = &step->context->traits;
  bool down = ir_is(op, STELE_OP_EXPERTS_DOWN);
  const pass_weight *w;
  BASE_TRY(pass_weight_of(step->context, &t->weights, op, down ? "weight" : "gate", false, &w));
  size_t bytes;
  if (!weights_row_bytes(w->scheme, w->columns, &bytes))
    return base_fail(step->context->sink, STELE_BAD_FORMAT,
                     "weight '%s': %llu columns are no whole blocks of its scheme", w->name,
                     (unsigned long long)w->columns);
  uint64_t unit = base_max(traits->row_align, 1), used = (uint64_t)ir_int(op, "used", 1);
  if (pass_scheme(op) == STELE_Q8_0) unit *= PASS_Q8_BLOCK / greatest_divisor(unit, PASS_Q8_BLOCK);
  uint64_t rows = base_max(w->rows / base_max(w->experts, 1), 1);
  uint64_t size = t->trivial ? base_align(rows, unit)
                             : choose_rows(traits, rows, bytes * (down ? used : 2), unit);
  uint64_t tiles = (rows + size - 1) / size;
  if (!down) tiles *= base_min(w->experts, used * (uint64_t)pass_tokens(op));
  set_tiles(op, tiles, size);
  return STELE_OK;
}

/* Tokens per tile of attention; a tile never spans two lanes. Steps of few tokens are cut finer, so
 * that no worker goes without. */
static int64_t attention_rows(const pass_step *step, bool trivial) {
  int64_t rows = base_max(step->context->traits.attention_rows, 1);
  rows = base_min(rows, base_max(step->width / 4, 1));
  if (trivial) rows = step->width;
  if (step->lanes > 1) rows = (int64_t)greatest_divisor((uint64_t)rows, (uint64_t)step->width);
  return rows;
}

static stele_status tile_heads(pass_step *step, MlirOperation op, bool trivial) {
  stele_group g;
  BASE_TRY(pass_group(step->context, ir_int(op, "group", 0), &g));
  uint64_t heads = (uint64_t)ir_int(op, "heads", 0);
  uint64_t tokens = mlirOperationGetNumResults(op) ? (uint64_t)pass_tokens(op) : 0;
  switch (ir_kind(op)) {
    case STELE_OP_QKV_CACHE:
      set_tiles(op, heads + 2 * (uint64_t)g.kv_heads, g.key_head);
      break;
    case STELE_OP_ATTENTION_PARTIAL:
      set_tiles(op, tokens * g.kv_heads * stele_program_part_count(&g), 1);
      break;
    case STELE_OP_ATTENTION_COMBINE:
      set_tiles(op, tokens * heads, 1);
      break;
    case STELE_OP_ATTENTION: {
      uint64_t rows = (uint64_t)attention_rows(step, trivial);
      set_tiles(op, g.kv_heads * ((tokens + rows - 1) / rows), rows);
      break;
    }
    default:
      set_tiles(op, g.kv_heads, 1);
      break; /* cache_update, cache_store */
  }
  return STELE_OK;
}

/* head_linear: a head's rows are one tile. */
static stele_status tile_matrices(pass_step *step, MlirOperation op, const tiling *t) {
  const pass_weight *weight;
  uint64_t heads = (uint64_t)base_max(ir_int(op, "heads", 1), 1);
  BASE_TRY(pass_weight_of(step->context, &t->weights, op, "weight", false, &weight));
  set_tiles(op, heads, base_max(weight->rows / heads, 1));
  return STELE_OK;
}

static stele_status tile(pass_step *step, MlirOperation op, void *data) {
  const tiling *t = data;
  switch (ir_kind(op)) {
    case STELE_OP_IDS:
    case STELE_OP_CACHE:
    case STELE_OP_COUNT:
      return STELE_OK; /* nothing of the program */
    case STELE_OP_LINEAR:
    case STELE_OP_LINEAR_ADD:
    case STELE_OP_LINEAR_ARGMAX:
    case STELE_OP_GATE_UP:
      return tile_rows(step, op, t);
    case STELE_OP_HEAD_LINEAR:
      return tile_matrices(step, op, t);
    case STELE_OP_EXPERTS_GATE_UP:
    case STELE_OP_EXPERTS_DOWN:
      return tile_experts(step, op, t);
    case STELE_OP_QKV_CACHE:
    case STELE_OP_ATTENTION:
    case STELE_OP_ATTENTION_PARTIAL:
    case STELE_OP_ATTENTION_COMBINE:
    case STELE_OP_CACHE_UPDATE:
    case STELE_OP_CACHE_STORE:
      return tile_heads(step, op, t->trivial);
    default:
      set_tiles(op, (uint64_t)pass_tokens(op), 1);
      return STELE_OK; /* tokens */
  }
}

static stele_status lay_out(pass_context *context, const tiling *t) {
  for (uint32_t i = 0; i < t->weights.count; i++) {
    uint32_t scheme, layout;
    uint64_t bytes;
    BASE_TRY(pass_weight_layout(context, &t->weights.list[i], &scheme, &layout, &bytes));
    ir_set_int(t->weights.list[i].op, "layout", layout);
  }
  return STELE_OK;
}

stele_status pass_tile(pass_context *context, bool trivial) {
  tiling t = {.trivial = trivial};
  BASE_TRY(pass_weights_load(context, &t.weights));
  BASE_TRY(pass_ops(context, tile, &t));
  return lay_out(context, &t);
}
