/* What is wrong with a tokenizer is said, and nothing breaks: faulty tokenizer.json and GGUF
 * metadata, damaged blobs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* After the five above. */
#include <cmocka.h>

#include "support.h"

/* ---- tokenizer.json --------------------------------------------------------------------- */

static const char good[] =
    "{\"added_tokens\":[{\"id\":4,\"content\":\"<s>\",\"special\":true}],"
    "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
    "\"post_processor\":{\"type\":\"ByteLevel\"},\"decoder\":{\"type\":\"ByteLevel\"},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"c\":3},"
    "\"merges\":[\"a b\"]}}";

/* A file with one text replaced; NULL: it isn't there. */
static char *with(const char *file, const char *old, const char *new) {
  const char *at = strstr(file, old);
  if (!at) return NULL;
  char *out = malloc(strlen(file) + strlen(new) + 1);
  if (out) sprintf(out, "%.*s%s%s", (int)(at - file), file, new, at + strlen(old));
  return out;
}

typedef struct fault {
  const char *old, *new;
  stele_status status;
  const char *message; /* a part of it */
} fault;

static const fault json_faults[] = {
    {"}}", "}", STELE_BAD_FORMAT, "tokenizer.json: line 1"},
    {"\"model\"", "\"modle\"", STELE_BAD_FORMAT, "'model' is not there"},
    {"\"BPE\"", "\"WordPiece\"", STELE_UNSUPPORTED, "model 'WordPiece'"},
    {"\"BPE\"", "\"Unigram\"", STELE_UNSUPPORTED, "known: 'BPE'"},
    {"\"a b\"", "\"a d\"", STELE_BAD_FORMAT, "merge 0 names 'd'"},
    {"\"a b\"", "\"b a\"", STELE_BAD_FORMAT, "merge 0 names 'ba'"},
    {"\"a b\"", "\"ab\"", STELE_BAD_FORMAT, "merge 0 is 'ab'"},
    {"\"a b\"", "[\"a\"]", STELE_BAD_FORMAT, "merge 0 is neither"},
    {"[\"a b\"]", "7", STELE_BAD_FORMAT, "'model.merges' is not an array"},
    {"{\"a\":0,\"b\":1,\"ab\":2,\"c\":3}", "[]", STELE_BAD_FORMAT, "'model.vocab'"},
    {"\"c\":3", "\"c\":2", STELE_BAD_FORMAT, "'ab' and 'c' have the same id 2"},
    {"\"c\":3", "\"a\":3", STELE_BAD_FORMAT, "duplicate"},
    {"\"c\":3", "\"c\":-1", STELE_BAD_FORMAT, "token 'c'"},
    {"\"c\":3", "\"c\":4194304", STELE_BAD_FORMAT, "token 'c'"},
    {"\"c\":3", "\"c\":9223372036854775807", STELE_BAD_FORMAT, "token 'c'"},
    {"\"c\":3", "\"c\":\"3\"", STELE_BAD_FORMAT, "token 'c'"},
    {"\"id\":4", "\"id\":3", STELE_BAD_FORMAT, "'<s>' has the id 3, which is that of 'c'"},
    {"\"id\":4,\"content\":\"<s>\"", "\"id\":4,\"content\":\"a\"", STELE_BAD_FORMAT,
     "'a' has the id 4, but the id 0"},
    {"\"id\":4", "\"id\":99999999999", STELE_BAD_FORMAT, "id 99999999999"},
    {"\"id\":4", "\"id\":null", STELE_BAD_FORMAT, "'added_tokens'"},
    {"\"normalizer\":null", "\"normalizer\":{\"type\":\"Lowercase\"}", STELE_UNSUPPORTED,
     "normalizer 'Lowercase'"},
    {"\"normalizer\":null", "\"normalizer\":[]", STELE_BAD_FORMAT, "'normalizers'"},
    {"{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", "{\"type\":\"Whitespace\"}",
     STELE_UNSUPPORTED, "pre_tokenizer 'Whitespace'"},
    {"{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", "null", STELE_UNSUPPORTED,
     "decoder 'ByteLevel'"},
    {"{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
     "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},{\"type\":\"Digits\"}]}",
     STELE_UNSUPPORTED, "must be the last"},
    {"{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
     "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}",
     STELE_UNSUPPORTED, "expression '('"},
    {"{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
     "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Sometimes\"}",
     STELE_UNSUPPORTED, "'Sometimes'"},
    {"{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
     "{\"type\":\"Split\",\"pattern\":7,\"behavior\":\"Isolated\"}", STELE_BAD_FORMAT, "'pattern'"},
    {"\"decoder\":{\"type\":\"ByteLevel\"}", "\"decoder\":{\"type\":\"WordPiece\"}",
     STELE_UNSUPPORTED, "decoder 'WordPiece'"},
    {"\"decoder\":{\"type\":\"ByteLevel\"}", "\"decoder\":null", STELE_BAD_FORMAT, "'decoder'"},
    {"\"post_processor\":{\"type\":\"ByteLevel\"}", "\"post_processor\":{\"type\":\"Nobody\"}",
     STELE_UNSUPPORTED, "post_processor 'Nobody'"},
    {"\"post_processor\":{\"type\":\"ByteLevel\"}",
     "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}", STELE_BAD_FORMAT,
     "'single'"},
    {"\"post_processor\":{\"type\":\"ByteLevel\"}",
     "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
     "{\"id\":\"x\"}},{\"Sequence\":{}}],\"special_tokens\":{\"x\":{\"ids\":[77]}}}",
     STELE_BAD_FORMAT, "id 77"},
    {"\"post_processor\":{\"type\":\"ByteLevel\"}",
     "\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\",0],\"sep\":[\"a\",-2]}",
     STELE_BAD_FORMAT, "id -2"},
    {"\"type\":\"BPE\"", "\"type\":\"BPE\",\"byte_fallback\":true", STELE_UNSUPPORTED,
     "byte_fallback"},
    {"\"type\":\"BPE\"", "\"type\":\"BPE\",\"dropout\":0.5", STELE_UNSUPPORTED, "dropout"},
    {"\"type\":\"BPE\"", "\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\"", STELE_UNSUPPORTED,
     "end_of_word_suffix"},
    {"\"type\":\"BPE\"", "\"type\":\"BPE\",\"unk_token\":\"?\"", STELE_BAD_FORMAT, "unk_token"},
};

