"""stele by its own command line: `stele bench` measures and says what the memory gives meanwhile.
The program's path is in STELE."""
import json
import os
import subprocess


class Peer:
    def __init__(self, path, threads, setting):
        self.path, self.threads = path, str(threads)
        self.version = self.call("--version").split()[1]
        self.call("inspect", path)

    @staticmethod
    def call(*arguments):
        done = subprocess.run([os.environ["STELE"], *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def bench(self, prompt, tokens, depth):
        result, = json.loads(self.call(
            "bench", self.path, "-p", str(prompt), "-n", str(tokens), "-d", str(depth), "-t",
            self.threads, "-r", "1", "--json"))["results"]
        return {"seconds": (prompt or tokens) / result["tokens_per_s"],
                "read_gb_per_s": result["read_gb_per_s"],
                "bytes_per_token": result["bytes_per_token"]}

    def prefill(self, ids):
        return self.bench(len(ids), 0, 0)

    def decode(self, ids, count):
        return self.bench(0, count, len(ids))


def first_command(python, path, threads, ids, folder):
    listed = ",".join(map(str, ids))
    return [os.environ["STELE"], "run", path, "--ids", listed, "-n", "1", "--ignore-eos", "-q",
            "-t", str(threads)]
