/* Matching tensors with roles. Complaints are gathered first and reported together, after a line
 * that counts them; types that are not supported are grouped, as in a quantised file the same one
 * comes hundreds of times. */
#include "frontend/resolve.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "frontend/decoder.h"
#include "frontend/tensors.h"
#include "weights/weights.h"

#define TYPE_LIMIT 8

typedef struct complaint {
  struct complaint *next;
  const char *text;
} complaint;

typedef struct unsupported {
  const char *type, *first;
  size_t count;
} unsupported;

typedef struct resolver {
  fe_model *model;
  const fe_family *family;
  bool gguf;
  base_arena scratch;
  complaint *first, **end;
  unsupported types[TYPE_LIMIT];
  size_t type_count, missing, unexpected, misshapen, mistyped;
  uint32_t weight_limit;
  uint64_t scheme_bytes[WEIGHTS_SCHEME_COUNT];
  bool failed; /* no memory */
} resolver;

static const struct {
  bool layer;
} scopes[] = {
#define MODEL false
#define LAYER true
#define ROLE(name, scope, hf, gguf) [FE_##name] = {scope},
#include "frontend/roles.def"
#undef ROLE
#undef LAYER
#undef MODEL
};

static void complain(resolver *r, const char *format, ...) STELE_PRINTF(2, 3);
static void complain(resolver *r, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  complaint *c = base_arena_alloc(&r->scratch, 1, sizeof *c);
  if (c) c->text = base_arena_copy(&r->scratch, text, strlen(text));
  if (!c || !c->text) {
    r->failed = true;
    return;
  }
  *r->end = c;
  r->end = &c->next;
}

static bool supported(uint32_t scheme) {
  return scheme < WEIGHTS_SCHEME_COUNT && scheme != STELE_I32;
}

static void complain_type(resolver *r, const fe_tensor *tensor) {
  r->mistyped++;
  size_t i = 0;
  while (i < r->type_count && strcmp(r->types[i].type, tensor->type) != 0) i++;
  if (i == TYPE_LIMIT) return;
  if (i == r->type_count)
    r->types[r->type_count++] = (unsupported){.type = tensor->type, .first = tensor->name};
  r->types[i].count++;
}

static void report_types(resolver *r) {
  for (size_t i = 0; i < r->type_count; i++) {
    const unsupported *t = &r->types[i];
    complain(
        r, "the type '%s' of tensor '%s'%s is not supported; supported: %s", t->type, t->first,
        t->count > 1 ? " and others" : "",
        r->gguf ? "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K" : "F32, F16, BF16");
  }
}

/* A vector is stored with one dimension, a matrix with two. */
static bool shaped(const fe_tensor *tensor, uint64_t rows, uint64_t columns, bool vector) {
  if (vector) return tensor->dim_count == 1 && tensor->dims[0] == columns;
  return tensor->dim_count == 2 && tensor->dims[0] == rows && tensor->dims[1] == columns;
}

static bool is_vector(fe_role role) {
  switch (role) {
    case FE_EMBED:
    case FE_HEAD:
    case FE_Q:
    case FE_K:
    case FE_V:
    case FE_O:
    case FE_GATE:
    case FE_UP:
    case FE_DOWN:
      return false;
    default:
      return true;
  }
}

static bool check_tensor(resolver *r, const fe_tensor *tensor, fe_role role, uint64_t rows,
                         uint64_t columns) {
  bool vector = is_vector(role);
  char found[96];
  if (!shaped(tensor, rows, columns, vector)) {
    fe_tensor_shape_text(tensor, found);
    r->misshapen++;
    if (vector)
      complain(r, "tensor '%s' has the shape %s, expected [%" PRIu64 "]", tensor->name, found,
               columns);
    else
      complain(r, "tensor '%s' has the shape %s, expected [%" PRIu64 ", %" PRIu64 "]", tensor->name,
               found, rows, columns);
    return false;
  }
  if (!supported(tensor->scheme)) {
    complain_type(r, tensor);
    return false;
  }
  if (vector && weights_scheme_is_quantised(tensor->scheme)) {
    r->mistyped++;
    complain(r, "tensor '%s' is a vector of type %s, expected F32, F16 or BF16", tensor->name,
             tensor->type);
    return false;
  }
  return true;
}

