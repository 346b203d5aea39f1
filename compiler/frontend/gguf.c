/* GGUF: a header, typed key-value pairs, the tensor list, padding, the tensors' bytes.
 *
 * A cursor walks the untrusted bytes; it never moves past the end, and a count is believed only
 * after the bytes that it needs at the least are known to be there, so a lying header cannot make
 * us allocate more than a small multiple of the file.
 * Format: the GGUF specification (ggml, docs/gguf.md). */
#include "frontend/gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/tensors.h"
#include "weights/weights.h"

#define MAX_NAME_BYTES 255u
#define PAIR_MIN_BYTES (8u + 1u + 4u + 1u)             /* key, type, a one-byte value */
#define TENSOR_MIN_BYTES (8u + 1u + 4u + 8u + 4u + 8u) /* name, count, one size, type, offset */

typedef struct cursor {
  const char *path;
  const uint8_t *data;
  size_t size, at;
  stele_sink *sink;
} cursor;

static const struct {
  const char *name;
  uint8_t bytes; /* 0: no fixed size */
} value_types[FE_GGUF_TYPE_COUNT] = {
    [FE_GGUF_U8] = {"uint8", 1},    [FE_GGUF_I8] = {"int8", 1},    [FE_GGUF_U16] = {"uint16", 2},
    [FE_GGUF_I16] = {"int16", 2},   [FE_GGUF_U32] = {"uint32", 4}, [FE_GGUF_I32] = {"int32", 4},
    [FE_GGUF_F32] = {"float32", 4}, [FE_GGUF_BOOL] = {"bool", 1},  [FE_GGUF_STRING] = {"string", 0},
    [FE_GGUF_ARRAY] = {"array", 0}, [FE_GGUF_U64] = {"uint64", 8}, [FE_GGUF_I64] = {"int64", 8},
    [FE_GGUF_F64] = {"float64", 8},
};

/* Names of tensor types, for messages; the ones we read are in schemes.def. */
static const char *const tensor_types[] = {
    [0] = "F32",     [1] = "F16",      [2] = "Q4_0",   [3] = "Q4_1",    [6] = "Q5_0",
    [7] = "Q5_1",    [8] = "Q8_0",     [9] = "Q8_1",   [10] = "Q2_K",   [11] = "Q3_K",
    [12] = "Q4_K",   [13] = "Q5_K",    [14] = "Q6_K",  [15] = "Q8_K",   [16] = "IQ2_XXS",
    [17] = "IQ2_XS", [18] = "IQ3_XXS", [19] = "IQ1_S", [20] = "IQ4_NL", [21] = "IQ3_S",
    [22] = "IQ2_S",  [23] = "IQ4_XS",  [24] = "I8",    [25] = "I16",    [26] = "I32",
    [27] = "I64",    [28] = "F64",     [29] = "IQ1_M", [30] = "BF16",   [34] = "TQ1_0",
    [35] = "TQ2_0",  [39] = "MXFP4",
};

const char *fe_gguf_type_name(fe_gguf_type type) {
  return (unsigned)type < FE_GGUF_TYPE_COUNT ? value_types[type].name : "unknown";
}

/* ---- the cursor ------------------------------------------------------------------------ */

static size_t left(const cursor *c) { return c->size - c->at; }

static stele_status bad_end(const cursor *c, const char *what, uint64_t wanted) {
  return base_fail(c->sink, STELE_BAD_FORMAT,
                   "'%s': %s at byte %zu needs %" PRIu64 " bytes, but the file ends after %zu",
                   c->path, what, c->at, wanted, left(c));
}

static stele_status take(cursor *c, const char *what, uint64_t bytes, const uint8_t **out) {
  if (bytes > left(c)) return bad_end(c, what, bytes);
  *out = c->data + c->at;
  c->at += (size_t)bytes;
  return STELE_OK;
}

