/* A processor family whose artefacts need its baseline alone. */
#include "model/model.h"

uint64_t stele_machine_features(void) { return 0; }

bool model_enable_features(uint64_t bits) {
  (void)bits;
  return true;
}