/* A character model; its faults are of the parts that only such models have. */
static const char characters[] =
    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
    "\"_\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"_\"}]},"
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"first\"},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},{\"type\":"
    "\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
    "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"
    "\"merges\":[\"a b\"]}}";

static const fault character_faults[] = {
    {"\"prepend\":\"_\"", "\"prepend\":7", STELE_BAD_FORMAT, "'prepend' is not a string"},
    {"{\"String\":\" \"}", "{\"Regex\":\" \"}", STELE_UNSUPPORTED, "pattern of a Replace"},
    {"{\"String\":\" \"}", "{\"String\":\"\"}", STELE_UNSUPPORTED, "pattern of a Replace"},
    {"\"content\":\"_\"", "\"content\":null", STELE_BAD_FORMAT, "'content' is not a string"},
    {"\"Replace\"", "\"Lowercase\"", STELE_UNSUPPORTED, "normalizer 'Lowercase'"},
    {"\"replacement\":\"_\"", "\"replacement\":\"__\"", STELE_BAD_FORMAT, "'replacement'"},
    {"\"replacement\":\"_\"", "\"replacement\":\"\"", STELE_BAD_FORMAT, "'replacement'"},
    {"\"first\"", "\"last\"", STELE_UNSUPPORTED, "'last' is not supported"},
    {"\"Fuse\"", "\"WordPiece\"", STELE_UNSUPPORTED, "decoder 'WordPiece'"},
    {"\"Fuse\"", "\"ByteFallback\"", STELE_UNSUPPORTED, "decoder 'ByteFallback'"},
    {"{\"type\":\"ByteFallback\"},", "", STELE_OK, ""},
    {"\"ByteFallback\"", "\"Strip\"", STELE_UNSUPPORTED, "decoder 'Strip'"},
    {"\"content\":\" \",\"start\"", "\"content\":\"ab\",\"start\"", STELE_BAD_FORMAT, "'content'"},
    {"\"start\":1", "\"start\":-1", STELE_BAD_FORMAT, "'start'"},
    {"\"stop\":0", "\"stop\":1", STELE_UNSUPPORTED, "'stop' above 0"},
    {"\"byte_fallback\":true", "\"ignore_merges\":true", STELE_UNSUPPORTED,
     "'model.ignore_merges'"},
};

