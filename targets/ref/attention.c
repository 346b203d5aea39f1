/* Attention over pages: out = softmax(scale q K^T) V over the slots that a token may see, in one
 * go or part by part with a merge afterwards. */
#include <math.h>

#include "interpret.h"

/* What one query (a token and a head) may look at. */
typedef struct ref_query {
  ref_token token;
  uint32_t head, kv_head;
  uint32_t slot;  /* the token's own, the last that it sees */
  uint32_t first; /* the first that it may see; above slot: none */
  const float *q; /* [key_head], NULL where scores are not needed */
  double scale;   /* of its scores */
} ref_query;

static ref_query make_query(const ref_run *run, const stele_op *op, ref_token token,
                            uint32_t head) {
  const stele_group *g = stele_program_groups(run->program, op->group);
  uint32_t slot = (uint32_t)run->args->filled[token.lane] + token.place;
  uint32_t first = (uint32_t)run->args->first[token.lane], bound = 0;
  if (g->window && g->kind == STELE_GROUP_CHUNK)
    bound = slot / g->window * g->window;
  else if (g->window && slot + 1 > g->window)
    bound = slot + 1 - g->window;
  if (first < bound) first = bound;
  return (ref_query){token, head, head / (op->heads / g->kv_heads), slot, first, NULL, 0};
}

/* scale (1 + query_scale log(1 + floor((position + 1) / query_floor))) */
static double query_scale(const ref_run *run, const stele_op *op, ref_token token) {
  double position = run->args->positions[token.lane * run->step->width + token.place];
  if (op->query_scale == 0) return (double)op->scale;
  double steps = floor((position + 1) / (double)op->query_floor);
  return (double)op->scale * (1 + (double)op->query_scale * log(1 + steps));
}

static ref_query make_query_with_q(const ref_run *run, const stele_op *op, ref_token token,
                                   uint32_t head) {
  ref_query query = make_query(run, op, token, head);
  ref_rows in = ref_buffer(run, op->in[0]);
  const stele_group *g = stele_program_groups(run->program, op->group);
  query.q = ref_f32(&in, token.index) + head * g->key_head;
  query.scale = query_scale(run, op, token);
  return query;
}

static bool sees(const ref_run *run, const ref_query *query, uint32_t slot) {
  if (slot < query->first || slot > query->slot) return false;
  if (!run->args->mask) return true;
  size_t words = (run->program->capacity + 63) / 64;
  return run->args->mask[query->token.lane * words + slot / 64] >> (slot % 64) & 1;
}

static double score(const ref_run *run, const stele_op *op, const ref_query *query, uint32_t slot) {
  const stele_group *g = stele_program_groups(run->program, op->group);
  const uint8_t *page = ref_page(run, op, query->token.lane, slot / g->page_tokens);
  double sum = 0;
  for (uint32_t e = 0; e < g->key_head; e++)
    sum += (double)query->q[e] * (double)ref_key(g, page, query->kv_head, slot % g->page_tokens, e);
  sum *= query->scale;
  return op->soft_cap > 0 ? (double)op->soft_cap * tanh(sum / (double)op->soft_cap) : sum;
}

/* Over slots [begin, end] that the query sees: the largest score m, the sum of exp(score - m),
 * and out[value_head] = the values weighted by the same. Nothing seen: -inf, 0, zeros. */
static void attend(const ref_run *run, const stele_op *op, const ref_query *query, uint32_t begin,
                   uint32_t end, double *out_m, double *out_sum, double *out) {
  const stele_group *g = stele_program_groups(run->program, op->group);
  double m = -INFINITY, sum = 0;
  for (uint32_t slot = begin; slot <= end; slot++)
    if (sees(run, query, slot)) m = fmax(m, score(run, op, query, slot));
  for (uint32_t e = 0; e < g->value_head; e++) out[e] = 0;
  for (uint32_t slot = begin; slot <= end; slot++) {
    if (!sees(run, query, slot)) continue;
    double weight = exp(score(run, op, query, slot) - m);
    const uint8_t *page = ref_page(run, op, query->token.lane, slot / g->page_tokens);
    sum += weight;
    for (uint32_t e = 0; e < g->value_head; e++)
      out[e] += weight * (double)ref_value(g, page, query->kv_head, slot % g->page_tokens, e);
  }
  *out_m = m;
  *out_sum = sum;
}

