/* Rope frequencies: inv_freq[i] = theta ** (-2 i / rotary), then the scaling of one type.
 *
 * The float32 arithmetic, and its order, are those of transformers (modeling_rope_utils.py), so
 * that positions far out turn by the same angles; this file is compiled without contraction of
 * multiply and add. Only the power is done in double and rounded once.
 *   linear   inv / factor
 *   dynamic  like default up to max_position_embeddings tokens; beyond, the runtime recomputes
 *   llama3   long waves / factor, short ones kept, between them a blend (the Llama 3.1 release)
 *   yarn     the same idea: between beta_fast and beta_slow rotations within the original length
 *            the blend goes linearly by index (arXiv 2309.00071), and cosines and sines are scaled
 *   longrope a divisor for each frequency, one set within the original length, one beyond
 * In GGUF files llama3's scaling comes as divisors of the frequencies, one for each, and longrope's
 * sets as tensors. */
#include "frontend/rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stele/program.h"
#include "weights/weights.h"

/* A rope being read. */
typedef struct reading {
  const fe_config *config;
  fe_model *model;
  const fe_rope_options *options;
  fe_rope *rope;
} reading;

/* Names of fields within the object. */
typedef struct field_name {
  char text[96];
} field_name;

static const char *field(const reading *r, const char *name, field_name *out) {
  snprintf(out->text, sizeof out->text, "%s.%s", r->options->object, name);
  return out->text;
}

#define FIELD(name) field(r, name, &(field_name){{0}})

static double number(const reading *r, const char *name, double fallback) {
  return fe_config_number(r->config, FIELD(name), fallback);
}

static uint32_t pairs(const reading *r) { return r->rope->rotary / 2; }

static void default_frequencies(double theta, uint32_t rotary, double *out) {
  for (uint32_t i = 0; i < rotary / 2; i++) {
    float exponent = (float)(2 * i) / (float)rotary;
    out[i] = (double)(1.0f / (float)pow(theta, (double)exponent));
  }
}

/* ---- llama3 ---------------------------------------------------------------------------- */

typedef struct scaling {
  float factor, low, high, original;
} scaling;

static float scale_llama3(float inv, const scaling *s) {
  float wave = (float)(2.0 * M_PI) / inv;
  if (wave > s->original / s->low) return inv / s->factor;
  if (wave < s->original / s->high) return inv;
  float smooth = (s->original / wave - s->low) / (s->high - s->low);
  float scaled = (1.0f - smooth) * inv / s->factor;
  float kept = smooth * inv;
  return scaled + kept;
}

static uint32_t original_length(const reading *r) {
  return fe_config_count(r->config, FIELD("original_max_position_embeddings"), FE_REQUIRED);
}

static void apply_llama3(const reading *r) {
  double low = number(r, "low_freq_factor", -1.0), high = number(r, "high_freq_factor", -1.0);
  r->rope->original = original_length(r);
  if (high <= low) {
    fe_config_bad(r->config, FIELD("high_freq_factor"),
                  "is %g, expected more than 'low_freq_factor', which is %g", high, low);
    return;
  }
  scaling s = {(float)r->rope->factor, (float)low, (float)high, (float)r->rope->original};
  for (uint32_t i = 0; i < pairs(r); i++)
    r->rope->inv_freq[i] = (double)scale_llama3((float)r->rope->inv_freq[i], &s);
}

/* ---- yarn ------------------------------------------------------------------------------ */

double fe_rope_yarn_scale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * log(factor) + 1.0;
}

static double yarn_attention(const reading *r) {
  double factor = r->rope->factor;
  const json_t *given = fe_config_get(r->config, FIELD("attention_factor"));
  bool both = fe_config_get(r->config, FIELD("mscale")) &&
              fe_config_get(r->config, FIELD("mscale_all_dim"));
  if (given && r->config->gguf) /* there it comes on top */
    return number(r, "attention_factor", 1.0) * fe_rope_yarn_scale(factor, 1.0);
  if (given) return number(r, "attention_factor", 1.0);
  if (!both) return fe_rope_yarn_scale(factor, 1.0);
  return fe_rope_yarn_scale(factor, number(r, "mscale", 1.0)) /
         fe_rope_yarn_scale(factor, number(r, "mscale_all_dim", 1.0));
}

/* The index whose frequency turns so many times within the original length. */
static double yarn_index(const reading *r, double rotations) {
  double original = r->rope->original;
  return r->rope->rotary * log(original / (rotations * 2.0 * M_PI)) / (2.0 * log(r->rope->base));
}

