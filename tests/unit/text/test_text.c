/* Texts that are not UTF-8, streams, long texts, expressions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* After the five above. */
#include <cmocka.h>

#include "support.h"
#include "text/builder.h"
#include "text/pattern.h"

/* A vocabulary of all 256 bytes, id = byte, and a few merges; `head` goes before the model. */
static support_tokenizer open_bytes(const char *head) {
  base_buffer json = {0};
  base_buffer_printf(&json,
                     "{%s,\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
                     "\"vocab\":{",
                     head);
  for (int code = 0x21; code <= 0x143; code++)
    if (text_byte_of(code) >= 0)
      base_buffer_printf(&json, "\"\\u%04x\":%d,", code, text_byte_of(code));
  base_buffer_printf(&json,
                     "\"aa\":256,\"aaaa\":257,\"\\u0120\\u0120\":258},"
                     "\"merges\":[\"a a\",\"aa aa\",\"\\u0120 \\u0120\"]}}");
  assert_false(json.failed);
  support_tokenizer t = support_open((char *)json.data, json.size);
  base_buffer_deinit(&json);
  return t;
}

static const char plain[] =
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}";

/* ---- bytes ------------------------------------------------------------------------------ */

static void check_repair(const text_tokenizer *t, const char *text, size_t bytes,
                         const char *repaired) {
  int32_t *ids;
  size_t count, length = strlen(repaired);
  assert_int_equal(text_encode(t, text, bytes, true, NULL, &ids, &count), STELE_OK);
  base_buffer out;
  assert_int_equal(text_decode(t, ids, count, false, NULL, &out), STELE_OK);
  assert_int_equal(out.size, length);
  assert_memory_equal(out.data, repaired, length);
  base_buffer_deinit(&out);
  free(ids);
}

#define R "\xEF\xBF\xBD"

static void ill_formed_texts(void **state) {
  (void)state;
  support_tokenizer t = open_bytes(plain);
  check_repair(t.tokenizer, "", 0, "");
  check_repair(t.tokenizer, "b\xFF", 2, "b" R);
  check_repair(t.tokenizer, "\xE2\x9C", 2, R R);
  check_repair(t.tokenizer, "\xE2\x9Cz", 3, R R "z");
  check_repair(t.tokenizer, "\xF0\x9F\x99", 3, R R R);
  check_repair(t.tokenizer, "\xF0\x9F\x99\x82", 4, "\xF0\x9F\x99\x82");
  check_repair(t.tokenizer, "\xC0\x80", 2, R R);             /* overlong */
  check_repair(t.tokenizer, "\xE0\x80\x80", 3, R R R);       /* overlong */
  check_repair(t.tokenizer, "\xED\xA0\x80", 3, R R R);       /* surrogate */
  check_repair(t.tokenizer, "\xF4\x90\x80\x80", 4, R R R R); /* above U+10FFFF */
  check_repair(t.tokenizer, "\x80\xBF", 2, R R);
  static const char with_zero[] = {'b', 0, 'c', (char)0xE9};
  int32_t *ids;
  size_t count;
  assert_int_equal(text_encode(t.tokenizer, with_zero, 4, true, NULL, &ids, &count), STELE_OK);
  static const int32_t expected[] = {'b', 0, 'c', 0xEF, 0xBF, 0xBD};
  assert_int_equal(count, 6);
  assert_memory_equal(ids, expected, sizeof expected);
  free(ids);
  support_close(&t);
}

/* ---- streams ---------------------------------------------------------------------------- */

/* Ids and the piece that each gives, the last one at the end. */
typedef struct stream_case {
  const char *ids; /* bytes, which are ids here */
  const char *pieces[8];
} stream_case;

static const stream_case stream_cases[] = {
    {"\xE6\xAD\xAA", {"", "", "\xE6\xAD\xAA", ""}},
    {"\xF0\x9F\x98\x80", {"", "", "", "\xF0\x9F\x98\x80", ""}},
    {"\xE2\x9C\x85\x85", {"", "", "\xE2\x9C\x85", R, ""}},
    {"\xE2", {"", R}},
    {"\xE2\x9C", {"", "", R}},
    {"b\xE2z", {"b", "", R "z", ""}},
    {"\xE2\xE2\x9C\x85", {"", R, "", "\xE2\x9C\x85", ""}},
    {"\xC0z", {R, "z", ""}},
    {"\xED\xA0\x80", {"", R R, R, ""}},
    {"\xF0\x90z", {"", "", R "z", ""}},
};

