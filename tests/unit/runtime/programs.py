#!/usr/bin/env python3
"""Tests that run programs.

    programs.py examples WRITE_FAKE MINIMAL GENERATE   both examples generate the same ids
    programs.py needed LIBSTELE [LIBRARY...]           nothing but libc, libm and the named is needed
"""
import pathlib
import re
import subprocess
import sys
import tempfile


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def examples(write_fake, minimal, generate):
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.so"
        for settings in [["capacity=64"], ["capacity=17", "seed=9"], ["prefill=1", "seed=3"]]:
            assert run(write_fake, model, *settings).returncode == 0
            for prompt in [["5"], ["1", "2", "3"], [str(i) for i in range(16)]]:
                lean, full = (run(p, model, 100, *prompt) for p in (minimal, generate))
                assert lean.returncode == 0 and full.returncode == 0, (lean.stderr, full.stderr)
                capacity = 17 if "capacity=17" in settings else 64
                assert len(lean.stdout.split()) == capacity - len(prompt) + 1, lean.stdout
                assert lean.stdout == full.stdout, (settings, prompt, lean.stdout, full.stdout)
        too_long = run(generate, model, 5, *["1"] * 65)
        assert too_long.returncode == 1 and "--max-cache-len" in too_long.stderr, too_long.stderr
        for program in (minimal, generate):
            assert run(program, model, 5, 97).returncode == 1
            assert run(program, program, 5, 1).returncode == 1
            assert run(program, model).returncode in (1, 2)
            run(write_fake, model, "capacity=64")


def needed(library, *allowed):
    """Some systems keep threads and dlopen in libraries of their own."""
    allowed = {"libc", "libm", "libdl", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64",
               *allowed}
    sections = run("readelf", "-dW", library)
    assert sections.returncode == 0, sections.stderr
    names = re.findall(r"\(NEEDED\).*\[(.*?)\.so", sections.stdout)
    assert names and set(names) <= allowed, f"{library} needs {names}, {sorted(allowed)} are allowed"


{"examples": examples, "needed": needed}[sys.argv[1]](*sys.argv[2:])
