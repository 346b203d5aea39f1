#!/usr/bin/env python3
"""stele-opt on a small model: opt.py STELE_OPT MAKE_MODEL

That a pipeline cut in two anywhere gives the same text, that skipped passes leave a good module,
that stages are dumped and timed, and what wrong use and bad input are told."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import Checks  # noqa: E402

OPT, MAKE_MODEL = sys.argv[1:3]
checks = Checks()


def opt(*arguments, text=None, code=0):
    done = subprocess.run([OPT, *map(str, arguments)], input=text, capture_output=True, text=True)
    checks.equal(done.returncode, code, f"exit code of {' '.join(map(str, arguments))}: {done.stderr}")
    return done


def refused(code, message, *arguments, text=None):
    done = opt(*arguments, text=text, code=code)
    checks.that(message in done.stderr, f"expected {message!r} in {done.stderr!r}")
    checks.that(done.stdout == "", "nothing on standard output")


def passes():
    lines = opt("--list").stdout.split("targets:")[0].splitlines()[1:]
    return [line.split()[0] for line in lines]


def pipelines(model, names):
    """Cut after each pass, go on from the text: the same program."""
    whole = opt("-m", model).stdout
    checks.that("step" in whole, "the program is printed")
    for before, after in zip(names, names[1:]):
        text = opt("-m", model, "--stop-after", before).stdout
        on = opt("-", "--start-from", after, text=text).stdout
        checks.that(on == whole, f"from {after} on: the program differs")
    alone = opt("-m", model, "--passes", ",".join(names[:3])).stdout
    checks.equal(alone, opt("-m", model, "--stop-after", names[2]).stdout, "passes by name")
    checks.equal(opt("-m", model).stdout, whole, "a second time")


def skipping(model, names):
    required = {"flatten"}
    for name in names:
        if name in required:
            refused(2, name, "-m", model, "--skip", name)
        else:
            opt("-m", model, "--skip", name)
    rest = [word for name in names if name not in required for word in ("--skip", name)]
    opt("-m", model, *rest)


def dumps(model, folder, names):
    stages = folder / "stages"
    done = opt("-m", model, "--dump-dir", stages, "--timing", "-o", folder / "out.txt")
    found = sorted(path.name for path in stages.iterdir())
    checks.that(all(any(name in file for file in found) for name in names), f"stages: {found}")
    checks.that(all(name in done.stderr for name in names), "every pass is timed")
    checks.that((folder / "out.txt").read_text() == opt("-m", model).stdout, "-o has the text")


def faults(model, folder):
    refused(2, "FILE or --model is missing")
    refused(2, "unknown option '--frob'", "--frob")
    refused(2, "'--lanes' needs a value", "--lanes")
    refused(2, "--lanes is '17', expected 1 to 16", "-m", model, "--lanes", 17)
    refused(2, "one file too many", "a", "b")
    refused(2, "frob", "-m", model, "--stop-after", "frob")
    refused(2, "frob", "-m", model, "--passes", "canonicalise,frob")
    refused(2, "frob", "-m", model, "--skip", "frob")
    refused(2, "--passes", "-m", model, "--passes", "tile", "--stop-after", "tile")
    refused(2, "comes before", "-m", model, "--start-from", "tile", "--stop-after", "prepare")
    refused(1, "nowhere.mlir", folder / "nowhere.mlir")
    refused(1, "nowhere", "-m", folder / "nowhere")
    refused(1, "<stdin>:1:", "-", text="modul {}")
    refused(1, "'<stdin>': expected a module", "-", text='"decode.model"() : () -> ()')
    refused(1, "no 'model' is declared", "-", text="module {}")
    refused(1, "cannot write", "-m", model, "-o", folder / "no" / "such")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "model"
        subprocess.run([MAKE_MODEL, "--family", "qwen3", "--hf", str(model)], check=True)
        names = passes()
        checks.that("usage: stele-opt" in opt("--help").stdout, "--help")
        checks.that(opt("--version").stdout.startswith("stele-opt "), "--version")
        pipelines(model, names)
        skipping(model, names)
        dumps(model, folder, names)
        faults(model, folder)
    checks.finish()


if __name__ == "__main__":
    main()
