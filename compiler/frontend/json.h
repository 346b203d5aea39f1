/* JSON from untrusted files: one object, no duplicate keys, bounded depth. */
#ifndef STELE_FE_JSON_H
#define STELE_FE_JSON_H

#include <jansson.h>

#include "base/base.h"

/* Parses text that must be an object. The caller drops the reference. Whole numbers beyond 64 bits
 * (tokenizer_config.json often has a model_max_length of 10^30) become reals. */
stele_status fe_json_parse(const char *path, const char *text, size_t bytes, stele_sink *sink,
                           json_t **out_object) STELE_MUST_USE;

/* The same from a file of at most 256 MB. */
stele_status fe_json_load(const char *path, stele_sink *sink, json_t **out_object) STELE_MUST_USE;

#endif
