"""The models, in the formats that the peers read: made once, kept in the cache."""
import os
import pathlib
import shutil
import subprocess
import sys

import table
from environments import HERE, Unavailable, run

SOURCE_TREE = HERE.parents[2]


class Models:
    def __init__(self, cache, environments, stele, capacity, say=print):
        self.folder = pathlib.Path(cache) / "models"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.environments, self.stele, self.capacity, self.say = environments, stele, capacity, say

    def path(self, name, kind):
        """Where a model lies in a format; an artefact is made anew by each run."""
        method, *what = table.MODELS[name].recipe
        if kind == table.GGUF and method in ("fetch", "file"):
            return self.fetch() if method == "fetch" else str(*what)
        level = f".{self.environments.level}" if self.environments.level else ""
        path = self.folder / f"{name}.{kind}{level if kind == table.ARTEFACT else ''}"
        if path.exists() and kind != table.ARTEFACT:
            return str(path)
        self.say(f"making {path.name}")
        part = path.with_name(f"{path.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        getattr(self, f"make_{kind}")(name, part, self.folder / f"{path.name}.log")
        os.replace(part, path)
        return str(path)

    @staticmethod
    def fetch():
        given = os.environ.get("STELE_SMOLLM2")
        if given:
            return given
        done = subprocess.run([SOURCE_TREE / "tools" / "fetch-model"], capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise Unavailable(f"the model can't be fetched: {done.stderr.strip()[-200:]}")
        return done.stdout.strip()

    def make_gguf(self, name, out, log):
        method, what = table.MODELS[name].recipe
        if method == "random":
            run([sys.executable, HERE / "write_random.py", what, out], log)
        else:
            run([self.environments.python("models"), HERE / "requantise.py", self.fetch(), what,
                 out], log)

    def make_hf(self, name, out, log):
        run([self.environments.python("models"), HERE / "write_hf.py", self.path(name, table.GGUF),
             out], log)

    def make_onnx(self, name, out, log):
        run([self.environments.python("torch"), "-m", "onnxruntime_genai.models.builder", "-i",
             self.path(name, table.HF), "-o", out, "-p", "int4", "-e", "cpu", "-c",
             self.folder / "scratch"], log)

    def make_artefact(self, name, out, log):
        level = ["--cpu", self.environments.level] if self.environments.level else []
        run([self.stele, "compile", self.path(name, table.GGUF), "-o", out, "--quiet",
             "--max-cache-len", self.capacity, *level], log)


def size(path):
    """Bytes of the weights: the files of a model without its texts."""
    path = pathlib.Path(path)
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".json")
