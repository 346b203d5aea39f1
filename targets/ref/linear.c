/* Ops that multiply by a matrix W[rows][columns]: tiles are runs of rows. Activations are
 * float32, or quantised to 8 bit where the program says so: then the products are those of the
 * dequantised numbers. */
#include "interpret.h"

static uint32_t least(uint64_t a, uint64_t b) { return (uint32_t)(a < b ? a : b); }

/* ---- what comes before ----------------------------------------------------------------- */

/* One row of the op's input after its prologue (norm, merge of attention's parts, or nothing),
 * into to[n] in to's scheme. */
static void prepare_row(const ref_run *run, const stele_op *op, ref_token token,
                        const ref_rows *to) {
  ref_rows in = ref_buffer(run, op->in[0]);
  const float *x = ref_f32(&in, token.index);
  const stele_group *group = stele_program_groups(run->program, op->group);
  ref_norm norm = {0};
  if (op->prologue == STELE_PROLOGUE_NORM)
    norm = ref_norm_of(run, op, op->flags & STELE_FLAG_CENTER, x, to->columns);
  for (uint32_t first = 0; first < to->columns; first += REF_BLOCK) {
    float block[REF_BLOCK];
    uint32_t count = least(to->columns - first, REF_BLOCK);
    for (uint32_t i = 0; i < count; i++) {
      uint32_t c = first + i;
      if (op->prologue == STELE_PROLOGUE_NORM)
        block[i] = ref_norm_apply(op, &norm, x[c], c);
      else if (op->prologue == STELE_PROLOGUE_COMBINE)
        ref_combine(run, op, token, c / group->value_head, c % group->value_head, 1, &block[i]);
      else
        block[i] = x[c];
    }
    ref_write(to, token.index, first, count, block);
  }
}

/* out[T][n] in f32 or q8: tiles are tokens */
void ref_prepare(const ref_run *run, const stele_op *op) {
  ref_rows out = ref_buffer(run, op->out);
  uint64_t begin, end;
  ref_share(run, ref_token_count(run, op), &begin, &end);
  for (uint64_t k = begin; k < end; k++)
    prepare_row(run, op, ref_token_get(run, op, (uint32_t)k), &out);
}

/* Every worker prepares all tokens in a buffer of its own, where the op has one. */
ref_rows ref_linear_input(const ref_run *run, const stele_op *op) {
  if (op->prepared < 0) return ref_buffer(run, op->in[0]);
  ref_rows prepared = ref_buffer(run, op->prepared);
  uint32_t count = ref_token_count(run, op);
  for (uint32_t k = 0; k < count; k++) prepare_row(run, op, ref_token_get(run, op, k), &prepared);
  return prepared;
}

/* ---- products -------------------------------------------------------------------------- */

void ref_dot(const ref_run *run, const stele_program_weight *weight, uint64_t row,
             const ref_rows *x, const ref_token *tokens, uint32_t count, float *out) {
  double sums[REF_TOKENS] = {0};
  for (uint32_t first = 0; first < weight->columns; first += REF_CHUNK) {
    float w[REF_CHUNK], a[REF_CHUNK];
    uint32_t width = least(weight->columns - first, REF_CHUNK);
    ref_decode(run, weight, row, first, width, w);
    for (uint32_t j = 0; j < count; j++) {
      ref_read(x, tokens[j].index, first, width, a);
      for (uint32_t i = 0; i < width; i++) sums[j] += (double)w[i] * (double)a[i];
    }
  }
  for (uint32_t j = 0; j < count; j++) out[j] = (float)sums[j];
}

/* Up to REF_TOKENS valid tokens from the k-th on. */
static uint32_t take_tokens(const ref_run *run, const stele_op *op, uint32_t k, uint32_t total,
                            ref_token *out) {
  uint32_t count = least(total - k, REF_TOKENS);
  for (uint32_t j = 0; j < count; j++) out[j] = ref_token_get(run, op, k + j);
  return count;
}

