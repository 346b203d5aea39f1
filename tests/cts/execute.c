/* Memory for a call with its inputs, and running a step: on threads, from code that a target
 * emitted, the artefact's linker linked and the dynamic loader loaded. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "artifact/artifact.h"
#include "cts.h"
#include "ref/interpret.h"

/* ---- inputs ---------------------------------------------------------------------------- */

static void *poisoned(base_arena *arena, uint64_t bytes) {
  uint8_t *memory = base_arena_alloc(arena, bytes + 128, 1);
  if (!memory) return NULL;
  memory += 64 - (uintptr_t)memory % 64;
  return memset(memory, 0xff, bytes);
}

/* Per lane: what the shape says of the first, a little different for the others. */
static int32_t valid_of(const cts_program *p, uint32_t lane) {
  uint32_t valid = p->shape->valid ? p->shape->valid : p->step.width;
  return (int32_t)(valid > lane || p->step.width == 1 ? valid - (p->step.width > 1 ? lane : 0) : 0);
}
static int32_t filled_of(const cts_program *p, uint32_t lane) {
  return (int32_t)(p->shape->filled + 3 * lane);
}
static int32_t first_of(const cts_program *p, uint32_t lane) {
  return (int32_t)(p->shape->first ? p->shape->first + lane : 0);
}

static void fill_row(const cts_program *p, uint32_t buffer, uint8_t *base, uint32_t row,
                     uint32_t columns) {
  const stele_buffer *b = &p->buffers[buffer];
  uint64_t seed = p->seed + 400 + buffer, at = (uint64_t)row * columns;
  if (b->scheme == STELE_F32) {
    float *x = (float *)(void *)base + at;
    for (uint32_t i = 0; i < columns; i++)
      x[i] = 2 * cts_random_float(seed, at + (p->shape->ties ? i % (columns / 2) : i));
    return;
  }
  uint32_t blocks = columns / 32;
  uint8_t *record = base + row * stele_q8_row_bytes(columns);
  float *d = (float *)(void *)(record + columns), *s = d + blocks;
  int16_t *sums = (int16_t *)(void *)(s + blocks);
  for (uint32_t block = 0; block < blocks; block++) {
    int sum[2] = {0};
    for (uint32_t i = 0; i < 32; i++) {
      int q = (int)(cts_random(seed, at + block * 32 + i) >> 40) % 255 - 127;
      record[block * 32 + i] = (uint8_t)q;
      sum[i / 16] += q;
    }
    for (uint32_t half = 0; half < 2; half++) sums[2 * block + half] = (int16_t)sum[half];
    d[block] = 0.01f + 0.005f * cts_random_float(seed + 1, at + block);
    s[block] = d[block] * (float)(sum[0] + sum[1]);
  }
}

/* Rows of valid tokens, of each as many as it has; rows of a lane's last one where the buffer has a
 * row per lane. */
static void fill_buffer(const cts_program *p, uint32_t buffer, uint8_t *workspace) {
  const stele_buffer *b = &p->buffers[buffer];
  bool whole = b->tokens == cts_tokens(p);
  uint32_t records = p->records[buffer] ? p->records[buffer] : 1;
  for (uint32_t lane = 0; lane < p->step.lanes; lane++) {
    uint32_t valid = (uint32_t)valid_of(p, lane);
    for (uint32_t i = 0; i < (whole ? valid : valid > 0) * records; i++)
      fill_row(p, buffer, workspace + b->offset,
               (whole ? lane * p->step.width : lane) * records + i, b->columns / records);
  }
}

/* ---- pages ----------------------------------------------------------------------------- */

/* The first slot that a token at `slot` sees, by the group's window or chunk alone. */
static int32_t seen_from(const stele_group *g, int32_t slot) {
  int32_t window = (int32_t)g->window;
  if (!window) return 0;
  if (g->kind == STELE_GROUP_CHUNK) return slot / window * window;
  return slot + 1 > window ? slot + 1 - window : 0;
}

