/* From rows in a scheme's own blocks to panels of 16 rows (layout.c draws them): numbers of floats,
 * or words of quantised ones, of 16 rows side by side. Rows past the last one are zeros.
 *
 * A quantised block's numbers come from weights_numbers one a byte, whatever their order in the
 * file, and are put together again as kernels/numbers.h draws them; its scales are moved as
 * kernels/schemes.def says. */
#include <string.h>

#include "cpu/cpu.h"
#include "weights/weights.h"

/* A panel's source: 16 rows, `live` of which exist. */
typedef struct panel_rows {
  const uint8_t *rows;
  size_t stride;
  uint32_t live;
} panel_rows;

/* to[k][16] of numbers of 4 bytes: blocks of 16 columns, so that both sides stay in cache lines. */
static void pack_words(panel_rows from, uint64_t columns, uint8_t *to) {
  for (uint64_t first = 0; first < columns; first += 16) {
    uint64_t end = first + 16 < columns ? first + 16 : columns;
    for (uint32_t row = 0; row < from.live; row++)
      for (uint64_t k = first; k < end; k++)
        memcpy(to + (k * CPU_PANEL + row) * 4, from.rows + row * from.stride + k * 4, 4);
  }
}

/* The same of numbers of 2 bytes. */
static void pack_halves(panel_rows from, uint64_t columns, uint8_t *to) {
  for (uint64_t first = 0; first < columns; first += 32) {
    uint64_t end = first + 32 < columns ? first + 32 : columns;
    for (uint32_t row = 0; row < from.live; row++)
      for (uint64_t k = first; k < end; k++)
        memcpy(to + (k * CPU_PANEL + row) * 2, from.rows + row * from.stride + k * 2, 2);
  }
}

/* ---- quantised blocks ------------------------------------------------------------------ */

enum { GROUP = CPU_BLOCK, PIECES = 8 };

/* `count` bits of a number of piece `piece`, from bit `from` on: bit `at` of a byte of `word`. */
typedef struct bit_field {
  uint8_t piece, word, at, count, from;
} bit_field;

/* How numbers of so many bits fill their words; a field of 0 bits ends it. */
static const bit_field fields[9][14] = {
    [2] = {{0, 0, 0, 2, 0},
           {2, 0, 2, 2, 0},
           {4, 0, 4, 2, 0},
           {6, 0, 6, 2, 0},
           {1, 1, 0, 2, 0},
           {3, 1, 2, 2, 0},
           {5, 1, 4, 2, 0},
           {7, 1, 6, 2, 0}},
    [3] = {{0, 0, 0, 3, 0},
           {1, 0, 3, 3, 0},
           {2, 1, 0, 3, 0},
           {3, 1, 3, 3, 0},
           {4, 2, 0, 3, 0},
           {5, 2, 3, 3, 0},
           {6, 0, 6, 2, 0},
           {6, 1, 6, 1, 2},
           {7, 2, 6, 2, 0},
           {7, 1, 7, 1, 2}},
    [4] = {{0, 0, 0, 4, 0},
           {1, 1, 0, 4, 0},
           {2, 2, 0, 4, 0},
           {3, 3, 0, 4, 0},
           {4, 0, 4, 4, 0},
           {5, 1, 4, 4, 0},
           {6, 2, 4, 4, 0},
           {7, 3, 4, 4, 0}},
    [5] = {{0, 0, 0, 5, 0},
           {1, 1, 0, 5, 0},
           {2, 2, 0, 5, 0},
           {3, 3, 0, 5, 0},
           {4, 4, 0, 5, 0},
           {5, 0, 5, 3, 0},
           {5, 1, 6, 2, 3},
           {6, 2, 5, 3, 0},
           {6, 3, 6, 2, 3},
           {7, 4, 5, 3, 0},
           {7, 1, 5, 1, 3},
           {7, 3, 5, 1, 4}},
    [6] = {{0, 0, 0, 6, 0},
           {1, 1, 0, 6, 0},
           {2, 2, 0, 6, 0},
           {3, 0, 6, 2, 4},
           {3, 1, 6, 2, 2},
           {3, 2, 6, 2, 0},
           {4, 3, 0, 6, 0},
           {5, 4, 0, 6, 0},
           {6, 5, 0, 6, 0},
           {7, 3, 6, 2, 4},
           {7, 4, 6, 2, 2},
           {7, 5, 6, 2, 0}},
    [8] = {{0, 0, 0, 8, 0},
           {1, 1, 0, 8, 0},
           {2, 2, 0, 8, 0},
           {3, 3, 0, 8, 0},
           {4, 4, 0, 8, 0},
           {5, 5, 0, 8, 0},
           {6, 6, 0, 8, 0},
           {7, 7, 0, 8, 0}},
};

