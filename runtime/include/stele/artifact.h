/* The contract between an artefact (the emitted shared object) and whoever runs it.
 *
 * Needs nothing but this header: a program that maps the file, opens it with dlopen and calls the
 * query function can decode (tools/examples/minimal.c does so in under 100 lines). Everything the
 * artefact returns is constant and lives as long as it is open.
 *
 * The file: an ELF shared object (code and the constant data below), zero padding to a multiple
 * of STELE_ARTIFACT_ALIGN, the weights, and as the last 64 bytes a stele_trailer. With
 * --weights-file the weights are a file of their own, which ends with the same trailer: the two
 * belong together when weights_bytes and weights_hash agree.
 *
 * Units: sizes and offsets are bytes unless a name says tokens; shapes are written outermost
 * first, the last index varies fastest. */
#ifndef STELE_ARTIFACT_H
#define STELE_ARTIFACT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STELE_ARTIFACT_ABI 1u
#define STELE_ARTIFACT_ALIGN 4096u
#define STELE_ARTIFACT_MAGIC "stele\x1a\n" /* 8 bytes with the zero */
#define STELE_ARTIFACT_QUERY "stele_artifact_query"

/* The end of every artefact file, little-endian. A reader checks it before it opens the code. */
typedef struct stele_trailer {
  char magic[8];           /* STELE_ARTIFACT_MAGIC */
  uint32_t abi;            /* STELE_ARTIFACT_ABI of the writer */
  uint32_t machine;        /* e_machine of the ELF part (62 x86-64, 183 AArch64) */
  uint64_t code_bytes;     /* the ELF part is [0, code_bytes) */
  uint64_t code_hash;      /* XXH3_64bits of the ELF part; checked at every open */
  uint64_t weights_offset; /* where the weights begin in this file; 0: in a file of their own */
  uint64_t weights_bytes;
  uint64_t weights_hash; /* XXH3_64bits of the weights; checked by `stele doctor` */
  uint64_t self_hash;    /* XXH3_64bits of the bytes of this struct before this field */
} stele_trailer;

/* ---- steps ---------------------------------------------------------------------------- */

enum stele_step_kind {
  STELE_STEP_DECODE = 0,  /* width 1, one or more lanes */
  STELE_STEP_PREFILL = 1, /* one lane, many tokens */
  STELE_STEP_VERIFY = 2,  /* one lane, a few tokens, an answer for each */
  STELE_STEP_ENCODE = 3
};

/* What a step leaves in args->out_*. */
enum stele_output {
  STELE_OUTPUT_NONE = 0,  /* only the cache */
  STELE_OUTPUT_TOKEN = 1, /* out_tokens: argmax of the logits, ties to the lowest id */
  STELE_OUTPUT_LAST = 2,  /* out_logits: of the last valid token of each lane */
  STELE_OUTPUT_ALL = 3,   /* out_logits: of every valid token */
  STELE_OUTPUT_HIDDEN = 4 /* out_hidden: the residual stream */
};

/* Inputs and outputs of one call. Pointers that a step does not use may be NULL. */
typedef struct stele_step_args {
  uint32_t struct_bytes; /* sizeof(stele_step_args) of the caller */
  uint32_t reserved;
  const int32_t *ids;                /* [lanes][width] */
  const int32_t *positions;          /* [lanes][width], for rope only */
  const int32_t *valid;              /* [lanes] tokens that count, from the left: 0 to width */
  const int32_t *filled;             /* [lanes] slot of the lane's first new token */
  const int32_t *first;              /* [lanes] first slot that may be seen */
  const int32_t *const *read_pages;  /* [groups] -> [lanes][table_entries of the group] */
  const int32_t *const *store_pages; /* [groups] -> the same; -1: not stored. A step wider than
                                        one token reads a layer's pages before it stores: a page
                                        may be read for one entry and stored to for another */
  const int32_t *state_blocks;       /* [lanes] state block of each lane (recurrent groups) */
  const uint64_t *mask;              /* [lanes][ceil(capacity/64)] bits over slots, or NULL: all */
  const float *rope;                 /* [rope kinds][lanes][width][rotary] rows as in stele_rope,
                                        or NULL where rope does not depend on the length */
  int32_t *out_tokens;               /* [lanes], for verify steps [width] */
  float *out_logits;                 /* LAST [lanes][vocab], ALL [lanes][width][vocab] */
  float *out_hidden;                 /* [layers + 1][lanes][width][hidden]: the embedding, then
                                        after each layer, the last after the final norm */
} stele_step_args;

