"""Small random models for tests, written as a Hugging Face directory or as a GGUF file, right or
wrong on purpose. Python's standard library alone."""
import array
import json
import pathlib
import random
import struct


# ---- Hugging Face directories ---------------------------------------------------------------

def config(**changes):
    """config.json of a Llama of 2 layers; values that are None are left out."""
    values = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": False,
        "bos_token_id": 1, "eos_token_id": 2, "dtype": "float32", "head_dim": 16,
        "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 96,
        "max_position_embeddings": 1024, "mlp_bias": False, "num_attention_heads": 4,
        "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "tie_word_embeddings": False, "vocab_size": 256,
    }
    values.update(changes)
    return {k: v for k, v in values.items() if v is not None}


def tensors(settings, seed=1):
    """{name: (shape, floats)} of a model of these settings."""
    generator = random.Random(seed)
    hidden, head = settings["hidden_size"], settings["head_dim"]
    wide, vocab = settings["intermediate_size"], settings["vocab_size"]
    heads, kv_heads = settings["num_attention_heads"], settings["num_key_value_heads"]

    def matrix(rows, columns):
        spread = 1.5 / columns ** 0.5
        return (rows, columns), array.array(
            "f", (generator.gauss(0, spread) for _ in range(rows * columns)))

    def vector(size):
        return (size,), array.array("f", (generator.uniform(0.5, 1.5) for _ in range(size)))

    result = {"model.embed_tokens.weight": matrix(vocab, hidden)}
    for i in range(settings["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        result[layer + "input_layernorm.weight"] = vector(hidden)
        result[layer + "self_attn.q_proj.weight"] = matrix(heads * head, hidden)
        result[layer + "self_attn.k_proj.weight"] = matrix(kv_heads * head, hidden)
        result[layer + "self_attn.v_proj.weight"] = matrix(kv_heads * head, hidden)
        result[layer + "self_attn.o_proj.weight"] = matrix(hidden, heads * head)
        result[layer + "post_attention_layernorm.weight"] = vector(hidden)
        result[layer + "mlp.gate_proj.weight"] = matrix(wide, hidden)
        result[layer + "mlp.up_proj.weight"] = matrix(wide, hidden)
        result[layer + "mlp.down_proj.weight"] = matrix(hidden, wide)
    result["model.norm.weight"] = vector(hidden)
    if not settings["tie_word_embeddings"]:
        result["lm_head.weight"] = matrix(vocab, hidden)
    return result


def safetensors(named, dtype="F32", change=None):
    """The bytes of a file. change(header) may spoil the header before it is written."""
    header, body = {}, bytearray()
    for name, (shape, values) in named.items():
        data = values.tobytes()
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    if change:
        change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(body)


def write(folder, settings=None, named=None, data=None):
    """A directory with config.json and model.safetensors; returns its path."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    settings = settings or config()
    if data is None:
        data = safetensors(named if named is not None else tensors(settings))
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "model.safetensors").write_bytes(data)
    return folder


# ---- GGUF -----------------------------------------------------------------------------------

U8, U32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 6, 7, 8, 9, 10


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(kind, value):
    if kind == STRING:
        return gguf_string(value)
    if kind == ARRAY:
        inner, items = value
        return struct.pack("<IQ", inner, len(items)) + b"".join(gguf_value(inner, i) for i in items)
    return struct.pack({U8: "<B", U32: "<I", F32: "<f", BOOL: "<?", U64: "<Q"}[kind], value)


def gguf_keys(settings):
    return [
        ("general.architecture", STRING, "llama"),
        ("llama.block_count", U32, settings["num_hidden_layers"]),
        ("llama.context_length", U32, settings["max_position_embeddings"]),
        ("llama.embedding_length", U32, settings["hidden_size"]),
        ("llama.feed_forward_length", U32, settings["intermediate_size"]),
        ("llama.attention.head_count", U32, settings["num_attention_heads"]),
        ("llama.attention.head_count_kv", U32, settings["num_key_value_heads"]),
        ("llama.attention.layer_norm_rms_epsilon", F32, settings["rms_norm_eps"]),
        ("llama.attention.key_length", U32, settings["head_dim"]),
        ("llama.attention.value_length", U32, settings["head_dim"]),
        ("llama.rope.freq_base", F32, 10000.0),
        ("llama.rope.dimension_count", U32, settings["head_dim"]),
        ("llama.vocab_size", U32, settings["vocab_size"]),
    ]


GGUF_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight", "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    if name in GGUF_NAMES:
        return GGUF_NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[rest.removesuffix('.weight')]}.weight"


def gguf(keys, named, kind=0, alignment=32, counts=None, infos=None, version=3):
    """The bytes of a file. named: {GGUF name: (shape, bytes)}; counts and infos replace the true
    numbers of tensors and keys and the list of (name, dims, type, offset)."""
    true_infos, body = [], bytearray()
    for name, (shape, data) in named.items():
        body += b"\0" * (-len(body) % (alignment or 32))
        true_infos.append((name, shape[::-1], kind, len(body)))
        body += data
    infos = true_infos if infos is None else infos(true_infos)
    tensor_count, key_count = counts or (len(infos), len(keys))
    out = b"GGUF" + struct.pack("<IQQ", version, tensor_count, key_count)
    for name, value_kind, value in keys:
        out += gguf_string(name) + struct.pack("<I", value_kind)
        out += value if isinstance(value, bytes) else gguf_value(value_kind, value)
    for name, dims, tensor_kind, offset in infos:
        out += gguf_string(name) + struct.pack("<I", len(dims))
        out += b"".join(struct.pack("<Q", d) for d in dims)
        out += struct.pack("<IQ", tensor_kind, offset)
    out += b"\0" * (-len(out) % (alignment or 32))
    return out + bytes(body)
