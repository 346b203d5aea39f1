#!/usr/bin/env python3
"""Writes a GGUF model of the Llama or Qwen2 family as a Hugging Face directory, for the programs
that read no GGUF: the dequantised weights as float16, config.json and a tokenizer.

    write_hf.py MODEL.gguf FOLDER

Needs the packages gguf and safetensors. Llama's GGUF stores the rows of queries and keys so that
the two halves of a rotated pair are neighbours; Hugging Face keeps the halves apart, so their order
is undone here (llama.cpp's converter calls it permute). The tokenizer is byte-level BPE with the
model's vocabulary; its splitting is ByteLevel's, as measurements feed ids and not text.
"""
import json
import pathlib
import sys

import gguf
import numpy
from safetensors.numpy import save_file

FAMILIES = {"llama": ("LlamaForCausalLM", True), "qwen2": ("Qwen2ForCausalLM", False)}
TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
IN_BLOCK = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
CONTROL = 3  # the kind of token that is never made of text


class Source:
    def __init__(self, path):
        self.reader = gguf.GGUFReader(path)
        self.family = self.value("general.architecture")
        if self.family not in FAMILIES:
            raise SystemExit(f"architecture '{self.family}', expected one of {list(FAMILIES)}")

    def value(self, name, default=None):
        field = self.reader.get_field(name)
        return default if field is None else field.contents()

    def key(self, name, default=None):
        return self.value(f"{self.family}.{name}", default)


def split_halves(rows, heads):
    """(heads, pairs, 2) rows to (heads, 2, pairs) rows."""
    shape = rows.shape
    return rows.reshape(heads, -1, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def write_weights(source, folder):
    weights = {}
    heads = {"attn_q": source.key("attention.head_count"),
             "attn_k": source.key("attention.head_count_kv")}
    for tensor in source.reader.tensors:
        stem, _, ending = tensor.name.rpartition(".")
        data = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if stem.startswith("blk."):
            _, block, role = stem.split(".")
            if FAMILIES[source.family][1] and role in heads:
                data = split_halves(data, heads[role])
            name = f"model.layers.{block}.{IN_BLOCK[role]}.{ending}"
        elif stem in TOP:
            name = f"{TOP[stem]}.{ending}"
        else:
            continue  # what follows from the configuration, as factors of rope
        weights[name] = numpy.ascontiguousarray(data, dtype=numpy.float16)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return weights


def write_config(source, weights, folder):
    heads = source.key("attention.head_count")
    hidden = source.key("embedding_length")
    config = {
        "architectures": [FAMILIES[source.family][0]], "model_type": source.family,
        "hidden_act": "silu", "hidden_size": hidden, "num_attention_heads": heads,
        "intermediate_size": source.key("feed_forward_length"),
        "num_hidden_layers": source.key("block_count"),
        "num_key_value_heads": source.key("attention.head_count_kv", heads),
        "head_dim": source.key("attention.key_length", hidden // heads),
        "max_position_embeddings": source.key("context_length"),
        "rms_norm_eps": source.key("attention.layer_norm_rms_epsilon"),
        "rope_theta": source.key("rope.freq_base", 10000.0),
        "vocab_size": weights["model.embed_tokens.weight"].shape[0],
        "tie_word_embeddings": "lm_head.weight" not in weights, "torch_dtype": "float16",
        "bos_token_id": source.value("tokenizer.ggml.bos_token_id", 1),
        "eos_token_id": source.value("tokenizer.ggml.eos_token_id", 2),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))


def write_tokenizer(source, folder):
    tokens = source.value("tokenizer.ggml.tokens")
    kinds = source.value("tokenizer.ggml.token_type")
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": True}
    added = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True}
             for i, (token, kind) in enumerate(zip(tokens, kinds)) if kind == CONTROL]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)},
                  "merges": source.value("tokenizer.ggml.merges"), "unk_token": None,
                  "dropout": None, "fuse_unk": False, "byte_fallback": False}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[source.value("tokenizer.ggml.bos_token_id", 1)],
        "eos_token": tokens[source.value("tokenizer.ggml.eos_token_id", 2)]}))


def main(path, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    source = Source(path)
    weights = write_weights(source, folder)
    write_config(source, weights, folder)
    write_tokenizer(source, folder)


main(*sys.argv[1:])
