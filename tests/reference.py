"""A decoder of the Llama kind, with windows or without, in plain Python, in double precision: slow, obvious, and apart from
everything in this tree. Keys and values may be rounded as a cache of the layer's scheme would.

It also serves the bfloat16 goldens. Their recorded logits were computed in float32 on weights *and
rope frequencies* that had been rounded to bfloat16, because the whole module was cast; a checkpoint
that is loaded in bfloat16 keeps its frequencies in float32, and so does stele. This reference
computes both: with rounded frequencies it must give the recorded logits, which shows that it is
right; with exact ones it says what stele must give."""
import array
import json
import math
import operator
import pathlib
import struct


def read_bf16(path):
    """{name: list of rows} of a bfloat16 file; vectors are one row."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        halves = array.array("H", data[begin:end])
        wide = array.array("f", array.array("I", (h << 16 for h in halves)).tobytes()).tolist()
        columns = entry["shape"][-1]
        tensors[name] = [wide[i:i + columns] for i in range(0, len(wide), columns)]
    return tensors


def rows_of(named):
    """{name: list of rows} of {name: (shape, flat numbers)}; vectors are one row."""
    return {name: [list(flat[i:i + shape[-1]]) for i in range(0, len(flat), shape[-1])]
            for name, (shape, flat) in named.items()}


# ---- rounding -------------------------------------------------------------------------------

def round_f16(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def round_bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def round_block(block, low, high, furthest):
    """32 numbers with one scale; even numbers win ties, in Python's round as in the cache."""
    scale = round_f16(furthest)
    return [scale * min(high, max(low, round(x / scale))) if scale else 0.0 for x in block]


def q8_0(block):
    return round_block(block, -127, 127, max(map(abs, block)) / 127)


def q4_0(block):
    top, bottom = max(block), min(block)
    return round_block(block, -8, 7, (bottom if top < -bottom else top) / -8)


CACHES = {  # a head's numbers as a cache gives them back
    "f32": list,
    "f16": lambda head: list(map(round_f16, head)),
    "q8_0": lambda head: [x for i in range(0, len(head), 32) for x in q8_0(head[i:i + 32])],
    "q4_0": lambda head: [x for i in range(0, len(head), 32) for x in q4_0(head[i:i + 32])],
}


# ---- the model ------------------------------------------------------------------------------

def frequencies(settings):
    """Default rope and Llama 3's scaling of it."""
    rope, head = settings["rope_parameters"], settings["head_dim"]
    result = [rope["rope_theta"] ** (-2 * i / head) for i in range(head // 2)]
    if rope["rope_type"] == "llama3":
        original, factor = rope["original_max_position_embeddings"], rope["factor"]
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]

        def scale(f):
            turns = original * f / (2 * math.pi)
            part = min(1, max(0, (turns - low) / (high - low)))
            return (1 - part) * f / factor + part * f
        result = [scale(f) for f in result]
    return result


def dot(a, b):
    return sum(map(operator.mul, a, b))


def read_model(directory):
    """The model of a directory in bfloat16."""
    directory = pathlib.Path(directory)
    return Model(json.loads((directory / "config.json").read_text()),
                 read_bf16(directory / "model.safetensors"))


class Model:
    """weights: {name: list of rows}. cache: one of CACHES."""

    def __init__(self, settings, weights, cache="f32"):
        self.settings, self.weights, self.stored = settings, weights, CACHES[cache]
        self.largest_score = 0.0

    def product(self, name, x):
        return [dot(row, x) for row in self.weights[name]]

    def norm(self, name, x):
        scale = 1 / math.sqrt(dot(x, x) / len(x) + self.settings["rms_norm_eps"])
        return [a * scale * w for a, w in zip(x, self.weights[name][0])]

    def heads(self, layer, which, x, position, turn):
        """Query or key heads of a token: projected, normed where the family does, turned."""
        size = self.settings["head_dim"]
        flat = self.product(f"{layer}self_attn.{which}_proj.weight", x)
        result = []
        for begin in range(0, len(flat), size):
            head = flat[begin:begin + size]
            if f"{layer}self_attn.{which}_norm.weight" in self.weights:
                head = self.norm(f"{layer}self_attn.{which}_norm.weight", head)
            half = size // 2
            c, s = [math.cos(position * f) for f in turn], [math.sin(position * f) for f in turn]
            result.append([head[i] * c[i] - head[i + half] * s[i] for i in range(half)] +
                          [head[i + half] * c[i] + head[i] * s[i] for i in range(half)])
        return result

    def values(self, layer, x):
        """The value heads of a token as the cache gives them back, one behind the other."""
        size = self.settings["head_dim"]
        flat = self.product(layer + "self_attn.v_proj.weight", x)
        return [v for i in range(0, len(flat), size) for v in self.stored(flat[i:i + size])]

    def attend(self, queries, keys, values):
        """One token's heads over all tokens up to it; a key head serves a run of query heads."""
        size, share = self.settings["head_dim"], len(queries) // len(keys[0])
        out = []
        for h, query in enumerate(queries):
            scores = [dot(query, k[h // share]) / math.sqrt(size) for k in keys]
            top = max(scores)
            self.largest_score = max(self.largest_score, *map(abs, scores))
            parts = [math.exp(s - top) for s in scores]
            whole = sum(parts)
            begin = h // share * size
            for i in range(begin, begin + size):
                out.append(sum(p * v[i] for p, v in zip(parts, values)) / whole)
        return out

    def first_seen(self, layer, position):
        types = self.settings.get("layer_types")
        if not types or types[layer] == "full_attention":
            return 0
        return max(0, position + 1 - self.settings["sliding_window"])

    def logits(self, ids, first=0, rounded=False):
        """Logits of the positions from first on, all ids fed at once."""
        turn = frequencies(self.settings)
        if rounded:
            turn = [round_bf16(f) for f in turn]
        stream = [list(self.weights["model.embed_tokens.weight"][i]) for i in ids]
        for n in range(self.settings["num_hidden_layers"]):
            layer = f"model.layers.{n}."
            normed = [self.norm(layer + "input_layernorm.weight", x) for x in stream]
            keys = [list(map(self.stored, self.heads(layer, "k", x, p, turn)))
                    for p, x in enumerate(normed)]
            values = [self.values(layer, x) for x in normed]
            for p, x in enumerate(normed):
                queries = self.heads(layer, "q", x, p, turn)
                seen = slice(self.first_seen(n, p), p + 1)
                mixed = self.attend(queries, keys[seen], values[seen])
                self.add(stream[p], self.product(layer + "self_attn.o_proj.weight", mixed))
            for x in stream:
                self.add(x, self.mlp(layer, x))
        head = "lm_head.weight" if "lm_head.weight" in self.weights else "model.embed_tokens.weight"
        return [self.product(head, self.norm("model.norm.weight", x)) for x in stream[first:]]

    def mlp(self, layer, x):
        x = self.norm(layer + "post_attention_layernorm.weight", x)
        gate = self.product(layer + "mlp.gate_proj.weight", x)
        up = self.product(layer + "mlp.up_proj.weight", x)
        return self.product(layer + "mlp.down_proj.weight",
                            [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])

    @staticmethod
    def add(x, y):
        for i, value in enumerate(y):
            x[i] += value
