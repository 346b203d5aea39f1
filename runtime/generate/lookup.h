/* Where the last ids of a text stood before: an index that grows with the text. */
#ifndef STELE_GENERATE_LOOKUP_H
#define STELE_GENERATE_LOOKUP_H

#include "base/base.h"

#define LOOKUP_CONTEXT 3u /* ids that must have stood together before */

typedef struct lookup {
  int32_t *ids;     /* the text, [count] of room for `limit` */
  uint32_t *before; /* [limit] the place before this one whose context has the same hash, 0: none */
  uint32_t *latest; /* [mask + 1] the last place of each hash */
  uint32_t count, limit, mask;
  size_t bytes;
} lookup;

/* Room for a text of `limit` ids: pages that are committed as it grows. */
stele_status lookup_init(lookup *self, uint32_t limit, stele_sink *sink) STELE_MUST_USE;
/* Accepts a zeroed lookup. */
void lookup_deinit(lookup *self);
/* Adds ids to the text, which has room for them. */
void lookup_append(lookup *self, const int32_t *ids, uint32_t count);

/* The place in the text that an earlier occurrence of its end is followed by: of the longest one
 * up to `longest` ids, the latest among equals. 0: there is none of LOOKUP_CONTEXT ids. */
uint32_t lookup_find(const lookup *self, uint32_t longest, uint32_t *out_context);
/* What follows a place, count ids; a text that ends before is taken to go on as it did there. */
void lookup_copy(const lookup *self, uint32_t place, uint32_t count, int32_t *out_ids);

#endif
