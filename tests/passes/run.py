#!/usr/bin/env python3
"""Golden tests of the passes: run.py PASS_RUN FOLDER [--update]

PASS_WHAT.mlir goes through PASS (by its name in passes.def, or "all", the whole order); what comes
out is compared with PASS_WHAT.out beside it, or the message with PASS_WHAT.err. The comments that
open a file say what it shows; one "// options: ..." adds options of pass-run, of which
--passes NAMES replaces the pass of the file name and --skip NAMES leaves some of "all" out.
--update writes what came out over the golden file, which must exist.
A pass without a test is a failure."""
import pathlib
import re
import subprocess
import sys


def words_of(path):
    """The options and the list of passes that a file asks for."""
    found = re.search(r"^// options: (.*)$", path.read_text(), re.MULTILINE)
    words = found.group(1).split() if found else []
    passes = path.stem.split("_")[0]
    if "--passes" in words:
        at = words.index("--passes")
        passes = words[at + 1]
        del words[at:at + 2]
    if "--skip" in words:
        at = words.index("--skip")
        passes += "".join(",-" + name for name in words[at + 1].split(","))
        del words[at:at + 2]
    return words + [passes]


def check(program, path, update):
    golden = path.with_suffix(".out")
    if not golden.exists():
        golden = path.with_suffix(".err")
    done = subprocess.run([program, *words_of(path), str(path)], capture_output=True, text=True)
    expected = 0 if golden.suffix == ".out" else 1
    if done.returncode != expected:
        return f"exit code {done.returncode}, expected {expected}\n{done.stdout}{done.stderr}"
    text = done.stdout if expected == 0 else done.stderr
    if update:
        golden.write_text(text)
    return None if text == golden.read_text() else f"differs from {golden.name}:\n{text}"


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    update = "--update" in sys.argv[3:]
    failed = 0
    paths = sorted(folder.glob("*.mlir"))
    for path in paths:
        fault = check(program, path, update)
        failed += fault is not None
        if fault:
            print(f"{path.name}: {fault}")
    tested = {path.stem.removeprefix("err-").split("_")[0] for path in paths}
    for name in subprocess.run([program, "--list"], capture_output=True, text=True).stdout.split():
        if name not in tested:
            failed += 1
            print(f"{name}: no test")
    print(f"{len(paths) - failed} passed, {failed} failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
