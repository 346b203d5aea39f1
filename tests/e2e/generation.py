#!/usr/bin/env python3
"""Generation from the command line and through libstele: any length with one compile, sessions
apart from each other, the end of the cache, odd sizes, what memory held before, allocations.

    generation.py --stele PATH --probe PATH --poison PATH
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import models  # noqa: E402
from harness import Checks, Stele, join, read_npy  # noqa: E402

CAPACITY = 64


def some_ids(count, start=3):
    return [(start + 37 * i) % 251 + 3 for i in range(count)]


class World:
    def __init__(self, arguments, folder):
        self.stele = Stele(arguments.stele)
        self.probe, self.poison = arguments.probe, arguments.poison
        self.folder = folder
        self.checks = Checks()
        self.model = models.write(folder / "model")
        self.cpu = self.compile("cpu")
        self.ref = self.compile("ref", "--target", "ref")

    def compile(self, name, *options, model=None, capacity=CAPACITY):
        return self.stele.compile(model or self.model, self.folder / f"{name}.so",
                                  "--max-cache-len", capacity, *options)


def check_lengths(world):
    """One compile serves every length of prompt."""
    for count in (1, 2, 7, 31, 63):
        ids = some_ids(count)
        expected = world.stele.generate(world.ref, ids, 1)
        world.checks.equal(world.stele.generate(world.cpu, ids, 1), expected, f"a prompt of {count}")


def check_sessions(world):
    """Sessions, resets and threads do not meet, in one model or in two."""
    prompts = some_ids(7), some_ids(12, start=90)
    expected = [join(world.stele.generate(world.ref, p, 10)) for p in prompts]
    other = world.compile("other", "--cache-dtype", "f32", "--prefill", 5)
    for second in (world.cpu, other):
        done = subprocess.run([world.probe, "sessions", world.cpu, second, *map(join, prompts), "10"],
                              capture_output=True, text=True)
        world.checks.equal(done.stdout.split(), expected, f"sessions, {second.name}: {done.stderr}")
        world.checks.equal(done.returncode, 0, f"sessions, {second.name}: {done.stderr}")


def check_cache_end(world):
    """At capacity C a prompt of P gives C - P + 1 ids; a longer prompt is refused at once."""
    for artefact in (world.cpu, world.ref):
        for prompt in (60, 63, 64):
            for cache in ("dynamic", "static"):
                done = world.stele.json("run", artefact, "--ids", join(some_ids(prompt)), "-n", 100,
                                        "--ignore-eos", "--cache-implementation", cache)
                world.checks.equal(len(done["ids"]), CAPACITY - prompt + 1, f"after {prompt} {cache}")
                world.checks.equal(done["finish_reason"], "length", f"after {prompt} {cache}")
        done = world.stele.call("run", artefact, "--ids", join(some_ids(65)))
        world.checks.equal(done.returncode, 1, "a prompt of 65: exit code")
        for word in ("65", "64", "--max-cache-len"):
            world.checks.that(word in done.stderr, f"a prompt of 65: lacks {word}: {done.stderr!r}")
        world.checks.equal(done.stdout, "", "a prompt of 65: standard output")
    without = world.stele.json("run", world.cpu, "--ids", join(some_ids(60)), "--ignore-eos")
    world.checks.equal(len(without["ids"]), 5, "without --max-new-tokens, to the capacity")


def check_odd_sizes(world):
    """Capacities and head sizes that no power of two divides."""
    for capacity in (1, 2, 3, 17, 63, 65, 640):
        for target in ("cpu", "ref"):
            artefact = world.compile("odd", "--target", target, capacity=capacity)
            prompt = some_ids(min(5, capacity))
            full = world.stele.generate(world.ref if capacity < CAPACITY else artefact, prompt, 24)
            ids = world.stele.generate(artefact, prompt, 24)
            room = capacity - len(prompt) + 1
            world.checks.equal(ids, full[:room], f"{target}, capacity {capacity}")
    for head, window in ((16, None), (20, None), (80, None), (20, 7)):
        settings = models.config(head_dim=head, num_attention_heads=3, num_key_value_heads=1,
                                 hidden_size=40, intermediate_size=56, vocab_size=101,
                                 model_type="mistral" if window else "llama",
                                 sliding_window=window)
        model = models.write(world.folder / f"head{head}-{window}", settings)
        prompt = [i % 101 for i in some_ids(23)]
        ref = world.compile("ref-head", "--target", "ref", model=model)
        expected = world.stele.generate(ref, prompt, 30)
        for prefill in (1, 5, 128):
            cpu = world.compile("cpu-head", "--prefill", prefill, model=model)
            world.checks.equal(world.stele.generate(cpu, prompt, 30), expected,
                               f"head size {head}, window {window}, prefill {prefill}")


def check_threads(world):
    """Any number of threads gives the same bits."""
    outputs = []
    for threads in (1, 2, 3, 8):
        out = world.folder / "threads.npy"
        world.stele.good("forward", world.cpu, "--ids", join(some_ids(40)), "--all", "-o", out,
                         "--threads", threads)
        outputs.append(out.read_bytes())
    world.checks.that(len(set(outputs)) == 1, "threads 1, 2, 3 and 8 give the same bits")


def check_poison(world):
    """What memory held before never shows."""
    for options in ((), ("--target", "ref"), ("--prefill", 5), ("--cache-dtype", "f16"),
                    ("--cpu", "x86-64")):
        artefact = world.compile("poison", *options)
        done = subprocess.run([world.poison, artefact, join(some_ids(23)), "20"],
                              capture_output=True, text=True)
        world.checks.equal(done.returncode, 0, f"poison {options}: {done.stderr}")
        expected = join(world.stele.generate(artefact, some_ids(23), 20))
        world.checks.equal(done.stdout.strip(), expected, f"poison {options}: ids")


def check_allocations(world):
    """A decode step allocates nothing; where it can't be counted that is said."""
    for cache in ("dynamic", "static"):
        done = world.stele.json("run", world.cpu, "--ids", join(some_ids(2)), "-n", 60,
                                "--ignore-eos", "--cache-implementation", cache)
        world.checks.that(done["stats"]["allocations_per_step"] in (0, None),
                          f"{cache}: allocations {done['stats']['allocations_per_step']}")
        again = world.stele.json("run", world.cpu, "--ids", join(some_ids(2)), "-n", 60,
                                 "--ignore-eos", "--cache-implementation", cache,
                                 "--prompt-lookup-num-tokens", 7)
        world.checks.equal(again["ids"], done["ids"], f"{cache}: ids with guesses")
        world.checks.that(again["stats"]["allocations_per_step"] in (0, None),
                          f"{cache}: allocations with guesses")


