/* What the two makers of a configuration share. */
#ifndef STELE_FE_CONFIG_INTERNAL_H
#define STELE_FE_CONFIG_INTERNAL_H

#include "frontend/config.h"

typedef struct fe_config_log {
  stele_sink *sink;
  json_t *read;    /* a set of field names */
  json_t *aliases; /* from field names to those of the file, where they differ */
  bool bad;        /* a line was added */
  bool broken;     /* ... about a value that is wrong in itself, not one that we lack */
  bool failed;     /* memory ran out */
} fe_config_log;

/* An empty configuration. */
stele_status fe_config_create(base_arena *arena, const char *path, stele_sink *sink,
                              fe_config *out_config) STELE_MUST_USE;

#endif
