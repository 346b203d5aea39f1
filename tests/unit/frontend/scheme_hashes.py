#!/usr/bin/env python3
"""Writes scheme_hashes.h: what gguf-py decodes pseudo-random blocks to, as one hash per scheme.

Needs the packages gguf and numpy; nothing that is built or tested runs this. The bytes of block
`b` of a scheme come from splitmix64 over (GGUF type, position), so scales are any half floats there
are; the hash is FNV-1a over the words of the decoded float32, NaNs made one."""

import sys

import gguf
import numpy as np

SCHEMES = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
BLOCKS = 512


def random_bytes(seed, count):
    z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(56)).astype(np.uint8)


def hash_of(floats):
    words = floats.view(np.uint32).copy()
    words[np.isnan(floats)] = 0x7FC00000
    value = 0xCBF29CE484222325
    for word in words.tolist():
        value = (value ^ word) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def main():
    np.seterr(all="ignore")
    out = [
        "/* Made by scheme_hashes.py: what gguf-py %s decodes pseudo-random blocks to. */" % "0.19.0",
        "#ifndef STELE_SCHEME_HASHES_H",
        "#define STELE_SCHEME_HASHES_H",
        "",
        "#include <stdint.h>",
        "",
        '#include "stele/artifact.h"',
        "",
        "#define HASHED_BLOCKS %du" % BLOCKS,
        "",
        "static const struct {",
        "  uint32_t scheme;",
        "  uint64_t hash;",
        "} hashes[] = {",
    ]
    for name in SCHEMES:
        kind = gguf.GGMLQuantizationType[name]
        size = gguf.GGML_QUANT_SIZES[kind][1]
        data = random_bytes(int(kind), BLOCKS * size).reshape(BLOCKS, size)
        floats = gguf.quants.dequantize(data, kind).astype(np.float32).reshape(-1)
        out.append("    {STELE_%s, 0x%016xu}," % (name, hash_of(floats)))
    out += ["};", "", "#endif"]
    print("\n".join(out))


if __name__ == "__main__":
    sys.exit(main())
