/* Made by scheme_hashes.py: what gguf-py 0.19.0 decodes pseudo-random blocks to. */
#ifndef STELE_SCHEME_HASHES_H
#define STELE_SCHEME_HASHES_H

#include <stdint.h>

#include "stele/artifact.h"

#define HASHED_BLOCKS 512u

static const struct {
  uint32_t scheme;
  uint64_t hash;
} hashes[] = {
    {STELE_Q8_0, 0xf76cece3cba55425u}, {STELE_Q4_0, 0xd16f29d09dffaf25u},
    {STELE_Q4_1, 0x6511256c5b82a8aau}, {STELE_Q5_0, 0xb188b13d7024f725u},
    {STELE_Q5_1, 0x5f7b8ad78f97c9f4u}, {STELE_Q2_K, 0x20ac025a1130a417u},
    {STELE_Q3_K, 0xb4206456d89d07a5u}, {STELE_Q4_K, 0x237770d17b4a06abu},
    {STELE_Q5_K, 0xf980cde2092ea7b2u}, {STELE_Q6_K, 0xe015a955b46b4147u},
};

#endif
