/* tokenizer.json of Hugging Face's tokenizers, as far as BPE models use it: normalizer,
 * pre_tokenizer, model, post_processor, decoder, added_tokens. What each part means is taken from
 * the sources of tokenizers 0.23; a part that would change the ids and isn't known is an error
 * that names it. tokenizer_config.json adds the tokens that only it lists. */
#include <jansson.h>
#include <stdio.h>

#include "text/builder.h"
#include "text/model.h"
#include "text/pattern.h"
#include "text/utf8.h"

#define MAX_NESTING 8

static stele_status unsupported(const text_builder *b, const char *part, const char *found,
                                const char *known) {
  return base_fail(b->sink, STELE_UNSUPPORTED, "%s: %s '%.80s' is not supported; %s are", b->source,
                   part, found, known);
}

static stele_status malformed(const text_builder *b, const char *part, const char *expected) {
  return base_fail(b->sink, STELE_BAD_FORMAT, "%s: '%s' is not %s", b->source, part, expected);
}

/* The "type" of a part; "" where there is none. */
static const char *type_of(const json_t *part) {
  const char *type = json_string_value(json_object_get(part, "type"));
  return type ? type : "";
}

static bool flag(const json_t *part, const char *name, bool otherwise) {
  const json_t *value = json_object_get(part, name);
  return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

/* Calls read for each part of a Sequence, or for the part itself. */
typedef stele_status (*part_reader)(text_builder *b, const json_t *part, bool last);
static stele_status each_part(text_builder *b, const json_t *part, const char *members,
                              part_reader read, bool last, int depth) {
  if (!part || json_is_null(part)) return STELE_OK;
  if (!json_is_object(part)) return malformed(b, members, "built of objects");
  if (strcmp(type_of(part), "Sequence") != 0) return read(b, part, last);
  const json_t *list = json_object_get(part, members);
  if (!json_is_array(list)) return malformed(b, members, "an array");
  if (depth == MAX_NESTING)
    return base_fail(b->sink, STELE_UNSUPPORTED, "%s: '%s' nest deeper than %d", b->source, members,
                     MAX_NESTING);
  for (size_t i = 0; i < json_array_size(list); i++)
    BASE_TRY(each_part(b, json_array_get(list, i), members, read,
                       last && i + 1 == json_array_size(list), depth + 1));
  return STELE_OK;
}

/* ---- normalizer ------------------------------------------------------------------------- */

/* A text that replaces or is replaced; there, and short. */
static stele_status short_text(text_builder *b, const char *part, const json_t *text,
                               const uint8_t **out_text, size_t *out_bytes) {
  size_t bytes = json_string_length(text);
  if (!json_is_string(text)) return malformed(b, part, "a string");
  if (bytes > TEXT_MAX_REPLACED)
    return base_fail(b->sink, STELE_UNSUPPORTED, "%s: '%s' is %zu bytes long, at most %u work",
                     b->source, part, bytes, TEXT_MAX_REPLACED);
  *out_text = (const uint8_t *)json_string_value(text);
  *out_bytes = bytes;
  return STELE_OK;
}

/* Replace, of a normalizer or a decoder. */
static stele_status read_replace(text_builder *b, const json_t *part, text_replacement *out) {
  const json_t *pattern = json_object_get(json_object_get(part, "pattern"), "String");
  if (!json_string_length(pattern))
    return base_fail(b->sink, STELE_UNSUPPORTED,
                     "%s: the pattern of a Replace is not a 'String' with something in it",
                     b->source);
  BASE_TRY(short_text(b, "pattern", pattern, &out->pattern, &out->length));
  return short_text(b, "content", json_object_get(part, "content"), &out->content,
                    &out->content_length);
}

static stele_status read_normalizer(text_builder *b, const json_t *part, bool last) {
  static const char *const names[] = {"NFC", "NFD", "NFKC", "NFKD"}; /* as enum text_normalizer */
  (void)last;
  for (unsigned i = 0; i < 4; i++) {
    if (strcmp(type_of(part), names[i]) != 0) continue;
    text_builder_normalizer(b, (text_normalizer)(TEXT_NFC + i), NULL);
    return STELE_OK;
  }
  text_replacement texts = {.pattern = (const uint8_t *)""};
  bool prepend = strcmp(type_of(part), "Prepend") == 0;
  if (prepend)
    BASE_TRY(short_text(b, "prepend", json_object_get(part, "prepend"), &texts.content,
                        &texts.content_length));
  else if (strcmp(type_of(part), "Replace") == 0)
    BASE_TRY(read_replace(b, part, &texts));
  else
    return unsupported(b, "normalizer", type_of(part),
                       "NFC, NFD, NFKC, NFKD, Prepend, Replace and Sequence");
  text_builder_normalizer(b, prepend ? TEXT_PREPEND : TEXT_REPLACE, &texts);
  return STELE_OK;
}

/* ---- pre_tokenizer ---------------------------------------------------------------------- */

/* Cuts at the texts; `text` is taken as it stands. */
static stele_status split_at_text(text_builder *b, const json_t *text, uint32_t behavior,
                                  bool invert) {
  base_buffer quoted = {0};
  text_pattern_quote(json_string_value(text), json_string_length(text), &quoted);
  stele_status status =
      quoted.failed ? base_fail(b->sink, STELE_OUT_OF_MEMORY, "no memory for an expression")
                    : text_builder_split(b, (char *)quoted.data, quoted.size, behavior, invert);
  base_buffer_deinit(&quoted);
  return status;
}

static stele_status read_split(text_builder *b, const json_t *part) {
  static const char *const behaviors[] = {"Removed", "Isolated", "MergedWithPrevious",
                                          "MergedWithNext", "Contiguous"}; /* as text_behavior */
  const json_t *pattern = json_object_get(part, "pattern");
  const json_t *regex = json_object_get(pattern, "Regex"),
               *text = json_object_get(pattern, "String");
  const char *behavior = json_string_value(json_object_get(part, "behavior"));
  uint32_t number = 0;
  while (number < 5 && (!behavior || strcmp(behavior, behaviors[number]) != 0)) number++;
  if (number == 5)
    return unsupported(b, "behavior of Split", behavior ? behavior : "",
                       "Removed, Isolated, MergedWithPrevious, MergedWithNext and Contiguous");
  if (!json_is_string(regex) && !json_is_string(text))
    return malformed(b, "pattern", "a 'Regex' or a 'String'");
  bool invert = flag(part, "invert", false);
  if (regex)
    return text_builder_split(b, json_string_value(regex), json_string_length(regex), number,
                              invert);
  return split_at_text(b, text, number, invert);
}

/* Metaspace; before it had a scheme it had add_prefix_space. */
static stele_status read_metaspace(text_builder *b, const json_t *part) {
  static const char *const schemes[] = {"never", "always", "first"}; /* as enum text_prepend */
  const json_t *replacement = json_object_get(part, "replacement");
  const char *scheme = json_string_value(json_object_get(part, "prepend_scheme"));
  if (!scheme) scheme = flag(part, "add_prefix_space", true) ? "always" : "never";
  uint32_t number = 0;
  while (number < 3 && strcmp(scheme, schemes[number]) != 0) number++;
  if (number == 3)
    return unsupported(b, "prepend_scheme of Metaspace", scheme, "never, always and first");
  size_t bytes = json_string_length(replacement);
  int32_t code;
  bool cut;
  if (!bytes ||
      text_utf8_scan((const uint8_t *)json_string_value(replacement), bytes, &code, &cut) != bytes)
    return malformed(b, "replacement", "one character");
  text_builder_metaspace(b, json_string_value(replacement), bytes, number);
  if (!flag(part, "split", true)) return STELE_OK;
  return split_at_text(b, replacement, TEXT_MERGED_WITH_NEXT, false);
}

static stele_status read_pre_tokenizer(text_builder *b, const json_t *part, bool last) {
  const char *type = type_of(part);
  if (strcmp(type, "Split") == 0) return read_split(b, part);
  if (strcmp(type, "Metaspace") == 0) return read_metaspace(b, part);
  if (strcmp(type, "Digits") == 0)
    return text_builder_split(
        b, "\\p{N}", 5, flag(part, "individual_digits", false) ? TEXT_ISOLATED : TEXT_CONTIGUOUS,
        false);
  if (strcmp(type, "ByteLevel") != 0)
    return unsupported(b, "pre_tokenizer", type,
                       "ByteLevel, Digits, Metaspace, Split and Sequence");
  /* What follows it would see the byte-level alphabet instead of the text. */
  if (!last)
    return base_fail(b->sink, STELE_UNSUPPORTED,
                     "%s: pre_tokenizer 'ByteLevel' must be the last one", b->source);
  b->byte_level = true;
  if (flag(part, "add_prefix_space", true)) text_builder_prefix_space(b);
  if (!flag(part, "use_regex", true)) return STELE_OK;
  return text_builder_split(b, text_gpt2_pattern, strlen(text_gpt2_pattern), TEXT_ISOLATED, false);
}

/* ---- post_processor --------------------------------------------------------------------- */

static stele_status add_id(text_builder *b, base_buffer *ids, const json_t *id) {
  json_int_t number = json_is_integer(id) ? json_integer_value(id) : -1;
  if (number < 0 || number >= (json_int_t)b->vocab)
    return base_fail(b->sink, STELE_BAD_FORMAT,
                     "%s: the post_processor's id %lld is not in the vocabulary of %u", b->source,
                     (long long)number, b->vocab);
  uint32_t value = (uint32_t)number;
  base_buffer_append(ids, &value, sizeof value);
  return STELE_OK;
}

/* Ids in front of what earlier processors put there. */
static void put_in_front(base_buffer *all, const base_buffer *ids) {
  base_buffer joined = {0};
  base_buffer_append(&joined, ids->data, ids->size);
  base_buffer_append(&joined, all->data, all->size);
  joined.failed |= all->failed || ids->failed;
  base_buffer_deinit(all);
  *all = joined;
}

static stele_status read_template(text_builder *b, const json_t *part, base_buffer *front) {
  const json_t *single = json_object_get(part, "single");
  const json_t *specials = json_object_get(part, "special_tokens");
  if (!json_is_array(single)) return malformed(b, "single", "an array");
  bool seen = false;
  for (size_t i = 0; i < json_array_size(single); i++) {
    const json_t *piece = json_array_get(single, i);
    const json_t *special = json_object_get(piece, "SpecialToken");
    if (json_object_get(piece, "Sequence")) {
      if (seen) return malformed(b, "single", "a template with one sequence");
      seen = true;
      continue;
    }
    const char *name = json_string_value(json_object_get(special, "id"));
    const json_t *ids = json_object_get(json_object_get(specials, name ? name : ""), "ids");
    if (!json_is_array(ids)) return malformed(b, "single", "made of known special tokens");
    for (size_t k = 0; k < json_array_size(ids); k++)
      BASE_TRY(add_id(b, seen ? &b->suffix : front, json_array_get(ids, k)));
  }
  return seen ? STELE_OK : malformed(b, "single", "a template with a sequence");
}

/* ["<s>", 0] of the older processors. */
static stele_status read_pair(text_builder *b, const json_t *part, const char *name,
                              base_buffer *ids) {
  const json_t *pair = json_object_get(part, name);
  if (json_array_size(pair) != 2) return malformed(b, name, "a token and its id");
  return add_id(b, ids, json_array_get(pair, 1));
}

static stele_status read_post_processor(text_builder *b, const json_t *part, bool last) {
  const char *type = type_of(part);
  (void)last;
  if (strcmp(type, "ByteLevel") == 0) return STELE_OK; /* concerns offsets only */
  base_buffer front = {0};
  stele_status status;
  if (strcmp(type, "TemplateProcessing") == 0) {
    status = read_template(b, part, &front);
  } else if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0) {
    status = read_pair(b, part, "cls", &front);
    if (status == STELE_OK) status = read_pair(b, part, "sep", &b->suffix);
  } else {
    return unsupported(b, "post_processor", type,
                       "BertProcessing, ByteLevel, RobertaProcessing, Sequence and "
                       "TemplateProcessing");
  }
  if (status == STELE_OK) put_in_front(&b->prefix, &front);
  base_buffer_deinit(&front);
  return status;
}

