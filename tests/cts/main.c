/* The conformance suite's command:
 *   cts --target cpu --cpu x86-64-v3 [--emulate] [--precise] [--filter TEXT] [--every N] [--list]
 *       [--verbose]
 * runs every case by the reference interpreter and by the target with 1, 2 and 3 workers; the
 * runs of the target must give the same bits, and agree with the reference. --every takes one case
 * in N. A processor that lacks what the code needs is a reason to skip (exit code 77); with
 * --emulate instructions that can be emulated are not lacking. Without --target it checks that
 * every op that programs execute has a row. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "emulate.h"
#include "ref/interpret.h"
#include "stele/stele.h"
#include "table.h"
#include "weights/weights.h"

enum { SKIP = 77 };

typedef struct cts_state {
  const stele_target *target;
  void *self;
  stele_target_traits traits;
  bool precise, emulate, list, verbose;
  const char *filter;
  uint32_t variant, every, seen, run, failed;
} cts_state;

static const char *const mode_names[CTS_MODE_COUNT] = {"f32",       "f32-norm", "f32-combine", "q8",
                                                       "q8-inline", "q8-norm",  "q8-combine"};

/* Whether the program of this case can exist, and whether the target would be given it. */
static bool exists(const cts_state *cts, const cts_shape *s, uint32_t scheme, cts_mode mode) {
  bool quantised = weights_scheme_is_quantised(scheme);
  if (cts_mode_quantises(mode) && !quantised) return false;
  if (s->columns % weights_scheme_get(scheme)->block != 0) return false;
  if (!quantised || !s->modes) return true;
  if (strcmp(cts->target->name, "ref") == 0) return true; /* takes both */
  bool wants = cts->traits.quantise_activations && !cts->precise;
  return cts_mode_quantises(mode) == wants;
}

static uint64_t seed_of(const char *name) { /* FNV-1a */
  uint64_t h = 14695981039346656037u;
  for (; *name; name++) h = (h ^ (uint8_t)*name) * 1099511628211u;
  return h;
}

static void describe(cts_program *p, const cts_row *row) {
  const cts_shape *s = p->shape;
  int n = snprintf(p->name, sizeof p->name, "%s/%s", row->op, row->name);
  if (s->lengths) n += snprintf(p->name + n, sizeof p->name - (size_t)n, "-%u", s->columns);
  if (s->schemes)
    n += snprintf(p->name + n, sizeof p->name - (size_t)n, "/%s",
                  weights_scheme_get(p->scheme)->name);
  if (s->modes) n += snprintf(p->name + n, sizeof p->name - (size_t)n, "/%s", mode_names[p->mode]);
  if (s->cache_schemes)
    snprintf(p->name + n, sizeof p->name - (size_t)n, "/cache-%s",
             weights_scheme_get(p->cache_scheme)->name);
}

/* ---- running --------------------------------------------------------------------------- */

/* The cases of a row, built into one program by each layout. */
typedef struct batch {
  base_arena arena;
  cts_program *cases[CTS_MAX_CASES];
  uint32_t count;
  cts_built plain, packed;
  cts_code code;
} batch;

static void fail_case(cts_state *cts, const cts_program *p, const stele_sink *sink) {
  cts->failed++;
  printf("FAILED %s: %s\n", p->name, sink->text);
}

/* By the interpreter, called directly on plain weights. */
static stele_status run_reference(batch *b, uint32_t i, base_arena *arena, cts_call *out) {
  BASE_TRY(cts_call_create(b->cases[i], b->plain.program, arena, out));
  out->env.weights = b->plain.weights;
  ref_step(b->plain.program, i, &out->env, &out->args, 0, 1);
  return STELE_OK;
}

