#!/usr/bin/env python3
"""Prompt lookup beside plain decoding: the same prompts with and without, rounds taken in turns.
Texts that quote their prompt gain; texts that don't must lose next to nothing. Prints the medians
of tokens per second and of the rounds' ratios, and how many guesses were right. Never a pass or a
fail, but ids that differ end it.

    lookup.py --stele build/tools/stele/stele [--model FILE.gguf] [-t 2] [-n 256] [-g 7] [-r 5]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

TEXT = """The lighthouse at Point Arden was built in 1871 by the engineer Samuel Whitlock, who had \
studied the currents of the bay for eleven years. Its lamp burned whale oil until 1889, when it was \
converted to kerosene, and in 1923 the station was given an electric light that could be seen from \
twenty-two miles away. During the great storm of 1938 the keeper, Thomas Rourke, stayed at his post \
for four days without sleep, and he is said to have saved the crews of three fishing boats. The \
tower was closed in 1974 and is now a small museum, which is open from May to September."""
CODE = """```python
class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        self.history = []

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        self.history.append(("deposit", amount))
        return self.balance

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        if amount > self.balance:
            raise ValueError("insufficient funds")
        self.balance -= amount
        self.history.append(("withdraw", amount))
        return self.balance
```"""
ASKED = {
    "quote": "Repeat the following text word for word, then stop.\n\n" + TEXT,
    "code edit": "Rename the class Account to BankAccount and print the whole program again.\n\n" + CODE,
    "summary": "Summarize the following text in three sentences.\n\n" + TEXT,
    "story": "Write a long story about a fox who learns to sail.",
    "essay": "Explain in detail how photosynthesis works and why it matters.",
    "list": "List ten unusual animals and tell one surprising fact about each of them.",
}


def prompts():
    """Name and arguments; the last is ids without sense, after which a model says the same over and
    over: the most that there is to gain."""
    for name, text in ASKED.items():
        yield name, ("--prompt", f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n")
    yield "a loop", ("--ids", ",".join(str((i * 7919 + 13) % 30000 + 100) for i in range(200)))


def generate(arguments, artefact, prompt, *options):
    done = subprocess.run([arguments.stele, "run", artefact, *prompt, "-n", str(arguments.tokens),
                           "-t", str(arguments.threads), "--json", *options],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measure(arguments, artefact, name, prompt):
    plain, guessed = [], []
    for _ in range(arguments.rounds):
        plain.append(generate(arguments, artefact, prompt))
        guessed.append(generate(arguments, artefact, prompt, "--prompt-lookup-num-tokens",
                                str(arguments.guesses)))
    if any(done["ids"] != plain[0]["ids"] for done in plain + guessed):
        raise SystemExit(f"{name}: other ids with guesses than without")
    rates = [[done["stats"]["decode_tokens_per_s"] for done in side] for side in (plain, guessed)]
    ratios = [b / a for a, b in zip(*rates)]
    stats = guessed[0]["stats"]
    print(f"  {name:10}  {len(plain[0]['ids']):4} ids  plain {statistics.median(rates[0]):7.1f}  "
          f"guessed {statistics.median(rates[1]):7.1f} tokens/s  ratio "
          f"{statistics.median(ratios):5.2f} ({min(ratios):.2f} to {max(ratios):.2f})  "
          f"{stats['accepted_tokens']} of {stats['drafted_tokens']} guesses right", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stele", required=True)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-n", "--tokens", type=int, default=256)
    parser.add_argument("-g", "--guesses", type=int, default=7)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.model is None:
        from harness import find_smollm2
        arguments.model = find_smollm2() or sys.exit(1)
    with tempfile.TemporaryDirectory() as folder:
        artefact = f"{folder}/model.so"
        subprocess.run([arguments.stele, "compile", arguments.model, "-o", artefact, "--quiet",
                        "--verify", str(arguments.guesses + 1)], check=True)
        print(f"{arguments.guesses} guesses, {arguments.threads} threads, {arguments.rounds} rounds "
              "in turns")
        for name, prompt in prompts():
            measure(arguments, artefact, name, prompt)


main()
