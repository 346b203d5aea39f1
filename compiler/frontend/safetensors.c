/* Safetensors: eight bytes of header length, a JSON object that gives each tensor's type, shape
 * and byte range, then the bytes. The format says that the ranges fill the rest of the file
 * without holes; both holes and overlaps are errors here.
 * Format: the safetensors README (Hugging Face), section "Format". */
#include "frontend/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "frontend/json.h"
#include "frontend/tensors.h"
#include "weights/weights.h"

#define HEADER_LIMIT ((uint64_t)100 << 20) /* as the format's own library has it */

typedef struct source {
  base_arena *arena;
  const char *path;
  const uint8_t *data; /* after the header */
  size_t size;
  stele_sink *sink;
} source;

static uint32_t scheme_of(const char *dtype) {
  static const struct {
    const char *dtype;
    uint32_t scheme;
  } known[] = {{"F32", STELE_F32}, {"F16", STELE_F16}, {"BF16", STELE_BF16}, {"I32", STELE_I32}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].dtype, dtype) == 0) return known[i].scheme;
  return UINT32_MAX;
}

static bool element_bytes(const char *dtype, size_t *out) {
  static const struct {
    const char *dtype;
    size_t bytes;
  } known[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
               {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
               {"F32", 4},  {"F64", 8}, {"I64", 8}, {"U64", 8},     {"C64", 8}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].dtype, dtype) == 0) {
      *out = known[i].bytes;
      return true;
    }
  return false;
}

static stele_status bad(const source *s, const char *name, const char *field,
                        const char *expected) {
  return base_fail(s->sink, STELE_BAD_FORMAT, "'%s': '%s' of tensor '%s' is not %s", s->path, field,
                   name, expected);
}

static bool get_size(const json_t *value, uint64_t *out) {
  if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
  *out = (uint64_t)json_integer_value(value);
  return true;
}

static stele_status parse_shape(const source *s, const json_t *shape, fe_tensor *tensor) {
  if (!json_is_array(shape)) return bad(s, tensor->name, "shape", "an array");
  if (json_array_size(shape) > FE_MAX_DIMS)
    return base_fail(s->sink, STELE_BAD_FORMAT,
                     "'%s': tensor '%s' has %zu dimensions, expected at most %d", s->path,
                     tensor->name, json_array_size(shape), FE_MAX_DIMS);
  tensor->dim_count = (uint32_t)json_array_size(shape);
  for (uint32_t i = 0; i < tensor->dim_count; i++)
    if (!get_size(json_array_get(shape, i), &tensor->dims[i]))
      return bad(s, tensor->name, "shape", "an array of whole numbers");
  return STELE_OK;
}

/* A type that we do not read still has a size that the byte range must agree with. */
static stele_status sized_by_type(const source *s, fe_tensor *tensor) {
  size_t element, elements = 1;
  if (tensor->scheme != UINT32_MAX || !element_bytes(tensor->type, &element)) return STELE_OK;
  for (uint32_t i = 0; i < tensor->dim_count; i++)
    if (!base_mul(elements, tensor->dims[i], &elements)) elements = SIZE_MAX;
  if (!base_mul(elements, element, &tensor->bytes))
    return base_fail(s->sink, STELE_BAD_FORMAT, "'%s': the size of tensor '%s' overflows", s->path,
                     tensor->name);
  return STELE_OK;
}

static stele_status parse_range(const source *s, const json_t *range, fe_tensor *tensor) {
  uint64_t begin, end;
  if (!json_is_array(range) || json_array_size(range) != 2 ||
      !get_size(json_array_get(range, 0), &begin) || !get_size(json_array_get(range, 1), &end))
    return bad(s, tensor->name, "data_offsets", "an array of two whole numbers");
  if (begin > end || end > s->size)
    return base_fail(s->sink, STELE_BAD_FORMAT,
                     "'%s': tensor '%s' has the byte range %" PRIu64 " to %" PRIu64
                     " of %zu bytes: the file is cut off or its header wrong",
                     s->path, tensor->name, begin, end, s->size);
  size_t element;
  if (!tensor->bytes && !element_bytes(tensor->type, &element)) tensor->bytes = end - begin;
  if (end - begin != tensor->bytes) {
    char shape[96];
    fe_tensor_shape_text(tensor, shape);
    return base_fail(s->sink, STELE_BAD_FORMAT,
                     "'%s': tensor '%s' has a byte range of %" PRIu64
                     " bytes, but %s of type %s needs %zu",
                     s->path, tensor->name, end - begin, shape, tensor->type, tensor->bytes);
  }
  tensor->data = s->data + begin;
  return STELE_OK;
}