static void apply_yarn(const reading *r) {
  fe_rope *rope = r->rope;
  rope->original = original_length(r);
  rope->attention_factor = yarn_attention(r);
  double low = yarn_index(r, number(r, "beta_fast", 32.0));
  double high = yarn_index(r, number(r, "beta_slow", 1.0));
  if (fe_config_bool(r->config, FIELD("truncate"), !r->options->yarn_exact)) {
    low = floor(low);
    high = ceil(high);
  }
  low = fmax(low, 0.0);
  high = fmin(high, rope->rotary - 1.0);
  if (low == high) high += 0.001;
  for (uint32_t i = 0; i < pairs(r); i++) {
    float ramp = ((float)i - (float)low) / (float)(high - low);
    float kept = 1.0f - fminf(fmaxf(ramp, 0.0f), 1.0f);
    float power = (float)pow(rope->base, (double)((float)(2 * i) / (float)rope->rotary));
    float stretched = 1.0f / ((float)rope->factor * power) * (1.0f - kept);
    float plain = 1.0f / power * kept;
    rope->inv_freq[i] = (double)(stretched + plain);
  }
}

/* ---- longrope -------------------------------------------------------------------------- */

static float *read_factors(const reading *r, const char *name) {
  const json_t *list = fe_config_get(r->config, FIELD(name));
  float *out = base_arena_alloc(&r->model->arena, pairs(r) + 1, sizeof *out);
  if (!out) return NULL;
  for (uint32_t i = 0; i < pairs(r); i++) out[i] = 1.0f;
  if (!json_is_array(list) || json_array_size(list) != pairs(r)) {
    fe_config_bad(r->config, FIELD(name), "is not a list of %u numbers", pairs(r));
    return out;
  }
  for (uint32_t i = 0; i < pairs(r); i++) {
    double value = json_number_value(json_array_get(list, i));
    out[i] = (float)value;
    if (!isfinite(out[i]) || out[i] <= 0)
      fe_config_bad(r->config, FIELD(name), "has %g at %u, expected a number above 0", value, i);
  }
  return out;
}

static const uint8_t *vector_of(const reading *r, const char *name) {
  fe_tensor *tensor = fe_tensors_find(&r->model->tensors, name);
  if (!tensor) return NULL;
  tensor->used = true;
  if (tensor->scheme == STELE_F32 && tensor->dim_count == 1 && tensor->dims[0] == pairs(r))
    return tensor->data;
  fe_config_bad(r->config, name, "is not a vector of %u numbers of type F32", pairs(r));
  return NULL;
}

/* Divisors of the frequencies, one a pair of elements; NULL when the file has none. */
static bool read_divisors(const reading *r, const char *name, float *out) {
  const uint8_t *data = vector_of(r, name);
  if (!data) return false;
  weights_decode(STELE_F32, data, pairs(r), out);
  for (uint32_t i = 0; i < pairs(r); i++) {
    if (isfinite(out[i]) && out[i] > 0.0f) continue;
    fe_config_bad(r->config, name, "has %g at %u, expected a number above 0", (double)out[i], i);
    return false;
  }
  return true;
}

/* The attention factor follows from how much longer the model became. */
static stele_status apply_long(const reading *r) {
  fe_rope *rope = r->rope;
  rope->rule = STELE_ROPE_LONG;
  rope->original = original_length(r);
  double growth = r->model->model_positions / (double)rope->original;
  growth = number(r, "factor", growth > 0 ? growth : 1.0);
  double factor = growth <= 1.0 ? 1.0 : sqrt(1.0 + log(growth) / log(rope->original));
  rope->attention_factor = number(r, "attention_factor", factor);
  rope->factor = growth;
  if (r->config->gguf) {
    rope->short_factors = base_arena_alloc(&r->model->arena, pairs(r) + 1, sizeof(float));
    rope->long_factors = base_arena_alloc(&r->model->arena, pairs(r) + 1, sizeof(float));
    if (rope->short_factors && !read_divisors(r, "rope_factors_short.weight", rope->short_factors))
      fe_config_bad(r->config, "rope_factors_short.weight", "is missing or wrong");
    if (rope->long_factors) read_divisors(r, "rope_factors_long.weight", rope->long_factors);
  } else {
    rope->short_factors = read_factors(r, "short_factor");
    rope->long_factors = read_factors(r, "long_factor");
  }
  return rope->short_factors && rope->long_factors ? STELE_OK : STELE_OUT_OF_MEMORY;
}

/* ---- types ----------------------------------------------------------------------------- */

static void apply_linear(const reading *r) {
  for (uint32_t i = 0; i < pairs(r); i++)
    r->rope->inv_freq[i] = (double)((float)r->rope->inv_freq[i] / (float)r->rope->factor);
}

static void apply_dynamic(const reading *r) {
  uint32_t positions = r->model->model_positions;
  r->rope->rule = STELE_ROPE_DYNAMIC;
  r->rope->original = positions;
  if (r->rope->rotary < 4)
    fe_config_bad(r->config, FIELD("rope_type"),
                  "is \"dynamic\", which needs heads of at least 4 elements");
  if (!positions) fe_config_bad(r->config, "max_position_embeddings", "is missing");
}

static stele_status apply_type(const reading *r, const char *type) {
  static const struct {
    const char *name;
    void (*apply)(const reading *r);
  } types[] = {{"linear", apply_linear},
               {"dynamic", apply_dynamic},
               {"llama3", apply_llama3},
               {"yarn", apply_yarn}};
  if (strcmp(type, "default") == 0) return STELE_OK;
  if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0) return apply_long(r);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(types[i].name, type) != 0) continue;
    r->rope->factor = number(r, "factor", -1.0);
    types[i].apply(r);
    return STELE_OK;
  }
  fe_config_bad(r->config, FIELD("rope_type"),
                "is \"%.64s\", which is not supported; supported: default, linear, dynamic, "
                "llama3, yarn, longrope",
                type);
  return STELE_OK;
}