/* ---- decoder ---------------------------------------------------------------------------- */

/* Strip: so many of a character off both ends of the fused text. */
static stele_status read_strip(text_builder *b, const json_t *part) {
  const json_t *content = json_object_get(part, "content"), *start = json_object_get(part, "start");
  size_t bytes = json_string_length(content);
  int32_t code;
  bool cut;
  if (!bytes ||
      text_utf8_scan((const uint8_t *)json_string_value(content), bytes, &code, &cut) != bytes)
    return malformed(b, "content", "one character");
  json_int_t count = json_integer_value(start);
  if (!json_is_integer(start) || count < 0 || count > UINT16_MAX)
    return malformed(b, "start", "a number of characters");
  if (json_integer_value(json_object_get(part, "stop")) != 0)
    return base_fail(b->sink, STELE_UNSUPPORTED,
                     "%s: decoder 'Strip' with a 'stop' above 0 is not supported", b->source);
  b->strip = (uint32_t)code;
  b->strip_count = (uint32_t)count;
  return STELE_OK;
}

/* Decoders of character models, in the order in which their work does not depend on the tokens
 * beside them: Replace, ByteFallback, Fuse, Strip. */
static stele_status read_text_decoder(text_builder *b, const json_t *part) {
  const char *type = type_of(part);
  text_replacement replacement;
  bool open = !b->decode_bytes && !b->fused;
  if (strcmp(type, "Replace") == 0 && open) {
    BASE_TRY(read_replace(b, part, &replacement));
    base_buffer_append(&b->replacements, &replacement, sizeof replacement);
  } else if (strcmp(type, "ByteFallback") == 0 && open) {
    b->decode_bytes = true;
  } else if (strcmp(type, "Fuse") == 0) {
    b->fused = true;
  } else if (strcmp(type, "Strip") == 0 && b->fused && !b->strip_count) {
    return read_strip(b, part);
  } else {
    return unsupported(b, "decoder", type, "Replace, ByteFallback, Fuse and Strip, in this order,");
  }
  return STELE_OK;
}