static uint32_t load_word(const uint8_t *p) {
  uint32_t word;
  memcpy(&word, p, sizeof word);
  return word;
}

/* 32 numbers of one row, 4 at a time; to: where the row's words are, 64 bytes apart. */
static inline void pack_group(uint32_t bits, const uint8_t numbers[GROUP], uint8_t *to) {
  uint32_t words[PIECES] = {0};
  for (const bit_field *f = fields[bits]; f->count; f++) {
    uint32_t mask = ((1u << f->count) - 1) * 0x01010101u;
    words[f->word] |= (load_word(numbers + f->piece * 4) >> f->from & mask) << f->at;
  }
  for (uint32_t i = 0; i < bits; i++) memcpy(to + i * 64, &words[i], 4);
}

/* `count` units of `unit` bytes, which are at `at` in a file's block. */
typedef struct scale_move {
  uint8_t unit, count, at;
} scale_move;

typedef struct block_format {
  uint32_t columns, bits, head;
  scale_move moves[4]; /* until a unit of 0 bytes */
} block_format;

static const block_format formats[] = {
#define CPU_SCHEME(id, name, columns, bits, offset, part, mins, head, ...) \
  [STELE_##id] = {columns, bits, head, {__VA_ARGS__}},
#include "cpu/kernels/schemes.def"
};

/* A row's scales; to: the head of a panel's block. */
static inline void pack_head(const block_format *f, const uint8_t *block, uint32_t row,
                             uint8_t *to) {
  for (const scale_move *m = f->moves; m->unit; m++)
    for (uint32_t i = 0; i < m->count; i++, to += m->unit * CPU_PANEL)
      memcpy(to + row * m->unit, block + m->at + i * m->unit, m->unit);
}

static void pack_blocks(uint32_t scheme, panel_rows from, uint64_t columns, uint8_t *to) {
  const block_format *f = &formats[scheme];
  const size_t bytes = f->columns * f->bits / 8, block = bytes + f->head;
  for (uint64_t b = 0; b < columns / f->columns; b++, to += block * CPU_PANEL)
    for (uint32_t row = 0; row < from.live; row++) {
      const uint8_t *at = from.rows + row * from.stride + b * block;
      uint8_t numbers[WEIGHTS_MAX_BLOCK];
      weights_numbers(scheme, at, numbers);
      for (uint32_t k = 0; k < f->columns; k += GROUP)
        pack_group(f->bits, numbers + k,
                   to + f->head * CPU_PANEL + k / GROUP * f->bits * 64 + row * 4);
      pack_head(f, at, row, to);
    }
}

static void pack_panel(uint32_t scheme, panel_rows from, uint64_t columns, uint8_t *to) {
  switch (scheme) {
    case STELE_F32:
      pack_words(from, columns, to);
      break;
    case STELE_F16:
    case STELE_BF16:
      pack_halves(from, columns, to);
      break;
    default:
      pack_blocks(scheme, from, columns, to);
      break;
  }
}

stele_status cpu_pack(const void *self, uint32_t scheme, uint32_t layout, uint64_t rows,
                      uint64_t columns, uint64_t first, uint64_t count, const void *source,
                      void *destination, stele_sink *sink) {
  (void)self;
  size_t panel, stride;
  if (layout != CPU_LAYOUT_PANELS || !cpu_panel_bytes(scheme, columns, &panel) ||
      !weights_row_bytes(scheme, columns, &stride) || first > rows || count > rows - first ||
      first % CPU_PANEL || (count % CPU_PANEL && first + count != rows))
    return base_fail(
        sink, STELE_INVALID_ARGUMENT,
        "target 'cpu': rows %llu to %llu of %llu, scheme %u, layout %u can't be packed",
        (unsigned long long)first, (unsigned long long)(first + count), (unsigned long long)rows,
        scheme, layout);
  for (uint64_t row = 0; row < count; row += CPU_PANEL) {
    uint8_t *to = (uint8_t *)destination + (first + row) / CPU_PANEL * panel;
    uint64_t left = count - row;
    panel_rows from = {(const uint8_t *)source + row * stride, stride,
                       (uint32_t)(left < CPU_PANEL ? left : CPU_PANEL)};
    if (from.live < CPU_PANEL) memset(to, 0, panel);
    pack_panel(scheme, from, columns, to);
  }
  return STELE_OK;
}
