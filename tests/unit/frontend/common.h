/* What the front-end's tests share: a scratch directory, and looking for words in messages. */
#ifndef STELE_FRONTEND_TEST_H
#define STELE_FRONTEND_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontend/frontend.h"

/* A fresh directory for a test, removed with all that is in it by remove_directory. */
void make_directory(char path[64]);
void remove_directory(const char *path);

/* "directory/name"; the result is overwritten by the fourth call after. */
const char *in(const char *directory, const char *name);
void write_text(const char *path, const char *text);

/* The message must hold every one of the words, NULL at the end. */
void expect_words(const stele_sink *sink, ...);
#define EXPECT_WORDS(sink, ...) expect_words(sink, __VA_ARGS__, (char *)NULL)

/* Opening must fail with that code. */
void expect_open_fails(const char *path, stele_status code, stele_sink *sink);

#endif
