/* Ops that write keys and values: tiles are heads.
 *
 * A page holds page_tokens slots of one layer as artifact.h says. A staged op writes to images of
 * pages in its stage, [lanes][images][page_bytes], image j standing for page filled / page_tokens +
 * j; cache_store moves them to the pool. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "interpret.h"

static const stele_group *group_of(const ref_run *run, const stele_op *op) {
  return stele_program_groups(run->program, op->group);
}

/* ---- elements of a page ---------------------------------------------------------------- */

/* The keys or the values of one head in a page, in the order of artifact.h: scales, if the scheme
 * has any, then numbers in panels of so many slots (1: slot by slot). */
typedef struct head_image {
  uint8_t *scales, *numbers;
  uint32_t scheme, size, page_tokens, panel;
} head_image;

static bool has_scales(uint32_t scheme) { return scheme == STELE_Q8_0 || scheme == STELE_Q4_0; }

static head_image head_image_of(const stele_group *g, uint8_t *page, uint32_t head, bool value) {
  head_image h = {.scheme = value ? g->value_scheme : g->key_scheme,
                  .size = value ? g->value_head : g->key_head,
                  .page_tokens = g->page_tokens,
                  .panel = value                 ? 1
                           : g->page_tokens < 16 ? g->page_tokens
                                                 : 16};
  size_t bits = h.scheme == STELE_F32 ? 32 : h.scheme == STELE_Q8_0 ? 8 : 16, scales = 0;
  if (h.scheme == STELE_Q4_0) bits = 4;
  if (has_scales(h.scheme)) scales = (size_t)h.size / REF_BLOCK * h.page_tokens * 2;
  size_t bytes = scales + (size_t)h.page_tokens * h.size * bits / 8;
  h.scales = page + (value ? g->value_offset : 0) + head * bytes;
  h.numbers = h.scales + scales;
  return h;
}

/* Where an element is; of q4_0, where the byte of its pair is. */
static size_t index_of(const head_image *h, uint32_t slot, uint32_t element) {
  size_t elements = h->size;
  if (h->scheme == STELE_Q4_0) {
    element = element / REF_BLOCK * (REF_BLOCK / 2) + element % (REF_BLOCK / 2);
    elements /= 2;
  }
  return (slot / h->panel * elements + element) * h->panel + slot % h->panel;
}

static size_t scale_index(const head_image *h, uint32_t slot, uint32_t element) {
  return (size_t)(element / REF_BLOCK) * h->page_tokens + slot;
}

static float load_half(const uint8_t *base, size_t index) {
  return base_f16_to_f32(((const uint16_t *)(const void *)base)[index]);
}

static float load(const head_image *h, uint32_t slot, uint32_t element) {
  size_t i = index_of(h, slot, element), scale = scale_index(h, slot, element);
  switch (h->scheme) {
    case STELE_F32:
      return ((const float *)(const void *)h->numbers)[i];
    case STELE_BF16:
      return base_bf16_to_f32(((const uint16_t *)(const void *)h->numbers)[i]);
    case STELE_Q8_0:
      return load_half(h->scales, scale) * (float)(int8_t)h->numbers[i];
    case STELE_Q4_0: {
      int pair = h->numbers[i], n = element % REF_BLOCK < REF_BLOCK / 2 ? pair & 15 : pair >> 4;
      return load_half(h->scales, scale) * (float)(n - 8);
    }
    default:
      return load_half(h->numbers, i);
  }
}

static float round_scale(float d, uint16_t *out) {
  *out = base_f32_to_f16(fmaxf(-65504, fminf(65504, d)));
  return base_f16_to_f32(*out);
}
static int quotient(float x, float d, float low, float high) {
  float q = x / (d == 0 ? INFINITY : d);
  return (int)nearbyintf(q > low ? (q < high ? q : high) : low);
}

