/* AMX: eight tiles of up to 16 rows of 64 bytes, and what LDTILECFG, TILELOADD, TILESTORED,
 * TILEZERO, TILERELEASE, TDPB[SU][SU]D and TDPBF16PS do with them, after the pseudo-code of the
 * Intel SDM, volume 2. A tile's rows and columns past its configured ones are zero.
 *
 * In C += A B, A is M rows of K groups of 4 bytes, B is K rows of N groups, C is M rows of N
 * numbers of 32 bits; a group is what one lane of a dot product takes. */
#include <math.h>
#include <string.h>

#include "emulate.h"

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, GROUPS = ROW_BYTES / 4 };

typedef struct tile {
  uint32_t rows, bytes; /* of a row; 0: not configured */
  uint8_t data[ROWS][ROW_BYTES];
} tile;

static _Thread_local tile tiles[TILES];

/* ---- configuration --------------------------------------------------------------------- */

/* The 64 bytes of LDTILECFG: palette, start row, 14 reserved, 16 numbers of bytes per row (16 bits
 * each), 16 numbers of rows (8 bits each), of which eight are tiles of palette 1. */
static bool configure(const uint8_t *memory) {
  tile made[TILES] = {0};
  uint16_t bytes[16];
  memcpy(bytes, memory + 16, sizeof bytes);
  for (int i = 1; i < 16; i++)
    if (memory[i]) return false;
  for (int i = 0; i < 16; i++) {
    uint32_t rows = memory[48 + i];
    if (i >= TILES && (rows || bytes[i])) return false;
    if (rows > ROWS || bytes[i] > ROW_BYTES || !rows != !bytes[i]) return false;
    if (i < TILES) made[i].rows = rows, made[i].bytes = bytes[i];
  }
  if (memory[0] > 1) return false;
  if (memory[0] == 0) memset(made, 0, sizeof made);
  memcpy(tiles, made, sizeof tiles);
  return true;
}

static void release(void) { memset(tiles, 0, sizeof tiles); }

/* ---- moving ---------------------------------------------------------------------------- */

static bool load(tile *t, const uint8_t *from, uint64_t stride) {
  if (!t->rows) return false;
  memset(t->data, 0, sizeof t->data);
  for (uint32_t r = 0; r < t->rows; r++) memcpy(t->data[r], from + r * stride, t->bytes);
  return true;
}

static bool store(const tile *t, uint8_t *to, uint64_t stride) {
  if (!t->rows) return false;
  for (uint32_t r = 0; r < t->rows; r++) memcpy(to + r * stride, t->data[r], t->bytes);
  return true;
}

static bool zero(tile *t) {
  if (!t->rows) return false;
  memset(t->data, 0, sizeof t->data);
  return true;
}

/* ---- products -------------------------------------------------------------------------- */

static bool fits(const tile *c, const tile *a, const tile *b) {
  return c->rows && a->rows && b->rows && c != a && c != b && a != b && c->bytes % 4 == 0 &&
         a->bytes % 4 == 0 && a->bytes / 4 == b->rows && c->rows == a->rows && c->bytes == b->bytes;
}

static int32_t byte(uint8_t b, bool is_signed) { return is_signed ? (int8_t)b : b; }

static void multiply_bytes(tile *c, const tile *a, const tile *b, bool a_signed, bool b_signed) {
  for (uint32_t m = 0; m < c->rows; m++)
    for (uint32_t n = 0; n < c->bytes / 4; n++) {
      uint32_t sum;
      memcpy(&sum, c->data[m] + n * 4, 4);
      for (uint32_t k = 0; k < a->bytes; k++)
        sum += (uint32_t)(byte(a->data[m][k], a_signed) *
                          byte(b->data[k / 4][n * 4 + k % 4], b_signed));
      memcpy(c->data[m] + n * 4, &sum, 4);
    }
}

/* Numbers too small for their exponent count as zero, read or written. */
static float flushed(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x; }

static float bf16(const uint8_t *at) {
  uint16_t half;
  memcpy(&half, at, 2);
  uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, 4);
  return flushed(x);
}

/* Even and odd elements of the groups are summed apart, then together with C. */
static void multiply_bf16(tile *c, const tile *a, const tile *b) {
  for (uint32_t m = 0; m < c->rows; m++)
    for (uint32_t n = 0; n < c->bytes / 4; n++) {
      float sum, part[2] = {0, 0};
      for (uint32_t k = 0; k < a->bytes / 4; k++)
        for (uint32_t i = 0; i < 2; i++)
          part[i] = flushed(
              fmaf(bf16(a->data[m] + k * 4 + i * 2), bf16(b->data[k] + n * 4 + i * 2), part[i]));
      memcpy(&sum, c->data[m] + n * 4, 4);
      sum = flushed(flushed(sum) + flushed(part[0] + part[1]));
      memcpy(c->data[m] + n * 4, &sum, 4);
    }
}

/* ---- instructions ---------------------------------------------------------------------- */

enum { NONE, P66, PF3, PF2 }; /* prefixes */

static bool run_49(const emulate_instruction *i) {
  if (i->memory)
    return i->prefix == NONE && i->reg == 0 && configure(emulate_memory(i->address + i->index));
  if (i->rm != 0) return false;
  if (i->prefix == PF2) return zero(&tiles[i->reg]);
  if (i->prefix != NONE || i->reg != 0) return false;
  release();
  return true;
}

static bool run_4b(const emulate_instruction *i) {
  if (!i->memory || !i->sib) return false;
  if (i->prefix == PF3) return store(&tiles[i->reg], emulate_memory(i->address), i->index);
  return (i->prefix == PF2 || i->prefix == P66) &&
         load(&tiles[i->reg], emulate_memory(i->address), i->index);
}

bool emulate_amx(const emulate_instruction *i) {
  if (i->w || i->wide || i->reg >= TILES) return false;
  if (i->opcode == 0x49) return i->vvvv == 0 && run_49(i);
  if (i->opcode == 0x4b) return i->vvvv == 0 && run_4b(i);
  if (i->memory || i->rm >= TILES || i->vvvv >= TILES) return false;
  tile *c = &tiles[i->reg];
  const tile *a = &tiles[i->rm], *b = &tiles[i->vvvv];
  if (!fits(c, a, b)) return false;
  if (i->opcode == 0x5e)
    multiply_bytes(c, a, b, i->prefix == PF2 || i->prefix == PF3,
                   i->prefix == PF2 || i->prefix == P66);
  else if (i->opcode == 0x5c && i->prefix == PF3)
    multiply_bf16(c, a, b);
  else
    return false;
  return true;
}
