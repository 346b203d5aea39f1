#!/usr/bin/env python3
"""Artefacts as files: the same bytes each time, few libraries, whole or not there at all, and
refused with a reason when they are damaged, of another version, or for another processor.

    artifacts.py --stele PATH --probe PATH
"""
import argparse
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import models  # noqa: E402
from harness import Checks, Stele  # noqa: E402

TRAILER = 64


class World:
    def __init__(self, arguments, folder):
        self.stele = Stele(arguments.stele)
        self.probe = arguments.probe
        self.folder = folder
        self.checks = Checks()
        self.model = models.write(folder / "model")
        self.made = {}
        self.good = self.compile()

    def compile(self, *options):
        """The artefact for these options, compiled when first asked for."""
        if options not in self.made:
            output = self.folder / f"made{len(self.made)}.so"
            self.made[options] = self.stele.compile(self.model, output, *options)
        return self.made[options]

    def expect(self, label, artefact, words, command=("run",), code=1):
        """A failure that says these words, in one line."""
        rest = ("--ids", "1,2,3") if command[0] in ("run", "forward") else ()
        done = self.stele.call(*command, artefact, *rest)
        self.checks.equal(done.returncode, code, f"{label}: exit code, {done.stderr!r}")
        for word in words:
            self.checks.that(word in done.stderr, f"{label}: lacks {word!r}: {done.stderr!r}")
        self.checks.equal(done.stderr.strip().count("\n"), 0, f"{label}: one line {done.stderr!r}")

    def changed(self, name, change):
        """A copy of the good artefact with change(bytearray) applied."""
        data = bytearray(self.good.read_bytes())
        data = change(data) or data
        path = self.folder / name
        path.write_bytes(data)
        return path


def check_same_bytes(world):
    other = world.folder / "elsewhere" / "deep"
    other.mkdir(parents=True)
    model = models.write(other / "model")
    for options, again in (((), ("--threads", 1)), (("--target", "ref"),) * 2,
                           (("--cpu", "portable"),) * 2):
        a = world.compile(*options)
        b = world.stele.compile(model, other / "b.so", *again)
        world.checks.that(a.read_bytes() == b.read_bytes(),
                          f"two compiles give the same bytes, {options}")


def check_libraries(world):
    for options in ((), ("--target", "ref"), ("--cpu", "portable")):
        artefact = world.compile(*options)
        done = subprocess.run(["readelf", "-d", "-W", artefact], capture_output=True, text=True)
        needed = [line.split("[")[1].rstrip("]") for line in done.stdout.splitlines()
                  if "(NEEDED)" in line]
        world.checks.that(set(needed) <= {"libc.so.6", "libm.so.6"}, f"{options} needs {needed}")
        world.checks.that("TEXTREL" not in done.stdout, f"{options} has relocations in its code")
        done = subprocess.run(["nm", "-D", "--defined-only", artefact], capture_output=True, text=True)
        names = [line.split()[-1] for line in done.stdout.splitlines()]
        world.checks.equal(names, ["stele_artifact_query"], f"{options} exports")


