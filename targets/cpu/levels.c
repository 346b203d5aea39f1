/* Instruction-set levels: their names, what LLVM calls them, and which one this machine has.
 *
 * x86-64-v4 without VNNI gains little over AVX2 in products of bytes, so it takes those kernels. */
#include <string.h>

#include "cpu/cpu.h"

/* Made by the build from kernels.c: one bitcode module per level. */
#define KERNELS(name)                              \
  extern const unsigned char cpu_kernels_##name[]; \
  extern const size_t cpu_kernels_##name##_bytes;
KERNELS(vnni)
KERNELS(avx2)
KERNELS(generic)
#undef KERNELS

#define AVX512_VNNI (STELE_FEATURE_AVX2 | STELE_FEATURE_AVX512 | STELE_FEATURE_VNNI)

/* Best first. */
static const cpu_level levels[CPU_LEVELS] = {
    {{"x86-64-v4-vnni", AVX512_VNNI},
     "x86-64-v4",
     "+avx512vnni",
     cpu_kernels_vnni,
     &cpu_kernels_vnni_bytes},
    {{"x86-64-v3", STELE_FEATURE_AVX2}, "x86-64-v3", "", cpu_kernels_avx2, &cpu_kernels_avx2_bytes},
    {{"x86-64", 0}, "x86-64", "", cpu_kernels_generic, &cpu_kernels_generic_bytes},
};
enum { LEVEL_VNNI, LEVEL_AVX2, LEVEL_GENERIC };

static const struct {
  const char *name;
  uint32_t level;
} names[] = {
    {"x86-64", LEVEL_GENERIC},
    {"x86-64-v3", LEVEL_AVX2},
    {"x86-64-v4", LEVEL_AVX2},
    {"x86-64-v4-vnni", LEVEL_VNNI},
};

/* True when LLVM's list of the host's features ("+avx2,-avx512f,...") has all of `needed`, names
 * separated by spaces. */
static bool host_has(const char *features, const char *needed) {
  while (*needed) {
    size_t length = strcspn(needed, " ");
    bool found = false;
    for (const char *at = features; at && !found; at = strchr(at, ',')) {
      if (*at == ',') at++;
      found = *at == '+' && strncmp(at + 1, needed, length) == 0 &&
              (at[1 + length] == ',' || at[1 + length] == 0);
    }
    if (!found) return false;
    needed += length + (needed[length] == ' ');
  }
  return true;
}

static uint32_t host_level(void) {
  static const char v3[] = "avx2 fma f16c bmi bmi2 lzcnt movbe";
  static const char vnni[] = "avx512f avx512bw avx512cd avx512dq avx512vl avx512vnni";
  char *features = LLVMGetHostCPUFeatures();
  uint32_t level = LEVEL_GENERIC;
  if (host_has(features, v3)) level = host_has(features, vnni) ? LEVEL_VNNI : LEVEL_AVX2;
  LLVMDisposeMessage(features);
  return level;
}

stele_status cpu_levels_find(const char *name, stele_sink *sink,
                             const cpu_level *out_levels[CPU_LEVELS], uint32_t *out_count) {
  if (name && strcmp(name, "portable") == 0) {
    for (uint32_t i = 0; i < CPU_LEVELS; i++) out_levels[i] = &levels[i];
    *out_count = CPU_LEVELS;
    return STELE_OK;
  }
  *out_count = 1;
  if (!name || strcmp(name, "native") == 0) {
    out_levels[0] = &levels[host_level()];
    return STELE_OK;
  }
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(names[i].name, name) == 0) {
      out_levels[0] = &levels[names[i].level];
      return STELE_OK;
    }
  return base_fail(sink, STELE_INVALID_ARGUMENT,
                   "processor '%s' is not known; expected native, portable, x86-64, x86-64-v3, "
                   "x86-64-v4 or x86-64-v4-vnni",
                   name);
}
