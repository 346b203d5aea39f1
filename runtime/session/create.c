/* Making a session: everything that any of its steps will need is sized and had here. */
#include <inttypes.h>

#include "session/session.h"

static stele_status out_of_memory(stele_sink *sink) {
  return base_fail(sink, STELE_OUT_OF_MEMORY, "memory for a session could not be had");
}

static stele_status check_options(const stele_artifact *a, stele_session_options *options,
                                  stele_sink *sink) {
  if (!options->lanes) options->lanes = 1;
  if (options->lanes > a->max_lanes)
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "%" PRIu32 " lanes were asked for, the model was compiled for at most %" PRIu32
                     ": compile it with --lanes %" PRIu32,
                     options->lanes, a->max_lanes, options->lanes);
  if (options->threads > a->max_workers)
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "%" PRIu32
                     " threads were asked for, the model was compiled for at most %" PRIu32,
                     options->threads, a->max_workers);
  if (!options->threads)
    options->threads = (uint32_t)base_min(stele_machine_workers(), a->max_workers);
  if (options->cache_implementation > STELE_CACHE_STATIC)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "cache implementation %" PRIu32 " is unknown",
                     options->cache_implementation);
  if (!options->allocate != !options->release)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "allocate and release come together");
  return STELE_OK;
}

static void size_steps(stele_session *s) {
  for (uint32_t i = 0; i < s->variant->step_count; i++) {
    const stele_step *step = &s->variant->steps[i];
    s->rows = (uint32_t)base_max(s->rows, step->lanes);
    s->slots = (uint32_t)base_max(s->slots, (size_t)step->lanes * step->width);
    if (step->output == STELE_OUTPUT_HIDDEN)
      s->hidden_bytes =
          base_max(s->hidden_bytes, (size_t)(s->artifact->layers + 1) * step->lanes * step->width *
                                        s->artifact->hidden * sizeof(float));
  }
}

static void *allocate(const stele_session *s, size_t count, size_t size) {
  return base_allocate(&s->allocator, count, size);
}

static bool allocate_rows(stele_session *s) {
  return (s->lane = allocate(s, s->lanes, sizeof *s->lane)) &&
         (s->ids = allocate(s, s->slots, sizeof *s->ids)) &&
         (s->positions = allocate(s, s->slots, sizeof *s->positions)) &&
         (s->tokens = allocate(s, s->slots, sizeof *s->tokens)) &&
         (s->valid = allocate(s, s->rows, sizeof *s->valid)) &&
         (s->filled = allocate(s, s->rows, sizeof *s->filled)) &&
         (s->first = allocate(s, s->rows, sizeof *s->first)) &&
         (s->state_blocks = allocate(s, s->rows, sizeof *s->state_blocks));
}

static bool allocate_tables(stele_session *s) {
  uint32_t groups = s->artifact->group_count;
  bool good = (s->read_pages = allocate(s, groups, sizeof *s->read_pages)) &&
              (s->store_pages = allocate(s, groups, sizeof *s->store_pages)) &&
              (s->gathered_read = allocate(s, groups, sizeof *s->gathered_read)) &&
              (s->gathered_store = allocate(s, groups, sizeof *s->gathered_store));
  for (uint32_t g = 0; good && g < groups; g++) {
    size_t entries = (size_t)s->rows * s->artifact->groups[g].table_entries;
    good = (s->gathered_read[g] = allocate(s, entries, sizeof **s->gathered_read)) &&
           (s->gathered_store[g] = allocate(s, entries, sizeof **s->gathered_store));
  }
  return good;
}

static bool allocate_ropes(stele_session *s) {
  const stele_artifact *a = s->artifact;
  size_t floats = 0, bytes;
  bool grows = false;
  for (uint32_t i = 0; i < a->rope_count; i++) {
    grows |= a->ropes[i].rule != STELE_ROPE_FIXED;
    floats += a->ropes[i].rotary;
  }
  if (!grows) return true;
  s->ropes = allocate(s, a->rope_count, sizeof *s->ropes);
  if (!s->ropes || !base_mul(floats, s->slots, &bytes)) return false;
  for (uint32_t i = 0; i < a->rope_count; i++) {
    if (a->ropes[i].rule == STELE_ROPE_FIXED) continue;
    s->ropes[i].inverse = allocate(s, a->ropes[i].rotary / 2, sizeof(float));
    if (!s->ropes[i].inverse) return false;
  }
  return (s->rope_rows = allocate(s, bytes, sizeof *s->rope_rows));
}

