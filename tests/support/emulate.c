/* SIGILL's handler: where the illegal instruction is one that is emulated, it is done on the
 * registers that the signal's frame holds, and the program goes on behind it. Anything else is
 * illegal as it was.
 *
 * Sources: Intel SDM volume 2, 2.3 (VEX) and 2.1.5 (ModRM, SIB); volume 1, 13.4 (the XSAVE area);
 * Linux arch/x86/include/uapi/asm/sigcontext.h (where a frame holds it). */
#include "emulate.h"

#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "base/base.h"
#include "stele/artifact.h"

/* ---- registers in the signal's frame --------------------------------------------------- */

enum {
  XMM_OFFSET = 160,   /* in the area, which begins as FXSAVE's */
  MAGIC_OFFSET = 464, /* the kernel's note that the area goes on past FXSAVE's 512 bytes */
  HEADER_OFFSET = 512,
  MAGIC = 0x46505853,
  IN_USE_YMM = 4, /* bit of the header's first word: high halves of YMM are not all zero */
  IN_USE_XMM = 2
};

static const int general[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};

static uint32_t ymm_offset(void) {
  unsigned size, offset, c, d;
  return __get_cpuid_count(0xd, 2, &size, &offset, &c, &d) ? offset : 0;
}

static uint8_t *xsave_area(const ucontext_t *context) {
  uint8_t *area = (uint8_t *)context->uc_mcontext.fpregs;
  uint32_t magic;
  if (!area) return NULL;
  memcpy(&magic, area + MAGIC_OFFSET, sizeof magic);
  return magic == MAGIC ? area : NULL;
}

static void read_ymm(const uint8_t *area, uint8_t number, uint8_t out[32]) {
  uint64_t in_use;
  memcpy(&in_use, area + HEADER_OFFSET, sizeof in_use);
  memcpy(out, area + XMM_OFFSET + number * 16, 16);
  memset(out + 16, 0, 16);
  if (in_use & IN_USE_YMM) memcpy(out + 16, area + ymm_offset() + number * 16, 16);
}

static void write_ymm(uint8_t *area, uint8_t number, const uint8_t value[32]) {
  uint64_t in_use;
  memcpy(&in_use, area + HEADER_OFFSET, sizeof in_use);
  if (!(in_use & IN_USE_YMM)) memset(area + ymm_offset(), 0, 16 * 16);
  memcpy(area + XMM_OFFSET + number * 16, value, 16);
  memcpy(area + ymm_offset() + number * 16, value + 16, 16);
  in_use |= IN_USE_YMM | IN_USE_XMM;
  memcpy(area + HEADER_OFFSET, &in_use, sizeof in_use);
}

/* ---- taking an instruction apart ------------------------------------------------------- */

typedef struct reader {
  const uint8_t *at;
  const greg_t *registers;
} reader;

static int64_t displacement(reader *r, uint32_t bytes) {
  int8_t one;
  int32_t four;
  memcpy(&one, r->at, 1);
  memcpy(&four, r->at, 4);
  r->at += bytes;
  return bytes == 0 ? 0 : bytes == 1 ? one : four;
}

static uint64_t value_of(const reader *r, uint32_t number) {
  return (uint64_t)r->registers[general[number]];
}

/* ModRM's operand in memory; x and b are bit 3 of the index's and base's numbers. */
static void read_address(reader *r, uint8_t modrm, uint32_t x, uint32_t b,
                         emulate_instruction *out) {
  uint8_t mode = modrm >> 6, rm = modrm & 7;
  uint64_t base = 0;
  bool bare = mode == 0 && rm == 5, has_base = !bare; /* relative to the next instruction */
  out->sib = rm == 4;
  out->index = 0;
  if (out->sib) {
    uint8_t sib = *r->at++;
    uint32_t index = (sib >> 3 & 7) | x;
    has_base = mode != 0 || (sib & 7) != 5;
    if (index != 4) out->index = value_of(r, index) << (sib >> 6);
    rm = sib & 7;
  }
  if (has_base) base = value_of(r, rm | b);
  base += (uint64_t)displacement(r, mode == 1 ? 1 : mode == 2 || !has_base ? 4 : 0);
  if (bare) base += (uint64_t)(uintptr_t)r->at;
  out->address = base;
}

/* False when it is not encoded by three bytes of VEX with the map 0F 38. */
static bool take_apart(const uint8_t *code, const greg_t *registers, emulate_instruction *out) {
  if (code[0] != 0xc4 || (code[1] & 31) != 2) return false;
  uint32_t r = ~code[1] >> 4 & 8, x = ~code[1] >> 3 & 8, b = ~code[1] >> 2 & 8;
  uint8_t modrm = code[4];
  reader rest = {code + 5, registers};
  *out = (emulate_instruction){.opcode = code[3],
                               .prefix = code[2] & 3,
                               .wide = code[2] >> 2 & 1,
                               .w = code[2] >> 7,
                               .memory = modrm >> 6 != 3,
                               .reg = (uint8_t)((modrm >> 3 & 7) | r),
                               .vvvv = ~code[2] >> 3 & 15,
                               .rm = (uint8_t)((modrm & 7) | b)};
  if (out->memory) read_address(&rest, modrm, x, b, out);
  out->bytes = (uint32_t)(rest.at - code);
  return true;
}

/* ---- doing it -------------------------------------------------------------------------- */

static bool run_vnni(const emulate_instruction *i, uint8_t *area) {
  _Alignas(4) uint8_t sum[32], a[32], b[32];
  const uint32_t bytes = i->wide ? 32 : 16;
  if (!area || i->prefix != 1 || i->w) return false;
  read_ymm(area, i->reg, sum);
  read_ymm(area, i->vvvv, a);
  if (i->memory)
    memcpy(b, emulate_memory(i->address + i->index), bytes);
  else
    read_ymm(area, i->rm, b);
  memset(sum + bytes, 0, sizeof sum - bytes);
  if (!emulate_vnni(i->opcode, bytes, (int32_t *)(void *)sum, a, b)) return false;
  write_ymm(area, i->reg, sum);
  return true;
}

static void on_illegal(int number, siginfo_t *info, void *data) {
  ucontext_t *context = data;
  greg_t *registers = context->uc_mcontext.gregs;
  emulate_instruction i;
  (void)info;
  if (take_apart((const uint8_t *)(uintptr_t)registers[REG_RIP], registers, &i) &&
      (run_vnni(&i, xsave_area(context)) || emulate_amx(&i))) {
    registers[REG_RIP] += i.bytes;
    return;
  }
  signal(number, SIG_DFL); /* it is raised again, for good */
}

uint64_t emulate_install(void) {
  const uint64_t both = STELE_FEATURE_AVX_VNNI | STELE_FEATURE_AMX;
  uint64_t here = base_machine_features(), missing = both & ~here;
  struct sigaction action = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO};
  if (!(here & STELE_FEATURE_AVX2) || !missing || !ymm_offset()) return 0;
  return sigaction(SIGILL, &action, NULL) == 0 ? missing : 0;
}
