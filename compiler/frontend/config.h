/* A model's configuration in one form, whatever file it came from: the fields of config.json as
 * new files name them. The old form (rope_theta, rope_scaling) and GGUF metadata are brought to it
 * first; messages use the names that the file at hand has.
 *
 * Readers never fail on the spot: each wrong field adds a line to the sink, the fallback is
 * returned, and fe_config_status says at the end whether all was well, so that one run shows every
 * mistake. A field with the value null counts as absent. "a.b" is field b of the object a. */
#ifndef STELE_FE_CONFIG_H
#define STELE_FE_CONFIG_H

#include <jansson.h>

#include "frontend/frontend.h"
#include "frontend/gguf.h"

struct fe_config_log;

typedef struct fe_config {
  const char *path; /* for messages */
  const char *type; /* model_type, or general.architecture */
  bool gguf, old_form;
  json_t *root; /* the fields, owned */
  struct fe_config_log *log;
} fe_config;

/* Strings and the log live in the arena. Deinit accepts a zeroed configuration. */
stele_status fe_config_from_json(base_arena *arena, const char *path, const json_t *root,
                                 stele_sink *sink, fe_config *out_config) STELE_MUST_USE;
stele_status fe_config_from_gguf(base_arena *arena, const fe_gguf *gguf, const fe_tensors *tensors,
                                 stele_sink *sink, fe_config *out_config) STELE_MUST_USE;
void fe_config_deinit(fe_config *config);

#define FE_REQUIRED UINT32_MAX /* as fallback of fe_config_count: absence is an error */

/* A whole number from 1 to 2^31 - 1. */
uint32_t fe_config_count(const fe_config *config, const char *field, uint32_t fallback);
/* The same from 0; absence is never an error. */
uint32_t fe_config_index(const fe_config *config, const char *field, uint32_t fallback);
/* A list of whole numbers from 0, or NULL when the field is absent or wrong, and whether a list
 * (NULL: empty) has one. */
const json_t *fe_config_list(const fe_config *config, const char *field);
bool fe_config_listed(const json_t *list, uint32_t number);
/* A finite number above 0; with a fallback below 0, absence is an error. */
double fe_config_number(const fe_config *config, const char *field, double fallback);
bool fe_config_bool(const fe_config *config, const char *field, bool fallback);
const char *fe_config_text(const fe_config *config, const char *field, const char *fallback);
/* The field itself, NULL when absent. */
const json_t *fe_config_get(const fe_config *config, const char *field);

/* Adds a line "'path': 'field' ..." to the sink. */
void fe_config_bad(const fe_config *config, const char *field, const char *format, ...)
    STELE_PRINTF(3, 4);

/* Whether every field read so far had a value of its kind: derived checks that would only repeat a
 * mistake ask. */
bool fe_config_sound(const fe_config *config);

/* Complains about every field of neutral.def that was not read and is not neutral, then says
 * whether anything was wrong. */
stele_status fe_config_status(const fe_config *config) STELE_MUST_USE;

#endif
