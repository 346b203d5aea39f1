#!/usr/bin/env python3
"""Models that lie: each gives exit code 1 and a message that says what is wrong and where, and
leaves no file behind.

    bad_models.py --stele PATH
"""
import argparse
import array
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import models  # noqa: E402
from harness import Checks, Stele  # noqa: E402


def spoil(**changes):
    """A change of a safetensors header: {tensor: fields}; None removes the tensor."""
    def change(header):
        for name, fields in changes.items():
            name = name.replace("__", ".")
            if fields is None:
                del header[name]
            else:
                header[name].update(fields)
    return change


def hf_cases():
    """(label, settings, bytes of model.safetensors, words of the message)"""
    settings = models.config()
    good = models.tensors(settings)
    data = models.safetensors(good)
    size = struct.unpack_from("<Q", data)[0]
    norm = "model__norm__weight"
    yield "empty file", settings, b"", ["safetensors"]
    yield "cut in the length", settings, data[:5], ["safetensors"]
    yield "cut in the header", settings, data[:size // 2], ["safetensors"]
    yield "cut in the data", settings, data[:-64], ["safetensors"]
    yield "header longer than the file", settings, struct.pack("<Q", 1 << 40) + data[8:], []
    yield "header of all the numbers", settings, struct.pack("<Q", (1 << 64) - 1) + data[8:], []
    yield "header that is no JSON", settings, data[:8] + b"}" + data[9:], []
    yield "deep JSON", settings, struct.pack("<Q", 200000) + b"[" * 200000, []
    for label, fields in {
            "overlapping offsets": {"data_offsets": [0, 256]},
            "offsets turned round": {"data_offsets": [512, 256]},
            "offsets past the end": {"data_offsets": [1 << 50, (1 << 50) + 256]},
            "negative offsets": {"data_offsets": [-256, 0]},
            "a product that overflows": {"shape": [1 << 40, 1 << 40]},
            "a shape of text": {"shape": "64"},
            "no type": {"dtype": ""},
            "an unknown type": {"dtype": "F8_E4M3"},
            "a shape that differs": {"shape": [32], "data_offsets": [0, 128]}}.items():
        yield label, settings, models.safetensors(good, change=spoil(**{norm: fields})), [
            "model.norm.weight"]

    missing = {k: v for k, v in good.items() if "layers.1.mlp" not in k}
    yield "missing tensors are all listed", settings, models.safetensors(missing), [
        f"model.layers.1.mlp.{m}_proj.weight" for m in ("gate", "up", "down")]
    extra = {**good, "model.layers.7.self_attn.q_proj.weight": good["model.norm.weight"]}
    yield "an unexpected tensor", settings, models.safetensors(extra), [
        "model.layers.7.self_attn.q_proj.weight"]
    headless = {k: v for k, v in good.items() if k != "lm_head.weight"}
    yield "untied without a head", settings, models.safetensors(headless), ["lm_head.weight"]
    wrong = {**good, "model.layers.0.self_attn.q_proj.weight": ((64, 32), array.array("f", [0] * 2048))}
    yield "a wrong shape", settings, models.safetensors(wrong), [
        "model.layers.0.self_attn.q_proj.weight", "64", "32"]
    yield "an unknown family", models.config(model_type="perceiver",
                                             architectures=["PerceiverModel"]), data, ["perceiver"]
    yield "an unknown activation", models.config(hidden_act="snake"), data, ["snake"]
    yield "no hidden size", models.config(hidden_size=None), data, ["hidden_size"]
    yield "a hidden size of nothing", models.config(hidden_size=0), data, ["hidden_size"]
    yield "more heads than there can be", models.config(num_attention_heads=1 << 31), data, []
    yield "heads that no groups divide", models.config(num_key_value_heads=3), data, []
    yield "an unknown rope", models.config(rope_parameters={"rope_theta": 1e4, "rope_type": "spiral"}), data, [
        "spiral"]


def gguf_cases():
    """(label, bytes, words of the message)"""
    settings = models.config()
    keys = models.gguf_keys(settings)
    named = {models.gguf_name(k): (shape, values.tobytes())
             for k, (shape, values) in models.tensors(settings).items()}
    data = models.gguf(keys, named)

    def first(change):
        def infos(rows):
            return [change(*rows[0]), *rows[1:]]
        return models.gguf(keys, named, infos=infos)

    yield "cut in the magic", data[:3], []
    for place in (6, 20, 60, 300, 900, 2000, len(data) - 100):
        yield f"cut at {place}", data[:place], []
    yield "another version", models.gguf(keys, named, version=9), ["9"]
    yield "2^60 tensors", models.gguf(keys, named, counts=(1 << 60, len(keys))), []
    yield "2^60 keys", models.gguf(keys, named, counts=(len(named), 1 << 60)), []
    yield "a string of 2^63 bytes", data[:24] + struct.pack("<Q", 1 << 63) + data[32:], []
    yield "an unknown kind of value", models.gguf([*keys, ("x", 77, b"\0" * 8)], named), []
    yield "an array of an unknown kind", models.gguf(
        [*keys, ("x", models.ARRAY, struct.pack("<IQ", 99, 4) + b"\0" * 16)], named), []
    yield "an array of 2^61 numbers", models.gguf(
        [*keys, ("x", models.ARRAY, struct.pack("<IQ", models.U64, 1 << 61))], named), []
    nest = struct.pack("<IQ", models.ARRAY, 1) * 100000
    yield "arrays in arrays", models.gguf([*keys, ("x", models.ARRAY, nest)], named), []
    yield "9 dimensions", first(lambda n, d, k, o: (n, [1] * 9, k, o)), ["token_embd.weight"]
    yield "no dimension", first(lambda n, d, k, o: (n, [], k, o)), ["token_embd.weight"]
    yield "a dimension of nothing", first(lambda n, d, k, o: (n, [0, 256], k, o)), ["token_embd.weight"]
    yield "dimensions that overflow", first(lambda n, d, k, o: (n, [1 << 40, 1 << 40], k, o)), [
        "token_embd.weight"]
    yield "an unsupported type", first(lambda n, d, k, o: (n, d, 12, o)), ["token_embd.weight"]
    yield "an unknown type", first(lambda n, d, k, o: (n, d, 4000, o)), ["token_embd.weight"]
    yield "an offset past the end", first(lambda n, d, k, o: (n, d, k, 1 << 40)), ["token_embd.weight"]
    yield "an offset that overflows", first(lambda n, d, k, o: (n, d, k, (1 << 64) - 32)), [
        "token_embd.weight"]
    yield "an offset that is not aligned", first(lambda n, d, k, o: (n, d, k, 1)), ["token_embd.weight"]
    yield "the same name twice", models.gguf(
        keys, named, infos=lambda rows: [rows[0], *rows]), ["token_embd.weight"]
    for alignment in (0, 3):
        yield f"alignment {alignment}", models.gguf(
            [*keys, ("general.alignment", models.U32, alignment)], named), ["alignment"]
    yield "alignment as text", models.gguf(
        [*keys, ("general.alignment", models.STRING, "32")], named), ["alignment"]
    yield "an unknown family", models.gguf(
        [("general.architecture", models.STRING, "perceiver"), *keys[1:]], named), ["perceiver"]
    yield "no family", models.gguf(keys[1:], named), ["general.architecture"]


def expect_failure(checks, stele, label, model, output, words):
    done = stele.call("compile", model, "-o", output, "--quiet", "--threads", 1, timeout=120)
    text = done.stderr
    checks.equal(done.returncode, 1, f"{label}: exit code ({text[-300:]})")
    checks.that(text.startswith("stele compile: ") and len(text) > 30, f"{label}: says {text[:200]!r}")
    for word in words:
        checks.that(word in text, f"{label}: the message lacks {word!r}: {text[:400]!r}")
    checks.equal(done.stdout, "", f"{label}: standard output")
    left = [p.name for p in output.parent.iterdir() if p.name.startswith(output.name)]
    checks.equal(left, [], f"{label}: files left behind")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stele", required=True)
    stele = Stele(parser.parse_args().stele)
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        output = folder / "out.so"
        for label, settings, data, words in hf_cases():
            model = models.write(folder / "model", settings, data=data)
            expect_failure(checks, stele, label, model, output, words)
        file = folder / "model.gguf"
        for label, data, words in gguf_cases():
            file.write_bytes(data)
            expect_failure(checks, stele, f"GGUF: {label}", file, output, words)
        expect_failure(checks, stele, "no such file", folder / "none", output, ["none"])
        (folder / "empty").mkdir()
        expect_failure(checks, stele, "an empty folder", folder / "empty", output, ["config.json"])
    checks.finish()


main()
