/* Lists of stored tensors: what both file formats check in the same way. */
#ifndef STELE_FE_TENSORS_H
#define STELE_FE_TENSORS_H

#include "frontend/frontend.h"

/* Computes tensor->bytes from its dimensions and scheme (0 when the scheme is UINT32_MAX, an
 * unsupported type): no dimension may be 0, no product may overflow, a row must be whole blocks. */
stele_status fe_tensor_size(const char *path, fe_tensor *tensor, stele_sink *sink) STELE_MUST_USE;

/* Puts the list in the order of its names; an error when one comes twice. */
stele_status fe_tensors_sort(const char *path, fe_tensors *tensors,
                             stele_sink *sink) STELE_MUST_USE;

/* Puts the list in the order of its bytes; an error when two share some. */
stele_status fe_tensors_check_overlap(const char *path, fe_tensors *tensors,
                                      stele_sink *sink) STELE_MUST_USE;

/* "[256, 64]" into text. */
void fe_tensor_shape_text(const fe_tensor *tensor, char text[96]);

#endif
