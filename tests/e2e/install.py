#!/usr/bin/env python3
"""An installation works wherever it lies: the program finds its libraries, the manual pages and
completions are there, and a program builds against the installed headers.

    install.py BUILD-FOLDER MESON [CC...]
"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import Checks, Stele  # noqa: E402

PROGRAM = """
#include <stele/stele.h>
int main(void) { return stele_machine_workers() == 0; }
"""


def one(folder, pattern):
    found = sorted(folder.rglob(pattern))
    return found[0] if found else None


def main():
    build, meson, *compiler = sys.argv[1:]
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        done = subprocess.run([meson, "install", "-C", build, "--no-rebuild", "--destdir", folder],
                              capture_output=True, text=True)
        checks.equal(done.returncode, 0, f"meson install: {done.stdout[-800:]}{done.stderr[-800:]}")
        program = one(folder, "bin/stele")
        if not checks.that(program is not None, "stele is installed"):
            checks.finish()
        stele = Stele(program)
        checks.equal(stele.call("--version").returncode, 0, "the installed stele runs")
        if one(folder, "libstele-compiler.so*"):
            done = stele.call("compile", "--list")
            checks.that(done.returncode == 0 and "flatten" in done.stdout,
                        f"it finds its compiler: {done.stderr}")
        for name in ("stele.1", "stele-compile.1", "stele-run.1", "stele-doctor.1", "_stele",
                     "stele.fish", "completions/stele", "stele.h", "artifact.h", "status.def",
                     "*.pc"):
            checks.that(one(folder, name) is not None, f"{name} is installed")
        include, library = one(folder, "include/stele").parent, one(folder, "libstele.so").parent
        (folder / "user.c").write_text(PROGRAM)
        done = subprocess.run([*compiler, "user.c", f"-I{include}", f"-L{library}", "-lstele",
                               f"-Wl,-rpath,{library}", "-o", "user"], cwd=folder,
                              capture_output=True, text=True)
        if checks.equal(done.returncode, 0, f"a user's program builds: {done.stderr}"):
            checks.equal(subprocess.run([folder / "user"]).returncode, 0, "and runs")
    checks.finish()


main()
