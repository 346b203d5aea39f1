/* The program: the scheduled IR as plain C data. This is what every target and plugin reads, what
 * the reference target interprets, and what `stele inspect` prints.
 *
 * One block of memory without pointers: tables at offsets from its start, so that it can be
 * copied, written to a file or put into an artefact as it is. Use the accessors below. Numbers
 * are in the machine's byte order. Needs only stdint; MLIR never shows here.
 *
 * Vocabulary: T is tokens of the op (lanes * width, or lanes after last_token), a buffer is a
 * piece of the workspace, a tile is a run of output rows (or pages, or tokens) that one worker
 * does on its own. Worker w of n takes tiles [tiles * w / n, tiles * (w + 1) / n) (64-bit product).
 * Where tiles are tokens, heads of tokens or pages, `tiles` is the most there can be; the tiles
 * that are there in this call (valid tokens, pages that something is seen of) are counted at run
 * time and the same split is made of them. Tokens past a lane's `valid` are never computed, read
 * or written. No sum crosses a tile, so results do not depend on the number of workers.
 *
 * Barriers stand only where workers would meet each other's tiles. Two ops whose tiles are tokens,
 * with the same T, are split alike, so none stands between them: token t of each is one worker's.
 * The same holds for a cache_store right behind its cache_update (kv heads).
 *
 * Where an op has a layer and env->layer_hook is set, worker 0 calls hook(data, layer, 0) before
 * the layer's first op and hook(data, layer, 1) after its last, each followed by a barrier. */
#ifndef STELE_PROGRAM_H
#define STELE_PROGRAM_H

#include <stdint.h>

#include "stele/artifact.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STELE_PROGRAM_MAGIC 0x676f7270u /* "prog" */
#define STELE_PROGRAM_VERSION 1u

/* The kinds of op are those of ops.def; the numbers are positions in that table. */
enum stele_op_kind {
#define OP(name, ...) STELE_OP_##name,
#include "stele/ops.def"
#undef OP
  STELE_OP_COUNT
};

enum stele_prologue { /* what happens to the input of a linear op before it is read */
                      STELE_PROLOGUE_NONE = 0,
                      STELE_PROLOGUE_NORM = 1,   /* a norm with weight[STELE_W_NORM], eps: rms_norm,
                                                            or layer_norm with STELE_FLAG_CENTER */
                      STELE_PROLOGUE_COMBINE = 2 /* attention_combine of in[0] */
};

enum stele_function {
  STELE_SILU = 0,
  STELE_GELU = 1,
  STELE_GELU_TANH = 2,
  STELE_RELU = 3,
  STELE_SWIGLU_CLAMPED = 4 /* of gate and up, with alpha and limit: experts_gate_up only */
};

enum stele_route { STELE_ROUTE_SOFTMAX = 0, STELE_ROUTE_SIGMOID = 1 };

enum stele_pairing { STELE_PAIR_HALVES = 0, STELE_PAIR_INTERLEAVED = 1 };

/* Slots of stele_op.weight. */
enum stele_weight_slot {
  STELE_W_A = 0,      /* embed, linear, linear_add, linear_argmax: the matrix; gate; q */
  STELE_W_B = 1,      /* up; k */
  STELE_W_C = 2,      /* v */
  STELE_W_BIAS_A = 3, /* biases of the same; route: the correction */
  STELE_W_BIAS_B = 4,
  STELE_W_BIAS_C = 5,
  STELE_W_NORM = 6,   /* the norm in the prologue; the own weight of rms_norm, layer_norm */
  STELE_W_Q_NORM = 7, /* norms of the heads */
  STELE_W_K_NORM = 8,
  STELE_W_NORM_BIAS = 9, /* bias of the same norm */
  STELE_W_SINKS = 10,    /* attention, or whoever merges its parts: a logit per head */
  STELE_W_COUNT = 11
};

