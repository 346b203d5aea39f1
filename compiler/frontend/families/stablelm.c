/* StableLM: Llama's graph with centred norms and a quarter of each head turning. Models differ in
 * biases of query, key and value, in norms of which each head has its own, and in whether attention
 * and feed-forward are side by side behind one norm. GGUF files say the last by what they store:
 * their field is true where a configuration was silent (convert_hf_to_gguf.py, StableLMModel). */
#include "frontend/decoder.h"
#include "frontend/families.h"
#include "stele/program.h"

static bool is_parallel(const fe_config *config, const fe_model *model) {
  bool parallel = fe_config_bool(config, "use_parallel_residual", false);
  return config->gguf ? !fe_model_stores(model, true, FE_MLP_NORM) : parallel;
}

static stele_status describe(const fe_config *config, fe_model *model, stele_sink *sink) {
  const fe_decoder_defaults defaults = {.positions = 4096,
                                        .theta = 1e4,
                                        .eps = 1e-5,
                                        .partial = 0.25,
                                        .gguf_pairing = STELE_PAIR_HALVES,
                                        .norm = FE_NORM_LAYER};
  BASE_TRY(fe_decoder_describe(config, model, &defaults, sink));
  bool parallel = is_parallel(config, model);
  for (uint32_t i = 0; i < model->layers; i++) model->layer[i].parallel = parallel;
  if (parallel) fe_decoder_drop(model, FE_ROLE(FE_MLP_NORM) | FE_ROLE(FE_MLP_NORM_BIAS));
  model->head_norm = FE_HEAD_NORM_OWN;
  fe_decoder_optional(config, model, "qk_layernorm", false, FE_HEAD_NORMS);
  fe_decoder_optional(config, model, "use_qkv_bias", false, FE_QKV_BIASES);
  return fe_config_status(config);
}

/* A tensor for each head; in GGUF files one for all of them. */
static void place(const fe_model *model, fe_role role, bool gguf, fe_place *place) {
  if (gguf || (role != FE_Q_NORM && role != FE_K_NORM)) return;
  place->dim_count = 1;
  place->dims[0] = place->view.block = model->key_head;
}

static const fe_name names[] = {
    {FE_Q_NORM, "model.layers.%d.self_attn.q_layernorm.norms.%e.weight", NULL},
    {FE_K_NORM, "model.layers.%d.self_attn.k_layernorm.norms.%e.weight", NULL},
    {FE_ROLE_COUNT, NULL, NULL}};

static const char *const hf_types[] = {"stablelm", NULL};
static const char *const architectures[] = {"stablelm", NULL};

const fe_family fe_family_stablelm = {
    .name = "stablelm",
    .hf_types = hf_types,
    .gguf_architectures = architectures,
    .summary = "StableLM 3B, StableLM 2",
    .describe = describe,
    .has = fe_decoder_has,
    .names = names,
    .place = place,
};
