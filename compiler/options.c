/* What was asked for: checked, with the defaults filled in. An error names the option, what was
 * found and what was expected. */
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile.h"
#include "weights/weights.h"

#define DEFAULT_CAPACITY 4096u
#define DEFAULT_PREFILL 128u
#define DEFAULT_VERIFY 8u
#define MAX_WIDTH 65536u
#define MAX_LANES 16u
#define MAX_CAPACITY (1u << 26) /* slots and table sizes stay far from overflow */

static uint32_t processors(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count < 1 ? 1 : (uint32_t)count;
}

static stele_status check_range(stele_sink *sink, const char *option, uint32_t value,
                                uint32_t most) {
  if (value >= 1 && value <= most) return STELE_OK;
  return base_fail(sink, STELE_INVALID_ARGUMENT, "--%s is %u, expected 1 to %u", option, value,
                   most);
}

static stele_status check_cache_dtype(const char *name, stele_sink *sink, uint32_t *out) {
  uint32_t scheme;
  if (weights_scheme_by_name(name, &scheme) && weights_scheme_is_cache(scheme)) {
    *out = scheme;
    return STELE_OK;
  }
  return base_fail(sink, STELE_INVALID_ARGUMENT,
                   "--cache-dtype is '%.64s', expected f32, f16, bf16, q8_0 or q4_0", name);
}

static stele_status check_names(const compile *c) {
  size_t index;
  for (const char *const *name = c->options.skip_passes; name && *name; name++)
    BASE_TRY(compile_find_pass(c, *name, "skip-pass", &index));
  return STELE_OK;
}

/* Fills in what does not depend on the model. A newer caller's fields are unknown here, an older
 * one's missing fields are zero. */
static stele_status read_options(compile *c, const stele_compile_options *given) {
  stele_compile_options *o = &c->options;
  if (!base_options(o, sizeof *o, given))
    return base_fail(c->sink, STELE_INVALID_ARGUMENT, "struct_bytes of the options is not set");
  o->struct_bytes = sizeof *o;
  if (!o->lanes) o->lanes = 1;
  if (!o->prefill) o->prefill = DEFAULT_PREFILL;
  if (!o->verify) o->verify = DEFAULT_VERIFY;
  if (!o->threads) o->threads = processors();
  if (!o->target) o->target = c->tables->targets[0]->name;
  if (!o->cpu) o->cpu = "native";
  BASE_TRY(check_range(c->sink, "lanes", o->lanes, MAX_LANES));
  BASE_TRY(check_range(c->sink, "prefill", o->prefill, MAX_WIDTH));
  BASE_TRY(check_range(c->sink, "verify", o->verify, MAX_WIDTH));
  if (o->max_cache_len)
    BASE_TRY(check_range(c->sink, "max-cache-len", o->max_cache_len, MAX_CAPACITY));
  if (o->cache_dtype) BASE_TRY(check_cache_dtype(o->cache_dtype, c->sink, &c->cache_scheme));
  return check_names(c);
}

static stele_status find_target(compile *c) {
  const compile_tables *tables = c->tables;
  for (size_t i = 0; i < tables->target_count; i++)
    if (strcmp(tables->targets[i]->name, c->options.target) == 0) {
      c->target = tables->targets[i];
      return STELE_OK;
    }
  stele_status status = base_fail(c->sink, STELE_INVALID_ARGUMENT,
                                  "--target is '%.64s', expected one of:", c->options.target);
  for (size_t i = 0; i < tables->target_count; i++)
    base_sink_add(c->sink, "  %s", tables->targets[i]->name);
  return status;
}

static stele_status open_target(compile *c) {
  BASE_TRY(find_target(c));
  stele_target_options options = {.struct_bytes = sizeof options,
                                  .cpu = c->options.cpu,
                                  .precise = c->options.precise,
                                  .dump_directory = c->options.dump_directory,
                                  .threads = c->options.threads};
  BASE_TRY(c->target->create(&options, c->sink, &c->target_self));
  c->target->traits(c->target_self, &c->pass.traits);
  return STELE_OK;
}

