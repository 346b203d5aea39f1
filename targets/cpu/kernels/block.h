/* Blocks of quantised weights: what schemes.def says of them, and their products with a few tokens.
 *
 * A product with integer activations x ~ d q in 32 columns is, in blocks of 32,
 *   scale d (number . q - offset sum(q)) + minimum d sum(q),
 * where the sum in parentheses is an integer. In blocks of 256 the scales of parts are integers,
 * too, and floats are added per 32 columns, once d of the block is taken out: d_block sum of d (sum
 * over parts of sc (number . q - offset sum(q)))
 *   - m_block sum of d (sum over parts of mn sum(q)).
 * Results do not depend on the number of tokens. */
#ifndef CPU_BLOCK_H
#define CPU_BLOCK_H

#include "amx.h"
#include "call.h"
#include "numbers.h"
#include "schemes/q2_k.h"
#include "schemes/q3_k.h"
#include "schemes/q4_k.h"
#include "schemes/q5_k.h"
#include "schemes/q6_k.h"

#define STREAMS 4
#define PREFETCH_AHEAD 640 /* bytes, in each stream */
#define PREFETCH_FAR 1024  /* the same where more is read at a turn */
#define PREFETCH_ONE 3072  /* of one stream alone, which several tokens pass over */

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

typedef struct packing {
  uint32_t columns, bits, offset, part, mins, head;
} packing;

INLINE packing packing_of(uint32_t scheme) {
  switch (scheme) {
#define CPU_SCHEME(id, name, columns, bits, offset, part, mins, head, ...) \
  case STELE_##id:                                                         \
    return (packing){columns, bits, offset, part, mins, head};
#include "schemes.def"
    default:
      return (packing){1, 8, 0, 1, 0, 0};
  }
}
INLINE size_t group_bytes(packing k) { return (size_t)k.bits * 64; }
INLINE size_t head_bytes(packing k) { return k.head * CPU_PANEL; }
INLINE size_t block_bytes(packing k) { return head_bytes(k) + k.columns / GROUP * group_bytes(k); }

INLINE bool is_super(packing k) { return k.columns > GROUP; }

/* A block's scales. Those of parts are bytes: of part p byte p % 4 of word p / 4 of each row. */
typedef struct scales {
  vf d, m;
  vi sc[4], mn[4];
  vi behind; /* is read when part_word begins within the last word, and dropped */
} scales;

INLINE scales block_scales(uint32_t scheme, const uint8_t *block) {
  const packing k = packing_of(scheme);
  const uint8_t *words = block + (k.mins ? 64 : 32);
  scales s;
  s.d = from_f16(load_h(block));
  if (k.mins) s.m = from_f16(load_h(block + 32));
  switch (scheme) {
#define CPU_SCHEME(...)
#define CPU_SUPER(id, name, ...)     \
  case STELE_##id:                   \
    name##_parts(words, s.sc, s.mn); \
    break;
#include "schemes.def"
    default:
      (void)words;
  }
  return s;
}

/* The bytes of all rows from part p on: byte i of a lane is of part p + i, while these are in one
 * word. */
INLINE vi part_word(const vi *words, uint32_t p) {
  return load_i((const uint8_t *)words + p / 4 * 64 + p % 4);
}
INLINE vf part_float(vi word, bool has_sign) {
  return to_float(has_sign ? word << 24 >> 24 : word & 255);
}

/* Scale and minimum of part p as numbers of the format. */
INLINE vf part_scale(packing k, const scales *s, uint32_t p) {
  return is_super(k) ? s->d * part_float(part_word(s->sc, p), k.offset != 0) : s->d;
}
INLINE vf part_minimum(packing k, const scales *s, uint32_t p) {
  return is_super(k) ? -(s->m * part_float(part_word(s->mn, p), false)) : s->m;
}

/* Column i of a piece, decoded exactly as the format says. */
INLINE vf decode_column(packing k, vb piece, int i, vf scale, vf min) {
  vf weights = number_column(k.bits, k.offset, piece, i) * scale;
  return k.mins ? weights + min : weights;
}

/* ---- float activations --------------------------------------------------------------------- */

/* Adds 32 columns one after another: number `group` of a row, which begins with part `part` of its
 * block. */
