/* A model that needs no compiler: the arithmetic of an artefact whose steps are plain C.
 *
 * A token leaves a key and a value per layer and head in the pages, numbers made of its weight,
 * position and slot; the token after it follows from a hash of all keys and values that it sees,
 * read back through the page tables but for those of a wide step's own tokens, which are stored
 * when all has been read. Any mistake with ids, slots, tables, pages, lanes, chunks or
 * the mapped weights changes what is generated. */
#ifndef FAKE_MODEL_H
#define FAKE_MODEL_H

#include <stdint.h>

#define FAKE_LAYERS 3u
#define FAKE_GROUPS 2u /* layers 0 and 2; layer 1 */
#define FAKE_HEADS 2u
#define FAKE_ROTARY 8u
#define FAKE_HIDDEN 12u
static const uint32_t fake_layer_group[FAKE_LAYERS] = {0, 1, 0};
#define FAKE_MARK "fake configuration 0001" /* 24 bytes with the zero */

/* Lies that an artefact can tell of itself. */
enum fake_lie {
  FAKE_HONEST,
  FAKE_LIE_NO_VARIANT,
  FAKE_LIE_NO_STEPS,
  FAKE_LIE_PAGE_TOKENS,
  FAKE_LIE_TABLE_ENTRIES,
  FAKE_LIE_LAYER_GROUP,
  FAKE_LIE_WEIGHTS_BYTES,
  FAKE_LIE_GROUP_KIND,
  FAKE_LIE_ABI,
  FAKE_LIE_SILENT, /* the query answers NULL */
  FAKE_LIE_VOCAB,
  FAKE_LIE_WEIGHT_RANGE,
  FAKE_LIE_ROPE,
  FAKE_LIE_PHASE_NAME,
  FAKE_LIE_PHASE_ORDER,
  FAKE_LIE_PHASE_COUNT,
  FAKE_LIE_PHASE_LAYER,
  FAKE_LIE_PHASE_GROUP,
  FAKE_LIE_PHASE_WEIGHT,
  FAKE_LIE_COUNT
};

/* Patched into the module by the writer. */
typedef struct fake_config {
  char mark[24];
  uint32_t seed, vocab, capacity, max_lanes, prefill_width, max_workers;
  uint32_t page_tokens[FAKE_GROUPS];
  uint32_t verify_width; /* 8 or 3: there is such a step, for tokens */
  uint32_t period;       /* not 0: mostly, what is generated repeats itself after so many tokens */
  uint32_t outputs;      /* bits of enum stele_output that prefill and one-lane steps exist for */
  uint32_t kind[FAKE_GROUPS], window[FAKE_GROUPS]; /* as a stele_group's: full, window, chunk */
  uint32_t value_in_key;                           /* not 0: no values are stored */
  uint32_t rope_rule, rope_original;
  double rope_factor;
  uint32_t stop_count;
  int32_t stop_ids[4];
  uint32_t variant_count;
  uint64_t features[2];
  uint64_t weights_bytes;
  char weights_file[64]; /* "": inside */
  uint32_t lie;
  uint32_t old; /* not 0: written before steps had phases */
} fake_config;

/* Patched in where text is tested. */
#define FAKE_TOKENIZER_MARK "fake tokenizer 00000001"
typedef struct fake_tokenizer {
  char mark[24];
  uint32_t bytes, reserved;
  uint8_t data[32768];
} fake_tokenizer;

static inline uint32_t fake_mix(uint32_t a, uint32_t b) {
  uint64_t x = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return (uint32_t)(x >> 32);
}
static inline uint32_t fake_weight(uint32_t seed, uint32_t id) { return fake_mix(seed, id + 1000); }
static inline uint32_t fake_key(uint32_t weight, uint32_t position, uint32_t layer, uint32_t head) {
  return fake_mix(weight + position * 77, layer * FAKE_HEADS + head);
}
static inline uint32_t fake_value(uint32_t key, uint32_t slot) { return fake_mix(key, slot + 5); }
/* The first slot that a token at `slot` sees in a layer; 1 and 2 are windows and chunks. */
static inline uint32_t fake_seen_from(const fake_config *config, uint32_t layer, uint32_t slot) {
  uint32_t group = fake_layer_group[layer], window = config->window[group];
  if (config->kind[group] == 2) return slot - slot % window;
  return config->kind[group] == 1 && slot >= window ? slot - window + 1 : 0;
}
/* The same of all layers. */
static inline uint32_t fake_oldest(const fake_config *config, uint32_t slot) {
  uint32_t oldest = slot;
  for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++)
    if (fake_seen_from(config, layer, slot) < oldest) oldest = fake_seen_from(config, layer, slot);
  return oldest;
}
static inline uint32_t fake_see(uint32_t hash, uint32_t key, uint32_t value) {
  return fake_mix(fake_mix(hash, key), value);
}
/* Of a token at a slot: seven times of eight the slot alone decides what follows. */
static inline uint32_t fake_settle(uint32_t hash, uint32_t slot, uint32_t period) {
  return period && hash % 8 ? fake_mix(slot % period, 4711) : hash;
}
static inline float fake_logit(uint32_t hash, uint32_t id) {
  return (float)(fake_mix(hash, id) >> 8) * 0x1p-24f;
}
static inline float fake_hidden(uint32_t hash, uint32_t layer, uint32_t i) {
  return fake_logit(hash + layer, i + 100000);
}

#endif
