/* Mixtures of experts: which experts a token has and how much of each, and what they make of it.
 *
 * Experts are matrices of equal shape, one behind the other in one weight. A token's routing is the
 * weights of its `used` experts, then their numbers, ascending; what experts_gate_up makes of it
 * are `used` rows, one for each. */
#include <math.h>

#include "interpret.h"

/* ---- route ----------------------------------------------------------------------------- */

/* The experts of one token: x are its logits. */
typedef struct chooser {
  const stele_op *op;
  const float *x, *correction; /* correction: NULL where there is none */
  double largest, sum;         /* of the softmax */
} chooser;

static double score(const chooser *c, uint32_t expert) {
  double x = (double)c->x[expert];
  return c->op->rule == STELE_ROUTE_SIGMOID ? 1 / (1 + exp(-x)) : exp(x - c->largest) / c->sum;
}

/* What experts are chosen by. Scores grow with the logits, which are exact. */
static double value(const chooser *c, uint32_t expert) {
  double v = (double)c->x[expert];
  if (c->correction || c->op->expert_groups) v = score(c, expert);
  if (c->correction) v += (double)c->correction[expert];
  return isnan(v) ? -INFINITY : v;
}

/* Whether something comes before something else: of larger value, or of the same and a lower
 * number. */
static bool is_before(double value, uint32_t number, double other, uint32_t other_number) {
  return value > other || (value == other && number < other_number);
}

static chooser make_chooser(const ref_run *run, const stele_op *op, const float *x) {
  chooser c = {.op = op, .x = x, .correction = ref_vector(run, op, STELE_W_BIAS_A)};
  c.largest = (double)x[0];
  for (uint32_t e = 1; e < op->experts; e++) c.largest = fmax(c.largest, (double)x[e]);
  for (uint32_t e = 0; e < op->experts; e++) c.sum += exp((double)x[e] - c.largest);
  return c;
}

/* A group's two best values, or its one. */
static double group_value(const chooser *c, uint32_t group) {
  uint32_t size = c->op->experts / c->op->expert_groups;
  double first = -INFINITY, second = -INFINITY;
  for (uint32_t e = group * size; e < (group + 1) * size; e++) {
    double v = value(c, e);
    if (v > first) {
      second = first;
      first = v;
    } else if (v > second) {
      second = v;
    }
  }
  return size > 1 ? first + second : first;
}

/* Whether fewer than the groups that are used come before an expert's. */
static bool may_be_chosen(const chooser *c, uint32_t expert) {
  if (!c->op->expert_groups) return true;
  uint32_t own = expert / (c->op->experts / c->op->expert_groups), before = 0;
  double v = group_value(c, own);
  for (uint32_t g = 0; g < c->op->expert_groups; g++)
    before += is_before(group_value(c, g), g, v, own);
  return before < c->op->expert_groups_used;
}

/* The best expert that comes after another one, which must not be the last. */
static uint32_t next_best(const chooser *c, double value_before, int64_t before) {
  int64_t best = -1;
  for (uint32_t e = 0; e < c->op->experts; e++) {
    double v = value(c, e);
    if (before >= 0 && !is_before(value_before, (uint32_t)before, v, e)) continue;
    if (best >= 0 && !is_before(v, e, value(c, (uint32_t)best), (uint32_t)best)) continue;
    if (may_be_chosen(c, e)) best = e;
  }
  return (uint32_t)best;
}

/* The numbers of the `used` best, ascending. */
static void choose(const chooser *c, float *numbers) {
  int64_t last = -1;
  for (uint32_t i = 0; i < c->op->experts_used; i++) {
    uint32_t best = next_best(c, last < 0 ? 0 : value(c, (uint32_t)last), last), at = i;
    for (; at && numbers[at - 1] > (float)best; at--) numbers[at] = numbers[at - 1];
    numbers[at] = (float)best;
    last = best;
  }
}

/* logits[T][experts] -> routing[T][2][used]: weights, then numbers; tiles are tokens */
void ref_route(const ref_run *run, const stele_op *op) {
  ref_rows in = ref_buffer(run, op->in[0]), out = ref_buffer(run, op->out);
  uint64_t begin, end;
  ref_share(run, ref_token_count(run, op), &begin, &end);
  for (uint64_t k = begin; k < end; k++) {
    uint32_t token = ref_token_get(run, op, (uint32_t)k).index;
    chooser c = make_chooser(run, op, ref_f32(&in, token));
    float *weights = ref_f32(&out, token), *numbers = weights + op->experts_used;
    double sum = 0;
    choose(&c, numbers);
    for (uint32_t i = 0; i < op->experts_used; i++) sum += score(&c, (uint32_t)numbers[i]);
    for (uint32_t i = 0; i < op->experts_used; i++) {
      double weight = score(&c, (uint32_t)numbers[i]) * (double)op->scale;
      weights[i] = (float)(op->normalise ? weight / (sum + 1e-20) : weight);
    }
  }
}

/* ---- what experts make of a token ------------------------------------------------------ */

/* The tokens whose i-th expert an expert is. */
typedef struct chosen {
  ref_token token;
  uint32_t place; /* i */
  float weight;
} chosen;

/* Up to REF_TOKENS of those that chose an expert, from the k-th valid token on; *k moves past them.
 */
static uint32_t take_chosen(const ref_run *run, const stele_op *op, uint32_t expert, uint32_t *k,
                            chosen *out) {
  ref_rows routing = ref_buffer(run, op->in[1]);
  uint32_t total = ref_token_count(run, op), used = op->experts_used, count = 0;
  for (; *k < total && count < REF_TOKENS; ++*k) {
    ref_token token = ref_token_get(run, op, *k);
    const float *weights = ref_f32(&routing, token.index), *numbers = weights + used;
    for (uint32_t i = 0; i < used; i++)
      if ((uint32_t)numbers[i] == expert) out[count++] = (chosen){token, i, weights[i]};
  }
  return count;
}

