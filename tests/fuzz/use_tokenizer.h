/* Uses a tokenizer as far as its interface goes, and aborts where it breaks its word. */
#ifndef STELE_FUZZ_USE_TOKENIZER_H
#define STELE_FUZZ_USE_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

void use_tokenizer(const uint8_t *blob, size_t bytes);

#endif