static stele_status read_decoder(text_builder *b, const json_t *part, bool last) {
  (void)last;
  if (!b->byte_level) return read_text_decoder(b, part);
  if (strcmp(type_of(part), "ByteLevel") == 0) return STELE_OK;
  return unsupported(b, "decoder", type_of(part), "ByteLevel and Sequence");
}

/* ---- tokens ----------------------------------------------------------------------------- */

static uint32_t added_flags(const json_t *token) {
  bool special = flag(token, "special", false);
  uint32_t flags = special ? TEXT_ADDED_SPECIAL : 0;
  if (flag(token, "single_word", false)) flags |= TEXT_ADDED_SINGLE_WORD;
  if (flag(token, "lstrip", false)) flags |= TEXT_ADDED_LSTRIP;
  if (flag(token, "rstrip", false)) flags |= TEXT_ADDED_RSTRIP;
  if (flag(token, "normalized", !special)) flags |= TEXT_ADDED_NORMALIZED;
  return flags;
}

static stele_status read_added(text_builder *b, const json_t *list) {
  if (!list || json_is_null(list)) return STELE_OK;
  if (!json_is_array(list)) return malformed(b, "added_tokens", "an array");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *token = json_array_get(list, i);
    const json_t *content = json_object_get(token, "content"), *id = json_object_get(token, "id");
    if (!json_is_string(content) || !json_is_integer(id))
      return malformed(b, "added_tokens", "a list of objects with 'id' and 'content'");
    json_int_t number = json_integer_value(id);
    if (number < 0 || number >= TEXT_MAX_VOCAB)
      return base_fail(b->sink, STELE_BAD_FORMAT,
                       "%s: added token '%.80s' has the id %lld; ids from 0 to %u are possible",
                       b->source, json_string_value(content), (long long)number,
                       TEXT_MAX_VOCAB - 1);
    BASE_TRY(text_builder_added(b, (uint32_t)number, json_string_value(content),
                                json_string_length(content), added_flags(token)));
  }
  return STELE_OK;
}