uint32_t cts_pool_pages(const cts_program *p) {
  return p->group_count ? p->groups[0].table_entries * p->step.lanes : 0;
}

/* A page for new tokens: with `reuse` one that leaves the window in this step. */
static int32_t page_for_new(const cts_program *p, int32_t own, int32_t *read, const int32_t *store,
                            bool *taken) {
  for (uint32_t i = 0; p->shape->reuse && i < p->groups[0].table_entries; i++) {
    if (read[i] < 0 || store[i] >= 0 || taken[i]) continue;
    taken[i] = true;
    return read[i];
  }
  return own;
}

static void fill_tables(const cts_program *p, uint32_t lane, int32_t *read, int32_t *store) {
  const stele_group *g = &p->groups[0];
  int32_t page = (int32_t)g->page_tokens, filled = filled_of(p, lane);
  int32_t end = filled + valid_of(p, lane), from = seen_from(g, filled);
  int32_t from_last = seen_from(g, end - 1);
  bool taken[256] = {false};
  for (int32_t i = 0; i < (int32_t)g->table_entries; i++) {
    /* backwards, so that neighbours in the table are not neighbours in the pool */
    int32_t own = (int32_t)(cts_pool_pages(p) - 1 - (lane * g->table_entries + (uint32_t)i));
    int32_t begin = i * page;
    read[i] = begin < filled && begin + page > from ? own : -1;
    store[i] = begin < end && begin + page > from_last ? own : -1;
    if (begin >= filled && begin < end) {
      if (store[i] >= 0) store[i] = page_for_new(p, own, read, store, taken);
      if (!p->shape->staged) read[i] = store[i];
    }
  }
}

/* Random keys and values in the slots that were filled before. */
static void fill_slot(const cts_program *p, uint32_t lane, uint32_t slot, uint8_t *page) {
  const stele_group *g = &p->groups[0];
  uint32_t place = slot % g->page_tokens;
  uint64_t seed = p->seed + 500 + lane, at = (uint64_t)slot * 65536;
  float numbers[REF_MAX_HEAD];
  for (uint32_t h = 0; h < g->kv_heads; h++) {
    for (uint32_t e = 0; e < g->key_head; e++) numbers[e] = cts_random_float(seed, at++);
    ref_put_key(g, page, h, place, numbers);
    if (g->value_in_key) continue;
    for (uint32_t e = 0; e < g->value_head; e++) numbers[e] = cts_random_float(seed, at++);
    ref_put_value(g, page, h, place, numbers);
  }
}

static bool fill_cache(const cts_program *p, base_arena *arena, cts_call *call) {
  const stele_group *g = &p->groups[0];
  size_t entries = (size_t)p->step.lanes * g->table_entries;
  int32_t *read = base_arena_alloc(arena, entries, sizeof *read);
  int32_t *store = base_arena_alloc(arena, entries, sizeof *store);
  size_t groups = (size_t)p->first_group + 1;
  const int32_t **tables = base_arena_alloc(arena, 2 * groups, sizeof *tables);
  uint8_t **layers = base_arena_alloc(arena, groups, sizeof *layers);
  call->pool_bytes = cts_pool_pages(p) * g->page_bytes;
  call->pool = poisoned(arena, call->pool_bytes);
  if (!read || !store || !tables || !layers || !call->pool) return false;
  for (uint32_t lane = 0; lane < p->step.lanes; lane++) {
    size_t row = (size_t)lane * g->table_entries;
    fill_tables(p, lane, read + row, store + row);
    for (uint32_t slot = 0; slot < (uint32_t)filled_of(p, lane); slot++) {
      int32_t page = read[row + slot / g->page_tokens];
      if (page >= 0) fill_slot(p, lane, slot, call->pool + (uint64_t)page * g->page_bytes);
    }
  }
  tables[p->first_group] = read;
  tables[groups + p->first_group] = store;
  layers[p->first_group] = call->pool;
  call->args.read_pages = tables;
  call->args.store_pages = tables + groups;
  call->env.layer_pages = layers;
  call->env.layers = (uint32_t)groups;
  return true;
}