static stele_status run_case(batch *b, uint32_t i, base_arena *arena, stele_sink *sink) {
  cts_call expected, calls[CTS_WORKERS];
  BASE_TRY(run_reference(b, i, arena, &expected));
  for (uint32_t w = 0; w < CTS_WORKERS; w++) {
    BASE_TRY(cts_call_create(b->cases[i], b->packed.program, arena, &calls[w]));
    calls[w].env.weights = b->packed.weights;
    cts_call_run(&calls[w], b->code.steps[i].run, w + 1);
    if (cts_compare(b->cases[i], w ? &calls[0] : &expected, &calls[w], w != 0, sink)) continue;
    if (w) base_sink_add(sink, "  with %u workers, against 1", w + 1);
    return STELE_FAILED;
  }
  return STELE_OK;
}

static void run_batch(cts_state *cts, batch *b) {
  stele_sink sink = {{0}};
  stele_status status = cts_finish(b->cases, b->count, NULL, NULL, &sink, &b->plain);
  if (status == STELE_OK)
    status = cts_finish(b->cases, b->count, cts->target, cts->self, &sink, &b->packed);
  if (status == STELE_OK)
    status =
        cts_code_load(cts->target, cts->self, b->packed.program, cts->variant, &sink, &b->code);
  for (uint32_t i = 0; i < b->count; i++) {
    base_arena arena = {0};
    if (cts->verbose) {
      printf("%s\n", b->cases[i]->name);
      fflush(stdout); /* the next line may never come */
    }
    stele_status mine = status == STELE_OK ? run_case(b, i, &arena, &sink) : status;
    if (mine != STELE_OK) fail_case(cts, b->cases[i], &sink);
    base_arena_deinit(&arena);
  }
  cts_code_unload(&b->code);
}

/* ---- cases ----------------------------------------------------------------------------- */

static void add_case(cts_state *cts, batch *b, const cts_row *row, const cts_shape *s,
                     uint32_t scheme, cts_mode mode, uint32_t cache_scheme) {
  cts_program *p = base_arena_alloc(&b->arena, 1, sizeof *p);
  if (!p || b->count == CTS_MAX_CASES) abort();
  p->arena = &b->arena;
  p->traits = &cts->traits;
  p->shape = s;
  p->scheme = scheme;
  p->mode = mode;
  p->cache_scheme = cache_scheme;
  p->precise = cts->precise;
  describe(p, row);
  if (cts->filter && !strstr(p->name, cts->filter)) return;
  if (cts->every && cts->seen++ % cts->every) return;
  cts->run++;
  if (cts->list) {
    printf("%s\n", p->name);
    return;
  }
  p->seed = seed_of(p->name);
  p->step =
      (stele_program_step){.lanes = s->lanes ? s->lanes : 1, .width = s->width ? s->width : 1};
  p->step.kind = p->step.width > 1 ? STELE_STEP_PREFILL : STELE_STEP_DECODE;
  p->vocab = p->hidden = 64;
  p->capacity = s->capacity ? s->capacity : 64;
  row->build(p, s);
  b->cases[b->count++] = p;
}

/* The cases of a row that have the shape's number of columns. */
static void add_cases(cts_state *cts, batch *b, const cts_row *row, const cts_shape *s) {
  uint32_t schemes = s->schemes ? s->schemes : 1, modes = s->modes ? s->modes : 1;
  uint32_t caches = s->cache_schemes ? s->cache_schemes : 1;
  for (uint32_t scheme = 0; scheme < WEIGHTS_SCHEME_COUNT; scheme++)
    for (uint32_t mode = 0; mode < CTS_MODE_COUNT; mode++)
      for (uint32_t cache = 0; cache < WEIGHTS_SCHEME_COUNT; cache++)
        if (schemes >> scheme & 1 && modes >> mode & 1 && caches >> cache & 1 &&
            exists(cts, s, scheme, (cts_mode)mode))
          add_case(cts, b, row, s, scheme, (cts_mode)mode, cache);
}

