/* make-model: writes a small random model as a Hugging Face directory or a GGUF file, or turns a
 * Hugging Face directory into a GGUF file. For tests and benchmarks; not installed. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_model.h"
#include "weights/weights.h"

static const char usage[] =
    "usage: make-model [options] (--hf DIR | --gguf FILE)\n"
    "       make-model --convert DIR --gguf FILE [--type T] [--embed-type T]\n"
    "\n"
    "  --family NAME        a model_type of config.json [llama]\n"
    "  --hidden N --layers N --heads N --kv-heads N --head-dim N\n"
    "  --intermediate N --vocab N --positions N    dimensions\n"
    "  --tied --attention-bias --mlp-bias          as in config.json\n"
    "  --rope JSON          rope_parameters [default rope, theta 10000]\n"
    "  --fields JSON        more fields of config.json: '\"sliding_window\": 8'\n"
    "  --seed N             of the random weights [1]\n"
    "  --dtype T            of the directory's tensors: f32, f16, bf16 [f32]\n"
    "  --type T             of the file's matrices: also q8_0, q4_0, q4_1, q5_0, q5_1,\n"
    "                       q2_k to q6_k [f32]\n"
    "  --embed-type T       of its embedding and head [as --type]\n";

typedef struct command {
  test_options options;
  const char *hf, *gguf, *convert;
  uint32_t dtype, type, embed_type;
  bool help;
} command;

enum {
  FAMILY = 1,
  HIDDEN,
  LAYERS,
  HEADS,
  KV_HEADS,
  HEAD_DIM,
  INTERMEDIATE,
  VOCAB,
  POSITIONS,
  TIED,
  ATTENTION_BIAS,
  MLP_BIAS,
  ROPE,
  FIELDS,
  SEED,
  DTYPE,
  TYPE,
  EMBED_TYPE,
  HF,
  GGUF,
  CONVERT,
  HELP
};

static const struct option longs[] = {{"family", 1, NULL, FAMILY},
                                      {"hidden", 1, NULL, HIDDEN},
                                      {"layers", 1, NULL, LAYERS},
                                      {"heads", 1, NULL, HEADS},
                                      {"kv-heads", 1, NULL, KV_HEADS},
                                      {"head-dim", 1, NULL, HEAD_DIM},
                                      {"intermediate", 1, NULL, INTERMEDIATE},
                                      {"vocab", 1, NULL, VOCAB},
                                      {"positions", 1, NULL, POSITIONS},
                                      {"tied", 0, NULL, TIED},
                                      {"attention-bias", 0, NULL, ATTENTION_BIAS},
                                      {"mlp-bias", 0, NULL, MLP_BIAS},
                                      {"rope", 1, NULL, ROPE},
                                      {"fields", 1, NULL, FIELDS},
                                      {"seed", 1, NULL, SEED},
                                      {"dtype", 1, NULL, DTYPE},
                                      {"type", 1, NULL, TYPE},
                                      {"embed-type", 1, NULL, EMBED_TYPE},
                                      {"hf", 1, NULL, HF},
                                      {"gguf", 1, NULL, GGUF},
                                      {"convert", 1, NULL, CONVERT},
                                      {"help", 0, NULL, HELP},
                                      {NULL, 0, NULL, 0}};

static bool to_number(const char *text, uint32_t *out) {
  char *end;
  unsigned long value = strtoul(text, &end, 10);
  if (!*text || *end || value == 0 || value > INT32_MAX) return false;
  *out = (uint32_t)value;
  return true;
}

static bool set_text(command *c, int option, const char *text) {
  switch (option) {
    case FAMILY:
      c->options.family = text;
      return true;
    case ROPE:
      c->options.rope = text;
      return true;
    case FIELDS:
      c->options.fields = text;
      return true;
    case HF:
      c->hf = text;
      return true;
    case GGUF:
      c->gguf = text;
      return true;
    case CONVERT:
      c->convert = text;
      return true;
    case TIED:
      return c->options.tied = true;
    case ATTENTION_BIAS:
      return c->options.attention_bias = true;
    case MLP_BIAS:
      return c->options.mlp_bias = true;
    case HELP:
      return c->help = true;
    case DTYPE:
      return weights_scheme_by_name(text, &c->dtype);
    case TYPE:
      return weights_scheme_by_name(text, &c->type);
    case EMBED_TYPE:
      return weights_scheme_by_name(text, &c->embed_type);
    default:
      return false;
  }
}

static bool set(command *c, int option, const char *text) {
  test_options *o = &c->options;
  uint32_t seed = 0;
  switch (option) {
    case HIDDEN:
      return to_number(text, &o->hidden);
    case LAYERS:
      return to_number(text, &o->layers);
    case HEADS:
      return to_number(text, &o->heads);
    case KV_HEADS:
      return to_number(text, &o->kv_heads);
    case HEAD_DIM:
      return to_number(text, &o->head_dim);
    case INTERMEDIATE:
      return to_number(text, &o->intermediate);
    case VOCAB:
      return to_number(text, &o->vocab);
    case POSITIONS:
      return to_number(text, &o->positions);
    case SEED:
      if (!to_number(text, &seed)) return false;
      o->seed = seed;
      return true;
    default:
      return set_text(c, option, text);
  }
}

static bool parse(int argc, char **argv, command *c) {
  *c = (command){.options = test_options_default(), .embed_type = UINT32_MAX};
  for (int option; (option = getopt_long(argc, argv, "", longs, NULL)) != -1;)
    if (!set(c, option, optarg)) return false;
  if (c->embed_type == UINT32_MAX) c->embed_type = c->type;
  if (c->type == STELE_I32 || c->embed_type == STELE_I32) return false;
  return c->help || (optind == argc && (c->gguf || (c->hf && !c->convert)));
}

static stele_status execute(const command *c, stele_sink *sink) {
  fe_model *model;
  if (c->convert)
    BASE_TRY(fe_model_open(c->convert, sink, &model));
  else
    BASE_TRY(test_model_random(&c->options, sink, &model));
  stele_status status = STELE_OK;
  if (c->hf) status = test_model_save_hf(&c->options, model, c->dtype, c->hf, sink);
  if (status == STELE_OK && c->gguf)
    status = test_model_save_gguf(model, c->type, c->embed_type, c->gguf, sink);
  fe_model_destroy(model);
  return status;
}

int main(int argc, char **argv) {
  command c;
  if (!parse(argc, argv, &c)) {
    fputs(usage, stderr);
    return 2;
  }
  if (c.help) {
    fputs(usage, stdout);
    return 0;
  }
  stele_sink sink = {{0}};
  if (execute(&c, &sink) == STELE_OK) return 0;
  fprintf(stderr, "make-model: %s\n", sink.text);
  return 1;
}