static uint64_t little(const uint8_t *p, unsigned bytes) {
  uint64_t v = 0;
  for (unsigned i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
  return v;
}

static stele_status take_u32(cursor *c, const char *what, uint32_t *out) {
  const uint8_t *p;
  BASE_TRY(take(c, what, 4, &p));
  *out = (uint32_t)little(p, 4);
  return STELE_OK;
}

static stele_status take_u64(cursor *c, const char *what, uint64_t *out) {
  const uint8_t *p;
  BASE_TRY(take(c, what, 8, &p));
  *out = little(p, 8);
  return STELE_OK;
}

/* A key or a tensor's name: short, without control characters, zero-terminated in the arena. */
static stele_status take_name(cursor *c, base_arena *arena, const char *what, const char **out) {
  uint64_t length;
  const uint8_t *text;
  size_t start = c->at;
  BASE_TRY(take_u64(c, what, &length));
  if (length == 0 || length > MAX_NAME_BYTES)
    return base_fail(c->sink, STELE_BAD_FORMAT,
                     "'%s': %s at byte %zu has %" PRIu64 " bytes, expected 1 to %u", c->path, what,
                     start, length, MAX_NAME_BYTES);
  BASE_TRY(take(c, what, length, &text));
  for (uint64_t i = 0; i < length; i++)
    if (text[i] < 0x20 || text[i] == 0x7f)
      return base_fail(c->sink, STELE_BAD_FORMAT,
                       "'%s': %s at byte %zu holds the control character %u", c->path, what, start,
                       text[i]);
  *out = base_arena_copy(arena, (const char *)text, (size_t)length);
  if (!*out) return base_fail(c->sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", c->path);
  return STELE_OK;
}

/* ---- metadata -------------------------------------------------------------------------- */

static stele_status skip_strings(cursor *c, const char *key, uint64_t count) {
  if (count > left(c) / 8) return bad_end(c, key, count > UINT64_MAX / 8 ? UINT64_MAX : count * 8);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t length;
    const uint8_t *text;
    BASE_TRY(take_u64(c, key, &length));
    BASE_TRY(take(c, key, length, &text));
  }
  return STELE_OK;
}

static stele_status check_bools(const cursor *c, const fe_gguf_value *value) {
  for (uint64_t i = 0; i < value->count; i++)
    if (value->data[i] > 1)
      return base_fail(c->sink, STELE_BAD_FORMAT, "'%s': bool '%s' is %u, expected 0 or 1", c->path,
                       value->key, value->data[i]);
  return STELE_OK;
}

static stele_status parse_value(cursor *c, fe_gguf_value *value) {
  uint32_t type;
  BASE_TRY(take_u32(c, value->key, &type));
  value->count = 1;
  if (type == FE_GGUF_ARRAY) {
    value->array = true;
    BASE_TRY(take_u32(c, value->key, &type));
    BASE_TRY(take_u64(c, value->key, &value->count));
    if (type == FE_GGUF_ARRAY)
      return base_fail(c->sink, STELE_UNSUPPORTED,
                       "'%s': '%s' is an array of arrays, which is not supported", c->path,
                       value->key);
  }
  if (type >= FE_GGUF_TYPE_COUNT)
    return base_fail(c->sink, STELE_BAD_FORMAT, "'%s': '%s' has the type %u, expected 0 to %u",
                     c->path, value->key, type, FE_GGUF_TYPE_COUNT - 1);
  value->type = (fe_gguf_type)type;
  value->data = c->data + c->at;
  if (type == FE_GGUF_STRING) return skip_strings(c, value->key, value->count);
  size_t bytes;
  if (!base_mul(value->count, value_types[type].bytes, &bytes)) bytes = SIZE_MAX;
  BASE_TRY(take(c, value->key, bytes, &value->data));
  return type == FE_GGUF_BOOL ? check_bools(c, value) : STELE_OK;
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const fe_gguf_value *)a)->key, ((const fe_gguf_value *)b)->key);
}

