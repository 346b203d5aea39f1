/* Phi-3, Phi-3.5, Phi-4: Llama's graph with query, key and value in one tensor, gate and up in
 * another; windows in all layers of some, longrope in those of 128k tokens, and in Phi-4-mini only
 * a part of each head turns. */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.positions = 4096,
                                        .theta = 1e4,
                                        .eps = 1e-5,
                                        .partial = 1.0,
                                        .gguf_pairing = STELE_PAIR_HALVES};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  bool windows = fe_config_get(config, "sliding_window") != NULL;
  fe_decoder_windows(config, model, windows ? FE_NEVER : FE_ALWAYS, 0);
  return fe_config_status(config);
}

static void place(const fe_model *model, fe_role role, bool gguf, fe_place *place) {
  (void)gguf;
  fe_place_fused_qkv(model, role, place);
  fe_place_fused_gate_up(model, role, place);
}

#define QKV "model.layers.%d.self_attn.qkv_proj.weight", "blk.%d.attn_qkv.weight"
#define GATE_UP "model.layers.%d.mlp.gate_up_proj.weight", "blk.%d.ffn_up.weight"

static const fe_name names[] = {{FE_Q, QKV},        {FE_K, QKV},      {FE_V, QKV},
                                {FE_GATE, GATE_UP}, {FE_UP, GATE_UP}, {FE_ROLE_COUNT, NULL, NULL}};

static const char *const hf_types[] = {"phi3", NULL};
static const char *const architectures[] = {"phi3", NULL};

const fe_family fe_family_phi3 = {
    .name = "phi3",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "Phi-3, Phi-3.5 and Phi-4, dense",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
    .place = place,
};