static void check_json(const char *json, size_t bytes, stele_status status, const char *message) {
  base_buffer blob = {0};
  stele_sink sink = {0};
  assert_int_equal(text_blob_from_json(json, bytes, NULL, 0, &sink, &blob), status);
  if (!strstr(sink.text, message)) fail_msg("'%s' lacks '%s'", sink.text, message);
  if (status != STELE_OK) assert_null(blob.data);
  base_buffer_deinit(&blob);
}

static void check_faults(const char *file, const fault *faults, size_t count) {
  for (const fault *f = faults; f < faults + count; f++) {
    char *json = with(file, f->old, f->new);
    assert_non_null(json);
    check_json(json, strlen(json), f->status, f->message);
    free(json);
  }
}

static void faulty_json(void **state) {
  (void)state;
  check_faults(good, json_faults, sizeof json_faults / sizeof *json_faults);
  check_faults(characters, character_faults, sizeof character_faults / sizeof *character_faults);
  check_json("", 0, STELE_BAD_FORMAT, "tokenizer.json: line 1");
  check_json("[]", 2, STELE_BAD_FORMAT, "an object");
}

static void deep_json(void **state) {
  (void)state;
  size_t depth = 100000;
  char *json = malloc(depth + 1);
  assert_non_null(json);
  memset(json, '[', depth);
  check_json(json, depth, STELE_BAD_FORMAT, "depth");
  free(json);
}

static void deep_sequence(void **state) {
  (void)state;
  base_buffer json = {0};
  base_buffer_printf(&json, "{\"normalizer\":");
  for (int i = 0; i < 50; i++)
    base_buffer_printf(&json, "{\"type\":\"Sequence\",\"normalizers\":[");
  for (int i = 0; i < 50; i++) base_buffer_printf(&json, "]}");
  base_buffer_printf(&json, "}");
  check_json((char *)json.data, json.size, STELE_UNSUPPORTED, "nest deeper");
  base_buffer_deinit(&json);
}

static void truncated_json(void **state) {
  (void)state;
  for (size_t bytes = 0; bytes < sizeof good - 1; bytes++)
    check_json(good, bytes, STELE_BAD_FORMAT, "tokenizer.json");
}

/* tokenizer_config.json: tokens that tokenizer.json lacks are taken from it, faults are named. */
static void configuration_file(void **state) {
  (void)state;
  static const char more[] =
      "{\"added_tokens_decoder\":{\"4\":{\"content\":\"<s>\"},\"9\":{\"content\":\"<x>\"}}}";
  base_buffer blob = {0};
  stele_sink sink = {0};
  assert_int_equal(text_blob_from_json(good, sizeof good - 1, more, sizeof more - 1, &sink, &blob),
                   STELE_OK);
  support_tokenizer t = support_open_blob(blob);
  assert_int_equal(text_tokenizer_vocab(t.tokenizer), 10);
  json_t *ids = json_pack("[i,i]", 0, 9);
  assert_true(support_encodes(t.tokenizer, "a<x>", 4, false, ids));
  json_decref(ids);
  support_close(&t);
  static const char *const bad[] = {
      "{", "{\"added_tokens_decoder\":{\"x\":{\"content\":\"y\"}}}",
      "{\"added_tokens_decoder\":{\"3\":{\"content\":\"y\"}}}",
      "{\"added_tokens_decoder\":{\"99999999\":{\"content\":\"y\"}}}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(
        text_blob_from_json(good, sizeof good - 1, bad[i], strlen(bad[i]), &sink, &blob),
        STELE_BAD_FORMAT);
}

/* ---- GGUF ------------------------------------------------------------------------------- */

static const char *const tokens[] = {"a", "b", "ab", "<s>"};
static const uint64_t token_bytes[] = {1, 1, 2, 3};
static const int32_t types[] = {1, 1, 1, 3};
static const char *const merges[] = {"a b"};
static const uint64_t merge_bytes[] = {3};

