"""The virtual environments of the peers: made once, kept in the cache, each for one level."""
import os
import pathlib
import subprocess
import sys

import table

HERE = pathlib.Path(__file__).resolve().parent


class Unavailable(Exception):
    """Why a peer or a model can't be had; the comparison goes on without it."""


def run(command, log, variables=None):
    """A command whose output goes to a log; the log's end is the reason when it fails."""
    with open(log, "a") as out:
        begin = out.tell()
        print("$", *command, file=out, flush=True)
        done = subprocess.run(list(map(str, command)), stdout=out, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(variables or {})})
    if done.returncode != 0:
        with open(log, errors="replace") as lines:
            lines.seek(begin)
            said = [line.strip() for line in lines.read().splitlines()[1:] if line.strip()]
        errors = [line for line in said if "error" in line.lower()] or said or ["no output"]
        raise Unavailable(f"'{pathlib.Path(str(command[0])).name}' failed: {errors[-1][:200]} "
                          f"(log: {log})")


class Environments:
    def __init__(self, cache, given, level=None, say=print):
        self.cache, self.given, self.level, self.say = pathlib.Path(cache), given, level, say
        self.failed = {}

    def python(self, name):
        """The Python of an environment, which is made when it isn't there."""
        if not name:
            return sys.executable
        wanted, variables = table.ENVIRONMENTS[name], dict(table.ENVIRONMENTS[name].variables)
        if self.level and "CMAKE_ARGS" in variables:  # what is built here is built for the level
            name = f"{name}-{self.level}"
            variables["CMAKE_ARGS"] = table.LEVELS[self.level].cmake
        if name in self.given:
            return self.given[name]
        if name in self.failed:
            raise self.failed[name]
        try:
            return self.make(name, wanted, variables)
        except Unavailable as reason:
            self.failed[name] = reason
            raise

    def make(self, name, wanted, variables):
        folder = self.cache / "environments" / name
        folder.mkdir(parents=True, exist_ok=True)
        python, stamp, log = folder / "bin" / "python", folder / "installed", folder / "log"
        what = repr((wanted, variables))
        if stamp.exists() and stamp.read_text() == what:
            return str(python)
        self.say(f"installing {', '.join((*wanted.alone, *wanted.packages))}")
        run([sys.executable, "-m", "venv", "--clear", folder], self.cache / f"{name}.log")
        # What can be built here is built here: a wheel made elsewhere is made for any processor.
        natively = ["--no-binary", "llama-cpp-python", "--no-cache-dir"] * ("CC" in variables)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", *natively]
        if wanted.alone:
            run([*pip, "--no-deps", *wanted.alone], log, variables)
        run([*pip, *wanted.packages], log, variables)
        if wanted.after:
            run([python, HERE / wanted.after], log, variables)
        stamp.write_text(what)
        return str(python)
