/* NumPy's array file, format 1.0 (numpy.lib.format): magic, version, length of the header, the
 * header (a Python dict as text, padded so that the data starts at a multiple of 64), the data. */
#include <string.h>

#include "cli.h"

static size_t make_header(char header[256], const size_t *shape, size_t dimensions) {
  enum { PREFIX = 10 };
  char text[200];
  size_t used =
      (size_t)snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
  for (size_t i = 0; i < dimensions; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, i ? ", %zu" : "%zu", shape[i]);
  used += (size_t)snprintf(text + used, sizeof text - used, dimensions == 1 ? ",), }" : "), }");
  size_t size = base_align(PREFIX + used + 1, 64);
  memcpy(header, "\x93NUMPY\x01\x00", 8);
  header[8] = (char)((size - PREFIX) & 0xff);
  header[9] = (char)((size - PREFIX) >> 8);
  memset(header + PREFIX, ' ', size - PREFIX);
  memcpy(header + PREFIX, text, used);
  header[size - 1] = '\n';
  return size;
}

stele_status cli_npy_write(const char *path, const float *data, const size_t *shape,
                           size_t dimensions, stele_sink *sink) {
  char header[256];
  size_t count = 1, header_bytes = make_header(header, shape, dimensions);
  for (size_t i = 0; i < dimensions; i++) count *= shape[i];
  base_output output = {0};
  BASE_TRY(base_output_open(sink, path, &output));
  stele_status status = base_output_write(sink, &output, header, header_bytes);
  if (status == STELE_OK) status = base_output_write(sink, &output, data, count * sizeof *data);
  if (status == STELE_OK) status = base_output_commit(sink, &output, 0644);
  base_output_abort(&output);
  return status;
}
