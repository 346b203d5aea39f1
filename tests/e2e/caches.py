#!/usr/bin/env python3
"""Quantised caches from the command line: the same ids however a prompt is cut, and the numbers that
a reference in double precision gets whose cache is rounded the same way. What the rounding costs a
real model is asked in tests/golden.

    caches.py --stele PATH --poison PATH
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import models  # noqa: E402
from harness import Checks, Stele, divergence, join, rows  # noqa: E402
from reference import Model, rows_of  # noqa: E402

VOCAB, CAPACITY = 300, 256
QUANTISED = "q8_0", "q4_0"
TARGETS = {"ref": ("--target", "ref"), "cpu": (), "cpu, prefill 1": ("--prefill", 1),
           "cpu, x86-64": ("--cpu", "x86-64")}
# A number of the cache that lies next to the middle between two steps may be rounded to the other
# side in float32. Rounding errs by step^2 / 12 in the mean of squares, such a number by step^2. Keys
# and values are some 1e-7 of a block's largest number off, 1e-5 of a step of q8_0 and less of q4_0;
# with ten times that, one number in ten thousand falls to the other side, and the divergence from
# the same rounding is 12e-4 of that from no rounding. Another rule of rounding, a scale that is off
# or a block at the wrong place make it as large or larger.
SAME = 1.2e-3


def some_ids(count):
    return [(37 * i + 3) % VOCAB for i in range(count)]


class World:
    def __init__(self, arguments, folder):
        self.stele, self.poison, self.folder = Stele(arguments.stele), arguments.poison, folder
        self.checks = Checks()
        # Heads of whole blocks, pages that fill up, grouped heads.
        self.settings = models.config(head_dim=64, num_attention_heads=6, num_key_value_heads=2,
                                      hidden_size=96, intermediate_size=128, vocab_size=VOCAB)
        self.named = models.tensors(self.settings)
        self.model = models.write(folder / "model", self.settings, self.named)

    def compile(self, dtype, *options):
        return self.stele.compile(self.model, self.folder / f"{dtype}.so", "--max-cache-len",
                                  CAPACITY, "--cache-dtype", dtype, *options)

    def logits(self, artefact, ids):
        shape, flat = self.stele.forward(artefact, ids, self.folder / "rows.npy", "--all")
        return rows(flat, shape[-1])


def mean_divergence(reference, found):
    return sum(map(divergence, reference, found)) / len(found)


def check_cuts(world):
    """However a prompt is cut into steps, and whoever computes: the same ids."""
    prompt = some_ids(150)
    for dtype in QUANTISED:
        expected = world.stele.generate(world.compile(dtype, "--target", "ref"), prompt, 60)
        for prefill in (1, 5, 16, 128):
            artefact = world.compile(dtype, "--prefill", prefill)
            for cache in ("dynamic", "static"):
                ids = world.stele.generate(artefact, prompt, 60, "--cache-implementation", cache)
                world.checks.equal(ids, expected, f"{dtype}, prefill {prefill}, {cache}")


def check_rounding(world):
    """The reference with a cache that is rounded in the same way gives the same distributions."""
    prompt, weights = some_ids(90), rows_of(world.named)
    exact = Model(world.settings, weights).logits(prompt)
    for dtype in QUANTISED:
        expected = Model(world.settings, weights, dtype).logits(prompt)
        cost = mean_divergence(exact, expected)
        for target, options in TARGETS.items():
            found = world.logits(world.compile(dtype, *options), prompt)
            off = mean_divergence(expected, found)
            print(f"{dtype}, {target}: mean divergence from float32's cache {cost:.2e}, "
                  f"from the same cache {off:.2e}")
            world.checks.that(0 < cost and off <= SAME * cost,
                              f"{dtype}, {target}: {off:.2e} from its rounding, which costs {cost:.2e}")


def check_poison(world):
    """What memory held before never shows."""
    ids = some_ids(23)
    for dtype in QUANTISED:
        artefact = world.compile(dtype, "--prefill", 5)
        done = subprocess.run([world.poison, artefact, join(ids), "20"], capture_output=True,
                              text=True)
        world.checks.equal(done.stdout.strip(), join(world.stele.generate(artefact, ids, 20)),
                           f"poison {dtype}: {done.stderr}")


def check_refusal(world):
    model = models.write(world.folder / "small-heads")
    done = world.stele.call("compile", model, "-o", world.folder / "no.so", "--cache-dtype", "q8_0")
    world.checks.that(done.returncode == 2 and "'q8_0'" in done.stderr and "32" in done.stderr,
                      f"heads that are no whole blocks: {done.returncode} {done.stderr!r}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name in ("--stele", "--poison"):
        parser.add_argument(name, required=True)
    with tempfile.TemporaryDirectory() as folder:
        world = World(parser.parse_args(), pathlib.Path(folder))
        for check in (check_cuts, check_rounding, check_poison, check_refusal):
            check(world)
    world.checks.finish()


main()