static void stream_pieces(void **state) {
  (void)state;
  support_tokenizer t = open_bytes(plain);
  for (size_t i = 0; i < sizeof stream_cases / sizeof *stream_cases; i++) {
    const stream_case *c = &stream_cases[i];
    size_t count = strlen(c->ids);
    text_stream *stream;
    assert_int_equal(text_stream_create(t.tokenizer, false, NULL, &stream), STELE_OK);
    for (size_t k = 0; k <= count; k++) {
      const char *piece;
      size_t bytes;
      stele_status status = k < count ? text_stream_put(stream, (uint8_t)c->ids[k], &piece, &bytes)
                                      : text_stream_end(stream, &piece, &bytes);
      assert_int_equal(status, STELE_OK);
      assert_string_equal(piece, c->pieces[k]);
      assert_int_equal(bytes, strlen(c->pieces[k]));
    }
    text_stream_destroy(stream);
  }
  support_close(&t);
}

/* Any bytes: the pieces are whole characters and add up to the decoded text. */
static void stream_of_any_bytes(void **state) {
  (void)state;
  support_tokenizer t = open_bytes(plain);
  static const int bytes[] = {'a',  0x80, 0x9F, 0xA0, 0xBF, 0xC2, 0xE0, 0xE2,
                              0xED, 0xF0, 0xF4, 0xFF, 0x90, 256,  -1,   999};
  uint32_t random = 1;
  for (int round = 0; round < 3000; round++) {
    json_t *ids = json_array();
    for (int i = 0; i < 12; i++) {
      random = random * 1664525u + 1013904223u;
      json_array_append_new(ids, json_integer(bytes[random >> 28]));
    }
    assert_true(support_streams(t.tokenizer, ids, false));
    json_decref(ids);
  }
  support_close(&t);
}

/* ---- long texts ------------------------------------------------------------------------- */

/* Encodes bytes of text in bounded time, and gets them back. */
static void check_long(const text_tokenizer *t, const char *text, size_t bytes, size_t most_ids) {
  int32_t *ids;
  size_t count;
  clock_t start = clock();
  assert_int_equal(text_encode(t, text, bytes, true, NULL, &ids, &count), STELE_OK);
  assert_true(count <= most_ids);
  base_buffer out;
  assert_int_equal(text_decode(t, ids, count, false, NULL, &out), STELE_OK);
  assert_int_equal(out.size, bytes);
  assert_memory_equal(out.data, text, bytes);
  base_buffer_deinit(&out);
  free(ids);
  assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 30);
}

static void repeat(char *out, size_t bytes, const char *unit) {
  size_t length = strlen(unit);
  for (size_t i = 0; i < bytes; i++) out[i] = unit[i % length];
}

static const char normalised[] =
    "\"normalizer\":{\"type\":\"NFC\"},\"added_tokens\":["
    "{\"id\":260,\"content\":\"  \",\"lstrip\":true,\"rstrip\":true},"
    "{\"id\":261,\"content\":\"\\n\",\"lstrip\":true,\"rstrip\":true},"
    "{\"id\":262,\"content\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"}],"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";

static void long_texts(void **state) {
  (void)state;
  size_t bytes = (size_t)1 << 20;
  char *text = malloc(bytes);
  assert_non_null(text);
  support_tokenizer t = open_bytes(plain);
  repeat(text, bytes, "a");
  check_long(t.tokenizer, text, bytes, bytes / 4);
  repeat(text, bytes, " ");
  check_long(t.tokenizer, text, bytes, bytes / 2);
  text[bytes - 1] = 'x';
  check_long(t.tokenizer, text, bytes, bytes / 2 + 2);
  repeat(text, bytes, "\n");
  check_long(t.tokenizer, text, bytes, bytes);
  repeat(text, bytes, "<");
  check_long(t.tokenizer, text, bytes, bytes);
  repeat(text, bytes, "\xE4\xBD\xA0\xE5\xA5\xBD!?");
  check_long(t.tokenizer, text, bytes / 8 * 8, bytes);
  support_close(&t);
  free(text);
}

/* A character model takes a text without spaces as one word. */
static void long_words(void **state) {
  (void)state;
  static const char json[] =
      "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
      "\"\\u2581\"},\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\\u2581\"},"
      "\"content\":\" \"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"aa\":2,"
      "\"aaaa\":3,\"\\u2581\":4,\"\\u2581\\u2581\":5,\"ab\":6,\"\\u2581a\":7},\"merges\":["
      "\"\\u2581 \\u2581\",\"a a\",\"aa aa\",\"\\u2581 a\",\"a b\"]}}";
  size_t bytes = (size_t)1 << 20;
  char *text = malloc(bytes);
  assert_non_null(text);
  support_tokenizer t = support_open(json, sizeof json - 1);
  static const char *const units[] = {"a", "ab", "b", " ", "a ", "aab  "};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    repeat(text, bytes, units[i]);
    check_long(t.tokenizer, text, bytes, bytes);
  }
  support_close(&t);
  free(text);
}