/* Tokens that only tokenizer_config.json lists ("added_tokens_decoder": id to token). Where both
 * files name a token, tokenizer.json decides. */
static stele_status read_config(text_builder *b, const json_t *config) {
  const json_t *list = json_object_get(config, "added_tokens_decoder");
  const char *key;
  json_t *token;
  json_object_foreach((json_t *)(uintptr_t)list, key, token) {
    const json_t *content = json_object_get(token, "content");
    const char *text = json_string_value(content);
    size_t bytes = json_string_length(content);
    unsigned id;
    char rest;
    if (!text || sscanf(key, "%7u%c", &id, &rest) != 1)
      return malformed(b, "added_tokens_decoder", "an object of tokens by id");
    if (text_builder_find(b, text, bytes) >= 0) continue;
    BASE_TRY(text_builder_added(b, id, text, bytes, added_flags(token)));
  }
  return STELE_OK;
}

/* ---- the file --------------------------------------------------------------------------- */

static stele_status read_model(text_builder *b, const json_t *root) {
  const json_t *model = json_object_get(root, "model");
  if (!json_is_object(model)) return malformed(b, "model", "there, as an object");
  const char *type = type_of(model);
  if (!*type && json_object_get(model, "merges")) type = "BPE"; /* files before 2020 */
  b->model = text_model_by_type(type, b->byte_level);
  if (b->model) return b->model->from_json(b, model);
  char known[200];
  text_model_list(false, known, sizeof known);
  return base_fail(b->sink, STELE_UNSUPPORTED, "%s: model '%.80s' is not supported; known: %s",
                   b->source, type, known);
}