/* One block of a slot, elements [first, first + 32). */
static void store_block(const head_image *h, uint32_t slot, uint32_t first, const float *x) {
  float high = x[0], low = x[0];
  for (uint32_t i = 1; i < REF_BLOCK; i++) {
    if (x[i] > high) high = x[i];
    if (x[i] < low) low = x[i];
  }
  uint16_t *scale = (uint16_t *)(void *)h->scales + scale_index(h, slot, first);
  if (h->scheme == STELE_Q8_0) {
    float d = round_scale((high < -low ? -low : high) / 127, scale);
    for (uint32_t i = 0; i < REF_BLOCK; i++)
      h->numbers[index_of(h, slot, first + i)] = (uint8_t)quotient(x[i], d, -127, 127);
    return;
  }
  float d = round_scale((high < -low ? low : high) / -8, scale);
  for (uint32_t i = 0; i < REF_BLOCK / 2; i++)
    h->numbers[index_of(h, slot, first + i)] =
        (uint8_t)((quotient(x[i], d, -8, 7) + 8) | (quotient(x[i + REF_BLOCK / 2], d, -8, 7) + 8)
                                                       << 4);
}

static void store(const head_image *h, uint32_t slot, const float *x) {
  for (uint32_t e = 0; e < h->size; e++) {
    if (has_scales(h->scheme)) {
      if (e % REF_BLOCK == 0) store_block(h, slot, e, x + e);
      continue;
    }
    size_t i = index_of(h, slot, e);
    if (h->scheme == STELE_F32)
      ((float *)(void *)h->numbers)[i] = x[e];
    else
      ((uint16_t *)(void *)h->numbers)[i] =
          h->scheme == STELE_F16 ? base_f32_to_f16(x[e]) : base_f32_to_bf16(x[e]);
  }
}

float ref_key(const stele_group *g, const uint8_t *page, uint32_t head, uint32_t slot,
              uint32_t element) {
  head_image h = head_image_of(g, (uint8_t *)(uintptr_t)page, head, false);
  return load(&h, slot, element);
}

float ref_value(const stele_group *g, const uint8_t *page, uint32_t head, uint32_t slot,
                uint32_t element) {
  if (g->value_in_key) return ref_key(g, page, head, slot, element);
  head_image h = head_image_of(g, (uint8_t *)(uintptr_t)page, head, true);
  return load(&h, slot, element);
}

void ref_put_key(const stele_group *g, uint8_t *page, uint32_t head, uint32_t slot,
                 const float *key) {
  head_image h = head_image_of(g, page, head, false);
  store(&h, slot, key);
}

void ref_put_value(const stele_group *g, uint8_t *page, uint32_t head, uint32_t slot,
                   const float *value) {
  head_image h = head_image_of(g, page, head, true);
  store(&h, slot, value);
}

/* Copies a slot of a head as it is: quantising again could round otherwise. */
static void copy_slot(const stele_group *g, const uint8_t *from, uint8_t *to, uint32_t head,
                      uint32_t slot, bool value) {
  head_image a = head_image_of(g, (uint8_t *)(uintptr_t)from, head, value);
  head_image b = head_image_of(g, to, head, value);
  size_t unit = a.scheme == STELE_F32 ? 4 : has_scales(a.scheme) ? 1 : 2;
  for (uint32_t e = 0; e < a.size; e++) {
    size_t i = index_of(&a, slot, e), scale = scale_index(&a, slot, e);
    memcpy(b.numbers + i * unit, a.numbers + i * unit, unit);
    if (has_scales(a.scheme)) memcpy(b.scales + scale * 2, a.scales + scale * 2, 2);
  }
}

/* ---- pages ----------------------------------------------------------------------------- */

static uint8_t *pool_page(const ref_run *run, const stele_op *op, int32_t page) {
  return run->env->layer_pages[op->layer] + (size_t)page * group_of(run, op)->page_bytes;
}

static int32_t table_entry(const ref_run *run, const stele_op *op, const int32_t *const *tables,
                           uint32_t lane, uint32_t page) {
  return tables[op->group][(size_t)lane * group_of(run, op)->table_entries + page];
}

static uint32_t first_new_page(const ref_run *run, const stele_op *op, uint32_t lane) {
  return (uint32_t)run->args->filled[lane] / group_of(run, op)->page_tokens;
}

