/* The reference target: artefacts that interpret their program in plain C. It asks for nothing
 * special of the schedule; weights stay in plain rows. */
#include "stele/target.h"

#include <stdlib.h>

#include "artifact/llvm.h"
#include "plain.h"
#include "ref/ref.h"
#include "table.h"

static stele_status create(const stele_target_options *options, stele_sink *sink, void **out_self) {
  (void)options; /* one build of the interpreter serves every processor of the triple */
  ref_self *self = calloc(1, sizeof *self);
  if (!self) return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  self->triple = artifact_llvm_host_triple();
  *out_self = self;
  return STELE_OK;
}

static void destroy(void *opaque) {
  ref_self *self = opaque;
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

static const char *triple(const void *self) { return ((const ref_self *)self)->triple; }

static const stele_variant_info *variants(const void *self, uint32_t *out_count) {
  static const stele_variant_info only = {"generic", 0};
  (void)self;
  *out_count = 1;
  return &only;
}

const stele_target ref_target = {
    .abi = STELE_TARGET_ABI,
    .name = "ref",
    .summary = "interprets the program in plain C: slow, obvious, the oracle of the others",
    .create = create,
    .destroy = destroy,
    .traits = traits,
    .triple = triple,
    .variants = variants,
    .layout = tgt_plain_layout,
    .pack = tgt_plain_pack,
    .emit = ref_emit,
};
