/* Rope rows of models whose angles depend on the length: computed on the host, because lengths
 * grow and the code's shapes don't.
 *
 * dynamic (NTK by length): once n exceeds the original length L,
 *     base' = base * (factor * n / L - (factor - 1)) ** (rotary / (rotary - 2))
 *     inverse[i] = base' ** (-2 i / rotary)
 * long: inverse[i] = base ** (-2 i / rotary) / factors[i], the long factors once n exceeds L.
 * n follows the whole prompt's length, then each step's. Rounding is that of the reference
 * implementation (transformers, modeling_rope_utils.py): powers, inverses and angles in float32. */
#include <math.h>

#include "session/session.h"

void session_rope_inverse(const stele_rope *rope, uint32_t tokens, float *inverse) {
  double base = rope->base, size = rope->rotary;
  bool beyond = tokens > rope->original;
  const float *factors = NULL;
  if (rope->rule == STELE_ROPE_LONG) factors = beyond ? rope->long_factors : rope->short_factors;
  if (rope->rule == STELE_ROPE_DYNAMIC && beyond) {
    double growth = rope->factor * tokens / rope->original - (rope->factor - 1);
    base *= pow(growth, size / (size - 2));
  }
  for (uint32_t i = 0; i < rope->rotary / 2; i++) {
    float power = powf((float)base, 2.0f * (float)i / (float)rope->rotary);
    inverse[i] = 1.0f / (factors ? factors[i] * power : power);
  }
}

void session_rope_row(const stele_rope *rope, const float *inverse, int32_t position, float *row) {
  uint32_t half = rope->rotary / 2;
  for (uint32_t i = 0; i < half; i++) {
    float angle = (float)position * inverse[i];
    row[i] = (float)(cos(angle) * rope->attention_factor);
    row[half + i] = (float)(sin(angle) * rope->attention_factor);
  }
}
