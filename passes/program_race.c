/* program_check: workers in each other's way. Everything that the ops since the last barrier read
 * or wrote is kept as ranges of the workspace (and one range per layer for its pages); an op whose
 * own accesses overlap one of them, one of the two a write, is a fault, unless both ops split the
 * same rows among the workers in the same way or the memory is each worker's own. */
#include <stdlib.h>

#include "program_check.h"

#define PAGES (1ull << 62) /* ranges from here on are the layers' pages, one number each */

typedef enum split {                 /* how an op's accesses are shared out */
                     SPLIT_OWN,      /* as no other op does it */
                     SPLIT_TOKENS,   /* by tokens */
                     SPLIT_KV_HEADS, /* by heads of the cache */
                     SPLIT_PRIVATE   /* each worker has its own copy */
} split;

typedef struct access {
  uint64_t begin, end;
  uint32_t op, tokens;
  int32_t buffer; /* -1: pages */
  uint8_t split;
  bool write;
} access;

typedef struct race {
  program_checker *checker;
  access *list; /* since the last barrier */
  size_t count, capacity;
  bool failed;
} race;

static bool overlap(const access *a, const access *b) {
  return (a->write || b->write) && a->op != b->op && a->begin < b->end && b->begin < a->end;
}

static bool agree(const access *a, const access *b) {
  return a->split != SPLIT_OWN && a->split == b->split && a->tokens == b->tokens &&
         a->buffer == b->buffer;
}

static void check_and_keep(race *r, access a) {
  for (size_t i = 0; i < r->count; i++)
    if (overlap(&r->list[i], &a) && !agree(&r->list[i], &a)) {
      program_fault(r->checker, "%s what op %u %s, with no barrier between",
                    a.write ? "overwrites" : "reads", r->list[i].op,
                    r->list[i].write ? "writes" : "still reads");
      break;
    }
  if (r->count == r->capacity) {
    size_t capacity = r->capacity ? 2 * r->capacity : 64;
    access *list = realloc(r->list, capacity * sizeof *list);
    if (!list) {
      r->failed = true;
      return;
    }
    r->list = list;
    r->capacity = capacity;
  }
  r->list[r->count++] = a;
}

static void touch(race *r, const stele_op *op, int32_t buffer, split how, bool write) {
  if (buffer < 0) return;
  const stele_program *p = r->checker->program;
  const stele_buffer *b = stele_program_buffers(p, (uint64_t)buffer);
  uint64_t bytes = b->bytes * (b->per_worker ? p->max_workers : 1);
  check_and_keep(r, (access){b->offset, b->offset + bytes, r->checker->op, op->tokens, buffer,
                             b->per_worker ? SPLIT_PRIVATE : (uint8_t)how, write});
}

static void touch_pages(race *r, const stele_op *op, bool write) {
  uint64_t at = PAGES + (uint64_t)op->layer;
  check_and_keep(r, (access){at, at + 1, r->checker->op, op->tokens, -1, SPLIT_OWN, write});
}

static split split_of(uint32_t kind) {
  switch (kind) {
    case STELE_OP_EMBED:
    case STELE_OP_RMS_NORM:
    case STELE_OP_LAYER_NORM:
    case STELE_OP_POSITION_EMBED:
    case STELE_OP_PREPARE:
    case STELE_OP_CONCAT:
    case STELE_OP_ROPE:
    case STELE_OP_ACTIVATION:
    case STELE_OP_MUL:
    case STELE_OP_ADD:
    case STELE_OP_SCALE:
    case STELE_OP_SOFT_CAP:
    case STELE_OP_ROUTE:
    case STELE_OP_LAST_TOKEN:
    case STELE_OP_ARGMAX:
    case STELE_OP_OUTPUT:
    case STELE_OP_OUTPUT_TOKEN:
      return SPLIT_TOKENS;
    default:
      return SPLIT_OWN;
  }
}

/* The stage is written head by head, and so it is stored. */
static split split_of_stage(uint32_t kind) {
  return kind == STELE_OP_CACHE_UPDATE || kind == STELE_OP_CACHE_STORE ? SPLIT_KV_HEADS : SPLIT_OWN;
}

static void touch_cache(race *r, const stele_op *op) {
  bool staged = op->flags & STELE_FLAG_STAGED;
  switch (op->kind) {
    case STELE_OP_QKV_CACHE:
    case STELE_OP_CACHE_UPDATE:
      if (staged) touch(r, op, op->stage, split_of_stage(op->kind), true);
      /* Staged ones read the slots that were filled before, head by head like the store. */
      if (!staged) touch_pages(r, op, true);
      break;
    case STELE_OP_ATTENTION:
    case STELE_OP_ATTENTION_PARTIAL:
      touch_pages(r, op, false);
      if (staged) touch(r, op, op->stage, SPLIT_OWN, false);
      break;
    case STELE_OP_CACHE_STORE:
      touch(r, op, op->stage, SPLIT_KV_HEADS, false);
      touch_pages(r, op, true);
      break;
    default:
      break;
  }
}

static void run_op(race *r, const stele_op *op) {
  split how = split_of(op->kind);
  if (op->barrier) r->count = 0;
  touch(r, op, op->in[0], how, false);
  touch(r, op, op->in[1], how, false);
  touch(r, op, op->prepared, SPLIT_PRIVATE, true);
  touch(r, op, op->scratch, SPLIT_OWN, true);
  touch_cache(r, op);
  if (op->kind == STELE_OP_LINEAR_ARGMAX) r->count = 0; /* they meet before the choice */
  touch(r, op, op->out, how, true);
  if (op->kind == STELE_OP_LINEAR_ARGMAX) touch(r, op, op->scratch, SPLIT_OWN, false);
}

bool program_check_races(program_checker *checker, const stele_program_step *step) {
  race r = {.checker = checker};
  for (uint32_t i = 0; i < step->op_count; i++) {
    checker->op = step->first_op + i;
    run_op(&r, stele_program_ops(checker->program, checker->op));
  }
  free(r.list);
  return !r.failed;
}