/* Bits with holes; mask 2: nothing of the first lane may be seen. */
static bool fill_mask(const cts_program *p, base_arena *arena, cts_call *call) {
  if (!p->shape->mask) return true;
  size_t words = (p->capacity + 63) / 64;
  uint64_t *mask = base_arena_alloc(arena, words * p->step.lanes, sizeof *mask);
  if (!mask) return false;
  for (size_t i = 0; i < words * p->step.lanes; i++)
    mask[i] = p->shape->mask == 2 && i < words
                  ? 0
                  : cts_random(p->seed + 600, i) | cts_random(p->seed + 601, i);
  call->args.mask = mask;
  return true;
}

static float *random_floats(base_arena *arena, uint64_t seed, size_t count) {
  float *values = base_arena_alloc(arena, count, sizeof *values);
  for (size_t i = 0; values && i < count; i++) values[i] = cts_random_float(seed, i);
  return values;
}

static bool fill_args(const cts_program *p, const stele_program *program, base_arena *arena,
                      cts_call *call) {
  uint32_t lanes = p->step.lanes, tokens = cts_tokens(p), rotary = 0;
  int32_t *ids = base_arena_alloc(arena, tokens, sizeof *ids);
  int32_t *positions = base_arena_alloc(arena, tokens, sizeof *positions);
  int32_t *of_lanes = base_arena_alloc(arena, 3 * (size_t)lanes, sizeof *of_lanes);
  if (!ids || !positions || !of_lanes) return false;
  for (uint32_t t = 0; t < tokens; t++) {
    ids[t] = (int32_t)(cts_random(p->seed + 700, t) % p->vocab);
    positions[t] = (int32_t)(cts_random(p->seed + 701, t) % p->capacity);
  }
  for (uint32_t lane = 0; lane < lanes; lane++) {
    of_lanes[lane] = valid_of(p, lane);
    of_lanes[lanes + lane] = filled_of(p, lane);
    of_lanes[2 * lanes + lane] = first_of(p, lane);
  }
  for (uint64_t i = 0; i < program->ropes.count; i++)
    rotary += stele_program_ropes(program, i)->rotary;
  call->args.struct_bytes = sizeof call->args;
  call->args.ids = ids;
  call->args.positions = positions;
  call->args.valid = of_lanes;
  call->args.filled = of_lanes + lanes;
  call->args.first = of_lanes + 2 * lanes;
  call->args.rope = random_floats(arena, p->seed + 702, (size_t)tokens * rotary);
  call->logits = (uint64_t)tokens * p->vocab;
  call->tokens = tokens;
  call->hidden = (uint64_t)(p->shape->index + 1) * tokens * p->hidden;
  call->args.out_logits = poisoned(arena, call->logits * 4);
  call->args.out_tokens = poisoned(arena, call->tokens * 4);
  call->args.out_hidden = poisoned(arena, call->hidden * 4);
  return call->args.rope && call->args.out_logits && call->args.out_tokens &&
         call->args.out_hidden && fill_mask(p, arena, call);
}

stele_status cts_call_create(const cts_program *p, const stele_program *program, base_arena *arena,
                             cts_call *out) {
  cts_call call = {.workspace_bytes = program->workspace_bytes};
  call.workspace = poisoned(arena, call.workspace_bytes);
  call.env.struct_bytes = sizeof call.env;
  call.env.workspace = call.workspace;
  if (!call.workspace || !fill_args(p, program, arena, &call)) return STELE_OUT_OF_MEMORY;
  if (p->group_count && !fill_cache(p, arena, &call)) return STELE_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < p->buffer_count; i++)
    if (p->fill[i] == CTS_RANDOM) fill_buffer(p, i, call.workspace);
  *out = call;
  return STELE_OK;
}