static uint8_t *stage_image(const ref_run *run, const stele_op *op, uint32_t lane, uint32_t image) {
  const stele_group *g = group_of(run, op);
  uint32_t images = (run->step->width + g->page_tokens - 1) / g->page_tokens + 1;
  return ref_buffer(run, op->stage).base + ((size_t)lane * images + image) * g->page_bytes;
}

const uint8_t *ref_page(const ref_run *run, const stele_op *op, uint32_t lane, uint32_t page) {
  uint32_t first_new = first_new_page(run, op, lane);
  if (page < first_new)
    return pool_page(run, op, table_entry(run, op, run->args->read_pages, lane, page));
  if (op->flags & STELE_FLAG_STAGED) return stage_image(run, op, lane, page - first_new);
  return pool_page(run, op, table_entry(run, op, run->args->store_pages, lane, page));
}

/* Where a new token's key and value are written by this op. */
static uint8_t *page_to_write(const ref_run *run, const stele_op *op, uint32_t lane,
                              uint32_t page) {
  if (op->flags & STELE_FLAG_STAGED)
    return stage_image(run, op, lane, page - first_new_page(run, op, lane));
  int32_t entry = table_entry(run, op, run->args->store_pages, lane, page);
  return entry < 0 ? NULL : pool_page(run, op, entry);
}

/* The slots that were filled before in the first image, so that attention finds them there. */
static void fill_first_image(const ref_run *run, const stele_op *op, uint32_t head, bool values) {
  const stele_group *g = group_of(run, op);
  if (!(op->flags & STELE_FLAG_STAGED)) return;
  for (uint32_t lane = 0; lane < run->step->lanes; lane++) {
    uint32_t page = first_new_page(run, op, lane);
    uint32_t slots = (uint32_t)run->args->filled[lane] % g->page_tokens;
    if (!slots || !run->args->valid[lane]) continue;
    const uint8_t *from =
        pool_page(run, op, table_entry(run, op, run->args->read_pages, lane, page));
    for (uint32_t slot = 0; slot < slots; slot++)
      copy_slot(g, from, stage_image(run, op, lane, 0), head, slot, values);
  }
}

static void put_token(const ref_run *run, const stele_op *op, ref_token token, uint32_t head,
                      bool value, const float *numbers) {
  const stele_group *g = group_of(run, op);
  uint32_t slot = (uint32_t)run->args->filled[token.lane] + token.place;
  uint8_t *page = page_to_write(run, op, token.lane, slot / g->page_tokens);
  if (!page) return;
  if (value)
    ref_put_value(g, page, head, slot % g->page_tokens, numbers);
  else
    ref_put_key(g, page, head, slot % g->page_tokens, numbers);
}

/* ---- ops ------------------------------------------------------------------------------- */

/* k[T][kv_heads][key_head], v[T][kv_heads][value_head] go to the pages or the stage */
void ref_cache_update(const ref_run *run, const stele_op *op) {
  const stele_group *g = group_of(run, op);
  ref_rows k = ref_buffer(run, op->in[0]);
  ref_rows v = g->value_in_key ? k : ref_buffer(run, op->in[1]);
  uint32_t total = ref_token_count(run, op);
  uint64_t begin, end;
  ref_share(run, g->kv_heads, &begin, &end);
  for (uint32_t head = (uint32_t)begin; head < end; head++) {
    fill_first_image(run, op, head, false);
    if (!g->value_in_key) fill_first_image(run, op, head, true);
    for (uint32_t i = 0; i < total; i++) {
      ref_token token = ref_token_get(run, op, i);
      put_token(run, op, token, head, false, ref_f32(&k, token.index) + head * g->key_head);
      if (!g->value_in_key)
        put_token(run, op, token, head, true, ref_f32(&v, token.index) + head * g->value_head);
    }
  }
}

