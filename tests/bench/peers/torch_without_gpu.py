#!/usr/bin/env python3
"""Lets the torch of PyPI load without the gigabytes of graphics libraries that it is linked with.

Each library that is missing gets a stand-in beside torch's own: it defines the functions that torch
imports, under the versions it asks for, and each of them returns CUDA's code for "no device". Run
by the Python that has torch; needs readelf, nm and a C compiler. Does nothing where none is
missing.
"""
import collections
import importlib.util
import os
import pathlib
import re
import subprocess
import tempfile

THEIRS = re.compile(r"(lib)?(cu|nccl|nv)")
NO_DEVICE = 100  # cudaErrorNoDevice and CUDA_ERROR_NO_DEVICE


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def look(libraries):
    """Names of the needed libraries; the library of each version; imported and defined symbols."""
    needed, library_of, imported, defined = set(), {}, set(), set()
    for path in map(str, libraries):
        needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path)))
        owner = None
        for line in output("readelf", "-VW", path).splitlines():
            if found := re.search(r"File: (\S+)", line):
                owner = found[1]
            elif found := re.search(r"Name: (\S+)\s+Flags: \S+\s+Version", line):
                library_of[found[1]] = owner
        for line in output("nm", "-D", path).splitlines():
            kind, name = line.split()[-2:]
            imported.add(name) if kind == "U" else defined.add(name.partition("@")[0])
    return needed, library_of, imported, defined


def write(path, versions, scratch):
    """versions: {version, or "": names}."""
    names = [name for group in versions.values() for name in group]
    labels = "".join(f".globl {n}\n.type {n}, @function\n{n}:\n" for n in names)
    source = pathlib.Path(scratch) / "stand_in.s"
    source.write_text(f".text\n{labels}\tmov ${NO_DEVICE}, %eax\n\tret\n"
                      '.section .note.GNU-stack, "", @progbits\n')
    command = [os.environ.get("CC", "clang-22"), "-shared", "-nostdlib", f"-Wl,-soname,{path.name}",
               "-o", str(path), str(source)]
    nodes = [f"{version} {{ global: {' '.join(n + ';' for n in group)} }};"
             for version, group in versions.items() if version]
    if nodes:
        script = source.with_suffix(".map")
        script.write_text("\n".join(nodes))
        command.append(f"-Wl,--version-script,{script}")
    subprocess.run(command, check=True)


def main():
    folder = pathlib.Path(importlib.util.find_spec("torch").origin).parent / "lib"
    libraries = [p for p in folder.iterdir() if ".so" in p.name and p.is_file()]
    needed, library_of, imported, defined = look(libraries)
    missing = sorted(n for n in needed - {p.name for p in libraries} if THEIRS.match(n)
                     and not list(folder.parent.parent.glob(f"nvidia/**/{n}")))
    wanted = collections.defaultdict(lambda: collections.defaultdict(set))
    for symbol in imported:
        name, _, version = symbol.partition("@")
        owner = library_of.get(version, missing[0] if missing and THEIRS.match(name) else None)
        if name not in defined and owner in missing:
            wanted[owner][version].add(name)
    with tempfile.TemporaryDirectory() as scratch:
        for name in missing:
            write(folder / name, wanted[name], scratch)


main()
