#!/usr/bin/env python3
"""What users of other engines reported as faults, as tests here: results that depend on the number of
threads, half-precision weights that are slow or overflow, numbers that nobody reports.

    reports.py --stele PATH --make-model PATH
"""
import argparse
import array
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import models  # noqa: E402
from harness import Checks, Stele, join, rows  # noqa: E402
from reference import Model, round_bf16, round_f16, rows_of  # noqa: E402

CAPACITY = 64
HALVES = {"F16": "float16", "BF16": "bfloat16"}
LARGE_DTYPES = "f32", "f16", "bf16"
SOFT_CONVERSIONS = [f"{name}{where}" for where in ("", "@PLT")
                    for name in ("__extendhfsf2", "__truncsfhf2", "__truncsfbf2", "__gnu_h2f_ieee",
                                 "__gnu_f2h_ieee")]


def some_ids(count, vocab=256):
    return [(7 + 37 * i) % (vocab - 5) + 3 for i in range(count)]


# ---- half precision -------------------------------------------------------------------------

def to_words(values, dtype):
    if dtype == "F16":
        return array.array("H", struct.pack(f"<{len(values)}e", *values))
    return array.array("H", (struct.unpack("<I", struct.pack("<f", v))[0] >> 16 for v in values))


def write_half(folder, settings, named, dtype):
    """A directory in half precision, and its tensors as the numbers that they have become."""
    rounding = round_f16 if dtype == "F16" else round_bf16
    rounded = {name: (shape, array.array("f", map(rounding, values)))
               for name, (shape, values) in named.items()}
    words = {name: (shape, to_words(values, dtype)) for name, (shape, values) in rounded.items()}
    settings = dict(settings, dtype=HALVES[dtype])
    return models.write(folder, settings, data=models.safetensors(words, dtype)), rows_of(rounded)


# ---- the tests ------------------------------------------------------------------------------

class World:
    def __init__(self, arguments, folder):
        self.stele, self.make_model, self.folder = Stele(arguments.stele), arguments.make_model, folder
        self.checks = Checks()
        self.settings = models.config()
        self.named = models.tensors(self.settings)

    def compile(self, model, name, *options):
        return self.stele.compile(model, self.folder / f"{name}.so", "--max-cache-len", CAPACITY,
                                  *options)

    def make(self, *options):
        subprocess.run([self.make_model, *map(str, options)], check=True)


def check_threads(world):
    """1, 2, 3, 8 threads and twice the processors: the same ids, logits the same to the bit."""
    counts = sorted({1, 2, 3, 8, min(2 * len(os.sched_getaffinity(0)), 64)})
    gguf = world.folder / "threads.gguf"
    world.make("--gguf", gguf, "--hidden", 128, "--heads", 6, "--kv-heads", 3, "--head-dim", 32,
               "--intermediate", 288, "--vocab", 300, "--type", "q4_1", "--embed-type", "q8_0")
    cases = [(models.write(world.folder / "f32", world.settings, world.named), ()),
             (gguf, ()), (gguf, ("--precise",)), (gguf, ("--lanes", 3, "--prefill", 5))]
    for number, (model, options) in enumerate(cases):
        artefact = world.compile(model, f"threads{number}", *options)
        ids, logits = [], []
        for threads in counts:
            out = world.folder / "logits.npy"
            ids.append(world.stele.generate(artefact, some_ids(29), 30, "--threads", threads))
            found = world.stele.forward(artefact, some_ids(45), out, "--all", "--threads", threads)
            logits.append(found[1])
        for threads, found_ids, found in zip(counts, ids, logits):
            label = f"{model.name} {options} {threads} threads"
            difference = max(abs(a - b) for a, b in zip(found, logits[0]))
            world.checks.equal(found_ids, ids[0], f"{label}: ids")
            world.checks.that(found.tobytes() == logits[0].tobytes(),
                              f"{label}: logits differ by up to {difference:g}")


def check_calls(world, model, dtype):
    """Conversions are instructions, also where the processor has none for them."""
    for level in {"x86-64", world.stele.variants()[0]}:
        code = world.folder / f"code-{dtype}-{level}"
        world.compile(model, f"code-{dtype}", "--cpu", level, "--cache-dtype", "f16", "--dump-dir",
                      code)
        listings = sorted(code.glob("*.s"))
        world.checks.that(listings, f"{dtype}, {level}: listings")
        for listing in listings:
            called = set(SOFT_CONVERSIONS) & set(listing.read_text().split())
            world.checks.equal(called, set(), f"{dtype}, {level}: calls of {listing.name}")


def check_half_accuracy(world):
    """Half-precision weights meet float32 activations and sums: as near to float64 as those are."""
    ids = some_ids(14)
    for dtype in HALVES:
        model, rounded = write_half(world.folder / dtype, world.settings, world.named, dtype)
        check_calls(world, model, dtype)
        for cache in ("f32", "f16"):
            expected = Model(world.settings, rounded, cache).logits(ids)
            artefact = world.compile(model, f"{dtype}-{cache}", "--cache-dtype", cache)
            for threads in (1, 3):
                found = rows(world.stele.forward(artefact, ids, world.folder / "half.npy", "--all",
                                                 "--threads", threads)[1], 256)
                worst = max(abs(a - b) for x, y in zip(found, expected) for a, b in zip(x, y))
                # a number of the cache may round to its neighbour where float32 and float64 differ
                world.checks.that(worst < (2e-5 if cache == "f32" else 2e-3),
                                  f"{dtype}, cache {cache}: {worst:g} from float64")