static text_gguf_source gguf_source(void) {
  return (text_gguf_source){.model = "gpt2",
                            .pre = "gpt-2",
                            .token_count = 4,
                            .tokens = tokens,
                            .token_bytes = token_bytes,
                            .token_types = types,
                            .merge_count = 1,
                            .merges = merges,
                            .merge_bytes = merge_bytes,
                            .bos_id = 3,
                            .eos_id = 3,
                            .add_bos = 1,
                            .add_eos = 1};
}

static void check_gguf(const text_gguf_source *source, stele_status status, const char *message) {
  base_buffer blob = {0};
  stele_sink sink = {0};
  assert_int_equal(text_blob_from_gguf(source, &sink, &blob), status);
  if (!strstr(sink.text, message)) fail_msg("'%s' lacks '%s'", sink.text, message);
}

static void faulty_gguf(void **state) {
  (void)state;
  text_gguf_source source = gguf_source();
  source.pre = "nobody";
  check_gguf(&source, STELE_UNSUPPORTED, "tokenizer.ggml.pre 'nobody' is unknown; known: default");
  source = gguf_source();
  source.model = "bert";
  check_gguf(&source, STELE_UNSUPPORTED,
             "tokenizer.ggml.model 'bert' is not supported; known: 'gpt2', 'llama'");
  source.model = NULL;
  check_gguf(&source, STELE_BAD_FORMAT, "'tokenizer.ggml.model' is missing");
  source = gguf_source();
  source.token_count = 0;
  check_gguf(&source, STELE_BAD_FORMAT, "'tokenizer.ggml.tokens' is missing");
  source = gguf_source();
  source.merge_count = 0;
  check_gguf(&source, STELE_BAD_FORMAT, "merges' is missing");
  source = gguf_source();
  source.bos_id = 4;
  check_gguf(&source, STELE_BAD_FORMAT, "bos_token_id 4");
  source = gguf_source();
  source.merge_bytes = (const uint64_t[]){2};
  check_gguf(&source, STELE_BAD_FORMAT, "merge 0");
}

static void faulty_scores(void **state) {
  (void)state;
  text_gguf_source source = gguf_source();
  source.model = "llama";
  check_gguf(&source, STELE_BAD_FORMAT, "'tokenizer.ggml.scores' is missing");
  source.scores = (const float[]){0, 0, NAN, 0};
  check_gguf(&source, STELE_BAD_FORMAT, "score of token 2 is not a number");
  source.scores = (const float[]){0, 0, -1, 0};
  source.unknown_id = 4;
  check_gguf(&source, STELE_BAD_FORMAT, "unknown_token_id 4 is not in the vocabulary of 4");
}

static void good_gguf(void **state) {
  (void)state;
  text_gguf_source source = gguf_source();
  base_buffer blob = {0};
  assert_int_equal(text_blob_from_gguf(&source, NULL, &blob), STELE_OK);
  support_tokenizer t = support_open_blob(blob);
  json_t *ids = json_pack("[i,i,i,i,i]", 3, 2, 3, 0, 3);
  assert_true(support_encodes(t.tokenizer, "ab<s>a", 6, true, ids));
  assert_true(support_decodes(t.tokenizer, ids, true, "aba", 3));
  json_decref(ids);
  support_close(&t);
}

/* ---- blobs ------------------------------------------------------------------------------ */

static base_buffer blob_of(const char *json) {
  base_buffer blob = {0};
  assert_int_equal(text_blob_from_json(json, strlen(json), NULL, 0, NULL, &blob), STELE_OK);
  return blob;
}

static base_buffer good_blob(void) { return blob_of(good); }

