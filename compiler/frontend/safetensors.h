/* Safetensors files, alone or as shards with an index. */
#ifndef STELE_FE_SAFETENSORS_H
#define STELE_FE_SAFETENSORS_H

#include "frontend/frontend.h"

/* Reads the header from the bytes of a file; everything points into them or into the arena. The
 * list is in the order of the names. Types other than F32, F16, BF16 and I32 have scheme
 * UINT32_MAX. */
stele_status fe_safetensors_parse(base_arena *arena, const char *path, const uint8_t *data,
                                  size_t size, stele_sink *sink,
                                  fe_tensors *out_tensors) STELE_MUST_USE;

/* Maps and reads the weights of a model's directory: model.safetensors, or the shards that
 * model.safetensors.index.json names. Maps are added to model->maps, tensors put into
 * model->tensors. */
stele_status fe_safetensors_open(fe_model *model, const char *directory,
                                 stele_sink *sink) STELE_MUST_USE;

#endif
