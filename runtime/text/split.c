/* The cutting steps run one after another, each over the pieces that the last one left, as the
 * pre-tokenizers of a Hugging Face sequence do: an expression never sees past its piece.
 *
 * Expressions come from model files, so their cost is bounded. PCRE2 counts its own steps but
 * doesn't tell; so each match first gets a small limit, and a larger one when it hits it, and
 * every limit that was hit is taken off a budget which grows with the text's length. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/split.h"

#include <pcre2.h>
#include <stdlib.h>

#include "text/normalize.h"
#include "text/utf8.h"

#define FIRST_LIMIT 10000u
#define HEAP_LIMIT_KIB (256u << 10)

typedef struct step {
  uint32_t kind, behavior;
  bool invert;
  pcre2_code *code;
  const uint8_t *text; /* METASPACE: what spaces become */
  size_t bytes;
} step;

struct text_splitter {
  size_t count;
  step steps[TEXT_MAX_STEPS];
};

/* ---- expressions ------------------------------------------------------------------------ */

static pcre2_code *compile(const uint8_t *pattern, size_t bytes, stele_sink *sink) {
  pcre2_compile_context *context = pcre2_compile_context_create(NULL);
  if (!context) {
    (void)base_fail(sink, STELE_OUT_OF_MEMORY, "no memory for an expression");
    return NULL;
  }
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_set_max_pattern_length(context, TEXT_MAX_PATTERN);
  int error;
  PCRE2_SIZE at;
  pcre2_code *code = pcre2_compile(
      pattern, bytes, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
      &at, context);
  pcre2_compile_context_free(context);
  if (code) return code;
  PCRE2_UCHAR message[160];
  if (pcre2_get_error_message(error, message, sizeof message) < 0) message[0] = 0;
  (void)base_fail(sink, STELE_UNSUPPORTED, "expression '%.*s': %s, at byte %zu",
                  (int)base_min(bytes, 200), (const char *)pattern, (const char *)message,
                  (size_t)at);
  return NULL;
}

stele_status text_pattern_check(const char *pattern, size_t bytes, stele_sink *sink) {
  pcre2_code *code = compile((const uint8_t *)pattern, bytes, sink);
  if (!code) return STELE_UNSUPPORTED;
  pcre2_code_free(code);
  return STELE_OK;
}

stele_status text_splitter_create(const text_tokenizer *view, stele_sink *sink,
                                  text_splitter **out_splitter) {
  const text_table *steps = &view->table[TEXT_STEPS], *strings = &view->table[TEXT_STRINGS];
  if (steps->count > TEXT_MAX_STEPS)
    return base_fail(sink, STELE_BAD_FORMAT, "tokenizer: %u cutting steps, at most %u are possible",
                     steps->count, TEXT_MAX_STEPS);
  text_splitter *splitter = calloc(1, sizeof *splitter);
  if (!splitter) return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory for a tokenizer");
  for (uint32_t i = 0; i < steps->count; i++) {
    text_step s;
    memcpy(&s, steps->data + (size_t)i * sizeof s, sizeof s);
    step *out = &splitter->steps[splitter->count++];
    const uint8_t *string = text_string(strings, s.pattern, s.length);
    *out = (step){s.kind, s.behavior, s.invert != 0, NULL, string, s.length};
    if (s.kind == TEXT_STEP_PREFIX_SPACE) continue;
    bool space = s.kind == TEXT_STEP_METASPACE;
    bool good = space ? string && s.behavior <= TEXT_PREPEND_FIRST && s.length <= 4
                      : s.kind == TEXT_STEP_SPLIT && s.behavior <= TEXT_CONTIGUOUS && string;
    if (good && space) continue;
    if (good) out->code = compile(string, s.length, sink);
    if (!out->code) {
      text_splitter_destroy(splitter);
      return good ? STELE_UNSUPPORTED
                  : base_fail(sink, STELE_BAD_FORMAT, "tokenizer: cutting step %u is damaged", i);
    }
    /* Without just-in-time compilation (a hardened system may forbid it) matching is slower. */
    (void)pcre2_jit_compile(out->code, PCRE2_JIT_COMPLETE);
  }
  *out_splitter = splitter;
  return STELE_OK;
}

void text_splitter_destroy(text_splitter *splitter) {
  if (!splitter) return;
  for (size_t i = 0; i < splitter->count; i++) pcre2_code_free(splitter->steps[i].code);
  free(splitter);
}

