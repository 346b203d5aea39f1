/* A panel times 16 tokens, made by tiles.c in both ways. */
#ifndef TILES_H
#define TILES_H

#include <stdbool.h>
#include <stdint.h>

enum { TILES_TOKENS = 16 };

typedef struct tiles_case {
  uint32_t scheme, columns;
  bool wide;
  const float *x;               /* [16][columns] */
  uint32_t order[TILES_TOKENS]; /* which of them each token is */
  const uint8_t *w;             /* the panel */
} tiles_case;

/* memory: room for 16 rows of activations; y[16 tokens][16 rows] */
void tiles_by_tiles(const tiles_case *c, uint8_t *memory, float *y);
void tiles_by_vectors(const tiles_case *c, uint8_t *memory, float *y);

/* Bytes of a panel's block, and how many of them, in front, are scales. */
uint32_t tiles_block(uint32_t scheme, uint32_t *out_head);

#endif
