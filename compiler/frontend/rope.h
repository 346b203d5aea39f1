/* Rotary position embedding: frequencies with their scaling. */
#ifndef STELE_FE_ROPE_H
#define STELE_FE_ROPE_H

#include "frontend/config.h"

typedef struct fe_rope_options {
  const char *object;    /* the field that describes it, such as "rope_parameters"; NULL: no field,
                            the angles follow from theta alone */
  uint32_t head, offset; /* of the elements of a head from the offset on, these turn */
  uint32_t pairing;
  double theta;    /* where rope_theta is not said */
  double partial;  /* part of them that turns where partial_rotary_factor is not said; 0: all do,
                      and a file that says otherwise is refused */
  bool yarn_exact; /* yarn: "truncate" is false where it is not said */
} fe_rope_options;

/* Adds a rope to model->ropes, behind those that are there. A GGUF file's tensors rope_freqs and
 * rope_factors_long and _short scale the frequencies of the first. Wrong fields go to the
 * configuration's log (the rope is then only a placeholder); the status says whether memory
 * sufficed. */
stele_status fe_rope_add(const fe_config *config, fe_model *model, const fe_rope_options *options,
                         stele_sink *sink) STELE_MUST_USE;

/* The factor of scores that goes with yarn: 1 + 0.1 mscale log(factor) for factors above 1. */
double fe_rope_yarn_scale(double factor, double mscale);

#endif
