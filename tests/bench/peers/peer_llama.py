"""llama.cpp through the plain functions of llama-cpp-python: decode calls as llama-bench makes
them, with nothing of Python between but a loop. To the first token it is the smallest C program."""
import ctypes
import os
import pathlib
import subprocess
import time

BATCH = 512
CAPACITY = 8192


class Peer:
    def __init__(self, path, threads, setting):
        import llama_cpp
        self.api = llama_cpp
        self.version = llama_cpp.__version__
        self.silent = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self.silent, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise RuntimeError("llama.cpp does not load the model")
        wanted = llama_cpp.llama_context_default_params()
        wanted.n_ctx = CAPACITY
        wanted.n_batch = wanted.n_ubatch = BATCH
        wanted.n_threads = wanted.n_threads_batch = threads
        off = setting.startswith("no")
        wanted.flash_attn_type = (llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED if off
                                  else llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED)
        self.context = llama_cpp.llama_init_from_model(self.model, wanted)
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.filled = []

    def feed(self, ids):
        for begin in range(0, len(ids), BATCH):
            piece = ids[begin:begin + BATCH]
            array = (self.api.llama_token * len(piece))(*piece)
            batch = self.api.llama_batch_get_one(array, len(piece))
            if self.api.llama_decode(self.context, batch) != 0:
                raise RuntimeError("llama_decode failed")
        self.api.llama_synchronize(self.context)

    def fill(self, ids):
        """What an earlier round left in the cache need not be made again."""
        if not ids or self.filled != ids:
            self.api.llama_memory_clear(self.memory, False)
            self.feed(ids)
            self.filled = ids
        self.api.llama_memory_seq_rm(self.memory, 0, len(ids), -1)

    def prefill(self, ids):
        self.fill([])
        start = time.perf_counter()
        self.feed(ids)
        return time.perf_counter() - start

    def decode(self, ids, count):
        self.fill(ids)
        start = time.perf_counter()
        for i in range(count):
            self.feed([i + 100])
        return time.perf_counter() - start


def first_command(python, path, threads, ids, folder):
    """Builds the program beside the package's library, once."""
    found = subprocess.run([python, "-c", "import llama_cpp; print(llama_cpp.__file__)"],
                           capture_output=True, text=True, check=True)
    packages = pathlib.Path(found.stdout.strip()).parent.parent
    program = pathlib.Path(folder) / "first_llama"
    source = pathlib.Path(__file__).with_name("first_llama.c")
    lib = packages / "lib"
    if not lib.is_dir():
        lib = packages / "llama_cpp" / "lib"
    subprocess.run([os.environ.get("CC", "clang-22"), "-O2", f"-I{packages}/include", str(source),
                    "-o", str(program), f"-L{lib}", f"-Wl,-rpath,{lib}", "-lllama", "-lggml",
                    "-lggml-base"], check=True, capture_output=True, text=True)
    return [str(program), path, str(threads), *map(str, ids)]