/* ---- matching --------------------------------------------------------------------------- */

typedef struct matcher {
  const pcre2_code *code;
  pcre2_match_data *data;
  pcre2_match_context *context;
  text_work *work;
} matcher;

static stele_status matcher_init(matcher *m, text_work *work, stele_sink *sink) {
  *m = (matcher){.work = work};
  m->data = pcre2_match_data_create(1, NULL);
  m->context = pcre2_match_context_create(NULL);
  if (m->data && m->context) {
    pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
    return STELE_OK;
  }
  return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory to match expressions");
}

static void matcher_deinit(matcher *m) {
  pcre2_match_data_free(m->data);
  pcre2_match_context_free(m->context);
}

/* The next match at or after *from; *out_found false: none. */
static stele_status match(matcher *m, const uint8_t *text, size_t bytes, size_t from,
                          stele_sink *sink, bool *out_found, size_t *out_begin, size_t *out_end) {
  uint32_t options = PCRE2_NO_UTF_CHECK;
  for (uint64_t limit = FIRST_LIMIT;;) {
    pcre2_set_match_limit(m->context, limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit);
    int rc = pcre2_match(m->code, text, bytes, from, options, m->data, m->context);
    if (rc == PCRE2_ERROR_NOMATCH) {
      *out_found = false;
      return STELE_OK;
    }
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT && !(options & PCRE2_NO_JIT)) {
      options |= PCRE2_NO_JIT; /* the interpreter keeps its stack on the heap */
      continue;
    }
    if (rc == PCRE2_ERROR_MATCHLIMIT && limit <= m->work->budget) {
      m->work->budget -= limit;
      limit *= 16;
      if (limit <= m->work->budget) continue;
    }
    if (rc < 0)
      return base_fail(sink, STELE_FAILED,
                       "splitting the text by the tokenizer's expressions takes too long "
                       "(PCRE2 error %d at byte %zu of %zu)",
                       rc, from, bytes);
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->data);
    if (span[0] < from || span[1] < span[0] || span[1] > bytes)
      return base_fail(sink, STELE_FAILED, "an expression of the tokenizer matches backwards");
    *out_found = true;
    *out_begin = span[0];
    *out_end = span[1];
    return STELE_OK;
  }
}

/* ---- a split ---------------------------------------------------------------------------- */

/* What a behaviour makes of the stretches of a piece, each a match or between matches. */
typedef struct cutter {
  base_buffer *out; /* text_piece */
  uint32_t behavior, base;
  bool invert;
  text_piece open; /* the stretch that may still grow */
  bool has_open, open_matched, last_matched;
} cutter;

static void cut_flush(cutter *c) {
  if (c->has_open && c->open.end > c->open.begin)
    base_buffer_append(c->out, &c->open, sizeof c->open);
  c->has_open = false;
}

static void cut_add(cutter *c, size_t begin, size_t end, bool matched) {
  matched ^= c->invert;
  text_piece piece = {c->base + (uint32_t)begin, c->base + (uint32_t)end};
  bool join = false;
  switch (c->behavior) {
    case TEXT_MERGED_WITH_PREVIOUS:
      join = matched && !c->last_matched;
      break;
    case TEXT_MERGED_WITH_NEXT:
      join = c->has_open && c->open_matched && !matched;
      break;
    case TEXT_CONTIGUOUS:
      join = matched == c->last_matched;
      break;
    default:
      break;
  }
  if (join && c->has_open) {
    c->open.end = piece.end;
  } else {
    cut_flush(c);
    c->open = piece;
    c->has_open = c->behavior != TEXT_REMOVED || !matched;
  }
  c->open_matched = matched;
  c->last_matched = matched;
}

static stele_status split_piece(matcher *m, const step *s, const uint8_t *text, text_piece piece,
                                base_buffer *out, stele_sink *sink) {
  const uint8_t *part = text + piece.begin;
  size_t bytes = piece.end - piece.begin, from = 0, done = 0;
  cutter c = {.out = out, .behavior = s->behavior, .base = piece.begin, .invert = s->invert};
  bool matched_before = false;
  while (from <= bytes) {
    bool found;
    size_t begin, end;
    BASE_TRY(match(m, part, bytes, from, sink, &found, &begin, &end));
    if (!found) break;
    if (begin == end && matched_before && begin == done) {
      /* An empty match right behind a match does not count: look one character on. */
      if (from == bytes) break;
      do from++;
      while (from < bytes && (part[from] & 0xC0) == 0x80);
      continue;
    }
    if (done != begin) cut_add(&c, done, begin, false);
    cut_add(&c, begin, end, true);
    from = done = end;
    matched_before = true;
  }
  if (done != bytes) cut_add(&c, done, bytes, false);
  cut_flush(&c);
  return STELE_OK;
}

