/* The families that there are. */
#ifndef STELE_FE_FAMILIES_H
#define STELE_FE_FAMILIES_H

#include <stdio.h>

#include "frontend/frontend.h"

#define FAMILY(name) extern const fe_family fe_family_##name;
#include "frontend/families.def"
#undef FAMILY

/* The family of a model_type (or GGUF architecture); the error lists all that there are. */
stele_status fe_family_find(const char *path, const char *type, bool gguf, stele_sink *sink,
                            const fe_family **out_family) STELE_MUST_USE;

/* The family of a described model. */
const fe_family *fe_family_of(const fe_model *model);

#endif
