#!/usr/bin/env python3
"""StableLM, which has no golden: random models in each of its forms, through both formats and on
both targets, against its graph in plain Python and double precision.

    stablelm.py --stele build/tools/stele/stele --make-model build/tests/support/make-model
"""
import argparse
import array
import math
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import models  # noqa: E402
from harness import Checks, Stele, rows  # noqa: E402
from reference import Model, dot  # noqa: E402

TOLERANCE = 2e-4
FORMS = {"plain": {}, "biases": {"use_qkv_bias": True},
         "parallel, norms of heads": {"use_parallel_residual": True, "qk_layernorm": True}}


def tensors(settings):
    """{name: (shape, floats)}: Llama's, with what StableLM has besides, without what it lacks."""
    named, generator = models.tensors(settings), random.Random(7)

    def vector(name, size, mean):
        named[name] = (size,), array.array("f", (generator.gauss(mean, 0.2) for _ in range(size)))

    for name in [n for n in named if "norm" in n]:
        vector(name.replace("weight", "bias"), settings["hidden_size"], 0)
    for i in range(settings["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        if settings.get("use_parallel_residual"):
            for part in ("weight", "bias"):
                del named[f"{layer}post_attention_layernorm.{part}"]
        for which, heads in zip("qkv", (4, 2, 2)):
            if settings.get("use_qkv_bias"):
                vector(f"{layer}self_attn.{which}_proj.bias", heads * settings["head_dim"], 0)
            for h in range(heads if settings.get("qk_layernorm") and which != "v" else 0):
                vector(f"{layer}self_attn.{which}_layernorm.norms.{h}.weight",
                       settings["head_dim"], 1)
    return named


class StableLM(Model):
    def __init__(self, settings, named):
        super().__init__(settings, {name: rows(list(values), shape[-1])
                                    for name, (shape, values) in named.items()})

    def bias(self, name, x):
        bias = self.weights.get(name.replace("weight", "bias"))
        return [a + b for a, b in zip(x, bias[0])] if bias else x

    def product(self, name, x):
        return self.bias(name, super().product(name, x))

    def norm(self, name, x):
        mean = sum(x) / len(x)
        centred = [a - mean for a in x]
        scale = 1 / math.sqrt(dot(centred, centred) / len(x) + self.settings["layer_norm_eps"])
        return self.bias(name, [a * scale * w for a, w in zip(centred, self.weights[name][0])])

    def heads(self, layer, which, x, position, turn):
        size, half = self.settings["head_dim"], len(turn)
        flat = self.product(f"{layer}self_attn.{which}_proj.weight", x)
        result = []
        for h in range(len(flat) // size):
            head = flat[h * size:(h + 1) * size]
            name = f"{layer}self_attn.{which}_layernorm.norms.{h}.weight"
            if name in self.weights:
                head = self.norm(name, head)
            for i, f in enumerate(turn):
                a, b, c, s = head[i], head[i + half], math.cos(position * f), math.sin(position * f)
                head[i], head[i + half] = a * c - b * s, b * c + a * s
            result.append(head)
        return result

    def mlp(self, layer, x):
        gate, up = (self.product(f"{layer}mlp.{w}_proj.weight", x) for w in ("gate", "up"))
        return self.product(layer + "mlp.down_proj.weight",
                            [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])

    def layer(self, layer, stream, turn):
        normed = [self.norm(layer + "input_layernorm.weight", x) for x in stream]
        keys = [self.heads(layer, "k", x, p, turn) for p, x in enumerate(normed)]
        values = [self.product(layer + "self_attn.v_proj.weight", x) for x in normed]
        for p, x in enumerate(stream):
            queries = self.heads(layer, "q", normed[p], p, turn)
            mixed = self.attend(queries, keys[:p + 1], values)
            self.add(x, self.product(layer + "self_attn.o_proj.weight", mixed))
            if not self.settings.get("use_parallel_residual"):
                normed[p] = self.norm(layer + "post_attention_layernorm.weight", x)
            self.add(x, self.mlp(layer, normed[p]))

    def logits(self, ids):
        rope = self.settings["rope_parameters"]
        turned = int(self.settings["head_dim"] * rope["partial_rotary_factor"])
        turn = [rope["rope_theta"] ** (-2 * i / turned) for i in range(turned // 2)]
        stream = [list(self.weights["model.embed_tokens.weight"][i]) for i in ids]
        for n in range(self.settings["num_hidden_layers"]):
            self.layer(f"model.layers.{n}.", stream, turn)
        return [self.product("lm_head.weight", self.norm("model.norm.weight", x)) for x in stream]


def check(stele, checks, folder, label, model, ids, expected):
    """Logits of all ids at once; the next ids, one by one, behind the first of them."""
    for target in ("ref", "cpu"):
        artefact = stele.compile(model, folder / "model.so", "--target", target, "--prefill", 5,
                                 "--max-cache-len", 64)
        _, found = stele.forward(artefact, ids, folder / "out.npy", "--all")
        checks.close(found, [x for row in expected for x in row], TOLERANCE, f"{label} on {target}")
        token = stele.generate(artefact, ids, 1)
        checks.equal(token, [max(range(256), key=expected[-1].__getitem__)], f"{label} on {target}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stele", required=True)
    parser.add_argument("--make-model")
    arguments = parser.parse_args()
    stele, checks = Stele(arguments.stele), Checks()
    ids = [i * 37 % 256 for i in range(1, 24)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for form, changes in FORMS.items():
            settings = models.config(
                model_type="stablelm", rms_norm_eps=None, layer_norm_eps=1e-5,
                rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                                 "partial_rotary_factor": 0.25}, **changes)
            named = tensors(settings)
            expected = StableLM(settings, named).logits(ids)
            model = models.write(folder / form, settings, named)
            check(stele, checks, folder, form, model, ids, expected)
            if arguments.make_model:
                gguf = folder / "model.gguf"
                subprocess.run([arguments.make_model, "--convert", model, "--gguf", gguf], check=True)
                check(stele, checks, folder, f"{form}, GGUF", gguf, ids, expected)
        checks.finish()


main()
