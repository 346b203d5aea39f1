/* head_linear: each head times a matrix of its own, which are the rows [head m, head m + m) of one
 * packed matrix. A head need not begin with a panel: what of a panel is another head's is left
 * out. Tiles are heads. */
#include "panel.h"
#include "wide.h"

/* One head: where its columns are in a token's rows, and its rows of the matrix. */
typedef struct own_matrix {
  uint32_t in, out;
  span rows;
} own_matrix;

INLINE own_matrix matrix_of_head(const cpu_shape *s, uint32_t head) {
  const uint32_t m = s->matrix[0].rows / s->heads, c = s->matrix[0].columns;
  return (own_matrix){head * (c + s->kept), head * (m + s->kept), {head * m, head * m + m}};
}

/* Makes tokens from `begin` on ready, as next_tokens does of whole rows. */
INLINE void ready_tokens(const call *c, operands *o, const own_matrix *h, uint32_t begin) {
  const uint32_t n = c->s->matrix[0].columns;
  o->begin = begin;
  o->end = o->count;
  if (!c->s->wide) return;
  if (o->end - begin > CPU_WIDE_TOKENS) o->end = begin + CPU_WIDE_TOKENS;
  for (uint32_t i = begin; i < o->end; i++)
    widen_row(row_f(o->x, o->list[i]) + h->in, n, uses_tiles(c->s),
              o->wide + (size_t)(i - begin) * cpu_wide_bytes(n));
}

/* Those of a panel's rows that are the head's, to a token's result. */
INLINE void store_own(const own_matrix *h, uint32_t panel, vf v, float *y) {
  const uint32_t row = panel * CPU_PANEL;
  if (row >= h->rows.begin && row + CPU_PANEL <= h->rows.end) {
    store_f(y + (row - h->rows.begin), v);
    return;
  }
  for (uint32_t i = 0; i < CPU_PANEL; i++)
    if (row + i >= h->rows.begin && row + i < h->rows.end) y[row + i - h->rows.begin] = v[i];
}

/* All rows of a head for one pass of tokens. */
INLINE void multiply_head(const call *c, const operands *o, const own_matrix *h, uint32_t at,
                          const int np, const int nt) {
  const cpu_matrix *m = &c->s->matrix[0];
  const streams run =
      split_panels(h->rows.begin / CPU_PANEL, (h->rows.end + CPU_PANEL - 1) / CPU_PANEL, np);
  const uint8_t *x_rows[CPU_MAX_TOKENS], *panels[STREAMS];
  const rows x = {NULL, c->s->wide ? CPU_WIDE : STELE_F32, m->columns};
  UNROLL
  for (int t = 0; t < nt; t++) {
    uint32_t i = at + (uint32_t)t < o->end ? at + (uint32_t)t : o->end - 1;
    x_rows[t] = c->s->wide ? o->wide + (size_t)(i - o->begin) * cpu_wide_bytes(m->columns)
                           : (const uint8_t *)(row_f(o->x, o->list[i]) + h->in);
  }
  for (uint32_t round = 0; round < run.rounds; round++) {
    vf y[STREAMS * CPU_MAX_TOKENS];
    take_panels(m, weight(c, STELE_W_A), run, round, np, panels);
    multiply_panels(m->scheme, x, panels, np, x_rows, nt, y);
    for (int p = 0; p < np && stream_panel(run, round, p) < run.end; p++)
      for (int t = 0; t < nt && at + (uint32_t)t < o->end; t++)
        store_own(h, stream_panel(run, round, p), y[p * nt + t],
                  row_f(output(c), o->list[at + (uint32_t)t]) + h->out);
  }
}

/* x[T][heads][c + kept] -> out[T][heads][m + kept] */
KERNEL(head_linear) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  const int nt = pass_tokens(s), np = stream_count(nt);
  operands o = operands_of(c);
  const uint32_t from = s->matrix[0].columns, to = s->matrix[0].rows / s->heads;
  span heads = share(c, s->heads);
  for (uint32_t head = heads.begin; head < heads.end; head++) {
    const own_matrix h = matrix_of_head(s, head);
    for (uint32_t begin = 0; begin < o.count; begin = o.end) {
      ready_tokens(c, &o, &h, begin);
      for (uint32_t at = begin; at < o.end; at += (uint32_t)nt)
        multiply_head(c, &o, &h, at, np, nt);
    }
    for (uint32_t i = 0; i < o.count; i++)
      copy_floats(row_f(output(c), o.list[i]) + h.out + to, row_f(o.x, o.list[i]) + h.in + from,
                  s->kept);
  }
  release_operands(c);
}
