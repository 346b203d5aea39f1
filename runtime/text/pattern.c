/* Translates an expression in one walk over its text.
 *
 * The two dialects agree on most of what tokenizers use. They part in: \s (PCRE2's includes
 * U+180E), \w and \h; `.` and anchors (settled by compile options); {n,m}+, which is a repeated
 * repetition in Ruby's syntax and possessive in PCRE2; {,n}; \uHHHH; (?m), Ruby's word for
 * "dot matches newline"; classes in classes. What can't be said is an error, never a guess.
 * Sources: Oniguruma's doc/RE, pcre2pattern(3), Unicode's White_Space. */
#include "text/pattern.h"

#include <string.h>

#include "text/tokenizer_blob.h"

#define MAX_GROUPS 250

#define SPACE_SET                                                                    \
  "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
  "\\x{202f}\\x{205f}\\x{3000}"
#define NOT_SPACE_SET                                                            \
  "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"   \
  "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}" \
  "\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"
#define WORD_SET "\\p{L}\\p{M}\\p{Nd}\\p{Pc}"
#define HEX_SET "0-9a-fA-F"

typedef struct translation {
  const char *pattern;
  size_t bytes, at;
  base_buffer *out;
  size_t atom; /* where the last atom begins in out */
  size_t groups[MAX_GROUPS];
  size_t depth;
  stele_sink *sink;
} translation;

static stele_status unsupported(const translation *t, const char *what) {
  return base_fail(t->sink, STELE_UNSUPPORTED, "expression '%.*s': %s at byte %zu is not supported",
                   (int)base_min(t->bytes, 200), t->pattern, what, t->at);
}

static void put(translation *t, const char *text) {
  base_buffer_append(t->out, text, strlen(text));
}

static char peek(const translation *t, size_t ahead) {
  return t->at + ahead < t->bytes ? t->pattern[t->at + ahead] : 0;
}

static void copy(translation *t, size_t count) {
  count = base_min(count, t->bytes - t->at);
  base_buffer_append(t->out, t->pattern + t->at, count);
  t->at += count;
}

/* The set of a class escape, NULL: not one that needs translation. */
static const char *escape_set(char letter, bool *out_negated) {
  *out_negated = letter == 'S' || letter == 'W' || letter == 'H';
  switch (letter) {
    case 's':
    case 'S':
      return SPACE_SET;
    case 'w':
    case 'W':
      return WORD_SET;
    case 'h':
    case 'H':
      return HEX_SET;
    default:
      return NULL;
  }
}

/* At a backslash, in a class or outside. */
static stele_status escape(translation *t, bool in_class) {
  bool negated;
  char letter = peek(t, 1);
  const char *set = escape_set(letter, &negated);
  if (set && in_class) {
    if (negated && letter != 'S') return unsupported(t, "a negated escape in a class");
    put(t, negated ? NOT_SPACE_SET : set);
    t->at += 2;
  } else if (set) {
    put(t, negated ? "[^" : "[");
    put(t, set);
    put(t, "]");
    t->at += 2;
  } else if (letter == 'u') {
    put(t, "\\x{");
    t->at += 2;
    copy(t, 4);
    put(t, "}");
  } else if ((letter == 'p' || letter == 'P' || letter == 'x') && peek(t, 2) == '{') {
    const char *end = memchr(t->pattern + t->at, '}', t->bytes - t->at);
    if (!end) return unsupported(t, "an escape without its closing brace");
    copy(t, (size_t)(end - (t->pattern + t->at)) + 1);
  } else {
    copy(t, 2);
  }
  return STELE_OK;
}

/* At the bracket that opens a class. A class inside a class is a union: its brackets go. */
static stele_status class(translation *t) {
  size_t depth = 1;
  copy(t, peek(t, 1) == '^' ? 2 : 1);
  if (peek(t, 0) == ']') copy(t, 1);
  while (depth) {
    char c = peek(t, 0);
    if (t->at >= t->bytes) return unsupported(t, "a class without its closing bracket");
    if (c == '\\') {
      BASE_TRY(escape(t, true));
    } else if (c == '[' && peek(t, 1) == ':') {
      copy(t, 2);
      while (t->at < t->bytes && !(peek(t, 0) == ':' && peek(t, 1) == ']')) copy(t, 1);
      copy(t, 2);
    } else if (c == '[') {
      if (peek(t, 1) == '^') return unsupported(t, "a negated class in a class");
      depth++;
      t->at++;
    } else if (c == ']') {
      if (--depth)
        t->at++;
      else
        copy(t, 1);
    } else if (c == '&' && peek(t, 1) == '&') {
      return unsupported(t, "an intersection of classes");
    } else {
      copy(t, 1);
    }
  }
  return STELE_OK;
}

