#!/usr/bin/env python3
"""Decoding speed by the numbers that weights and caches are stored in: the same shape with float32
and with half-precision weights, then one model with each kind of cache, behind a long text. Rounds
are taken in turns; medians, the spread, and ratios of rounds to the first row. Never a pass or a
fail.

    dtypes.py --stele build/tools/stele/stele --make-model build/tests/support/make-model
              [--model FILE] [-d 4096] [-n 32] [-r 3] [-t 1]
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import Stele, find_smollm2  # noqa: E402

WEIGHTS = "f32", "f16", "bf16"
CACHES = "f16", "f32", "q8_0", "q4_0"
SHAPE = ("--hidden", 768, "--heads", 12, "--kv-heads", 4, "--head-dim", 64, "--intermediate", 2304,
         "--layers", 6, "--vocab", 8192)  # 200 MB of float32


def measure(arguments, stele, artefacts, depth):
    """{name: tokens per second of each round}, after one round that doesn't count."""
    found = {name: [] for name in artefacts}
    for turn in range(-1, arguments.rounds):
        for name, artefact in artefacts.items():
            result, = stele.json("bench", artefact, "-p", 0, "-n", arguments.tokens, "-d", depth,
                                 "-r", 1, "-t", arguments.threads)["results"]
            if turn >= 0:
                found[name].append(result["tokens_per_s"])
    return found


def show(title, found):
    print(title)
    first = next(iter(found.values()))
    for name, values in found.items():
        ratio = statistics.median(a / b for a, b in zip(values, first))
        print(f"  {name:5} median {statistics.median(values):7.1f} tokens/s, "
              f"{min(values):.1f} to {max(values):.1f}, {ratio:.2f} of {next(iter(found))}")


def weights(arguments, stele, folder):
    artefacts = {}
    for dtype in WEIGHTS:
        model = folder / dtype
        subprocess.run([arguments.make_model, "--hf", model, *map(str, SHAPE), "--dtype", dtype],
                       check=True)
        artefacts[dtype] = stele.compile(model, folder / f"{dtype}.so", "--cache-dtype", "f16")
    show("weights, a shape of 200 MB in f32", measure(arguments, stele, artefacts, 0))


def caches(arguments, stele, folder):
    model = arguments.model or find_smollm2()
    if model is None:
        sys.exit("no model for the caches")
    capacity = arguments.depth + arguments.tokens
    artefacts = {dtype: stele.compile(model, folder / f"cache-{dtype}.so", "--cache-dtype", dtype,
                                      "--max-cache-len", capacity) for dtype in CACHES}
    show(f"caches, {model.name} at {arguments.depth}",
         measure(arguments, stele, artefacts, arguments.depth))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stele", required=True)
    parser.add_argument("--make-model", required=True)
    parser.add_argument("--model", type=pathlib.Path, help="whose caches are compared [SmolLM2]")
    parser.add_argument("-d", "--depth", type=int, default=4096)
    parser.add_argument("-n", "--tokens", type=int, default=32)
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-t", "--threads", type=int, default=1)
    arguments = parser.parse_args()
    stele = Stele(os.path.abspath(arguments.stele))
    with tempfile.TemporaryDirectory() as folder:
        weights(arguments, stele, pathlib.Path(folder))
        caches(arguments, stele, pathlib.Path(folder))


main()
