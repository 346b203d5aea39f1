/* Ops whose tiles are runs of rows of a matrix: linear, linear_add, linear_argmax, gate_up.
 * A panel stays in the first-level cache while all tokens of the step pass over it. */
#include "act.h"
#include "panel.h"

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

/* out[T][rows] = x W^T + bias (+ residual[T][rows]) */
KERNEL(linear) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  const cpu_matrix *m = &s->matrix[0];
  uint32_t *list, count = list_tokens(c, &list);
  rows x = matrix_input(c, list, count), out = output(c), residual = input_like_output(c, 1);
  const uint32_t limit = m->rows < out.columns ? m->rows : out.columns;
  span run = rows_of_tiles(s, share(c, s->tiles), limit);
  const int nt = pass_tokens(s), np = panels_at_once(m->scheme, nt);
  for (uint32_t row = run.begin; row < run.end; row += (uint32_t)np * CPU_PANEL)
    for (uint32_t at = 0; at < count; at += (uint32_t)nt) {
      const uint8_t *x_rows[CPU_MAX_TOKENS];
      vf y[4 * CPU_MAX_TOKENS];
      take_rows(x, list, at, count, nt, x_rows);
      multiply(m, weight(c, STELE_W_A), x, row / CPU_PANEL, np, x_rows, nt, y);
      for (int t = 0; t < nt; t++) {
        if (at + (uint32_t)t >= count) break;
        uint32_t token = list[at + (uint32_t)t];
        for (int p = 0; p < np; p++) {
          uint32_t first = row + (uint32_t)p * CPU_PANEL;
          if (first >= run.end) break;
          vf v = y[p * nt + t];
          if (m->bias) v = v + load_bias(m, vector(c, STELE_W_BIAS_A), first);
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

/* out[T] = argmax of x W^T + bias; scratch[tiles][T] has each tile's best */
KERNEL(linear_argmax) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  const cpu_matrix *m = &s->matrix[0];
  uint32_t *list, count = list_tokens(c, &list);
  rows x = matrix_input(c, list, count);
  const uint32_t limit = m->rows < s->vocab ? m->rows : s->vocab; /* the others never win */
  span tiles = share(c, s->tiles);
  const int nt = pass_tokens(s), np = panels_at_once(m->scheme, nt);
  for (uint32_t tile = tiles.begin; tile < tiles.end; tile++) {
    span run = rows_of_tiles(s, (span){tile, tile + 1}, limit);
    for (uint32_t row = run.begin; row < run.end; row += (uint32_t)np * CPU_PANEL)
      for (uint32_t at = 0; at < count; at += (uint32_t)nt) {
        const uint8_t *x_rows[CPU_MAX_TOKENS];
        vf y[4 * CPU_MAX_TOKENS];
        take_rows(x, list, at, count, nt, x_rows);
        multiply(m, weight(c, STELE_W_A), x, row / CPU_PANEL, np, x_rows, nt, y);
        for (int t = 0; t < nt; t++) {
          if (at + (uint32_t)t >= count) break;
          for (int p = 0; p < np; p++) {
            uint32_t first = row + (uint32_t)p * CPU_PANEL;
            if (first >= run.end) break;
            vf v = y[p * nt + t];
            if (m->bias) v = v + load_bias(m, vector(c, STELE_W_BIAS_A), first);
            improve(best_of(c, tile, list[at + (uint32_t)t]), v, first, limit, first == run.begin);
          }
        }
      }
  }
  if (workers > 1) env->barrier(env->barrier_data, worker);
  if (worker == 0) reduce_tiles(c, list, count, limit);
}

/* ---- gate_up ------------------------------------------------------------------------------- */

/* out[T][rows] = function(x G^T + bias) * (x U^T + bias), two panels of each at a time, because
 * the output may be quantised in blocks of 32 */
KERNEL(gate_up) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  const cpu_matrix *g = &s->matrix[0], *u = &s->matrix[1];
  uint32_t *list, count = list_tokens(c, &list);
  rows x = matrix_input(c, list, count), out = output(c);
  span run = rows_of_tiles(s, share(c, s->tiles), g->rows);
  const int nt = pass_tokens(s);
  const uint32_t last = (g->rows - 1) / CPU_PANEL;
  for (uint32_t row = run.begin; row < run.end; row += 2 * CPU_PANEL)
    for (uint32_t at = 0; at < count; at += (uint32_t)nt) {
      const uint8_t *x_rows[CPU_MAX_TOKENS];
      vf values[2][CPU_MAX_TOKENS];
      take_rows(x, list, at, count, nt, x_rows);
      for (uint32_t p = 0; p < 2; p++) {
        vf gate[CPU_MAX_TOKENS], up[CPU_MAX_TOKENS];
        uint32_t panel = row / CPU_PANEL + p;
        if (panel > last) panel = last;
        multiply(g, weight(c, STELE_W_A), x, panel, 1, x_rows, nt, gate);
        multiply(u, weight(c, STELE_W_B), x, panel, 1, x_rows, nt, up);
        for (int t = 0; t < nt; t++) {
          if (g->bias) gate[t] += load_bias(g, vector(c, STELE_W_BIAS_A), panel * CPU_PANEL);
          if (u->bias) up[t] += load_bias(u, vector(c, STELE_W_BIAS_B), panel * CPU_PANEL);
          values[p][t] = function_lanes(s->function, gate[t]) * up[t];
        }
      }
      for (int t = 0; t < nt; t++) {
        if (at + (uint32_t)t >= count) break;
        uint32_t token = list[at + (uint32_t)t];
        if (out.scheme == STELE_Q8_0) {
          quantise_into(row_of(out, token), out.columns, row / CPU_BLOCK, values[0][t],
                        values[1][t]);
          continue;
        }
        store_rows(row_f(out, token), values[0][t], row, g->rows);
        if (row + CPU_PANEL < run.end)
          store_rows(row_f(out, token), values[1][t], row + CPU_PANEL, g->rows);
      }
    }
}
