/* Rope frequencies: inv_freq[i] = theta ** (-2 i / rotary), then the scaling of one type.
 *
 * The float32 arithmetic, and its order, are those of transformers (modeling_rope_utils.py), so
 * that positions far out turn by the same angles; this file is compiled without contraction of
 * multiply and add. Only the power is done in double and rounded once.
 *   linear   inv / factor
 *   dynamic  like default up to max_position_embeddings tokens; beyond, the runtime recomputes
 *   llama3   long waves / factor, short ones kept, between them a blend (the Llama 3.1 release)
 * In GGUF files llama3's scaling comes as divisors of the frequencies, one for each. */
#include "frontend/rope.h"

#include <math.h>
#include <string.h>

#include "stele/program.h"
#include "weights/weights.h"

typedef struct scaling {
  float factor, low, high, original;
} scaling;

static void default_frequencies(double theta, uint32_t rotary, double *out) {
  for (uint32_t i = 0; i < rotary / 2; i++) {
    float exponent = (float)(2 * i) / (float)rotary;
    out[i] = (double)(1.0f / (float)pow(theta, (double)exponent));
  }
}

static float scale_llama3(float inv, const scaling *s) {
  float wave = (float)(2.0 * M_PI) / inv;
  if (wave > s->original / s->low) return inv / s->factor;
  if (wave < s->original / s->high) return inv;
  float smooth = (s->original / wave - s->low) / (s->high - s->low);
  float scaled = (1.0f - smooth) * inv / s->factor;
  float kept = smooth * inv;
  return scaled + kept;
}

static void apply_llama3(const fe_config *config, fe_rope *rope) {
  double low = fe_config_number(config, "rope_parameters.low_freq_factor", -1.0);
  double high = fe_config_number(config, "rope_parameters.high_freq_factor", -1.0);
  uint32_t original =
      fe_config_count(config, "rope_parameters.original_max_position_embeddings", FE_REQUIRED);
  if (high <= low) {
    fe_config_bad(config, "rope_parameters.high_freq_factor",
                  "is %g, expected more than 'low_freq_factor', which is %g", high, low);
    return;
  }
  scaling s = {(float)rope->factor, (float)low, (float)high, (float)original};
  for (uint32_t i = 0; i < rope->rotary / 2; i++)
    rope->inv_freq[i] = (double)scale_llama3((float)rope->inv_freq[i], &s);
  rope->original = original;
}

static void apply_type(const fe_config *config, const fe_model *model, const char *type,
                       fe_rope *rope) {
  if (strcmp(type, "default") == 0) return;
  rope->factor = fe_config_number(config, "rope_parameters.factor", -1.0);
  if (strcmp(type, "linear") == 0) {
    for (uint32_t i = 0; i < rope->rotary / 2; i++)
      rope->inv_freq[i] = (double)((float)rope->inv_freq[i] / (float)rope->factor);
  } else if (strcmp(type, "dynamic") == 0) {
    rope->rule = STELE_ROPE_DYNAMIC;
    rope->original = model->model_positions;
    if (rope->rotary < 4)
      fe_config_bad(config, "rope_parameters.rope_type",
                    "is \"dynamic\", which needs heads of at least 4 elements");
    if (!model->model_positions) fe_config_bad(config, "max_position_embeddings", "is missing");
  } else if (strcmp(type, "llama3") == 0) {
    apply_llama3(config, rope);
  } else {
    fe_config_bad(config, "rope_parameters.rope_type",
                  "is \"%.64s\", which is not supported; supported: default, linear, dynamic, "
                  "llama3",
                  type);
  }
}

/* Every key of rope_parameters is known, or it may change the frequencies. */
static void check_keys(const fe_config *config) {
  static const char *const known[] = {"rope_type",
                                      "type",
                                      "rope_theta",
                                      "factor",
                                      "low_freq_factor",
                                      "high_freq_factor",
                                      "rotary_dim",
                                      "original_max_position_embeddings",
                                      "partial_rotary_factor",
                                      "attention_factor"};
  const char *key;
  json_t *value;
  json_object_foreach(json_object_get(config->root, "rope_parameters"), key, value) {
    size_t i = 0;
    while (i < sizeof known / sizeof *known && strcmp(known[i], key) != 0) i++;
    if (i < sizeof known / sizeof *known || json_is_null(value)) continue;
    char field[96];
    snprintf(field, sizeof field, "rope_parameters.%.64s", key);
    fe_config_bad(config, field, "is not understood, and it may change the mathematics");
  }
}

/* GGUF: divisors of the frequencies, one a pair of elements. */
static void apply_divisors(const fe_config *config, fe_model *model, fe_rope *rope) {
  fe_tensor *tensor = fe_tensors_find(&model->tensors, "rope_freqs.weight");
  if (!tensor) return;
  tensor->used = true;
  if (tensor->scheme != STELE_F32 || tensor->dim_count != 1 ||
      tensor->dims[0] != rope->rotary / 2) {
    fe_config_bad(config, "rope_freqs.weight", "is not a vector of %u numbers of type F32",
                  rope->rotary / 2);
    return;
  }
  for (uint32_t i = 0; i < rope->rotary / 2; i++) {
    float divisor;
    weights_decode(STELE_F32, tensor->data + 4 * (size_t)i, 1, &divisor);
    if (!isfinite(divisor) || divisor <= 0.0f) {
      fe_config_bad(config, "rope_freqs.weight", "has %g at %u, expected a number above 0",
                    (double)divisor, i);
      return;
    }
    rope->inv_freq[i] = (double)((float)rope->inv_freq[i] / divisor);
  }
}

stele_status fe_rope_read(const fe_config *config, fe_model *model, uint32_t head, uint32_t pairing,
                          double default_theta, stele_sink *sink) {
  fe_rope *rope = base_arena_alloc(&model->arena, 1, sizeof *rope);
  double *inv_freq = base_arena_alloc(&model->arena, head / 2 + 1, sizeof *inv_freq);
  if (!rope || !inv_freq)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", config->path);
  *rope = (fe_rope){.rotary = head,
                    .pairing = pairing,
                    .rule = STELE_ROPE_FIXED,
                    .factor = 1.0,
                    .attention_factor = 1.0,
                    .inv_freq = inv_freq};
  if (head % 2 != 0 && fe_config_sound(config))
    fe_config_bad(config, "head_dim", "is %u, but rope turns pairs: expected an even number", head);
  uint32_t turned = fe_config_count(config, "rope_parameters.rotary_dim", head);
  if (turned != head)
    fe_config_bad(config, "rope_parameters.rotary_dim",
                  "is %u, but heads have %u elements, and turning a part of them is not supported",
                  turned, head);
  rope->base = fe_config_number(config, "rope_parameters.rope_theta", default_theta);
  default_frequencies(rope->base, head, inv_freq);
  apply_type(config, model, fe_config_text(config, "rope_parameters.rope_type", "default"), rope);
  apply_divisors(config, model, rope);
  check_keys(config);
  model->ropes = rope;
  model->rope_count = 1;
  return STELE_OK;
}