/* A piece of the workspace.
 *   scheme STELE_F32: [tokens][columns] floats
 *   scheme STELE_Q8_0 (activations): per token a record of
 *       int8 q[columns], float d[columns / 32], float s[columns / 32], int16 sums[columns / 16]
 *     where x ~ q * d in each block of 32, s = d * sum of the block's q, and sums has the sum of
 *     each 16 of the q, for weights whose numbers are kept with an offset.
 *     d = max|x| / 127, q = round to nearest even (x / d); d = 0 gives q = 0.
 *   per_worker: every worker has its own copy, `bytes` apart, max_workers of them. */
typedef struct stele_buffer {
  uint64_t offset; /* in the workspace, a multiple of 64 */
  uint64_t bytes;  /* of one copy, a multiple of 64 */
  uint32_t tokens, columns;
  uint32_t scheme; /* enum stele_scheme; STELE_I32 for token ids */
  uint32_t per_worker;
} stele_buffer;

/* Bytes of such a record; columns is a multiple of 32. */
static inline uint64_t stele_q8_row_bytes(uint64_t columns) {
  return columns + columns / 32 * 2 * sizeof(float) + columns / 16 * sizeof(int16_t);
}

/* One op of a step. Which fields count depends on its kind; IR.md gives the formula of each.
 *
 *   kind               in             out            what tiles are
 *   embed              -              f32 [T][n]     tokens
 *   rms_norm, layer_norm  f32         f32            tokens
 *   position_embed     f32            f32            tokens
 *   prepare            f32            f32 or q8      tokens
 *   linear             f32 or q8      f32            runs of tile_rows rows of weight A
 *   linear_add         f32, q8 or     f32 (may be    the same
 *                      partial        in[1])
 *   linear_argmax      f32 or q8      I32 [T] and scratch [tiles][T] {float, int32}
 *                                                    the same; see below
 *   gate_up            f32 or q8      f32 or q8      runs of tile_rows rows of gate and of up,
 * which may be absent qkv_cache          f32 or q8      f32 [T][heads * key_head] heads: q heads,
 * then k heads, then v heads rope               f32            f32            tokens cache_update
 * f32 k, f32 v   -              kv heads; no v in groups with value_in_key attention          f32
 * f32 [T][heads * value_head] (kv head, block of tile_rows tokens) attention_partial  f32 partial
 * (token, kv head, part), part fastest attention_combine  partial        f32            (token,
 * head) cache_store        -              -              kv heads head_linear        f32 f32 heads
 *   concat             f32, f32       f32            tokens
 *   activation, mul, add, scale, soft_cap  f32  f32  tokens
 *   route              f32            f32 [T][2][used]   tokens
 *   experts_gate_up    f32 or q8,     f32 or q8 [T][used][n]
 *                      routing                       (expert, tile_rows rows of its gate and up)
 *   experts_down       f32 or q8      f32            runs of tile_rows rows of every expert
 *                      [T][used][n], routing
 *   last_token         f32            f32 [lanes][n] lanes
 *   argmax             f32            I32            tokens
 *   output             f32            args->out_*    tokens
 *   output_token       I32            args->out_tokens   tokens
 *
 * The pages of a lane are cut into parts, the pieces that workers share: of one page each up to
 * page 16, from there on eight between one power of two and the next, but in a window (or chunk) of
 * w pages none of more than w / 16. So there are enough of them to share at any length, and few to
 * merge. They do not depend on the token: who sees one more page has that page in his last part.
 *
 * "partial" is f32 [T][heads][parts][2 + value_head]: over the part's pages the maximum m, the sum
 * of exp(score - m), and the values weighted by the same; parts that nothing is seen of are not
 * written and not read (a token at slot s sees pages first/page_tokens .. s/page_tokens).
 * attention_partial counts the tiles of a worker in pages: of all pages of all tokens and kv heads,
 * in the order of the tiles, a worker has the usual run, and does the parts that begin in it.
 *
 * "routing" is, per token, the weights of its `used` experts, then their numbers as floats, in
 * ascending order of the numbers. What experts_gate_up makes of a token are `used` rows, those of
 * its experts in that order, each quantised as a record of its own. Only experts that a token
 * chose are read; tiles of the others are not there, and the workers share the rest as they like:
 * a tile is done for all tokens that chose its expert. A token's sum in experts_down runs over its
 * experts in their order, so it does not depend on other tokens. */
