/* Contexts: MLIR with the dialect loaded from its IRDL text, MLIR's diagnostics turned into
 * messages of a sink, and the way from text to a module and back. */
#include <mlir-c/Dialect/IRDL.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- diagnostics ----------------------------------------------------------------------- */

static void append(MlirStringRef text, void *data) {
  base_buffer_append(data, text.data, text.length);
}

void ir_diagnostic_add(MlirDiagnostic diagnostic, stele_sink *sink) {
  base_buffer line = {0};
  char where[512];
  ir_location_text(mlirDiagnosticGetLocation(diagnostic), where, sizeof where);
  base_buffer_printf(&line, "%s", where);
  mlirDiagnosticPrint(diagnostic, append, &line);
  base_buffer_append(&line, "", 1);
  if (!line.failed) base_sink_add(sink, "%s", (const char *)line.data);
  base_buffer_deinit(&line);
}

static MlirLogicalResult on_diagnostic(MlirDiagnostic diagnostic, void *data) {
  const ir_context *context = data;
  if (mlirDiagnosticGetSeverity(diagnostic) == MlirDiagnosticError)
    ir_diagnostic_add(diagnostic, context->sink);
  return mlirLogicalResultSuccess();
}

void ir_location_text(MlirLocation location, char *out, size_t size) {
  if (size) *out = 0;
  if (mlirLocationIsNull(location) || !mlirLocationIsAFileLineColRange(location)) return;
  MlirStringRef file = mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(location));
  snprintf(out, size, "%.*s:%d:%d: ", (int)file.length, file.data,
           mlirLocationFileLineColRangeGetStartLine(location),
           mlirLocationFileLineColRangeGetStartColumn(location));
}

/* ---- life ------------------------------------------------------------------------------ */

static stele_status load_part(ir_context *context, const char *text, size_t length) {
  MlirModule module = mlirModuleCreateParse(context->mlir, mlirStringRefCreate(text, length));
  bool loaded =
      !mlirModuleIsNull(module) && mlirLogicalResultIsSuccess(mlirLoadIRDLDialects(module));
  if (!mlirModuleIsNull(module)) mlirModuleDestroy(module);
  return loaded ? STELE_OK : STELE_FAILED; /* the sink has the diagnostics */
}

static stele_status load_dialect(ir_context *context) {
  mlirDialectHandleLoadDialect(mlirGetDialectHandle__irdl__(), context->mlir);
  ir_irdl_generate(&context->irdl);
  base_buffer_append(&context->irdl, "", 1);
  if (context->irdl.failed) return base_fail(context->sink, STELE_OUT_OF_MEMORY, "out of memory");
  const char *first = ir_context_irdl(context);
  const char *second = strstr(first, IR_IRDL_SPLIT);
  BASE_TRY(load_part(context, first, (size_t)(second - first)));
  return load_part(context, second, strlen(second));
}

stele_status ir_context_create(stele_sink *sink, ir_context **out_context) {
  ir_context *context = calloc(1, sizeof *context);
  if (!context) return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  context->sink = sink;
  context->mlir = mlirContextCreateWithThreading(false);
  mlirContextSetAllowUnregisteredDialects(context->mlir, true); /* for the terminator */
  mlirContextAttachDiagnosticHandler(context->mlir, on_diagnostic, context, NULL);
  stele_status status = load_dialect(context);
  if (status != STELE_OK) {
    ir_context_destroy(context);
    return status;
  }
  *out_context = context;
  return STELE_OK;
}

void ir_context_destroy(ir_context *context) {
  if (!context) return;
  mlirContextDestroy(context->mlir);
  base_buffer_deinit(&context->irdl);
  free(context);
}

MlirContext ir_context_mlir(const ir_context *context) { return context->mlir; }

const char *ir_context_irdl(const ir_context *context) { return (const char *)context->irdl.data; }

/* ---- text ------------------------------------------------------------------------------ */

/* MLIR's reader calls itself for what is nested: text that nests without end would exhaust the
 * stack. Brackets in strings count too, which no real text comes near. */
static bool nests_too_deep(const char *text, size_t length) {
  enum { MOST = 512 };
  size_t depth = 0;
  for (size_t i = 0; i < length; i++) {
    bool arrow = text[i] == '>' && i && text[i - 1] == '-';
    if (memchr("([{<", text[i], 4) && ++depth > MOST) return true;
    if (memchr(")]}>", text[i], 4) && !arrow && depth) depth--;
  }
  return false;
}

/* The parser looks one byte past the end, so it gets a copy with a zero there. */
static MlirOperation parse(ir_context *context, const char *text, size_t length,
                           const char *file_name, stele_sink *sink) {
  char *copy = malloc(length + 1);
  if (!copy) {
    base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
    return (MlirOperation){NULL};
  }
  memcpy(copy, text, length);
  copy[length] = 0;
  stele_sink *before = context->sink;
  context->sink = sink;
  if (sink) sink->text[0] = 0;
  MlirOperation op = mlirOperationCreateParse(context->mlir, mlirStringRefCreate(copy, length),
                                              ir_text(file_name));
  context->sink = before;
  free(copy);
  return op;
}

stele_status ir_parse(ir_context *context, const char *text, size_t length, const char *file_name,
                      stele_sink *sink, MlirModule *out_module) {
  if (length && memchr(text, 0, length))
    return base_fail(sink, STELE_BAD_FORMAT, "'%s': not text: it has a zero byte", file_name);
  if (nests_too_deep(text, length))
    return base_fail(sink, STELE_BAD_FORMAT, "'%s': brackets nest too deep", file_name);
  MlirOperation op = parse(context, text, length, file_name, sink);
  if (mlirOperationIsNull(op)) return STELE_BAD_FORMAT;
  MlirModule module = mlirModuleFromOperation(op);
  if (mlirModuleIsNull(module)) {
    mlirOperationDestroy(op);
    return base_fail(sink, STELE_BAD_FORMAT, "'%s': expected a module around all else", file_name);
  }
  *out_module = module;
  return STELE_OK;
}

void ir_print(MlirModule module, base_buffer *out) {
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsAssumeVerified(flags); /* else printing verifies, and stops at a fault */
  mlirOperationPrintWithFlags(mlirModuleGetOperation(module), flags, append, out);
  mlirOpPrintingFlagsDestroy(flags);
}
