/* Ops whose tiles are runs of rows of a matrix: linear, linear_add, linear_argmax, gate_up.
 * A panel stays in the first-level cache while all tokens of the step pass over it. */
#include "panel.h"
#include "wide.h"

/* Rows [begin, end) that a run of tiles stands for. */
INLINE span rows_of_tiles(const cpu_shape *s, span tiles, uint32_t rows) {
  uint64_t begin = (uint64_t)tiles.begin * s->tile_rows, end = (uint64_t)tiles.end * s->tile_rows;
  return (span){(uint32_t)(begin < rows ? begin : rows), (uint32_t)(end < rows ? end : rows)};
}

/* Stores 16 rows of a token, fewer at the end of the output. */
INLINE void store_rows(float *y, vf v, uint32_t row, uint32_t rows) {
  if (rows % CPU_PANEL && row + CPU_PANEL > rows)
    store_f_part(y + row, v, rows % CPU_PANEL);
  else
    store_f(y + row, v);
}
INLINE vf load_rows(const float *x, uint32_t row, uint32_t rows) {
  if (rows % CPU_PANEL && row + CPU_PANEL > rows) return load_f_part(x + row, rows % CPU_PANEL);
  return load_f(x + row);
}

/* y[p * nt + t] += the bias of a round's panels */
INLINE void add_bias(const call *c, int slot, streams s, uint32_t round, const int np, const int nt,
                     vf *y) {
  const cpu_matrix *m = &c->s->matrix[slot];
  if (!m->bias) return;
  const float *bias = vector(c, STELE_W_BIAS_A + slot);
  for (int p = 0; p < np; p++) {
    uint32_t panel = stream_panel(s, round, p);
    if (panel >= s.end) break;
    vf b = load_bias(bias, panel * CPU_PANEL, m->rows);
    for (int t = 0; t < nt; t++) y[p * nt + t] = y[p * nt + t] + b;
  }
}

/* One round's products for one pass of tokens, y[p * nt + t], with bias. */
INLINE void multiply_rows(const call *c, const operands *o, int slot, streams s, uint32_t round,
                          uint32_t at, const int np, const int nt, vf *y) {
  const cpu_matrix *m = &c->s->matrix[slot];
  const uint8_t *x_rows[CPU_MAX_TOKENS], *panels[STREAMS];
  rows x = operand(c, o, m);
  take_rows(o, x, at, nt, x_rows);
  take_panels(m, weight(c, slot), s, round, np, panels);
  multiply_panels(m->scheme, x, panels, np, x_rows, nt, y);
  add_bias(c, slot, s, round, np, nt, y);
}

/* Rows that count: not those that pad a vocabulary. */
INLINE uint32_t counted_rows(const call *c) {
  const cpu_shape *s = c->s;
  uint32_t rows = s->matrix[0].rows, limit = rows;
  if (s->kind == STELE_OP_LINEAR_ARGMAX) limit = s->vocab;
  if (s->kind == STELE_OP_LINEAR || s->kind == STELE_OP_LINEAR_ADD) limit = output(c).columns;
  return rows < limit ? rows : limit;
}

/* This worker's part of the op: nt tokens at once and np panels of each matrix, streams as in
 * panel.h (tiles begin with a panel). */
typedef struct row_work {
  span rows;
  streams run;
  int nt, np;
} row_work;

INLINE row_work row_work_of(const call *c) {
  const cpu_shape *s = c->s;
  const int nt = pass_tokens(s), all = stream_count(nt);
  const bool blocks = s->kind == STELE_OP_GATE_UP, pair = blocks && s->matrix[1].rows;
  row_work w = {.nt = nt, .np = pair && all > 1 ? all / 2 : all};
  w.rows = rows_of_tiles(s, share(c, s->tiles), counted_rows(c));
  w.run = split_panels(w.rows.begin / CPU_PANEL, (w.rows.end + CPU_PANEL - 1) / CPU_PANEL, w.np);
  if (blocks) w.run.rounds += w.run.rounds % 2; /* streams begin with a block of 32 */
  return w;
}

