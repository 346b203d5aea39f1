#!/usr/bin/env python3
"""Models whose matrices have each of the quantised schemes, and files that mix them as llama.cpp's
do: the machine code against the interpreter, which multiplies decoded numbers.

    schemes.py --stele PATH --make-model PATH
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import Checks, Stele, divergence, rows  # noqa: E402

VOCAB, PROMPT = 320, [i * 37 % 320 for i in range(21)]
SHAPE = ("--hidden", 256, "--heads", 4, "--kv-heads", 2, "--head-dim", 64, "--intermediate", 512,
         "--layers", 2, "--vocab", VOCAB)
FILES = [(s, s) for s in ("q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k")] \
    + [("q4_k", "q6_k"), ("q8_0", "q3_k")]
MEAN_DIVERGENCE = 2e-3  # what 8-bit activations may cost


def logits(stele, folder, model, name, *options):
    """Of every token of the prompt, and the greedy ids after it."""
    artefact = stele.compile(model, folder / f"{name}.so", "--max-cache-len", 64, "--verify", 1,
                             *options)
    shape, numbers = stele.forward(artefact, PROMPT, folder / f"{name}.npy", "--all")
    return rows(numbers, shape[-1]), stele.generate(artefact, PROMPT, 12)


def check_file(stele, make_model, folder, checks, matrices, embedding):
    name = f"{matrices} and {embedding}"
    model = folder / "model.gguf"
    subprocess.run([make_model, "--gguf", str(model), *map(str, SHAPE), "--type", matrices,
                    "--embed-type", embedding], check=True)
    expected, ids = logits(stele, folder, model, "ref", "--target", "ref", "--precise",
                           "--prefill", 1)
    exact, exact_ids = logits(stele, folder, model, "precise", "--precise", "--prefill", 16)
    checks.equal(exact_ids, ids, f"{name}: ids with --precise")
    for position, (a, b) in enumerate(zip(exact, expected)):
        checks.close(a, b, 2e-4 * max(map(abs, b)), f"{name}: logits {position} with --precise")
    quantised, _ = logits(stele, folder, model, "cpu", "--prefill", 16)
    mean = sum(map(divergence, expected, quantised)) / len(expected)
    checks.that(mean <= MEAN_DIVERGENCE, f"{name}: mean divergence {mean:.2e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stele", required=True)
    parser.add_argument("--make-model", required=True)
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        for matrices, embedding in FILES:
            check_file(Stele(arguments.stele), arguments.make_model, pathlib.Path(folder), checks,
                       matrices, embedding)
    checks.finish()


main()
