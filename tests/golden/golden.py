#!/usr/bin/env python3
"""Compares what compiled models compute with what transformers and torch computed on the same
weights. The bars: the same greedy ids; float32 logits and hidden states within 2e-4; bfloat16
without --precise within a mean KL divergence of 2e-3.

    golden.py --stele build/tools/stele/stele --steps build/tests/golden/steps
              --lookup build/tests/golden/lookup GROUP [MODEL]
"""
import argparse
import array
import itertools
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import (Checks, GOLDEN, SKIP, Stele, divergence, find_model, join, logsumexp,  # noqa: E402
                     read_json_xz, rows, unpack_model)
from reference import read_model  # noqa: E402

TOLERANCE = 2e-4
MEAN_DIVERGENCE = 2e-3
TOKENS = 32
SAFE_MARGIN = 0.15  # twice what rounding the rope frequencies to bfloat16 moves a logit
CAPACITY = 160  # the longest prompt has 70 ids
PREFILLS = (1, 5, 16, 128)
NATIVE = (("ref", ("--target", "ref")), ("cpu", ()))


class Case:
    """A golden model, unpacked, with the program that is under test."""

    def __init__(self, arguments, folder):
        self.stele = Stele(arguments.stele)
        self.steps_program = arguments.steps
        self.lookup_program = arguments.lookup
        self.make_model = arguments.make_model
        self.checks = Checks()
        self.folder = pathlib.Path(folder)
        if arguments.model:
            self.model, self.golden, self.arrays = unpack_model(arguments.model, folder)

    def compile(self, model, name, *options):
        return self.stele.compile(model, self.folder / f"{name}.so", "--max-cache-len", CAPACITY,
                                  *options)

    def steps(self, artefact, prompt, next_ids, threads=1, cache="dynamic"):
        """A row of logits for each step of feeding next_ids behind a prompt."""
        output = self.folder / "steps.f32"
        done = subprocess.run([self.steps_program, artefact, join(prompt), join(next_ids),
                               str(threads), cache, output], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"steps on {artefact}: {done.stderr}")
        flat = array.array("f")
        flat.frombytes(output.read_bytes())
        return rows(flat, len(flat) // (len(next_ids) + 1))

    def check_ids(self, artefact, label, prompts=None, key="tokens", options=()):
        for prompt in prompts or self.golden["prompts"]:
            ids = self.stele.generate(artefact, prompt["ids"], TOKENS, *options)
            self.checks.equal(ids, prompt[key], f"{label} {prompt['name']}")

    def targets(self):
        """(label, options) of every kind of code that this machine runs."""
        yield "ref", ("--target", "ref")
        for variant in self.stele.variants():
            yield variant, ("--cpu", variant)


# ---- groups ---------------------------------------------------------------------------------

def check_logits(case, artefact, label):
    """Last logits of every prompt, all logits and hidden states of p2, logits of every step."""
    checks, arrays, output = case.checks, case.arrays, case.folder / "out.npy"
    for prompt in case.golden["prompts"]:
        name = prompt["name"]
        shape, found = case.stele.forward(artefact, prompt["ids"], output)
        expected = arrays[prompt["prefill_logits_key"]][1]
        checks.equal(shape, (1, len(expected)), f"{label} {name} shape of the last logits")
        checks.close(found, expected, TOLERANCE, f"{label} {name} last logits")
        if "step_logits_key" in prompt:
            expected = arrays[prompt["step_logits_key"]][1]
            found = case.steps(artefact, prompt["ids"], prompt["tokens"][:-1])
            checks.close([x for row in found for x in row], expected, TOLERANCE,
                         f"{label} {name} logits of each step")
        if "all_logits_key" in prompt:
            shape, found = case.stele.forward(artefact, prompt["ids"], output, "--all")
            checks.equal(shape, arrays[prompt["all_logits_key"]][0], f"{label} {name} shape of all")
            checks.close(found, arrays[prompt["all_logits_key"]][1], TOLERANCE,
                         f"{label} {name} all logits")
        if "hidden_keys" in prompt:
            shape, found = case.stele.forward(artefact, prompt["ids"], output, "--hidden")
            expected = array.array("f")
            for key in prompt["hidden_keys"]:
                expected.extend(arrays[key][1])
            one = arrays[prompt["hidden_keys"][0]][0]
            checks.equal(shape, (len(prompt["hidden_keys"]), *one), f"{label} {name} shape hidden")
            checks.close(found, expected, TOLERANCE, f"{label} {name} hidden states")


def check_matrix(case, targets):
    """Prefill widths, threads, cache implementations; both ages of config.json."""
    for target, options in targets:
        for prefill in PREFILLS:
            label = f"{target} prefill {prefill}"
            artefact = case.compile(case.model, "matrix", *options, "--prefill", prefill)
            for threads in (1, 2):
                for cache in ("dynamic", "static"):
                    case.check_ids(artefact, f"{label} threads {threads} {cache}",
                                   options=("--threads", threads, "--cache-implementation", cache))
            check_logits(case, artefact, label)
    old = case.folder / "old"
    shutil.copytree(case.model, old)
    shutil.copy(old / "config_v4.json", old / "config.json")
    case.check_ids(case.compile(old, "old", "--prefill", 16), "config in its older form")


def group_family(case):
    """The interpreter, and code for the processor at hand."""
    check_matrix(case, NATIVE)


def group_matrix(case):
    """Every kind of code that this machine runs."""
    check_matrix(case, case.targets())


def check_lookup(case, artefact, label, prompt, count, what):
    """With guesses as without, in every kind of session; the golden's ids. Counts of guesses."""
    done = subprocess.run([case.lookup_program, artefact, join(prompt["ids"]), str(count), what],
                          capture_output=True, text=True)
    case.checks.equal(done.returncode, 0, f"{label} {prompt['name']}: {done.stderr}")
    ids, drafted, accepted = done.stdout.split()
    case.checks.equal([int(i) for i in ids.split(",")][:TOKENS], prompt["tokens"],
                      f"{label} {prompt['name']}")
    return int(drafted), int(accepted)


def group_lookup(case):
    """Guessed ids change nothing, whatever the width of the verify step, down to the cache's bits.
    (ref merges pages where it decodes and not in wider steps: its logits may round otherwise.)
    Models of random weights come to repeat themselves, so guesses are right often enough."""
    counts = []
    for target, options, widths in (("ref", ("--target", "ref"), (8,)), ("cpu", (), (2, 16)),
                                    ("cpu", ("--lanes", 2, "--prefill", 1), (8,))):
        for width in widths:
            artefact = case.compile(case.model, "lookup", "--verify", width, *options)
            label, slow = f"{target} verify {width}", target == "ref"
            count, what = (64, "ids") if slow else (CAPACITY, "bits")
            counts += [check_lookup(case, artefact, label, p, count, what)
                       for p in case.golden["prompts"][1:2 if slow else 4]]
    drafted, accepted = map(sum, zip(*counts))
    print(f"{drafted} guesses, {accepted} of them right")
    case.checks.that(0 < accepted < drafted, "guesses that are right and that aren't")


def group_smoke(case):
    """A little of everything, for builds in which programs are slow."""
    for target, options in NATIVE:
        artefact = case.compile(case.model, "smoke", *options, "--prefill", 16)
        case.check_ids(artefact, target, case.golden["prompts"][1:3])
        check_logits(case, artefact, target)


def group_forms(case):
    """A portable artefact, weights in a file of their own, more lanes."""
    case.check_ids(case.compile(case.model, "portable", "--cpu", "portable"), "portable")
    beside = case.compile(case.model, "beside", "--weights-file", case.folder / "beside.weights")
    case.check_ids(beside, "weights in a file of their own")
    case.check_ids(case.compile(case.model, "lanes", "--lanes", 4), "compiled for 4 lanes")


def group_passes(case):
    """Any pass that may be left out leaves the ids as they are; flatten can't be left out."""
    prompts = case.golden["prompts"][1:3]
    for name in case.stele.passes():
        for target, options in NATIVE:
            output = case.folder / "skip.so"
            output.unlink(missing_ok=True)
            done = case.stele.call("compile", case.model, "-o", output, "--quiet", "--max-cache-len",
                                   CAPACITY, "--prefill", 16, "--skip-pass", name, *options)
            if name == "flatten":
                case.checks.that(done.returncode != 0 and name in done.stderr,
                                 f"{name} can't be left out: exit {done.returncode} {done.stderr}")
                continue
            if case.checks.equal(done.returncode, 0, f"{target} without {name}: {done.stderr}"):
                case.check_ids(output, f"{target} without {name}", prompts)
    done = case.stele.call("compile", case.model, "-o", case.folder / "x.so", "--skip-pass", "none")
    case.checks.that(done.returncode == 2 and "'none'" in done.stderr,
                     f"an unknown pass: exit {done.returncode} {done.stderr}")


def bf16_expected(case, model, prompt, ids):
    """Logits of each step by the reference in Python, after it was shown to give the golden's."""
    name, count = prompt["name"], len(prompt["ids"])
    rounded = model.logits(prompt["ids"], count - 1, rounded=True)[0]
    case.checks.close(rounded, case.arrays[prompt["f32_logits_key"]][1], TOLERANCE,
                      f"the reference with rounded frequencies, {name}")
    return model.logits([*prompt["ids"], *ids[:-1]], count - 1)


def group_bf16(case):
    """bfloat16 weights: --precise like float32 computation; without it, a small divergence.
    reference.py says why the golden's own ids are held only where its frequencies don't matter."""
    directory = case.model / "bf16"
    model = read_model(directory)
    prompts = [{**p, **q} for p, q in zip(case.golden["prompts"], case.golden["bf16"]["prompts"])]
    expected = None
    for target, options in case.targets():
        precise = case.compile(directory, "precise", "--precise", *options)
        plain = case.compile(directory, "plain", *options)
        found = [case.stele.generate(precise, p["ids"], TOKENS) for p in prompts]
        if expected is None:
            expected = [bf16_expected(case, model, p, ids) for p, ids in zip(prompts, found)]
        sums = []
        for prompt, ids, reference in zip(prompts, found, expected):
            label = f"{target} --precise {prompt['name']}"
            case.checks.equal(ids, [max(range(len(r)), key=r.__getitem__) for r in reference], label)
            safe = len(list(itertools.takewhile(lambda m: m > SAFE_MARGIN, prompt["margins_f32"])))
            case.checks.equal(ids[:safe], prompt["tokens_f32_compute"][:safe], label + " golden ids")
            for i, row in enumerate(case.steps(precise, prompt["ids"], ids[:-1])):
                case.checks.close(row, reference[i], TOLERANCE, f"{label} logits of step {i}")
            sums += map(divergence, reference, case.steps(plain, prompt["ids"], ids[:-1]))
        mean = sum(sums) / len(sums)
        print(f"{target}: mean divergence {mean:.2e}, largest {max(sums):.2e}")
        case.checks.that(mean <= MEAN_DIVERGENCE, f"{target} mean divergence {mean:.2e}")


def group_gguf(case):
    """The same weights and tokens through a GGUF file."""
    output = case.folder / "converted.gguf"
    done = subprocess.run([case.make_model, "--convert", case.model, "--gguf", output],
                          capture_output=True, text=True)
    if not case.checks.equal(done.returncode, 0, f"converting: {done.stderr}"):
        return
    for target, options in NATIVE:
        artefact = case.compile(output, "gguf", "--prefill", 16, *options)
        case.check_ids(artefact, f"{target} from GGUF")


def kept_divergence(step, row):
    """KL over the ten most likely ids and the rest, all that the golden keeps of a step."""
    whole = logsumexp(row)
    total = 0.0
    p_rest = q_rest = 1.0
    for index, logit in zip(step["top_ids"], step["top_logits"]):
        p, q = math.exp(logit - step["logsumexp"]), math.exp(row[index] - whole)
        total += p * math.log(p / q)
        p_rest, q_rest = p_rest - p, q_rest - q
    if p_rest > 1e-9 and q_rest > 1e-12:
        total += p_rest * math.log(p_rest / q_rest)
    return total


def safe_prefix(entry, margin):
    """Ids before the first step whose margin is smaller."""
    ids = []
    for token, step in zip(entry["greedy_ids"], entry["steps"]):
        if step["top_logits"][0] - step["top_logits"][1] < margin:
            break
        ids.append(token)
    return ids


def check_real(case, gguf, file, margin, caches):
    """A real model, quantised in its file, against its weights dequantised to float32: the ids of a
    precise artefact, the divergence of the usual one with each of the caches."""
    golden = read_json_xz(GOLDEN / "real" / file)
    precise = case.stele.compile(gguf, case.folder / "precise.so", "--precise")
    for entry in golden["cases"]:
        label = repr(entry["prompt"][:24])
        done = case.stele.json("tokenize", precise, "--text", entry["prompt"])
        case.checks.equal(done["ids"], entry["prompt_ids"], f"ids of {label}")
        safe = safe_prefix(entry, margin)
        ids = case.stele.generate(precise, entry["prompt_ids"], len(entry["greedy_ids"]))
        case.checks.equal(ids[:len(safe)], safe, f"--precise {label}")
        print(f"{label}: {len(safe)} of {len(entry['greedy_ids'])} ids have a safe margin")
    for cache in caches:
        plain = case.stele.compile(gguf, case.folder / "plain.so", "--cache-dtype", cache)
        sums = []
        for entry in golden["cases"]:
            found = case.steps(plain, entry["prompt_ids"], entry["greedy_ids"][:-1], 2)
            sums += map(kept_divergence, entry["steps"], found)
        mean = sum(sums) / len(sums)
        print(f"cache {cache}: mean divergence {mean:.2e} over {len(sums)} steps, largest "
              f"{max(sums):.2e}")
        case.checks.that(mean <= MEAN_DIVERGENCE, f"cache {cache}: mean divergence {mean:.2e}")


def group_smollm2(case):
    gguf = find_model("smollm2")
    if gguf is None:
        sys.exit(SKIP)
    check_real(case, gguf, "smollm2-135m-instruct-q4_1.json.xz", 0.02, ("f16", "q8_0"))


def group_gemma3_270m(case):
    gguf = find_model("gemma3")
    if gguf is None:
        sys.exit(SKIP)
    check_real(case, gguf, "gemma3-270m-q4_k_m.json.xz", 0.05, ("f16",))


def main():
    groups = {name[6:]: f for name, f in globals().items() if name.startswith("group_")}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stele", required=True)
    parser.add_argument("--steps", required=True)
    parser.add_argument("--lookup", required=True)
    parser.add_argument("--make-model")
    parser.add_argument("group", choices=sorted(groups))
    parser.add_argument("model", nargs="?")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        case = Case(arguments, folder)
        groups[arguments.group](case)
        case.checks.finish()


main()
