/* What experts make of the tokens that chose them: experts_gate_up, experts_down. A weight holds
 * the experts' matrices one behind the other, each packed by itself, so an expert is the op on one
 * matrix (linear.c) with the list of its tokens; matrices of experts that nobody chose are not
 * touched. Each is read once, for all its tokens.
 *
 * A token that is alone with its expert goes the way of a step of one token, however many there are
 * in this step. */
#include "panel.h"
#include "wide.h"

/* The tokens of all experts, expert after expert; `ends` is where an expert's end. */
typedef struct expert_lists {
  uint32_t *ends, *tokens, *rows; /* rows: of the token's own, one for each of its experts */
  float *weights;
} expert_lists;

INLINE uint32_t expert_begin(expert_lists l, uint32_t e) { return e ? l.ends[e - 1] : 0; }
INLINE uint32_t expert_count(expert_lists l, uint32_t e) { return l.ends[e] - expert_begin(l, e); }

/* Sorted by expert in two passes over the routing: they are counted, then put in their places. */
INLINE expert_lists list_experts(const call *c, const uint32_t *list, uint32_t count) {
  const cpu_shape *s = c->s;
  const uint32_t used = s->experts_used, most = s->tokens * used;
  uint32_t *memory = (uint32_t *)(void *)(c->stack + cpu_stack_wide(s));
  uint32_t *ends = memory, *tokens = ends + cpu_expert_columns(s), before = 0;
  const expert_lists l = {ends, tokens, tokens + most, (float *)(void *)(tokens + 2 * most)};
  const rows routing = {c->env->workspace + c->place->in[1], STELE_F32, 2 * used};
  __builtin_memset(ends, 0, s->experts * sizeof *ends);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t j = 0; j < used; j++) ends[(uint32_t)row_f(routing, list[i])[used + j]]++;
  for (uint32_t e = 0; e < s->experts; e++) {
    const uint32_t own = ends[e];
    ends[e] = before;
    before += own;
  }
  for (uint32_t i = 0; i < count; i++) {
    const float *weights = row_f(routing, list[i]);
    for (uint32_t j = 0; j < used; j++) {
      const uint32_t at = ends[(uint32_t)weights[used + j]]++;
      tokens[at] = list[i];
      l.rows[at] = list[i] * used + j;
      l.weights[at] = weights[j];
    }
  }
  return l;
}

/* ---- one expert ---------------------------------------------------------------------------- */

/* The op on one expert's matrices, whose place is kept outside: a struct with its own address in it
 * would have to be in memory, and nothing in it a literal. */
typedef struct expert {
  call c;
  operands o;
  const uint32_t *to; /* rows that the tokens' results go to */
  const float *weights;
} expert;

INLINE void move_weight(const call *c, int slot, uint32_t e, cpu_place *place) {
  const cpu_matrix *m = &c->s->matrix[slot];
  if (!m->rows) return;
  const size_t panels = (m->rows + CPU_PANEL - 1) / CPU_PANEL;
  place->weight[slot] += e * panels * panel_bytes(m->scheme, m->columns);
  if (m->bias) place->weight[STELE_W_BIAS_A + slot] += (size_t)e * m->rows * sizeof(float);
}

/* from, to: what of a token the op reads and writes, tokens or rows of their own. */
INLINE void take_expert(const call *c, const operands *o, expert_lists l, const uint32_t *from,
                        const uint32_t *to, uint32_t e, cpu_place *place, expert *x) {
  const uint32_t begin = expert_begin(l, e);
  *place = *c->place;
  move_weight(c, 0, e, place);
  move_weight(c, 1, e, place);
  x->c = *c;
  x->c.place = place;
  x->o = *o;
  x->o.list = from + begin;
  x->o.begin = 0;
  x->o.end = x->o.count = expert_count(l, e);
  x->to = to + begin;
  x->weights = l.weights + begin;
}

/* The next expert that somebody chose, or their number. */
INLINE uint32_t next_expert(const cpu_shape *s, expert_lists l, uint32_t e) {
  while (e < s->experts && expert_count(l, e) == 0) e++;
  return e;
}

/* ---- experts_gate_up ----------------------------------------------------------------------- */

/* Gates and ups of one round, and what becomes of them. */
INLINE void expert_pair(const expert *x, streams run, uint32_t round, uint32_t at, const int np,
                        const int nt, vf *y) {
  const cpu_shape *s = x->c.s;
  vf up[STREAMS * CPU_MAX_TOKENS];
  gates_and_ups(&x->c, &x->o, run, round, at, np, nt, y, up);
  for (int i = 0; i < np * nt; i++) {
    const uint32_t token = at + (uint32_t)(i % nt);
    if (s->scale_input) {
      const vf weight = splat(x->weights[token < x->o.end ? token : at]);
      y[i] = y[i] * weight;
      up[i] = up[i] * weight;
    }
    if (s->function == STELE_SWIGLU_CLAMPED) {
      const vf limit = splat(s->limit), g = -max_f(-y[i], -limit);
      const vf u = max_f(-max_f(-up[i], -limit), -limit);
      y[i] = (u + 1.0f) * g / (1.0f + exp_f(-s->alpha * g));
    } else {
      y[i] = function_lanes(s->function, y[i]) * up[i];
    }
  }
}

/* Panels [begin, end) of an expert, two of each stream at a time, because the output may be
 * quantised in blocks of 32. */
