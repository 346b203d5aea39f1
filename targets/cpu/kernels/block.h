/* Blocks of quantised weights: what schemes.def says of them, and their products with a few tokens.
 *
 * A product with integer activations x ~ d q in 32 columns is, exactly but for float rounding,
 *   sum over their parts of d scale (number . q - offset sum(q)) + minimum d sum(q)
 * where the sum in parentheses is an integer. Results do not depend on the number of tokens. */
#ifndef CPU_BLOCK_H
#define CPU_BLOCK_H

#include "call.h"
#include "numbers.h"
#include "schemes/q2_k.h"
#include "schemes/q3_k.h"
#include "schemes/q4_0.h"
#include "schemes/q4_1.h"
#include "schemes/q4_k.h"
#include "schemes/q5_0.h"
#include "schemes/q5_1.h"
#include "schemes/q5_k.h"
#include "schemes/q6_k.h"
#include "schemes/q8_0.h"

#define STREAMS 4
#define PREFETCH_AHEAD 640 /* bytes, in each stream */

/* Pieces of a block are unrolled where registers allow: elsewhere so much would be live at once
 * that most of it went through memory. */
#if defined(__AVX512F__)
#define TOKENS_AT_ONCE 8
#define MANY_REGISTERS 1
#else
#define TOKENS_AT_ONCE 4
#define MANY_REGISTERS 0
#endif
_Static_assert(TOKENS_AT_ONCE <= CPU_MAX_TOKENS, "frames are sized for CPU_MAX_TOKENS");

/* Streams per call: as many as keep memory busy, or the adders where weights are floats. Passes of
 * many tokens wait for neither, as long as what comes next is asked for in time. */
INLINE int stream_count(int nt) { return nt == 1 ? STREAMS : nt == 2 ? STREAMS / 2 : 1; }

/* Asks for the cache lines of `bytes` from `ahead` bytes behind p on. */
INLINE void prefetch_run(const uint8_t *p, size_t bytes, size_t ahead) {
  UNROLL
  for (size_t i = 0; i < bytes; i += 64) prefetch(p + ahead + i);
}

/* ---- what the table says ------------------------------------------------------------------- */

#define MAX_PARTS 16

typedef struct packing {
  uint32_t columns, bits, offset, part, mins, tail;
} packing;

INLINE packing packing_of(uint32_t scheme) {
  switch (scheme) {
#define CPU_SCHEME(id, name, columns, bits, offset, part, mins, tail, ...) \
  case STELE_##id:                                                         \
    return (packing){columns, bits, offset, part, mins, tail};
#include "schemes.def"
#undef CPU_SCHEME
    default:
      return (packing){1, 8, 0, 1, 0, 0};
  }
}
INLINE size_t group_bytes(packing k) { return (size_t)k.bits * 64; }
INLINE size_t tail_offset(packing k) { return k.columns / GROUP * group_bytes(k); }
INLINE size_t block_bytes(packing k) { return tail_offset(k) + k.tail * CPU_PANEL; }

/* Scales and minima of a block's parts. */
INLINE void block_scales(uint32_t scheme, const uint8_t *block, vf *scale, vf *min) {
  const uint8_t *tail = block + tail_offset(packing_of(scheme));
  switch (scheme) {
#define CPU_SCHEME(id, name, ...)    \
  case STELE_##id:                   \
    name##_scales(tail, scale, min); \
    return;
#include "schemes.def"
#undef CPU_SCHEME
  }
}

/* Column i of a piece, decoded exactly as the format says. */
INLINE vf decode_column(packing k, vb piece, int i, vf scale, vf min) {
  vf weights = number_column(k.bits, k.offset, piece, i) * scale;
  return k.mins ? weights + min : weights;
}

/* ---- float activations --------------------------------------------------------------------- */

/* Adds 32 columns one after another; `columns`: of the record, group: of the row. */
INLINE void decoded_group(packing k, const uint8_t *w, uint32_t group, const uint8_t *const *x_rows,
                          const int nt, const vf *scale, const vf *min, vf *sum) {
  vb pieces[GROUP_PIECES];
  unpack_group(k.bits, w, pieces);
  for (uint32_t g = 0; g < GROUP_PIECES; g++) {
    const uint32_t part = g * 4 / k.part, at = (group * GROUP + g * 4) * 4;
    UNROLL
    for (int i = 0; i < 4; i++) {
      vf weights = decode_column(k, pieces[g], i, scale[part], min[part]);
      UNROLL
      for (int t = 0; t < nt; t++)
        sum[t] = fma_f(weights, splat(load_f32(x_rows[t] + at + (uint32_t)i * 4)), sum[t]);
    }
  }
}

