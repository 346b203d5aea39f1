#!/usr/bin/env python3
"""A real model from the command line: limits of the compile, time to the first token, text.
Times and sizes are printed; only generous bounds are held, since machines differ.

    real.py --stele PATH
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import Checks, GOLDEN, SKIP, Stele, find_smollm2, read_json_xz  # noqa: E402

LARGEST_TENSOR = 49152 * 576 // 32 * 34  # the embedding, q8_0
PROMPT = "The capital of France is"


def check_compile(checks, stele, gguf, folder):
    start = time.monotonic()
    report = stele.json("compile", gguf, "-o", folder / "smol.so")
    seconds = time.monotonic() - start
    size, limit = (folder / "smol.so").stat().st_size, gguf.stat().st_size * 1.05
    memory = 300e6 + 2 * LARGEST_TENSOR
    print(f"compile {seconds:.2f} s, peak memory {report['peak_memory_bytes'] / 1e6:.0f} MB of "
          f"{memory / 1e6:.0f}, artefact {size / gguf.stat().st_size:.3f} of the GGUF")
    checks.that(size <= limit, f"the artefact has {size} bytes, at most {limit:.0f}")
    checks.that(report["peak_memory_bytes"] <= memory,
                f"peak memory {report['peak_memory_bytes']}, at most {memory:.0f}")
    checks.that(seconds <= 60, f"the compile took {seconds:.1f} s")
    return folder / "smol.so"


def check_first_token(checks, stele, artefact):
    """From the start of the process to the first token of a prompt of 5, warm page cache."""
    times = []
    for _ in range(9):
        start = time.monotonic()
        stele.good("run", artefact, "--prompt", PROMPT, "-n", 1, "--quiet")
        times.append(1e3 * (time.monotonic() - start))
    print(f"start to first token: median {statistics.median(times):.0f} ms, "
          f"{min(times):.0f} to {max(times):.0f}")
    checks.that(min(times) <= 1000, f"start to first token {min(times):.0f} ms")


def check_text(checks, stele, artefact):
    golden = read_json_xz(GOLDEN / "real" / "smollm2-135m-instruct-q4_1.json.xz")["cases"][0]
    done = stele.json("run", artefact, "--prompt", PROMPT, "-n", 8, "--ignore-eos")
    checks.equal(done["prompt_ids"], golden["prompt_ids"], "prompt ids")
    checks.equal(done["ids"][:4], golden["greedy_ids"][:4], "the first ids, whose margins are wide")
    checks.that(done["text"].startswith(" Paris."), f"text {done['text']!r}")
    checks.equal(done["stats"]["allocations_per_step"], 0, "allocations per step")
    streamed = stele.good("run", artefact, "--prompt", PROMPT, "-n", 8, "--ignore-eos").stdout
    checks.equal(streamed, done["text"] + "\n", "streamed text")
    piped = stele.good("run", artefact, "--prompt-file", "-", "-n", 8, "--ignore-eos", "--quiet",
                       input=PROMPT)
    checks.equal((piped.stdout, piped.stderr), (streamed, ""), "a prompt from standard input")
    ids = stele.good("run", artefact, "--ids", ",".join(map(str, done["prompt_ids"])), "-n", 8,
                     "--ignore-eos").stdout
    checks.equal(ids, streamed, "the same prompt as ids")
    for threads in (1, 2, 3):
        again = stele.json("run", artefact, "--prompt", PROMPT, "-n", 48, "--ignore-eos",
                           "--threads", threads)["ids"]
        checks.equal(again[:8], done["ids"], f"{threads} threads")


def check_maps(checks, stele, artefact):
    """A running generation has neither LLVM nor MLIR in its memory, and its weights mapped."""
    process = subprocess.Popen([stele.path, "run", str(artefact), "--prompt", PROMPT, "-n", "4000",
                                "--ignore-eos", "--quiet"], stdout=subprocess.PIPE)
    process.stdout.read(1)
    maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
    process.terminate()
    process.communicate()
    checks.that("LLVM" not in maps and "MLIR" not in maps, "LLVM or MLIR is mapped")
    checks.that(str(artefact.resolve()) in maps, "the artefact is mapped")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stele", required=True)
    stele = Stele(os.path.abspath(parser.parse_args().stele))
    gguf = find_smollm2()
    if gguf is None:
        sys.exit(SKIP)
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        artefact = check_compile(checks, stele, gguf, pathlib.Path(folder))
        check_first_token(checks, stele, artefact)
        check_text(checks, stele, artefact)
        check_maps(checks, stele, artefact)
    checks.finish()


main()
