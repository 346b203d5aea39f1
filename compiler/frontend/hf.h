/* What a Hugging Face directory holds beside the weights. */
#ifndef STELE_FE_HF_H
#define STELE_FE_HF_H

#include "frontend/config.h"

/* config.json. */
stele_status fe_hf_config(fe_model *model, const char *directory, stele_sink *sink,
                          fe_config *out_config) STELE_MUST_USE;

/* generation_config.json, tokenizer.json, tokenizer_config.json, chat_template.jinja, as far as
 * they are there: stop ids, generation defaults, chat template, where the tokenizer is. */
stele_status fe_hf_extras(fe_model *model, const char *directory, const fe_config *config,
                          stele_sink *sink) STELE_MUST_USE;

#endif