/* Whatever a blob holds, using it stays in bounds and gives ids of the vocabulary. */
static void use(const uint8_t *data, size_t bytes) {
  text_tokenizer *t;
  stele_sink sink = {0};
  if (text_tokenizer_create(data, bytes, &sink, &t) != STELE_OK) {
    assert_true(sink.text[0]);
    return;
  }
  static const char text[] = "abc<s>cab \xC3\xA9 e\xCC\x81 \xF0\x9F\x99\x82<s><s";
  int32_t *ids;
  size_t count;
  if (text_encode(t, text, sizeof text - 1, true, &sink, &ids, &count) == STELE_OK) {
    for (size_t i = 0; i < count; i++) {
      assert_true(ids[i] >= 0);
      assert_true((uint32_t)ids[i] < text_tokenizer_vocab(t));
    }
    free(ids);
  }
  int32_t all[] = {0, 1, 2, 3, 4, 5, -1, INT32_MAX, INT32_MIN};
  base_buffer out = {0};
  if (text_decode(t, all, sizeof all / sizeof *all, false, &sink, &out) == STELE_OK)
    base_buffer_deinit(&out);
  text_tokenizer_destroy(t);
}

static void truncated_blobs(void **state) {
  (void)state;
  base_buffer blob = good_blob();
  for (size_t bytes = 0; bytes < blob.size; bytes++) {
    uint8_t *copy = malloc(bytes ? bytes : 1); /* so that the address sanitizer sees its end */
    text_tokenizer *t;
    assert_non_null(copy);
    memcpy(copy, blob.data, bytes);
    assert_int_not_equal(text_tokenizer_create(copy, bytes, NULL, &t), STELE_OK);
    free(copy);
  }
  base_buffer_deinit(&blob);
}

static void damage(const char *json) {
  base_buffer blob = blob_of(json);
  static const uint8_t values[] = {0, 1, 0x7F, 0x80, 0xFF};
  for (size_t at = 0; at < blob.size; at++) {
    uint8_t old = blob.data[at];
    for (size_t i = 0; i < sizeof values; i++) {
      blob.data[at] = values[i];
      use(blob.data, blob.size);
    }
    blob.data[at] = old;
  }
  base_buffer_deinit(&blob);
}

static void damaged_blobs(void **state) {
  (void)state;
  damage(good);
  damage(characters);
}

static void other_versions(void **state) {
  (void)state;
  base_buffer blob = good_blob();
  text_tokenizer *t;
  stele_sink sink = {0};
  blob.data[8]++;
  assert_int_equal(text_tokenizer_create(blob.data, blob.size, &sink, &t), STELE_MISMATCH);
  assert_non_null(strstr(sink.text, "version 3"));
  blob.data[8]--;
  blob.data[12] = 99;
  assert_int_equal(text_tokenizer_create(blob.data, blob.size, &sink, &t), STELE_MISMATCH);
  assert_non_null(strstr(sink.text, "model 99"));
  blob.data[0] = 'S';
  assert_int_equal(text_tokenizer_create(blob.data, blob.size, &sink, &t), STELE_BAD_FORMAT);
  base_buffer_deinit(&blob);
}

/* A blob may lie at any address. */
static void unaligned_blob(void **state) {
  (void)state;
  base_buffer blob = good_blob();
  uint8_t *copy = malloc(blob.size + 1);
  assert_non_null(copy);
  memcpy(copy + 1, blob.data, blob.size);
  text_tokenizer *t;
  assert_int_equal(text_tokenizer_create(copy + 1, blob.size, NULL, &t), STELE_OK);
  json_t *ids = json_pack("[i,i,i]", 2, 3, 4);
  assert_true(support_encodes(t, "abc<s>", 6, true, ids));
  json_decref(ids);
  text_tokenizer_destroy(t);
  free(copy);
  base_buffer_deinit(&blob);
}

static void same_bytes_twice(void **state) {
  (void)state;
  base_buffer one = good_blob(), two = good_blob();
  assert_int_equal(one.size, two.size);
  assert_memory_equal(one.data, two.data, one.size);
  base_buffer_deinit(&one);
  base_buffer_deinit(&two);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(faulty_json),        cmocka_unit_test(deep_json),
      cmocka_unit_test(deep_sequence),      cmocka_unit_test(truncated_json),
      cmocka_unit_test(configuration_file), cmocka_unit_test(faulty_gguf),
      cmocka_unit_test(faulty_scores),      cmocka_unit_test(good_gguf),
      cmocka_unit_test(truncated_blobs),    cmocka_unit_test(damaged_blobs),
      cmocka_unit_test(other_versions),     cmocka_unit_test(unaligned_blob),
      cmocka_unit_test(same_bytes_twice)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