/* out[T][rows] = x W^T + bias (+ residual[T][rows]); logits: rows of the vocabulary only */
void ref_linear(const ref_run *run, const stele_op *op) {
  const stele_program_weight *weight = ref_weight(run, op, STELE_W_A);
  const float *bias = ref_vector(run, op, STELE_W_BIAS_A);
  ref_rows x = ref_linear_input(run, op), out = ref_buffer(run, op->out), residual = {0};
  if (op->kind == STELE_OP_LINEAR_ADD) residual = ref_buffer(run, op->in[1]);
  uint32_t total = ref_token_count(run, op);
  uint64_t begin, end;
  ref_share(run, op->tiles, &begin, &end);
  uint64_t last = least(end * op->tile_rows, least(weight->rows, out.columns));
  for (uint64_t row = begin * op->tile_rows; row < last; row++) {
    ref_token tokens[REF_TOKENS];
    float sums[REF_TOKENS];
    for (uint32_t k = 0; k < total; k += REF_TOKENS) {
      uint32_t count = take_tokens(run, op, k, total, tokens);
      ref_dot(run, weight, row, &x, tokens, count, sums);
      for (uint32_t j = 0; j < count; j++) {
        float value = sums[j] + (bias ? bias[row] : 0);
        if (residual.base) value += ref_f32(&residual, tokens[j].index)[row];
        ref_f32(&out, tokens[j].index)[row] = value;
      }
    }
  }
}

/* ---- linear_argmax --------------------------------------------------------------------- */

typedef struct tile_best {
  float value;
  int32_t row;
} tile_best;

static tile_best *best_of(const ref_run *run, const stele_op *op, uint64_t tile, uint32_t token) {
  tile_best *bests =
      (tile_best *)(void *)(run->env->workspace +
                            stele_program_buffers(run->program, (uint64_t)op->scratch)->offset);
  return bests + tile * op->tokens + token;
}

/* Rows that count: those that pad the vocabulary never win. */
static uint64_t vocabulary_rows(const ref_run *run, const stele_program_weight *weight) {
  return least(weight->rows, run->program->vocab);
}

/* scratch[tiles][T]: the best row of each tile */
void ref_linear_argmax(const ref_run *run, const stele_op *op) {
  const stele_program_weight *weight = ref_weight(run, op, STELE_W_A);
  const float *bias = ref_vector(run, op, STELE_W_BIAS_A);
  ref_rows x = ref_linear_input(run, op);
  uint32_t total = ref_token_count(run, op);
  uint64_t begin, end;
  ref_share(run, op->tiles, &begin, &end);
  for (uint64_t tile = begin; tile < end; tile++) {
    uint64_t first = tile * op->tile_rows;
    uint64_t last = least(first + op->tile_rows, vocabulary_rows(run, weight));
    for (uint64_t row = first; row < last; row++) {
      ref_token tokens[REF_TOKENS];
      float sums[REF_TOKENS];
      for (uint32_t k = 0; k < total; k += REF_TOKENS) {
        uint32_t count = take_tokens(run, op, k, total, tokens);
        ref_dot(run, weight, row, &x, tokens, count, sums);
        for (uint32_t j = 0; j < count; j++) {
          tile_best *best = best_of(run, op, tile, tokens[j].index);
          float value = sums[j] + (bias ? bias[row] : 0);
          if (row == first || value > best->value) *best = (tile_best){value, (int32_t)row};
        }
      }
    }
  }
}

