/* Rows of rope tables. As transformers does it: the angle is the float32 product of position and
 * inverse frequency, then its cosine and sine, times the attention factor. (The product is what
 * matters: far out, an angle that is rounded once differs from the exact one by more than the
 * tolerance of logits.) */
#include <math.h>

#include "artifact/artifact.h"
#include "frontend/frontend.h"

void artifact_rope_row(const fe_rope *rope, uint64_t position, float *out) {
  uint32_t half = rope->rotary / 2;
  float factor = (float)rope->attention_factor;
  for (uint32_t i = 0; i < half; i++) {
    float angle = (float)position * (float)rope->inv_freq[i];
    out[i] = (float)cos((double)angle) * factor;
    out[half + i] = (float)sin((double)angle) * factor;
  }
}
