/* What an artefact says of itself (artifact.h) as constant data in an object: a stele_artifact
 * with everything that it points to, and the function that returns it.
 *
 * Each struct of the header has one function here that builds its LLVM constant, field by field
 * in the header's order; under the triple's data layout the result has the layout of C. */
#include <stdio.h>
#include <string.h>

#include "artifact/artifact.h"
#include "artifact/llvm.h"

typedef struct meta {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTypeRef pointer;
  base_arena *arena;
  uint32_t next;    /* number of the next unnamed global */
  uint32_t variant; /* whose steps are being built */
  bool failed;      /* there was no memory */
} meta;

/* ---- scalars and pointers -------------------------------------------------------------- */

static LLVMValueRef u32(const meta *m, uint32_t v) {
  return LLVMConstInt(LLVMInt32TypeInContext(m->context), v, 0);
}

static LLVMValueRef u64(const meta *m, uint64_t v) {
  return LLVMConstInt(LLVMInt64TypeInContext(m->context), v, 0);
}

static LLVMValueRef f64(const meta *m, double v) {
  return LLVMConstReal(LLVMDoubleTypeInContext(m->context), v);
}

static LLVMValueRef null(const meta *m) { return LLVMConstNull(m->pointer); }

static LLVMValueRef structure(const meta *m, LLVMValueRef *fields, unsigned count) {
  return LLVMConstStructInContext(m->context, fields, count, 0);
}
#define STRUCTURE(m, ...)                     \
  structure(m, (LLVMValueRef[]){__VA_ARGS__}, \
            sizeof((LLVMValueRef[]){__VA_ARGS__}) / sizeof(LLVMValueRef))

/* A constant of its own that others point to. */
static LLVMValueRef global(meta *m, LLVMValueRef value) {
  char name[32];
  snprintf(name, sizeof name, "meta.%u", m->next++);
  LLVMValueRef result = LLVMAddGlobal(m->module, LLVMTypeOf(value), name);
  LLVMSetInitializer(result, value);
  LLVMSetGlobalConstant(result, 1);
  LLVMSetLinkage(result, LLVMPrivateLinkage);
  return result;
}

static LLVMValueRef bytes(meta *m, const void *data, size_t size, unsigned align) {
  if (!data || !size) return null(m);
  char name[32];
  snprintf(name, sizeof name, "meta.%u", m->next++);
  return artifact_llvm_bytes(m->module, name, data, size, align);
}

static LLVMValueRef string(meta *m, const char *text) {
  return text ? bytes(m, text, strlen(text) + 1, 1) : null(m);
}

/* Numbers of 4 bytes, in the byte order of this machine as all of an artefact is. */
static LLVMValueRef words(meta *m, const void *data, uint32_t count) {
  return bytes(m, data, (size_t)count * 4, 4);
}

/* count constants of one type, made by element(m, data, i), behind a pointer. */
typedef LLVMValueRef (*element_function)(meta *m, const void *data, uint32_t i);

static LLVMValueRef table(meta *m, const void *data, uint32_t count, element_function element) {
  if (!data || !count) return null(m);
  LLVMValueRef *values = base_arena_alloc(m->arena, count, sizeof *values);
  if (!values) {
    m->failed = true;
    return null(m);
  }
  for (uint32_t i = 0; i < count; i++) values[i] = element(m, data, i);
  return global(m, LLVMConstArray2(LLVMTypeOf(values[0]), values, count));
}

/* ---- the structs of artifact.h --------------------------------------------------------- */

static LLVMValueRef group_element(meta *m, const void *data, uint32_t i) {
  const stele_group *g = (const stele_group *)data + i;
  return STRUCTURE(m, u32(m, g->kind), u32(m, g->layers), u32(m, g->kv_heads), u32(m, g->key_head),
                   u32(m, g->value_head), u32(m, g->key_scheme), u32(m, g->value_scheme),
                   u32(m, g->capacity), u32(m, g->window), u32(m, g->page_tokens),
                   u32(m, g->table_entries), u32(m, g->residual), u32(m, (uint32_t)g->shared_with),
                   u32(m, g->value_in_key), u64(m, g->page_bytes), u64(m, g->value_offset),
                   u64(m, g->state_bytes));
}

static LLVMValueRef rope_element(meta *m, const void *data, uint32_t i) {
  const stele_rope *r = (const stele_rope *)data + i;
  return STRUCTURE(m, u32(m, r->rule), u32(m, r->rotary), f64(m, r->base), f64(m, r->factor),
                   u32(m, r->original), u32(m, r->reserved), f64(m, r->attention_factor),
                   words(m, r->short_factors, r->rotary / 2),
                   words(m, r->long_factors, r->rotary / 2));
}

static LLVMValueRef weight_element(meta *m, const void *data, uint32_t i) {
  const stele_weight *w = (const stele_weight *)data + i;
  return STRUCTURE(m, string(m, w->name), u32(m, w->scheme), u32(m, w->layout), u64(m, w->rows),
                   u64(m, w->columns), u64(m, w->offset), u64(m, w->bytes));
}

