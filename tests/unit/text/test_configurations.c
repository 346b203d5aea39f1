/* One small vocabulary under many pre-tokenizers, behaviours, normalizers, post-processors and
 * added tokens, against Hugging Face's library; and as GGUF, under the names of tokenizer.ggml.pre.
 *   test_configurations GOLDEN.json */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* After the three above. */
#include <cmocka.h>

#include "support.h"

static const char *golden_path;

static bool names_any(const json_t *merge, const json_t *dropped) {
  size_t i;
  json_t *token;
  json_array_foreach(dropped, i, token) {
    for (size_t side = 0; side < 2; side++)
      if (strcmp(json_string_value(json_array_get(merge, side)), json_string_value(token)) == 0)
        return true;
  }
  return false;
}

/* Merges without those of dropped tokens, in the older form where asked. */
static json_t *merges_of(const json_t *merges, const json_t *dropped, bool legacy) {
  json_t *out = json_array(), *merge;
  size_t i;
  json_array_foreach(merges, i, merge) {
    if (names_any(merge, dropped)) continue;
    json_array_append_new(
        out, legacy ? json_sprintf("%s %s", json_string_value(json_array_get(merge, 0)),
                                   json_string_value(json_array_get(merge, 1)))
                    : json_incref(merge));
  }
  return out;
}

/* The token keeps its id under a name that no text has. */
static void drop(json_t *vocab, const json_t *token) {
  const char *name = json_string_value(token);
  char other[64];
  snprintf(other, sizeof other, "\xE4\xB8\x80%s", name);
  json_object_set(vocab, other, json_object_get(vocab, name));
  json_object_del(vocab, name);
}

static char *configure(const json_t *base, const json_t *configuration) {
  json_t *root = json_deep_copy(base), *model = json_object_get(root, "model"), *token;
  const json_t *dropped = json_object_get(configuration, "dropped");
  size_t i;
  json_object_update(root, json_object_get(configuration, "parts"));
  json_object_update(model, json_object_get(configuration, "model"));
  json_array_foreach(dropped, i, token) drop(json_object_get(model, "vocab"), token);
  bool legacy = json_is_true(json_object_get(configuration, "legacy_merges"));
  json_object_set_new(model, "merges",
                      merges_of(json_object_get(model, "merges"), dropped, legacy));
  char *text = json_dumps(root, 0);
  json_decref(root);
  assert_non_null(text);
  return text;
}

static size_t run_cases(const text_tokenizer *tokenizer, const json_t *configuration) {
  size_t i, bad = 0;
  json_t *item;
  json_array_foreach(json_object_get(configuration, "cases"), i, item) {
    const json_t *text = json_array_get(item, 0);
    for (size_t special = 0; special < 2; special++)
      bad += !support_encodes(tokenizer, json_string_value(text), json_string_length(text),
                              special != 0, json_array_get(item, 1 + special));
    bad += !support_streams(tokenizer, json_array_get(item, 2), true);
  }
  json_array_foreach(json_object_get(configuration, "decoded"), i, item) {
    for (size_t skip = 0; skip < 2; skip++) {
      const json_t *text = json_array_get(item, 1 + skip);
      bad += !support_decodes(tokenizer, json_array_get(item, 0), skip != 0,
                              json_string_value(text), json_string_length(text));
    }
  }
  return bad;
}

/* What PCRE2 cannot say is refused, by name. */
static bool refused(const json_t *configuration) {
  const json_t *parts = json_object_get(
      json_object_get(json_object_get(configuration, "parts"), "pre_tokenizer"), "pretokenizers");
  const char *pattern = json_string_value(
      json_object_get(json_object_get(json_array_get(parts, 0), "pattern"), "Regex"));
  return pattern && (strstr(pattern, "&&") || strstr(pattern, "[^\\d\\W]"));
}

static void configurations(void **state) {
  (void)state;
  json_t *golden = support_read_json(golden_path), *item;
  const json_t *base = json_object_get(golden, "tokenizer");
  size_t i, refusals = 0;
  json_array_foreach(json_object_get(golden, "configurations"), i, item) {
    char *json = configure(base, item);
    if (refused(item)) {
      base_buffer blob = {0};
      stele_sink sink = {0};
      assert_int_equal(text_blob_from_json(json, strlen(json), NULL, 0, &sink, &blob),
                       STELE_UNSUPPORTED);
      assert_non_null(strstr(sink.text, "class"));
      refusals++;
    } else {
      support_tokenizer t = support_open(json, strlen(json));
      size_t bad = run_cases(t.tokenizer, item);
      if (bad) fail_msg("%zu cases of configuration %zu differ", bad, i);
      support_close(&t);
    }
    free(json);
  }
  assert_true(i > 20);
  assert_int_equal(refusals, json_object_get(golden, "pre_types") ? 2 : 0);
  json_decref(golden);
}

/* ---- tokenizer.ggml.pre ----------------------------------------------------------------- */

/* The vocabulary as GGUF metadata. */
typedef struct gguf_lists {
  const char *tokens[1024], *merges[1024];
  uint64_t token_bytes[1024], merge_bytes[1024];
} gguf_lists;

static support_tokenizer open_gguf(const json_t *base, const char *pre, gguf_lists *l) {
  const json_t *model = json_object_get(base, "model");
  json_t *legacy = merges_of(json_object_get(model, "merges"), NULL, true), *item;
  text_gguf_source source = {.model = "gpt2",
                             .pre = pre,
                             .tokens = l->tokens,
                             .token_bytes = l->token_bytes,
                             .merges = l->merges,
                             .merge_bytes = l->merge_bytes,
                             .bos_id = -1,
                             .eos_id = -1};
  const char *key;
  size_t i;
  json_object_foreach(json_object_get(model, "vocab"), key, item) {
    size_t id = (size_t)json_integer_value(item);
    assert_true(id < 1024);
    l->tokens[id] = key;
    l->token_bytes[id] = strlen(key);
    source.token_count++;
  }
  json_array_foreach(legacy, i, item) {
    assert_true(i < 1024);
    l->merges[i] = json_string_value(item);
    l->merge_bytes[i] = json_string_length(item);
  }
  source.merge_count = i;
  base_buffer blob = {0};
  stele_sink sink = {0};
  if (text_blob_from_gguf(&source, &sink, &blob) != STELE_OK) fail_msg("%s", sink.text);
  json_decref(legacy);
  return support_open_blob(blob);
}

static void pre_types(void **state) {
  (void)state;
  json_t *golden = support_read_json(golden_path), *pre, *item;
  gguf_lists *lists = calloc(1, sizeof *lists);
  size_t i, k;
  assert_non_null(lists);
  json_array_foreach(json_object_get(golden, "pre_types"), i, pre) {
    const char *name = json_string_value(json_object_get(pre, "name"));
    support_tokenizer t = open_gguf(json_object_get(golden, "tokenizer"), name, lists);
    size_t bad = 0;
    json_array_foreach(json_object_get(pre, "cases"), k, item) {
      const json_t *text = json_array_get(item, 0);
      bad += !support_encodes(t.tokenizer, json_string_value(text), json_string_length(text), true,
                              json_array_get(item, 1));
    }
    if (bad) fail_msg("%zu texts differ under '%s'", bad, name);
    support_close(&t);
  }
  assert_true(i > 10 || !json_object_get(golden, "pre_types"));
  free(lists);
  json_decref(golden);
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  golden_path = arguments[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(configurations), cmocka_unit_test(pre_types)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
