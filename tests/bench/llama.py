#!/usr/bin/env python3
"""Decode and prefill speed beside llama.cpp: the same GGUF file, the same threads, rounds taken in
turns so that a machine whose speed drifts treats both alike. Prints medians, the slowest and the
fastest round, and the ratio. Never a pass or a fail.

    llama.py --stele build/tools/stele/stele [--model FILE.gguf] [-t 2] [-p 512] [-n 64] [-r 7]

Needs llama-cpp-python in the Python that runs it (or in --peer PYTHON), built by the same clang:
CC=clang-22 CXX=clang++-22 pip install llama-cpp-python.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))


def peer(arguments):
    """Runs in a process of its own: one measurement by llama.cpp, as llama-bench takes it."""
    import ctypes

    import llama_cpp
    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    model_parameters = llama_cpp.llama_model_default_params()
    model = llama_cpp.llama_model_load_from_file(str(arguments.model).encode(), model_parameters)
    parameters = llama_cpp.llama_context_default_params()
    parameters.n_ctx = max(arguments.prompt, arguments.depth + arguments.tokens, 256) + 8
    parameters.n_batch = parameters.n_ubatch = 512
    parameters.n_threads = parameters.n_threads_batch = arguments.threads
    context = llama_cpp.llama_init_from_model(model, parameters)
    vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    memory = llama_cpp.llama_get_memory(context)

    def feed(first, count):
        for begin in range(first, first + count, 512):
            size = min(512, first + count - begin)
            ids = (llama_cpp.llama_token * size)(
                *((i * 7919 + 13) % vocab for i in range(begin, begin + size)))
            assert llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(ids, size)) == 0
        llama_cpp.llama_synchronize(context)

    def prefill():
        llama_cpp.llama_memory_clear(memory, True)
        start = time.perf_counter()
        feed(0, arguments.prompt)
        return arguments.prompt / (time.perf_counter() - start)

    def decode():
        llama_cpp.llama_memory_clear(memory, True)
        if arguments.depth:
            feed(0, arguments.depth)
        start = time.perf_counter()
        for i in range(arguments.tokens):
            feed(arguments.depth + i, 1)
        return arguments.tokens / (time.perf_counter() - start)

    result = {}
    if arguments.prompt:
        prefill()
        result["pp"] = prefill()
    if arguments.tokens:
        decode()
        result["tg"] = decode()
    print(json.dumps(result))


def round_of_stele(arguments, artefact):
    done = subprocess.run(
        [arguments.stele, "bench", artefact, "-p", str(arguments.prompt), "-n",
         str(arguments.tokens), "-d", str(arguments.depth), "-t", str(arguments.threads), "-r", "1",
         "--json"], capture_output=True, text=True, check=True)
    return {r["test"][:2]: r["tokens_per_s"] for r in json.loads(done.stdout)["results"]}


def round_of_peer(arguments):
    command = [arguments.peer, __file__, "--as-peer", "--model", arguments.model, "-p",
               arguments.prompt, "-n", arguments.tokens, "-d", arguments.depth, "-t",
               arguments.threads]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"llama.cpp can't be measured:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def show(name, values):
    print(f"  {name:10} median {statistics.median(values):9.2f}  "
          f"{min(values):9.2f} to {max(values):9.2f} tokens/s")


def compare(arguments):
    with tempfile.TemporaryDirectory() as folder:
        artefact = f"{folder}/model.so"
        subprocess.run([arguments.stele, "compile", arguments.model, "-o", artefact, "--quiet"],
                       check=True)
        rounds = []
        for _ in range(arguments.rounds):
            rounds.append((round_of_stele(arguments, artefact), round_of_peer(arguments)))
    for test, count in (("pp", arguments.prompt), ("tg", arguments.tokens)):
        if not count:
            continue
        ours, theirs = ([r[side][test] for r in rounds] for side in (0, 1))
        depth = f" @ d{arguments.depth}" if arguments.depth else ""
        print(f"{test}{count}{depth}, {arguments.threads} threads, {len(rounds)} rounds in turns")
        show("stele", ours)
        show("llama.cpp", theirs)
        ratios = [a / b for a, b in zip(ours, theirs)]
        print(f"  ratio      median {statistics.median(ratios):9.2f}  "
              f"{min(ratios):9.2f} to {max(ratios):9.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stele")
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--peer", default=sys.executable, help="a Python that has llama-cpp-python")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("-n", "--tokens", type=int, default=64)
    parser.add_argument("-d", "--depth", type=int, default=0)
    parser.add_argument("-r", "--rounds", type=int, default=7)
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_peer:
        peer(arguments)
        return
    if not arguments.stele:
        parser.error("--stele is needed")
    if arguments.model is None:
        from harness import find_smollm2
        arguments.model = find_smollm2() or sys.exit(1)
    compare(arguments)


main()