static void resolve_role(resolver *r, fe_role role, int32_t layer) {
  uint64_t rows, columns;
  fe_model *m = r->model;
  if (!r->family->has(m, role, layer, &rows, &columns)) return;
  const char *name = fe_role_name(&r->scratch, r->gguf, role, layer);
  if (!name) {
    r->failed = true;
    return;
  }
  fe_tensor *tensor = fe_tensors_find(&m->tensors, name);
  if (!tensor) {
    r->missing++;
    complain(r, "tensor '%s' is missing%s", name,
             role == FE_HEAD ? " (tie_word_embeddings is false)" : "");
    return;
  }
  tensor->used = true;
  if (!check_tensor(r, tensor, role, rows, columns)) return;
  if (m->weight_count == r->weight_limit) return; /* each tensor is one weight at most */
  m->weights[m->weight_count++] = (fe_weight){.name = tensor->name,
                                              .role = role,
                                              .layer = layer,
                                              .scheme = tensor->scheme,
                                              .rows = rows,
                                              .columns = columns,
                                              .data = tensor->data};
  if (!is_vector(role)) r->scheme_bytes[tensor->scheme] += tensor->bytes;
}

static void resolve_all(resolver *r) {
  uint32_t role = 0;
  for (; role < FE_ROLE_COUNT && !scopes[role].layer; role++) resolve_role(r, (fe_role)role, -1);
  for (uint32_t layer = 0; layer < r->model->layers; layer++)
    for (uint32_t i = role; i < FE_ROLE_COUNT; i++)
      if (scopes[i].layer) resolve_role(r, (fe_role)i, (int32_t)layer);
  for (; role < FE_ROLE_COUNT; role++)
    if (!scopes[role].layer) resolve_role(r, (fe_role)role, -1);
}

/* Buffers that older checkpoints carry along: recomputed, never read. */
static bool is_buffer(const char *name) {
  static const char suffix[] = ".rotary_emb.inv_freq";
  size_t length = strlen(name);
  return length >= sizeof suffix && strcmp(name + length - (sizeof suffix - 1), suffix) == 0;
}

/* A tied model's file may hold the output matrix once more; it must then be the embedding. */
static bool is_tied_copy(resolver *r, const fe_tensor *tensor) {
  const char *head = fe_role_name(&r->scratch, r->gguf, FE_HEAD, -1);
  const char *embed = fe_role_name(&r->scratch, r->gguf, FE_EMBED, -1);
  if (!head || !embed) r->failed = true;
  if (r->failed || !r->model->tied || strcmp(tensor->name, head) != 0) return false;
  const fe_tensor *embedding = fe_tensors_find(&r->model->tensors, embed);
  if (!embedding) return true; /* its absence is reported already */
  if (tensor->scheme == embedding->scheme && tensor->bytes == embedding->bytes &&
      memcmp(tensor->data, embedding->data, tensor->bytes) == 0)
    return true;
  r->unexpected++;
  complain(r, "tensor '%s' differs from '%s', but tie_word_embeddings is true", head, embed);
  return true;
}

static void report_unused(resolver *r) {
  for (size_t i = 0; i < r->model->tensors.count; i++) {
    const fe_tensor *tensor = &r->model->tensors.list[i];
    if (tensor->used || is_buffer(tensor->name) || is_tied_copy(r, tensor)) continue;
    r->unexpected++;
    complain(r, "tensor '%s' is not expected in a model of the family '%s'", tensor->name,
             r->family->name);
  }
}

static stele_status report(resolver *r, stele_sink *sink) {
  report_types(r);
  if (r->failed) return base_fail(sink, STELE_OUT_OF_MEMORY, "'%s': out of memory", r->model->path);
  size_t total = r->missing + r->unexpected + r->misshapen + r->mistyped;
  if (!total) return STELE_OK;
  stele_status status = total == r->mistyped ? STELE_UNSUPPORTED : STELE_BAD_FORMAT;
  base_fail(sink, status,
            "'%s': %zu tensors do not fit the configuration (missing: %zu, not expected: %zu, of "
            "another shape: %zu, of another type: %zu)",
            r->model->path, total, r->missing, r->unexpected, r->misshapen, r->mistyped);
  for (const complaint *c = r->first; c; c = c->next) base_sink_add(sink, "%s", c->text);
  return status;
}

static uint32_t most_bytes(const resolver *r) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < WEIGHTS_SCHEME_COUNT; i++)
    if (r->scheme_bytes[i] > r->scheme_bytes[best]) best = i;
  return best;
}

stele_status fe_resolve_weights(fe_model *model, const fe_family *family, bool gguf,
                                stele_sink *sink) {
  resolver r = {.model = model, .family = family, .gguf = gguf};
  r.end = &r.first;
  r.weight_limit = (uint32_t)base_min(model->tensors.count, UINT32_MAX);
  model->weights = base_arena_alloc(&model->arena, r.weight_limit, sizeof *model->weights);
  if (!model->weights) r.failed = true;
  if (!r.failed) resolve_all(&r);
  if (!r.failed) report_unused(&r);
  stele_status status = report(&r, sink);
  model->weight_scheme_class = most_bytes(&r);
  base_arena_deinit(&r.scratch);
  return status;
}