static stele_status parse_metadata(cursor *c, base_arena *arena, uint64_t count, fe_gguf *gguf) {
  if (count > left(c) / PAIR_MIN_BYTES)
    return base_fail(c->sink, STELE_BAD_FORMAT,
                     "'%s': the header counts %" PRIu64
                     " metadata pairs, more than fit into the "
                     "file's %zu bytes",
                     c->path, count, c->size);
  fe_gguf_value *values = base_arena_alloc(arena, (size_t)count, sizeof *values);
  if (!values) return base_fail(c->sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", c->path);
  for (uint64_t i = 0; i < count; i++) {
    BASE_TRY(take_name(c, arena, "a metadata key", &values[i].key));
    BASE_TRY(parse_value(c, &values[i]));
  }
  qsort(values, (size_t)count, sizeof *values, by_key);
  for (uint64_t i = 1; i < count; i++)
    if (by_key(&values[i - 1], &values[i]) == 0)
      return base_fail(c->sink, STELE_BAD_FORMAT, "'%s': the metadata key '%s' comes twice",
                       c->path, values[i].key);
  gguf->values = values;
  gguf->value_count = (size_t)count;
  return STELE_OK;
}

static stele_status read_alignment(const cursor *c, fe_gguf *gguf) {
  gguf->alignment = 32;
  const fe_gguf_value *value = fe_gguf_find(gguf, "general.alignment");
  if (!value) return STELE_OK;
  if (value->type != FE_GGUF_U32 || value->array)
    return base_fail(c->sink, STELE_BAD_FORMAT,
                     "'%s': 'general.alignment' has the type %s%s, expected uint32", c->path,
                     value->array ? "array of " : "", fe_gguf_type_name(value->type));
  uint32_t alignment = (uint32_t)little(value->data, 4);
  if (alignment < 8 || (alignment & (alignment - 1)) != 0)
    return base_fail(c->sink, STELE_BAD_FORMAT,
                     "'%s': 'general.alignment' is %u, expected a power of two of at least 8",
                     c->path, alignment);
  gguf->alignment = alignment;
  return STELE_OK;
}

/* ---- tensors --------------------------------------------------------------------------- */

static stele_status parse_dims(cursor *c, fe_tensor *tensor) {
  BASE_TRY(take_u32(c, tensor->name, &tensor->dim_count));
  if (tensor->dim_count == 0 || tensor->dim_count > FE_MAX_DIMS)
    return base_fail(c->sink, STELE_BAD_FORMAT,
                     "'%s': tensor '%s' has %u dimensions, expected 1 to %d", c->path, tensor->name,
                     tensor->dim_count, FE_MAX_DIMS);
  for (uint32_t i = tensor->dim_count; i-- > 0;)
    BASE_TRY(take_u64(c, tensor->name, &tensor->dims[i]));
  return STELE_OK;
}

/* Offsets count from the end of the whole list, so that they are placed when it is read. */
static stele_status parse_tensor(cursor *c, base_arena *arena, fe_tensor *tensor,
                                 uint64_t *out_offset) {
  uint32_t type;
  BASE_TRY(take_name(c, arena, "a tensor name", &tensor->name));
  BASE_TRY(parse_dims(c, tensor));
  BASE_TRY(take_u32(c, tensor->name, &type));
  BASE_TRY(take_u64(c, tensor->name, out_offset));
  if (!weights_scheme_by_gguf_type(type, &tensor->scheme)) tensor->scheme = UINT32_MAX;
  tensor->type = type < sizeof tensor_types / sizeof *tensor_types ? tensor_types[type] : NULL;
  if (!tensor->type) tensor->type = base_arena_format(arena, "number %u", type);
  if (!tensor->type) return base_fail(c->sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", c->path);
  return fe_tensor_size(c->path, tensor, c->sink);
}

static stele_status place_tensor(const cursor *c, const fe_gguf *gguf, size_t start,
                                 uint64_t offset, fe_tensor *tensor) {
  size_t room = c->size - start;
  if (offset % gguf->alignment != 0)
    return base_fail(c->sink, STELE_BAD_FORMAT,
                     "'%s': tensor '%s' has the offset %" PRIu64
                     ", expected a multiple of the alignment %u",
                     c->path, tensor->name, offset, gguf->alignment);
  if (offset > room || tensor->bytes > room - offset)
    return base_fail(c->sink, STELE_BAD_FORMAT,
                     "'%s': tensor '%s' has %zu bytes at offset %" PRIu64
                     " of the data, which has %zu bytes: the file is cut off or its header wrong",
                     c->path, tensor->name, tensor->bytes, offset, room);
  tensor->data = c->data + start + offset;
  return STELE_OK;
}

static stele_status parse_tensors(cursor *c, base_arena *arena, uint64_t count, fe_gguf *gguf,
                                  fe_tensors *tensors) {
  if (count > left(c) / TENSOR_MIN_BYTES)
    return base_fail(c->sink, STELE_BAD_FORMAT,
                     "'%s': the header counts %" PRIu64
                     " tensors, more than fit into the file's %zu bytes",
                     c->path, count, c->size);
  fe_tensor *list = base_arena_alloc(arena, (size_t)count, sizeof *list);
  uint64_t *offsets = base_arena_alloc(arena, (size_t)count, sizeof *offsets);
  if (!list || !offsets)
    return base_fail(c->sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", c->path);
  for (uint64_t i = 0; i < count; i++) BASE_TRY(parse_tensor(c, arena, &list[i], &offsets[i]));
  size_t start;
  if (!base_add(c->at, gguf->alignment - 1, &start)) start = c->size;
  start = base_min(start / gguf->alignment * gguf->alignment, c->size);
  for (uint64_t i = 0; i < count; i++) BASE_TRY(place_tensor(c, gguf, start, offsets[i], &list[i]));
  *tensors = (fe_tensors){.list = list, .count = (size_t)count};
  BASE_TRY(fe_tensors_check_overlap(c->path, tensors, c->sink));
  return fe_tensors_sort(c->path, tensors, c->sink);
}

static stele_status parse_header(cursor *c, fe_gguf *gguf, uint64_t *out_tensors,
                                 uint64_t *out_pairs) {
  const uint8_t *magic;
  BASE_TRY(take(c, "the header", 4, &magic));
  if (memcmp(magic, "GGUF", 4) != 0)
    return base_fail(c->sink, STELE_BAD_FORMAT,
                     "'%s' is no GGUF file: it begins with %02x %02x %02x %02x, not with 'GGUF'",
                     c->path, magic[0], magic[1], magic[2], magic[3]);
  BASE_TRY(take_u32(c, "the version", &gguf->version));
  if (gguf->version == 0x02000000u || gguf->version == 0x03000000u)
    return base_fail(c->sink, STELE_UNSUPPORTED,
                     "'%s' is a big-endian GGUF file, expected little-endian", c->path);
  if (gguf->version != 2 && gguf->version != 3)
    return base_fail(c->sink, STELE_UNSUPPORTED, "'%s' has the GGUF version %u, expected 2 or 3",
                     c->path, gguf->version);
  BASE_TRY(take_u64(c, "the tensor count", out_tensors));
  return take_u64(c, "the metadata count", out_pairs);
}

stele_status fe_gguf_parse(base_arena *arena, const char *path, const uint8_t *data, size_t size,
                           stele_sink *sink, fe_gguf *out_gguf, fe_tensors *out_tensors) {
  cursor c = {.path = path, .data = data, .size = size, .sink = sink};
  fe_gguf gguf = {.path = path};
  fe_tensors tensors;
  uint64_t tensor_count = 0, pair_count = 0;
  BASE_TRY(parse_header(&c, &gguf, &tensor_count, &pair_count));
  BASE_TRY(parse_metadata(&c, arena, pair_count, &gguf));
  BASE_TRY(read_alignment(&c, &gguf));
  BASE_TRY(parse_tensors(&c, arena, tensor_count, &gguf, &tensors));
  *out_gguf = gguf;
  *out_tensors = tensors;
  return STELE_OK;
}

/* ---- reading values -------------------------------------------------------------------- */

const fe_gguf_value *fe_gguf_find(const fe_gguf *gguf, const char *key) {
  fe_gguf_value wanted = {.key = key};
  if (!gguf->value_count) return NULL;
  return bsearch(&wanted, gguf->values, gguf->value_count, sizeof wanted, by_key);
}

bool fe_gguf_int(const fe_gguf_value *value, uint64_t i, int64_t *out) {
  unsigned bytes = value_types[value->type].bytes;
  if (i >= value->count) return false;
  switch (value->type) {
    case FE_GGUF_U8:
    case FE_GGUF_U16:
    case FE_GGUF_U32:
    case FE_GGUF_U64: {
      uint64_t v = little(value->data + i * bytes, bytes);
      if (v > INT64_MAX) return false;
      *out = (int64_t)v;
      return true;
    }
    case FE_GGUF_I8:
    case FE_GGUF_I16:
    case FE_GGUF_I32:
    case FE_GGUF_I64: {
      uint64_t v = little(value->data + i * bytes, bytes), sign = (uint64_t)1 << (8 * bytes - 1);
      *out = (int64_t)((v ^ sign) - sign);
      return true;
    }
    default:
      return false;
  }
}

bool fe_gguf_float(const fe_gguf_value *value, uint64_t i, double *out) {
  if (i >= value->count) return false;
  if (value->type == FE_GGUF_F32) {
    float f;
    memcpy(&f, value->data + i * sizeof f, sizeof f);
    *out = (double)f;
    return true;
  }
  if (value->type != FE_GGUF_F64) return false;
  memcpy(out, value->data + i * sizeof *out, sizeof *out);
  return true;
}

bool fe_gguf_bool(const fe_gguf_value *value, uint64_t i, bool *out) {
  if (value->type != FE_GGUF_BOOL || i >= value->count) return false;
  *out = value->data[i] != 0;
  return true;
}

stele_status fe_gguf_text(base_arena *arena, const fe_gguf *gguf, const fe_gguf_value *value,
                          stele_sink *sink, const char **out_text) {
  if (value->type != FE_GGUF_STRING || value->array)
    return base_fail(sink, STELE_BAD_FORMAT, "'%s': '%s' has the type %s%s, expected string",
                     gguf->path, value->key, value->array ? "array of " : "",
                     fe_gguf_type_name(value->type));
  uint64_t length = little(value->data, 8);
  if (memchr(value->data + 8, 0, (size_t)length))
    return base_fail(sink, STELE_BAD_FORMAT, "'%s': the string '%s' holds a zero byte", gguf->path,
                     value->key);
  const char *text = base_arena_copy(arena, (const char *)value->data + 8, (size_t)length);
  if (!text) return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", gguf->path);
  *out_text = text;
  return STELE_OK;
}

stele_status fe_gguf_strings(base_arena *arena, const fe_gguf *gguf, const fe_gguf_value *value,
                             stele_sink *sink, const char *const **out_texts,
                             const uint64_t **out_bytes) {
  if (value->type != FE_GGUF_STRING)
    return base_fail(sink, STELE_BAD_FORMAT, "'%s': '%s' has the type %s, expected strings",
                     gguf->path, value->key, fe_gguf_type_name(value->type));
  const char **texts = base_arena_alloc(arena, (size_t)value->count, sizeof *texts);
  uint64_t *bytes = base_arena_alloc(arena, (size_t)value->count, sizeof *bytes);
  if (!texts || !bytes)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", gguf->path);
  const uint8_t *at = value->data;
  for (uint64_t i = 0; i < value->count; i++) {
    bytes[i] = little(at, 8);
    texts[i] = (const char *)at + 8;
    at += 8 + bytes[i];
  }
  *out_texts = texts;
  *out_bytes = bytes;
  return STELE_OK;
}