/* Services and memory, the same for many calls. */
typedef struct stele_env {
  uint32_t struct_bytes;       /* sizeof(stele_env) of the caller */
  uint32_t layers;             /* entries of layer_pages */
  const uint8_t *weights;      /* the weights, aligned to STELE_ARTIFACT_ALIGN */
  uint8_t *workspace;          /* workspace_bytes, aligned to 64, not shared between
                                  concurrent calls; contents need not be kept */
  uint8_t *const *layer_pages; /* [layers] first page of the layer's pool: page p of a layer
                                  is at layer_pages[layer] + p * page_bytes of its group */
  uint8_t *const *layer_state; /* [layers] state blocks of recurrent layers, or NULL */
  void (*barrier)(void *barrier_data, uint32_t worker); /* all workers meet; NULL: there is one */
  void *barrier_data;
  void (*layer_hook)(void *hook_data, uint32_t layer, uint32_t end); /* or NULL; worker 0 */
  void *hook_data;
} stele_env;

/* Runs worker's share of a step. All workers 0 .. workers-1 must call it with the same env and
 * args, each from its own thread. Results do not depend on workers. */
typedef void (*stele_step_function)(const stele_env *env, const stele_step_args *args,
                                    uint32_t worker, uint32_t workers);

typedef struct stele_step {
  uint32_t kind; /* enum stele_step_kind */
  uint32_t lanes;
  uint32_t width;  /* tokens per lane */
  uint32_t output; /* enum stele_output */
  stele_step_function run;
  uint64_t bytes_per_call; /* weight bytes that one call reads */
} stele_step;

/* What a step consists of, for who measures it or looks at it. Phases are what lies between the
 * meetings of the workers: a step of n phases calls env->barrier n - 1 times, layer hooks aside. An
 * op that meets inside stands in each of its phases. */
typedef struct stele_phase_op {
  uint32_t name;         /* in op_names */
  uint32_t phase;        /* ops are in order, no phase is without one */
  int32_t layer;         /* -1 outside layers */
  int32_t group;         /* whose pages of that layer it reads, -1: none */
  int32_t weight[3];     /* its matrices in the table of weights, -1: none */
  uint32_t device;       /* 0: the target's own; others by plugin */
  uint64_t weight_bytes; /* that a call reads */
} stele_phase_op;

typedef struct stele_step_phases {
  const stele_phase_op *ops;
  uint32_t op_count, phase_count;
} stele_step_phases;

/* ---- caches --------------------------------------------------------------------------- */

enum stele_scheme { /* how numbers are stored; the table is compiler/weights/schemes.def */
                    STELE_F32 = 0,
                    STELE_F16 = 1,
                    STELE_BF16 = 2,
                    STELE_Q8_0 = 3,
                    STELE_Q4_0 = 4,
                    STELE_Q4_1 = 5,
                    STELE_I32 = 6,
                    STELE_Q5_0 = 7,
                    STELE_Q5_1 = 8,
                    STELE_Q2_K = 9,
                    STELE_Q3_K = 10,
                    STELE_Q4_K = 11,
                    STELE_Q5_K = 12,
                    STELE_Q6_K = 13
};

