/* A tokenizer from GGUF metadata: tokens, types and merges are arrays there; how a text is cut by
 * byte-level models is only a name, tokenizer.ggml.pre, which pretypes.def spells out. An unknown
 * name is an error: a guess would give slightly wrong ids, which nobody notices. */
#include <stdio.h>

#include "text/builder.h"
#include "text/model.h"

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define REST " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define REST_SLASH " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define FRONT "[^\\r\\n\\p{L}\\p{N}]?"

#define GPT2 {text_gpt2_pattern}
#define DIGITS_GPT2 {"\\p{N}", text_gpt2_pattern}
#define DEFAULT {"[\\p{P}\\$\\+<=>\\^\\~\\|]+", text_gpt2_pattern, "\\p{N}+", "[0-9][0-9][0-9]"}
#define LLAMA3 {CONTRACTION "|" FRONT "\\p{L}+|\\p{N}{1,3}|" REST}
#define QWEN2 {CONTRACTION "|" FRONT "\\p{L}+|\\p{N}|" REST}
#define QWEN35                                                                \
  {CONTRACTION "|" FRONT                                                      \
               "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" \
               "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}
#define TEKKEN {FRONT UPPER "*" LOWER "+|" FRONT UPPER "+" LOWER "*|\\p{N}|" REST_SLASH}
#define O200K                                                                       \
  {FRONT UPPER "*" LOWER "+" CONTRACTION "?|" FRONT UPPER "+" LOWER "*" CONTRACTION \
               "?|"                                                                 \
               "\\p{N}{1,3}|" REST_SLASH}
#define DEEPSEEK3                                                            \
  {"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",                                \
   "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"                  \
   "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" \
   "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}

typedef struct pre_type {
  const char *name;
  const char *const expressions[4];
  bool nfc, direct, bos;
} pre_type;

static const pre_type pre_types[] = {
#define X(name, expressions, nfc, direct, bos) {name, expressions, nfc, direct, bos},
#include "text/pretypes.def"
#undef X
};
#define PRE_COUNT (sizeof pre_types / sizeof *pre_types)

enum { TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER = 4 };

static stele_status find_pre(text_builder *b, const char *name, const pre_type **out_pre) {
  if (!name) name = "default";
  for (size_t i = 0; i < PRE_COUNT; i++) {
    if (strcmp(pre_types[i].name, name) != 0) continue;
    *out_pre = &pre_types[i];
    return STELE_OK;
  }
  char known[600];
  size_t used = 0;
  for (size_t i = 0; i < PRE_COUNT && used < sizeof known; i++)
    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                             pre_types[i].name);
  return base_fail(b->sink, STELE_UNSUPPORTED,
                   "%s: tokenizer.ggml.pre '%.80s' is unknown; known: %s", b->source, name, known);
}

stele_status text_gguf_words(text_builder *b, const char *name) {
  const pre_type *pre;
  BASE_TRY(find_pre(b, name, &pre));
  if (pre->nfc) text_builder_normalizer(b, TEXT_NFC, NULL);
  for (size_t i = 0; i < 4 && pre->expressions[i]; i++)
    BASE_TRY(text_builder_split(b, pre->expressions[i], strlen(pre->expressions[i]), TEXT_ISOLATED,
                                false));
  b->byte_level = true;
  b->direct = pre->direct;
  b->bos = pre->bos;
  return STELE_OK;
}

/* Control and user-defined tokens are found in the text as such. */
static stele_status read_types(text_builder *b, const text_gguf_source *source) {
  for (uint32_t id = 0; source->token_types && id < source->token_count; id++) {
    int32_t type = source->token_types[id];
    if (type < TYPE_UNKNOWN || type > TYPE_USER) continue;
    size_t bytes;
    const char *text = text_builder_text(b, id, &bytes);
    BASE_TRY(text_builder_added(b, id, text, bytes, type == TYPE_USER ? 0 : TEXT_ADDED_SPECIAL));
  }
  return STELE_OK;
}

static stele_status read_edge(text_builder *b, const char *key, int32_t id, bool wanted,
                              base_buffer *ids) {
  if (!wanted || id == -1) return STELE_OK;
  if (id < 0 || (uint32_t)id >= b->vocab)
    return base_fail(b->sink, STELE_BAD_FORMAT, "%s: %s %d is not in the vocabulary of %u",
                     b->source, key, id, b->vocab);
  uint32_t value = (uint32_t)id;
  base_buffer_append(ids, &value, sizeof value);
  return STELE_OK;
}

static stele_status read_source(text_builder *b, const text_gguf_source *source) {
  char known[200];
  text_model_list(true, known, sizeof known);
  if (!source->model || !source->token_count)
    return base_fail(b->sink, STELE_BAD_FORMAT, "%s: '%s' is missing", b->source,
                     source->model ? "tokenizer.ggml.tokens" : "tokenizer.ggml.model");
  b->model = text_model_by_gguf(source->model);
  if (!b->model)
    return base_fail(b->sink, STELE_UNSUPPORTED,
                     "%s: tokenizer.ggml.model '%.80s' is not supported; known: %s", b->source,
                     source->model, known);
  BASE_TRY(b->model->from_gguf(b, source));
  BASE_TRY(read_types(b, source));
  bool bos = source->add_bos < 0 ? b->bos : source->add_bos > 0;
  BASE_TRY(read_edge(b, "tokenizer.ggml.bos_token_id", source->bos_id, bos, &b->prefix));
  return read_edge(b, "tokenizer.ggml.eos_token_id", source->eos_id, source->add_eos > 0,
                   &b->suffix);
}

stele_status text_blob_from_gguf(const text_gguf_source *source, stele_sink *sink,
                                 base_buffer *out_blob) {
  text_builder builder;
  text_builder_init(&builder, "GGUF", sink);
  stele_status status = read_source(&builder, source);
  if (status == STELE_OK) status = text_builder_finish(&builder, out_blob);
  text_builder_deinit(&builder);
  return status;
}