/* ---- integer activations ------------------------------------------------------------------- */

/* A record of quantised activations: of 8 bits as program.h draws it, or wide (wide.h). */
typedef struct record {
  uint32_t columns;
  bool wide;
} record;
INLINE const uint8_t *record_q(record r, const uint8_t *x, uint32_t group) {
  return x + group * GROUP * (r.wide ? 2 : 1);
}
INLINE const uint8_t *record_d(record r, const uint8_t *x, uint32_t group) {
  return x + r.columns * (r.wide ? 2 : 1) + group * 4;
}
INLINE float record_s(record r, const uint8_t *x, uint32_t group) {
  return load_f32(record_d(r, x, group) + r.columns / GROUP * 4);
}
/* The sum of 16 columns. */
INLINE int32_t record_sum(record r, const uint8_t *x, uint32_t sixteen) {
  const uint8_t *sums = record_d(r, x, 0) + r.columns / GROUP * 8;
  return r.wide ? load_i32(sums + sixteen * 4) : load_i16(sums + sixteen * 2);
}
INLINE int32_t part_sum(record r, const uint8_t *x, uint32_t group, uint32_t part, int which) {
  uint32_t at = group * 2 + (uint32_t)which;
  return part == 16 ? record_sum(r, x, at) : record_sum(r, x, at) + record_sum(r, x, at + 1);
}

/* Where the pieces of 32 columns are: in a panel's words, or unpacked, 64 bytes each. */
typedef struct piece_source {
  const uint8_t *w;
  const uint8_t *ready; /* or NULL */
} piece_source;
INLINE vb take_piece(packing k, piece_source from, int g) {
  return from.ready ? load_b(from.ready + g * 64) : unpack(k.bits, from.w, g);
}

/* What runs of pieces add up to, per token: sums of 32 bits, or what dot_u sums in. */
typedef struct piece_sums {
  vi total[CPU_MAX_TOKENS];
  dot_u run[CPU_MAX_TOKENS];
} piece_sums;

/* Piece g times 8-bit activations. */
INLINE void narrow_piece(packing k, piece_source from, const uint8_t *const *q, int g, const int nt,
                         piece_sums *sums) {
  vb piece = take_piece(k, from, g);
  UNROLL
  for (int t = 0; t < nt; t++) {
    int32_t x = load_i32(q[t] + g * 4);
    if (k.bits == 8)
      sums->total[t] = dot_s8_add(sums->total[t], piece, x);
    else
      sums->run[t] = dot_u_add(sums->run[t], piece, x);
  }
}

/* The same times 16-bit activations, in the order of wide.h. */
INLINE void wide_piece(packing k, piece_source from, const uint8_t *const *q, int g, const int nt,
                       piece_sums *sums) {
  vs piece = (vs)take_piece(k, from, g);
  vs even = k.bits == 8 ? piece << 8 >> 8 : piece & 255;
  vs odd = k.bits == 8 ? piece >> 8 : (vs)((vus)piece >> 8);
  UNROLL
  for (int t = 0; t < nt; t++) {
    sums->total[t] = madd_16(sums->total[t], even, load_i32(q[t] + g * 8));
    sums->total[t] = madd_16(sums->total[t], odd, load_i32(q[t] + g * 8 + 4));
  }
}

INLINE void any_piece(packing k, bool wide, piece_source from, const uint8_t *const *q, int g,
                      const int nt, piece_sums *sums) {
  if (wide)
    wide_piece(k, from, q, g, nt, sums);
  else
    narrow_piece(k, from, q, g, nt, sums);
}

