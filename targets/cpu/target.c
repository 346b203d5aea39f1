/* The CPU target: the table, what it wants of the schedule, and the levels of instruction sets. */
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "table.h"

/* The names that --cpu takes are those of levels.def, native and portable. */
static stele_status create(const stele_target_options *options, stele_sink *sink, void **out_self) {
  cpu_self *self = calloc(1, sizeof *self);
  if (!self) return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  stele_status status = cpu_levels_find(options->cpu, sink, self->levels, &self->count);
  if (status != STELE_OK) {
    free(self);
    return status;
  }
  self->threads = options->threads;
  for (uint32_t i = 0; i < self->count; i++) self->infos[i] = self->levels[i]->info;
  if (options->dump_directory) {
    self->dump_directory = strdup(options->dump_directory);
    if (!self->dump_directory) {
      free(self);
      return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
    }
  }
  *out_self = self;
  return STELE_OK;
}

static void destroy(void *opaque) {
  cpu_self *self = opaque;
  if (!self) return;
  cpu_release(self);
  free(self->dump_directory);
  free(self);
}

static void traits(const void *self, stele_target_traits *out_traits) {
  (void)self;
  *out_traits = (stele_target_traits){.row_align = CPU_PANEL,
                                      .tile_bytes = 24576,
                                      .quantise_activations = true,
                                      .inline_prologue_tokens = 16,
                                      .attention_rows = 16,
                                      .max_workers = 64};
}

static const char *triple(const void *self) {
  (void)self;
  return CPU_TRIPLE;
}

static const stele_variant_info *variants(const void *opaque, uint32_t *out_count) {
  const cpu_self *self = opaque;
  *out_count = self->count;
  return self->infos;
}

const stele_target cpu_target = {
    .abi = STELE_TARGET_ABI,
    .name = "cpu",
    .summary = "x86-64 machine code for a chosen processor level, or for all of them",
    .create = create,
    .destroy = destroy,
    .traits = traits,
    .triple = triple,
    .variants = variants,
    .layout = cpu_layout,
    .pack = cpu_pack,
    .emit = cpu_emit,
};
