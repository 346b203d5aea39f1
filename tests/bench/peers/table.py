"""What is compared: the peers, what each one's Python needs, the models and the processor levels.

A new peer is one file with a class Peer (see worker.py) and one row of PEERS; a new model is one
row of MODELS. Versions are fixed, so that a run can be repeated; raising one is a change here.
"""
import dataclasses

GGUF, HF, ONNX, ARTEFACT = "gguf", "hf", "onnx", "artefact"


@dataclasses.dataclass(frozen=True)
class Environment:
    """A virtual environment: packages are installed with what they need, `alone` without."""
    packages: tuple
    alone: tuple = ()
    variables: dict = dataclasses.field(default_factory=dict)
    after: str = ""  # a script beside this file, run by the new Python


@dataclasses.dataclass(frozen=True)
class Peer:
    """A program that runs models. Every setting is measured, the best one counts."""
    title: str
    file: str
    environment: str  # "": the Python that runs the comparison
    reads: str  # the format of the models
    settings: tuple  # names; each is passed to the class Peer
    needs: dict = dataclasses.field(default_factory=dict)  # setting: feature of the processor
    own_weights: bool = False  # it makes its own numbers from the dequantised weights


@dataclasses.dataclass(frozen=True)
class Model:
    title: str
    recipe: tuple  # ("fetch",), ("file", path), ("requantise", type) or ("random", shape)
    everyone: bool  # also for peers that don't read its very weights


@dataclasses.dataclass(frozen=True)
class Level:
    """How the peers are held to a level of instructions; those that can't be are left out."""
    cmake: str
    variables: dict
    needs: str = ""  # a feature of the processor


ENVIRONMENTS = {
    "models": Environment(("gguf==0.19.0", "safetensors==0.8.0")),
    # gcc 12 miscompiles the configuration of AMX tiles, so clang builds it.
    "llama": Environment(("llama-cpp-python==0.3.36",),
                         variables={"CC": "clang-22", "CXX": "clang++-22", "FORCE_CMAKE": "1",
                                    "CMAKE_ARGS": "-DGGML_NATIVE=ON"}),
    "openvino": Environment(("openvino-genai==2026.4.1.0", "gguf==0.19.0")),
    "onnxruntime": Environment(("onnxruntime-genai==0.18.0",)),
    # torch without the libraries for graphics processors that the package asks for: gigabytes.
    "torch": Environment(
        ("filelock", "typing-extensions", "setuptools<81", "sympy", "networkx", "jinja2", "fsspec",
         "numpy", "gguf==0.19.0", "safetensors==0.8.0", "transformers==5.24.0", "onnx",
         "onnx_ir", "onnxruntime==1.32.0"),
        alone=("torch==2.15.0", "onnxruntime-genai==0.18.0"), after="torch_without_gpu.py"),
}

PEERS = {
    "stele": Peer("stele", "peer_stele.py", "", ARTEFACT, ("default",)),
    "llama": Peer("llama.cpp", "peer_llama.py", "llama", GGUF,
                  ("flash attention", "no flash attention")),
    "openvino": Peer("OpenVINO GenAI", "peer_openvino.py", "openvino", GGUF, ("default",)),
    "onnxruntime": Peer("ONNX Runtime GenAI", "peer_onnxruntime.py", "onnxruntime", ONNX,
                        ("int4",), own_weights=True),
    "torch": Peer("torch, static cache", "peer_torch.py", "torch", HF,
                  ("eager f32", "compile f32", "compile bf16"),
                  needs={"compile bf16": "avx512_bf16"}, own_weights=True),
}

MODELS = {
    "smollm2-q4_1": Model("SmolLM2-135M Q4_1", ("fetch",), True),
    "smollm2-q4_0": Model("SmolLM2-135M Q4_0", ("requantise", "Q4_0"), False),
    "smollm2-q8_0": Model("SmolLM2-135M Q8_0", ("requantise", "Q8_0"), False),
    "smollm2-f16": Model("SmolLM2-135M F16", ("requantise", "F16"), False),
    "1.5b-q4_k_m": Model("1.5B shape, random, Q4_K_M", ("random", "1.5b"), False),
}

_BASE = ("SSE42", "AVX", "AVX2", "FMA", "F16C", "BMI2")
_WIDE = ("AVX512", "AVX512_VNNI")
_REST = ("AVX_VNNI", "AVX512_VBMI", "AVX512_BF16", "AMX_TILE", "AMX_INT8", "AMX_BF16")


def _only(*wanted):
    """llama.cpp built for these features and no others."""
    switches = (f"-DGGML_{name}={'ON' if name in wanted else 'OFF'}"
                for name in (*_BASE, *_WIDE, *_REST))
    return " ".join(("-DGGML_NATIVE=OFF", *switches))


LEVELS = {
    "x86-64": Level(_only(), {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default"}),
    "x86-64-v3": Level(_only(*_BASE),
                       {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
                       needs="avx2"),
    "x86-64-v3-vnni": Level(_only(*_BASE, "AVX_VNNI"),
                            {"ONEDNN_MAX_CPU_ISA": "AVX2_VNNI", "ATEN_CPU_CAPABILITY": "avx2"},
                            needs="avx_vnni"),
    "x86-64-v4-vnni": Level(_only(*_BASE, *_WIDE),
                            {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI",
                             "ATEN_CPU_CAPABILITY": "avx512"}, needs="avx512_vnni"),
}
CAN_BE_HELD = {"stele", "llama", "torch"}
