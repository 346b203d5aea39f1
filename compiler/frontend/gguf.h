/* GGUF files (versions 2 and 3, little-endian): metadata with types, and the tensor list.
 *
 * Everything points into the file's bytes or into the arena, both of which must outlive it. */
#ifndef STELE_FE_GGUF_H
#define STELE_FE_GGUF_H

#include "frontend/frontend.h"

typedef enum fe_gguf_type { /* numbers of the format */
                            FE_GGUF_U8 = 0,
                            FE_GGUF_I8 = 1,
                            FE_GGUF_U16 = 2,
                            FE_GGUF_I16 = 3,
                            FE_GGUF_U32 = 4,
                            FE_GGUF_I32 = 5,
                            FE_GGUF_F32 = 6,
                            FE_GGUF_BOOL = 7,
                            FE_GGUF_STRING = 8,
                            FE_GGUF_ARRAY = 9,
                            FE_GGUF_U64 = 10,
                            FE_GGUF_I64 = 11,
                            FE_GGUF_F64 = 12,
                            FE_GGUF_TYPE_COUNT = 13
} fe_gguf_type;

/* One pair of the metadata. A scalar has count 1; of an array, type is that of the elements. */
typedef struct fe_gguf_value {
  const char *key;
  fe_gguf_type type;
  bool array;
  uint64_t count;
  const uint8_t *data; /* the first element */
} fe_gguf_value;

typedef struct fe_gguf {
  const char *path; /* for messages */
  uint32_t version, alignment;
  const fe_gguf_value *values; /* sorted by key */
  size_t value_count;
} fe_gguf;

/* Reads header, metadata and tensor list from the bytes of a file. The whole structure is checked:
 * every string, array and tensor lies inside, no key or tensor name comes twice, no two tensors
 * share bytes. Tensors of a type that schemes.def does not have are listed with scheme
 * UINT32_MAX. */
stele_status fe_gguf_parse(base_arena *arena, const char *path, const uint8_t *data, size_t size,
                           stele_sink *sink, fe_gguf *out_gguf,
                           fe_tensors *out_tensors) STELE_MUST_USE;

const char *fe_gguf_type_name(fe_gguf_type type);

/* The pair with that key, or NULL. */
const fe_gguf_value *fe_gguf_find(const fe_gguf *gguf, const char *key);

/* Element i of a value as a number; false when the type is another, or the number out of range. */
bool fe_gguf_int(const fe_gguf_value *value, uint64_t i, int64_t *out);
bool fe_gguf_float(const fe_gguf_value *value, uint64_t i, double *out);
bool fe_gguf_bool(const fe_gguf_value *value, uint64_t i, bool *out);

/* A scalar string, zero-terminated in the arena; an error when it is none or holds a zero byte. */
stele_status fe_gguf_text(base_arena *arena, const fe_gguf *gguf, const fe_gguf_value *value,
                          stele_sink *sink, const char **out_text) STELE_MUST_USE;

/* Pointers to all strings of an array (or a scalar) of strings, and their lengths. */
stele_status fe_gguf_strings(base_arena *arena, const fe_gguf *gguf, const fe_gguf_value *value,
                             stele_sink *sink, const char *const **out_texts,
                             const uint64_t **out_bytes) STELE_MUST_USE;

#endif
