#!/usr/bin/env python3
"""Writes a GGUF model of a named shape with random weights in the mixture called Q4_K_M: a fair
test of speed, which doesn't depend on what the weights say. Python's standard library alone.

    write_random.py SHAPE OUT.gguf

Blocks are random bytes whose scales are then set, so that weights have a deviation of about 0.02.
Formats of blocks: ggml's block_q4_K (d, dmin, scales[12], qs[128]) and block_q6_K (ql[128], qh[64],
scales[16], d). Which tensors are Q6_K: llama.cpp's rule use_more_bits, for values and the
downward projection; embeddings too. The same bytes each time.
"""
import array
import dataclasses
import math
import random
import struct
import sys

BLOCK = 256
F32, Q4_K, Q6_K = 0, 12, 14  # ggml's numbers of types
SIZES = {Q4_K: 144, Q6_K: 210}
UINT32, FLOAT32, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5  # GGUF's numbers of kinds of values
ALIGNMENT = 32
PIECE = 1 << 16  # blocks made at a time


@dataclasses.dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    context: int = 32768


SHAPES = {
    "1.5b": Shape(1536, 28, 12, 2, 8960, 151936),  # that of Qwen2-1.5B
    "tiny": Shape(256, 2, 4, 2, 512, 512, 512),  # for a test of this program
}


def half(value):
    return struct.pack("<e", value)


def set_field(blocks, size, offset, value):
    for i, byte in enumerate(value):
        blocks[offset + i::size] = bytes([byte]) * (len(blocks) // size)


def q4_k(count, source):
    blocks = bytearray(source.randbytes(count * SIZES[Q4_K]))
    set_field(blocks, SIZES[Q4_K], 0, half(7e-5) + half(5.2e-4))
    return blocks


def q6_k(count, source):
    size = SIZES[Q6_K]
    blocks = bytearray(source.randbytes(count * size))
    small = bytes((b % 32 - 16) & 255 for b in range(256))
    for i in range(192, 208):
        blocks[i::size] = blocks[i::size].translate(small)
    set_field(blocks, size, 208, half(1.2e-4))
    return blocks


MAKE = {Q4_K: q4_k, Q6_K: q6_k}


def more_bits(layer, layers):
    eighth = layers // 8
    return layer < eighth or layer >= 7 * eighth or (layer - eighth) % 3 == 2


def tensors_of(shape):
    """(name, dimensions with the contiguous one first, type)"""
    width = shape.hidden // shape.heads * shape.kv_heads
    yield "token_embd.weight", (shape.hidden, shape.vocabulary), Q6_K
    for i in range(shape.layers):
        rich = Q6_K if more_bits(i, shape.layers) else Q4_K
        for role, rows, columns, kind in (
                ("attn_q", shape.hidden, shape.hidden, Q4_K), ("attn_k", width, shape.hidden, Q4_K),
                ("attn_v", width, shape.hidden, rich),
                ("attn_output", shape.hidden, shape.hidden, Q4_K),
                ("ffn_gate", shape.intermediate, shape.hidden, Q4_K),
                ("ffn_up", shape.intermediate, shape.hidden, Q4_K),
                ("ffn_down", shape.hidden, shape.intermediate, rich)):
            yield f"blk.{i}.{role}.weight", (columns, rows), kind
            if role in ("attn_q", "attn_k", "attn_v"):
                yield f"blk.{i}.{role}.bias", (rows,), F32
        yield f"blk.{i}.attn_norm.weight", (shape.hidden,), F32
        yield f"blk.{i}.ffn_norm.weight", (shape.hidden,), F32
    yield "output_norm.weight", (shape.hidden,), F32


def bytes_of(dimensions, kind):
    count = math.prod(dimensions)
    return count * 4 if kind == F32 else count // BLOCK * SIZES[kind]


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(name, kind, value):
    layouts = {UINT32: "<I", FLOAT32: "<f"}
    data = text(value) if kind == STRING else struct.pack(layouts[kind], value)
    return text(name) + struct.pack("<I", kind) + data


def pair_of_list(name, kind, values):
    data = b"".join(text(v) if kind == STRING else struct.pack("<i", v) for v in values)
    return text(name) + struct.pack("<IIQ", ARRAY, kind, len(values)) + data


def byte_letters():
    """How byte-level BPE writes the 256 bytes (GPT-2's bytes_to_unicode)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(len(others))]


def tokenizer(shape):
    tokens = [*byte_letters(), "<|endoftext|>", "ab"]
    kinds = [1] * 256 + [3, 1] + [5] * (shape.vocabulary - 258)  # normal, control, unused
    tokens += [f"[PAD{i}]" for i in range(258, shape.vocabulary)]
    yield pair("tokenizer.ggml.model", STRING, "gpt2")
    yield pair("tokenizer.ggml.pre", STRING, "qwen2")
    yield pair_of_list("tokenizer.ggml.tokens", STRING, tokens)
    yield pair_of_list("tokenizer.ggml.token_type", INT32, kinds)
    yield pair_of_list("tokenizer.ggml.merges", STRING, ["a b"])
    yield pair("tokenizer.ggml.bos_token_id", UINT32, 256)
    yield pair("tokenizer.ggml.eos_token_id", UINT32, 256)


def pairs_of(shape):
    yield pair("general.architecture", STRING, "qwen2")
    yield pair("general.name", STRING, "random")
    yield pair("general.file_type", UINT32, 15)  # mostly Q4_K, medium
    for name, value in (("context_length", shape.context), ("embedding_length", shape.hidden),
                        ("block_count", shape.layers), ("feed_forward_length", shape.intermediate),
                        ("attention.head_count", shape.heads),
                        ("attention.head_count_kv", shape.kv_heads)):
        yield pair(f"qwen2.{name}", UINT32, value)
    yield pair("qwen2.rope.freq_base", FLOAT32, 1e6)
    yield pair("qwen2.attention.layer_norm_rms_epsilon", FLOAT32, 1e-6)
    yield from tokenizer(shape)


def write_data(out, name, size, kind):
    source = random.Random(name)
    if name.endswith("ffn_gate_inp.weight"):  # one number for all would choose one expert for all
        out.write(array.array("f", (source.gauss(0, 0.02) for _ in range(size // 4))))
    elif kind == F32:
        out.write(struct.pack("<f", 0.01 if name.endswith("bias") else 1.0) * (size // 4))
    else:
        for begin in range(0, size // SIZES[kind], PIECE):
            out.write(MAKE[kind](min(PIECE, size // SIZES[kind] - begin), source))
    out.write(bytes(-size % ALIGNMENT))


def write_file(tensors, pairs, path):
    with open(path, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs))
        offset = 0
        for name, dimensions, kind in tensors:
            out.write(text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions),
                                               *dimensions, kind, offset))
            offset += (bytes_of(dimensions, kind) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        out.write(bytes(-out.tell() % ALIGNMENT))
        for name, dimensions, kind in tensors:
            write_data(out, name, bytes_of(dimensions, kind), kind)


def write(shape, path):
    write_file(list(tensors_of(shape)), list(pairs_of(shape)), path)


if __name__ == "__main__":
    write(SHAPES[sys.argv[1]], sys.argv[2])
