/* Numbers for the tests of this folder: each program sees the same ones in every run. */
#ifndef TESTS_CPU_RANDOM_H
#define TESTS_CPU_RANDOM_H

#include <stdint.h>

/* splitmix64 (Steele, Lea, Flood 2014) */
static inline uint32_t random_bits(void) {
  static uint64_t state = 1;
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (uint32_t)(z >> 32);
}

#endif
