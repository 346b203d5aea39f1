#!/usr/bin/env python3
"""How gently decoding degrades on a busy machine: the time of a decode step, quiet, with twice as
many workers as there are processors, and beside a program that keeps one processor busy (bound to
it, and free to move). Rounds are taken in turns; medians, and ratios to the quiet step. Never a pass
or a fail.

    busy.py --stele build/tools/stele/stele [--model FILE] [-n 64] [-r 5]

On a machine that others use as well, run it as `nice -n -20 busy.py ...`: the workers and the busy
program then share the processors between themselves.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

BUSY = "while True: pass"


def start_busy(processor):
    """A program that never rests; on a processor of its own choice when none is given."""
    bind = (lambda: os.sched_setaffinity(0, {processor})) if processor is not None else None
    return subprocess.Popen([sys.executable, "-c", BUSY], preexec_fn=bind)


def step_milliseconds(arguments, artefact, threads):
    done = subprocess.run([arguments.stele, "bench", artefact, "-p", "0", "-n",
                           str(arguments.tokens), "-t", str(threads), "-r", "1", "--json"],
                          capture_output=True, text=True, check=True)
    return 1e3 / json.loads(done.stdout)["results"][0]["tokens_per_s"]


def measure(arguments, artefact, cases):
    """{case: its times}, a round of all cases after the other."""
    times = {name: [] for name in cases}
    for _ in range(arguments.rounds):
        for name, (threads, processor) in cases.items():
            busy = start_busy(processor) if processor != "none" else None
            try:
                times[name].append(step_milliseconds(arguments, artefact, threads))
            finally:
                if busy:
                    busy.kill()
                    busy.wait()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stele", required=True)
    parser.add_argument("--model", type=pathlib.Path, help="a GGUF file or an artefact")
    parser.add_argument("-n", "--tokens", type=int, default=64)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.model is None:
        from harness import find_smollm2
        arguments.model = find_smollm2() or sys.exit(1)
    processors = sorted(os.sched_getaffinity(0))
    cores = len(processors)
    cases = {"quiet": (cores, "none"),
             "twice as many workers": (2 * cores, "none"),
             "a busy processor": (cores, processors[-1]),
             "a busy program that moves": (cores, None)}
    with tempfile.TemporaryDirectory() as folder:
        artefact = arguments.model
        if artefact.suffix != ".so":
            artefact = f"{folder}/model.so"
            subprocess.run([arguments.stele, "compile", arguments.model, "-o", artefact, "--quiet"],
                           check=True)
        times = measure(arguments, artefact, cases)
    quiet = statistics.median(times["quiet"])
    for name, values in times.items():
        print(f"{name:26} {cases[name][0]:3} workers  median {statistics.median(values):7.2f} ms  "
              f"{min(values):7.2f} to {max(values):7.2f}  "
              f"{statistics.median(values) / quiet:5.2f} of the quiet step")


main()