static stele_status read_root(text_builder *b, const json_t *root, const json_t *config) {
  if (!json_is_object(root)) return malformed(b, "(whole file)", "an object");
  /* In the order in which a text meets them, but for the model, whose ids the others name: an
   * unknown normalizer or pre_tokenizer says more of a foreign file than its model does. */
  BASE_TRY(
      each_part(b, json_object_get(root, "normalizer"), "normalizers", read_normalizer, true, 0));
  BASE_TRY(each_part(b, json_object_get(root, "pre_tokenizer"), "pretokenizers", read_pre_tokenizer,
                     true, 0));
  BASE_TRY(read_model(b, root));
  BASE_TRY(read_added(b, json_object_get(root, "added_tokens")));
  BASE_TRY(read_config(b, config));
  if (!json_is_object(json_object_get(root, "decoder")))
    return malformed(b, "decoder", "there, as an object");
  BASE_TRY(each_part(b, json_object_get(root, "decoder"), "decoders", read_decoder, true, 0));
  return each_part(b, json_object_get(root, "post_processor"), "processors", read_post_processor,
                   true, 0);
}

static stele_status parse(const char *text, size_t bytes, const char *file, size_t flags,
                          stele_sink *sink, json_t **out_root) {
  json_error_t error;
  *out_root = json_loadb(text, bytes, flags | JSON_ALLOW_NUL, &error);
  if (*out_root) return STELE_OK;
  return base_fail(sink, STELE_BAD_FORMAT, "%s: line %d, column %d: %s", file, error.line,
                   error.column, error.text);
}

stele_status text_blob_from_json(const char *json, size_t bytes, const char *config,
                                 size_t config_bytes, stele_sink *sink, base_buffer *out_blob) {
  json_t *root = NULL, *extra = NULL;
  text_builder builder;
  text_builder_init(&builder, "tokenizer.json", sink);
  stele_status status = parse(json, bytes, "tokenizer.json", JSON_REJECT_DUPLICATES, sink, &root);
  if (status == STELE_OK && config)
    status = parse(config, config_bytes, "tokenizer_config.json", 0, sink, &extra);
  if (status == STELE_OK) status = read_root(&builder, root, extra);
  if (status == STELE_OK) status = text_builder_finish(&builder, out_blob);
  text_builder_deinit(&builder);
  json_decref(extra);
  json_decref(root);
  return status;
}