typedef struct stele_op {
  uint32_t kind;    /* enum stele_op_kind */
  int32_t layer;    /* -1 outside layers */
  uint32_t tokens;  /* T */
  uint32_t barrier; /* 1: all workers meet before this op */
  uint32_t tiles, tile_rows;
  uint32_t device; /* 0: the target's own; others by plugin */
  uint32_t flags;  /* STELE_FLAG_* */

  uint32_t prologue;   /* enum stele_prologue; its result goes to buffer `prepared` */
  uint32_t activation; /* scheme in which weights meet activations: STELE_F32 or STELE_Q8_0. Where
                          the program is not precise, a target may round float32 activations to
                          16 bits (a block of 32 at a time) to multiply integers with them */
  int32_t in[2];       /* buffers, -1: none */
  int32_t out;
  int32_t prepared; /* per-worker buffer for the prologue's (or quantisation's) result */
  int32_t scratch;  /* linear_argmax: bests of tiles, or of workers at their first tile */
  int32_t stage;    /* buffer of staged pages, see STELE_FLAG_STAGED */
  int32_t weight[STELE_W_COUNT]; /* indices into the weight table, -1: none */

  uint32_t group, heads; /* attention; head_linear: heads */
  uint32_t head;         /* rope, concat: elements of a head; norms: of a segment */
  uint32_t kept;         /* head_linear: elements of a head that are copied */
  uint32_t rotary, rope_offset, pairing, rope; /* rope: index of the rope table; position_embed:
                                                  rope_offset is the row of position 0 */
  uint32_t function;                           /* enum stele_function */
  uint32_t output_kind, output_index;          /* output: enum stele_output; which hidden state */
  float eps, head_eps;
  float scale, soft_cap;          /* attention; the ops of the same names */
  float query_scale, query_floor; /* attention: query_scale 0: none */

  uint32_t experts, experts_used;             /* route, experts_gate_up, experts_down */
  uint32_t rule, normalise;                   /* route: enum stele_route */
  uint32_t expert_groups, expert_groups_used; /* route, 0: no groups */
  uint32_t scale_input;                       /* experts_*: weights go to the input instead */
  float alpha, limit;                         /* STELE_SWIGLU_CLAMPED */
} stele_op;

/* Whether workers also meet inside of an op: linear_argmax, between its tiles and their best. */
static inline int stele_op_meets_inside(uint32_t kind) { return kind == STELE_OP_LINEAR_ARGMAX; }

/* A linear whose values are the step's logits writes straight to args->out_logits. */
#define STELE_BUFFER_LOGITS (-2)

/* qkv_cache, cache_update, attention: the step's own keys and values are staged in buffer
 * `stage` instead of going to the pages at once (steps wider than one token). The stage holds
 * whole page images, ceil(width / page_tokens) + 1 of them, image j standing for page
 * filled / page_tokens + j; slots of the first image before `filled` are copied from the page
 * that read_pages names. Attention reads page p from the cache when p < filled / page_tokens and
 * from the stage otherwise. cache_store then writes the valid slots to store_pages. */
#define STELE_FLAG_STAGED (1u << 0)
/* rms_norm multiplies by (1 + weight). */
#define STELE_FLAG_NORM_PLUS_ONE (1u << 1)
/* The norm in the prologue is layer_norm: the mean is taken off first. */
#define STELE_FLAG_CENTER (1u << 2)

typedef struct stele_program_step {
  uint32_t kind, lanes, width, output;
  uint32_t first_op, op_count;
  uint64_t bytes_per_call; /* weight bytes read */
} stele_program_step;

/* A weight as the target will find it. Layout numbers belong to the target; 0 is always plain
 * rows in the scheme's own blocks, as in the file. */
