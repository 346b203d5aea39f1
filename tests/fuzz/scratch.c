/* The scratch directory is one a process: libFuzzer's workers are processes of their own. */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[64];

static void clean(void) {
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", directory);
  if (system(command) != 0) fputs("cannot remove the scratch directory\n", stderr);
}

const char *scratch_directory(void) {
  if (directory[0]) return directory;
  snprintf(directory, sizeof directory, "/tmp/stele-fuzz-XXXXXX");
  if (!mkdtemp(directory)) abort();
  atexit(clean);
  return directory;
}

void scratch_write(const char *name, const uint8_t *data, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", scratch_directory(), name);
  unlink(path);
  FILE *file = size ? fopen(path, "w") : NULL;
  if (!file) return;
  fwrite(data, 1, size, file);
  fclose(file);
}
