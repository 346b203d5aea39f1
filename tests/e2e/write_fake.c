/* Writes artefacts that need no compiler, for the tests of the command line:
 *
 *   write_fake FILE                  what an honest one is
 *   write_fake FILE features BITS    one that needs processor features */
#include <stdlib.h>
#include <string.h>

#include "fake_artifact.h"

int main(int argc, char **argv) {
  if (argc != 2 && argc != 4) return 2;
  fake_config config = fake_default();
  if (argc == 4 && strcmp(argv[2], "features") == 0)
    config.features[0] = strtoull(argv[3], NULL, 0);
  return fake_write(argv[1], &config);
}
