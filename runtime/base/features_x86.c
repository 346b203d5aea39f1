/* What an x86-64 processor offers and its system lets a process use: CPUID for the instructions,
 * XGETBV for the registers that are saved on a task switch, arch_prctl for AMX.
 *
 * Sources: Intel SDM volume 1, 14.3 (AVX), 15.2 (AVX-512), 18.3 (AMX); volume 2, CPUID; Linux
 * Documentation/arch/x86/xstate.rst. */
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "stele/artifact.h"

#define XCR0_AVX 0x6u     /* XMM, YMM */
#define XCR0_AVX512 0xe6u /* and mask registers, upper halves, ZMM16-31 */
#define XCR0_AMX 0x60000u /* tile configuration and data */
#define ARCH_GET_XCOMP_SUPP 0x1021
#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_XTILEDATA 18

typedef struct leaf {
  unsigned a, b, c, d;
} leaf;

static leaf cpuid(unsigned number, unsigned sub) {
  leaf l = {0};
  if (!__get_cpuid_count(number, sub, &l.a, &l.b, &l.c, &l.d)) return (leaf){0};
  return l;
}

static uint64_t xgetbv(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static bool has(unsigned word, unsigned bits) { return (word & bits) == bits; }

static bool amx_supported(void) {
  uint64_t supported = 0;
  return syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &supported) == 0 &&
         supported >> XFEATURE_XTILEDATA & 1;
}

uint64_t base_machine_features(void) {
  const unsigned fma = 1u << 12, movbe = 1u << 22, osxsave = 1u << 27, f16c = 1u << 29;
  const unsigned bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8, lzcnt = 1u << 5;
  const unsigned f = 1u << 16, dq = 1u << 17, cd = 1u << 28, bw = 1u << 30, vl = 1u << 31;
  const unsigned vnni = 1u << 11, avx_vnni = 1u << 4;
  const unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24, amx_int8 = 1u << 25;
  leaf one = cpuid(1, 0), seven = cpuid(7, 0), more = cpuid(7, 1), extended = cpuid(0x80000001u, 0);
  uint64_t features = 0;
  if (!has(one.c, osxsave)) return 0;
  uint64_t xcr0 = xgetbv();
  if ((xcr0 & XCR0_AVX) == XCR0_AVX && has(one.c, fma | movbe | f16c) &&
      has(seven.b, bmi1 | avx2 | bmi2) && has(extended.c, lzcnt))
    features |= STELE_FEATURE_AVX2;
  if (!features) return 0;
  if (has(more.a, avx_vnni)) features |= STELE_FEATURE_AVX_VNNI;
  if ((xcr0 & XCR0_AVX512) == XCR0_AVX512 && has(seven.b, f | dq | cd | bw | vl))
    features |= STELE_FEATURE_AVX512;
  if (features & STELE_FEATURE_AVX512 && has(seven.c, vnni)) features |= STELE_FEATURE_VNNI;
  if ((xcr0 & XCR0_AMX) == XCR0_AMX && has(seven.d, amx_bf16 | amx_tile | amx_int8) &&
      amx_supported())
    features |= STELE_FEATURE_AMX;
  return features;
}

/* The permission holds for the whole process and asks more of alternate signal stacks, so it is
 * asked for only when code that needs it was chosen. */
bool base_enable_features(uint64_t bits) {
  if (!(bits & STELE_FEATURE_AMX)) return true;
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