/* ---- the steps -------------------------------------------------------------------------- */

/* Appends a piece with a space in front if it has none. */
static void prefix_space(const uint8_t *text, size_t bytes, base_buffer *out) {
  if (text[0] != ' ') base_buffer_append(out, " ", 1);
  base_buffer_append(out, text, bytes);
}

/* Appends a piece with its spaces replaced, and one in front if it has none and should. */
static void metaspace(const step *s, const uint8_t *text, size_t bytes, bool first,
                      base_buffer *out) {
  bool wanted = s->behavior == TEXT_PREPEND_ALWAYS || (s->behavior == TEXT_PREPEND_FIRST && first);
  bool there = text[0] == ' ' || (bytes >= s->bytes && memcmp(text, s->text, s->bytes) == 0);
  text_replacement spaces = {(const uint8_t *)" ", 1, s->text, s->bytes};
  if (wanted && !there) base_buffer_append(out, s->text, s->bytes);
  if (!text_replace(&spaces, text, bytes, TEXT_MAX_NORMAL, out)) out->failed = true;
}

/* Rewrites the pieces of `text` into work->text2, and makes that the text. */
static void rewrite(const step *s, text_work *work, const uint8_t *text, bool first) {
  const text_piece *pieces = (const text_piece *)work->pieces.data;
  size_t count = work->pieces.size / sizeof *pieces;
  work->text2.size = 0;
  work->pieces2.size = 0;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *part = text + pieces[i].begin;
    size_t bytes = pieces[i].end - pieces[i].begin;
    text_piece piece = {(uint32_t)work->text2.size, 0};
    if (s->kind == TEXT_STEP_METASPACE)
      metaspace(s, part, bytes, first && pieces[i].begin == 0, &work->text2);
    else
      prefix_space(part, bytes, &work->text2);
    if (work->text2.size > TEXT_MAX_NORMAL) work->text2.failed = true;
    piece.end = (uint32_t)work->text2.size;
    if (piece.end > piece.begin) base_buffer_append(&work->pieces2, &piece, sizeof piece);
  }
  base_buffer swap = work->text2;
  work->text2 = work->text;
  work->text = swap;
}

stele_status text_split(const text_splitter *splitter, const uint8_t *text, size_t bytes,
                        bool first, text_work *work, stele_sink *sink, const uint8_t **out_text,
                        const text_piece **out_pieces, size_t *out_count) {
  matcher m;
  stele_status status = matcher_init(&m, work, sink);
  text_piece whole = {0, (uint32_t)bytes};
  work->pieces.size = 0;
  if (bytes) base_buffer_append(&work->pieces, &whole, sizeof whole);
  for (size_t i = 0; i < splitter->count && status == STELE_OK; i++) {
    const step *s = &splitter->steps[i];
    const text_piece *pieces = (const text_piece *)work->pieces.data;
    size_t count = work->pieces.size / sizeof *pieces;
    if (s->kind != TEXT_STEP_SPLIT) {
      rewrite(s, work, text, first);
      text = work->text.data;
    } else {
      m.code = s->code;
      work->pieces2.size = 0;
      for (size_t k = 0; k < count && status == STELE_OK; k++)
        status = split_piece(&m, s, text, pieces[k], &work->pieces2, sink);
    }
    if (work->pieces2.failed || work->text.failed) status = STELE_OUT_OF_MEMORY;
    base_buffer swap = work->pieces2;
    work->pieces2 = work->pieces;
    work->pieces = swap;
  }
  matcher_deinit(&m);
  if (status == STELE_OUT_OF_MEMORY || work->pieces.failed)
    return base_fail(sink, STELE_OUT_OF_MEMORY, "no memory to split a text of %zu bytes", bytes);
  if (status != STELE_OK) return status;
  *out_text = text;
  *out_pieces = (const text_piece *)work->pieces.data;
  *out_count = work->pieces.size / sizeof **out_pieces;
  return STELE_OK;
}
