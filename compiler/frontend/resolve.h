/* From the list of stored tensors to the weights of a description. */
#ifndef STELE_FE_RESOLVE_H
#define STELE_FE_RESOLVE_H

#include "frontend/frontend.h"

/* Finds the tensor of every role that the family has, in the order of roles.def: embedding, layer
 * by layer, head. Fails with a list of everything that is missing, unexpected, misshapen or of a
 * type that is not supported. */
stele_status fe_resolve_weights(fe_model *model, const fe_family *family, bool gguf,
                                stele_sink *sink) STELE_MUST_USE;

#endif