INLINE void decoded_group(packing k, const uint8_t *w, uint32_t group, const uint8_t *const *x_rows,
                          const int nt, const scales *s, uint32_t part, vf *sum) {
  vb pieces[GROUP_PIECES];
  unpack_group(k.bits, w, pieces);
  for (uint32_t g = 0; g < GROUP_PIECES; g++) {
    const uint32_t p = part + g * 4 / k.part, at = (group * GROUP + g * 4) * 4;
    const vf scale = part_scale(k, s, p), min = k.mins ? part_minimum(k, s, p) : scale;
    UNROLL
    for (int i = 0; i < 4; i++) {
      vf weights = decode_column(k, pieces[g], i, scale, min);
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
  size_t stride; /* from a token to the next for tiles, 0: they are not evenly apart */
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
/* The sum of 16 columns: where it is, in 16 or 32 bits, and itself. */
INLINE const uint8_t *record_sums(record r, const uint8_t *x, uint32_t sixteen) {
  return record_d(r, x, 0) + r.columns / GROUP * 8 + sixteen * (r.wide ? 4 : 2);
}
INLINE int32_t record_sum(record r, const uint8_t *x, uint32_t sixteen) {
  const uint8_t *at = record_sums(r, x, sixteen);
  return r.wide ? load_i32(at) : load_i16(at);
}
INLINE int32_t part_sum(record r, const uint8_t *x, uint32_t group, uint32_t part, int which) {
  uint32_t at = group * 2 + (uint32_t)which;
  return part == 16 ? record_sum(r, x, at) : record_sum(r, x, at) + record_sum(r, x, at + 1);
}

/* Where the pieces of 32 columns are: in a panel's words, or unpacked, 64 bytes each. */
typedef struct piece_source {
  const uint8_t *w;
  const uint8_t *ready;  /* or NULL */
  const tile_sums *sums; /* their products already (amx.h), or NULL */
} piece_source;
INLINE vb take_piece(packing k, piece_source from, int g) {
  return from.ready ? load_b(from.ready + g * 64) : unpack(k.bits, from.w, g);
}

/* What pieces add up to, per token: `total` in 32 bits, `run` in what dot_u sums in. */
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

/* Both halves of a word of 4-bit numbers are used as soon as it is loaded: in a loop, which keeps
 * sums in registers where there are few, instead of by way of memory. */
INLINE bool comes_in_pairs(packing k, const int count, const int nt) {
  return !MANY_REGISTERS && nt > 1 && k.bits == 4 && count == GROUP_PIECES;
}

/* Adds pieces [begin, begin + count) times `factor`: a run that dot_u's sums have room for. Signed
 * and wide ones are added as they are. */
INLINE void add_run(packing k, bool wide, piece_source from, const uint8_t *const *q, int begin,
                    const int count, const int nt, vs factor, piece_sums *sums) {
  UNROLL
  for (int t = 0; t < nt; t++) sums->run[t] = (dot_u){0};
  if (comes_in_pairs(k, count, nt)) {
    for (int g = begin; g < begin + count / 2; g++) {
      any_piece(k, wide, from, q, g, nt, sums);
      any_piece(k, wide, from, q, g + count / 2, nt, sums);
    }
  } else if (!from.ready) {
    UNROLL
    for (int g = begin; g < begin + count; g++) any_piece(k, wide, from, q, g, nt, sums);
  } else {
    for (int g = begin; g < begin + count; g++) any_piece(k, wide, from, q, g, nt, sums);
  }
  if (k.bits == 8 || wide) return;
  UNROLL
  for (int t = 0; t < nt; t++) sums->total[t] = dot_u_end(sums->total[t], sums->run[t], factor);
}

/* total[t] += number . q over part `which` of 32 columns, times `factor` (see add_run). */
INLINE void add_part(packing k, record r, uint32_t group, int which, piece_source from,
                     const uint8_t *const *x_rows, const int nt, vs factor, piece_sums *sums) {
  if (from.sums) {
    UNROLL
    for (int t = 0; t < nt; t++)
      sums->total[t] = sums->total[t] + tile_sum(r.wide, from.sums, which, t) * ((vi)factor >> 16);
    return;
  }
  const int pieces = (int)k.part / 4;
  const int run = k.bits == 8 || r.wide ? pieces : dot_u_run(k.bits, pieces);
  const uint8_t *q[CPU_MAX_TOKENS];
  UNROLL
  for (int t = 0; t < nt; t++) q[t] = record_q(r, x_rows[t], group);
  UNROLL
  for (int begin = which * pieces; begin < (which + 1) * pieces; begin += run)
    add_run(k, r.wide, from, q, begin, run, nt, factor, sums);
}

/* ---- 32 columns ---------------------------------------------------------------------------- */

/* Adds the products of a block of 32. */
INLINE void add_small(packing k, record r, piece_source from, uint32_t group,
                      const uint8_t *const *x_rows, const int nt, const scales *s, vf *sum) {
  const int32_t missing = k.bits == 8 && !r.wide ? DOT_S8_OFFSET : (int32_t)k.offset;
  const int32_t offset = from.sums ? 0 : missing;
  piece_sums sums;
  UNROLL
  for (int t = 0; t < nt; t++) {
    sums.total[t] = (vi){0};
    if (offset) sums.total[t] = splat_i(-offset * part_sum(r, x_rows[t], group, 32, 0));
  }
  add_part(k, r, group, 0, from, x_rows, nt, splat_s(1), &sums);
  UNROLL
  for (int t = 0; t < nt; t++) {
    vf inner = to_float(sums.total[t]) * s->d;
    sum[t] = fma_f(inner, splat(load_f32(record_d(r, x_rows[t], group))), sum[t]);
    if (k.mins) sum[t] = fma_f(s->m, splat(record_s(r, x_rows[t], group)), sum[t]);
  }
}

/* Sums over a block of 256, without d and m. */
typedef struct super_sums {
  vf d[CPU_MAX_TOKENS], m[CPU_MAX_TOKENS];
} super_sums;

/* Adds 32 columns of a block of 256 times 8-bit activations, parts from `part` on: all in integers,
 * at most 32 * 63 * 127 * 128 < 2^25. Two sums of activations are one factor of madd_16. */
INLINE void add_narrow(packing k, record r, piece_source from, uint32_t group,
                       const uint8_t *const *x_rows, const int nt, const scales *s, uint32_t part,
                       super_sums *out) {
  const bool has_sign = k.offset != 0;
  const vi sc = part_word(s->sc, part), mn = part_word(s->mn, part);
  piece_sums sums;
  UNROLL
  for (int t = 0; t < nt; t++) sums.total[t] = (vi){0};
  UNROLL
  for (int which = 0; which < (int)(GROUP / k.part); which++) {
    const vs factor = byte_twice(sc, which, has_sign);
    add_part(k, r, group, which, from, x_rows, nt, factor, &sums);
  }
  UNROLL
  for (int t = 0; t < nt; t++) {
    const vf d = splat(load_f32(record_d(r, x_rows[t], group)));
    const int32_t both = load_i32(record_sums(r, x_rows[t], group * 2));
    if (k.offset)
      sums.total[t] =
          sums.total[t] - madd_16((vi){0}, two_bytes(sc, true), both) * (int32_t)k.offset;
    out->d[t] = fma_f(to_float(sums.total[t]), d, out->d[t]);
    if (!k.mins) continue;
    const vs factor = k.part == 16 ? two_bytes(mn, false) : byte_twice(mn, 0, false);
    out->m[t] = fma_f(to_float(madd_16((vi){0}, factor, both)), d, out->m[t]);
  }
}

/* The same times 16-bit activations, whose sums leave no room for a factor. */
INLINE void add_wide(packing k, record r, piece_source from, uint32_t group,
                     const uint8_t *const *x_rows, const int nt, const scales *s, uint32_t part,
                     super_sums *out) {
  for (int which = 0; which < (int)(GROUP / k.part); which++) {
    const vf sc = part_float(part_word(s->sc, part + (uint32_t)which), k.offset != 0);
    const vf mn = part_float(part_word(s->mn, part + (uint32_t)which), false);
    piece_sums sums;
    UNROLL
    for (int t = 0; t < nt; t++)
      sums.total[t] = splat_i(-(int32_t)k.offset * part_sum(r, x_rows[t], group, k.part, which));
    add_part(k, r, group, which, from, x_rows, nt, splat_s(1), &sums);
    UNROLL
    for (int t = 0; t < nt; t++) {
      const float d = load_f32(record_d(r, x_rows[t], group));
      out->d[t] = fma_f(to_float(sums.total[t]) * sc, splat(d), out->d[t]);
      float sum = (float)part_sum(r, x_rows[t], group, k.part, which);
      if (k.mins) out->m[t] = fma_f(mn, splat(d * sum), out->m[t]);
    }
  }
}

/* A group's activations for tiles. Tokens that are not evenly apart (a last pass repeats one, lanes
 * have gaps) are copied together. */
INLINE tile_rows take_activations(record r, uint32_t group, const uint8_t *const *x_rows,
                                  uint8_t *copies) {
  const size_t bytes = GROUP * (r.wide ? 2 : 1);
  if (r.stride) return (tile_rows){record_q(r, x_rows[0], group), r.stride};
  UNROLL
  for (size_t t = 0; t < TILE_TOKENS; t++)
    __builtin_memcpy(copies + t * bytes, record_q(r, x_rows[t], group), bytes);
  return (tile_rows){copies, bytes};
}

/* 32 columns by tiles; numbers of small blocks without their offset. */
INLINE void multiply_tiles(packing k, record r, const uint8_t *w, uint32_t group,
                           const uint8_t *const *x_rows, tile_sums *out) {
  vb pieces[GROUP_PIECES];
  uint8_t copies[TILE_TOKENS * GROUP * 2];
  if (k.bits != 8) {
    unpack_group(k.bits, w, pieces);
    UNROLL
    for (int g = 0; g < GROUP_PIECES; g++)
      if (!is_super(k)) pieces[g] = pieces[g] - (int8_t)k.offset;
    w = (const uint8_t *)pieces;
  }
  tile_products(r.wide, k.part, take_activations(r, group, x_rows, copies), w, out);
}

INLINE void add_integers(packing k, record r, const uint8_t *w, uint32_t group,
                         const uint8_t *const *x_rows, const int nt, const scales *s, uint32_t part,
                         super_sums *out, vf *sum) {
  vb ready[GROUP_PIECES];
  tile_sums tiles;
  piece_source from = {w, NULL, NULL};
  if (nt == TILE_TOKENS) {
    multiply_tiles(k, r, w, group, x_rows, &tiles);
    from.sums = &tiles;
  } else if (nt > 1 && !MANY_REGISTERS && k.bits != 4) {
    if (k.bits != 8) unpack_group(k.bits, w, ready);
    from.ready = k.bits == 8 ? w : (const uint8_t *)ready;
  }
  if (!is_super(k))
    add_small(k, r, from, group, x_rows, nt, s, sum);
  else if (r.wide)
    add_wide(k, r, from, group, x_rows, nt, s, part, out);
  else
    add_narrow(k, r, from, group, x_rows, nt, s, part, out);
}

/* ---- a block ------------------------------------------------------------------------------- */

/* A panel's block on its way: what its groups have added up to. */
typedef struct block_work {
  const uint8_t *w;
  scales s;
  super_sums super;
} block_work;

INLINE void begin_block(uint32_t scheme, const uint8_t *w, const int nt, block_work *work) {
  work->w = w;
  work->s = block_scales(scheme, w);
  UNROLL
  for (int t = 0; t < nt; t++) work->super.d[t] = work->super.m[t] = (vf){0};
}

/* Adds group i. A stream is asked for line by line in the order of memory: anything else, as scales
 * behind the numbers but read before them, loses the processor's own prefetchers. */
INLINE void add_group(uint32_t scheme, rows x, uint32_t b, uint32_t i, const uint8_t *const *x_rows,
                      const int nt, size_t stride, block_work *work, vf *sum) {
  const packing k = packing_of(scheme);
  const record r = {x.columns, x.scheme == CPU_WIDE, stride};
  const uint32_t groups = k.columns / GROUP, parts = GROUP / k.part;
  const size_t ahead = stream_count(nt) == 1 ? PREFETCH_ONE
                       : is_super(k)         ? PREFETCH_FAR
                                             : PREFETCH_AHEAD;
  const uint8_t *at = work->w + head_bytes(k) + i * group_bytes(k);
  if (i == 0) prefetch_run(work->w, head_bytes(k), ahead);
  prefetch_run(at, group_bytes(k), ahead);
  if (x.scheme == STELE_F32)
    decoded_group(k, at, b * groups + i, x_rows, nt, &work->s, i * parts, sum);
  else
    add_integers(k, r, at, b * groups + i, x_rows, nt, &work->s, i * parts, &work->super, sum);
}

/* The last of a block of 256. */
INLINE void end_block(packing k, rows x, const int nt, const block_work *work, vf *sum) {
  if (x.scheme == STELE_F32) return;
  UNROLL
  for (int t = 0; t < nt; t++) {
    sum[t] = fma_f(work->super.d[t], work->s.d, sum[t]);
    if (k.mins) sum[t] = fma_f(work->super.m[t], -work->s.m, sum[t]);
  }
}

#endif
