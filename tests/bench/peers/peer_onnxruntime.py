"""ONNX Runtime GenAI on a model that its own builder quantised to 4 bits."""
import json
import time


class Peer:
    def __init__(self, path, threads, setting):
        import onnxruntime_genai
        self.genai = onnxruntime_genai
        self.version = onnxruntime_genai.__version__
        config = onnxruntime_genai.Config(path)
        config.overlay(json.dumps(
            {"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
        self.model = onnxruntime_genai.Model(config)

    def generator(self, room):
        settings = self.genai.GeneratorParams(self.model)
        settings.set_search_options(max_length=room, min_length=room, do_sample=False)
        return self.genai.Generator(self.model, settings)

    def prefill(self, ids):
        generator = self.generator(len(ids) + 1)
        start = time.perf_counter()
        generator.append_tokens(ids)
        return time.perf_counter() - start

    def decode(self, ids, count):
        ids = ids or [1]
        generator = self.generator(len(ids) + count + 1)
        generator.append_tokens(ids)
        generator.generate_next_token()  # its logits come from the prompt
        start = time.perf_counter()
        for _ in range(count):
            generator.generate_next_token()
        return time.perf_counter() - start

    def first(self, ids):
        generator = self.generator(len(ids) + 1)
        generator.append_tokens(ids)
        generator.generate_next_token()
