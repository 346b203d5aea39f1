/* flatten (required)
 * requires: the scheduled level, after plan-memory
 * ensures:  context->program is the module as one block of plain data in the context's arena, as
 *           program.h describes it, and passes program_check; the module itself stays as it is
 * gone:     ids, cache, and outputs that a linear writes by itself have no op in the program
 *
 * The tables are gathered in growing buffers, one after the other put behind the header, each at
 * a multiple of 64 bytes. flatten_tables.c makes the declarations' tables, flatten_ops.c the
 * steps'. */
#include <string.h>

#include "flatten.h"

static void free_tables(flattening *f) {
  base_buffer *const all[] = {&f->steps,  &f->ops,   &f->buffers,     &f->program_weights,
                              &f->groups, &f->ropes, &f->layer_group, &f->strings};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) base_buffer_deinit(all[i]);
}

/* Puts the tables behind the header, into one block of the arena. */
static stele_status assemble(flattening *f) {
  stele_program *header = &f->header;
  const struct {
    const base_buffer *from;
    stele_table *to;
    size_t size;
  } tables[] = {
      {&f->steps, &header->steps, sizeof(stele_program_step)},
      {&f->ops, &header->ops, sizeof(stele_op)},
      {&f->buffers, &header->buffers, sizeof(stele_buffer)},
      {&f->program_weights, &header->weights, sizeof(stele_program_weight)},
      {&f->groups, &header->groups, sizeof(stele_group)},
      {&f->ropes, &header->ropes, sizeof(stele_program_rope)},
      {&f->layer_group, &header->layer_group, sizeof(uint32_t)},
      {&f->strings, &header->strings, 1},
  };
  size_t at = base_align(sizeof *header, PASS_LINE);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    if (tables[i].from->failed) return pass_no_memory(f->context);
    *tables[i].to = (stele_table){at, tables[i].from->size / tables[i].size};
    at = base_align(at + tables[i].from->size, PASS_LINE);
  }
  header->magic = STELE_PROGRAM_MAGIC;
  header->version = STELE_PROGRAM_VERSION;
  header->bytes = at;
  char *block = base_arena_alloc(f->context->arena, at, 1);
  if (!block) return pass_no_memory(f->context);
  memcpy(block, header, sizeof *header);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (tables[i].from->size)
      memcpy(block + tables[i].to->offset, tables[i].from->data, tables[i].from->size);
  f->context->program = (stele_program *)(void *)block;
  return STELE_OK;
}

static stele_status flatten(flattening *f) {
  BASE_TRY(pass_weights_load(f->context, &f->weights));
  f->read = base_arena_alloc(f->context->arena, f->weights.count + 1, 1);
  if (!f->read) return pass_no_memory(f->context);
  BASE_TRY(flatten_declarations(f));
  BASE_TRY(pass_steps(f->context, flatten_step, f));
  return assemble(f);
}

stele_status pass_flatten(pass_context *context, bool trivial) {
  (void)trivial;
  flattening f = {.context = context};
  stele_status status = flatten(&f);
  free_tables(&f);
  return status == STELE_OK ? program_check(context->program, context->sink) : status;
}