def check_lookup(world):
    """Guesses change nothing in what is generated; without a step to check them that is said."""
    artefact, accepted = world.compile("lookup", "--cache-dtype", "f16", capacity=300), 0
    for target, start in ((artefact, 3), (artefact, 90), (world.ref, 3)):
        ids = join(some_ids(9, start) * 3)
        plain = world.stele.json("run", target, "--ids", ids, "--ignore-eos")
        world.checks.equal((plain["stats"]["drafted_tokens"], plain["stats"]["accepted_tokens"]),
                           (0, 0), "no guesses")
        for guesses in (1, 3, 7, 1000):
            done = world.stele.json("run", target, "--ids", ids, "--ignore-eos", "--threads",
                                    1 + guesses % 3, "--prompt-lookup-num-tokens", guesses)
            for key in ("ids", "finish_reason"):
                world.checks.equal(done[key], plain[key], f"{guesses} guesses: {key}")
            stats = done["stats"]
            world.checks.that(stats["accepted_tokens"] <= stats["drafted_tokens"],
                              f"{guesses} guesses: {stats}")
            accepted += stats["accepted_tokens"]
    world.checks.that(accepted > 0, "some guesses are right")
    shown = {(s["kind"], s["width"], s["output"]) for s in world.stele.json("inspect", artefact)["steps"]}
    world.checks.that(("verify", 8, "token") in shown, f"the verify step: {shown}")
    without = world.compile("without", "--verify", 1)
    world.checks.that("verify" not in world.stele.good("inspect", without, "--json").stdout.replace(
        '"verify": 1', ""), "no verify step")
    done = world.stele.call("run", without, "--ids", "3", "--prompt-lookup-num-tokens", 3)
    world.checks.that(done.returncode == 1 and "--verify" in done.stderr and done.stdout == "",
                      f"guesses without a verify step: {done.returncode} {done.stderr!r}")
    said = world.stele.good("run", artefact, "--ids", ids, "--prompt-lookup-num-tokens", 3).stderr
    world.checks.that("guessed" in said, f"for people: {said!r}")


