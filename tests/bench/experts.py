#!/usr/bin/env python3
"""Experts beside a dense model of the same active size: two models of random weights, Qwen3's graph
with experts and without, whose tokens meet equally many weights in each layer. Decoding is timed in
rounds taken in turns. Prints the medians, and of the rounds' ratios. Never a pass or a fail.

    experts.py --stele build/tools/stele/stele [--folder DIR] [--shape s|m|wide] [-t 2] [-n 32] [-r 5]

A folder keeps the files from one time to the next.
"""
import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from write_random import (F32, FLOAT32, Q4_K, Q6_K, STRING, UINT32, Shape, pair, tokenizer,  # noqa: E402
                          write_file)


@dataclasses.dataclass(frozen=True)
class Mixture:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    experts: int
    used: int
    inner: int  # rows of an expert


SHAPES = {
    "s": Mixture(1024, 8, 16, 4, 32, 4, 512),
    "m": Mixture(1536, 10, 12, 4, 32, 4, 512),
    "wide": Mixture(2048, 6, 16, 4, 64, 8, 768),  # Qwen3-30B-A3B's layers, half of their experts
}
VOCABULARY = 8192
HEAD = 128


def tensors_of(m, mixed):
    """(name, dimensions with the contiguous one first, type)"""
    query, width, inner = m.heads * HEAD, m.kv_heads * HEAD, m.used * m.inner
    yield "token_embd.weight", (m.hidden, VOCABULARY), Q6_K
    for i in range(m.layers):
        matrices = [("attn_q", (m.hidden, query)), ("attn_k", (m.hidden, width)),
                    ("attn_v", (m.hidden, width)), ("attn_output", (query, m.hidden))]
        if mixed:
            matrices += [("ffn_gate_exps", (m.hidden, m.inner, m.experts)),
                         ("ffn_up_exps", (m.hidden, m.inner, m.experts)),
                         ("ffn_down_exps", (m.inner, m.hidden, m.experts))]
            yield f"blk.{i}.ffn_gate_inp.weight", (m.hidden, m.experts), F32
        else:
            matrices += [("ffn_gate", (m.hidden, inner)), ("ffn_up", (m.hidden, inner)),
                         ("ffn_down", (inner, m.hidden))]
        yield from ((f"blk.{i}.{role}.weight", dims, Q4_K) for role, dims in matrices)
        for role, columns in (("attn_norm", m.hidden), ("ffn_norm", m.hidden),
                              ("attn_q_norm", HEAD), ("attn_k_norm", HEAD)):
            yield f"blk.{i}.{role}.weight", (columns,), F32
    yield "output_norm.weight", (m.hidden,), F32


def pairs_of(m, mixed):
    architecture = "qwen3moe" if mixed else "qwen3"
    yield pair("general.architecture", STRING, architecture)
    yield pair("general.name", STRING, "random")
    counts = [("context_length", 32768), ("embedding_length", m.hidden), ("block_count", m.layers),
              ("feed_forward_length", m.used * m.inner), ("attention.head_count", m.heads),
              ("attention.head_count_kv", m.kv_heads), ("attention.key_length", HEAD),
              ("attention.value_length", HEAD)]
    if mixed:
        counts += [("expert_count", m.experts), ("expert_used_count", m.used),
                   ("expert_feed_forward_length", m.inner)]
    for name, value in counts:
        yield pair(f"{architecture}.{name}", UINT32, value)
    yield pair(f"{architecture}.rope.freq_base", FLOAT32, 1e6)
    yield pair(f"{architecture}.attention.layer_norm_rms_epsilon", FLOAT32, 1e-6)
    yield from tokenizer(Shape(m.hidden, m.layers, m.heads, m.kv_heads, m.inner, VOCABULARY))


def compile_model(arguments, folder, mixed):
    name = f"{arguments.shape}-{'experts' if mixed else 'dense'}"
    model, artefact = folder / f"{name}.gguf", folder / f"{name}.so"
    shape = SHAPES[arguments.shape]
    if not model.exists():
        write_file(list(tensors_of(shape, mixed)), list(pairs_of(shape, mixed)), model)
    subprocess.run([arguments.stele, "compile", model, "-o", artefact, "--max-cache-len", "1024",
                    "--quiet"], check=True)
    return artefact


def rate(arguments, artefact):
    """Tokens per second, and bytes that one reads."""
    done = subprocess.run([*arguments.prefix.split(), arguments.stele, "bench", artefact, "-p", "0",
                           "-n", str(arguments.tokens), "-t", str(arguments.threads), "-r", "1",
                           "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["results"][0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stele", required=True)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--shape", choices=SHAPES, default="m")
    parser.add_argument("--prefix", default="", help="words before the command, as 'chrt -f 10'")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-n", "--tokens", type=int, default=32)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or pathlib.Path(temporary)
        experts, dense = (compile_model(arguments, folder, mixed) for mixed in (True, False))
        rounds = [(rate(arguments, experts), rate(arguments, dense))
                  for _ in range(arguments.rounds)]
    for which, name in enumerate(("experts", "dense")):
        found = [r[which] for r in rounds]
        speed = statistics.median(f["tokens_per_s"] for f in found)
        size = found[0]["bytes_per_token"] / 1e6
        print(f"{name}: {speed:.1f} tokens per second, {size:.1f} MB each")
    ratios = [d["tokens_per_s"] / e["tokens_per_s"] for e, d in rounds]
    print(f"time of a token with experts / dense: {statistics.median(ratios):.3f} "
          f"({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