static stele_status open_dump_directory(const compile *c) {
  const char *path = c->options.dump_directory;
  if (!path || base_is_directory(path) || mkdir(path, 0777) == 0) return STELE_OK;
  return base_fail(c->sink, STELE_IO, "cannot make the folder '%s'", path);
}

stele_status compile_begin(compile *c, const compile_tables *tables,
                           const stele_compile_options *options, stele_sink *sink) {
  *c = (compile){.tables = tables, .sink = sink};
  compile_note_phase(c, NULL);
  c->began = c->mark;
  BASE_TRY(read_options(c, options));
  BASE_TRY(open_dump_directory(c));
  BASE_TRY(open_target(c));
  BASE_TRY(ir_context_create(sink, &c->ir));
  c->pass.ir = c->ir;
  c->pass.target = c->target;
  c->pass.target_self = c->target_self;
  c->pass.precise = c->options.precise;
  c->pass.arena = &c->arena;
  c->pass.sink = sink;
  compile_note_phase(c, "start");
  return STELE_OK;
}

void compile_end(compile *c) {
  if (!mlirModuleIsNull(c->module)) mlirModuleDestroy(c->module);
  ir_context_destroy(c->ir);
  if (c->target) c->target->destroy(c->target_self);
  fe_model_destroy(c->model);
  base_arena_deinit(&c->arena);
}

/* A capacity above the model's own is legal: positions are computed, not learned. */
static void choose_capacity(compile *c) {
  uint32_t own = c->model->model_positions;
  stele_compile_options *o = &c->options;
  if (!o->max_cache_len) o->max_cache_len = own && own < DEFAULT_CAPACITY ? own : DEFAULT_CAPACITY;
  c->report.capacity = o->max_cache_len;
  c->report.model_positions = own;
  if (own && o->max_cache_len > own)
    snprintf(c->report.note, sizeof c->report.note,
             "--max-cache-len is %u, the model was made for %u tokens: what it says beyond them "
             "may be poor",
             o->max_cache_len, own);
}

/* A head is stored in whole blocks of its scheme. */
static stele_status check_heads(const compile *c) {
  const weights_scheme *scheme = weights_scheme_get(c->cache_scheme);
  uint32_t key = c->model->key_head, value = c->model->value_head;
  if (key % scheme->block == 0 && value % scheme->block == 0) return STELE_OK;
  return base_fail(
      c->sink, STELE_INVALID_ARGUMENT,
      "--cache-dtype is '%s', which takes %u numbers at a time: the model's heads have "
      "%u, expected a multiple of that",
      scheme->name, scheme->block, key % scheme->block ? key : value);
}

/* Cache of one lane in bytes, as far as it matters whether that can be addressed. */
static stele_status check_size(const compile *c) {
  const fe_model *m = c->model;
  size_t heads, layer, lane, all;
  if (base_mul(m->kv_heads, (size_t)m->key_head + m->value_head, &heads) &&
      base_mul(heads * 4, c->options.max_cache_len, &layer) && base_mul(layer, m->layers, &lane) &&
      base_mul(lane, c->options.lanes, &all) && all < (size_t)1 << 46)
    return STELE_OK;
  return base_fail(c->sink, STELE_INVALID_ARGUMENT,
                   "--max-cache-len %u and --lanes %u: a cache of that size cannot be addressed",
                   c->options.max_cache_len, c->options.lanes);
}

stele_status compile_complete_options(compile *c) {
  choose_capacity(c);
  if (!c->options.cache_dtype)
    c->cache_scheme =
        c->options.precise || c->model->weight_scheme_class == STELE_F32 ? STELE_F32 : STELE_F16;
  /* a step wider than the cache could never be filled */
  if (c->options.prefill > c->options.max_cache_len) c->options.prefill = c->options.max_cache_len;
  if (c->options.verify > c->options.max_cache_len) c->options.verify = c->options.max_cache_len;
  BASE_TRY(check_heads(c));
  return check_size(c);
}

ir_build_options compile_build_options(const compile *c) {
  return (ir_build_options){.capacity = c->options.max_cache_len,
                            .max_lanes = c->options.lanes,
                            .prefill_width = c->options.prefill,
                            .verify_width = c->options.verify,
                            .cache_scheme = c->cache_scheme,
                            .precise = c->options.precise};
}