/* A head's sink is a score without a value: sum' = sum + exp(sink - m). How much that leaves of
 * values / sum. */
static double sink_share(const ref_run *run, const stele_op *op, uint32_t head, double m,
                         double sum) {
  const float *sinks = ref_vector(run, op, STELE_W_SINKS);
  if (!sinks || !(sum > 0)) return 1;
  double largest = fmax(m, (double)sinks[head]), own = exp(m - largest) * sum;
  return own / (own + exp((double)sinks[head] - largest));
}

/* q[T][heads][key_head] -> out[T][heads][value_head]; tiles are (kv head, block of tokens) */
void ref_attention(const ref_run *run, const stele_op *op) {
  const stele_group *g = stele_program_groups(run->program, op->group);
  ref_rows out = ref_buffer(run, op->out);
  uint32_t total = ref_token_count(run, op), rows = op->tile_rows ? op->tile_rows : 1;
  uint32_t blocks = (total + rows - 1) / rows, group_heads = op->heads / g->kv_heads;
  uint64_t begin, end;
  ref_share(run, (uint64_t)g->kv_heads * blocks, &begin, &end);
  for (uint64_t tile = begin; tile < end; tile++) {
    uint32_t kv_head = (uint32_t)(tile / blocks), first = (uint32_t)(tile % blocks) * rows;
    for (uint32_t k = first; k < total && k < first + rows; k++) {
      ref_token token = ref_token_get(run, op, k);
      for (uint32_t head = kv_head * group_heads; head < (kv_head + 1) * group_heads; head++) {
        ref_query query = make_query_with_q(run, op, token, head);
        double values[REF_MAX_HEAD], m, sum;
        attend(run, op, &query, query.first, query.slot, &m, &sum, values);
        float *y = ref_f32(&out, token.index) + head * g->value_head;
        double share = sink_share(run, op, head, m, sum);
        for (uint32_t e = 0; e < g->value_head; e++)
          y[e] = sum > 0 ? (float)(values[e] / sum * share) : 0;
      }
    }
  }
}

/* A part in partial[T][heads][parts][2 + value_head]. */
static float *get_part(const stele_op *op, const stele_group *g, const ref_rows *partial,
                       uint32_t token, uint32_t head, uint32_t part) {
  size_t index = ((size_t)token * op->heads + head) * stele_program_part_count(g) + part;
  return (float *)(void *)partial->base + index * (2 + g->value_head);
}

/* Parts that something may be seen of: from query.first's to query.slot's, end exclusive. */
static void part_range(const stele_group *g, const ref_query *query, uint32_t *out_begin,
                       uint32_t *out_end) {
  uint32_t limit = stele_program_part_limit(g);
  *out_begin = stele_program_part_of_page(limit, query->first / g->page_tokens);
  *out_end = query->first > query->slot
                 ? *out_begin
                 : stele_program_part_of_page(limit, query->slot / g->page_tokens) + 1;
}

/* Pages that something may be seen of. */
static uint32_t page_count(const stele_group *g, const ref_query *query) {
  if (query->first > query->slot) return 0;
  return query->slot / g->page_tokens - query->first / g->page_tokens + 1;
}

/* The first of a part's pages that the query may see something of. */
static uint32_t first_page(const stele_group *g, const ref_query *query, uint32_t part) {
  uint32_t begin = stele_program_part_begin(stele_program_part_limit(g), part);
  uint32_t first = query->first / g->page_tokens;
  return begin < first ? first : begin;
}

