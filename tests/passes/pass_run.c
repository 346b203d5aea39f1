/* Runs passes on a file of IR and prints what comes out, with a target made up of its options: no
 * real target is linked, so the passes are tested by themselves.
 *
 *   pass-run [--trivial] [--precise] [--set trait=N] [--print ir|program] PASS[,PASS...] FILE
 *   pass-run --list
 *   PASS "all" runs the whole order; "-NAME" in the list leaves NAME out of it.
 *
 * The verifier runs before the first pass and after each. Exit code 1 with the message on standard
 * error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes.h"
#include "weights/weights.h"

typedef struct options {
  bool trivial, precise, program;
  stele_target_traits traits;
  const char *passes, *file;
} options;

/* ---- the target ------------------------------------------------------------------------ */

/* Layout 1 pads to whole panels of 16 rows; what is gathered or of few rows stays plain. */
static stele_status fake_layout(const void *self, uint32_t scheme, uint64_t rows, uint64_t columns,
                                bool embedding, stele_sink *sink, uint32_t *out_layout,
                                uint64_t *out_bytes) {
  (void)self;
  size_t row;
  if (!weights_row_bytes(scheme, columns, &row))
    return base_fail(sink, STELE_UNSUPPORTED, "%llu columns", (unsigned long long)columns);
  *out_layout = !embedding && rows >= 16;
  *out_bytes = row * (*out_layout ? base_align(rows, 16) : rows);
  return STELE_OK;
}

static const stele_target fake_target = {
    .abi = STELE_TARGET_ABI, .name = "fake", .layout = fake_layout};

/* ---- options --------------------------------------------------------------------------- */

static bool set_trait(stele_target_traits *traits, const char *text) {
  const char *equals = strchr(text, '=');
  if (!equals) return false;
  uint32_t value = (uint32_t)strtoul(equals + 1, NULL, 10);
  size_t length = (size_t)(equals - text);
  const struct {
    const char *name;
    uint32_t *field;
  } names[] = {{"row_align", &traits->row_align},
               {"tile_bytes", &traits->tile_bytes},
               {"inline", &traits->inline_prologue_tokens},
               {"attention_rows", &traits->attention_rows},
               {"workers", &traits->max_workers}};
  if (strncmp(text, "quantise=", 9) == 0) {
    traits->quantise_activations = value != 0;
    return true;
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i].name) == length && strncmp(names[i].name, text, length) == 0) {
      *names[i].field = value;
      return true;
    }
  return false;
}

static bool read_options(int count, char **words, options *o) {
  *o = (options){.traits = {.row_align = 16,
                            .tile_bytes = 16384,
                            .quantise_activations = true,
                            .inline_prologue_tokens = 4,
                            .attention_rows = 16,
                            .max_workers = 4}};
  int i = 1;
  for (; i < count && strncmp(words[i], "--", 2) == 0; i++) {
    if (strcmp(words[i], "--trivial") == 0)
      o->trivial = true;
    else if (strcmp(words[i], "--precise") == 0)
      o->precise = true;
    else if (strcmp(words[i], "--set") == 0 && i + 1 < count && set_trait(&o->traits, words[i + 1]))
      i++;
    else if (strcmp(words[i], "--print") == 0 && i + 1 < count)
      o->program = strcmp(words[++i], "program") == 0;
    else
      return false;
  }
  if (count - i != 2) return false;
  o->passes = words[i];
  o->file = words[i + 1];
  return true;
}

static bool is_listed(const char *list, const char *name, char sign) {
  size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)); at++) {
    char before = at == list ? ',' : at[-1], after = at[length];
    if (before == (sign ? sign : ',') && (after == 0 || after == ',')) return true;
  }
  return false;
}

/* ---- running --------------------------------------------------------------------------- */

static stele_status run_passes(pass_context *context, const options *o) {
  size_t count, ran = 0;
  const pass_info *table = pass_table(&count);
  bool all = is_listed(o->passes, "all", 0);
  for (size_t i = 0; i < count; i++) {
    const pass_info *pass = &table[i];
    bool skipped = is_listed(o->passes, pass->name, '-');
    bool wanted = is_listed(o->passes, pass->name, 0) || (all && !skipped);
    if (!wanted && !(all && pass->kind == PASS_LOWERING)) continue;
    if (ran == 0) BASE_TRY(ir_verify(context->module, pass->before, context->sink));
    BASE_TRY(pass->run(context, (o->trivial || skipped) && pass->kind == PASS_LOWERING));
    BASE_TRY(ir_verify(context->module, pass->after, context->sink));
    ran++;
  }
  return ran ? STELE_OK : base_fail(context->sink, STELE_NOT_FOUND, "no pass '%s'", o->passes);
}

static stele_status run(const options *o, base_arena *arena, ir_context *ir, stele_sink *sink,
                        base_buffer *out) {
  char *text;
  size_t length;
  pass_context context = {.ir = ir,
                          .target = &fake_target,
                          .traits = o->traits,
                          .precise = o->precise,
                          .arena = arena,
                          .sink = sink};
  BASE_TRY(base_file_read(sink, arena, o->file, 1u << 26, &text, &length));
  BASE_TRY(ir_parse(ir, text, length, "input", sink, &context.module));
  stele_status status = run_passes(&context, o);
  if (status == STELE_OK && o->program && !context.program)
    status = base_fail(sink, STELE_INVALID_ARGUMENT, "flatten did not run");
  if (status == STELE_OK && o->program) program_print(context.program, out);
  if (status == STELE_OK && !o->program) ir_print(context.module, out);
  mlirModuleDestroy(context.module);
  return status;
}

static int list(void) {
  size_t count;
  const pass_info *table = pass_table(&count);
  for (size_t i = 0; i < count; i++) printf("%s\n", table[i].name);
  return 0;
}

int main(int count, char **words) {
  options o;
  if (count == 2 && strcmp(words[1], "--list") == 0) return list();
  if (!read_options(count, words, &o)) {
    fprintf(stderr, "usage: %s [options] PASS[,PASS...] FILE\n", words[0]);
    return 2;
  }
  stele_sink sink = {{0}};
  base_arena arena = {0};
  base_buffer out = {0};
  ir_context *ir = NULL;
  stele_status status = ir_context_create(&sink, &ir);
  if (status == STELE_OK) status = run(&o, &arena, ir, &sink, &out);
  if (status == STELE_OK)
    fwrite(out.data, 1, out.size, stdout);
  else
    fprintf(stderr, "%s\n", sink.text);
  base_buffer_deinit(&out);
  ir_context_destroy(ir);
  base_arena_deinit(&arena);
  return status == STELE_OK ? 0 : 1;
}
