/* Reading a weight through its view. Rows that lie in a file as they are never move; others are
 * put together number by number, in the tensor's scheme, or in float32 where something is added.
 * A transposed view is gone through along the file's rows, of which each gives one column. */
#include <string.h>

#include "frontend/frontend.h"
#include "weights/weights.h"

/* A weight as its view sees it: vectors are columns. */
typedef struct place {
  const fe_tensor *tensor;
  uint64_t columns; /* of the tensor */
  uint64_t row;     /* of the tensor, where the block begins */
  uint64_t at;      /* the row's number in its block, times step, plus first */
  uint64_t left;    /* rows from here to the block's end */
} place;

static place find(const fe_weight *w, uint64_t row) {
  const fe_view *v = &w->view;
  uint64_t rows = w->vector ? w->columns : w->rows;
  uint64_t size = v->block ? v->block : rows, block = row / size, inside = row % size;
  const fe_tensor *t = w->parts[w->part_count > 1 ? block : 0];
  return (place){.tensor = t,
                 .columns = t->dim_count > 1 ? t->dims[t->dim_count - 1] : 1,
                 .row = w->part_count > 1 ? 0 : v->stride * block,
                 .at = v->first + inside * v->step,
                 .left = size - inside};
}

const uint8_t *fe_weight_run(const fe_weight *w, uint64_t row, uint64_t *out_rows) {
  size_t bytes;
  if (w->data) {
    if (!weights_row_bytes(w->scheme, w->columns, &bytes)) return NULL;
    *out_rows = w->rows - row;
    return w->data + row * bytes;
  }
  if (!w->part_count || w->view.transposed || w->vector || w->plus != 0) return NULL;
  place p = find(w, row);
  if (!weights_row_bytes(w->scheme, w->columns, &bytes)) return NULL;
  *out_rows = w->view.step == 1 ? p.left : 1;
  return p.tensor->data + (p.row + p.at) * bytes;
}

/* Numbers of one column of the tensor's row, or of one row, that go `to` bytes apart. */
typedef struct copying {
  const fe_weight *w;
  size_t element; /* of the file: 2 or 4 bytes */
  size_t out;     /* of the buffer */
} copying;

static void copy(const copying *c, const uint8_t *from, uint8_t *to) {
  float number;
  if (c->w->plus == 0) {
    memcpy(to, from, c->element);
    return;
  }
  weights_decode(c->w->parts[0]->scheme, from, 1, &number);
  number += c->w->plus;
  memcpy(to, &number, sizeof number);
}

/* Rows of one block; `columns` of the weight, as its view sees it. */
static void gather(const copying *c, const place *p, uint64_t count, uint64_t columns,
                   uint8_t *out) {
  const fe_view *v = &c->w->view;
  for (uint64_t j = 0; j < columns; j++) {
    for (uint64_t i = 0; i < count; i++) {
      uint64_t at = p->at + i * v->step;
      uint64_t index =
          v->transposed ? (p->row + j) * p->columns + at : (p->row + at) * p->columns + j;
      copy(c, p->tensor->data + index * c->element, out + (i * columns + j) * c->out);
    }
  }
}

static void fill(const fe_weight *w, uint64_t count, uint8_t *out) {
  for (uint64_t i = 0; i < count; i++) memcpy(out + i * sizeof w->plus, &w->plus, sizeof w->plus);
}

const uint8_t *fe_weight_rows(const fe_weight *w, uint64_t first, uint64_t count, uint8_t *buffer) {
  uint64_t run;
  const uint8_t *data = fe_weight_run(w, first, &run);
  if (data && run >= count) return data;
  uint64_t rows = w->vector ? w->columns : count, columns = w->vector ? 1 : w->columns;
  if (!w->part_count) {
    fill(w, rows * columns, buffer);
    return buffer;
  }
  uint64_t row = w->vector ? 0 : first, end = row + rows;
  size_t bytes = 0;
  bool quantised = weights_scheme_is_quantised(w->scheme);
  if (quantised && !weights_row_bytes(w->scheme, columns, &bytes)) return NULL;
  copying c = {w, weights_scheme_get(w->parts[0]->scheme)->block_bytes,
               weights_scheme_get(w->scheme)->block_bytes};
  if (!quantised) bytes = columns * c.out;
  for (uint8_t *out = buffer; row < end;) {
    place p = find(w, row);
    uint64_t some = base_min(p.left, end - row);
    data = fe_weight_run(w, row, &run);
    if (data)
      memcpy(out, data, (some = base_min(some, run)) * bytes);
    else
      gather(&c, &p, some, columns, out);
    out += some * bytes;
    row += some;
  }
  return buffer;
}