enum stele_group_kind {
  STELE_GROUP_FULL = 0,
  STELE_GROUP_WINDOW = 1,
  STELE_GROUP_CHUNK = 2,
  STELE_GROUP_CROSS = 3,
  STELE_GROUP_STATE = 4
};

/* Layers that share a cache geometry and a page table.
 *
 * A page holds page_tokens consecutive slots of one layer: keys after rope, then values.
 *   keys   [kv_heads][page_tokens / P][key_head][P]   with P = min(16, page_tokens)
 *   values [kv_heads][page_tokens][value_head]
 * in the group's schemes; values begin at value_offset. In q8_0 and q4_0, 32 numbers of a slot's
 * head have a scale in common, and head sizes are multiples of 32. Then each head has, one behind
 * the other,
 *   scales  f16 [size / 32][page_tokens]
 *   numbers as above, int8 in q8_0; in q4_0 bytes, of which there are half as many to a head:
 *           byte i of a block has element i in its low four bits, element i + 16 in the high ones
 * q8_0: x = d q,       d = max|x| / 127,             q = x / d, at most 127 off zero
 * q4_0: x = d (n - 8), d = (x furthest from 0) / -8, n = x / d + 8, from 0 to 15
 * d is rounded to f16 (at most 65504 off zero) before it divides; of two x equally far from zero
 * the positive one counts; q and n are rounded to the nearest, ties to even; d = 0 gives zeros. */
typedef struct stele_group {
  uint32_t kind; /* enum stele_group_kind */
  uint32_t layers;
  uint32_t kv_heads, key_head, value_head; /* head sizes in elements */
  uint32_t key_scheme, value_scheme;       /* enum stele_scheme */
  uint32_t capacity;                       /* tokens */
  uint32_t window;                         /* tokens of a window or chunk, 0: none */
  uint32_t page_tokens;                    /* a power of two, at most 64 */
  uint32_t table_entries;                  /* ceil(capacity / page_tokens) */
  uint32_t residual;                       /* tokens kept in full precision, 0: none */
  int32_t shared_with;                     /* group whose pages it reads, -1: its own */
  uint32_t value_in_key;                   /* the value is the first value_head elements of the
                                              key: no values are stored */
  uint64_t page_bytes;                     /* of one layer, a multiple of 64 */
  uint64_t value_offset;                   /* in a page */
  uint64_t state_bytes;                    /* of one layer's state block, 0: none */
} stele_group;

/* Pages that are enough for a lane at any length: of a window or chunk, those that its tokens can
 * lie in, and what a page more of tokens than it may begin. */
static inline uint32_t stele_group_lane_pages(const stele_group *g) {
  if (g->kind != STELE_GROUP_WINDOW && g->kind != STELE_GROUP_CHUNK) return g->table_entries;
  uint64_t pages = ((uint64_t)g->window + g->page_tokens - 1) / g->page_tokens + 1;
  return pages < g->table_entries ? (uint32_t)pages : g->table_entries;
}
/* How many of a group's slots are seen when a lane has so many tokens, by the last of them. */
static inline uint32_t stele_group_seen(const stele_group *g, uint32_t tokens) {
  if (!g->window || !tokens) return tokens;
  if (g->kind == STELE_GROUP_CHUNK) return (tokens - 1) % g->window + 1;
  return tokens < g->window ? tokens : g->window;
}

/* ---- rope ----------------------------------------------------------------------------- */

enum stele_rope_rule {
  STELE_ROPE_FIXED = 0,   /* tables are inside the artefact; args->rope is not read */
  STELE_ROPE_DYNAMIC = 1, /* NTK by length: base * (factor * n / original - (factor - 1)) **
                             (rotary / (rotary - 2)) once n tokens exceed original */
  STELE_ROPE_LONG = 2     /* long_factors once n tokens exceed original, else short_factors */
};

/* How the host computes a row of args->rope: rotary floats, first rotary/2 cosines, then
 * rotary/2 sines of position * inv_freq[i], both times attention_factor. */