def check_damage(world):
    size = world.good.stat().st_size
    world.expect("cut by a byte", world.changed("cut1.so", lambda d: d[:-1]), ["cut1.so"])
    world.expect("cut in half", world.changed("cut2.so", lambda d: d[:size // 2]), ["cut2.so"])
    world.expect("cut to nothing", world.changed("cut3.so", lambda d: d[:100]), ["cut3.so"])

    def flip(place):
        def change(data):
            data[place] ^= 0x40
        return change
    world.expect("a bit of the code", world.changed("code.so", flip(5000)), ["code.so"])
    for place in range(size - TRAILER, size, 7):
        world.expect(f"a bit of the trailer, {place - size}",
                     world.changed("trailer.so", flip(place)), ["trailer.so"])
    offset = struct.unpack_from("<Q", world.good.read_bytes(), size - TRAILER + 32)[0]
    damaged = world.changed("weights.so", flip(offset + 1000))
    world.expect("a bit of the weights", damaged, ["weights.so"], ("doctor",))
    world.checks.equal(world.stele.call("doctor", world.good).returncode, 0, "doctor of a good one")
    stripped = world.folder / "stripped.so"
    subprocess.run(["strip", "-o", stripped, world.good], check=True, capture_output=True)
    world.expect("stripped", stripped, ["stripped.so"])


def check_versions(world):
    def patched(name, *change):
        path = world.changed(name, lambda d: None)
        subprocess.run([world.probe, "trailer", path, *map(str, change)], check=True)
        return path
    world.expect("another ABI", patched("abi.so", "abi", 99), ["99", "1"])
    world.expect("another processor", patched("arm.so", "machine", 183), ["arm.so"])
    world.expect("weights past the end", patched("past.so", "weights_bytes", 1 << 60), ["past.so"])
    world.expect("code past the end", patched("long.so", "code_bytes", 1 << 60), ["long.so"])


def check_features(world):
    """What needs a feature is refused by its name where it is absent; portable takes a lesser."""
    level = world.compile("--cpu", "x86-64-v3")
    done = subprocess.run([world.probe, "open", level, "0x1f"], capture_output=True, text=True)
    world.checks.that(done.returncode == 1 and "avx2" in done.stderr,
                      f"x86-64-v3 without AVX2: {done.stderr!r}")
    portable = world.compile("--cpu", "portable")
    done = subprocess.run([world.probe, "open", portable, "0x1f"], capture_output=True, text=True)
    world.checks.equal(done.stdout.strip(), "x86-64", f"portable without features {done.stderr}")
    levels = {"x86-64-v3": (1, "avx2"), "x86-64-v3-vnni": (9, "avx_vnni"),
              "x86-64-v4-vnni": (7, "avx512"), "x86-64-v4-amx": (0x17, "needs")}
    for name, (needs, lacking) in levels.items():
        if name not in world.stele.variants():
            world.expect(f"{name} on this machine", world.compile("--cpu", name), [lacking])
            continue
        done = subprocess.run([world.probe, "open", portable, hex(0x1f & ~needs)],
                              capture_output=True, text=True)
        world.checks.equal(done.stdout.strip(), name, f"portable with {needs:#x}: {done.stderr}")


def check_weights_file(world):
    """Weights beside the artefact: needed, and bound to it."""
    artefact = world.folder / "split.so"
    weights = world.folder / "split.weights"
    world.stele.compile(world.model, artefact, "--weights-file", weights)
    ids = world.stele.generate(artefact, [1, 2, 3], 8)
    world.checks.equal(ids, world.stele.generate(world.good, [1, 2, 3], 8), "ids, weights beside")
    world.checks.equal(world.stele.call("doctor", artefact).returncode, 0, "doctor, weights beside")
    kept = weights.read_bytes()
    changed = world.folder / "changed.so"
    world.stele.compile(world.model, changed, "--weights-file", weights, "--cache-dtype", "f16")
    world.checks.equal(world.stele.generate(artefact, [1, 2, 3], 8), ids, "one file, two artefacts")
    other = models.write(world.folder / "other", named=models.tensors(models.config(), seed=2))
    world.stele.compile(other, changed, "--weights-file", weights)
    world.expect("weights of another model", artefact, ["split.weights", "another artefact"])
    weights.write_bytes(kept[:-4096])
    world.expect("weights that were cut", artefact, ["split.weights"])
    weights.unlink()
    world.expect("weights that are gone", artefact, ["split.weights"])


def check_failed_writes(world):
    """Nothing is left when writing fails, and what was there before stays."""
    folder = world.folder / "target"
    folder.mkdir()
    output = folder / "x.so"

    def compile_to(place, **kwargs):
        return world.stele.call("compile", world.model, "-o", place, "--quiet", "--target",
                                "ref", **kwargs)

    def limit(size):
        def set_limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return set_limit
    for size in (0, 4096, 100_000, 400_000):
        output.write_bytes(b"the old one")
        done = compile_to(output, preexec_fn=limit(size))
        world.checks.that(done.returncode == 1 and len(done.stderr.splitlines()) == 1,
                          f"disk full at {size}: {done.returncode} {done.stderr!r}")
        world.checks.equal(output.read_bytes(), b"the old one", f"disk full at {size}: the old file")
        world.checks.equal(len(list(folder.iterdir())), 1, f"disk full at {size}: files left")
    for place in (folder / "none" / "x.so", folder, pathlib.Path("/proc/x.so")):
        done = compile_to(place)
        world.checks.that(done.returncode == 1 and f"'{place}" in done.stderr,
                          f"{place}: {done.returncode} {done.stderr!r}")
    if os.geteuid() != 0:
        folder.chmod(0o500)
        world.checks.equal(compile_to(folder / "y.so").returncode, 1, "a folder that is read-only")
        folder.chmod(0o700)
    done = world.stele.call("forward", world.good, "--ids", "1", "-o", folder / "none" / "f.npy")
    world.checks.that(done.returncode == 1 and "f.npy" in done.stderr, f"forward: {done.stderr!r}")
    with open("/dev/full", "w") as full:
        done = subprocess.run([world.stele.path, "run", world.good, "--ids", "1", "-n", "4", "--json"],
                              stdout=full, stderr=subprocess.PIPE, text=True)
    world.checks.that(done.returncode == 1 and "standard output" in done.stderr,
                      f"standard output full: {done.returncode} {done.stderr!r}")


def check_own_files(world):
    """A compile never writes over the model that it reads."""
    model = models.write(world.folder / "own")
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    alias = world.folder / "alias"
    alias.hardlink_to(model / "model.safetensors")
    for options in (("-o", model / "model.safetensors"), ("-o", model / "config.json"),
                    ("-o", alias), ("-o", world.folder / "o.so", "--weights-file", alias)):
        done = world.stele.call("compile", model, *options, "--target", "ref")
        world.checks.that(done.returncode in (1, 2) and "overwritten" in done.stderr,
                          f"{options}: {done.returncode} {done.stderr!r}")
    world.checks.equal({path.name: path.read_bytes() for path in model.iterdir()}, before,
                       "the model after compiles onto its files")


def check_killed(world):
    """A compile that is killed while it writes leaves nothing."""
    folder = world.folder / "killed"
    folder.mkdir()
    command = [world.stele.path, "compile", world.model, "-o", folder / "x.so", "--quiet",
               "--target", "ref", "--max-cache-len", "3000000", "--weights-file", "x.weights"]
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    links = pathlib.Path(f"/proc/{job.pid}/fd")

    def writing():
        for link in links.iterdir():
            try:
                if str(folder) in os.readlink(link) and link.stat().st_size > 1 << 20:
                    return True
            except OSError:
                pass
        return False
    end = time.monotonic() + 60
    while job.poll() is None and time.monotonic() < end and not writing():
        time.sleep(0.002)
    world.checks.equal(job.poll(), None, "the compile was at work when it was killed")
    job.kill()
    job.wait()
    world.checks.equal(list(folder.iterdir()), [], "files left by a killed compile")


def check_options(world):
    """Values that only the compiler can judge."""
    for option, value in (("--target", "abacus"), ("--cpu", "z80"), ("--cache-dtype", "f7")):
        done = world.stele.call("compile", world.model, "-o", world.folder / "o.so", option, value)
        world.checks.that(done.returncode in (1, 2) and f"'{value}'" in done.stderr,
                          f"{option} {value}: {done.returncode} {done.stderr!r}")
        world.checks.that(not (world.folder / "o.so").exists(), f"{option} {value} leaves a file")
    done = world.stele.call("compile", world.model, "-o", world.folder / "o.so", "--target", "ref",
                            "--max-cache-len", 2048)
    world.checks.that(done.returncode == 0 and "1024" in done.stderr,
                      f"above the model's own maximum, with a note: {done.stderr!r}")
    for ids in ("000000000000007abc", "000000000000001255x", "1,,2", "1,2,", "-1", "1;2", ""):
        done = world.stele.call("run", world.good, "--ids", ids)
        world.checks.that(done.returncode == 2 and "--ids" in done.stderr and done.stdout == "",
                          f"--ids '{ids}': {done.returncode} {done.stderr!r}")
    null = world.stele.compile(world.model, world.folder / "null.so", "--target", "null")
    world.checks.equal(world.stele.call("inspect", null).returncode, 0, "the null target")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stele", required=True)
    parser.add_argument("--probe", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world = World(arguments, pathlib.Path(folder))
        for check in (check_same_bytes, check_libraries, check_damage, check_versions,
                      check_features, check_weights_file, check_failed_writes, check_own_files,
                      check_killed, check_options):
            check(world)
        world.checks.finish()


main()
