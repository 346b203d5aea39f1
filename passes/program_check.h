/* Shared by the files of program_check. */
#ifndef STELE_PASSES_PROGRAM_CHECK_H
#define STELE_PASSES_PROGRAM_CHECK_H

#include "passes.h"

typedef struct program_checker {
  const stele_program *program;
  stele_sink *sink;
  uint32_t faults;
  uint32_t step, op; /* at hand, for messages */
} program_checker;

/* Notes a fault of the op at hand. */
void program_fault(program_checker *checker, const char *format, ...) STELE_PRINTF(2, 3);

/* Sizes of what an op reads and writes; its indices have been checked. */
void program_check_shapes(program_checker *checker, const stele_program_step *step,
                          const stele_op *op);

/* Finds ops of a step that touch memory which other workers may be writing, with no barrier
 * between. The step's ops have been checked. False: no memory. */
bool program_check_races(program_checker *checker, const stele_program_step *step);

#endif
