/* Which experts a token has, and how much of each. Tiles are tokens. */
#include "call.h"

/* Of one token; all padded to whole vectors. */
typedef struct chooser {
  float *scores, *values, *groups; /* values: what experts are chosen by, NaN: not to be chosen */
} chooser;

INLINE chooser chooser_of(const call *c) {
  const uint32_t columns = cpu_expert_columns(c->s);
  float *memory = (float *)(void *)(c->stack + cpu_stack_wide(c->s));
  return (chooser){memory, memory + columns, memory + 2 * columns};
}

INLINE vf not_a_number(void) { return splat(__builtin_nanf("")); }

/* Numbers from `count` on are not there. */
INLINE vf pad(vf v, uint32_t at, uint32_t count, vf padding) {
  const vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return at + LANES <= count ? v : select_f(lane < (int32_t)(count - at), v, padding);
}
INLINE vf load_padded(const float *x, uint32_t at, uint32_t count, vf padding) {
  return at + LANES <= count ? load_f(x + at)
                             : pad(load_f_part(x + at, count - at), at, count, padding);
}

/* scores = softmax of x, over all experts, or a sigmoid of each */
INLINE void score_experts(const cpu_shape *s, const float *x, float *scores) {
  const vf none = splat(-__builtin_inff());
  const bool sigmoid = s->rule == STELE_ROUTE_SIGMOID;
  vf largest = none, sum = {0};
  for (uint32_t e = 0; e < s->experts; e += LANES)
    largest = max_f(load_padded(x, e, s->experts, none), largest);
  const float m = largest_f(largest);
  for (uint32_t e = 0; e < s->experts; e += LANES) {
    vf v = load_padded(x, e, s->experts, none);
    v = sigmoid ? 1.0f / (1.0f + exp_f(-v)) : exp_f(v - m);
    sum = sum + v;
    store_f(scores + e, v);
  }
  const float all = sum_f(sum);
  if (!sigmoid)
    for (uint32_t e = 0; e < s->experts; e += LANES) store_f(scores + e, load_f(scores + e) / all);
}

/* values = logits, which are exact, or score + correction; what is no number is the least of all.
 */
INLINE void value_experts(const call *c, const float *x, chooser k) {
  const cpu_shape *s = c->s;
  const vf none = splat(-__builtin_inff());
  for (uint32_t e = 0; e < s->experts; e += LANES) {
    vf v = load_padded(x, e, s->experts, none);
    if (s->correction || s->expert_groups) v = load_f(k.scores + e);
    if (s->correction) v = v + load_padded(vector(c, STELE_W_BIAS_A), e, s->experts, none);
    v = select_f(v == v, v, none);
    store_f(k.values + e, pad(v, e, s->experts, not_a_number()));
  }
}

/* The place of the largest of n numbers, of those that are numbers; the lowest among equals. */
INLINE uint32_t best_place(const float *v, uint32_t n) {
  const vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  vf m = splat(-__builtin_inff());
  vi at = splat_i(INT32_MAX);
  for (uint32_t e = 0; e < n; e += LANES) {
    vf x = load_f(v + e);
    vi better = x > m;
    m = select_f(better, x, m);
    at = ((lane + (int32_t)e) & better) | (at & ~better);
  }
  const float largest = largest_f(m);
  int32_t best = INT32_MAX;
  for (int i = 0; i < LANES; i++)
    if (m[i] == largest && at[i] < best) best = at[i];
  if (best != INT32_MAX) return (uint32_t)best;
  for (best = 0; v[best] != v[best];) best++; /* all are minus infinity */
  return (uint32_t)best;
}

/* The two best of a group together, or its one. */
INLINE float group_value(const float *v, uint32_t size) {
  float first = -__builtin_inff(), second = first;
  for (uint32_t e = 0; e < size; e++) {
    second = v[e] > first ? first : v[e] > second ? v[e] : second;
    first = v[e] > first ? v[e] : first;
  }
  const float sum = size > 1 ? first + second : first;
  return sum == sum ? sum : -__builtin_inff();
}

/* Leaves the experts of the groups that are used. */
INLINE void choose_groups(const cpu_shape *s, chooser k) {
  const uint32_t count = s->expert_groups, size = s->experts / (count ? count : 1);
  for (uint32_t g = 0; g < count; g++) k.groups[g] = group_value(k.values + g * size, size);
  for (uint32_t g = count; g % LANES; g++) k.groups[g] = __builtin_nanf("");
  for (uint32_t i = 0; i < s->expert_groups_used; i++)
    k.groups[best_place(k.groups, count)] = __builtin_nanf("");
  for (uint32_t g = 0; g < count; g++)
    if (k.groups[g] == k.groups[g])
      for (uint32_t e = g * size; e < (g + 1) * size; e++) k.values[e] = __builtin_nanf("");
}

/* The numbers of the `used` best, ascending. */
INLINE void choose_experts(const cpu_shape *s, chooser k, float *numbers) {
  for (uint32_t i = 0; i < s->experts_used; i++) {
    uint32_t best = best_place(k.values, s->experts), at = i;
    k.values[best] = __builtin_nanf("");
    for (; at && numbers[at - 1] > (float)best; at--) numbers[at] = numbers[at - 1];
    numbers[at] = (float)best;
  }
}

/* logits[T][experts] -> routing[T][2][used]: weights, then numbers */
KERNEL(route) {
  const call *c = CALL;
  const cpu_shape *s = c->s;
  uint32_t *list, count = list_tokens(c, &list);
  rows in = input(c, 0), out = output(c);
  const chooser k = chooser_of(c);
  span run = share(c, count);
  for (uint32_t i = run.begin; i < run.end; i++) {
    const float *x = row_f(in, list[i]);
    float *weights = row_f(out, list[i]), *numbers = weights + s->experts_used, sum = 0;
    score_experts(s, x, k.scores);
    value_experts(c, x, k);
    choose_groups(s, k);
    choose_experts(s, k, numbers);
    for (uint32_t j = 0; j < s->experts_used; j++) {
      weights[j] = k.scores[(uint32_t)numbers[j]];
      sum += weights[j];
    }
    const float factor = s->normalise ? s->scale / (sum + 1e-20f) : s->scale;
    for (uint32_t j = 0; j < s->experts_used; j++) weights[j] *= factor;
  }
}