/* out[T]: the best of the tiles, the first among equals */
void ref_linear_argmax_reduce(const ref_run *run, const stele_op *op) {
  const stele_program_weight *weight = ref_weight(run, op, STELE_W_A);
  ref_rows out = ref_buffer(run, op->out);
  uint32_t total = ref_token_count(run, op);
  for (uint32_t k = 0; k < total; k++) {
    uint32_t index = ref_token_get(run, op, k).index;
    tile_best best = *best_of(run, op, 0, index);
    for (uint64_t tile = 1; tile < op->tiles; tile++) {
      if (tile * op->tile_rows >= vocabulary_rows(run, weight)) break;
      tile_best other = *best_of(run, op, tile, index);
      if (other.value > best.value) best = other;
    }
    ((int32_t *)(void *)out.base)[index] = best.row;
  }
}

/* ---- gate_up --------------------------------------------------------------------------- */

/* out[T][rows] = function(x G^T + bias) * (x U^T + bias), without U the function alone; a block of
 * rows at a time because out may be quantised in blocks */
void ref_gate_up(const ref_run *run, const stele_op *op) {
  const stele_program_weight *gate = ref_weight(run, op, STELE_W_A);
  const stele_program_weight *up = ref_weight(run, op, STELE_W_B);
  const float *gate_bias = ref_vector(run, op, STELE_W_BIAS_A);
  const float *up_bias = ref_vector(run, op, STELE_W_BIAS_B);
  ref_rows x = ref_linear_input(run, op), out = ref_buffer(run, op->out);
  uint32_t total = ref_token_count(run, op);
  uint64_t begin, end;
  ref_share(run, op->tiles, &begin, &end);
  uint64_t last = least(end * op->tile_rows, gate->rows);
  for (uint64_t first = begin * op->tile_rows; first < last; first += REF_BLOCK) {
    uint32_t rows = least(last - first, REF_BLOCK);
    for (uint32_t k = 0; k < total; k += REF_TOKENS) {
      ref_token tokens[REF_TOKENS];
      float values[REF_TOKENS][REF_BLOCK], g[REF_TOKENS], u[REF_TOKENS];
      uint32_t count = take_tokens(run, op, k, total, tokens);
      for (uint32_t r = 0; r < rows; r++) {
        ref_dot(run, gate, first + r, &x, tokens, count, g);
        if (up) ref_dot(run, up, first + r, &x, tokens, count, u);
        for (uint32_t j = 0; j < count; j++) {
          values[j][r] = ref_function(op->function, g[j] + (gate_bias ? gate_bias[first + r] : 0));
          if (up) values[j][r] *= u[j] + (up_bias ? up_bias[first + r] : 0);
        }
      }
      for (uint32_t j = 0; j < count; j++)
        ref_write(&out, tokens[j].index, (uint32_t)first, rows, values[j]);
    }
  }
}

/* ---- head_linear ----------------------------------------------------------------------- */

/* x[T][heads][c + kept] -> out[T][heads][m + kept]: the first c columns of head h times rows h m ..
 * of W[heads * m][c], the others as they are; tiles are heads */
void ref_head_linear(const ref_run *run, const stele_op *op) {
  const stele_program_weight *weight = ref_weight(run, op, STELE_W_A);
  ref_rows in = ref_buffer(run, op->in[0]), out = ref_buffer(run, op->out);
  uint32_t rows = (uint32_t)weight->rows / op->heads, columns = (uint32_t)weight->columns;
  uint32_t total = ref_token_count(run, op);
  uint64_t begin, end;
  ref_share(run, op->heads, &begin, &end);
  for (uint64_t head = begin; head < end; head++)
    for (uint32_t k = 0; k < total; k++) {
      ref_token token = ref_token_get(run, op, k);
      float *x = ref_f32(&in, token.index) + head * (columns + op->kept);
      float *y = ref_f32(&out, token.index) + head * (rows + op->kept);
      const ref_rows one = {(uint8_t *)x, STELE_F32, columns};
      const ref_token first = {0, token.lane, token.place};
      for (uint32_t r = 0; r < rows; r++)
        ref_dot(run, weight, head * rows + r, &one, &first, 1, &y[r]);
      for (uint32_t i = 0; i < op->kept; i++) y[rows + i] = x[columns + i];
    }
}