/* ---- code ------------------------------------------------------------------------------ */

static stele_status link_program(const stele_target *target, void *self,
                                 const stele_program *program, stele_sink *sink,
                                 base_buffer *out_code) {
  const stele_object *objects;
  stele_object all[64];
  uint32_t count, variant_count;
  stele_step steps[CTS_MAX_CASES] = {0};
  stele_variant variants[8];
  const stele_variant_info *info = target->variants(self, &variant_count);
  BASE_TRY(target->emit(self, program, sink, &objects, &count));
  if (count + 1 > sizeof all / sizeof all[0] || variant_count > 8)
    return base_fail(sink, STELE_FAILED, "too many objects or variants");
  for (uint32_t i = 0; i < variant_count; i++)
    variants[i] =
        (stele_variant){info[i].name, info[i].features, steps, (uint32_t)program->steps.count, 0};
  const stele_artifact artifact = {
      .variants = variants, .variant_count = variant_count, .target = target->name};
  base_buffer meta = {0};
  stele_status status = artifact_emit_meta(&artifact, target->triple(self), sink, &meta);
  if (status == STELE_OK) {
    memcpy(all, objects, count * sizeof *all);
    all[count] = (stele_object){"meta.o", meta.data, meta.size};
    status = artifact_link(all, count + 1, sink, out_code);
  }
  base_buffer_deinit(&meta);
  return status;
}

/* Loads a shared object from memory. */
static stele_status load(const base_buffer *code, uint32_t variant, stele_sink *sink,
                         cts_code *out) {
  int fd = memfd_create("cts", MFD_CLOEXEC);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  bool written = fd >= 0 && write(fd, code->data, code->size) == (ssize_t)code->size;
  void *library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (fd >= 0) close(fd);
  if (!library) return base_fail(sink, STELE_FAILED, "cannot load the code: %s", dlerror());
  stele_artifact_query_function query;
  *(void **)&query = dlsym(library, STELE_ARTIFACT_QUERY);
  if (!query || !query(STELE_ARTIFACT_ABI)) {
    dlclose(library);
    return base_fail(sink, STELE_FAILED, "the code has no '%s'", STELE_ARTIFACT_QUERY);
  }
  *out = (cts_code){library, query(STELE_ARTIFACT_ABI)->variants[variant].steps};
  return STELE_OK;
}

stele_status cts_code_load(const stele_target *target, void *self, const stele_program *program,
                           uint32_t variant, stele_sink *sink, cts_code *out) {
  base_buffer code = {0};
  stele_status status = link_program(target, self, program, sink, &code);
  if (status == STELE_OK) status = load(&code, variant, sink, out);
  base_buffer_deinit(&code);
  return status;
}

void cts_code_unload(cts_code *code) {
  if (code->library) dlclose(code->library);
  *code = (cts_code){0};
}

/* ---- threads --------------------------------------------------------------------------- */

typedef struct member {
  cts_call *call;
  stele_step_function step;
  uint32_t worker, workers;
} member;

static void meet(void *barrier, uint32_t worker) {
  (void)worker;
  pthread_barrier_wait(barrier);
}

static void *work(void *data) {
  member *m = data;
  m->step(&m->call->env, &m->call->args, m->worker, m->workers);
  return NULL;
}

void cts_call_run(cts_call *call, stele_step_function step, uint32_t workers) {
  pthread_t threads[CTS_WORKERS];
  member members[CTS_WORKERS];
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, workers);
  call->env.barrier = meet;
  call->env.barrier_data = &barrier;
  for (uint32_t i = 0; i < workers; i++) {
    members[i] = (member){call, step, i, workers};
    if (i) pthread_create(&threads[i], NULL, work, &members[i]);
  }
  work(&members[0]);
  for (uint32_t i = 1; i < workers; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&barrier);
}
