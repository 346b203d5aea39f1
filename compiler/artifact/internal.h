/* What link.c and stand_in.c share. */
#ifndef STELE_ARTIFACT_INTERNAL_H
#define STELE_ARTIFACT_INTERNAL_H

#include "base/base.h"

typedef struct artifact_library {
  const char *name;           /* as the dynamic loader knows it */
  const char *const *symbols; /* NULL at the end */
} artifact_library;

/* Appends a shared object that stands for the library on a processor (e_machine). Its start must
 * be the buffer's. */
void artifact_stand_in(const artifact_library *library, uint16_t machine, base_buffer *out);

#endif