static LLVMValueRef step_element(meta *m, const void *data, uint32_t i) {
  const stele_step *s = (const stele_step *)data + i;
  char name[64];
  snprintf(name, sizeof name, "stele_step_%u_%u", m->variant, i);
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(m->context), NULL, 0, 0);
  LLVMValueRef run = LLVMAddFunction(m->module, name, type);
  LLVMSetVisibility(run, LLVMHiddenVisibility);
  return STRUCTURE(m, u32(m, s->kind), u32(m, s->lanes), u32(m, s->width), u32(m, s->output), run,
                   u64(m, s->bytes_per_call));
}

/* Rows of numbers alone, in the layout of C. */
static LLVMValueRef phases_element(meta *m, const void *data, uint32_t i) {
  const stele_step_phases *p = (const stele_step_phases *)data + i;
  return STRUCTURE(m, bytes(m, p->ops, (size_t)p->op_count * sizeof *p->ops, 8),
                   u32(m, p->op_count), u32(m, p->phase_count));
}

static LLVMValueRef name_element(meta *m, const void *data, uint32_t i) {
  return string(m, ((const char *const *)data)[i]);
}

static LLVMValueRef variant_element(meta *m, const void *data, uint32_t i) {
  const stele_variant *v = (const stele_variant *)data + i;
  m->variant = i;
  return STRUCTURE(m, string(m, v->name), u64(m, v->features),
                   table(m, v->steps, v->step_count, step_element), u32(m, v->step_count),
                   u32(m, 0));
}

static LLVMValueRef artifact_struct(meta *m, const stele_artifact *a) {
  LLVMValueRef hash[] = {u64(m, a->fingerprint[0]), u64(m, a->fingerprint[1])};
  return STRUCTURE(
      m, u32(m, (uint32_t)sizeof *a), u32(m, STELE_ARTIFACT_ABI),
      LLVMConstArray2(LLVMTypeOf(hash[0]), hash, 2), string(m, a->producer), string(m, a->target),
      string(m, a->triple), string(m, a->description), u32(m, a->vocab), u32(m, a->vocab_padded),
      u32(m, a->hidden), u32(m, a->layers), u32(m, a->capacity), u32(m, a->max_lanes),
      u32(m, a->prefill_width), u32(m, a->model_positions),
      table(m, a->groups, a->group_count, group_element), u32(m, a->group_count),
      words(m, a->layer_group, a->layers), table(m, a->ropes, a->rope_count, rope_element),
      u32(m, a->rope_count), u64(m, a->workspace_bytes), u32(m, a->max_workers),
      table(m, a->variants, a->variant_count, variant_element), u32(m, a->variant_count),
      table(m, a->weights, a->weight_count, weight_element), u32(m, a->weight_count),
      u64(m, a->weights_bytes), string(m, a->weights_file),
      bytes(m, a->tokenizer, a->tokenizer_bytes, 16), u64(m, a->tokenizer_bytes),
      string(m, a->chat_template), string(m, a->generation_defaults),
      words(m, a->stop_ids, a->stop_count), u32(m, a->stop_count), string(m, a->stop_source),
      table(m, a->step_phases, a->step_phases_count, phases_element),
      table(m, a->op_names, a->op_name_count, name_element), u32(m, a->step_phases_count),
      u32(m, a->op_name_count));
}

/* const stele_artifact *stele_artifact_query(uint32_t abi) { return abi == ABI ? &artifact : 0; }
 */
static void add_query(meta *m, LLVMValueRef artifact) {
  LLVMTypeRef word = LLVMInt32TypeInContext(m->context);
  LLVMTypeRef type = LLVMFunctionType(m->pointer, &word, 1, 0);
  LLVMValueRef query = LLVMAddFunction(m->module, STELE_ARTIFACT_QUERY, type);
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(m->context);
  LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(m->context, query, "entry"));
  LLVMValueRef same =
      LLVMBuildICmp(builder, LLVMIntEQ, LLVMGetParam(query, 0), u32(m, STELE_ARTIFACT_ABI), "same");
  LLVMBuildRet(builder, LLVMBuildSelect(builder, same, artifact, null(m), "answer"));
  LLVMDisposeBuilder(builder);
}

static stele_status emit(meta *m, const stele_artifact *artifact, const char *triple,
                         stele_sink *sink, base_buffer *out_object) {
  LLVMTargetMachineRef machine;
  BASE_TRY(artifact_llvm_machine(triple, "", "", sink, &machine));
  artifact_llvm_prepare(m->module, triple, machine);
  add_query(m, global(m, artifact_struct(m, artifact)));
  LLVMMemoryBufferRef object;
  stele_status status = m->failed ? base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory")
                                  : artifact_llvm_emit(machine, m->module, sink, &object);
  LLVMDisposeTargetMachine(machine);
  if (status != STELE_OK) return status;
  base_buffer_append(out_object, LLVMGetBufferStart(object), LLVMGetBufferSize(object));
  LLVMDisposeMemoryBuffer(object);
  return out_object->failed ? base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory") : STELE_OK;
}

stele_status artifact_emit_meta(const stele_artifact *artifact, const char *triple,
                                stele_sink *sink, base_buffer *out_object) {
  base_arena arena = {0};
  meta m = {.context = LLVMContextCreate(), .arena = &arena};
  m.module = LLVMModuleCreateWithNameInContext("artifact", m.context);
  m.pointer = LLVMPointerTypeInContext(m.context, 0);
  stele_status status = emit(&m, artifact, triple, sink, out_object);
  LLVMDisposeModule(m.module);
  LLVMContextDispose(m.context);
  base_arena_deinit(&arena);
  return status;
}