static stele_status allocate_memory(stele_session *s, bool commit, stele_sink *sink) {
  const stele_artifact *a = s->artifact;
  if (!allocate_rows(s) || !allocate_tables(s) || !allocate_ropes(s)) return out_of_memory(sink);
  s->workspace = base_pages_reserve((size_t)a->workspace_bytes, true);
  s->hidden = base_pages_reserve(s->hidden_bytes, false);
  if ((a->workspace_bytes && !s->workspace) || (s->hidden_bytes && !s->hidden))
    return out_of_memory(sink);
  /* A step for more lanes than are asked of it looks at empty rows behind the last lane's. */
  return cache_init(&s->cache, a, s->lanes, s->lanes + s->rows, commit, &s->allocator, sink);
}

static void set_constants(stele_session *s) {
  s->env = (stele_env){.struct_bytes = sizeof s->env,
                       .layers = s->artifact->layers,
                       .weights = s->model->weights,
                       .workspace = s->workspace,
                       .layer_pages = s->cache.layer_pages,
                       .barrier = s->threads > 1 ? device_host_barrier : NULL,
                       .barrier_data = s->host};
  s->args = (stele_step_args){.struct_bytes = sizeof s->args,
                              .ids = s->ids,
                              .positions = s->positions,
                              .valid = s->valid,
                              .filled = s->filled,
                              .first = s->first,
                              .read_pages = s->read_pages,
                              .store_pages = s->store_pages,
                              .state_blocks = s->state_blocks,
                              .rope = s->rope_rows};
}

stele_status stele_session_create(const stele_model *model, const stele_session_options *options,
                                  stele_sink *sink, stele_session **out_session) {
  stele_session_options own = {.struct_bytes = sizeof own};
  if (!model || !out_session) return base_fail(sink, STELE_INVALID_ARGUMENT, "no model");
  if (!base_options(&own, sizeof own, options))
    return base_fail(sink, STELE_INVALID_ARGUMENT,
                     "struct_bytes of the session options is not set");
  BASE_TRY(check_options(model->artifact, &own, sink));
  const base_allocator allocator = {own.allocate, own.release, own.allocate_data};
  stele_session *s = base_allocate(&allocator, 1, sizeof *s);
  if (!s) return out_of_memory(sink);
  *s = (stele_session){.model = model,
                       .artifact = model->artifact,
                       .variant = model->variant,
                       .allocator = allocator,
                       .lanes = own.lanes,
                       .threads = own.threads};
  size_steps(s);
  stele_status status = allocate_memory(s, own.cache_implementation == STELE_CACHE_STATIC, sink);
  if (status == STELE_OK) status = device_host_create(s->threads, &s->allocator, sink, &s->host);
  if (status != STELE_OK) {
    stele_session_destroy(s);
    return status;
  }
  set_constants(s);
  *out_session = s;
  return STELE_OK;
}

static void release(const stele_session *s, void *memory) { base_release(&s->allocator, memory); }

static void release_arrays(stele_session *s) {
  const stele_artifact *a = s->artifact;
  for (uint32_t g = 0; g < a->group_count; g++) {
    if (s->gathered_read) release(s, s->gathered_read[g]);
    if (s->gathered_store) release(s, s->gathered_store[g]);
  }
  for (uint32_t i = 0; s->ropes && i < a->rope_count; i++) release(s, s->ropes[i].inverse);
  void *const arrays[] = {s->lane,       s->ids,         s->positions,     s->tokens,
                          s->valid,      s->filled,      s->first,         s->state_blocks,
                          s->read_pages, s->store_pages, s->gathered_read, s->gathered_store,
                          s->ropes,      s->rope_rows};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) release(s, arrays[i]);
}

void stele_session_destroy(stele_session *session) {
  if (!session) return;
  device_host_destroy(session->host);
  session_profile_end(session);
  cache_deinit(&session->cache, &session->allocator);
  base_pages_release(session->workspace, (size_t)session->artifact->workspace_bytes);
  base_pages_release(session->hidden, session->hidden_bytes);
  release_arrays(session);
  base_allocator allocator = session->allocator;
  base_release(&allocator, session);
}
