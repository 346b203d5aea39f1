/* Real tokenizers against the ids of Hugging Face's library, from tokenizer.json and from the same
 * tokenizer as GGUF would tell it.
 *   test_goldens TOKENIZER.json GOLDEN.json PRE
 * PRE: tokenizer.ggml.pre of the family, or - where tokenizer.ggml.model is "llama". */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* After the three above. */
#include <cmocka.h>

#include "support.h"

typedef struct setting {
  const char *tokenizer_path, *golden_path, *pre;
  json_t *source, *golden;
  support_tokenizer json, gguf;
  int32_t unknown;
} setting;
static setting s;

/* ---- the tokenizer as GGUF metadata ----------------------------------------------------- */

typedef struct gguf_arrays {
  const char **tokens, **merges;
  uint64_t *token_bytes, *merge_bytes;
  int32_t *types;
  float *scores;
  base_arena arena;
} gguf_arrays;

static bool scored(void) { return strcmp(s.pre, "-") == 0; }

static void fill_tokens(gguf_arrays *a) {
  const char *key;
  json_t *id, *token;
  size_t i;
  json_object_foreach(json_object_get(json_object_get(s.source, "model"), "vocab"), key, id) {
    a->tokens[json_integer_value(id)] = key;
    a->token_bytes[json_integer_value(id)] = strlen(key);
    a->types[json_integer_value(id)] = scored() && strncmp(key, "<0x", 3) == 0 ? 6 : 1;
  }
  json_array_foreach(json_object_get(s.source, "added_tokens"), i, token) {
    json_int_t at = json_integer_value(json_object_get(token, "id"));
    a->tokens[at] = json_string_value(json_object_get(token, "content"));
    a->token_bytes[at] = strlen(a->tokens[at]);
    a->types[at] = json_is_true(json_object_get(token, "special")) ? 3 : 4;
  }
}

static void fill_merges(gguf_arrays *a, const json_t *merges) {
  size_t i;
  json_t *merge;
  json_array_foreach(merges, i, merge) {
    a->merges[i] =
        base_arena_format(&a->arena, "%s %s", json_string_value(json_array_get(merge, 0)),
                          json_string_value(json_array_get(merge, 1)));
    assert_non_null(a->merges[i]);
    a->merge_bytes[i] = strlen(a->merges[i]);
  }
}

static int64_t characters(const json_t *text) {
  int64_t count = 0;
  for (const char *c = json_string_value(text); *c; c++) count += ((uint8_t)*c & 0xC0) != 0x80;
  return count;
}

/* Scores that rank merges as tokenizer.json does: merges of one score stand in falling order of
 * their left and right lengths, then in rising order of the id they make. */
static void fill_scores(gguf_arrays *a, const json_t *vocab, const json_t *merges) {
  size_t i;
  json_t *merge;
  int64_t before[3] = {INT64_MAX, 0, 0};
  float score = 0;
  json_array_foreach(merges, i, merge) {
    const char *line = json_string_value(merge), *space = line ? strchr(line, ' ') : NULL;
    json_t *left =
        space ? json_stringn(line, (size_t)(space - line)) : json_incref(json_array_get(merge, 0));
    json_t *right = space ? json_string(space + 1) : json_incref(json_array_get(merge, 1));
    json_t *both = json_sprintf("%s%s", json_string_value(left), json_string_value(right));
    int64_t id = json_integer_value(json_object_get(vocab, json_string_value(both)));
    int64_t key[3] = {characters(left), characters(right), -id};
    int difference = 0;
    while (difference < 2 && key[difference] == before[difference]) difference++;
    if (key[difference] > before[difference]) score--;
    a->scores[id] = score;
    memcpy(before, key, sizeof key);
    json_decref(left);
    json_decref(right);
    json_decref(both);
  }
}

/* As files have user-defined tokens: spaces for U+2581, and a score that says nothing. */
static void respell_user_defined(gguf_arrays *a, size_t count) {
  for (size_t id = 0; id < count; id++) {
    if (a->types[id] != 4) continue;
    char *text = base_arena_format(&a->arena, "%s", a->tokens[id]), *out = text;
    for (const char *in = text; *in; out++) {
      bool space = strncmp(in, "\xE2\x96\x81", 3) == 0;
      *out = space ? ' ' : *in;
      in += space ? 3 : 1;
    }
    *out = 0;
    a->tokens[id] = text;
    a->token_bytes[id] = (uint64_t)(out - text);
    a->scores[id] = -1000;
  }
}

