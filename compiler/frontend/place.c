/* Where a weight's numbers are in the files: the usual names of roles.def or the family's own, the
 * usual shapes, and the ways in which several weights share a tensor. */
#include <stdio.h>
#include <string.h>

#include "frontend/decoder.h"
#include "frontend/families.h"

static const char *const names[][2] = {
#define ROLE(name, scope, shape, hf, gguf) [FE_##name] = {hf, gguf},
#include "frontend/roles.def"
#undef ROLE
};

static const char *pattern_of(const fe_family *family, fe_role role, bool gguf) {
  for (const fe_name *n = family->names; n && n->role != FE_ROLE_COUNT; n++)
    if (n->role == role && (gguf ? n->gguf : n->hf)) return gguf ? n->gguf : n->hf;
  return names[role][gguf];
}

static bool of_experts(fe_role role) {
  return role >= FE_EXPERT_GATE && role <= FE_EXPERT_DOWN_BIAS;
}

/* Experts: a tensor for each, or one with a dimension more. */
static void divide(const fe_model *model, fe_place *place) {
  uint64_t count = model->experts.count, *rows = &place->dims[0];
  *rows /= count ? count : 1;
  if (strstr(place->name, "%e")) {
    place->view.block = *rows;
    return;
  }
  memmove(place->dims + 1, place->dims, place->dim_count * sizeof *place->dims);
  place->dims[0] = count;
  place->dim_count++;
}

/* Norms that each head has a weight of its own in are matrices of heads. */
static fe_place per_head(const fe_model *model, fe_place place) {
  place.dims[0] /= model->key_head;
  place.dims[1] = model->key_head;
  place.dim_count = 2;
  return place;
}

fe_place fe_place_of(const fe_model *model, const fe_family *family, fe_role role, int32_t layer,
                     bool gguf) {
  uint64_t rows = 0, columns = 0;
  fe_place place = {.name = pattern_of(family, role, gguf), .view = {.step = 1}};
  family->has(model, role, layer, &rows, &columns);
  if (!fe_role_is_vector(role)) place.dims[place.dim_count++] = rows;
  place.dims[place.dim_count++] = columns;
  if (of_experts(role)) divide(model, &place);
  if (model->head_norm == FE_HEAD_NORM_OWN && (role == FE_Q_NORM || role == FE_K_NORM))
    place = per_head(model, place);
  if (family->place) family->place(model, role, gguf, &place);
  return place;
}

uint32_t fe_place_parts(const fe_place *place, uint64_t rows) {
  bool counted = strstr(place->name, "%e") && place->view.block;
  return counted ? (uint32_t)(rows / place->view.block) : 1;
}

/* ---- names ----------------------------------------------------------------------------- */

/* At most 12 characters are put in place of a mark. */
static size_t print_name(const char *pattern, int32_t layer, uint32_t expert, char text[128]) {
  size_t at = 0;
  for (const char *p = pattern; *p && at + 12 < 128; p++) {
    if (*p == '%' && p[1] == 'd')
      at += (size_t)snprintf(text + at, 12, "%d", layer);
    else if (*p == '%' && p[1] == 'e' && expert == UINT32_MAX)
      text[at++] = '*';
    else if (*p == '%' && p[1] == 'e')
      at += (size_t)snprintf(text + at, 12, "%u", expert);
    else
      text[at++] = *p;
    if (*p == '%') p++;
  }
  text[at] = 0;
  return at;
}

const char *fe_place_name(base_arena *arena, const char *pattern, int32_t layer, uint32_t expert) {
  char text[128];
  size_t length = print_name(pattern, layer, expert, text);
  return base_arena_copy(arena, text, length);
}

const char *fe_role_name(base_arena *arena, const fe_model *model, bool gguf, fe_role role,
                         int32_t layer) {
  const char *pattern = pattern_of(fe_family_of(model), role, gguf);
  return fe_place_name(arena, pattern, layer, UINT32_MAX);
}

