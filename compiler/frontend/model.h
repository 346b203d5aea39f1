/* Parts of opening a model that tests and fuzz targets call by themselves. */
#ifndef STELE_FE_MODEL_H
#define STELE_FE_MODEL_H

#include "frontend/frontend.h"

/* An empty model of that path. */
stele_status fe_model_create(const char *path, stele_sink *sink,
                             fe_model **out_model) STELE_MUST_USE;

/* Fills an empty model from the bytes of a GGUF file, which must outlive it. */
stele_status fe_model_fill_gguf(fe_model *model, const uint8_t *data, size_t size,
                                stele_sink *sink) STELE_MUST_USE;

#endif