static void run_row(cts_state *cts, const cts_row *row) {
  batch b = {0};
  cts_shape *shapes = base_arena_alloc(&b.arena, row->shape.lengths + 1, sizeof *shapes);
  if (!shapes) abort();
  for (uint32_t i = 0; i == 0 || i < row->shape.lengths; i++) {
    shapes[i] = row->shape;
    shapes[i].columns += i;
    add_cases(cts, &b, row, &shapes[i]);
  }
  if (b.count) run_batch(cts, &b);
  base_arena_deinit(&b.arena);
}

/* Every op with operands is executed by programs; `ids` and `cache` are read where they are. */
static int check_coverage(void) {
  static const char *const operands[] = {
#define OP(name, mnemonic, first, last, operands, ...) operands,
#include "stele/ops.def"
#undef OP
  };
  static const char *const names[] = {
#define OP(name, mnemonic, ...) mnemonic,
#include "stele/ops.def"
#undef OP
  };
  int missing = 0;
  for (uint32_t kind = 0; kind < STELE_OP_COUNT; kind++) {
    bool found = operands[kind][0] == 0 && kind != STELE_OP_EMBED;
    for (size_t i = 0; i < cts_row_count && !found; i++) found = cts_rows[i].kind == kind;
    if (!found) printf("op '%s' has no row in cts.def\n", names[kind]);
    missing += !found;
  }
  return missing ? 1 : 0;
}

/* The best variant that this machine runs. */
static bool choose_variant(cts_state *cts) {
  uint32_t count;
  uint64_t here = stele_machine_features() | (cts->emulate ? emulate_install() : 0);
  const stele_variant_info *variants = cts->target->variants(cts->self, &count);
  for (cts->variant = 0; cts->variant < count; cts->variant++)
    if (!(variants[cts->variant].features & ~here) &&
        base_enable_features(variants[cts->variant].features & stele_machine_features()))
      return true;
  for (uint64_t bit = 1; bit; bit <<= 1)
    if (variants[count - 1].features & ~here & bit)
      printf("skipped: this machine lacks %s\n", stele_feature_name(bit));
  return false;
}

static int run_all(cts_state *cts, const char *cpu) {
  stele_sink sink = {{0}};
  stele_target_options options = {
      .struct_bytes = sizeof options, .cpu = cpu, .precise = cts->precise};
  if (cts->target->create(&options, &sink, &cts->self) != STELE_OK) {
    fprintf(stderr, "cts: %s\n", sink.text);
    return 2;
  }
  if (!choose_variant(cts)) return SKIP;
  cts->target->traits(cts->self, &cts->traits);
  for (size_t i = 0; i < cts_row_count; i++) run_row(cts, &cts_rows[i]);
  cts->target->destroy(cts->self);
  if (!cts->list) printf("%u cases, %u failed\n", cts->run, cts->failed);
  return cts->failed ? 1 : 0;
}

int main(int argc, char **argv) {
  static const struct option options[] = {{"target", required_argument, NULL, 't'},
                                          {"cpu", required_argument, NULL, 'c'},
                                          {"filter", required_argument, NULL, 'f'},
                                          {"precise", no_argument, NULL, 'p'},
                                          {"every", required_argument, NULL, 'e'},
                                          {"list", no_argument, NULL, 'l'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {"emulate", no_argument, NULL, 'm'},
                                          {NULL, 0, NULL, 0}};
  cts_state cts = {0};
  const char *cpu = "native", *name = NULL;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (c == 't')
      name = optarg;
    else if (c == 'c')
      cpu = optarg;
    else if (c == 'f')
      cts.filter = optarg;
    else if (c == 'e')
      cts.every = (uint32_t)strtoul(optarg, NULL, 10);
    else if (c == 'p')
      cts.precise = true;
    else if (c == 'l')
      cts.list = true;
    else if (c == 'm')
      cts.emulate = true;
    else if (c == 'v')
      cts.verbose = true;
    else
      return 2;
  }
  if (!name) return check_coverage();
  cts.target = tgt_find(name);
  if (!cts.target) {
    fprintf(stderr, "cts: no target '%s'\n", name);
    return 2;
  }
  return run_all(&cts, cpu);
}
