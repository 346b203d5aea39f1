/* The state that lanes carry between steps: pages of keys and values, one pool per layer group,
 * and the tables that say which pages a lane has. Tables are fixed-shape inputs of every step.
 *
 * Kinds of cache (how pages are taken as a lane grows) are files of this folder and rows of
 * cache_kinds.def. */
#ifndef STELE_CACHE_CACHE_H
#define STELE_CACHE_CACHE_H

#include "base/base.h"
#include "stele/stele.h"

/* ---- pools ----------------------------------------------------------------------------- */

/* Pages of one layer group. A page number stands for one page in each of the group's layers; a
 * layer's pages are one array, as stele_env wants it. Pages are counted by reference: a page with
 * more than one user is copied before it is written. */
typedef struct cache_pool {
  uint8_t *memory; /* [layers][count][page_bytes], each layer from a system page on */
  size_t bytes;
  size_t layer_bytes; /* from one layer's first page to the next's */
  size_t page_bytes;  /* of one layer */
  uint32_t layers, count;
  uint32_t used;   /* pages with users */
  int32_t *free;   /* [count - used] a stack, lowest numbers on top at first */
  uint32_t *users; /* [count] */
} cache_pool;

/* commit: have all memory now instead of when it is first touched. */
stele_status cache_pool_init(cache_pool *pool, const stele_group *group, uint32_t count,
                             bool commit, const base_allocator *allocator,
                             stele_sink *sink) STELE_MUST_USE;
/* Accepts a zeroed pool. */
void cache_pool_deinit(cache_pool *pool, const base_allocator *allocator);
/* A page with one user, or -1 when all are taken. */
int32_t cache_pool_take(cache_pool *pool);
void cache_pool_retain(cache_pool *pool, int32_t page);
void cache_pool_release(cache_pool *pool, int32_t page);
/* A page with the same contents whose only user is the caller, for the page given, which loses the
 * caller as a user; the same page when the caller is alone. -1 when all are taken: nothing changed.
 */
int32_t cache_pool_unshare(cache_pool *pool, int32_t page);

/* ---- groups ---------------------------------------------------------------------------- */

typedef struct cache_group cache_group;

/* What a step does to one lane. */
typedef struct cache_step {
  uint32_t lane, filled, count; /* tokens [filled, filled + count) are added */
  bool staged;                  /* nothing is stored before attention has read */
  bool droppable;               /* count is at most the room: any of the tokens can be dropped */
} cache_step;

/* Functions that may be NULL belong to kinds that forget tokens. */
typedef struct cache_kind {
  uint32_t kind; /* enum stele_group_kind */
  const char *name;
  /* Makes room for tokens [filled, filled + count) of a lane, in however many steps they come.
   * false when pages run out: the tables are as before. */
  bool (*extend)(cache_group *group, uint32_t lane, uint32_t filled, uint32_t count);
  /* Forgets a lane's tokens from slot `length` on, of `filled`; pages that hold no others go back.
   */
  void (*crop)(cache_group *group, uint32_t lane, uint32_t filled, uint32_t length);
  /* Before and after a step: the tables by which it reads and stores, then those that remain. */
  void (*begin)(cache_group *group, const cache_step *step);
  void (*end)(cache_group *group, const cache_step *step);
  /* The first slot that the token at `slot` sees. */
  uint32_t (*seen_from)(const stele_group *group, uint32_t slot);
  /* The first slot of which a lane of so many tokens still has keys and values. */
  uint32_t (*held_from)(const cache_group *group, uint32_t lane, uint32_t filled);
  /* Tokens, at least two, that a step can add to so many while all that they see is kept. */
  uint64_t (*room)(const stele_group *group, uint32_t filled);
} cache_kind;

#define X(name) extern const cache_kind cache_kind_##name;
#include "cache/cache_kinds.def"
#undef X

struct cache_group {
  const stele_group *geometry;
  const cache_kind *kind;
  cache_pool pool;
  int32_t *read_table, *store_table; /* [rows][table_entries]; one table where they are equal */
};

/* ---- caches ---------------------------------------------------------------------------- */

typedef struct cache {
  const stele_artifact *artifact;
  cache_group *groups;   /* [group_count] */
  uint8_t **layer_pages; /* [layers] for stele_env */
  uint32_t lanes;
  bool committed; /* the static implementation */
} cache;

/* rows: of each table, at least lanes. Fails with STELE_UNSUPPORTED for kinds without a row. */
stele_status cache_init(cache *self, const stele_artifact *artifact, uint32_t lanes, uint32_t rows,
                        bool commit, const base_allocator *allocator,
                        stele_sink *sink) STELE_MUST_USE;
/* Accepts a zeroed or half-made cache. */
void cache_deinit(cache *self, const base_allocator *allocator);
/* As the kinds', for all groups. */
bool cache_extend(cache *self, uint32_t lane, uint32_t filled, uint32_t count);
void cache_begin(cache *self, const cache_step *step);
void cache_end(cache *self, const cache_step *step);
/* At most `most`. */
uint32_t cache_room(const cache *self, uint32_t filled, uint32_t most);
/* STELE_INVALID_ARGUMENT, and nothing has changed, when a group no longer has what tokens behind
 * `length` see. All tokens can always be forgotten. */
stele_status cache_crop(cache *self, uint32_t lane, uint32_t filled, uint32_t length,
                        stele_sink *sink) STELE_MUST_USE;
void cache_reset(cache *self, uint32_t lane, uint32_t filled);
/* Bytes of pages in use; all of them where they are committed. */
uint64_t cache_bytes(const cache *self);

#endif
