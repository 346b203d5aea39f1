"""OpenVINO GenAI, which reads GGUF itself. Times are its own metrics: to the first token, and of
each token after it."""
import time


class Peer:
    def __init__(self, path, threads, setting):
        import numpy
        import openvino
        import openvino_genai
        self.numpy, self.openvino, self.genai = numpy, openvino, openvino_genai
        self.version = openvino_genai.__version__.partition("-")[0]
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.enable_prefix_caching = False  # or a prompt seen before costs nothing
        self.pipeline = openvino_genai.LLMPipeline(path, "CPU", scheduler_config=scheduler,
                                                   INFERENCE_NUM_THREADS=threads)

    def generate(self, ids, count):
        array = self.numpy.array([ids], dtype=self.numpy.int64)
        inputs = self.genai.TokenizedInputs(self.openvino.Tensor(array),
                                            self.openvino.Tensor(self.numpy.ones_like(array)))
        settings = self.genai.GenerationConfig(max_new_tokens=count, ignore_eos=True)
        return self.pipeline.generate(inputs, settings)

    def prefill(self, ids):
        start = time.perf_counter()
        self.generate(ids, 1)
        return time.perf_counter() - start

    def decode(self, ids, count):
        done = self.generate(ids or [1], count + 1)
        return done.perf_metrics.get_tpot().mean / 1000 * count

    def first(self, ids):
        self.generate(ids, 1)