typedef struct stele_rope {
  uint32_t rule;   /* enum stele_rope_rule */
  uint32_t rotary; /* elements of a head that turn */
  double base;     /* inv_freq[i] = base ** (-2 i / rotary) */
  double factor;
  uint32_t original; /* tokens of the original model */
  uint32_t reserved;
  double attention_factor;
  const float *short_factors, *long_factors; /* [rotary / 2] divisors of inv_freq, or NULL */
} stele_rope;

/* ---- weights, description ------------------------------------------------------------- */

typedef struct stele_weight {
  const char *name; /* as in the model's files */
  uint32_t scheme;  /* enum stele_scheme */
  uint32_t layout;  /* the target's packed layout */
  uint64_t rows, columns;
  uint64_t offset, bytes; /* in the weights */
} stele_weight;

/* Processor features a target needs, as names for a person and a bit per known feature. */
enum stele_feature {                                 /* x86-64, beyond the baseline */
                     STELE_FEATURE_AVX2 = 1u << 0,   /* with FMA, F16C, BMI2: x86-64-v3 */
                     STELE_FEATURE_AVX512 = 1u << 1, /* F, BW, DQ, VL, CD: x86-64-v4 */
                     STELE_FEATURE_VNNI = 1u << 2,   /* AVX512_VNNI */
                     STELE_FEATURE_AVX_VNNI = 1u << 3,
                     STELE_FEATURE_AMX = 1u << 4 /* TILE, INT8, BF16 */
};

/* One set of code: all its steps need `features`. A portable artefact holds several, best first;
 * the reader takes the first whose features the machine has. */
typedef struct stele_variant {
  const char *name;  /* "x86-64-v3" */
  uint64_t features; /* bits of stele_feature */
  const stele_step *steps;
  uint32_t step_count, reserved;
} stele_variant;

typedef struct stele_artifact {
  uint32_t struct_bytes;   /* sizeof(stele_artifact) of the writer */
  uint32_t abi;            /* STELE_ARTIFACT_ABI */
  uint64_t fingerprint[2]; /* of the model, its weights and the options it was compiled with */
  const char *producer;    /* "stele 0.1.0" */
  const char *target;      /* "cpu", "ref", "null" ... */
  const char *triple;
  const char *description; /* the model as a JSON object: family, dimensions, options */

  uint32_t vocab, vocab_padded, hidden, layers;
  uint32_t capacity;                 /* tokens a lane can hold */
  uint32_t max_lanes, prefill_width; /* prefill_width 1: no prefill step */
  uint32_t model_positions;          /* the model's own maximum, 0: unknown */

  const stele_group *groups;
  uint32_t group_count;
  const uint32_t *layer_group; /* [layers] group of each layer, UINT32_MAX: no cache */
  const stele_rope *ropes;
  uint32_t rope_count;
  uint64_t workspace_bytes; /* of one call, for up to max_workers */
  uint32_t max_workers;

  const stele_variant *variants;
  uint32_t variant_count;

  const stele_weight *weights;
  uint32_t weight_count;
  uint64_t weights_bytes;
  const char *weights_file; /* name beside the artefact, NULL: inside */

  const uint8_t *tokenizer; /* runtime/text/tokenizer.h gives the format; NULL: none */
  uint64_t tokenizer_bytes;
  const char *chat_template;       /* NULL: none */
  const char *generation_defaults; /* JSON object as in generation_config.json, NULL: none */
  const int32_t *stop_ids;
  uint32_t stop_count;
  const char *stop_source; /* the file and field they came from */

  /* Later than the fields above: there when struct_bytes says so. */
  const stele_step_phases *step_phases; /* [step_phases_count], as the steps of every variant */
  const char *const *op_names;          /* [op_name_count] */
  uint32_t step_phases_count, op_name_count;
} stele_artifact;

/* The one exported function. Returns NULL when the artefact does not speak that version. */
typedef const stele_artifact *(*stele_artifact_query_function)(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
