/* An opened artefact, as the rooms of the runtime see it. */
#ifndef STELE_MODEL_MODEL_H
#define STELE_MODEL_MODEL_H

#include "base/base.h"
#include "stele/stele.h"

/* What the text wrappers keep with a model (model_text.c). */
typedef struct model_text model_text;

struct stele_model {
  char *path;      /* absolute */
  void *handle;    /* of dlopen */
  base_map file;   /* the whole artefact */
  base_map beside; /* the weights when they are a file of their own */
  const uint8_t *weights;
  stele_trailer trailer;
  const stele_artifact *artifact;
  const stele_variant *variant;
  model_text *text;
};

/* e_machine of this build, and the name of any. */
uint32_t model_host_machine(void);
const char *model_machine_name(uint32_t machine);

/* Checks an artefact's bytes as far as they can be checked without running it: trailer, sizes,
 * hash of the code, ELF header. Pure; the bytes are untrusted. machine: the e_machine wanted. */
stele_status model_check_file(const uint8_t *data, size_t size, const char *name, uint32_t machine,
                              stele_sink *sink, stele_trailer *out_trailer) STELE_MUST_USE;
/* Checks what the artefact says of itself: counts, bounds, sense of groups and steps. */
stele_status model_check_artifact(const stele_artifact *artifact, const stele_trailer *trailer,
                                  const char *name, stele_sink *sink) STELE_MUST_USE;

/* Whether the artefact was written when steps had phases. */
bool model_has_phases(const stele_artifact *artifact);

/* The first variant whose features are all in `features`; fails naming what is missing. */
stele_status model_choose_variant(const stele_artifact *artifact, uint64_t features,
                                  const char *name, stele_sink *sink,
                                  const stele_variant **out_variant) STELE_MUST_USE;

stele_status model_text_init(stele_model *model, stele_sink *sink) STELE_MUST_USE;
void model_text_deinit(stele_model *model);

#endif
