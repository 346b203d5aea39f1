#!/usr/bin/env python3
"""Windows from the command line, against a reference in double precision: prompts longer than the
window in steps narrower and wider than it, what is generated behind it, capacities of all sizes,
guesses, and memory that stops growing.

    windows.py --stele PATH
"""
import argparse
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import models  # noqa: E402
from harness import Checks, Stele, rows  # noqa: E402
from reference import Model, rows_of  # noqa: E402

WINDOW = 8
KINDS = {"mixed": ["sliding_attention", "full_attention"],
         "windows": ["sliding_attention", "sliding_attention"]}


def some_ids(count):
    return [(7 + 37 * i) % 251 + 3 for i in range(count)]


def write_model(folder, kind):
    settings = models.config(
        model_type="smollm3", architectures=["SmolLM3ForCausalLM"], layer_types=KINDS[kind],
        sliding_window=WINDOW, use_sliding_window=True, no_rope_layers=[1, 1])
    named = models.tensors(settings)
    return models.write(folder / kind, settings, named), Model(settings, rows_of(named))


def check_logits(checks, stele, folder, model, reference):
    """Every position, however the prompt is cut into steps, and several workers."""
    ids = some_ids(37)
    expected = [x for row in reference.logits(ids) for x in row]
    for prefill, target in ((1, "cpu"), (5, "cpu"), (16, "cpu"), (128, "cpu"), (16, "ref")):
        artefact = stele.compile(model, folder / "logits.so", "--prefill", prefill, "--target",
                                 target, "--max-cache-len", 64)
        found = stele.forward(artefact, ids, folder / "logits.npy", "--all", "--threads", 2)[1]
        checks.close(found, expected, 2e-4, f"{model.name} {target} --prefill {prefill}")


def check_generation(checks, stele, folder, model, reference):
    """Each id is the best one after those before it, in both implementations of the cache, guessed
    or not, up to the end of any capacity."""
    for capacity in (1, 2, 3, 17, 63, 65, 640) if model.name == "mixed" else (17, 65):
        ids = some_ids(min(capacity, 23))
        count = min(capacity - len(ids) + 1, 40)
        artefact = stele.compile(model, folder / "any.so", "--max-cache-len", capacity, "--prefill",
                                 5)
        label = f"{model.name} {capacity} tokens"
        first = stele.generate(artefact, ids, count)
        best = [row.index(max(row)) for row in reference.logits((ids + first)[:-1], len(ids) - 1)]
        checks.equal(first, best, label)
        guesses = [("--prompt-lookup-num-tokens", 7)] if capacity > 1 else []
        for options in (("--cache-implementation", "static"), *guesses):
            checks.equal(stele.generate(artefact, ids, count, *options), first,
                         f"{label} {options}")


def check_memory(checks, stele, folder, model):
    """Beyond the window and a page more only layers without a window need memory."""
    artefact = stele.compile(model, folder / "long.so", "--max-cache-len", 2000)
    groups = stele.json("inspect", artefact)["layer_groups"]
    most = sum(g["page_bytes"] * (WINDOW // g["page_tokens"] + 1) for g in groups if g["window"])
    full = sum(g["bytes_at_capacity"] for g in groups if not g["window"])
    checks.equal([g["page_tokens"] for g in groups if g["window"]], [WINDOW], "tokens of a page")
    checks.equal(sum(g["bytes_at_capacity"] for g in groups), most + full, "inspect: bytes")
    for implementation in ("dynamic", "static"):
        used = [stele.json("run", artefact, "--ids", ",".join(map(str, some_ids(20))), "-n", n,
                           "--ignore-eos", "--cache-implementation", implementation)["stats"]
                ["cache_bytes"] for n in (4, 300, 1900)]
        checks.that(used[-1] <= most + full, f"{model.name} {implementation}: {used} bytes")
        if not full:
            checks.that(max(used) - min(used) < most // 2 + 1, f"{implementation}: {used} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stele", required=True)
    stele = Stele(os.path.abspath(parser.parse_args().stele))
    checks = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in KINDS:
            model, reference = write_model(folder, kind)
            check_logits(checks, stele, folder, model, reference)
            check_generation(checks, stele, folder, model, reference)
            check_memory(checks, stele, folder, model)
    checks.finish()


main()
