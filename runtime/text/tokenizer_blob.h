/* The tokenizer blob and its view in memory; private to this folder.
 *
 * A blob is a header, then the tables of sections.def, each aligned to 8 bytes from the blob's
 * start. All numbers are little-endian, as on every machine that artefacts run on. The blob may
 * lie at any address and may be damaged: opening checks that each table lies inside; numbers in
 * the tables are checked where they are used, which costs a comparison and keeps opening free. */
#ifndef STELE_TEXT_TOKENIZER_BLOB_H
#define STELE_TEXT_TOKENIZER_BLOB_H

#include <string.h>

#include "text/tokenizer.h"

#define TEXT_BLOB_MAGIC "steletok"
#define TEXT_BLOB_VERSION 2u
#define TEXT_MAX_VOCAB ((uint32_t)1 << 22)
/* Hash tables are built so that no entry is further than this from its first slot. */
#define TEXT_MAX_PROBE 128u
/* The longest added token, in bytes. */
#define TEXT_MAX_ADDED 1024u
/* The most cutting steps, and the most bytes of one expression. */
#define TEXT_MAX_STEPS 32u
#define TEXT_MAX_PATTERN 16384u
/* The longest text that a normalizer or decoder replaces or puts in. */
#define TEXT_MAX_REPLACED 256u

typedef enum text_section {
#define X(name, bytes, holds) TEXT_##name,
#include "text/sections.def"
#undef X
  TEXT_SECTION_COUNT
} text_section;

extern const uint8_t text_section_bytes[]; /* of an element, by section */

enum text_token_flag {
  TEXT_TOKEN_PRESENT = 1, /* the id has a token */
  TEXT_TOKEN_SPECIAL = 2, /* left out of decoded text when special tokens are skipped */
  TEXT_TOKEN_BYTE = 4     /* one byte, which makes characters with the byte tokens beside it */
};
enum text_added_flag {
  TEXT_ADDED_SINGLE_WORD = 1,
  TEXT_ADDED_LSTRIP = 2,
  TEXT_ADDED_RSTRIP = 4,
  TEXT_ADDED_NORMALIZED = 8,
  TEXT_ADDED_SPECIAL = 16
};
enum text_blob_flag {
  TEXT_BLOB_FUSE_UNKNOWN = 1,
  TEXT_BLOB_BYTE_FALLBACK = 2, /* characters without a token become the tokens of their bytes */
  TEXT_BLOB_CUT = 4            /* no token reaches over a U+2581 behind what is not in GLUE */
};
typedef enum text_normalizer {
  TEXT_NFC = 1,
  TEXT_NFD = 2,
  TEXT_NFKC = 3,
  TEXT_NFKD = 4,
  TEXT_PREPEND = 5, /* content in front of a text that isn't empty */
  TEXT_REPLACE = 6  /* content in the place of each pattern */
} text_normalizer;

typedef struct text_normal {
  uint32_t kind;            /* text_normalizer */
  uint32_t pattern, length; /* in STRINGS */
  uint32_t content, content_length;
} text_normal;

typedef struct text_character {
  uint32_t code, id;
} text_character;

/* How a text becomes words. */
enum text_step_kind {
  TEXT_STEP_SPLIT = 1,        /* cut at the matches of an expression */
  TEXT_STEP_PREFIX_SPACE = 2, /* a space in front of each piece that does not begin with one */
  TEXT_STEP_METASPACE = 3 /* spaces become `pattern`, which is put in front as `behavior` says */
};
/* What becomes of a match, as in Hugging Face's SplitDelimiterBehavior. */
enum text_behavior {
  TEXT_REMOVED = 0,
  TEXT_ISOLATED = 1,
  TEXT_MERGED_WITH_PREVIOUS = 2,
  TEXT_MERGED_WITH_NEXT = 3,
  TEXT_CONTIGUOUS = 4
};

/* Which pieces get a metaspace in front, if they have none, as in PrependScheme there. */
enum text_prepend { TEXT_PREPEND_NEVER = 0, TEXT_PREPEND_ALWAYS = 1, TEXT_PREPEND_FIRST = 2 };

