/* The smallest program of llama.cpp that makes a first token: what its time to start is measured
 * with. Links with the library and the headers that llama-cpp-python installs.
 *     first_llama MODEL.gguf THREADS ID... */
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>

static void be_silent(enum ggml_log_level level, const char *text, void *user) {
  (void)level, (void)text, (void)user;
}

static int best(const float *logits, int count) {
  int found = 0;
  for (int i = 1; i < count; i++)
    if (logits[i] > logits[found]) found = i;
  return found;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  llama_log_set(be_silent, NULL);
  llama_backend_init();
  struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (!model) return 1;
  struct llama_context_params params = llama_context_default_params();
  params.n_ctx = 512;
  params.n_threads = params.n_threads_batch = atoi(argv[2]);
  struct llama_context *context = llama_init_from_model(model, params);
  int count = argc - 3;
  llama_token *ids = malloc((size_t)count * sizeof *ids);
  if (!context || !ids) return 1;
  for (int i = 0; i < count; i++) ids[i] = atoi(argv[3 + i]);
  if (llama_decode(context, llama_batch_get_one(ids, count)) != 0) return 1;
  int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  printf("%d\n", best(llama_get_logits_ith(context, -1), vocab));
  fflush(stdout);
  free(ids);
  llama_free(context);
  llama_model_free(model);
  return 0;
}
