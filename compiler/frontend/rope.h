/* Rotary position embedding: frequencies with their scaling. */
#ifndef STELE_FE_ROPE_H
#define STELE_FE_ROPE_H

#include "frontend/config.h"

/* Adds the rope that rope_parameters describes to model->ropes: all `head` elements turn. A
 * GGUF file's tensor rope_freqs.weight divides the frequencies. Wrong fields go to the
 * configuration's log (the rope is then only a placeholder); the status says whether memory
 * sufficed. */
stele_status fe_rope_read(const fe_config *config, fe_model *model, uint32_t head, uint32_t pairing,
                          double default_theta, stele_sink *sink) STELE_MUST_USE;

#endif
