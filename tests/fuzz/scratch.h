/* A scratch directory for parsers that read files. */
#ifndef STELE_FUZZ_SCRATCH_H
#define STELE_FUZZ_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

/* Makes the directory on the first call; it is removed with its files when the process ends. */
const char *scratch_directory(void);

/* Writes a file there; with no bytes it is removed instead. */
void scratch_write(const char *name, const uint8_t *data, size_t size);

#endif
