/* Instructions that the processor lacks, for tests of code that needs them: AVX-VNNI and AMX are
 * done in plain C when they raise SIGILL. Slow (microseconds each), and exact.
 *
 *   emulate.c        catches the signal, takes the instruction apart, reads and writes registers
 *   emulate_vnni.c   products of AVX-VNNI
 *   emulate_amx.c    tiles, and AMX's instructions on them */
#ifndef TEST_EMULATE_H
#define TEST_EMULATE_H

#include <stdbool.h>
#include <stdint.h>

/* Installs the handler for what this machine lacks; returns the features that are emulated now,
 * bits of stele_feature: 0 where all are there, or where even AVX2 is missing. */
uint64_t emulate_install(void);

/* ---- an instruction taken apart -------------------------------------------------------- */

/* A VEX-encoded instruction of the map 0F 38 and its operands. */
typedef struct emulate_instruction {
  uint8_t opcode;
  uint8_t prefix; /* of the SIMD kind: 0 none, 1 66, 2 F3, 3 F2 */
  bool wide, w;   /* 256 bits; the bit VEX.W */
  bool memory;    /* the operand rm is in memory */
  uint8_t reg, vvvv, rm;
  uint64_t address; /* of rm in memory, without the index if there is one */
  uint64_t index;   /* what SIB's index register adds to it: a stride for tiles */
  bool sib;         /* there is a SIB byte */
  uint32_t bytes;   /* of the whole instruction */
} emulate_instruction;

/* An address is a number until it is whole: a base alone may be none. */
static inline uint8_t *emulate_memory(uint64_t address) { return (uint8_t *)(uintptr_t)address; }

/* sum += products of `bytes` bytes of a and b: opcodes 50 to 53, vpdpbusd[s] and vpdpwssd[s]. */
bool emulate_vnni(uint8_t opcode, uint32_t bytes, int32_t *sum, const void *a, const void *b);

/* AMX; the state of the tiles is the thread's own. false: the processor would refuse it. */
bool emulate_amx(const emulate_instruction *i);

#endif
