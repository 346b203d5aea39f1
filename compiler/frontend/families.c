/* The table of families, made from families.def. */
#include "frontend/families.h"

#include <string.h>

static const fe_family *const families[] = {
#define FAMILY(name) &fe_family_##name,
#include "frontend/families.def"
#undef FAMILY
};

const fe_family *const *fe_families(size_t *out_count) {
  *out_count = sizeof families / sizeof *families;
  return families;
}

static bool listed(const char *const *names, const char *name) {
  for (; *names; names++)
    if (strcmp(*names, name) == 0) return true;
  return false;
}

stele_status fe_family_find(const char *path, const char *type, bool gguf, stele_sink *sink,
                            const fe_family **out_family) {
  char known[512] = "";
  size_t count, at = 0;
  const fe_family *const *all = fe_families(&count);
  for (size_t i = 0; i < count; i++) {
    const char *const *names = gguf ? all[i]->gguf_architectures : all[i]->hf_types;
    if (listed(names, type)) {
      *out_family = all[i];
      return STELE_OK;
    }
    for (; *names && at < sizeof known; names++)
      at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", *names);
  }
  return base_fail(sink, STELE_UNSUPPORTED, "'%s': the %s '%.64s' is not supported; supported: %s",
                   path, gguf ? "architecture" : "model_type", type, known);
}

const fe_family *fe_family_of(const fe_model *model) {
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    if (strcmp(families[i]->name, model->family) == 0) return families[i];
  return NULL;
}