typedef struct stele_program_weight {
  uint32_t name; /* offset of a string in the string table */
  uint32_t scheme, layout;
  uint32_t experts; /* so many matrices of rows / experts rows, one behind the other; 0: one */
  uint64_t rows, columns; /* of all of them; a vector: one row */
  uint64_t offset, bytes; /* in the weights, offset a multiple of 64 */
} stele_program_weight;

/* A rope table: rows of `rotary` floats (rotary/2 cosines, rotary/2 sines), one per position from
 * 0 to capacity - 1, stored as weight `weight`; rule other than fixed: rows come in args->rope. */
typedef struct stele_program_rope {
  uint32_t rule, rotary;
  int32_t weight; /* -1 when the rule is not fixed */
  uint32_t reserved;
} stele_program_rope;

typedef struct stele_table {
  uint64_t offset; /* from the start of the program */
  uint64_t count;
} stele_table;

typedef struct stele_program {
  uint32_t magic, version;
  uint64_t bytes; /* of the whole block */
  uint32_t vocab, hidden, layers, capacity;
  uint32_t max_lanes, prefill_width, max_workers, precise;
  uint64_t workspace_bytes, weights_bytes;
  stele_table steps, ops, buffers, weights, groups, ropes, layer_group, strings;
} stele_program;

/* log2 of the most pages of a part. */
static inline uint32_t stele_program_part_limit(const stele_group *g) {
  uint32_t limit = 0;
  while (limit < 31 && (!g->window || g->window / g->page_tokens >> limit >= 32)) limit++;
  return limit;
}
static inline uint32_t stele_program_part_of_page(uint32_t limit, uint32_t page) {
  uint32_t shift = 0;
  while (shift < limit && page >> shift >= 16) shift++;
  return 8 * shift + (page >> shift);
}
static inline uint32_t stele_program_part_begin(uint32_t limit, uint32_t part) {
  uint32_t shift = part < 16 ? 0 : part / 8 - 1;
  if (shift > limit) shift = limit;
  return (part - 8 * shift) << shift;
}
/* Parts of a lane at full capacity. */
static inline uint32_t stele_program_part_count(const stele_group *g) {
  return stele_program_part_of_page(stele_program_part_limit(g), g->table_entries - 1) + 1;
}

/* Bytes of a weight that an op reads at most: rows of its tokens, experts that they can choose, or
 * all of it. */
static inline uint64_t stele_op_weight_bytes(const stele_op *op, int slot,
                                             const stele_program_weight *w) {
  uint64_t chosen = (uint64_t)op->tokens * op->experts_used;
  if (op->kind == STELE_OP_EMBED || op->kind == STELE_OP_POSITION_EMBED)
    return w->rows ? w->bytes / w->rows * op->tokens : 0;
  if (op->kind == STELE_OP_ROUTE || slot > STELE_W_BIAS_C || op->experts <= chosen) return w->bytes;
  return w->bytes / op->experts * chosen;
}

#define STELE_PROGRAM_ACCESSOR(name, type)                                             \
  static inline const type *stele_program_##name(const stele_program *p, uint64_t i) { \
    return (const type *)(const void *)((const char *)p + p->name.offset) + i;         \
  }
STELE_PROGRAM_ACCESSOR(steps, stele_program_step)
STELE_PROGRAM_ACCESSOR(ops, stele_op)
STELE_PROGRAM_ACCESSOR(buffers, stele_buffer)
STELE_PROGRAM_ACCESSOR(weights, stele_program_weight)
STELE_PROGRAM_ACCESSOR(groups, stele_group)
STELE_PROGRAM_ACCESSOR(ropes, stele_program_rope)
STELE_PROGRAM_ACCESSOR(layer_group, uint32_t)
STELE_PROGRAM_ACCESSOR(strings, char)
#undef STELE_PROGRAM_ACCESSOR

#ifdef __cplusplus
}
#endif
#endif