/* The first id that goes in front of a text. */
static int32_t first_special(void) {
  const json_t *e = json_array_get(json_object_get(s.golden, "encodings"), 0);
  const json_t *id = json_array_get(json_object_get(e, "special_prefix"), 0);
  return id ? (int32_t)json_integer_value(id) : -1;
}

static int32_t unknown_token(void) {
  const json_t *model = json_object_get(s.source, "model");
  const char *name = json_string_value(json_object_get(model, "unk_token"));
  const json_t *id = name ? json_object_get(json_object_get(model, "vocab"), name) : NULL;
  return id ? (int32_t)json_integer_value(id) : -1;
}

static bool prepends(void) {
  char *text = json_dumps(json_object_get(s.source, "normalizer"), JSON_ENCODE_ANY);
  bool found = text && strstr(text, "Prepend");
  free(text);
  return found;
}

static support_tokenizer open_as_gguf(void) {
  json_t *model = json_object_get(s.source, "model"), *merges = json_object_get(model, "merges");
  json_t *vocab = json_object_get(model, "vocab");
  size_t count = json_object_size(vocab);
  size_t merge_count = json_array_size(merges);
  size_t i;
  json_t *token;
  json_array_foreach(json_object_get(s.source, "added_tokens"), i, token) count =
      base_max(count, (size_t)json_integer_value(json_object_get(token, "id")) + 1);
  gguf_arrays a = {.tokens = calloc(count, sizeof *a.tokens),
                   .merges = calloc(merge_count, sizeof *a.merges),
                   .token_bytes = calloc(count, sizeof *a.token_bytes),
                   .merge_bytes = calloc(merge_count, sizeof *a.merge_bytes),
                   .types = calloc(count, sizeof *a.types),
                   .scores = calloc(count, sizeof *a.scores)};
  assert_true(a.tokens && a.merges && a.token_bytes && a.merge_bytes && a.types && a.scores);
  fill_tokens(&a);
  if (scored()) {
    fill_scores(&a, vocab, merges);
    respell_user_defined(&a, count);
  } else {
    fill_merges(&a, merges);
  }
  /* Whether a beginning of sequence is added follows from `pre` or the model. */
  text_gguf_source source = {.model = scored() ? "llama" : "gpt2",
                             .pre = scored() ? "default" : s.pre,
                             .token_count = (uint32_t)count,
                             .tokens = a.tokens,
                             .token_bytes = a.token_bytes,
                             .token_types = a.types,
                             .scores = scored() ? a.scores : NULL,
                             .merge_count = scored() ? 0 : merge_count,
                             .merges = a.merges,
                             .merge_bytes = a.merge_bytes,
                             .bos_id = first_special(),
                             .eos_id = -1,
                             .unknown_id = unknown_token(),
                             .add_space_prefix = prepends() ? -1 : 0,
                             .add_bos = -1,
                             .add_eos = -1};
  base_buffer blob = {0};
  stele_sink sink = {0};
  if (text_blob_from_gguf(&source, &sink, &blob) != STELE_OK) fail_msg("%s", sink.text);
  free(a.tokens);
  free(a.merges);
  free(a.token_bytes);
  free(a.merge_bytes);
  free(a.types);
  free(a.scores);
  base_arena_deinit(&a.arena);
  return support_open_blob(blob);
}

static int open_all(void **state) {
  (void)state;
  base_map file;
  assert_int_equal(base_map_open(NULL, s.tokenizer_path, &file), STELE_OK);
  s.json = support_open((const char *)file.data, file.size);
  base_map_close(&file);
  s.source = support_read_json(s.tokenizer_path);
  s.golden = support_read_json(s.golden_path);
  s.gguf = open_as_gguf();
  return 0;
}

static int close_all(void **state) {
  (void)state;
  support_close(&s.json);
  support_close(&s.gguf);
  json_decref(s.source);
  json_decref(s.golden);
  return 0;
}

/* ---- cases ------------------------------------------------------------------------------ */

static bool encoding(const text_tokenizer *tokenizer, const json_t *e) {
  const json_t *text = json_object_get(e, "text"), *ids = json_object_get(e, "ids");
  const char *string = json_string_value(text);
  size_t bytes = json_string_length(text);
  json_t *special = json_copy(json_object_get(e, "special_prefix"));
  json_array_extend(special, (json_t *)(uintptr_t)ids);
  const json_t *given = json_object_get(e, "ids_with_special");
  bool good =
      support_encodes(tokenizer, string, bytes, false, ids) &&
      support_encodes(tokenizer, string, bytes, true, json_is_array(given) ? given : special);
  json_decref(special);
  const char *keys[] = {"decoded", "decoded_skip_special"};
  for (int skip = 0; skip < 2; skip++) {
    const json_t *other = json_object_get(e, keys[skip]);
    if (!json_is_string(other)) other = text;
    good &=
        support_decodes(tokenizer, ids, skip, json_string_value(other), json_string_length(other));
    good &= support_streams(tokenizer, ids, skip);
  }
  return good;
}

