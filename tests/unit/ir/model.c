/* Fills a description as a front-end would: weights by role, names as Hugging Face has them. */
#include "model.h"

#include <stdio.h>
#include <string.h>

typedef struct maker {
  base_arena *arena;
  fe_model *model;
} maker;

enum { MAX_WEIGHTS = 4096 };

static const char *role_pattern(fe_role role) {
  static const char *const patterns[] = {
#define ROLE(name, scope, hf, gguf) hf,
#include "frontend/roles.def"
#undef ROLE
  };
  return patterns[role];
}

static void add(maker *m, fe_role role, int32_t layer, uint32_t scheme, uint64_t rows,
                uint64_t columns) {
  char name[128];
  const char *pattern = role_pattern(role), *hole = strstr(pattern, "%d");
  if (hole)
    snprintf(name, sizeof name, "%.*s%d%s", (int)(hole - pattern), pattern, layer, hole + 2);
  else
    snprintf(name, sizeof name, "%s", pattern);
  m->model->weights[m->model->weight_count++] = (fe_weight){
      .name = base_arena_copy(m->arena, name, strlen(name)),
      .role = role,
      .layer = layer,
      .scheme = scheme,
      .rows = rows,
      .columns = columns,
  };
}

static void add_layer(maker *m, const test_model_shape *s, int32_t layer) {
  uint64_t q = (uint64_t)s->heads * s->head, kv = (uint64_t)s->kv_heads * s->head;
  add(m, FE_ATTENTION_NORM, layer, STELE_F32, 1, s->hidden);
  add(m, FE_Q, layer, s->scheme, q, s->hidden);
  add(m, FE_K, layer, s->scheme, kv, s->hidden);
  add(m, FE_V, layer, s->scheme, kv, s->hidden);
  if (s->biases) {
    add(m, FE_Q_BIAS, layer, STELE_F32, 1, q);
    add(m, FE_K_BIAS, layer, STELE_F32, 1, kv);
    add(m, FE_V_BIAS, layer, STELE_F32, 1, kv);
  }
  if (s->head_norms) {
    add(m, FE_Q_NORM, layer, STELE_F32, 1, s->head);
    add(m, FE_K_NORM, layer, STELE_F32, 1, s->head);
  }
  add(m, FE_O, layer, s->scheme, s->hidden, q);
  add(m, FE_MLP_NORM, layer, STELE_F32, 1, s->hidden);
  add(m, FE_GATE, layer, s->scheme, s->intermediate, s->hidden);
  add(m, FE_UP, layer, s->scheme, s->intermediate, s->hidden);
  add(m, FE_DOWN, layer, s->scheme, s->hidden, s->intermediate);
}

static void add_rope(maker *m, const test_model_shape *s) {
  fe_rope *rope = base_arena_alloc(m->arena, 1, sizeof *rope);
  *rope = (fe_rope){.rotary = s->head,
                    .rule = s->rope_rule,
                    .base = 10000,
                    .factor = 2,
                    .attention_factor = 1,
                    .original = 32};
  m->model->ropes = rope;
  m->model->rope_count = 1;
}

fe_model *test_model_create(base_arena *arena, const test_model_shape *s) {
  fe_model *model = base_arena_alloc(arena, 1, sizeof *model);
  if (!model) return NULL;
  *model = (fe_model){.path = "tiny",
                      .family = "llama",
                      .name = "tiny",
                      .vocab = s->vocab,
                      .hidden = s->hidden,
                      .layers = s->layers,
                      .heads = s->heads,
                      .kv_heads = s->kv_heads,
                      .key_head = s->head,
                      .value_head = s->head,
                      .intermediate = s->intermediate,
                      .tied = s->tied,
                      .norm_eps = 1e-5,
                      .embed_scale = 1,
                      .attention_scale = 0.25};
  model->layer = base_arena_alloc(arena, s->layers, sizeof *model->layer);
  model->weights = base_arena_alloc(arena, MAX_WEIGHTS, sizeof *model->weights);
  maker m = {arena, model};
  add_rope(&m, s);
  add(&m, FE_EMBED, -1, s->scheme, s->vocab, s->hidden);
  for (uint32_t i = 0; i < s->layers; i++) add_layer(&m, s, (int32_t)i);
  add(&m, FE_FINAL_NORM, -1, STELE_F32, 1, s->hidden);
  if (!s->tied) add(&m, FE_HEAD, -1, s->scheme, s->vocab, s->hidden);
  return model;
}