def check_json(world):
    done = world.stele.json("run", world.cpu, "--ids", "5,6,7", "-n", 9, "--ignore-eos")
    world.checks.equal(list(done), ["prompt_ids", "ids", "text", "finish_reason", "stats"], "keys")
    stats = done["stats"]
    for key in ("prompt_tokens", "reused_tokens", "generated_tokens", "drafted_tokens",
                "accepted_tokens", "load_s", "prefill_s",
                "decode_s", "decode_tokens_per_s", "allocations_per_step", "cache_bytes",
                "weight_bytes"):
        world.checks.that(key in stats, f"stats has {key}")
    world.checks.equal(done["prompt_ids"], [5, 6, 7], "prompt ids")
    world.checks.equal((stats["prompt_tokens"], stats["generated_tokens"], stats["reused_tokens"]),
                       (3, 9, 0), "counts")
    world.checks.that(stats["cache_bytes"] > 0 and stats["weight_bytes"] > 0, "bytes")
    world.checks.equal(done["text"], "", "no tokenizer, no text")
    plain = world.stele.good("run", world.cpu, "--ids", "5,6,7", "-n", 9, "--ignore-eos")
    world.checks.equal(plain.stdout, join(done["ids"]) + "\n", "without a tokenizer, ids are printed")
    done = world.stele.call("run", world.cpu, "--prompt", "a")
    world.checks.that(done.returncode == 1 and "tokenizer" in done.stderr,
                      f"text without a tokenizer: {done.stderr!r}")
    for ids in ("", "1,,2", "1, 2", "-1", "x", "1;2", "99999999999"):
        done = world.stele.call("run", world.cpu, "--ids", ids)
        world.checks.equal(done.returncode, 2, f"--ids '{ids}': {done.stderr!r}")
    done = world.stele.call("run", world.cpu, "--ids", "1,256")
    world.checks.that(done.returncode in (1, 2) and "256" in done.stderr,
                      f"an id above the vocabulary: {done.stderr!r}")


def check_stop(world):
    """A stop id ends the generation and is part of it; --ignore-eos goes on."""
    free = world.stele.generate(world.ref, some_ids(5), 40)
    stop = free[6]
    settings = models.config(eos_token_id=[stop, 255])
    model = models.write(world.folder / "stop", settings, named=models.tensors(models.config()))
    artefact = world.compile("stop", model=model)
    done = world.stele.json("run", artefact, "--ids", join(some_ids(5)), "-n", 40)
    world.checks.equal(done["ids"], free[:free.index(stop) + 1], "ids up to the stop id")
    world.checks.equal(done["finish_reason"], "stop", "reason")
    shown = world.stele.json("inspect", artefact)
    world.checks.equal(shown["stop_ids"], [stop, 255], "inspect's stop ids")
    world.checks.that("config.json" in shown["stop_source"], f"their source {shown['stop_source']}")
    world.checks.equal(world.stele.generate(artefact, some_ids(5), 40), free, "--ignore-eos goes on")


def check_inspect(world):
    shown = world.stele.json("inspect", world.cpu)
    world.checks.equal(shown["capacity"], CAPACITY, "capacity")
    world.checks.equal([g["layers"] for g in shown["layer_groups"]], [2], "layer groups")
    kinds = {(s["kind"], s["width"], s["output"]) for s in shown["steps"]}
    world.checks.that({("decode", 1, "token"), ("decode", 1, "last"), ("prefill", CAPACITY, "token"),
                       ("prefill", CAPACITY, "all"), ("prefill", CAPACITY, "hidden")} <= kinds, f"{kinds}")
    classes = {c["name"]: c for c in shown["tensor_classes"]}
    world.checks.equal(classes["model.layers.*.mlp.up_proj.weight"]["tensors"], 2, "classes")
    described = world.stele.json("inspect", world.model)
    world.checks.equal({c["name"] for c in described["tensor_classes"]} - set(classes), set(),
                       "classes of the model that the artefact lacks")
    world.checks.that("capacity" in world.stele.good("inspect", world.cpu).stdout, "for people")
    listed = {f["name"]: f for f in world.stele.json("inspect", "--families")["families"]}
    world.checks.that(described["description"]["family"] in listed, f"--families: {sorted(listed)}")
    world.checks.that(all(f["models"] and f["model_type"] for f in listed.values()), f"{listed}")
    world.checks.that("phi3" in world.stele.good("inspect", "--families").stdout, "for people")


