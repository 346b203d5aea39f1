/* Products of a panel with 16 tokens in AMX's tiles, where a step has so many.
 *
 *   C [16 tokens][16 rows] += A [16 tokens][32 columns] * B [8 pieces][16 rows][4 columns]
 *
 * A is 16 rows of quantised activations as they are, B the pieces that vector products take. C is
 * one part's sums, the same integers that vectors give, and what is done with them is the same too
 * (block.h): so are the results, to the bit. A part of 16 columns takes half of A and of B.
 *
 * Activations of 16 bits (wide.h) are two planes of bytes here, x = 256 high + low, and two
 * products. Source: Intel SDM volume 1, chapter 18; volume 2, TDPBSSD and its like. */
#ifndef CPU_AMX_H
#define CPU_AMX_H

#include "call.h"
#include "numbers.h"

#define TILE_TOKENS 16

#if defined(__AMX_INT8__)

enum { TILE_C, TILE_HIGH, TILE_A, TILE_A_HIGH, HALF_A, HALF_A_HIGH, TILE_B, HALF_B };

/* What LDTILECFG reads: palette 1; bytes of a row, then rows, of each tile. */
typedef struct tile_configuration {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} tile_configuration;

static const tile_configuration tile_shapes
    __attribute__((aligned(64))) = {.palette = 1,
                                    .row_bytes = {64, 64, 32, 32, 16, 16, 64, 64},
                                    .rows = {16, 16, 16, 16, 16, 16, 8, 4}};

INLINE void tiles_begin(void) { _tile_loadconfig(&tile_shapes); }
INLINE void tiles_end(void) { _tile_release(); }

/* Where 16 tokens' activations are: `stride` apart, those of a group of columns at `at`. */
typedef struct tile_rows {
  const uint8_t *at;
  size_t stride;
} tile_rows;

/* Of each part the sums of 16 tokens: of the low bytes, and of the high ones, of wide activations.
 */
typedef struct tile_sums {
  vi low[2][TILE_TOKENS], high[2][TILE_TOKENS];
} tile_sums;

/* One part's sums = A B, where B is bytes with a sign. The instructions' operands are parts of
 * their names, so each size of A and B has its own. */
#define TILE_PRODUCTS(name, A, A_HIGH, B)                                         \
  INLINE void name(bool wide, tile_rows a, const uint8_t *b, vi *low, vi *high) { \
    _tile_zero(TILE_C);                                                           \
    _tile_loadd(B, b, 64);                                                        \
    _tile_loadd(A, a.at, a.stride);                                               \
    if (wide) {                                                                   \
      _tile_zero(TILE_HIGH);                                                      \
      _tile_loadd(A_HIGH, a.at + GROUP, a.stride);                                \
      _tile_dpbusd(TILE_C, A, B);                                                 \
      _tile_dpbssd(TILE_HIGH, A_HIGH, B);                                         \
      _tile_stored(TILE_HIGH, high, 64);                                          \
    } else {                                                                      \
      _tile_dpbssd(TILE_C, A, B);                                                 \
    }                                                                             \
    _tile_stored(TILE_C, low, 64);                                                \
  }
TILE_PRODUCTS(whole_products, TILE_A, TILE_A_HIGH, TILE_B)
TILE_PRODUCTS(half_products, HALF_A, HALF_A_HIGH, HALF_B)
#undef TILE_PRODUCTS

/* The sums of 32 columns, whose pieces are at b, in parts of so many. */
INLINE void tile_products(bool wide, uint32_t part, tile_rows a, const uint8_t *b, tile_sums *out) {
  if (part == GROUP) {
    whole_products(wide, a, b, out->low[0], out->high[0]);
    return;
  }
  half_products(wide, a, b, out->low[0], out->high[0]);
  a.at += part;
  half_products(wide, a, b + part * CPU_PANEL, out->low[1], out->high[1]);
}
INLINE vi tile_sum(bool wide, const tile_sums *sums, int part, int t) {
  return wide ? sums->low[part][t] + (sums->high[part][t] << 8) : sums->low[part][t];
}

/* Whether the op's products are made in tiles: enough tokens, and integers on both sides. */
INLINE bool is_quantised(const cpu_matrix *m) { return m->rows && m->scheme > STELE_BF16; }
INLINE bool uses_tiles(const cpu_shape *s) {
  const cpu_matrix *m = s->matrix;
  const uint32_t scheme = s->prepared ? s->prepared_scheme : s->in_scheme;
  return s->tokens >= TILE_TOKENS && (s->wide || scheme == STELE_Q8_0) &&
         (is_quantised(m) || is_quantised(m + 1) || is_quantised(m + 2));
}

#else

INLINE void tiles_begin(void) {}
INLINE void tiles_end(void) {}
INLINE bool uses_tiles(const cpu_shape *s) {
  (void)s;
  return false;
}

typedef struct tile_rows {
  const uint8_t *at;
  size_t stride;
} tile_rows;
typedef struct tile_sums {
  int none;
} tile_sums;
INLINE void tile_products(bool wide, uint32_t part, tile_rows a, const uint8_t *b, tile_sums *out) {
  (void)wide, (void)part, (void)a, (void)b, (void)out;
}
INLINE vi tile_sum(bool wide, const tile_sums *sums, int part, int t) {
  (void)wide, (void)sums, (void)part, (void)t;
  return (vi){0};
}

#endif
#endif
