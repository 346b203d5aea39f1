/* Which set of code runs here: the first whose features the machine has. Variants come best
 * first, so when none fits the last one asks the least and its gaps are what the user must know. */
#include <string.h>

#include "model/model.h"

uint64_t stele_machine_features(void) { return base_machine_features(); }

const char *stele_feature_name(uint64_t bit) {
  switch (bit) {
    case STELE_FEATURE_AVX2:
      return "avx2";
    case STELE_FEATURE_AVX512:
      return "avx512";
    case STELE_FEATURE_VNNI:
      return "avx512_vnni";
    case STELE_FEATURE_AVX_VNNI:
      return "avx_vnni";
    case STELE_FEATURE_AMX:
      return "amx";
    default:
      return "a feature that this library does not know";
  }
}

static void list_features(uint64_t bits, char *text, size_t bytes) {
  text[0] = 0;
  for (unsigned i = 0; i < 64; i++) {
    if (!(bits >> i & 1)) continue;
    if (text[0]) strncat(text, ", ", bytes - strlen(text) - 1);
    strncat(text, stele_feature_name((uint64_t)1 << i), bytes - strlen(text) - 1);
  }
}

stele_status model_choose_variant(const stele_artifact *artifact, uint64_t features,
                                  const char *name, stele_sink *sink,
                                  const stele_variant **out_variant) {
  char missing[256];
  uint64_t refused = 0;
  for (uint32_t i = 0; i < artifact->variant_count; i++) {
    const stele_variant *variant = &artifact->variants[i];
    if (variant->features & ~(features & ~refused)) continue;
    if (base_enable_features(variant->features)) {
      *out_variant = variant;
      return STELE_OK;
    }
    refused |= STELE_FEATURE_AMX;
  }
  const stele_variant *least = &artifact->variants[artifact->variant_count - 1];
  list_features(least->features & ~(features & ~refused), missing, sizeof missing);
  return base_fail(sink, STELE_UNSUPPORTED,
                   "'%s' needs %s, which this machine lacks or does not let a process use: it was "
                   "compiled for %s; compile it with another --cpu",
                   name, missing, least->name);
}
