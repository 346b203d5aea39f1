#!/usr/bin/env python3
"""What users of other engines reported as faults, as tests here: results that depend on the number of
threads, half-precision weights that are slow or overflow, numbers that nobody reports.

    reports.py --stele PATH --make-model PATH
"""
import argparse
import array
import math
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import models  # noqa: E402
from harness import Checks, Stele, join, read_npy, rows  # noqa: E402

CAPACITY = 64
HALVES = {"F16": "float16", "BF16": "bfloat16"}


def some_ids(count, vocab=256):
    return [(7 + 37 * i) % (vocab - 5) + 3 for i in range(count)]


# ---- half precision -------------------------------------------------------------------------

def half(value):
    return struct.unpack("<e", struct.pack("<e", value))[0]


def bfloat(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def to_words(values, dtype):
    if dtype == "F16":
        return array.array("H", struct.pack(f"<{len(values)}e", *values))
    return array.array("H", (struct.unpack("<I", struct.pack("<f", v))[0] >> 16 for v in values))


def write_half(folder, settings, named, dtype):
    """A directory in half precision, and its tensors as the numbers that they have become."""
    rounding = half if dtype == "F16" else bfloat
    rounded = {name: (shape, array.array("f", map(rounding, values)))
               for name, (shape, values) in named.items()}
    words = {name: (shape, to_words(values, dtype)) for name, (shape, values) in rounded.items()}
    settings = dict(settings, dtype=HALVES[dtype])
    return models.write(folder, settings, data=models.safetensors(words, dtype)), rounded


# ---- a Llama in float64 ---------------------------------------------------------------------

class Reference:
    """Python's floats are float64. Keys and values are rounded to the cache's numbers first."""

    def __init__(self, settings, named, cache):
        self.settings, self.named, self.cache = settings, named, cache

    def linear(self, name, x):
        (count, columns), flat = self.named[name + ".weight"]
        return [math.fsum(flat[r * columns + i] * x[i] for i in range(columns))
                for r in range(count)]

    def norm(self, name, x):
        scale = 1 / math.sqrt(math.fsum(v * v for v in x) / len(x) + self.settings["rms_norm_eps"])
        return [v * scale * w for v, w in zip(x, self.named[name + ".weight"][1])]

    def turn(self, flat, position):
        """Rope over pairs (i, i + half) of each head."""
        size = self.settings["head_dim"]
        out = list(flat)
        for begin in range(0, len(flat), size):
            for i in range(size // 2):
                angle = position * 10000.0 ** (-2 * i / size)
                a, b = flat[begin + i], flat[begin + i + size // 2]
                out[begin + i] = a * math.cos(angle) - b * math.sin(angle)
                out[begin + i + size // 2] = b * math.cos(angle) + a * math.sin(angle)
        return out

    def attend(self, q, keys, values):
        s, out, self.largest = self.settings, [], getattr(self, "largest", 0.0)
        size, group = s["head_dim"], s["num_attention_heads"] // s["num_key_value_heads"]
        for h in range(s["num_attention_heads"]):
            at = h // group * size
            scores = [math.fsum(q[h * size + i] * k[at + i] for i in range(size)) / math.sqrt(size)
                      for k in keys]
            top = max(scores)
            self.largest = max(self.largest, max(map(abs, scores)))
            weights = [math.exp(v - top) for v in scores]
            total = math.fsum(weights)
            out += [math.fsum(w * v[at + i] for w, v in zip(weights, values)) / total
                    for i in range(size)]
        return out

    def layer(self, l, x, position, keys, values):
        p = f"model.layers.{l}."
        y = self.norm(p + "input_layernorm", x)
        keys.append([self.cache(v) for v in self.turn(self.linear(p + "self_attn.k_proj", y), position)])
        values.append([self.cache(v) for v in self.linear(p + "self_attn.v_proj", y)])
        q = self.turn(self.linear(p + "self_attn.q_proj", y), position)
        o = self.linear(p + "self_attn.o_proj", self.attend(q, keys, values))
        x = [a + b for a, b in zip(x, o)]
        y = self.norm(p + "post_attention_layernorm", x)
        gate, up = self.linear(p + "mlp.gate_proj", y), self.linear(p + "mlp.up_proj", y)
        down = self.linear(p + "mlp.down_proj",
                           [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])
        return [a + b for a, b in zip(x, down)]

    def logits(self, ids):
        layers = self.settings["num_hidden_layers"]
        cache = [([], []) for _ in range(layers)]
        hidden = self.settings["hidden_size"]
        table = self.named["model.embed_tokens.weight"][1]
        result = []
        for position, token in enumerate(ids):
            x = list(table[token * hidden:(token + 1) * hidden])
            for l in range(layers):
                x = self.layer(l, x, position, *cache[l])
            result.append(self.linear("lm_head", self.norm("model.norm", x)))
        return result


# ---- the tests ------------------------------------------------------------------------------

class World:
    def __init__(self, arguments, folder):
        self.stele, self.make_model, self.folder = Stele(arguments.stele), arguments.make_model, folder
        self.checks = Checks()
        self.settings = models.config()
        self.named = models.tensors(self.settings)

    def compile(self, model, name, *options):
        return self.stele.compile(model, self.folder / f"{name}.so", "--max-cache-len", CAPACITY,
                                  *options)

    def make(self, *options):
        subprocess.run([self.make_model, *map(str, options)], check=True)


def check_threads(world):
    """1, 2, 3, 8 threads and twice the processors: the same ids, logits the same to the bit."""
    counts = sorted({1, 2, 3, 8, min(2 * len(os.sched_getaffinity(0)), 64)})
    gguf = world.folder / "threads.gguf"
    world.make("--gguf", gguf, "--hidden", 128, "--heads", 6, "--kv-heads", 3, "--head-dim", 32,
               "--intermediate", 288, "--vocab", 300, "--type", "q4_1", "--embed-type", "q8_0")
    cases = [(models.write(world.folder / "f32", world.settings, world.named), ()),
             (gguf, ()), (gguf, ("--precise",)), (gguf, ("--lanes", 3, "--prefill", 5))]
    for number, (model, options) in enumerate(cases):
        artefact = world.compile(model, f"threads{number}", *options)
        ids, logits = [], []
        for threads in counts:
            out = world.folder / "logits.npy"
            ids.append(world.stele.generate(artefact, some_ids(29), 30, "--threads", threads))
            found = world.stele.forward(artefact, some_ids(45), out, "--all", "--threads", threads)
            logits.append(found[1])
        for threads, found_ids, found in zip(counts, ids, logits):
            label = f"{model.name} {options} {threads} threads"
            difference = max(abs(a - b) for a, b in zip(found, logits[0]))
            world.checks.equal(found_ids, ids[0], f"{label}: ids")
            world.checks.that(found.tobytes() == logits[0].tobytes(),
                              f"{label}: logits differ by up to {difference:g}")


def check_half_accuracy(world):
    """Half-precision weights meet float32 activations and sums: as near to float64 as those are."""
    ids = some_ids(14)
    for dtype in HALVES:
        model, rounded = write_half(world.folder / dtype, world.settings, world.named, dtype)
        for cache, rounding in (("f32", float), ("f16", half)):
            expected = Reference(world.settings, rounded, rounding).logits(ids)
            artefact = world.compile(model, f"{dtype}-{cache}", "--cache-dtype", cache)
            for threads in (1, 3):
                found = rows(world.stele.forward(artefact, ids, world.folder / "half.npy", "--all",
                                                 "--threads", threads)[1], 256)
                worst = max(abs(a - b) for x, y in zip(found, expected) for a, b in zip(x, y))
                # a number of the cache may round to its neighbour where float32 and float64 differ
                world.checks.that(worst < (2e-5 if cache == "f32" else 2e-3),
                                  f"{dtype}, cache {cache}: {worst:g} from float64")


def check_large_scores(world):
    """Scores of 10,000 in half precision: the softmax is float32 and nothing overflows."""
    scaled = {name: (shape, array.array("f", (v * 36 for v in values)))
              if "q_proj" in name or "k_proj" in name else (shape, values)
              for name, (shape, values) in world.named.items()}
    ids = some_ids(14)
    model, rounded = write_half(world.folder / "large", world.settings, scaled, "F16")
    reference = Reference(world.settings, rounded, half)
    expected = reference.logits(ids)
    world.checks.that(1e4 < reference.largest < 1e5, f"scores are up to {reference.largest:g}")
    for options in ((), ("--prefill", 1), ("--target", "ref")):
        artefact = world.compile(model, "large", "--cache-dtype", "f16", *options)
        found = world.stele.forward(artefact, ids, world.folder / "large.npy", "--all")[1]
        world.checks.that(all(map(math.isfinite, found)), f"large scores {options}: not finite")
        best = [row.index(max(row)) for row in rows(found, 256)]
        world.checks.equal(best, [row.index(max(row)) for row in expected],
                           f"large scores {options}: the best ids")


def check_half_speed(world):
    """On a model of 200 MB a step with half-precision weights is not slower than with float32."""
    artefacts = {}
    for dtype in ("f32", "f16", "bf16"):
        model = world.folder / f"speed-{dtype}"
        world.make("--hf", model, "--hidden", 768, "--heads", 12, "--kv-heads", 4, "--head-dim", 64,
                   "--intermediate", 2304, "--layers", 6, "--vocab", 8192, "--dtype", dtype)
        artefacts[dtype] = world.compile(model, f"speed-{dtype}")
    times = {dtype: [] for dtype in artefacts}
    for _ in range(5):
        for dtype, artefact in artefacts.items():
            done = world.stele.json("bench", artefact, "-p", 0, "-n", 10, "-r", 1, "-t", 1)
            times[dtype].append(1 / done["results"][0]["tokens_per_s"])
    size = world.stele.json("inspect", artefacts["f32"])["weight_bytes"]
    world.checks.that(1.8e8 < size < 2.4e8, f"the float32 model has {size} bytes")
    for dtype in ("f16", "bf16"):
        ratio = statistics.median(times[dtype]) / statistics.median(times["f32"])
        world.checks.that(ratio <= 1.05, f"{dtype} takes {ratio:.2f} times as long as f32")


def check_numbers(world):
    """Bytes of cache per kind, tokens computed and reused, speed, share of the memory's, ops of each
    device."""
    artefact = world.compile(world.folder / "f32", "numbers")
    shown = world.stele.json("inspect", artefact)
    for group in shown["layer_groups"]:
        world.checks.that(group["kind"] and group["bytes_at_capacity"] > 0, f"group {group}")
    world.checks.equal(sum(g["bytes_at_capacity"] for g in shown["layer_groups"]),
                       shown["cache_bytes_at_capacity"], "bytes of cache")
    for step in shown["steps"]:
        world.checks.that(step["ops"].get("cpu", 0) > 1 and len(step["ops"]) == 1,
                          f"ops of each device {step}")
    stats = world.stele.json("run", artefact, "--ids", join(some_ids(9)), "-n", 20,
                             "--ignore-eos")["stats"]
    world.checks.equal([stats[k] for k in ("prompt_tokens", "reused_tokens", "generated_tokens")],
                       [9, 0, 20], "tokens")
    for key in ("decode_tokens_per_s", "cache_bytes", "weight_bytes"):
        world.checks.that(stats[key] > 0, f"run: {key}")
    for result in world.stele.json("bench", artefact, "-r", 2)["results"]:
        for key in ("tokens_per_s", "bytes_per_token", "gb_per_s", "read_gb_per_s", "share"):
            world.checks.that(result[key] > 0, f"bench {result['test']}: {key}")


def check_footprint(world):
    """A running model holds its weights once, the pages in use, and little more."""
    artefact = world.folder / "speed-f32.so"
    code = ("import resource,subprocess,sys;subprocess.run(sys.argv[1:],check=True,"
            "stdout=subprocess.DEVNULL);print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    command = [world.stele.path, "run", str(artefact), "--ids", join(some_ids(9)), "-n", "64",
               "--ignore-eos", "--quiet"]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True,
                          check=True)
    resident = int(done.stdout) * 1024
    weights = world.stele.json("inspect", artefact)["weight_bytes"]
    world.checks.that(resident < weights + (16 << 20),
                      f"{resident} bytes resident for {weights} of weights")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stele", required=True)
    parser.add_argument("--make-model", required=True)
    with tempfile.TemporaryDirectory() as folder:
        world = World(parser.parse_args(), pathlib.Path(folder))
        for check in (check_threads, check_half_accuracy, check_large_scores, check_half_speed,
                      check_numbers, check_footprint):
            check(world)
    world.checks.finish()


main()
