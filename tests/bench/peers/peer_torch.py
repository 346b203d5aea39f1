"""transformers on torch with its static cache: eager, and compiled by torch.compile. A cache is as
long as its test needs, as attention reads all of it; it is filled by the eager model."""
import time

BATCH = 512


class Peer:
    def __init__(self, path, threads, setting):
        import torch
        import transformers
        self.torch, self.transformers = torch, transformers
        number = torch.__version__.partition("+")[0]
        self.version = f"{number} with transformers {transformers.__version__}"
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        mode, kind = setting.split()
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype={"f32": torch.float32, "bf16": torch.bfloat16}[kind]).eval()
        self.step = self.model
        if mode == "compile":
            torch._dynamo.config.cache_size_limit = 64
            self.step = torch.compile(self.model, dynamic=False)
        self.filled = {}

    def cache(self, room):
        return self.transformers.StaticCache(config=self.model.config, max_cache_len=room)

    def feed(self, ids, cache, step):
        input_ids = self.torch.tensor([ids])
        return step(input_ids=input_ids, past_key_values=cache, use_cache=True,
                    logits_to_keep=1).logits

    def prefill(self, ids):
        cache = self.cache(len(ids))
        start = time.perf_counter()
        self.feed(ids, cache, self.step)
        return time.perf_counter() - start

    def decode(self, ids, count):
        ids = ids or [1]
        key = len(ids), count
        if key not in self.filled:
            cache = self.filled[key] = self.cache(sum(key))
            for begin in range(0, len(ids), BATCH):
                self.feed(ids[begin:begin + BATCH], cache, self.model)
        cache = self.filled[key]
        token = 100
        start = time.perf_counter()
        for _ in range(count):
            token = int(self.feed([token], cache, self.step)[0, -1].argmax())
        seconds = time.perf_counter() - start
        cache.crop(-count)
        return seconds

    def first(self, ids):
        int(self.feed(ids, self.cache(len(ids)), self.step)[0, -1].argmax())
