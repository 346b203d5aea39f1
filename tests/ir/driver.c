/* Reads IR text, verifies it at a level and prints it: what the golden texts beside this file are
 * compared with. Needs the dialect alone, no pass.
 *
 *   ir-text (model | fused | scheduled) FILE     the module to standard output, exit code 0,
 *                                                or what is wrong to standard error, exit code 1 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

static stele_status run(ir_level level, const char *path, stele_sink *sink, base_buffer *out) {
  base_arena arena = {0};
  char *text = NULL;
  size_t size = 0;
  ir_context *context = NULL;
  MlirModule module = {NULL};
  const char *slash = strrchr(path, '/');
  stele_status status = base_file_read(sink, &arena, path, 1u << 24, &text, &size);
  if (status == STELE_OK) status = ir_context_create(sink, &context);
  if (status == STELE_OK)
    status = ir_parse(context, text, size, slash ? slash + 1 : path, sink, &module);
  if (status == STELE_OK) status = ir_verify(module, level, sink);
  if (status == STELE_OK) ir_print(module, out);
  if (!mlirModuleIsNull(module)) mlirModuleDestroy(module);
  ir_context_destroy(context);
  base_arena_deinit(&arena);
  return status;
}

int main(int argc, char **argv) {
  static const char *const levels[] = {"model", "fused", "scheduled"};
  uint32_t level = 0;
  while (argc == 3 && level < 3 && strcmp(argv[1], levels[level]) != 0) level++;
  if (argc != 3 || level == 3) {
    fprintf(stderr, "usage: ir-text (model | fused | scheduled) FILE\n");
    return 2;
  }
  stele_sink sink = {0};
  base_buffer out = {0};
  stele_status status = run((ir_level)level, argv[2], &sink, &out);
  if (status == STELE_OK)
    fwrite(out.data, 1, out.size, stdout);
  else
    fprintf(stderr, "%s\n", sink.text);
  base_buffer_deinit(&out);
  return status == STELE_OK ? 0 : 1;
}
