/* write_blob TOKENIZER.json OUTPUT: a tokenizer blob for the seeds of fuzz_tokenizer_blob, to be
 * made anew when the blob's version changes. */
#include <stdio.h>

#include "text/tokenizer.h"

int main(int count, char **arguments) {
  stele_sink sink = {{0}};
  base_map file;
  base_buffer blob = {0};
  if (count != 3) return 2;
  stele_status status = base_map_open(&sink, arguments[1], &file);
  if (status == STELE_OK) {
    status = text_blob_from_json((const char *)file.data, file.size, NULL, 0, &sink, &blob);
    base_map_close(&file);
  }
  base_output output = {0};
  if (status == STELE_OK) status = base_output_open(&sink, arguments[2], &output);
  if (status == STELE_OK) status = base_output_write(&sink, &output, blob.data, blob.size);
  if (status == STELE_OK) status = base_output_commit(&sink, &output, 0644);
  if (status != STELE_OK) fprintf(stderr, "write_blob: %s\n", sink.text);
  base_output_abort(&output);
  base_buffer_deinit(&blob);
  return status == STELE_OK ? 0 : 1;
}
