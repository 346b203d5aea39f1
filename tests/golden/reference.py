"""A decoder of the Llama kind in plain Python, in double precision: slow, obvious, and apart from
everything in this tree. It serves the bfloat16 goldens. Their recorded logits were computed in
float32 on weights *and rope frequencies* that had been rounded to bfloat16, because the whole
module was cast; a checkpoint that is loaded in bfloat16 keeps its frequencies in float32, and so
does stele. This reference computes both: with rounded frequencies it must give the recorded logits,
which shows that it is right; with exact ones it says what stele must give."""
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


def round_bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


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


class Model:
    def __init__(self, directory):
        directory = pathlib.Path(directory)
        self.settings = json.loads((directory / "config.json").read_text())
        self.weights = read_bf16(directory / "model.safetensors")

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

    def attend(self, queries, keys, values):
        """One token's heads over all tokens up to it; a key head serves a run of query heads."""
        size, share = self.settings["head_dim"], len(queries) // len(keys[0])
        out = []
        for h, query in enumerate(queries):
            scores = [dot(query, k[h // share]) / math.sqrt(size) for k in keys]
            top = max(scores)
            parts = [math.exp(s - top) for s in scores]
            whole = sum(parts)
            begin = h // share * size
            for i in range(begin, begin + size):
                out.append(sum(p * v[i] for p, v in zip(parts, values)) / whole)
        return out

    def logits(self, ids, first, rounded=False):
        """Logits of the positions from first on, all ids fed at once."""
        turn = frequencies(self.settings)
        if rounded:
            turn = [round_bf16(f) for f in turn]
        stream = [list(self.weights["model.embed_tokens.weight"][i]) for i in ids]
        for n in range(self.settings["num_hidden_layers"]):
            layer = f"model.layers.{n}."
            normed = [self.norm(layer + "input_layernorm.weight", x) for x in stream]
            keys = [self.heads(layer, "k", x, p, turn) for p, x in enumerate(normed)]
            values = [self.product(layer + "self_attn.v_proj.weight", x) for x in normed]
            for p, x in enumerate(normed):
                queries = self.heads(layer, "q", x, p, turn)
                mixed = self.attend(queries, keys[:p + 1], values)
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
