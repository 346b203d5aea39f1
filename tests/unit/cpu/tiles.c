/* The products of amx.h and those of vectors as plain functions; compiled by clang, for the level
 * that has both, as the kernels are. */
#include "tiles.h"

#include "cpu/kernels/panel.h"
#include "cpu/kernels/wide.h"

typedef struct prepared {
  rows x;
  const uint8_t *row[TILE_TOKENS];
} prepared;

/* 16 tokens' activations in `memory`, in the order given. */
static prepared prepare(const tiles_case *c, bool planes, uint8_t *memory) {
  prepared p = {{memory, c->wide ? CPU_WIDE : STELE_Q8_0, c->columns}, {0}};
  for (uint32_t t = 0; t < TILE_TOKENS; t++) {
    const float *x = c->x + t * c->columns;
    uint8_t *row = c->wide ? memory + t * cpu_wide_bytes(c->columns) : row_of(p.x, t);
    if (c->wide)
      widen_row(x, c->columns, planes, row);
    else
      for (uint32_t b = 0; b < c->columns / CPU_BLOCK; b++)
        quantise_into(row, c->columns, b, load_f(x + b * CPU_BLOCK),
                      load_f(x + b * CPU_BLOCK + LANES));
    for (int i = 0; i < TILE_TOKENS; i++)
      if (c->order[i] == t) p.row[i] = row;
  }
  return p;
}

void tiles_by_tiles(const tiles_case *c, uint8_t *memory, float *y) {
  prepared p = prepare(c, true, memory);
  vf out[TILE_TOKENS];
  tiles_begin();
  switch (c->scheme) {
#define CPU_SCHEME(id, ...)                                           \
  case STELE_##id:                                                    \
    block_panels(STELE_##id, p.x, &c->w, 1, p.row, TILE_TOKENS, out); \
    break;
#include "cpu/kernels/schemes.def"
#undef CPU_SCHEME
  }
  tiles_end();
  __builtin_memcpy(y, out, sizeof out);
}

void tiles_by_vectors(const tiles_case *c, uint8_t *memory, float *y) {
  prepared p = prepare(c, false, memory);
  vf out[TILE_TOKENS];
  for (int t = 0; t < TILE_TOKENS; t += 4) switch (c->scheme) {
#define CPU_SCHEME(id, ...)                                         \
  case STELE_##id:                                                  \
    block_panels(STELE_##id, p.x, &c->w, 1, p.row + t, 4, out + t); \
    break;
#include "cpu/kernels/schemes.def"
#undef CPU_SCHEME
    }
  __builtin_memcpy(y, out, sizeof out);
}

uint32_t tiles_block(uint32_t scheme, uint32_t *out_head) {
  const packing k = packing_of(scheme);
  *out_head = (uint32_t)head_bytes(k);
  return (uint32_t)block_bytes(k);
}
