/* What a model's module holds besides the kernels: a function per shape, the places as one constant
 * array, and the steps, which call one after the other.
 *
 *   @shape.I = private constant [.. x i8]                       a cpu_shape
 *   define hidden void @cpu_shape_V_I_linear(env, args, worker, workers, place) noinline {
 *     %stack = alloca [.. x i8]
 *     call @cpu_op_linear(@shape.I, env, args, worker, workers, place, %stack)     ; inlined
 *   }
 *   define hidden void @stele_step_V_S(env, args, worker, workers) {
 *     call @cpu_layer_hook(...)   where a layer begins or ends
 *     call @cpu_meet(...)         where the program has a barrier
 *     call @cpu_shape_V_I_linear(env, args, worker, workers, @places + @offsets[op])
 *   }
 * Shapes are dealt out to the parts of a level, each a module of its own; the first has the steps
 * and knows the others' op functions by name.
 *
 * Layers whose ops call the same functions become a loop, so a step is short however deep the model
 * is. */
#include <stdio.h>

#include "artifact/llvm.h"
#include "cpu/cpu.h"
#include "steps.h"

typedef struct filler {
  uint32_t variant, part;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMTypeRef pointer, word, op_type;
  LLVMValueRef places, offsets, meet, hook;
  LLVMValueRef *functions; /* of each shape */
  LLVMValueRef *befores;   /* what runs before its barrier, or NULL */
  const stele_program *program;
  const cpu_plan *plan;
} filler;

static void add_attribute(const filler *f, LLVMValueRef function, const char *name, size_t length) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, length);
  LLVMAttributeRef attribute = LLVMCreateEnumAttribute(f->context, kind, 0);
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

/* The op function of one shape, the kernel inlined; without a kernel only declared. */
static LLVMValueRef make_function(const filler *f, uint32_t index, LLVMValueRef kernel,
                                  LLVMValueRef constant, const char *kernel_name) {
  char name[96];
  snprintf(name, sizeof name, CPU_OP_PREFIX "%u_%u_%s", f->variant, index, kernel_name);
  LLVMValueRef function = LLVMAddFunction(f->module, name, f->op_type);
  LLVMSetVisibility(function, LLVMHiddenVisibility);
  add_attribute(f, function, "noinline", 8);
  add_attribute(f, function, "nounwind", 8);
  if (!constant) return function;
  LLVMPositionBuilderAtEnd(f->builder, LLVMAppendBasicBlockInContext(f->context, function, ""));
  LLVMTypeRef frame =
      LLVMArrayType2(LLVMInt8TypeInContext(f->context), cpu_stack_bytes(&f->plan->shapes[index]));
  LLVMValueRef stack = LLVMBuildAlloca(f->builder, frame, "stack");
  LLVMSetAlignment(stack, 64);
  LLVMValueRef arguments[] = {constant,
                              LLVMGetParam(function, 0),
                              LLVMGetParam(function, 1),
                              LLVMGetParam(function, 2),
                              LLVMGetParam(function, 3),
                              LLVMGetParam(function, 4),
                              stack};
  LLVMBuildCall2(f->builder, LLVMGlobalGetValueType(kernel), kernel, arguments, 7, "");
  LLVMBuildRetVoid(f->builder);
  return function;
}

static LLVMValueRef kernel_of(const filler *f, const char *name) {
  char whole[64];
  snprintf(whole, sizeof whole, "cpu_op_%s", name);
  return LLVMGetNamedFunction(f->module, whole);
}

/* The functions of a shape: defined in one part, declared where the steps are. */
static stele_status make_functions(filler *f, uint32_t index, stele_sink *sink) {
  const cpu_shape *shape = &f->plan->shapes[index];
  char before_name[64], name[64];
  const char *kernel_name = cpu_kernel_name(shape->kind);
  const bool here = index % CPU_PARTS == f->part;
  if (!here && f->part != 0) return STELE_OK;
  snprintf(before_name, sizeof before_name, "before_%s", kernel_name);
  LLVMValueRef kernel = kernel_of(f, kernel_name), before = kernel_of(f, before_name);
  if (!kernel) return base_fail(sink, STELE_FAILED, "target 'cpu': no kernel '%s'", kernel_name);
  snprintf(name, sizeof name, "shape.%u", index);
  LLVMValueRef constant =
      here ? artifact_llvm_bytes(f->module, name, shape, sizeof *shape, 16) : NULL;
  f->functions[index] = make_function(f, index, kernel, constant, kernel_name);
  if (before) f->befores[index] = make_function(f, index, before, constant, before_name);
  return STELE_OK;
}

/* ---- steps ----------------------------------------------------------------------------- */

/* A step in the making. `layer` and `index` are values: literals, or computed in a loop over
 * layers. */