INLINE void ask_rows_early(const call *c) {
  const row_work w = row_work_of(c);
  if (w.nt > 2) return;
  ask_panels_early(&c->s->matrix[0], weight(c, STELE_W_A), w.run, w.np);
  if (c->s->kind == STELE_OP_GATE_UP && c->s->matrix[1].rows)
    ask_panels_early(&c->s->matrix[1], weight(c, STELE_W_B), w.run, w.np);
}
BEFORE(linear) { ask_rows_early(CALL); }
BEFORE(linear_argmax) { ask_rows_early(CALL); }
BEFORE(gate_up) { ask_rows_early(CALL); }

typedef struct best {
  float value;
  int32_t row;
} best;

/* The larger of a best and 16 more rows, of which those from `rows` on do not count; the
 * lowest row among equals. */
INLINE void improve(best *b, vf v, uint32_t row, uint32_t rows) {
  if (rows % CPU_PANEL && row + CPU_PANEL > rows) {
    vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    v = select_f(lane < (int32_t)(rows % CPU_PANEL), v, splat(-__builtin_inff()));
  }
  float m = largest_f(v);
  if (!(m > b->value || (m == b->value && (int32_t)row < b->row))) return;
  uint32_t lane = 0;
  while (lane < CPU_PANEL - 1 && v[lane] != m) lane++;
  *b = (best){m, (int32_t)(row + lane)};
}

/* What becomes of 16 rows of a token's product. */
INLINE void keep_rows(const call *c, uint32_t token, uint32_t row, uint32_t limit, vf v,
                      best *bests) {
  if (c->s->kind == STELE_OP_LINEAR_ARGMAX) {
    improve(&bests[token], v, row, limit);
    return;
  }
  if (c->s->kind == STELE_OP_LINEAR_ADD)
    v = v + load_rows(row_f(input_like_output(c, 1), token), row, limit);
  store_rows(row_f(output(c), token), v, row, limit);
}

/* All of this worker's rows, for all tokens. */
INLINE void multiply_all(const call *c, operands *o, best *bests) {
  const row_work w = row_work_of(c);
  const uint32_t limit = counted_rows(c);
  for (uint32_t begin = 0; next_tokens(c, o, begin); begin = o->end)
    for (uint32_t round = 0; round < w.run.rounds; round++)
      for (uint32_t at = begin; at < o->end; at += (uint32_t)w.nt) {
        vf y[STREAMS * CPU_MAX_TOKENS];
        multiply_rows(c, o, 0, w.run, round, at, w.np, w.nt, y);
        for (int p = 0; p < w.np; p++) {
          uint32_t panel = stream_panel(w.run, round, p);
          if (panel >= w.run.end) break;
          for (int t = 0; t < w.nt && at + (uint32_t)t < o->end; t++)
            keep_rows(c, o->list[at + (uint32_t)t], panel * CPU_PANEL, limit, y[p * w.nt + t],
                      bests);
        }
      }
  release_operands(c);
}

/* out[T][rows] = x W^T + bias (+ residual[T][rows]) */
KERNEL(linear) {
  const call *c = CALL;
  operands o = operands_of(c);
  multiply_all(c, &o, NULL);
}

/* ---- linear_argmax ------------------------------------------------------------------------- */

/* A worker has one best per token, at the place of its first tile. */
INLINE best *bests_of(const call *c, uint32_t first_tile) {
  best *bests = (best *)(void *)(c->env->workspace + c->place->scratch);
  return bests + (size_t)first_tile * c->s->tokens;
}

/* Nothing found yet: the first row, should no number be larger than minus infinity. */
INLINE best *clear_bests(const call *c, const uint32_t *list, uint32_t count) {
  span tiles = share(c, c->s->tiles);
  best *bests = bests_of(c, tiles.begin);
  if (tiles.begin == tiles.end) return bests; /* another worker begins there */
  for (uint32_t i = 0; i < count; i++)
    bests[list[i]] = (best){-__builtin_inff(), (int32_t)(tiles.begin * c->s->tile_rows)};
  return bests;
}

/* out[T]: the best of the workers, the first among equals */
INLINE void reduce_bests(const call *c, const uint32_t *list, uint32_t count) {
  int32_t *out = (int32_t *)(void *)(c->env->workspace + c->place->out);
  for (uint32_t i = 0; i < count; i++) {
    best b = bests_of(c, 0)[list[i]];
    call other = *c;
    for (other.worker = 0; other.worker < c->workers; other.worker++) {
      span tiles = share(&other, c->s->tiles);
      if (tiles.begin == tiles.end) continue;
      best its = bests_of(c, tiles.begin)[list[i]];
      if (its.value > b.value) b = its;
    }
    out[list[i]] = b.row;
  }
}