def check_large_scores(world):
    """Scores of 10,000 in half precision: the softmax is float32 and nothing overflows."""
    scaled = {name: (shape, array.array("f", (v * 36 for v in values)))
              if "q_proj" in name or "k_proj" in name else (shape, values)
              for name, (shape, values) in world.named.items()}
    ids = some_ids(14)
    model, rounded = write_half(world.folder / "large", world.settings, scaled, "F16")
    reference = Model(world.settings, rounded, "f16")
    expected = reference.logits(ids)
    largest = reference.largest_score
    world.checks.that(1e4 < largest < 1e5, f"scores are up to {largest:g}")
    for options in ((), ("--prefill", 1), ("--target", "ref")):
        artefact = world.compile(model, "large", "--cache-dtype", "f16", *options)
        found = world.stele.forward(artefact, ids, world.folder / "large.npy", "--all")[1]
        world.checks.that(all(map(math.isfinite, found)), f"large scores {options}: not finite")
        best = [row.index(max(row)) for row in rows(found, 256)]
        world.checks.equal(best, [row.index(max(row)) for row in expected],
                           f"large scores {options}: the best ids")


def plans(world, artefact):
    """What each step does, apart from the bytes it reads."""
    shown = world.stele.json("inspect", artefact)
    return shown, [{k: v for k, v in step.items() if k != "bytes_per_call"}
                   for step in shown["steps"]]


def check_half_plan(world):
    """A step with half-precision weights costs no more than with float32, where clocks don't matter:
    it does the same in as many phases, with no more memory to work in (so no converted copy), and
    reads half the bytes; check_calls shows that it converts in registers. tests/bench/dtypes.py
    measures the speeds."""
    expected = None
    for dtype in LARGE_DTYPES:
        model = world.folder / f"large-{dtype}"
        world.make("--hf", model, "--hidden", 768, "--heads", 12, "--kv-heads", 4, "--head-dim", 64,
                   "--intermediate", 2304, "--layers", 6, "--vocab", 8192, "--dtype", dtype)
        artefact = world.compile(model, f"large-{dtype}", "--cache-dtype", "f16")
        shown, steps = plans(world, artefact)
        if expected is None:
            expected, whole = steps, shown
            world.checks.that(1.8e8 < shown["weight_bytes"] < 2.4e8, f"{shown['weight_bytes']} bytes")
        world.checks.equal(steps, expected, f"{dtype}: what the steps do")
        world.checks.that(shown["workspace_bytes"] <= whole["workspace_bytes"],
                          f"{dtype}: {shown['workspace_bytes']} bytes to work in")
        for step, twin in zip(shown["steps"], whole["steps"]):
            part = step["bytes_per_call"] / twin["bytes_per_call"]
            world.checks.that(dtype == "f32" or part < 0.51,
                              f"{dtype}: {step['kind']} {step['output']} reads {part:.3f} of f32's")


def check_numbers(world):
    """Bytes of cache per kind, tokens computed and reused, speed, share of the memory's, ops of each
    device."""
    artefact = world.compile(world.folder / "f32", "numbers")
    shown = world.stele.json("inspect", artefact)
    for group in shown["layer_groups"]:
        world.checks.that(group["kind"] and group["bytes_at_capacity"] > 0, f"group {group}")
    world.checks.equal(sum(g["bytes_at_capacity"] for g in shown["layer_groups"]),
                       shown["cache_bytes_at_capacity"], "bytes of cache")
    for step in shown["steps"]:
        world.checks.that(step["ops"].get("cpu", 0) > 1 and len(step["ops"]) == 1,
                          f"ops of each device {step}")
    stats = world.stele.json("run", artefact, "--ids", join(some_ids(9)), "-n", 20,
                             "--ignore-eos")["stats"]
    world.checks.equal([stats[k] for k in ("prompt_tokens", "reused_tokens", "generated_tokens")],
                       [9, 0, 20], "tokens")
    for key in ("decode_tokens_per_s", "cache_bytes", "weight_bytes"):
        world.checks.that(stats[key] > 0, f"run: {key}")
    for result in world.stele.json("bench", artefact, "-r", 2)["results"]:
        for key in ("tokens_per_s", "bytes_per_token", "gb_per_s", "read_gb_per_s", "share"):
            world.checks.that(result[key] > 0, f"bench {result['test']}: {key}")


def check_footprint(world):
    """A running model holds its weights once, the pages in use, and little more."""
    code = ("import resource,subprocess,sys;subprocess.run(sys.argv[1:],check=True,"
            "stdout=subprocess.DEVNULL);print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    for dtype in LARGE_DTYPES:
        artefact = world.folder / f"large-{dtype}.so"
        command = [world.stele.path, "run", str(artefact), "--ids", join(some_ids(9)), "-n", "64",
                   "--ignore-eos", "--quiet"]
        done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True,
                              text=True, check=True)
        resident = int(done.stdout) * 1024
        weights = world.stele.json("inspect", artefact)["weight_bytes"]
        world.checks.that(resident < weights + (16 << 20),
                          f"{dtype}: {resident} bytes resident for {weights} of weights")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stele", required=True)
    parser.add_argument("--make-model", required=True)
    with tempfile.TemporaryDirectory() as folder:
        world = World(parser.parse_args(), pathlib.Path(folder))
        for check in (check_threads, check_half_accuracy, check_large_scores, check_half_plan,
                      check_numbers, check_footprint):
            check(world)
    world.checks.finish()


main()