INLINE void expert_gate_up(const expert *x, uint32_t begin, uint32_t end, const int np,
                           const int nt) {
  streams run = split_panels(begin, end, np);
  run.rounds += run.rounds % 2;
  for (uint32_t round = 0; round < run.rounds; round += 2)
    for (uint32_t at = 0; at < x->o.end; at += (uint32_t)nt) {
      vf y[2][STREAMS * CPU_MAX_TOKENS];
      for (uint32_t half = 0; half < 2; half++)
        expert_pair(x, run, round + half, at, np, nt, y[half]);
      for (int p = 0; p < np; p++) {
        uint32_t panel = stream_panel(run, round, p);
        if (panel >= run.end) break;
        for (int t = 0; t < nt && at + (uint32_t)t < x->o.end; t++)
          store_pair(&x->c, x->to[at + (uint32_t)t], panel * CPU_PANEL, end * CPU_PANEL,
                     y[0][p * nt + t], y[1][p * nt + t]);
      }
    }
}

/* What one tile of an expert counts where workers share them: passes over its rows. */
INLINE uint32_t expert_passes(const cpu_shape *s, uint32_t count) {
  const uint32_t nt = (uint32_t)pass_tokens(s);
  return (count + nt - 1) / nt;
}

INLINE uint32_t tiles_from(uint32_t from, uint32_t before, uint32_t passes, uint32_t tiles) {
  const uint32_t first = from > before ? (from - before + passes - 1) / passes : 0;
  return first < tiles ? first : tiles;
}

/* x[T][n] -> out[T][used][rows] = function(x G^T + bias) * (x U^T + bias) of each of its experts */
KERNEL(experts_gate_up) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  operands o = operands_of(c);
  const expert_lists l = list_experts(c, o.list, o.count);
  const uint32_t rows = s->matrix[0].rows, tiles = (rows + s->tile_rows - 1) / s->tile_rows;
  const int nt = pass_tokens(s), all = stream_count(nt);
  uint32_t total = 0, before = 0;
  for (uint32_t e = 0; e < s->experts; e++) total += expert_passes(s, expert_count(l, e)) * tiles;
  const span run = share(c, total);
  for (uint32_t e = next_expert(s, l, 0); e < s->experts; e = next_expert(s, l, e + 1)) {
    const uint32_t passes = expert_passes(s, expert_count(l, e));
    const uint32_t first = tiles_from(run.begin, before, passes, tiles);
    const uint32_t last = tiles_from(run.end, before, passes, tiles);
    const uint32_t begin = first * s->tile_rows / CPU_PANEL;
    const uint32_t end = last * s->tile_rows < rows ? last * s->tile_rows : rows;
    before += passes * tiles;
    if (first >= last) continue;
    cpu_place mine;
    expert x;
    take_expert(c, &o, l, l.tokens, l.rows, e, &mine, &x);
    if (nt > 1 && x.o.count > 1)
      expert_gate_up(&x, begin, (end + CPU_PANEL - 1) / CPU_PANEL, all > 1 ? all / 2 : 1, nt);
    else
      expert_gate_up(&x, begin, (end + CPU_PANEL - 1) / CPU_PANEL, STREAMS / 2, 1);
  }
  release_operands(c);
}

/* ---- experts_down -------------------------------------------------------------------------- */

/* Rows [panel * 16, ...) of an expert's product go to those of its token, or are added to what the
 * experts before it have left there. */
INLINE void keep_expert_rows(const expert *x, uint32_t at, uint32_t panel, vf v) {
  const cpu_shape *s = x->c.s;
  const uint32_t row = panel * CPU_PANEL, limit = s->matrix[0].rows;
  float *y = row_f(output(&x->c), x->to[at]);
  if (!s->scale_input) v = v * x->weights[at];
  if (x->o.list[at] % s->experts_used) v = v + load_rows(y, row, limit);
  store_rows(y, v, row, limit);
}

INLINE void expert_down(const expert *x, span panels, const int np, const int nt) {
  const streams run = split_panels(panels.begin, panels.end, np);
  for (uint32_t round = 0; round < run.rounds; round++)
    for (uint32_t at = 0; at < x->o.end; at += (uint32_t)nt) {
      vf y[STREAMS * CPU_MAX_TOKENS];
      multiply_rows(&x->c, &x->o, 0, run, round, at, np, nt, y);
      for (int p = 0; p < np; p++) {
        uint32_t panel = stream_panel(run, round, p);
        if (panel >= run.end) break;
        for (int t = 0; t < nt && at + (uint32_t)t < x->o.end; t++)
          keep_expert_rows(x, at + (uint32_t)t, panel, y[p * nt + t]);
      }
    }
}

/* h[T][used][n] -> out[T][rows]: the sum over a token's experts, ascending, of weight * (h W^T +
 * bias). A worker has its run of the rows of every expert. */
KERNEL(experts_down) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  const expert_lists l = list_experts(c, list, count);
  const operands o = {.x = input(c, 0)};
  const span tiles = rows_of_tiles(s, share(c, s->tiles), s->matrix[0].rows);
  const span panels = {tiles.begin / CPU_PANEL, (tiles.end + CPU_PANEL - 1) / CPU_PANEL};
  const int nt = pass_tokens(s);
  if (uses_tiles(s)) tiles_begin();
  for (uint32_t e = next_expert(s, l, 0); e < s->experts; e = next_expert(s, l, e + 1)) {
    cpu_place mine;
    expert x;
    take_expert(c, &o, l, l.rows, l.tokens, e, &mine, &x);
    if (nt > 1 && x.o.count > 1)
      expert_down(&x, panels, stream_count(nt), nt);
    else
      expert_down(&x, panels, STREAMS, 1);
  }
  release_operands(c);
}