/* ---- fields ---------------------------------------------------------------------------- */

/* Every key of the object is known, or it may change the frequencies. */
static void check_keys(const reading *r) {
  static const char *const known[] = {"rope_type",
                                      "type",
                                      "rope_theta",
                                      "factor",
                                      "low_freq_factor",
                                      "high_freq_factor",
                                      "rotary_dim",
                                      "original_max_position_embeddings",
                                      "partial_rotary_factor",
                                      "attention_factor",
                                      "beta_fast",
                                      "beta_slow",
                                      "mscale",
                                      "mscale_all_dim",
                                      "truncate",
                                      "short_factor",
                                      "long_factor"};
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)fe_config_get(r->config, r->options->object), key,
                      value) {
    size_t i = 0;
    while (i < sizeof known / sizeof *known && strcmp(known[i], key) != 0) i++;
    if (i < sizeof known / sizeof *known || json_is_null(value)) continue;
    char text[96];
    snprintf(text, sizeof text, "%s.%.64s", r->options->object, key);
    fe_config_bad(r->config, text, "is not understood, and it may change the mathematics");
  }
}

/* How many of the head's elements turn. */
static uint32_t read_rotary(const reading *r) {
  uint32_t head = r->options->head;
  bool fixed = r->options->partial <= 0;
  double part = number(r, "partial_rotary_factor", fixed ? 1.0 : r->options->partial);
  if (part > 1.0 || (part != 1.0 && fixed)) {
    fe_config_bad(r->config, FIELD("partial_rotary_factor"), "is %g, which is not supported%s",
                  part, part > 1.0 ? "" : "; only 1.0 is");
    part = 1.0;
  }
  uint32_t turned = fe_config_count(r->config, FIELD("rotary_dim"), (uint32_t)(head * part));
  if (turned > head) {
    fe_config_bad(r->config, FIELD("rotary_dim"), "is %u, but heads have %u elements", turned,
                  head);
    turned = head;
  }
  if (turned % 2 != 0 && fe_config_sound(r->config))
    fe_config_bad(r->config, turned == head ? "head_dim" : FIELD("partial_rotary_factor"),
                  turned == head ? "is %u, but rope turns pairs: expected an even number"
                                 : "makes %u elements turn, but rope turns pairs",
                  turned);
  return turned;
}

static void scale_by_divisors(const reading *r, float *divisors) {
  if (!read_divisors(r, "rope_freqs.weight", divisors)) return;
  for (uint32_t i = 0; i < pairs(r); i++)
    r->rope->inv_freq[i] = (double)((float)r->rope->inv_freq[i] / divisors[i]);
}

static stele_status read_object(const reading *r) {
  const char *type = fe_config_text(r->config, FIELD("rope_type"), "default");
  bool tensors = fe_tensors_find(&r->model->tensors, "rope_factors_long.weight") != NULL;
  r->rope->rotary = read_rotary(r);
  r->rope->base = number(r, "rope_theta", r->options->theta);
  default_frequencies(r->rope->base, r->rope->rotary, r->rope->inv_freq);
  if (tensors && strcmp(type, "default") == 0) type = "longrope";
  BASE_TRY(apply_type(r, type));
  check_keys(r);
  return STELE_OK;
}

/* Room for one more. */
static fe_rope *next_rope(fe_model *model) {
  fe_rope *list = base_arena_alloc(&model->arena, model->rope_count + 1, sizeof *list);
  if (!list) return NULL;
  if (model->rope_count) memcpy(list, model->ropes, model->rope_count * sizeof *list);
  model->ropes = list;
  return &list[model->rope_count];
}

stele_status fe_rope_add(const fe_config *config, fe_model *model, const fe_rope_options *options,
                         stele_sink *sink) {
  uint32_t head = options->head;
  fe_rope *rope = next_rope(model);
  double *inv_freq = base_arena_alloc(&model->arena, head / 2 + 1, sizeof *inv_freq);
  float *divisors = base_arena_alloc(&model->arena, head / 2 + 1, sizeof *divisors);
  if (!rope || !inv_freq || !divisors)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", config->path);
  *rope = (fe_rope){.rotary = head,
                    .offset = options->offset,
                    .pairing = options->pairing,
                    .rule = STELE_ROPE_FIXED,
                    .base = options->theta,
                    .factor = 1.0,
                    .attention_factor = 1.0,
                    .inv_freq = inv_freq};
  reading r = {config, model, options, rope};
  if (options->object) {
    if (read_object(&r) != STELE_OK)
      return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", config->path);
  } else {
    default_frequencies(rope->base, rope->rotary, inv_freq);
  }
  if (model->rope_count == 0) scale_by_divisors(&r, divisors);
  model->rope_count++;
  return STELE_OK;
}
