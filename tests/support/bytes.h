/* Little-endian bytes of model files, put together piece by piece: for writers and for tests that
 * want a file wrong in one place. */
#ifndef STELE_TEST_BYTES_H
#define STELE_TEST_BYTES_H

#include "base/base.h"

void put_u8(base_buffer *out, uint8_t value);
void put_u16(base_buffer *out, uint16_t value);
void put_u32(base_buffer *out, uint32_t value);
void put_u64(base_buffer *out, uint64_t value);
void put_f32(base_buffer *out, float value);
/* As GGUF has them: a length of eight bytes, then the text. */
void put_string(base_buffer *out, const char *text);

/* Metadata pairs of a GGUF file. */
void put_pair_u32(base_buffer *out, const char *key, uint32_t value);
void put_pair_f32(base_buffer *out, const char *key, float value);
void put_pair_bool(base_buffer *out, const char *key, bool value);
void put_pair_bools(base_buffer *out, const char *key, const bool *values, uint64_t count);
void put_pair_string(base_buffer *out, const char *key, const char *value);

/* Magic, version and both counts. */
void put_gguf_header(base_buffer *out, uint32_t version, uint64_t tensors, uint64_t pairs);
/* An entry of the tensor list; sizes innermost first, as the format has them. */
void put_gguf_tensor(base_buffer *out, const char *name, uint32_t dim_count, const uint64_t *sizes,
                     uint32_t type, uint64_t offset);

/* Writes a file in place; used where no half file can be seen. */
stele_status put_file(const char *path, const void *bytes, size_t size,
                      stele_sink *sink) STELE_MUST_USE;

#endif
