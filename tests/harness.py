"""What the tests that drive the command line share: running `stele`, reading arrays, and checks
that are collected, so that one run shows every failure. Python's standard library alone."""
import array
import json
import lzma
import math
import os
import pathlib
import struct
import subprocess
import sys
import tarfile

SKIP = 77  # the exit code by which Meson knows a skipped test
GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"


# ---- checks ---------------------------------------------------------------------------------

class Checks:
    """Counts what held and prints what did not."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def that(self, condition, text):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {text}", flush=True)
        return bool(condition)

    def equal(self, found, expected, text):
        return self.that(found == expected, f"{text}: found {found!r}, expected {expected!r}")

    def close(self, found, expected, tolerance, text):
        """Two flat sequences within an absolute tolerance; NaN is never close."""
        if len(found) != len(expected):
            return self.that(False, f"{text}: {len(found)} numbers, expected {len(expected)}")
        worst, where = 0.0, 0
        for i, (a, b) in enumerate(zip(found, expected)):
            difference = abs(a - b)
            if not difference <= worst:  # also when it is NaN
                worst, where = difference, i
                if math.isnan(difference):
                    break
        return self.that(worst <= tolerance,
                         f"{text}: differs by {worst:.3g} at {where}, tolerance {tolerance:g}")

    def finish(self):
        print(f"{self.passed} checks held, {self.failed} failed")
        sys.exit(1 if self.failed or not self.passed else 0)


# ---- running stele --------------------------------------------------------------------------

class Stele:
    """The program under test."""

    def __init__(self, path):
        self.path = str(path)

    def call(self, *arguments, **kwargs):
        """A finished process with text output; never raises for an exit code."""
        command = [self.path, *[str(a) for a in arguments]]
        kwargs.setdefault("timeout", 900)
        return subprocess.run(command, capture_output=True, text=True, errors="replace", **kwargs)

    def good(self, *arguments, **kwargs):
        """As call, but an exit code other than 0 ends the test with the message."""
        done = self.call(*arguments, **kwargs)
        if done.returncode != 0:
            raise SystemExit(f"stele {' '.join(map(str, arguments))}: exit {done.returncode}\n"
                             f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done

    def json(self, *arguments, **kwargs):
        return json.loads(self.good(*arguments, "--json", **kwargs).stdout)

    def compile(self, model, output, *options):
        self.good("compile", model, "-o", output, "--quiet", *options)
        return output

    def generate(self, artefact, ids, count, *options):
        """Greedy ids after a prompt of ids, going on past stop ids."""
        return self.json("run", artefact, "--ids", join(ids), "--max-new-tokens", count,
                         "--ignore-eos", *options)["ids"]

    def forward(self, artefact, ids, output, *options):
        self.good("forward", artefact, "--ids", join(ids), "-o", output, *options)
        return read_npy(output)

    def passes(self):
        """Names of all passes, in their order."""
        lines = self.good("compile", "--list").stdout.split("passes:\n")[1].splitlines()
        return [line.split()[0] for line in lines if line.strip()]

    def variants(self):
        """Values of --cpu whose code this machine can run, best first."""
        return json.loads(self.good("doctor", "--json").stdout)["machine"]["levels"]


def join(ids):
    return ",".join(map(str, ids))


# ---- files ----------------------------------------------------------------------------------

def read_npy(path):
    """(shape, flat array of float) of a NumPy file of little-endian float32."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", f"{path} is no NumPy file of format 1.0"
    size = struct.unpack_from("<H", data, 8)[0]
    header = eval(data[10:10 + size].decode(), {"__builtins__": {}})  # a dict of literals
    assert header["descr"] == "<f4" and not header["fortran_order"]
    assert (10 + size) % 64 == 0
    values = array.array("f")
    values.frombytes(data[10 + size:])
    assert len(values) == math.prod(header["shape"])
    return header["shape"], values


def read_safetensors(path):
    """{name: (shape, flat array of float)} of the float32 tensors of a file."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        values = array.array("f")
        values.frombytes(data[8 + size + begin:8 + size + end])
        tensors[name] = (tuple(entry["shape"]), values)
    return tensors


def unpack_model(name, folder):
    """Unpacks a golden model into folder and returns (its directory, golden, arrays)."""
    with tarfile.open(GOLDEN / "models" / f"{name}.tar.xz", "r:xz") as archive:
        archive.extractall(folder)
    directory = pathlib.Path(folder) / name
    golden = json.loads((directory / "golden.json").read_text())
    return directory, golden, read_safetensors(directory / "golden.safetensors")


def read_json_xz(path):
    with lzma.open(path, "rt") as file:
        return json.load(file)


# ---- numbers --------------------------------------------------------------------------------

def rows(flat, columns):
    return [flat[i:i + columns] for i in range(0, len(flat), columns)]


def logsumexp(row):
    top = max(row)
    return top + math.log(sum(math.exp(x - top) for x in row))


def divergence(reference, found):
    """KL divergence of the distributions of two rows of logits."""
    a, b = logsumexp(reference), logsumexp(found)
    return sum(math.exp(x - a) * ((x - a) - (y - b)) for x, y in zip(reference, found))


def find_model(name):
    """The GGUF file of a model of tools/fetch-model, fetched when it isn't there; None when it can't
    be had."""
    given = os.environ.get(f"STELE_{name.upper()}")
    if given:
        return pathlib.Path(given)
    source = GOLDEN.parent.parent
    done = subprocess.run([source / "tools" / "fetch-model", name], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name} can't be had: {done.stderr.strip()}")
        return None
    return pathlib.Path(done.stdout.strip())


def find_smollm2():
    return find_model("smollm2")
