/* Writes fake artefacts and knows what they generate. */
#ifndef FAKE_ARTIFACT_H
#define FAKE_ARTIFACT_H

#include <stddef.h>
#include <stdint.h>

#include "fake_model.h"
#include "stele/artifact.h"

/* 64 tokens, prefill of 16, verify of 8, 4 lanes, every output, pages of 16 and 4 tokens,
 * vocabulary 97. */
fake_config fake_default(void);
/* A whole artefact in malloc'd memory; NULL on failure. */
uint8_t *fake_bytes(const fake_config *config, size_t *out_size);
/* The artefact as a file, and its weights in their own where the config says so; 0 on success. */
int fake_write(const char *path, const fake_config *config);
int fake_write_bytes(const char *path, const void *bytes, size_t size);
/* The trailer of an artefact's bytes, and setting it with its own hash made right. */
stele_trailer fake_trailer(const uint8_t *bytes, size_t size);
void fake_set_trailer(uint8_t *bytes, size_t size, stele_trailer trailer);
/* Makes the hash of the code right again after a change. */
void fake_seal(uint8_t *bytes, size_t size);

/* Gives the artefact a tokenizer; 0 on success. */
int fake_put_tokenizer(uint8_t *bytes, size_t size, const void *blob, size_t blob_bytes);

/* Hash after the last of count ids (all seen), and the id that follows. */
uint32_t fake_hash(const fake_config *config, const int32_t *ids, uint32_t count);
int32_t fake_next(const fake_config *config, const int32_t *ids, uint32_t count);
/* The path of a file in this process's own temporary folder, removed at exit. */
const char *fake_path(const char *name);

#endif