static void encodings(const text_tokenizer *tokenizer) {
  size_t i, bad = 0;
  json_t *e;
  json_array_foreach(json_object_get(s.golden, "encodings"), i, e) bad += !encoding(tokenizer, e);
  assert_true(i > 100);
  const char *lists[] = {"mixed", "chat"};
  for (int k = 0; k < 2; k++) {
    json_array_foreach(json_object_get(s.golden, lists[k]), i, e) {
      const json_t *text = json_array_get(e, 0);
      bad += !support_encodes(tokenizer, json_string_value(text), json_string_length(text), false,
                              json_array_get(e, 1));
    }
    assert_true(i > 10);
  }
  assert_int_equal(bad, 0);
}

static void json_encodings(void **state) {
  (void)state;
  encodings(s.json.tokenizer);
}

static void gguf_encodings(void **state) {
  (void)state;
  encodings(s.gguf.tokenizer);
}

static void streaming(void **state) {
  (void)state;
  size_t i, bad = 0;
  json_t *e;
  json_array_foreach(json_object_get(s.golden, "streaming"), i, e) {
    const json_t *text = json_object_get(e, "text"), *ids = json_object_get(e, "ids");
    bad += !support_decodes(s.json.tokenizer, ids, false, json_string_value(text),
                            json_string_length(text));
    bad += !support_streams(s.json.tokenizer, ids, false);
  }
  assert_true(i > 50);
  assert_int_equal(bad, 0);
}

/* Text comes no later than from the library's DecodeStream, which holds back a whole token while
 * its last character is open. */
static void no_later_than_the_library(void **state) {
  (void)state;
  size_t i, k;
  json_t *e, *piece;
  json_array_foreach(json_object_get(s.golden, "streaming"), i, e) {
    int32_t *ids;
    size_t ours = 0, theirs = 0;
    support_ids(json_object_get(e, "ids"), &ids);
    text_stream *stream;
    assert_int_equal(text_stream_create(s.json.tokenizer, false, NULL, &stream), STELE_OK);
    json_array_foreach(json_object_get(e, "decode_stream"), k, piece) {
      const char *text;
      size_t bytes;
      assert_int_equal(text_stream_put(stream, ids[k], &text, &bytes), STELE_OK);
      ours += bytes;
      theirs += json_string_length(piece);
      assert_true(ours >= theirs);
    }
    text_stream_destroy(stream);
    free(ids);
  }
}

/* Pieces of byte tokens, without U+FFFD, are those of DecodeStream, which never gives one. */
static void byte_tokens(void **state) {
  (void)state;
  size_t i, k;
  json_t *e, *piece;
  json_array_foreach(json_object_get(s.golden, "byte_tokens"), i, e) {
    const json_t *text = json_object_get(e, "text");
    assert_true(support_decodes(s.json.tokenizer, json_object_get(e, "ids"), false,
                                json_string_value(text), json_string_length(text)));
    int32_t *ids;
    support_ids(json_object_get(e, "ids"), &ids);
    text_stream *stream;
    assert_int_equal(text_stream_create(s.json.tokenizer, false, NULL, &stream), STELE_OK);
    json_array_foreach(json_object_get(e, "decode_stream"), k, piece) {
      const char *out;
      size_t bytes;
      assert_int_equal(text_stream_put(stream, ids[k], &out, &bytes), STELE_OK);
      while (bytes >= 3 && memcmp(out, "\xEF\xBF\xBD", 3) == 0) {
        out += 3;
        bytes -= 3;
      }
      assert_string_equal(out, json_string_value(piece));
    }
    text_stream_destroy(stream);
    free(ids);
  }
  assert_true(i > 5 || !scored());
}

static void vocabulary(void **state) {
  (void)state;
  assert_int_equal(text_tokenizer_vocab(s.json.tokenizer), text_tokenizer_vocab(s.gguf.tokenizer));
}

int main(int count, char **arguments) {
  if (count != 4) return 2;
  s = (setting){.tokenizer_path = arguments[1], .golden_path = arguments[2], .pre = arguments[3]};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(json_encodings), cmocka_unit_test(gguf_encodings),
      cmocka_unit_test(streaming),      cmocka_unit_test(no_later_than_the_library),
      cmocka_unit_test(byte_tokens),    cmocka_unit_test(vocabulary)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
