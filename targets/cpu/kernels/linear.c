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

/* A row block's products for one pass of tokens, y[p * nt + t], with bias. */
INLINE void multiply_rows(const call *c, const operands *o, int slot, uint32_t row, uint32_t at,
                          const int np, const int nt, vf *y) {
  const cpu_matrix *m = &c->s->matrix[slot];
  const uint8_t *x_rows[CPU_MAX_TOKENS];
  rows x = o->x;
  x.scheme = operand_scheme(c, o, m);
  take_rows(o, x.scheme, at, nt, x_rows);
  multiply(m, weight(c, slot), x, row / CPU_PANEL, np, x_rows, nt, y);
  if (!m->bias) return;
  const float *bias = vector(c, STELE_W_BIAS_A + slot);
  for (int p = 0; p < np; p++) {
    uint32_t first = row + (uint32_t)p * CPU_PANEL;
    if (first >= m->rows) break;
    vf b = load_bias(m, bias, first);
    for (int t = 0; t < nt; t++) y[p * nt + t] = y[p * nt + t] + b;
  }
}

/* out[T][rows] = x W^T + bias (+ residual[T][rows]) */
KERNEL(linear) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  const cpu_matrix *m = &s->matrix[0];
  operands o = operands_of(c);
  rows out = output(c), residual = input_like_output(c, 1);
  const uint32_t limit = m->rows < out.columns ? m->rows : out.columns;
  span run = rows_of_tiles(s, share(c, s->tiles), limit);
  const int nt = pass_tokens(s), np = panels_at_once(m->scheme, nt);
  for (uint32_t begin = 0; next_tokens(c, &o, begin); begin = o.end)
    for (uint32_t row = run.begin; row < run.end; row += (uint32_t)np * CPU_PANEL)
      for (uint32_t at = begin; at < o.end; at += (uint32_t)nt) {
        vf y[4 * CPU_MAX_TOKENS];
        multiply_rows(c, &o, 0, row, at, np, nt, y);
        for (int t = 0; t < nt; t++) {
          if (at + (uint32_t)t >= o.end) break;
          uint32_t token = o.list[at + (uint32_t)t];
          for (int p = 0; p < np; p++) {
            uint32_t first = row + (uint32_t)p * CPU_PANEL;
            if (first >= run.end) break;
            vf v = y[p * nt + t];
            if (s->kind == STELE_OP_LINEAR_ADD)
              v = v + load_rows(row_f(residual, token), first, limit);
            store_rows(row_f(out, token), v, first, limit);
          }
        }
      }
}

/* ---- linear_argmax ------------------------------------------------------------------------- */

typedef struct best {
  float value;
  int32_t row;
} best;

/* The larger of a tile's best and 16 more rows, of which `rows` are the last; the lowest row among
 * equals. */
INLINE void improve(best *b, vf v, uint32_t row, uint32_t rows, bool first) {
  if (rows % CPU_PANEL && row + CPU_PANEL > rows) {
    vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    v = select_f(lane < (int32_t)(rows % CPU_PANEL), v, splat(-__builtin_inff()));
  }
  float m = largest_f(v);
  if (!first && !(m > b->value)) return;
  uint32_t lane = 0;
  while (lane < CPU_PANEL - 1 && v[lane] != m) lane++;
  *b = (best){m, (int32_t)(row + lane)};
}

INLINE best *best_of(const call *c, uint32_t tile, uint32_t token) {
  best *bests = (best *)(void *)(c->env->workspace + c->place->scratch);
  return bests + (size_t)tile * c->s->tokens + token;
}

/* out[T]: the best of the tiles, the first among equals */
INLINE void reduce_tiles(const call *c, const uint32_t *list, uint32_t count, uint32_t rows) {
  int32_t *out = (int32_t *)(void *)(c->env->workspace + c->place->out);
  for (uint32_t i = 0; i < count; i++) {
    best b = *best_of(c, 0, list[i]);
    for (uint32_t tile = 1; tile < c->s->tiles; tile++) {
      if ((uint64_t)tile * c->s->tile_rows >= rows) break;
      best other = *best_of(c, tile, list[i]);
      if (other.value > b.value) b = other;
    }
    out[list[i]] = b.row;
  }
}

/* The best rows of one tile, for the tokens that are ready. */
INLINE void search_tile(const call *c, const operands *o, uint32_t tile, uint32_t limit) {
  const cpu_shape *s = c->s;
  const int nt = pass_tokens(s), np = panels_at_once(s->matrix[0].scheme, nt);
  span run = rows_of_tiles(s, (span){tile, tile + 1}, limit);
  for (uint32_t row = run.begin; row < run.end; row += (uint32_t)np * CPU_PANEL)
    for (uint32_t at = o->begin; at < o->end; at += (uint32_t)nt) {
      vf y[4 * CPU_MAX_TOKENS];
      multiply_rows(c, o, 0, row, at, np, nt, y);
      for (int t = 0; t < nt; t++) {
        if (at + (uint32_t)t >= o->end) break;
        best *b = best_of(c, tile, o->list[at + (uint32_t)t]);
        for (int p = 0; p < np; p++) {
          uint32_t first = row + (uint32_t)p * CPU_PANEL;
          if (first >= run.end) break;
          improve(b, y[p * nt + t], first, limit, first == run.begin);
        }
      }
    }
}

/* out[T] = argmax of x W^T + bias; scratch[tiles][T] has each tile's best */
KERNEL(linear_argmax) {
  const call *c = CALL;
  const cpu_matrix *m = &c->s->matrix[0];
  operands o = operands_of(c);
  const uint32_t limit = m->rows < c->s->vocab ? m->rows : c->s->vocab; /* others never win */
  span tiles = share(c, c->s->tiles);
  for (uint32_t begin = 0; next_tokens(c, &o, begin); begin = o.end)
    for (uint32_t tile = tiles.begin; tile < tiles.end; tile++) search_tile(c, &o, tile, limit);
  if (workers > 1) env->barrier(env->barrier_data, worker);
  if (worker == 0) reduce_tiles(c, o.list, o.count, limit);
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

/* out[T][rows] = function(x G^T + bias) * (x U^T + bias), two panels of each at a time, because
 * the output may be quantised in blocks of 32 */
KERNEL(gate_up) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  operands o = operands_of(c);
  span run = rows_of_tiles(s, share(c, s->tiles), s->matrix[0].rows);
  const int nt = pass_tokens(s);
  for (uint32_t begin = 0; next_tokens(c, &o, begin); begin = o.end)
    for (uint32_t row = run.begin; row < run.end; row += 2 * CPU_PANEL)
      for (uint32_t at = begin; at < o.end; at += (uint32_t)nt) {
        vf values[2][CPU_MAX_TOKENS];
        for (uint32_t p = 0; p < 2; p++) { /* past the end: the last panel again, not stored */
          vf gate[CPU_MAX_TOKENS], up[CPU_MAX_TOKENS];
          multiply_rows(c, &o, 0, row + p * CPU_PANEL, at, 1, nt, gate);
          multiply_rows(c, &o, 1, row + p * CPU_PANEL, at, 1, nt, up);
          for (int t = 0; t < nt; t++) values[p][t] = function_lanes(s->function, gate[t]) * up[t];
        }
        for (int t = 0; t < nt; t++) {
          if (at + (uint32_t)t >= o.end) break;
          store_pair(c, o.list[at + (uint32_t)t], row, run.end, values[0][t], values[1][t]);
        }
      }
}
