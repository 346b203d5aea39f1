/* A processor family whose artefacts need its baseline alone. */
#include "base/base.h"

uint64_t base_machine_features(void) { return 0; }

bool base_enable_features(uint64_t bits) {
  (void)bits;
  return true;
}