/* Rows of x or of h: token t's place-th of `many` rows. */
static void take_rows(const chosen *tokens, uint32_t count, uint32_t many, ref_token *out) {
  for (uint32_t j = 0; j < count; j++) {
    out[j] = tokens[j].token;
    out[j].index = tokens[j].token.index * many + (many > 1 ? tokens[j].place : 0);
  }
}

/* A buffer whose tokens have `many` rows each. */
static ref_rows split_rows(ref_rows rows, uint32_t many) {
  rows.columns /= many;
  return rows;
}

static float gate_and_up(const stele_op *op, float g, float u) {
  if (op->function != STELE_SWIGLU_CLAMPED) return ref_function(op->function, g) * u;
  double gate = fmin((double)g, (double)op->limit);
  double up = fmax(-(double)op->limit, fmin((double)u, (double)op->limit));
  return (float)((up + 1) * gate / (1 + exp(-(double)op->alpha * gate)));
}

/* Row `row` of expert `expert` of gate and up, for the tokens that chose it. */
static void gate_up_row(const ref_run *run, const stele_op *op, const ref_rows *x, uint64_t row,
                        const chosen *tokens, uint32_t count, float *out) {
  const float *gate_bias = ref_vector(run, op, STELE_W_BIAS_A);
  const float *up_bias = ref_vector(run, op, STELE_W_BIAS_B);
  ref_token rows[REF_TOKENS];
  float g[REF_TOKENS], u[REF_TOKENS];
  take_rows(tokens, count, 1, rows);
  ref_dot(run, ref_weight(run, op, STELE_W_A), row, x, rows, count, g);
  ref_dot(run, ref_weight(run, op, STELE_W_B), row, x, rows, count, u);
  for (uint32_t j = 0; j < count; j++) {
    float scale = op->scale_input ? tokens[j].weight : 1;
    out[j] = gate_and_up(op, g[j] * scale + (gate_bias ? gate_bias[row] : 0),
                         u[j] * scale + (up_bias ? up_bias[row] : 0));
  }
}

/* x[T][n] -> h[T][used][rows]. A worker has a run of the rows of every expert, in whole blocks,
 * because h may be quantised. */
void ref_experts_gate_up(const ref_run *run, const stele_op *op) {
  const stele_program_weight *gate = ref_weight(run, op, STELE_W_A);
  ref_rows x = ref_linear_input(run, op);
  ref_rows out = split_rows(ref_buffer(run, op->out), op->experts_used);
  uint64_t rows = gate->rows / op->experts, blocks = (rows + REF_BLOCK - 1) / REF_BLOCK, begin, end;
  ref_share(run, blocks, &begin, &end);
  for (uint32_t expert = 0; expert < op->experts; expert++)
    for (uint32_t k = 0, count; k < ref_token_count(run, op);) {
      chosen tokens[REF_TOKENS];
      ref_token to[REF_TOKENS];
      count = take_chosen(run, op, expert, &k, tokens);
      take_rows(tokens, count, op->experts_used, to);
      for (uint64_t first = begin * REF_BLOCK; count && first < end * REF_BLOCK && first < rows;
           first += REF_BLOCK) {
        uint32_t width = (uint32_t)(rows - first < REF_BLOCK ? rows - first : REF_BLOCK);
        float values[REF_BLOCK][REF_TOKENS], block[REF_BLOCK];
        for (uint32_t r = 0; r < width; r++)
          gate_up_row(run, op, &x, expert * rows + first + r, tokens, count, values[r]);
        for (uint32_t j = 0; j < count; j++) {
          for (uint32_t r = 0; r < width; r++) block[r] = values[r][j];
          ref_write(&out, to[j].index, (uint32_t)first, width, block);
        }
      }
    }
}

/* h[T][used][n] -> out[T][rows]: the sum over a token's experts, ascending, of weight * (h W^T +
 * bias); tiles are runs of rows */
void ref_experts_down(const ref_run *run, const stele_op *op) {
  const stele_program_weight *weight = ref_weight(run, op, STELE_W_A);
  const float *bias = ref_vector(run, op, STELE_W_BIAS_A);
  ref_rows x = split_rows(ref_buffer(run, op->in[0]), op->experts_used);
  ref_rows out = ref_buffer(run, op->out);
  uint64_t rows = weight->rows / op->experts, begin, end;
  ref_share(run, op->tiles, &begin, &end);
  uint64_t last = end * op->tile_rows < rows ? end * op->tile_rows : rows;
  for (uint64_t row = begin * op->tile_rows; row < last; row++)
    for (uint32_t expert = 0; expert < op->experts; expert++)
      for (uint32_t k = 0; k < ref_token_count(run, op);) {
        chosen tokens[REF_TOKENS];
        ref_token from[REF_TOKENS];
        float sums[REF_TOKENS];
        uint32_t count = take_chosen(run, op, expert, &k, tokens);
        take_rows(tokens, count, op->experts_used, from);
        ref_dot(run, weight, expert * rows + row, &x, from, count, sums);
        for (uint32_t j = 0; j < count; j++) {
          float *y = ref_f32(&out, tokens[j].token.index) + row;
          float value = sums[j] + (bias ? bias[expert * rows + row] : 0);
          if (!op->scale_input) value *= tokens[j].weight;
          *y = tokens[j].place ? *y + value : value;
        }
      }
}
