/* Collects what a source says of a tokenizer and lays it out as a blob. All texts are borrowed
 * until text_builder_finish. Errors name the source. */
#ifndef STELE_TEXT_BUILDER_H
#define STELE_TEXT_BUILDER_H

#include "text/tokenizer_blob.h"

/* A text and what stands in its place. */
typedef struct text_replacement {
  const uint8_t *pattern;
  size_t length;
  const uint8_t *content;
  size_t content_length;
} text_replacement;

typedef struct text_builder {
  const char *source; /* "tokenizer.json", for messages */
  stele_sink *sink;
  const struct text_model *model;
  uint32_t vocab, flags;
  int32_t unknown;
  base_buffer tokens; /* builder_token by id */
  base_buffer added;  /* builder_added */
  base_buffer map;    /* uint32_t slots: id + 1, by the token's own spelling */
  uint32_t map_used;
  base_buffer merges;   /* 3 x uint32_t */
  base_buffer byte_ids; /* 256 x int32_t, when the model has them */
  base_buffer steps;    /* text_step */
  base_buffer strings;
  base_buffer normalizers;    /* text_normal */
  base_buffer prefix, suffix; /* uint32_t */
  base_buffer scratch;
  base_buffer replacements; /* text_replacement: what the decoder makes of each token, in order */
  base_buffer characters;   /* text_character, sorted */
  base_buffer glue;         /* uint32_t, sorted */
  base_buffer respelled;    /* texts of tokens that the model spells otherwise than the source */
  uint32_t strip, strip_count;
  bool decode_bytes; /* "<0xNN>" decodes to a byte */
  bool fused;        /* the decoder has put the tokens together */
  bool byte_level;   /* the source says that words are bytes */
  bool direct;       /* every token is the encoding of its own bytes */
  bool bos;          /* a beginning of sequence where a GGUF file doesn't say */
} text_builder;

/* The text by which an added token is found, and its place in ADDED. */
typedef struct text_trie_entry {
  const uint8_t *text;
  size_t bytes;
  uint32_t added;
} text_trie_entry;
/* Sorts the entries and makes a trie of them; no entries: no nodes. False: no memory. */
bool text_trie_make(text_trie_entry *entries, size_t count, base_buffer *nodes);

void text_builder_init(text_builder *builder, const char *source, stele_sink *sink);
void text_builder_deinit(text_builder *builder);

/* A token of the vocabulary in the source's spelling. first_wins: a second token of the same
 * spelling keeps its id for decoding only, instead of being an error. */
stele_status text_builder_token(text_builder *builder, uint32_t id, const char *text, size_t bytes,
                                bool first_wins) STELE_MUST_USE;
/* An added token (enum text_added_flag); its id may be new or be that of the same text. */
stele_status text_builder_added(text_builder *builder, uint32_t id, const char *text, size_t bytes,
                                uint32_t flags) STELE_MUST_USE;
/* Id of a token of the vocabulary or an added token, -1: none. */
int32_t text_builder_find(const text_builder *builder, const char *text, size_t bytes);
/* Spelling of a token; NULL: the id has none. */
const char *text_builder_text(const text_builder *builder, uint32_t id, size_t *out_bytes);
/* Spelling of a token of the vocabulary; NULL: the id has none, or one that another id has. */
const char *text_builder_word(const text_builder *builder, uint32_t id, size_t *out_bytes);
stele_status text_builder_merge(text_builder *builder, const char *left, size_t left_bytes,
                                const char *right, size_t right_bytes) STELE_MUST_USE;
/* pattern: an Oniguruma expression, as tokenizer.json has them. */
stele_status text_builder_split(text_builder *builder, const char *pattern, size_t bytes,
                                uint32_t behavior, bool invert) STELE_MUST_USE;
void text_builder_prefix_space(text_builder *builder);
/* scheme: enum text_prepend. */
void text_builder_metaspace(text_builder *builder, const char *text, size_t bytes, uint32_t scheme);
/* The texts are for PREPEND and REPLACE. */
void text_builder_normalizer(text_builder *builder, text_normalizer normalizer,
                             const text_replacement *texts);

stele_status text_builder_finish(text_builder *builder, base_buffer *out_blob) STELE_MUST_USE;

/* The expression that GPT-2 splits by, and ByteLevel where its use_regex is set. */
extern const char text_gpt2_pattern[];

/* Byte of a character of the byte-level alphabet (GPT-2's bytes_to_unicode), -1: not in it. */
int text_byte_of(int32_t code);
/* The bytes that a byte-level token stands for; false (nothing written) when a character is not
 * in the alphabet. out has room for `bytes`. */
bool text_byte_level(const uint8_t *text, size_t bytes, uint8_t *out, size_t *out_bytes);

#endif
