/* What a target is: a table of functions that turns a program into relocatable objects. Targets
 * inside the tree and plugins outside of it implement the same table.
 *
 * The order of calls in a compile: create, layout for every weight, emit, pack for every weight,
 * destroy. A target keeps no state outside the object that create returns. */
#ifndef STELE_TARGET_H
#define STELE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stele/program.h"
#include "stele/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STELE_TARGET_ABI 1u

typedef struct stele_target_options {
  uint32_t struct_bytes;
  const char *cpu;            /* as given with --cpu: native, x86-64, ..., portable */
  bool precise;               /* activations, caches and sums in float32 */
  const char *dump_directory; /* where to leave intermediate code, or NULL */
  uint32_t threads;           /* that emit may use at once; 0 is 1 */
} stele_target_options;

/* What a target wants of the schedule. */
typedef struct stele_target_traits {
  uint32_t row_align;              /* tiles of matrices are multiples of so many rows */
  uint32_t tile_bytes;             /* about so many weight bytes per tile are good */
  bool quantise_activations;       /* integer products with quantised weights, unless precise */
  uint32_t inline_prologue_tokens; /* up to so many tokens every worker does the prologue itself */
  uint32_t attention_rows;         /* tokens per tile of attention in wide steps */
  uint32_t max_workers;
} stele_target_traits;

typedef struct stele_variant_info {
  const char *name;  /* as in stele_variant */
  uint64_t features; /* bits of stele_feature */
} stele_variant_info;

/* A relocatable object for the linker; bytes are owned by the target until destroy. */
typedef struct stele_object {
  const char *name;
  const void *data;
  size_t bytes;
} stele_object;

typedef struct stele_target stele_target;
struct stele_target {
  uint32_t abi; /* STELE_TARGET_ABI */
  const char *name;
  const char *summary;

  stele_status (*create)(const stele_target_options *options, stele_sink *sink, void **out_self);
  void (*destroy)(void *self);

  void (*traits)(const void *self, stele_target_traits *out_traits);
  const char *(*triple)(const void *self); /* of the objects; owned by self */
  /* Variants, best first; every one must define all steps. */
  const stele_variant_info *(*variants)(const void *self, uint32_t *out_count);

  /* The packed layout of a matrix and the bytes it takes. rows, columns as in the file; embedding
   * says that rows are also gathered. Vectors (one row) are always float32 and plain. */
  stele_status (*layout)(const void *self, uint32_t scheme, uint64_t rows, uint64_t columns,
                         bool embedding, stele_sink *sink, uint32_t *out_layout,
                         uint64_t *out_bytes);
  /* Packs rows [first, first + count) of a matrix. source holds those rows in the scheme's own
   * blocks; destination is the start of the whole packed matrix. first is a multiple of
   * traits.row_align, count too unless it reaches the last row. Thread-safe for disjoint rows. */
  stele_status (*pack)(const void *self, uint32_t scheme, uint32_t layout, uint64_t rows,
                       uint64_t columns, uint64_t first, uint64_t count, const void *source,
                       void *destination, stele_sink *sink);

  /* Emits objects that define, for variant v and step s of the program, the hidden function
   * stele_step_V_S (decimal numbers) of type stele_step_function. */
  stele_status (*emit)(void *self, const stele_program *program, stele_sink *sink,
                       const stele_object **out_objects, uint32_t *out_count);
};

/* What a plugin exports under the name "stele_target_query": its table, or NULL when it does not
 * speak that version. */
typedef const stele_target *(*stele_target_query_function)(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