static void attend_part(const ref_run *run, const stele_op *op, const ref_query *query,
                        uint32_t part, const ref_rows *partial) {
  const stele_group *g = stele_program_groups(run->program, op->group);
  double values[REF_MAX_HEAD], m, sum;
  uint32_t begin = first_page(g, query, part) * g->page_tokens;
  uint32_t end = stele_program_part_begin(stele_program_part_limit(g), part + 1) * g->page_tokens;
  attend(run, op, query, begin, end - 1, &m, &sum, values);
  float *to = get_part(op, g, partial, query->token.index, query->head, part);
  to[0] = (float)m;
  /* m is rounded to float32: what was weighted by exp(-m) must know of it */
  double correction = sum > 0 ? exp(m - (double)to[0]) : 0;
  to[1] = (float)(sum * correction);
  for (uint32_t e = 0; e < g->value_head; e++) to[2 + e] = (float)(values[e] * correction);
}

/* tiles are (token, kv head, part) with the parts fastest, shared by pages; only pages that are
 * seen count */
void ref_attention_partial(const ref_run *run, const stele_op *op) {
  const stele_group *g = stele_program_groups(run->program, op->group);
  ref_rows partial = ref_buffer(run, op->out);
  uint32_t total = ref_token_count(run, op), group_heads = op->heads / g->kv_heads;
  uint64_t begin, end, pages = 0, before = 0;
  for (uint32_t k = 0; k < total; k++) {
    ref_query query = make_query(run, op, ref_token_get(run, op, k), 0);
    pages += (uint64_t)g->kv_heads * page_count(g, &query);
  }
  ref_share(run, pages, &begin, &end);
  for (uint32_t k = 0; k < total; k++) {
    ref_token token = ref_token_get(run, op, k);
    ref_query any = make_query(run, op, token, 0);
    uint32_t first, last;
    part_range(g, &any, &first, &last);
    for (uint32_t kv_head = 0; kv_head < g->kv_heads; kv_head++, before += page_count(g, &any))
      for (uint32_t part = first; part < last; part++) {
        uint64_t at = before + first_page(g, &any, part) - any.first / g->page_tokens;
        if (at < begin || at >= end) continue;
        for (uint32_t head = kv_head * group_heads; head < (kv_head + 1) * group_heads; head++) {
          ref_query query = make_query_with_q(run, op, token, head);
          attend_part(run, op, &query, part, &partial);
        }
      }
  }
}

/* sum over parts of exp(m - M) values / sum over parts of exp(m - M) sum, M the largest m */
void ref_combine(const ref_run *run, const stele_op *op, ref_token token, uint32_t head,
                 uint32_t first, uint32_t count, float *out) {
  const stele_group *g = stele_program_groups(run->program, op->group);
  ref_rows partial = ref_buffer(run, op->in[0]);
  ref_query query = make_query(run, op, token, head);
  uint32_t begin, end;
  part_range(g, &query, &begin, &end);
  double largest = -INFINITY;
  for (uint32_t p = begin; p < end; p++) {
    const float *part = get_part(op, g, &partial, token.index, head, p);
    if (part[1] > 0) largest = fmax(largest, (double)part[0]);
  }
  for (uint32_t e = first; e < first + count; e++) {
    double value = 0, sum = 0;
    for (uint32_t p = begin; p < end; p++) {
      const float *part = get_part(op, g, &partial, token.index, head, p);
      if (!(part[1] > 0)) continue; /* a mask hides all of it */
      double weight = exp((double)part[0] - largest);
      sum += weight * (double)part[1];
      value += weight * (double)part[2 + e];
    }
    double share = sink_share(run, op, head, largest, sum);
    out[e - first] = sum > 0 ? (float)(value / sum * share) : 0;
  }
}

/* partial -> out[T][heads][value_head]; tiles are (token, head) */
void ref_attention_combine(const ref_run *run, const stele_op *op) {
  const stele_group *g = stele_program_groups(run->program, op->group);
  ref_rows out = ref_buffer(run, op->out);
  uint64_t begin, end;
  ref_share(run, (uint64_t)ref_token_count(run, op) * op->heads, &begin, &end);
  for (uint64_t tile = begin; tile < end; tile++) {
    ref_token token = ref_token_get(run, op, (uint32_t)(tile / op->heads));
    uint32_t head = (uint32_t)(tile % op->heads);
    ref_combine(run, op, token, head, 0, g->value_head,
                ref_f32(&out, token.index) + head * g->value_head);
  }
}
