/* Layers that differ from one another: windows, chunks, layers without rope. What config.json
 * lists layer by layer, older files say by an interval, and GGUF files by a list of flags or not at
 * all. */
#include <string.h>

#include "frontend/decoder.h"
#include "stele/program.h"

/* A kind of layer that sees a part of the text only. */
typedef struct partial_kind {
  const char *type, *field; /* in layer_types; of its tokens */
  uint32_t group_kind;
} partial_kind;

static const partial_kind window_kind = {"sliding_attention", "sliding_window", STELE_GROUP_WINDOW};
static const partial_kind chunk_kind = {"chunked_attention", "attention_chunk_size",
                                        STELE_GROUP_CHUNK};

static bool is_full(uint32_t layer, uint32_t full_every) {
  if (full_every == FE_NEVER) return false;
  return full_every == FE_ALWAYS || (layer + 1) % full_every == 0;
}

static void set_partial(fe_layer *layer, const partial_kind *kind, bool partial) {
  layer->group_kind = partial ? kind->group_kind : (uint32_t)STELE_GROUP_FULL;
}

/* An array with an entry for each layer, or NULL. */
static const json_t *layer_list(const fe_config *config, const fe_model *model, const char *field) {
  const json_t *list = fe_config_get(config, field);
  if (!list) return NULL;
  if (json_is_array(list) && json_array_size(list) == model->layers) return list;
  fe_config_bad(config, field, "is not a list of %u entries, one for each layer", model->layers);
  return NULL;
}

static void read_types(const fe_config *config, fe_model *model, const partial_kind *kind,
                       const json_t *types) {
  for (uint32_t i = 0; i < model->layers; i++) {
    const char *type = json_string_value(json_array_get(types, i));
    bool partial = type && strcmp(type, kind->type) == 0;
    set_partial(&model->layer[i], kind, partial);
    if (!partial && (!type || strcmp(type, "full_attention") != 0))
      fe_config_bad(config, "layer_types",
                    "has %s%.64s%s at %u, which is not supported; supported here: "
                    "full_attention, %s",
                    type ? "\"" : "", type ? type : "no text", type ? "\"" : "", i, kind->type);
  }
}

/* GGUF: a flag for each layer that has a window, or every how many layers one has none. */
static void read_pattern(const fe_config *config, fe_model *model, const partial_kind *kind,
                         uint32_t full_every) {
  const char *field = "sliding_window_pattern";
  const json_t *pattern = fe_config_get(config, field);
  const json_t *flags = json_is_array(pattern) ? layer_list(config, model, field) : NULL;
  if (pattern && !json_is_array(pattern)) full_every = fe_config_count(config, field, full_every);
  for (uint32_t i = 0; i < model->layers; i++) {
    const json_t *flag = json_array_get(flags, i);
    bool partial = !is_full(i, full_every);
    if (flag) partial = json_is_true(flag) || json_integer_value(flag) != 0;
    set_partial(&model->layer[i], kind, partial);
  }
}

static void read_window(const fe_config *config, fe_model *model, const partial_kind *kind,
                        uint32_t fallback) {
  uint32_t count = 0, window = 0;
  for (uint32_t i = 0; i < model->layers; i++)
    count += model->layer[i].group_kind == kind->group_kind;
  if (count) window = fe_config_count(config, kind->field, fallback ? fallback : FE_REQUIRED);
  if (!count) fe_config_get(config, kind->field);
  for (uint32_t i = 0; i < model->layers; i++)
    if (model->layer[i].group_kind == kind->group_kind) model->layer[i].window = window;
}

static void read_partial(const fe_config *config, fe_model *model, const partial_kind *kind,
                         uint32_t full_every, uint32_t fallback) {
  const json_t *types = layer_list(config, model, "layer_types");
  if (types) {
    read_types(config, model, kind, types);
    fe_config_get(config, "sliding_window_pattern"); /* says the same in fewer words */
  } else {
    read_pattern(config, model, kind, full_every);
  }
  read_window(config, model, kind, fallback);
}

void fe_decoder_windows(const fe_config *config, fe_model *model, uint32_t full_every,
                        uint32_t fallback) {
  read_partial(config, model, &window_kind, full_every, fallback);
}

void fe_decoder_chunks(const fe_config *config, fe_model *model, uint32_t full_every,
                       uint32_t fallback) {
  read_partial(config, model, &chunk_kind, full_every, fallback);
}

void fe_decoder_window_flag(const fe_config *config, fe_model *model, uint32_t fallback_layers) {
  bool flag = fe_config_bool(config, "use_sliding_window", false);
  const json_t *window = fe_config_get(config, "sliding_window");
  uint32_t first = fe_config_index(config, "max_window_layers", fallback_layers);
  const json_t *types = layer_list(config, model, "layer_types");
  if (!flag || !window) {
    fe_decoder_windows(config, model, FE_ALWAYS, 0);
    return;
  }
  if (types) {
    read_types(config, model, &window_kind, types);
  } else {
    for (uint32_t i = 0; i < model->layers; i++)
      set_partial(&model->layer[i], &window_kind, i >= first);
  }
  read_window(config, model, &window_kind, 0);
}

void fe_decoder_no_rope(const fe_config *config, fe_model *model, uint32_t interval) {
  const json_t *given = fe_config_get(config, "no_rope_layers");
  bool said = given && !(json_is_array(given) && json_array_size(given) == 0);
  const json_t *list = said ? layer_list(config, model, "no_rope_layers") : NULL;
  interval = fe_config_count(config, "no_rope_layer_interval", interval);
  for (uint32_t i = 0; i < model->layers; i++) {
    const json_t *flag = json_array_get(list, i);
    if (list && !json_is_boolean(flag) && !json_is_integer(flag))
      fe_config_bad(config, "no_rope_layers", "has no number at %u", i);
    bool turned =
        list ? json_is_true(flag) || json_integer_value(flag) != 0 : (i + 1) % interval != 0;
    if (!turned) model->layer[i].rope = -1;
  }
}
