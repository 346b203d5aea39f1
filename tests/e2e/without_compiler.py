#!/usr/bin/env python3
"""The command line on artefacts that need no compiler, in builds with and without one.

    without_compiler.py --stele PATH --fake PATH
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import models  # noqa: E402
from harness import Checks, Stele, join, read_npy  # noqa: E402


def check_run(checks, stele, artefact):
    prompt = list(range(3, 23))
    first = stele.generate(artefact, prompt, 12)
    checks.equal(len(first), 12, "twelve ids")
    for threads in (1, 2, 3, 16):
        for cache in ("dynamic", "static"):
            ids = stele.generate(artefact, prompt, 12, "--threads", threads,
                                 "--cache-implementation", cache)
            checks.equal(ids, first, f"threads {threads}, {cache}")
    for split in (1, 5, 11):
        ids = stele.generate(artefact, prompt + first[:split], 12 - split)
        checks.equal(ids, first[split:], f"the first {split} ids as part of the prompt")
    done = stele.json("run", artefact, "--ids", join(prompt), "--ignore-eos")
    checks.equal((len(done["ids"]), done["finish_reason"]), (64 - 20 + 1, "length"), "to the capacity")
    checks.that(done["stats"]["allocations_per_step"] in (0, None), "allocations per step")
    done = stele.call("run", artefact, "--ids", join([5] * 65))
    checks.that(done.returncode == 1 and all(w in done.stderr for w in ("65", "64", "--max-cache-len")),
                f"a prompt that is too long: {done.stderr!r}")


def check_others(checks, stele, artefact, folder):
    out = folder / "f.npy"
    for options, shape in (((), (1, 97)), (("--all",), (20, 97)), (("--hidden",), (4, 20, 12))):
        stele.good("forward", artefact, "--ids", join(range(20)), "-o", out, *options)
        checks.equal(read_npy(out)[0], shape, f"forward {options}")
    shown = stele.json("inspect", artefact)
    checks.equal((shown["capacity"], len(shown["layer_groups"])), (64, 2), "inspect")
    checks.that("layer_groups" in stele.good("inspect", artefact).stdout, "inspect for people")
    results = stele.json("bench", artefact, "-r", 1)["results"]
    checks.equal([r["test"] for r in results], ["pp64", "tg64"], "bench")
    for threads in (1, 3):
        shown = stele.json("bench", artefact, "-r", 2, "-p", 20, "-n", 10, "-t", threads, "--profile")
        for p, name, calls in zip(shown["profiles"], ("pp20", "tg10"), (2, 1)):
            rows = {row["ops"]: row for row in p["lines"]}
            checks.equal((p["test"], p["threads"]), (name, threads), "profile")
            checks.that({"store table", "hash", "output", "best"} >= rows.keys(), f"rows {rows}")
            checks.equal(rows["hash"]["calls"], calls, f"{name}: calls")
            checks.equal([len(row["wait_us"]) for row in rows.values()], [threads] * len(rows),
                         f"{name}: a wait for each worker")
            checks.that(0.99 < sum(row["share"] for row in rows.values()) < 1.01, f"{name}: shares")
    checks.that("store table" in stele.good("bench", artefact, "--profile", "-r", 1).stdout,
                "a profile for people")
    done = stele.good("doctor", artefact, "--json")
    checks.that(json.loads(done.stdout)["artefact"]["intact"], "doctor")


def check_models(checks, stele, folder):
    """Models can be looked at where the front-ends are; where not, that is said."""
    model = models.write(folder / "model")
    done = stele.call("inspect", model)
    if "without the compiler" in stele.call("--version").stdout:
        checks.that(done.returncode == 1 and "-Dcompiler=disabled" in done.stderr, f"{done.stderr!r}")
        done = stele.call("compile", model, "-o", folder / "x.so")
        checks.that(done.returncode == 1 and "compiler" in done.stderr, f"{done.stderr!r}")
    else:
        checks.equal(done.returncode, 0, "inspect of a model")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stele", required=True)
    parser.add_argument("--fake", required=True)
    arguments = parser.parse_args()
    stele, checks = Stele(arguments.stele), Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([arguments.fake, folder / "fake.so"], check=True)
        check_run(checks, stele, folder / "fake.so")
        check_others(checks, stele, folder / "fake.so", folder)
        check_models(checks, stele, folder)
        subprocess.run([arguments.fake, folder / "needs.so", "features", "0x10"], check=True)
        done = stele.call("run", folder / "needs.so", "--ids", "1")
        if "amx" not in stele.good("doctor").stdout.split("features it lacks")[0]:
            checks.that(done.returncode == 1 and "amx" in done.stderr.lower(), f"{done.stderr!r}")
    checks.finish()


main()
