/* Appending little-endian numbers and the records of GGUF files to a buffer. */
#include "support/bytes.h"

#include <string.h>

#include "frontend/gguf.h"

static void put(base_buffer *out, uint64_t value, unsigned bytes) {
  uint8_t b[8];
  for (unsigned i = 0; i < bytes; i++) b[i] = (uint8_t)(value >> (8 * i));
  base_buffer_append(out, b, bytes);
}

void put_u8(base_buffer *out, uint8_t value) { put(out, value, 1); }
void put_u16(base_buffer *out, uint16_t value) { put(out, value, 2); }
void put_u32(base_buffer *out, uint32_t value) { put(out, value, 4); }
void put_u64(base_buffer *out, uint64_t value) { put(out, value, 8); }

void put_f32(base_buffer *out, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  put(out, bits, 4);
}

void put_string(base_buffer *out, const char *text) {
  put_u64(out, strlen(text));
  base_buffer_append(out, text, strlen(text));
}

static void put_key(base_buffer *out, const char *key, fe_gguf_type type) {
  put_string(out, key);
  put_u32(out, type);
}

void put_pair_u32(base_buffer *out, const char *key, uint32_t value) {
  put_key(out, key, FE_GGUF_U32);
  put_u32(out, value);
}

void put_pair_f32(base_buffer *out, const char *key, float value) {
  put_key(out, key, FE_GGUF_F32);
  put_f32(out, value);
}

void put_pair_bool(base_buffer *out, const char *key, bool value) {
  put_key(out, key, FE_GGUF_BOOL);
  put_u8(out, value);
}

void put_pair_bools(base_buffer *out, const char *key, const bool *values, uint64_t count) {
  put_key(out, key, FE_GGUF_ARRAY);
  put_u32(out, FE_GGUF_BOOL);
  put_u64(out, count);
  for (uint64_t i = 0; i < count; i++) put_u8(out, values[i]);
}

void put_pair_string(base_buffer *out, const char *key, const char *value) {
  put_key(out, key, FE_GGUF_STRING);
  put_string(out, value);
}

void put_gguf_header(base_buffer *out, uint32_t version, uint64_t tensors, uint64_t pairs) {
  base_buffer_append(out, "GGUF", 4);
  put_u32(out, version);
  put_u64(out, tensors);
  put_u64(out, pairs);
}

void put_gguf_tensor(base_buffer *out, const char *name, uint32_t dim_count, const uint64_t *sizes,
                     uint32_t type, uint64_t offset) {
  put_string(out, name);
  put_u32(out, dim_count);
  for (uint32_t i = 0; i < dim_count; i++) put_u64(out, sizes[i]);
  put_u32(out, type);
  put_u64(out, offset);
}

stele_status put_file(const char *path, const void *bytes, size_t size, stele_sink *sink) {
  base_output file = {0};
  BASE_TRY(base_output_open(sink, path, &file));
  stele_status status = base_output_write(sink, &file, bytes, size);
  if (status == STELE_OK) return base_output_commit(sink, &file, 0644);
  base_output_abort(&file);
  return status;
}