typedef struct step_filler {
  const filler *f;
  LLVMValueRef function;
  const stele_op *ops;
  uint32_t first, count; /* of the step's ops in the program */
} step_filler;

static LLVMValueRef word_of(const filler *f, uint32_t value) {
  return LLVMConstInt(f->word, value, 0);
}

static void call_hook(const step_filler *s, LLVMValueRef layer, uint32_t end) {
  const filler *f = s->f;
  LLVMValueRef arguments[] = {LLVMGetParam(s->function, 0), LLVMGetParam(s->function, 2), layer,
                              word_of(f, end)};
  LLVMBuildCall2(f->builder, LLVMGlobalGetValueType(f->hook), f->hook, arguments, 4, "");
}

static void call_meet(const step_filler *s) {
  const filler *f = s->f;
  LLVMValueRef arguments[] = {LLVMGetParam(s->function, 0), LLVMGetParam(s->function, 2)};
  LLVMBuildCall2(f->builder, LLVMGlobalGetValueType(f->meet), f->meet, arguments, 2, "");
}

/* The place of op number `index` of the program: places + offsets[index]. */
static LLVMValueRef place_of(const filler *f, LLVMValueRef index) {
  LLVMValueRef at = LLVMBuildInBoundsGEP2(f->builder, f->word, f->offsets, &index, 1, "");
  LLVMValueRef offset = LLVMBuildLoad2(f->builder, f->word, at, "");
  return LLVMBuildInBoundsGEP2(f->builder, LLVMInt8TypeInContext(f->context), f->places, &offset, 1,
                               "place");
}

/* The layer of the nearest op that has one, before op i (by = -1) or after it (by = 1), or -1. */
static int32_t neighbour_layer(const step_filler *s, uint32_t i, int by) {
  for (int64_t j = (int64_t)i + by; j >= 0 && j < s->count; j += by)
    if (s->ops[j].layer >= 0) return s->ops[j].layer;
  return -1;
}
static bool begins_layer(const step_filler *s, uint32_t i) {
  return s->ops[i].layer >= 0 && neighbour_layer(s, i, -1) != s->ops[i].layer;
}
static bool ends_layer(const step_filler *s, uint32_t i) {
  return s->ops[i].layer >= 0 && neighbour_layer(s, i, 1) != s->ops[i].layer;
}

static void call_function(const step_filler *s, LLVMValueRef function, LLVMValueRef place) {
  LLVMValueRef arguments[] = {LLVMGetParam(s->function, 0), LLVMGetParam(s->function, 1),
                              LLVMGetParam(s->function, 2), LLVMGetParam(s->function, 3), place};
  LLVMBuildCall2(s->f->builder, s->f->op_type, function, arguments, 5, "");
}

/* Op i of the step; layer and index are those of this round of a loop. */
static void call_op(const step_filler *s, uint32_t i, LLVMValueRef layer, LLVMValueRef index) {
  const filler *f = s->f;
  uint32_t shape = f->plan->ops[s->first + i].shape;
  LLVMValueRef place = shape == CPU_NO_OP ? NULL : place_of(f, index);
  if (begins_layer(s, i)) call_hook(s, layer, 0);
  if (place && f->befores[shape]) call_function(s, f->befores[shape], place);
  if (s->ops[i].barrier) call_meet(s);
  if (place) call_function(s, f->functions[shape], place);
  if (ends_layer(s, i)) call_hook(s, layer, 1);
}

/* ---- layers that are alike, as a loop -------------------------------------------------- */

/* Whether op j does what op i does, `layers` layers further on. */
static bool alike(const step_filler *s, uint32_t i, uint32_t j, int32_t layers) {
  const cpu_planned *planned = s->f->plan->ops + s->first;
  if (j >= s->count || planned[i].shape != planned[j].shape) return false;
  if (s->ops[i].barrier != s->ops[j].barrier) return false;
  if (begins_layer(s, i) != begins_layer(s, j) || ends_layer(s, i) != ends_layer(s, j))
    return false;
  if (s->ops[i].layer < 0) return s->ops[j].layer < 0;
  return s->ops[j].layer == s->ops[i].layer + layers;
}

/* Ops [i, i + *out_period) are a layer; how many times they come, each a layer further on. */
static uint32_t repetitions(const step_filler *s, uint32_t i, uint32_t *out_period) {
  uint32_t period = 1, times = 1;
  *out_period = 1;
  if (!begins_layer(s, i)) return 1;
  while (i + period < s->count && !begins_layer(s, i + period)) period++;
  for (;; times++)
    for (uint32_t j = 0; j < period; j++)
      if (!alike(s, i + j, i + times * period + j, (int32_t)times)) {
        if (times > 1) *out_period = period;
        return times;
      }
}

