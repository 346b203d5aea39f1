/* Ops that work token by token: tiles are tokens. T is tokens, n columns. */
#include "act.h"
#include "panel.h"

/* ---- embed --------------------------------------------------------------------------------- */

/* One row of a quantised panel's block: 16 rows are decoded, and one is kept. */
INLINE void gather_block(uint32_t scheme, const uint8_t *block, uint32_t lane, float factor,
                         float *y) {
  const packing k = packing_of(scheme);
  const scales s = block_scales(scheme, block);
  for (uint32_t column = 0; column < k.columns; column += GROUP) {
    vb pieces[GROUP_PIECES];
    unpack_group(k.bits, block + head_bytes(k) + column / GROUP * group_bytes(k), pieces);
    for (uint32_t g = 0; g < GROUP_PIECES; g++) {
      const uint32_t at = column + g * 4, p = at / k.part;
      const vf scale = part_scale(k, &s, p), min = k.mins ? part_minimum(k, &s, p) : scale;
      for (int i = 0; i < 4; i++)
        y[at + (uint32_t)i] = decode_column(k, pieces[g], i, scale, min)[lane] * factor;
    }
  }
}

/* Row `row` of a packed matrix. */
INLINE void gather_row(const cpu_matrix *m, const uint8_t *w, uint32_t row, float scale, float *y) {
  const uint8_t *panel = w + row / CPU_PANEL * panel_bytes(m->scheme, m->columns);
  uint32_t lane = row % CPU_PANEL;
  if (!is_float(m->scheme)) {
    const packing k = packing_of(m->scheme);
    for (uint32_t b = 0; b < m->columns / k.columns; b++)
      gather_block(m->scheme, panel + b * block_bytes(k), lane, scale, y + b * k.columns);
    return;
  }
  const uint32_t bytes = m->scheme == STELE_F32 ? 4 : 2;
  for (uint32_t k = 0; k < m->columns; k++) {
    const uint8_t *at = panel + (k * CPU_PANEL + lane) * bytes;
    if (m->scheme == STELE_F32) {
      y[k] = load_f32(at) * scale;
      continue;
    }
    vh half = {0};
    __builtin_memcpy(&half, at, 2);
    y[k] = (m->scheme == STELE_F16 ? from_f16(half) : from_bf16(half))[0] * scale;
  }
}

/* out[T][n] = scale * W[ids[T]][n]; zeros for an id that no row has */
KERNEL(embed) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  rows out = output(c);
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++) {
    uint32_t id = (uint32_t)args->ids[list[i]];
    float *y = row_f(out, list[i]);
    if (id < s->matrix[0].rows)
      gather_row(&s->matrix[0], weight(c, STELE_W_A), id, s->scale, y);
    else
      __builtin_memset(y, 0, out.columns * sizeof(float));
  }
}

/* ---- norms and preparation ----------------------------------------------------------------- */

/* out[T][n] = x + W[position + offset][n] */
KERNEL(position_embed) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  rows in = input(c, 0), out = output(c);
  float *added = (float *)(void *)(stack + cpu_stack_row(s));
  const uint32_t n = out.columns;
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++) {
    const float *x = row_f(in, list[i]);
    float *y = row_f(out, list[i]);
    gather_row(&s->matrix[0], weight(c, STELE_W_A),
               (uint32_t)args->positions[list[i]] + s->rope_offset, 1, added);
    for (uint32_t e = 0; e < n; e += LANES) {
      const uint32_t part = n - e < LANES ? n - e : LANES;
      store_run(y + e, load_run(x + e, part) + load_run(added + e, part), part);
    }
  }
}

/* each segment of `head` numbers: out = (x - mean) factor weight + bias, with a weight and a bias
 * for each element of a segment, or of the row */
KERNEL(norm) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  rows in = input(c, 0), out = output(c);
  const uint32_t n = s->head, tail = n % LANES;
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++)
    for (uint32_t at = 0; at < in.columns; at += n) {
      const float *x = row_f(in, list[i]) + at;
      const uint32_t first = s->norm > n ? at : 0;
      float *y = row_f(out, list[i]) + at;
      norm m = norm_of(c, x, n);
      for (uint32_t e = 0; e + LANES <= n; e += LANES)
        store_f(y + e, norm_run(s, &m, load_f(x + e), first + e, LANES));
      if (tail)
        store_f_part(y + n - tail,
                     norm_run(s, &m, load_f_part(x + n - tail, tail), first + n - tail, tail),
                     tail);
    }
}

