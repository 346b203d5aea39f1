/* Writes a fake artefact for tests that run programs: write_fake PATH [NAME=NUMBER]... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_artifact.h"

static int set(fake_config *c, const char *name, size_t length, unsigned long value) {
  struct {
    const char *name;
    uint32_t *field;
  } const fields[] = {{"seed", &c->seed},           {"capacity", &c->capacity},
                      {"max_lanes", &c->max_lanes}, {"prefill", &c->prefill_width},
                      {"workers", &c->max_workers}, {"outputs", &c->outputs},
                      {"rope", &c->rope_rule},      {"verify", &c->verify_width},
                      {"period", &c->period}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (strlen(fields[i].name) == length && strncmp(fields[i].name, name, length) == 0) {
      *fields[i].field = (uint32_t)value;
      return 1;
    }
  return 0;
}

int main(int argc, char **argv) {
  fake_config config = fake_default();
  if (argc < 2) return fprintf(stderr, "usage: write_fake PATH [NAME=NUMBER]...\n"), 2;
  for (int i = 2; i < argc; i++) {
    const char *equals = strchr(argv[i], '=');
    if (!equals ||
        !set(&config, argv[i], (size_t)(equals - argv[i]), strtoul(equals + 1, NULL, 10)))
      return fprintf(stderr, "write_fake: '%s' is not understood\n", argv[i]), 2;
  }
  if (fake_write(argv[1], &config) != 0) return fprintf(stderr, "cannot write '%s'\n", argv[1]), 1;
  return 0;
}
