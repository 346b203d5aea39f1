/* A tokenizer blob as it comes out of an artefact. `write_blob JSON OUTPUT` makes seeds. */
#include "use_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  use_tokenizer(data, size);
  return 0;
}
