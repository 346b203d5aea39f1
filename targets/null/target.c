/* The null target: steps that compute nothing, for measuring what all the rest costs. */
#include <stdlib.h>

#include "artifact/llvm.h"
#include "null/null.h"
#include "plain.h"
#include "table.h"

static stele_status create(const stele_target_options *options, stele_sink *sink, void **out_self) {
  (void)options;
  null_self *self = calloc(1, sizeof *self);
  if (!self) return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  self->triple = artifact_llvm_host_triple();
  *out_self = self;
  return STELE_OK;
}

static void destroy(void *opaque) {
  null_self *self = opaque;
  if (!self) return;
  if (self->emitted) LLVMDisposeMemoryBuffer(self->emitted);
  LLVMDisposeMessage(self->triple);
  free(self);
}

static void traits(const void *self, stele_target_traits *out_traits) {
  (void)self;
  *out_traits = (stele_target_traits){.row_align = 1,
                                      .tile_bytes = 16384,
                                      .quantise_activations = false,
                                      .inline_prologue_tokens = 4,
                                      .attention_rows = 4,
                                      .max_workers = 64};
}

static const char *triple(const void *self) { return ((const null_self *)self)->triple; }

static const stele_variant_info *variants(const void *self, uint32_t *out_count) {
  static const stele_variant_info only = {"generic", 0};
  (void)self;
  *out_count = 1;
  return &only;
}

const stele_target null_target = {
    .abi = STELE_TARGET_ABI,
    .name = "null",
    .summary = "computes nothing and answers 0: measures the overhead of everything else",
    .create = create,
    .destroy = destroy,
    .traits = traits,
    .triple = triple,
    .variants = variants,
    .layout = tgt_plain_layout,
    .pack = tgt_plain_pack,
    .emit = null_emit,
};