/* for (round = 0; round < times; round++) ops i .. i + period - 1 of layer first + round */
static void make_loop(const step_filler *s, uint32_t i, uint32_t period, uint32_t times) {
  const filler *f = s->f;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(f->builder);
  LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(f->context, s->function, "layer");
  LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(f->context, s->function, "");
  LLVMBuildBr(f->builder, body);
  LLVMPositionBuilderAtEnd(f->builder, body);
  LLVMValueRef round = LLVMBuildPhi(f->builder, f->word, "round");
  LLVMValueRef layer =
      LLVMBuildAdd(f->builder, round, word_of(f, (uint32_t)s->ops[i].layer), "layer");
  LLVMValueRef base = LLVMBuildMul(f->builder, round, word_of(f, period), "");
  for (uint32_t j = 0; j < period; j++)
    call_op(s, i + j, layer, LLVMBuildAdd(f->builder, base, word_of(f, s->first + i + j), "index"));
  LLVMValueRef next = LLVMBuildAdd(f->builder, round, word_of(f, 1), "");
  LLVMValueRef more = LLVMBuildICmp(f->builder, LLVMIntULT, next, word_of(f, times), "");
  LLVMBuildCondBr(f->builder, more, body, after);
  LLVMValueRef values[] = {word_of(f, 0), next};
  LLVMBasicBlockRef blocks[] = {before, body};
  LLVMAddIncoming(round, values, blocks, 2);
  LLVMPositionBuilderAtEnd(f->builder, after);
}

static void make_step(const filler *f, uint32_t index) {
  const stele_program_step *step = stele_program_steps(f->program, index);
  step_filler s = {f, tgt_step_begin(f->module, f->builder, f->variant, index),
                   stele_program_ops(f->program, step->first_op), step->first_op, step->op_count};
  for (uint32_t i = 0; i < s.count;) {
    uint32_t period, times = repetitions(&s, i, &period);
    if (times > 1)
      make_loop(&s, i, period, times);
    else
      call_op(&s, i, word_of(f, (uint32_t)s.ops[i].layer), word_of(f, s.first + i));
    i += period * times;
  }
  LLVMBuildRetVoid(f->builder);
}

/* ---- all of it ------------------------------------------------------------------------- */

/* Offsets of the places of all ops, in the array of places. */
static LLVMValueRef make_offsets(LLVMModuleRef module, const cpu_plan *plan, uint64_t ops,
                                 base_arena *arena) {
  uint32_t *offsets = base_arena_alloc(arena, ops + 1, sizeof *offsets);
  if (!offsets) return NULL;
  for (uint64_t i = 0; i < ops; i++)
    if (plan->ops[i].place != CPU_NO_OP)
      offsets[i] = plan->ops[i].place * (uint32_t)sizeof(cpu_place);
  return artifact_llvm_bytes(module, "offsets", offsets, (size_t)ops * sizeof *offsets, 16);
}

/* The steps, and the constants they read. */
static stele_status make_steps(filler *f, base_arena *arena, stele_sink *sink) {
  f->places = artifact_llvm_bytes(f->module, "places", f->plan->places,
                                  f->plan->place_count * sizeof(cpu_place), 64);
  f->offsets = make_offsets(f->module, f->plan, f->program->ops.count, arena);
  if (!f->offsets) return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  for (uint32_t s = 0; s < f->program->steps.count; s++) make_step(f, s);
  return STELE_OK;
}

stele_status cpu_module_fill(LLVMModuleRef module, uint32_t variant, uint32_t part,
                             const stele_program *program, const cpu_plan *plan, stele_sink *sink) {
  base_arena arena = {0};
  LLVMContextRef context = LLVMGetModuleContext(module);
  LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0),
              word = LLVMInt32TypeInContext(context);
  LLVMTypeRef parameters[] = {pointer, pointer, word, word, pointer};
  filler f = {.variant = variant,
              .part = part,
              .context = context,
              .module = module,
              .builder = LLVMCreateBuilderInContext(context),
              .pointer = pointer,
              .word = word,
              .op_type = LLVMFunctionType(LLVMVoidTypeInContext(context), parameters, 5, 0),
              .meet = LLVMGetNamedFunction(module, "cpu_meet"),
              .hook = LLVMGetNamedFunction(module, "cpu_layer_hook"),
              .functions = base_arena_alloc(&arena, plan->shape_count + 1u, sizeof(LLVMValueRef)),
              .befores = base_arena_alloc(&arena, plan->shape_count + 1u, sizeof(LLVMValueRef)),
              .program = program,
              .plan = plan};
  stele_status status = STELE_OK;
  if (!f.functions || !f.befores) status = base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  for (uint32_t i = 0; i < plan->shape_count && status == STELE_OK; i++)
    status = make_functions(&f, i, sink);
  if (status == STELE_OK && part == 0) status = make_steps(&f, &arena, sink);
  LLVMDisposeBuilder(f.builder);
  base_arena_deinit(&arena);
  return status;
}