/* At an opening parenthesis. */
static stele_status group(translation *t) {
  if (t->depth == MAX_GROUPS) return unsupported(t, "so deep a nesting of groups");
  if (peek(t, 1) == '*') return unsupported(t, "a verb or callout");
  t->groups[t->depth++] = t->out->size;
  copy(t, 1);
  if (peek(t, 0) != '?') return STELE_OK;
  copy(t, 1);
  size_t flags = strspn(t->pattern + t->at, "imx-"); /* patterns end with a zero: see below */
  char after = peek(t, flags);
  if (!flags || (after != ':' && after != ')')) return STELE_OK;
  for (; flags; flags--, t->at++) {
    char flag = peek(t, 0) == 'm' ? 's' : peek(t, 0);
    base_buffer_append(t->out, &flag, 1);
  }
  return STELE_OK;
}

/* At an opening brace: a repetition, or just a brace. */
static void brace(translation *t) {
  size_t first = strspn(t->pattern + t->at + 1, "0123456789"), length = 1 + first, second = 0;
  if (peek(t, length) == ',') {
    second = strspn(t->pattern + t->at + length + 1, "0123456789");
    length += 1 + second;
  }
  if (peek(t, length) != '}' || (!first && !second)) {
    t->atom = t->out->size;
    put(t, "\\");
    copy(t, 1);
    return;
  }
  bool again = peek(t, length + 1) == '+';
  size_t begin = t->out->size;
  if (again) {
    put(t, "(?:");
    if (t->out->failed) return;
    memmove(t->out->data + t->atom + 3, t->out->data + t->atom, begin - t->atom);
    memcpy(t->out->data + t->atom, "(?:", 3);
  }
  copy(t, 1);
  if (!first) put(t, "0");
  copy(t, length);
  if (again) put(t, ")");
}

static stele_status translate(translation *t) {
  while (t->at < t->bytes && !t->out->failed) {
    size_t begin = t->out->size;
    char c = peek(t, 0);
    if (c == '{') {
      brace(t);
      continue;
    }
    if (c == '?' || c == '*' || c == '+' || c == '|') {
      copy(t, 1);
      continue;
    }
    if (c == ')') {
      if (t->depth) begin = t->groups[--t->depth];
      copy(t, 1);
    } else if (c == '(') {
      BASE_TRY(group(t));
    } else if (c == '[') {
      BASE_TRY(class(t));
    } else if (c == '\\') {
      BASE_TRY(escape(t, false));
    } else {
      copy(t, 1);
      while ((peek(t, 0) & 0xC0) == 0x80) copy(t, 1);
    }
    t->atom = begin;
  }
  return STELE_OK;
}

stele_status text_pattern_translate(const char *pattern, size_t bytes, stele_sink *sink,
                                    base_buffer *out) {
  if (bytes > TEXT_MAX_PATTERN)
    return base_fail(sink, STELE_UNSUPPORTED, "an expression of %zu bytes, at most %u are possible",
                     bytes, TEXT_MAX_PATTERN);
  base_arena arena = {0};
  /* A copy with a zero behind it, which stops strspn. */
  char *text = base_arena_copy(&arena, pattern, bytes);
  stele_status status = STELE_OUT_OF_MEMORY;
  if (text) {
    translation t = {.pattern = text, .bytes = bytes, .out = out, .atom = out->size, .sink = sink};
    status = translate(&t);
  } else {
    (void)base_fail(sink, status, "no memory for an expression");
  }
  base_arena_deinit(&arena);
  return status;
}

void text_pattern_quote(const char *text, size_t bytes, base_buffer *out) {
  for (size_t i = 0; i < bytes; i++) {
    if (strchr("\\^$.[]|()?*+{}#&-~", text[i]) && text[i]) base_buffer_append(out, "\\", 1);
    base_buffer_append(out, text + i, 1);
  }
}
