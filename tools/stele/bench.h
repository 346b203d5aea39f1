/* Shared by the files of `stele bench`: its arguments, and what a measurement works with. */
#ifndef STELE_BENCH_H
#define STELE_BENCH_H

#include "cli.h"

typedef struct bench_arguments {
  uint32_t prompt, tokens, depth, threads, repetitions, cache;
  bool json, profile;
} bench_arguments;

typedef struct bench_state {
  const cli_command *self;
  const bench_arguments *arguments;
  const stele_model *model;
  stele_session *session;
  int32_t *ids; /* what is fed: any valid ids will do */
  uint32_t capacity;
  uint64_t read_bytes; /* weights that one decode step reads */
  double read_bytes_per_second;
} bench_state;

/* An empty cache, then the tokens that --n-depth asks for. */
stele_status bench_fill(bench_state *state, stele_sink *sink);
/* The middle of count numbers, which are put in order. */
double bench_median(double *values, size_t count);

/* Where the time of a prefill of `prompt` tokens and of `tokens` decode steps goes (profile.c); 0:
 * that one is not measured. Prints what it found. */
int bench_profile(bench_state *state, uint32_t prompt, uint32_t tokens);

#endif
