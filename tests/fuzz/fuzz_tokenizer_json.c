/* tokenizer.json, and after a zero byte tokenizer_config.json, to a blob and its use. */
#include <string.h>

#include "text/tokenizer.h"
#include "use_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  stele_sink sink = {{0}};
  base_buffer blob = {0};
  const char *json = (const char *)data, *config = size ? memchr(json, 0, size) : NULL;
  size_t bytes = config ? (size_t)(config - json) : size, config_bytes = 0;
  if (config) {
    config++;
    config_bytes = size - bytes - 1;
  }
  if (text_blob_from_json(json, bytes, config, config_bytes, &sink, &blob) == STELE_OK)
    use_tokenizer(blob.data, blob.size);
  base_buffer_deinit(&blob);
  return 0;
}