bool fe_model_stores(const fe_model *model, bool gguf, fe_role role) {
  char text[128];
  print_name(pattern_of(fe_family_of(model), role, gguf), fe_role_in_layers(role) ? 0 : -1, 0,
             text);
  return fe_tensors_find(&model->tensors, text) != NULL;
}

/* ---- several weights in a tensor ------------------------------------------------------- */

/* 0 to 2: Q, K, V or their biases; otherwise -1. */
static int qkv_index(fe_role role) {
  if (role >= FE_Q && role <= FE_V) return (int)(role - FE_Q);
  if (role >= FE_Q_BIAS && role <= FE_V_BIAS) return (int)(role - FE_Q_BIAS);
  return -1;
}

void fe_place_fused_qkv(const fe_model *model, fe_role role, fe_place *place) {
  const uint64_t rows[] = {(uint64_t)model->heads * model->key_head,
                           (uint64_t)model->kv_heads * model->key_head,
                           (uint64_t)model->kv_heads * model->value_head};
  int index = qkv_index(role);
  if (index < 0) return;
  for (int i = 0; i < index; i++) place->view.first += rows[i];
  place->dims[0] = rows[0] + rows[1] + rows[2];
}

void fe_place_heads_qkv(const fe_model *model, fe_role role, fe_place *place) {
  const uint64_t rows[] = {model->key_head, model->key_head, model->value_head};
  int index = qkv_index(role);
  if (index < 0) return;
  place->view.block = rows[index];
  place->view.stride = rows[0] + rows[1] + rows[2];
  for (int i = 0; i < index; i++) place->view.first += rows[i];
  place->dims[0] = model->heads * place->view.stride;
}

void fe_place_fused_gate_up(const fe_model *model, fe_role role, fe_place *place) {
  bool gate = role == FE_GATE || role == FE_GATE_BIAS;
  if (!gate && role != FE_UP && role != FE_UP_BIAS) return;
  place->view.first = gate ? 0 : model->intermediate;
  place->dims[0] = 2 * (uint64_t)model->intermediate;
}

/* kv_a_proj_with_mqa has the compressed part, then the key's turning one; kv_b_proj the rows that
 * unfold a head's key, then those of its value. */
void fe_place_latent(const fe_model *model, fe_role role, bool gguf, fe_place *place) {
  const fe_latent *l = &model->latent;
  const uint64_t both = (uint64_t)l->nope + l->value;
  if (role == FE_Q && l->q_rank)
    place->name = gguf ? "blk.%d.attn_q_b.weight" : "model.layers.%d.self_attn.q_b_proj.weight";
  if (role == FE_KV_A || role == FE_K_ROPE) {
    place->dims[0] = (uint64_t)l->kv_rank + l->rope;
    place->view.first = role == FE_K_ROPE ? l->kv_rank : 0;
  }
  if (role != FE_K_UP && role != FE_V_UP) return;
  bool key = role == FE_K_UP;
  if (gguf) {
    *place =
        (fe_place){.name = place->name,
                   .dim_count = 3,
                   .dims = {model->heads, key ? l->kv_rank : l->value, key ? l->nope : l->kv_rank},
                   .view = {.step = 1}};
    return;
  }
  place->dims[0] = model->heads * both;
  place->dims[1] = l->kv_rank;
  place->view = (fe_view){.block = key ? l->kv_rank : l->value,
                          .first = key ? 0 : l->nope,
                          .stride = both,
                          .step = 1,
                          .transposed = key};
}

void fe_place_norm_less_one(const fe_model *model, fe_role role, bool gguf, fe_place *place) {
  (void)model;
  if (!gguf && fe_role_is_norm(role)) place->plus = 1.0f;
}

void fe_place_transpose(fe_place *place) {
  uint64_t rows = place->dims[0];
  place->dims[0] = place->dims[1];
  place->dims[1] = rows;
  place->view.transposed = true;
}