static bool printable(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
  return true;
}

static stele_status parse_tensor(const source *s, const char *name, const json_t *entry,
                                 fe_tensor *tensor) {
  if (!*name || !printable(name))
    return base_fail(s->sink, STELE_BAD_FORMAT,
                     "'%s': a tensor's name is empty or holds control characters", s->path);
  if (!json_is_object(entry))
    return base_fail(s->sink, STELE_BAD_FORMAT, "'%s': the entry of tensor '%s' is not an object",
                     s->path, name);
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  if (!dtype || !*dtype || !printable(dtype)) return bad(s, name, "dtype", "the name of a type");
  tensor->name = base_arena_copy(s->arena, name, strlen(name));
  tensor->type = base_arena_copy(s->arena, dtype, strlen(dtype));
  if (!tensor->name || !tensor->type)
    return base_fail(s->sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", s->path);
  tensor->scheme = scheme_of(dtype);
  BASE_TRY(parse_shape(s, json_object_get(entry, "shape"), tensor));
  BASE_TRY(fe_tensor_size(s->path, tensor, s->sink));
  BASE_TRY(sized_by_type(s, tensor));
  return parse_range(s, json_object_get(entry, "data_offsets"), tensor);
}

static stele_status check_filled(const source *s, const fe_tensors *tensors) {
  const uint8_t *end = s->data;
  for (size_t i = 0; i < tensors->count; end = tensors->list[i].data + tensors->list[i].bytes, i++)
    if (tensors->list[i].data != end)
      return base_fail(s->sink, STELE_BAD_FORMAT,
                       "'%s': %zu bytes before tensor '%s' belong to no tensor", s->path,
                       (size_t)(tensors->list[i].data - end), tensors->list[i].name);
  size_t used = tensors->count ? (size_t)(end - s->data) : 0;
  if (used != s->size)
    return base_fail(s->sink, STELE_BAD_FORMAT,
                     "'%s': the last %zu bytes belong to no tensor: the header counts %zu bytes of "
                     "data, the file has %zu",
                     s->path, s->size - used, used, s->size);
  return STELE_OK;
}

static stele_status parse_entries(const source *s, json_t *header, fe_tensors *out_tensors) {
  fe_tensors tensors = {0};
  tensors.list = base_arena_alloc(s->arena, json_object_size(header), sizeof *tensors.list);
  if (!tensors.list) return base_fail(s->sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", s->path);
  const char *name;
  json_t *entry;
  json_object_foreach(header, name, entry) {
    if (strcmp(name, "__metadata__") == 0) continue;
    BASE_TRY(parse_tensor(s, name, entry, &tensors.list[tensors.count++]));
  }
  BASE_TRY(fe_tensors_check_overlap(s->path, &tensors, s->sink));
  BASE_TRY(check_filled(s, &tensors));
  BASE_TRY(fe_tensors_sort(s->path, &tensors, s->sink));
  *out_tensors = tensors;
  return STELE_OK;
}

stele_status fe_safetensors_parse(base_arena *arena, const char *path, const uint8_t *data,
                                  size_t size, stele_sink *sink, fe_tensors *out_tensors) {
  uint64_t length = 0;
  if (size < 8)
    return base_fail(sink, STELE_BAD_FORMAT, "'%s' has %zu bytes, too few for a safetensors header",
                     path, size);
  for (unsigned i = 0; i < 8; i++) length |= (uint64_t)data[i] << (8 * i);
  if (length > size - 8 || length > HEADER_LIMIT)
    return base_fail(sink, STELE_BAD_FORMAT,
                     "'%s': the header says that it has %" PRIu64
                     " bytes, but the file has %zu after its length (at most %" PRIu64
                     " are expected)",
                     path, length, size - 8, HEADER_LIMIT);
  json_t *header;
  BASE_TRY(fe_json_parse(path, (const char *)data + 8, (size_t)length, sink, &header));
  source s = {arena, path, data + 8 + length, size - 8 - (size_t)length, sink};
  stele_status status = parse_entries(&s, header, out_tensors);
  json_decref(header);
  return status;
}