/* out[T] = argmax of x W^T + bias; scratch has the workers' bests */
KERNEL(linear_argmax) {
  const call *c = CALL;
  operands o = operands_of(c);
  multiply_all(c, &o, clear_bests(c, o.list, o.count));
  if (env->barrier) env->barrier(env->barrier_data, worker);
  if (worker == 0) reduce_bests(c, o.list, o.count);
}

/* ---- gate_up ------------------------------------------------------------------------------- */

/* Stores 32 values of a token, in blocks or as floats; `end`: where this worker's rows end. */
INLINE void store_pair(const call *c, uint32_t token, uint32_t row, uint32_t end, vf low, vf high) {
  rows out = output(c);
  const uint32_t limit = c->s->matrix[0].rows;
  if (out.scheme == STELE_Q8_0) {
    quantise_into(row_of(out, token), out.columns, row / CPU_BLOCK, low, high);
    return;
  }
  store_rows(row_f(out, token), low, row, limit);
  if (row + CPU_PANEL < end) store_rows(row_f(out, token), high, row + CPU_PANEL, limit);
}

/* Gates and ups of one round in y and up. Matrices of one scheme are read together, so that there
 * are not more streams than elsewhere. */
INLINE void gates_and_ups(const call *c, const operands *o, streams run, uint32_t round,
                          uint32_t at, const int np, const int nt, vf *y, vf *up) {
  const cpu_matrix *g = &c->s->matrix[0], *u = &c->s->matrix[1];
  if (u->rows == 0 || 2 * np > STREAMS || np * nt > STREAMS || g->scheme != u->scheme) {
    multiply_rows(c, o, 0, run, round, at, np, nt, y);
    if (u->rows) multiply_rows(c, o, 1, run, round, at, np, nt, up);
    return;
  }
  const uint8_t *x_rows[CPU_MAX_TOKENS], *panels[STREAMS];
  vf both[STREAMS * CPU_MAX_TOKENS];
  rows x = operand(c, o, g);
  take_rows(o, x, at, nt, x_rows);
  take_panels(g, weight(c, STELE_W_A), run, round, np, panels);
  take_panels(u, weight(c, STELE_W_B), run, round, np, panels + np);
  multiply_panels(g->scheme, x, panels, 2 * np, x_rows, nt, both);
  for (int i = 0; i < np * nt; i++) y[i] = both[i], up[i] = both[np * nt + i];
  add_bias(c, 0, run, round, np, nt, y);
  add_bias(c, 1, run, round, np, nt, up);
}

/* out[T][rows] = function(x G^T + bias) * (x U^T + bias), the product only with U; two panels of
 * each stream at a time, because the output may be quantised in blocks of 32 */
KERNEL(gate_up) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  operands o = operands_of(c);
  const row_work w = row_work_of(c);
  for (uint32_t begin = 0; next_tokens(c, &o, begin); begin = o.end)
    for (uint32_t round = 0; round < w.run.rounds; round += 2)
      for (uint32_t at = begin; at < o.end; at += (uint32_t)w.nt) {
        vf y[2][STREAMS * CPU_MAX_TOKENS];
        for (uint32_t half = 0; half < 2; half++) {
          vf up[STREAMS * CPU_MAX_TOKENS];
          gates_and_ups(c, &o, w.run, round + half, at, w.np, w.nt, y[half], up);
          for (int i = 0; i < w.np * w.nt; i++) {
            y[half][i] = function_lanes(s->function, y[half][i]);
            if (s->matrix[1].rows) y[half][i] = y[half][i] * up[i];
          }
        }
        for (int p = 0; p < w.np; p++) {
          uint32_t panel = stream_panel(w.run, round, p);
          if (panel >= w.run.end) break;
          for (int t = 0; t < w.nt; t++) {
            if (at + (uint32_t)t >= o.end) break;
            store_pair(c, o.list[at + (uint32_t)t], panel * CPU_PANEL, w.rows.end,
                       y[0][p * w.nt + t], y[1][p * w.nt + t]);
          }
        }
      }
  release_operands(c);
}