/* Which part a head of qkv_cache belongs to: 0 q, 1 k, 2 v; out_head counts within the part. */
static unsigned part_of(const stele_op *op, const stele_group *g, uint32_t tile,
                        uint32_t *out_head) {
  unsigned part = tile < op->heads ? 0 : tile < op->heads + g->kv_heads ? 1 : 2;
  *out_head = part == 0 ? tile : tile - op->heads - (part - 1) * g->kv_heads;
  return part;
}

static void finish_head(const ref_run *run, const stele_op *op, unsigned part, uint32_t head,
                        ref_token token, float *numbers) {
  const stele_group *g = group_of(run, op);
  const float *norm = part == 2 ? NULL : ref_vector(run, op, STELE_W_Q_NORM + part);
  if (norm) {
    float factor = ref_inverse_rms(numbers, g->key_head, op->head_eps);
    for (uint32_t e = 0; e < g->key_head; e++)
      numbers[e] = numbers[e] * factor * ref_norm_weight(op, norm, e);
  }
  if (part != 2) ref_rope_head(run, op, token, numbers);
  if (part == 0) {
    ref_rows out = ref_buffer(run, op->out);
    memcpy(ref_f32(&out, token.index) + head * g->key_head, numbers, g->key_head * sizeof(float));
  } else {
    put_token(run, op, token, head, part == 2, numbers);
  }
}

/* q[T][heads][key_head] = rope(norm(x Q^T + bias)); keys the same and values, without norm and
 * rope, go to the pages or the stage */
void ref_qkv_cache(const ref_run *run, const stele_op *op) {
  const stele_group *g = group_of(run, op);
  ref_rows x = ref_linear_input(run, op);
  uint32_t total = ref_token_count(run, op), head;
  uint64_t begin, end;
  ref_share(run, op->heads + (g->value_in_key ? 1 : 2) * g->kv_heads, &begin, &end);
  for (uint32_t tile = (uint32_t)begin; tile < end; tile++) {
    unsigned part = part_of(op, g, tile, &head);
    uint32_t size = part == 2 ? g->value_head : g->key_head;
    const stele_program_weight *weight = ref_weight(run, op, STELE_W_A + part);
    const float *bias = ref_vector(run, op, STELE_W_BIAS_A + part);
    if (part != 0) fill_first_image(run, op, head, part == 2);
    for (uint32_t k = 0; k < total; k += REF_TOKENS) {
      ref_token tokens[REF_TOKENS];
      float numbers[REF_TOKENS][REF_MAX_HEAD], sums[REF_TOKENS];
      uint32_t count = total - k < REF_TOKENS ? total - k : REF_TOKENS;
      for (uint32_t j = 0; j < count; j++) tokens[j] = ref_token_get(run, op, k + j);
      for (uint32_t e = 0; e < size; e++) {
        uint32_t row = head * size + e;
        ref_dot(run, weight, row, &x, tokens, count, sums);
        for (uint32_t j = 0; j < count; j++) numbers[j][e] = sums[j] + (bias ? bias[row] : 0);
      }
      for (uint32_t j = 0; j < count; j++) finish_head(run, op, part, head, tokens[j], numbers[j]);
    }
  }
}

/* The valid slots of the stage go to the pages that store_pages names. */
void ref_cache_store(const ref_run *run, const stele_op *op) {
  const stele_group *g = group_of(run, op);
  uint32_t total = ref_token_count(run, op);
  uint64_t begin, end;
  ref_share(run, g->kv_heads, &begin, &end);
  for (uint32_t head = (uint32_t)begin; head < end; head++) {
    for (uint32_t k = 0; k < total; k++) {
      ref_token token = ref_token_get(run, op, k);
      uint32_t slot = (uint32_t)run->args->filled[token.lane] + token.place;
      uint32_t page = slot / g->page_tokens, place = slot % g->page_tokens;
      int32_t entry = table_entry(run, op, run->args->store_pages, token.lane, page);
      if (entry < 0) continue;
      const uint8_t *from =
          stage_image(run, op, token.lane, page - first_new_page(run, op, token.lane));
      uint8_t *to = pool_page(run, op, entry);
      copy_slot(g, from, to, head, place, false);
      if (!g->value_in_key) copy_slot(g, from, to, head, place, true);
    }
  }
}