/* Adds pieces [begin, begin + count), a run that dot_u's sums have room for. */
INLINE void add_run(packing k, bool wide, piece_source from, const uint8_t *const *q, int begin,
                    const int count, const int nt, piece_sums *sums) {
  const bool apart = k.bits != 8 && !wide; /* summed apart from the total */
  UNROLL
  for (int t = 0; t < nt; t++) sums->run[t] = (dot_u){0};
  if (!from.ready) {
    UNROLL
    for (int g = begin; g < begin + count; g++) any_piece(k, wide, from, q, g, nt, sums);
  } else {
    for (int g = begin; g < begin + count; g++) any_piece(k, wide, from, q, g, nt, sums);
  }
  UNROLL
  for (int t = 0; t < nt; t++)
    if (apart) sums->total[t] = sums->total[t] + dot_u_end(sums->run[t]);
}

/* total[t] = number . q - offset sum(q) over part `which` of 32 columns. */
INLINE void part_totals(packing k, record r, uint32_t group, int which, piece_source from,
                        const uint8_t *const *x_rows, const int nt, piece_sums *sums) {
  const int pieces = (int)k.part / 4;
  const int run = k.bits == 8 || r.wide ? pieces : dot_u_run(k.bits, pieces);
  const int32_t offset = k.bits == 8 && !r.wide ? DOT_S8_OFFSET : (int32_t)k.offset;
  const uint8_t *q[CPU_MAX_TOKENS];
  UNROLL
  for (int t = 0; t < nt; t++) {
    q[t] = record_q(r, x_rows[t], group);
    sums->total[t] = (vi){0};
    if (offset) sums->total[t] = splat_i(-offset * part_sum(r, x_rows[t], group, k.part, which));
  }
  UNROLL
  for (int begin = which * pieces; begin < (which + 1) * pieces; begin += run)
    add_run(k, r.wide, from, q, begin, run, nt, sums);
}

/* Adds the products of 32 columns. */
INLINE void integer_group(packing k, record r, const uint8_t *w, uint32_t group,
                          const uint8_t *const *x_rows, const int nt, const vf *scale,
                          const vf *min, vf *sum) {
  const int parts = (int)(GROUP / k.part);
  vb ready[GROUP_PIECES];
  piece_source from = {w, NULL};
  if (nt > 1 && !MANY_REGISTERS) {
    if (k.bits != 8) unpack_group(k.bits, w, ready);
    from.ready = k.bits == 8 ? w : (const uint8_t *)ready;
  }
  vf inner[CPU_MAX_TOKENS];
  UNROLL
  for (int part = 0; part < parts; part++) {
    piece_sums sums;
    part_totals(k, r, group, part, from, x_rows, nt, &sums);
    UNROLL
    for (int t = 0; t < nt; t++) {
      vf exact = to_float(sums.total[t]);
      inner[t] = part ? fma_f(exact, scale[part], inner[t]) : exact * scale[part];
      if (k.mins && parts > 1) {
        float s = (float)part_sum(r, x_rows[t], group, k.part, part);
        inner[t] = fma_f(min[part], splat(s), inner[t]);
      }
    }
  }
  UNROLL
  for (int t = 0; t < nt; t++) {
    sum[t] = fma_f(inner[t], splat(load_f32(record_d(r, x_rows[t], group))), sum[t]);
    if (k.mins && parts == 1) sum[t] = fma_f(min[0], splat(record_s(r, x_rows[t], group)), sum[t]);
  }
}

/* ---- a block ------------------------------------------------------------------------------- */

/* Adds block b of a panel times nt tokens. */
INLINE void add_block(uint32_t scheme, rows x, uint32_t b, const uint8_t *w,
                      const uint8_t *const *x_rows, const int nt, vf *sum) {
  const packing k = packing_of(scheme);
  const record r = {x.columns, x.scheme == CPU_WIDE};
  const uint32_t groups = k.columns / GROUP, first = b * groups, parts = GROUP / k.part;
  vf scale[MAX_PARTS], min[MAX_PARTS];
  block_scales(scheme, w, scale, min);
  for (uint32_t i = 0; i < groups; i++) {
    const uint8_t *at = w + i * group_bytes(k);
    prefetch_run(at, group_bytes(k), PREFETCH_AHEAD);
    if (x.scheme == STELE_F32)
      decoded_group(k, at, first + i, x_rows, nt, scale + i * parts, min + i * parts, sum);
    else
      integer_group(k, r, at, first + i, x_rows, nt, scale + i * parts, min + i * parts, sum);
  }
  prefetch_run(w + tail_offset(k), k.tail * CPU_PANEL, PREFETCH_AHEAD);
}

#endif