def check_profiles(world):
    """Every target meets as its table of phases says, however many workers there are."""
    for target in ("cpu", "ref", "null"):
        for options in ((), ("--skip-pass", "schedule"), ("--lanes", 2)):
            artefact = world.compile("profiled", "--target", target, *options)
            step = world.stele.json("inspect", artefact)["steps"][0]
            for threads in (1, 3):
                shown = world.stele.json("bench", artefact, "--profile", "-p", 20, "-n", 4, "-d", 8,
                                         "-r", 1, "-t", threads)["profiles"]
                world.checks.equal([p["test"] for p in shown], ["pp20", "tg4"], f"{target} profiles")
                for p in shown:
                    label = f"profile {p['test']} {target} {options} {threads} threads"
                    calls = sum(row["calls"] for row in p["lines"])
                    world.checks.equal(p["meetings"], calls - 1, f"{label}: meetings")
                    world.checks.that(p["bytes"] > 0 and p["us"] > 0, f"{label}: sums")
                world.checks.that(any("gate_proj" in row["ops"] or "gate_up" in row["ops"]
                                      for row in shown[1]["lines"]), f"{target}: names of weights")
            world.checks.that(step["phases"] > 1, f"{target}: phases of a step")


def check_bench(world):
    done = world.stele.json("bench", world.cpu, "-p", 20, "-n", 10, "-d", 8, "-t", 2, "-r", 3)
    world.checks.equal([r["test"] for r in done["results"]], ["pp20", "tg10"], "tests")
    for result in done["results"]:
        world.checks.equal((result["threads"], result["depth"]), (2, 8), f"{result['test']}")
        for key in ("tokens_per_s", "bytes_per_token", "gb_per_s", "read_gb_per_s", "share"):
            world.checks.that(result[key] > 0, f"{result['test']} {key}")
        world.checks.that(result["spread"] >= 0, f"{result['test']} spread")
    shown = world.stele.good("bench", world.cpu, "-r", 1).stdout
    world.checks.that("pp64" in shown and "tg64" in shown, f"defaults that fit: {shown!r}")
    check_profiles(world)
    done = world.stele.call("bench", world.cpu, "-p", 65)
    world.checks.that(done.returncode == 1 and "--max-cache-len" in done.stderr, f"{done.stderr!r}")


def check_forward(world):
    out = world.folder / "f.npy"
    ids = some_ids(9)
    rows = {}
    for options in (("--all",), (), ("--hidden",)):
        world.stele.good("forward", world.cpu, "--ids", join(ids), "-o", out, *options)
        rows[options] = read_npy(out)
    world.checks.equal(rows[()][0], (1, 256), "shape of the last")
    world.checks.equal(rows[("--all",)][0], (9, 256), "shape of all")
    world.checks.equal(rows[("--hidden",)][0], (3, 9, 64), "shape of hidden states")
    world.checks.equal(rows[()][1].tobytes(), rows[("--all",)][1][-256:].tobytes(),
                       "the last row of all is the last")


def check_interrupt(world):
    """Ctrl-C ends gently: what was generated is given, with the reason."""
    artefact = world.compile("long", "--target", "ref", capacity=40000)
    process = subprocess.Popen([world.stele.path, "run", artefact, "--ids", "3", "--ignore-eos",
                                "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    world.checks.equal(process.returncode, 0, f"interrupted: {err!r}")
    done = json.loads(out)
    world.checks.equal(done["finish_reason"], "cancelled", "interrupted")
    world.checks.that(0 < len(done["ids"]) < 40000, f"interrupted after {len(done['ids'])}")


def check_libraries(world):
    """Running loads neither LLVM nor MLIR."""
    done = subprocess.run([world.stele.path, "run", world.cpu, "--ids", "1", "-n", "2"],
                          env=dict(os.environ, LD_DEBUG="libs"), capture_output=True, text=True)
    world.checks.that("libc.so" in done.stderr, "the dynamic linker tells what it loads")
    for name in ("libLLVM", "libMLIR", "libstele-compiler"):
        world.checks.that(name not in done.stderr, f"run loads {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--stele", "--probe", "--poison"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world = World(arguments, pathlib.Path(folder))
        for name, check in list(globals().items()):
            if name.startswith("check_"):
                check(world)
        world.checks.finish()


main()
