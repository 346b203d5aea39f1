/* A processor family without instructions that are emulated. */
#include "emulate.h"

uint64_t emulate_install(void) { return 0; }