typedef struct text_step {
  uint32_t kind, behavior;
  uint32_t invert;          /* matches are what lies between matches of the expression */
  uint32_t pattern, length; /* in STRINGS: a PCRE2 expression; METASPACE: a text */
} text_step;

/* Children of a node are consecutive, sorted by byte, and come after their parent. */
typedef struct text_trie_node {
  uint32_t child;    /* first child */
  uint16_t children; /* how many */
  uint8_t byte;
  uint8_t zero;
  uint32_t added; /* index in ADDED + 1, 0: no token ends here */
} text_trie_node;

typedef struct text_blob_header {
  char magic[8];
  uint32_t version;
  uint32_t model;              /* code in models.def */
  uint64_t bytes;              /* of the whole blob */
  uint32_t vocab;              /* highest id + 1 */
  int32_t unknown;             /* id of what has no token, -1: left out */
  uint32_t flags;              /* enum text_blob_flag */
  uint32_t sections;           /* TEXT_SECTION_COUNT */
  uint32_t strip, strip_count; /* so many of this character are cut off the front of decoded text */
  struct {
    uint32_t offset, count; /* from the blob's start; elements */
  } section[TEXT_SECTION_COUNT];
} text_blob_header;

typedef struct text_table {
  const uint8_t *data;
  uint32_t count;
} text_table;

struct text_splitter;
struct text_model;

struct text_tokenizer {
  const struct text_model *model;
  uint32_t vocab, flags;
  int32_t unknown;
  uint32_t strip, strip_count;
  text_table table[TEXT_SECTION_COUNT];
  struct text_splitter *splitter;
};

/* Reads and checks the header; makes no expressions, allocates nothing. */
stele_status text_view_init(text_tokenizer *view, const uint8_t *blob, size_t bytes,
                            stele_sink *sink) STELE_MUST_USE;

/* Element index of a table of 32-bit numbers; the caller has checked the index. */
static inline uint32_t text_get32(const uint8_t *data, size_t index) {
  uint32_t value;
  memcpy(&value, data + index * 4, 4);
  return value;
}

/* A text of STRINGS; NULL: it lies outside. */
static inline const uint8_t *text_string(const text_table *strings, uint32_t begin,
                                         uint32_t length) {
  if (!length) return (const uint8_t *)"";
  return begin <= strings->count && length <= strings->count - begin ? strings->data + begin : NULL;
}

/* The bytes of a token; empty for an id without one. */
static inline const uint8_t *text_token_bytes(const text_tokenizer *t, uint32_t id,
                                              size_t *out_bytes) {
  *out_bytes = 0;
  const text_table *bytes = &t->table[TEXT_TOKEN_BYTES];
  if (id >= t->vocab) return bytes->data;
  uint32_t begin = text_get32(t->table[TEXT_TOKEN_SPANS].data, id);
  uint32_t end = text_get32(t->table[TEXT_TOKEN_SPANS].data, (size_t)id + 1);
  if (begin > end || end > bytes->count) return bytes->data;
  *out_bytes = end - begin;
  return bytes->data + begin;
}

static inline uint32_t text_token_flags(const text_tokenizer *t, uint32_t id) {
  return id < t->vocab ? t->table[TEXT_TOKEN_FLAGS].data[id] : 0;
}

/* ---- hashing: the same functions make the tables and read them ------------------------- */

static inline uint32_t text_hash_finish(uint64_t h) {
  h ^= h >> 32;
  h *= 0x9E3779B97F4A7C15u;
  return (uint32_t)(h >> 32);
}

static inline uint32_t text_hash_bytes(const uint8_t *bytes, size_t size) {
  uint64_t h = size * 0xD6E8FEB86659FD93u, word;
  for (; size >= 8; bytes += 8, size -= 8) {
    memcpy(&word, bytes, 8);
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  }
  word = 0;
  if (size) memcpy(&word, bytes, size);
  return text_hash_finish((h ^ word) * 0xD6E8FEB86659FD93u);
}

static inline uint32_t text_hash_pair(uint32_t left, uint32_t right) {
  return text_hash_finish((((uint64_t)left << 32) | right) * 0xD6E8FEB86659FD93u);
}

#endif
