/* What the builder takes for granted of a description and of the options. All that is amiss is
 * listed at once. */
#include "build.h"
#include "weights/weights.h"

static const char *role_name(fe_role role) {
  static const char *const names[] = {
#define ROLE(name, ...) #name,
#include "frontend/roles.def"
#undef ROLE
  };
  return names[role];
}

static void need(const fe_model *model, fe_role role, int32_t layer, uint32_t *faults,
                 stele_sink *sink) {
  if (fe_model_weight(model, role, layer)) return;
  ++*faults;
  if (layer < 0)
    base_sink_add(sink, "'%s': no weight for %s", model->path, role_name(role));
  else
    base_sink_add(sink, "'%s': no weight for %s of layer %d", model->path, role_name(role), layer);
}

/* Norms are left out where a layer has none. */
static void check_layer_weights(const fe_model *model, uint32_t index, uint32_t *faults,
                                stele_sink *sink) {
  static const fe_role usual[] = {FE_K, FE_V}, latent[] = {FE_KV_A, FE_K_ROPE, FE_K_UP, FE_V_UP};
  static const fe_role dense[] = {FE_UP, FE_DOWN};
  static const fe_role experts[] = {FE_EXPERT_GATE, FE_EXPERT_UP, FE_EXPERT_DOWN};
  int32_t layer = (int32_t)index;
  need(model, FE_Q, layer, faults, sink);
  need(model, FE_O, layer, faults, sink);
  for (size_t i = 0; !model->latent.kv_rank && i < 2; i++)
    need(model, usual[i], layer, faults, sink);
  for (size_t i = 0; model->latent.kv_rank && i < 4; i++)
    need(model, latent[i], layer, faults, sink);
  bool routed = fe_model_weight(model, FE_ROUTER, layer) != NULL;
  for (size_t i = 0; !routed && i < 2; i++) need(model, dense[i], layer, faults, sink);
  for (size_t i = 0; routed && i < 3; i++) need(model, experts[i], layer, faults, sink);
}

static void check_weights(const fe_model *model, uint32_t *faults, stele_sink *sink) {
  need(model, FE_EMBED, -1, faults, sink);
  need(model, FE_FINAL_NORM, -1, faults, sink);
  if (!model->tied) need(model, FE_HEAD, -1, faults, sink);
  for (uint32_t i = 0; i < model->layers; i++) check_layer_weights(model, i, faults, sink);
}

static void check_layers(const fe_model *model, uint32_t *faults, stele_sink *sink) {
  for (uint32_t i = 0; i < model->layers; i++) {
    const fe_layer *layer = &model->layer[i];
    if (layer->group_kind > STELE_GROUP_CHUNK) {
      ++*faults;
      base_sink_add(sink, "layer %u: caches of kind %u are not supported", i, layer->group_kind);
    }
    if (layer->rope >= 0 && (uint32_t)layer->rope >= model->rope_count) {
      ++*faults;
      base_sink_add(sink, "layer %u: rope %d, but the model has %u", i, layer->rope,
                    model->rope_count);
    }
  }
}

static void check_options(const fe_model *model, const ir_build_options *options, uint32_t *faults,
                          stele_sink *sink) {
  size_t bytes;
  if (options->capacity == 0 || options->capacity > INT32_MAX || options->max_lanes == 0 ||
      options->prefill_width == 0 || options->verify_width == 0) {
    ++*faults;
    base_sink_add(
        sink,
        "capacity %u, lanes %u, prefill width %u and verify width %u: each must be at least 1",
        options->capacity, options->max_lanes, options->prefill_width, options->verify_width);
  }
  if (!weights_row_bytes(options->cache_scheme, model->key_head, &bytes) ||
      !weights_row_bytes(options->cache_scheme, model->value_head, &bytes)) {
    const weights_scheme *scheme = weights_scheme_get(options->cache_scheme);
    ++*faults;
    base_sink_add(sink,
                  "a cache in '%s' needs head sizes that its block of %u divides, not %u and %u",
                  scheme ? scheme->name : "?", scheme ? scheme->block : 0, model->key_head,
                  model->value_head);
  }
}

/* Positions that are a table end where it ends. */
static void check_positions(const fe_model *model, const ir_build_options *options,
                            uint32_t *faults, stele_sink *sink) {
  const fe_weight *w = fe_model_weight(model, FE_POSITIONS, -1);
  if (!w || options->capacity + (uint64_t)model->positions_offset <= w->rows) return;
  ++*faults;
  base_sink_add(sink, "a capacity of %u tokens, but '%s' learned only %u positions",
                options->capacity, model->path, (uint32_t)w->rows - model->positions_offset);
}

stele_status ir_build_check(const fe_model *model, const ir_build_options *options,
                            stele_sink *sink) {
  uint32_t faults = 0;
  if (sink) sink->text[0] = 0;
  check_options(model, options, &faults, sink);
  check_positions(model, options, &faults, sink);
  check_layers(model, &faults, sink);
  check_weights(model, &faults, sink);
  return faults ? STELE_UNSUPPORTED : STELE_OK;
}
