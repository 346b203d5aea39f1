/* Where the allocator can't be interposed (another libc, or a sanitizer that does it already)
 * allocations are unknown. */
#include "cli.h"

bool cli_allocations_known(void) { return false; }
void cli_allocations_count(bool on) { (void)on; }
uint64_t cli_allocations(void) { return 0; }
