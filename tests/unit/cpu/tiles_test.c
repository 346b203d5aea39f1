/* Products in AMX's tiles are those of vectors, to the bit: every scheme, activations of 8 and of
 * 16 bits, tokens evenly apart and not. The tiles are emulated where the processor has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"

#include "base/base.h"
#include "emulate.h"
#include "stele/artifact.h"
#include "tiles.h"

enum { COLUMNS = 512 };

/* Any bytes are numbers; scales are kept finite. */
static void make_panel(uint32_t scheme, uint8_t *w, size_t bytes) {
  uint32_t head, block = tiles_block(scheme, &head);
  for (size_t i = 0; i < bytes; i++) {
    w[i] = (uint8_t)random_bits();
    if (i % block < head) w[i] &= 0xbf;
  }
}

static void check(uint32_t scheme, bool wide, bool even) {
  static _Alignas(64) uint8_t w[COLUMNS * 16 * 2], memory[16 * COLUMNS * 4];
  static float x[16 * COLUMNS];
  static _Alignas(64) float tiles[16 * 16], vectors[16 * 16];
  tiles_case c = {.scheme = scheme, .columns = COLUMNS, .wide = wide, .x = x, .w = w};
  make_panel(scheme, w, sizeof w);
  for (int i = 0; i < 16 * COLUMNS; i++)
    x[i] = (float)(int32_t)random_bits() * 0x1p-31f * (i / COLUMNS == 3 ? 0 : 1);
  for (uint32_t i = 0; i < 16; i++) c.order[i] = even ? i : i * 5 % 16;
  tiles_by_tiles(&c, memory, tiles);
  tiles_by_vectors(&c, memory, vectors);
  if (memcmp(tiles, vectors, sizeof tiles) == 0) return;
  for (int i = 0; i < 256; i++)
    if (memcmp(&tiles[i], &vectors[i], 4) != 0)
      fail_msg("scheme %u, wide %d, even %d: token %d row %d: %a by tiles, %a by vectors", scheme,
               wide, even, i / 16, i % 16, (double)tiles[i], (double)vectors[i]);
}

static void test_schemes(void **state) {
  (void)state;
  static const uint32_t schemes[] = {
#define CPU_SCHEME(id, ...) STELE_##id,
#include "cpu/kernels/schemes.def"
#undef CPU_SCHEME
  };
  emulate_install();
  for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
    for (int form = 0; form < 4; form++) check(schemes[i], form & 1, form >> 1);
}

int main(void) {
  const uint64_t needs = STELE_FEATURE_AVX2 | STELE_FEATURE_AMX;
  uint64_t here = base_machine_features();
  if (needs & ~(here | emulate_install()) || !base_enable_features(here & needs)) return 77;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_schemes)};
  return cmocka_run_group_tests_name("tiles", tests, NULL, NULL);
}