/* White space, marks and near misses of added tokens must not make the time quadratic. */
static void long_normalised_texts(void **state) {
  (void)state;
  size_t bytes = (size_t)1 << 20, count;
  char *text = malloc(bytes);
  assert_non_null(text);
  support_tokenizer t = open_bytes(normalised);
  static const char *const units[] = {"\n", " ", " \n", "a", "\xCC\x81\xCC\xA3", "e\xCC\x81"};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    int32_t *ids;
    clock_t start = clock();
    repeat(text, bytes, units[i]);
    assert_int_equal(text_encode(t.tokenizer, text, bytes, true, NULL, &ids, &count), STELE_OK);
    free(ids);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 30);
  }
  support_close(&t);
  free(text);
}

static void long_random_bytes(void **state) {
  (void)state;
  size_t bytes = (size_t)1 << 20, count;
  uint8_t *text = malloc(bytes);
  assert_non_null(text);
  uint64_t random = 1;
  for (size_t i = 0; i < bytes; i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    text[i] = (uint8_t)(random >> 56);
  }
  support_tokenizer t = open_bytes(normalised);
  int32_t *ids;
  assert_int_equal(text_encode(t.tokenizer, (char *)text, bytes, true, NULL, &ids, &count),
                   STELE_OK);
  free(ids);
  support_close(&t);
  free(text);
}

/* An expression that takes exponential time is stopped. */
static void hostile_expression(void **state) {
  (void)state;
  support_tokenizer t = open_bytes(
      "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
      "{\"Regex\":\"(a+|b)*c|(?:a|ab|b)*d\"},\"behavior\":\"Isolated\"},"
      "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}");
  char text[4000];
  repeat(text, sizeof text, "aab");
  stele_sink sink = {0};
  int32_t *ids = NULL;
  size_t count;
  clock_t start = clock();
  assert_int_equal(text_encode(t.tokenizer, text, sizeof text, true, &sink, &ids, &count),
                   STELE_FAILED);
  assert_non_null(strstr(sink.text, "takes too long"));
  assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 30);
  support_close(&t);
}

/* ---- expressions ------------------------------------------------------------------------ */

static void check_translation(const char *pattern, const char *expected) {
  base_buffer out = {0};
  stele_sink sink = {0};
  stele_status status = text_pattern_translate(pattern, strlen(pattern), &sink, &out);
  if (!expected) {
    assert_int_equal(status, STELE_UNSUPPORTED);
    assert_non_null(strstr(sink.text, "is not supported"));
  } else {
    assert_int_equal(status, STELE_OK);
    base_buffer_append(&out, "", 1);
    assert_string_equal((char *)out.data, expected);
  }
  base_buffer_deinit(&out);
}

static void translations(void **state) {
  (void)state;
  check_translation("a+|b?+[^x]", "a+|b?+[^x]");
  check_translation("\\p{L}{1,3}+", "(?:\\p{L}{1,3})+");
  check_translation("x(ab){2}+", "x(?:(ab){2})+");
  check_translation("[a-c]{,2}", "[a-c]{0,2}");
  check_translation("a{b{", "a\\{b\\{");
  check_translation("\\u00e9\\x{41}\\x41", "\\x{00e9}\\x{41}\\x41");
  check_translation("(?m:.)(?i-m)(?=a)", "(?s:.)(?i-s)(?=a)");
  check_translation("[a[bc]d]", "[abcd]");
  check_translation("[[:alpha:]x]", "[[:alpha:]x]");
  check_translation("[]a]\\h", "[]a][0-9a-fA-F]");
  check_translation("[\\w\\h]\\H", "[\\p{L}\\p{M}\\p{Nd}\\p{Pc}0-9a-fA-F][^0-9a-fA-F]");
  check_translation("[a&&b]", NULL);
  check_translation("[a[^b]]", NULL);
  check_translation("[\\W]", NULL);
  check_translation("[a", NULL);
  check_translation("\\p{L", NULL);
  check_translation("(*FAIL)", NULL);
}

static void alphabet(void **state) {
  (void)state;
  bool seen[256] = {false};
  for (int32_t code = 0; code < 0x400; code++) {
    int byte = text_byte_of(code);
    if (byte < 0) continue;
    assert_false(seen[byte]);
    seen[byte] = true;
  }
  for (int i = 0; i < 256; i++) assert_true(seen[i]);
  assert_int_equal(text_byte_of(0x120), ' ');
  assert_int_equal(text_byte_of(0x10A), '\n');
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ill_formed_texts),    cmocka_unit_test(stream_pieces),
      cmocka_unit_test(stream_of_any_bytes), cmocka_unit_test(long_texts),
      cmocka_unit_test(long_words),          cmocka_unit_test(long_normalised_texts),
      cmocka_unit_test(long_random_bytes),   cmocka_unit_test(hostile_expression),
      cmocka_unit_test(translations),        cmocka_unit_test(alphabet)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