/* out[T][n] in f32 or q8: norm, merge of attention's parts, or the numbers as they are */
KERNEL(prepare) {
  const call *c = CALL;
  uint32_t *list, count = list_tokens(c, &list);
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++) prepare_row(c, list[i], output(c));
}

/* ---- element by element -------------------------------------------------------------------- */

/* out = f(x), a * b, a + b, factor x or cap tanh(x / cap), as the kind says */
INLINE vf element(const cpu_shape *s, vf a, vf b) {
  switch (s->kind) {
    case STELE_OP_ADD:
      return a + b;
    case STELE_OP_MUL:
      return a * b;
    case STELE_OP_SCALE:
      return a * s->scale;
    case STELE_OP_SOFT_CAP:
      return s->soft_cap * tanh_f(a / s->soft_cap);
    default:
      return function_lanes(s->function, a);
  }
}

KERNEL(elements) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  rows out = output(c), a = input_like_output(c, 0), b = a;
  if (s->kind == STELE_OP_ADD || s->kind == STELE_OP_MUL) b = input_like_output(c, 1);
  const uint32_t n = out.columns, tail = n % LANES;
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++) {
    const float *x = row_f(a, list[i]), *z = row_f(b, list[i]);
    float *y = row_f(out, list[i]);
    for (uint32_t e = 0; e + LANES <= n; e += LANES)
      store_f(y + e, element(s, load_f(x + e), load_f(z + e)));
    if (tail)
      store_f_part(y + n - tail,
                   element(s, load_f_part(x + n - tail, tail), load_f_part(z + n - tail, tail)),
                   tail);
  }
}

/* out[T][heads][head] = a[T][heads][na], b[T][heads][head - na] */
KERNEL(concat) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  rows a = input(c, 0), out = output(c);
  const rows b = {env->workspace + place->in[1], STELE_F32, out.columns - a.columns};
  const uint32_t heads = out.columns / s->head, na = a.columns / heads, nb = b.columns / heads;
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++)
    for (uint32_t head = 0; head < heads; head++) {
      float *y = row_f(out, list[i]) + head * s->head;
      copy_floats(y, row_f(a, list[i]) + head * na, na);
      copy_floats(y + na, row_f(b, list[i]) + head * nb, nb);
    }
}

/* ---- choosing and handing out -------------------------------------------------------------- */

/* out[lane][n] = in[lane][valid - 1][n] */
KERNEL(last_token) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  rows out = output(c), in = input_like_output(c, 0);
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++) {
    uint32_t lane = list[i], last = lane * s->width + (uint32_t)args->valid[lane] - 1;
    copy_floats(row_f(out, lane), row_f(in, last), out.columns);
  }
}

/* the lowest index among the largest; rows that pad the vocabulary do not count */
KERNEL(argmax) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  rows in = input(c, 0);
  int32_t *out = (int32_t *)(void *)(env->workspace + place->out);
  const uint32_t n = in.columns < s->vocab ? in.columns : s->vocab;
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++) {
    const float *x = row_f(in, list[i]);
    uint32_t best = 0;
    for (uint32_t e = 1; e < n; e++)
      if (x[e] > x[best]) best = e;
    out[list[i]] = (int32_t)best;
  }
}

/* logits [T][vocab], or hidden states [layers + 1][lanes][width][hidden] */
KERNEL(output) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  rows in = input(c, 0);
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++) {
    const float *x = row_f(in, list[i]);
    if (s->output_kind == STELE_OUTPUT_HIDDEN) {
      size_t row = (size_t)place->output_index * s->lanes * s->width + list[i];
      copy_floats(args->out_hidden + row * s->hidden, x, s->hidden);
    } else {
      copy_floats(args->out_logits + (size_t)list[i] * s->vocab, x, s->vocab);
    }
  }
}

KERNEL(output_token) {
  const call *c = CALL;
  uint32_t *list, count = list_tokens(c, &list);
  const int32_t *in = (const int32_t *)(const void *)(env->workspace + place->in[0]);
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++) args->out_tokens[list[i]] = in[list[i]];
}
