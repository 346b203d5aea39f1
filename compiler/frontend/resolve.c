/* Matching tensors with roles. Complaints are gathered first and reported together, after a line
 * that counts them; types that are not supported are grouped, as in a quantised file the same one
 * comes hundreds of times. */
#include "frontend/resolve.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- one tensor ------------------------------------------------------------------------ */

static void complain_shape(resolver *r, const fe_tensor *tensor, const fe_place *place) {
  fe_tensor expected = {.dim_count = place->dim_count};
  char found[96], wanted[96];
  memcpy(expected.dims, place->dims, sizeof expected.dims);
  fe_tensor_shape_text(tensor, found);
  fe_tensor_shape_text(&expected, wanted);
  r->misshapen++;
  complain(r, "tensor '%s' has the shape %s, expected %s", tensor->name, found, wanted);
}

/* Rows of quantised schemes can be taken out of a tensor, columns can't. */
static bool check_scheme(resolver *r, const fe_tensor *tensor, fe_role role,
                         const fe_place *place) {
  bool quantised = supported(tensor->scheme) && weights_scheme_is_quantised(tensor->scheme);
  if (!supported(tensor->scheme)) {
    complain_type(r, tensor);
  } else if (quantised && fe_role_is_vector(role)) {
    r->mistyped++;
    complain(r, "tensor '%s' is a vector of type %s, expected F32, F16 or BF16", tensor->name,
             tensor->type);
  } else if (quantised && (place->view.transposed || place->plus != 0)) {
    r->mistyped++;
    complain(r,
             "tensor '%s' is of type %s, but its numbers are taken out one by one: expected F32, "
             "F16 or BF16",
             tensor->name, tensor->type);
  } else {
    return true;
  }
  return false;
}

static bool check_tensor(resolver *r, const fe_tensor *tensor, fe_role role,
                         const fe_place *place) {
  bool same = tensor->dim_count == place->dim_count;
  for (uint32_t i = 0; same && i < place->dim_count; i++) same = tensor->dims[i] == place->dims[i];
  if (same) return check_scheme(r, tensor, role, place);
  complain_shape(r, tensor, place);
  return false;
}

/* Files that were written from a part of the model's class lack the prefix. */
static fe_tensor *find_tensor(const resolver *r, const char *name) {
  fe_tensor *tensor = fe_tensors_find(&r->model->tensors, name);
  const char *prefix = r->gguf ? NULL : r->family->prefix;
  if (tensor || !prefix || strncmp(name, prefix, strlen(prefix)) != 0) return tensor;
  return fe_tensors_find(&r->model->tensors, name + strlen(prefix));
}

static const fe_tensor *find_part(resolver *r, fe_role role, int32_t layer, const fe_place *place,
                                  uint32_t expert) {
  const char *name = fe_place_name(&r->scratch, place->name, layer, expert);
  fe_tensor *tensor = name ? find_tensor(r, name) : NULL;
  if (!name) {
    r->failed = true;
  } else if (!tensor) {
    r->missing++;
    complain(r, "tensor '%s' is missing%s", name,
             role == FE_HEAD ? " (tie_word_embeddings is false)" : "");
  } else {
    tensor->used = true;
    if (check_tensor(r, tensor, role, place)) return tensor;
  }
  return NULL;
}

/* ---- one weight ------------------------------------------------------------------------ */

/* All parts, of one type. */
static bool find_parts(resolver *r, fe_weight *w, const fe_place *place) {
  bool sound = true;
  const fe_tensor **parts = base_arena_alloc(&r->model->arena, w->part_count + 1, sizeof *parts);
  r->failed = r->failed || !parts;
  for (uint32_t i = 0; parts && i < w->part_count; i++) {
    parts[i] = find_part(r, (fe_role)w->role, w->layer, place, i);
    sound = sound && parts[i];
    if (!sound || parts[i]->scheme == parts[0]->scheme) continue;
    r->mistyped++;
    sound = false;
    complain(r, "tensor '%s' is of type %s, but '%s' of type %s: expected one type", parts[i]->name,
             parts[i]->type, parts[0]->name, parts[0]->type);
  }
  w->parts = parts;
  return parts && sound;
}

/* Where the whole weight lies in a tensor as it is. */
static const uint8_t *in_one_piece(const fe_weight *w) {
  const fe_view *v = &w->view;
  uint64_t rows = w->vector ? w->columns : w->rows;
  size_t bytes = 0;
  if (w->part_count != 1 || v->transposed || w->plus != 0 || v->step != 1) return NULL;
  if (v->block && v->block != rows && v->block != v->stride) return NULL;
  if (!weights_row_bytes(w->scheme, w->vector ? 1 : w->columns, &bytes)) return NULL;
  return w->parts[0]->data + v->first * bytes;
}

