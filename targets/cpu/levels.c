/* Instruction-set levels: their table, and which of them a value of --cpu stands for. */
#include <string.h>

#include "cpu/cpu.h"

/* Made by the build from kernels.c: one bitcode module per level. */
#define LEVEL(id, ...)                           \
  extern const unsigned char cpu_kernels_##id[]; \
  extern const size_t cpu_kernels_##id##_bytes;
#define ALIAS(...)
#include "cpu/levels.def"
#ifdef CPU_TEST_LEVELS
#include CPU_TEST_LEVELS
#endif
#undef LEVEL

/* Tests add levels that no processor has. They have names, but are in neither portable nor native.
 */
static const cpu_level levels[] = {
#define LEVEL(id, name, processor, features, needs) \
  {{name, needs}, processor, features, cpu_kernels_##id, &cpu_kernels_##id##_bytes},
#include "cpu/levels.def"
#ifdef CPU_TEST_LEVELS
#include CPU_TEST_LEVELS
#endif
#undef LEVEL
#undef ALIAS
};

static const struct {
  const char *name, *level;
} aliases[] = {
#define LEVEL(...)
#define ALIAS(name, level) {name, level},
#include "cpu/levels.def"
#undef LEVEL
#undef ALIAS
};

static const char expected[] =
    "native"
#define LEVEL(id, name, ...) ", " name
#define ALIAS(name, ...) ", " name
#include "cpu/levels.def"
#undef LEVEL
#undef ALIAS
    " or portable";

static const cpu_level *find(const char *name) {
  for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
    if (strcmp(aliases[i].name, name) == 0) name = aliases[i].level;
  for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
    if (strcmp(levels[i].info.name, name) == 0) return &levels[i];
  return NULL;
}

/* The best that this machine runs; the last one needs nothing. */
static const cpu_level *native(void) {
  uint64_t here = base_machine_features();
  for (uint32_t i = 0; i < CPU_LEVELS - 1; i++)
    if (!(levels[i].info.features & ~here)) return &levels[i];
  return &levels[CPU_LEVELS - 1];
}

stele_status cpu_levels_find(const char *name, stele_sink *sink,
                             const cpu_level *out_levels[CPU_LEVELS], uint32_t *out_count) {
  if (name && strcmp(name, "portable") == 0) {
    for (uint32_t i = 0; i < CPU_LEVELS; i++) out_levels[i] = &levels[i];
    *out_count = CPU_LEVELS;
    return STELE_OK;
  }
  const cpu_level *level = !name || strcmp(name, "native") == 0 ? native() : find(name);
  if (!level)
    return base_fail(sink, STELE_INVALID_ARGUMENT, "processor '%.64s' is not known; expected %s",
                     name, expected);
  out_levels[0] = level;
  *out_count = 1;
  return STELE_OK;
}
