#!/usr/bin/env python3
"""Runs inside a peer's Python: loads one model once and measures it whenever the driver asks, so
that all peers can stand ready and take turns.

    worker.py PEER.py MODEL THREADS SETTING          answers JSON lines, one a request
    worker.py PEER.py MODEL THREADS SETTING --first  loads, makes the first token, says so, ends

A peer's file defines a class Peer:

    Peer(path, threads, setting)   loads the model
    version                        a text
    prefill(ids) -> seconds        reads a prompt into an empty cache; the last logits are there
    decode(ids, count) -> seconds  behind a cache that holds ids (not timed), count tokens by ones
    first(ids)                     a prompt, then one token

A returned dictionary instead of seconds may say more about a measurement. Ids are any valid ids.
"""
import importlib.util
import json
import os
import pathlib
import sys

SMALLEST_VOCABULARY = 32000


def some_ids(count):
    return [(i * 7919 + 13) % SMALLEST_VOCABULARY for i in range(count)]


def load(file):
    spec = importlib.util.spec_from_file_location("peer", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(peer, request):
    ids = some_ids(request["prompt"])
    if request["test"] == "prefill":
        found, tokens = peer.prefill(ids), len(ids)
    else:
        found, tokens = peer.decode(ids, request["tokens"]), request["tokens"]
    found = found if isinstance(found, dict) else {"seconds": found}
    return {"tokens_per_s": tokens / found.pop("seconds"), **found}


def main(file, path, threads, setting, mode=""):
    # Libraries print where they like: what they say goes to the log, the answers to the driver.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.path.insert(0, str(pathlib.Path(file).parent))
    peer = load(file).Peer(path, int(threads), setting)
    if mode == "--first":
        peer.first(some_ids(16))
        print("first", file=out)
        os._exit(0)  # how long a library takes to end is not asked
    print(json.dumps({"version": peer.version}), file=out)
    for line in sys.stdin:
        try:
            print(json.dumps(answer(peer, json.loads(line))), file=out)
        except Exception as error:  # whatever it is, it is this peer's reason, and others go on
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
