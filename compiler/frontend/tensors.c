/* Checks on lists of stored tensors that do not depend on the file format. */
#include "frontend/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weights/weights.h"

void fe_tensor_shape_text(const fe_tensor *tensor, char text[96]) {
  size_t at = 0;
  at += (size_t)snprintf(text + at, 96 - at, "[");
  for (uint32_t i = 0; i < tensor->dim_count; i++)
    at += (size_t)snprintf(text + at, 96 - at, "%s%" PRIu64, i ? ", " : "", tensor->dims[i]);
  snprintf(text + at, 96 - at, "]");
}

stele_status fe_tensor_size(const char *path, fe_tensor *tensor, stele_sink *sink) {
  char shape[96];
  size_t rows = 1, row_bytes = 0, elements = 1;
  bool fits = true;
  fe_tensor_shape_text(tensor, shape);
  for (uint32_t i = 0; i < tensor->dim_count; i++) {
    if (tensor->dims[i] == 0)
      return base_fail(sink, STELE_BAD_FORMAT, "'%s': tensor '%s' has the shape %s with a zero",
                       path, tensor->name, shape);
    fits = fits && base_mul(elements, tensor->dims[i], &elements);
    if (i + 1 < tensor->dim_count) fits = fits && base_mul(rows, tensor->dims[i], &rows);
  }
  uint64_t columns = tensor->dim_count ? tensor->dims[tensor->dim_count - 1] : 1;
  const weights_scheme *scheme = weights_scheme_get(tensor->scheme);
  if (scheme && fits && columns % scheme->block != 0)
    return base_fail(sink, STELE_BAD_FORMAT,
                     "'%s': tensor '%s' of type %s has rows of %" PRIu64
                     " numbers, expected a multiple of %u",
                     path, tensor->name, tensor->type, columns, scheme->block);
  if (scheme)
    fits = fits && weights_row_bytes(tensor->scheme, columns, &row_bytes) &&
           base_mul(rows, row_bytes, &tensor->bytes);
  if (!fits)
    return base_fail(sink, STELE_BAD_FORMAT,
                     "'%s': the size of tensor '%s' with the shape %s overflows", path,
                     tensor->name, shape);
  return STELE_OK;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const fe_tensor *)a)->name, ((const fe_tensor *)b)->name);
}

stele_status fe_tensors_sort(const char *path, fe_tensors *tensors, stele_sink *sink) {
  if (!tensors->count) return STELE_OK;
  qsort(tensors->list, tensors->count, sizeof *tensors->list, by_name);
  for (size_t i = 1; i < tensors->count; i++)
    if (by_name(&tensors->list[i - 1], &tensors->list[i]) == 0)
      return base_fail(sink, STELE_BAD_FORMAT, "'%s': tensor '%s' comes twice", path,
                       tensors->list[i].name);
  return STELE_OK;
}

fe_tensor *fe_tensors_find(const fe_tensors *tensors, const char *name) {
  fe_tensor wanted = {.name = name};
  if (!tensors->count) return NULL;
  return bsearch(&wanted, tensors->list, tensors->count, sizeof wanted, by_name);
}

static int by_place(const void *a, const void *b) {
  const fe_tensor *x = a, *y = b;
  if (x->data != y->data) return x->data < y->data ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
  return strcmp(x->name, y->name);
}

stele_status fe_tensors_check_overlap(const char *path, fe_tensors *tensors, stele_sink *sink) {
  if (!tensors->count) return STELE_OK;
  qsort(tensors->list, tensors->count, sizeof *tensors->list, by_place);
  for (size_t i = 1; i < tensors->count; i++) {
    const fe_tensor *before = &tensors->list[i - 1], *after = &tensors->list[i];
    if ((size_t)(after->data - before->data) < before->bytes && after->bytes)
      return base_fail(sink, STELE_BAD_FORMAT, "'%s': tensors '%s' and '%s' share bytes", path,
                       before->name, after->name);
  }
  return STELE_OK;
}