/* The tensor's own name if it is the weight's alone; "TENSOR:role" of a part. */
static const char *weight_name(resolver *r, const fe_weight *w, const fe_place *place) {
  static const char *const roles[] = {
#define ROLE(name, ...) #name,
#include "frontend/roles.def"
#undef ROLE
  };
  base_arena *arena = &r->model->arena;
  const char *tensor = fe_place_name(arena, place->name, w->layer, UINT32_MAX);
  uint64_t stored = 1;
  for (uint32_t i = 0; i < place->dim_count; i++) stored *= place->dims[i];
  if (!tensor || stored * w->part_count == w->rows * w->columns) return tensor;
  char *name = base_arena_format(arena, "%s:%s", tensor, roles[w->role]);
  for (char *p = name ? name + strlen(tensor) : name; p && *p; p++)
    if (*p >= 'A' && *p <= 'Z') *p = (char)(*p - 'A' + 'a');
  return name;
}

/* A weight that no file has: all its numbers are one. */
static const char *constant_name(resolver *r, const fe_weight *w) {
  return fe_role_name(&r->model->arena, r->model, r->gguf, (fe_role)w->role, w->layer);
}

static bool locate(resolver *r, fe_weight *w, const fe_place *place) {
  if (!place->name) {
    w->name = constant_name(r, w);
    w->scheme = STELE_F32;
    return true;
  }
  w->part_count = fe_place_parts(place, w->vector ? w->columns : w->rows);
  if (!find_parts(r, w, place)) return false;
  w->name = weight_name(r, w, place);
  w->scheme = w->plus == 0 ? w->parts[0]->scheme : (uint32_t)STELE_F32;
  w->data = in_one_piece(w);
  size_t bytes;
  if (!w->vector && weights_row_bytes(w->scheme, w->columns, &bytes))
    r->scheme_bytes[w->scheme] += w->rows * bytes;
  return true;
}

static void resolve_role(resolver *r, fe_role role, int32_t layer) {
  fe_model *m = r->model;
  fe_weight w = {.role = role, .layer = layer, .vector = fe_role_is_vector(role)};
  if (!r->family->has(m, role, layer, &w.rows, &w.columns)) return;
  fe_place place = fe_place_of(m, r->family, role, layer, r->gguf);
  w.view = place.view;
  w.plus = place.plus;
  if (role >= FE_EXPERT_GATE && role <= FE_EXPERT_DOWN) w.experts = m->experts.count;
  if (!locate(r, &w, &place)) return;
  r->failed = r->failed || !w.name;
  m->weights[m->weight_count++] = w;
}

static void each_role(resolver *r, void (*visit)(resolver *r, fe_role role, int32_t layer)) {
  uint32_t role = 0;
  for (; role < FE_ROLE_COUNT && !fe_role_in_layers((fe_role)role); role++)
    visit(r, (fe_role)role, -1);
  for (uint32_t layer = 0; layer < r->model->layers; layer++)
    for (uint32_t i = role; i < FE_ROLE_COUNT; i++)
      if (fe_role_in_layers((fe_role)i)) visit(r, (fe_role)i, (int32_t)layer);
  for (; role < FE_ROLE_COUNT; role++)
    if (!fe_role_in_layers((fe_role)role)) visit(r, (fe_role)role, -1);
}

static void count_role(resolver *r, fe_role role, int32_t layer) {
  uint64_t rows, columns;
  if (r->family->has(r->model, role, layer, &rows, &columns)) r->weight_limit++;
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), size = strlen(end);
  return length >= size && strcmp(text + length - size, end) == 0;
}

/* Buffers that older checkpoints carry along: recomputed, never read. */
static bool is_buffer(const resolver *r, const char *name) {
  for (const char *const *end = r->family->buffers; end && *end; end++)
    if (ends_with(name, *end)) return true;
  return ends_with(name, ".rotary_emb.inv_freq");
}

/* Of a layer behind the decoder's. */
static bool is_ignored(const resolver *r, const char *name) {
  uint64_t layers = r->model->layers;
  const char *digits = name + strcspn(name, "0123456789");
  if (!*digits || digits == name || digits[-1] != '.') return false;
  uint64_t layer = strtoull(digits, NULL, 10);
  return layer >= layers && layer - layers < r->model->ignored_layers;
}

/* A tied model's file may hold the output matrix once more; it must then be the embedding. */
static bool is_tied_copy(resolver *r, const fe_tensor *tensor) {
  const char *head = fe_role_name(&r->scratch, r->model, r->gguf, FE_HEAD, -1);
  const char *embed = fe_role_name(&r->scratch, r->model, r->gguf, FE_EMBED, -1);
  if (!head || !embed) r->failed = true;
  if (r->failed || !r->model->tied || strcmp(tensor->name, head) != 0) return false;
  const fe_tensor *embedding = find_tensor(r, embed);
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
    if (tensor->used || is_buffer(r, tensor->name) || is_ignored(r, tensor->name) ||
        is_tied_copy(r, tensor))
      continue;
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
  each_role(&r, count_role);
  model->weights = base_arena_alloc(&model->arena, r.weight_limit, sizeof *model->weights);
  if (!model->weights) r.failed = true;
  if (!r.failed) each_role(&r, resolve_role);
  if (!r.failed) report_unused(&r);
  stele_status status = report(&r, sink);
  model->weight_scheme_class = most_bytes(&r);
  base_arena_deinit(&r.scratch);
  return status;
}
