/* Packs one weight: rows in pieces, shared by several threads, straight from the mapped file into
 * the target's layout, or put together on the way where a tensor holds them otherwise. Pages of the
 * file that have been packed are given back at once, so that a compile's memory does not grow with
 * the model. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "artifact/artifact.h"
#include "frontend/frontend.h"
#include "weights/weights.h"

#define PIECE_BYTES ((size_t)1 << 20) /* of the file, about, that a thread takes at a time */
#define MAX_THREADS 64u

void artifact_forget(const void *data, size_t bytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)data;
  uintptr_t end = (begin + bytes) / page * page;
  begin = base_align(begin, page);
  if (begin < end) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* One weight being packed by several threads. */
typedef struct packing {
  const artifact_source *source;
  const fe_weight *from;
  const stele_program_weight *to;
  uint8_t *out;
  size_t row_bytes;
  uint64_t rows; /* of one matrix; there may be many, one behind the other */
  uint64_t matrix_bytes;
  uint64_t piece;            /* rows, of one matrix */
  atomic_uint_fast64_t next; /* piece */
  atomic_int failed;
} packing;

typedef struct packer {
  packing *packing;
  pthread_t thread;
  stele_sink sink;
  stele_status status;
} packer;

/* The target takes plain float32 where the file may have something else: norms, biases. */
static void decode_rows(const packing *p, uint64_t first, uint64_t count, const uint8_t *data) {
  float *out = (float *)(void *)p->out + first * p->from->columns;
  for (uint64_t row = 0; row < count; row++, out += p->from->columns)
    weights_decode(p->from->scheme, data + row * p->row_bytes, p->from->columns, out);
}

/* Rows [first, first + count), of one matrix. */
static stele_status pack_data(const packing *p, uint64_t first, uint64_t count, const uint8_t *data,
                              stele_sink *sink) {
  const stele_target *target = p->source->target;
  if (p->to->scheme != p->from->scheme)
    decode_rows(p, first, count, data);
  else if (p->to->rows == 1 && p->to->layout == 0)
    memcpy(p->out, data, p->row_bytes);
  else
    return target->pack(p->source->target_self, p->to->scheme, p->to->layout, p->rows,
                        p->to->columns, first % p->rows, count, data,
                        p->out + first / p->rows * p->matrix_bytes, sink);
  return STELE_OK;
}

/* Gives back what lies in the file as it is; what is put together number by number is given back
 * when all of the weight is done. */
static void forget_rows(const packing *p, uint64_t first, uint64_t count) {
  uint64_t run;
  for (uint64_t end = first + count; first < end; first += run) {
    const uint8_t *data = fe_weight_run(p->from, first, &run);
    if (!data) return;
    run = base_min(run, end - first);
    artifact_forget(data, run * p->row_bytes);
  }
}

static stele_status pack_rows(const packing *p, uint64_t first, uint64_t count, uint8_t *buffer,
                              stele_sink *sink) {
  const uint8_t *data = fe_weight_rows(p->from, first, count, buffer);
  stele_status status = pack_data(p, first, count, data, sink);
  forget_rows(p, first, count);
  return status;
}

/* Room for the rows of a piece, where they must be put together; at least one byte. */
static uint8_t *piece_buffer(const packing *p) {
  bool whole = p->from->data != NULL;
  size_t rows = (size_t)base_min(p->piece, p->from->rows);
  return malloc(whole ? 1 : rows * p->row_bytes);
}

static void *pack_pieces(void *data) {
  packer *self = data;
  packing *p = self->packing;
  uint8_t *buffer = piece_buffer(p);
  if (!buffer) {
    self->status = base_fail(&self->sink, STELE_OUT_OF_MEMORY, "out of memory");
    atomic_store(&p->failed, 1);
  }
  while (!atomic_load(&p->failed)) {
    uint64_t pieces = (p->rows + p->piece - 1) / p->piece, next = atomic_fetch_add(&p->next, 1);
    uint64_t begin = next % pieces * p->piece, first = next / pieces * p->rows + begin;
    if (first >= p->from->rows) break;
    uint64_t count = base_min(p->piece, p->rows - begin);
    self->status = pack_rows(p, first, count, buffer, &self->sink);
    if (self->status != STELE_OK) atomic_store(&p->failed, 1);
  }
  free(buffer);
  return NULL;
}

/* The calling thread works too; threads that cannot be had are done without. */
static stele_status run_packers(packing *p, uint32_t threads, stele_sink *sink) {
  uint64_t pieces = (p->rows + p->piece - 1) / p->piece * (p->from->rows / p->rows);
  uint32_t count = (uint32_t)base_min(base_min(base_max(threads, 1), pieces), MAX_THREADS);
  packer *packers = calloc(count, sizeof *packers);
  if (!packers) return base_fail(sink, STELE_OUT_OF_MEMORY, "out of memory");
  uint32_t started = 1;
  for (uint32_t i = 0; i < count; i++) packers[i].packing = p;
  for (; started < count; started++)
    if (pthread_create(&packers[started].thread, NULL, pack_pieces, &packers[started]) != 0) break;
  pack_pieces(&packers[0]);
  for (uint32_t i = 1; i < started; i++) pthread_join(packers[i].thread, NULL);
  stele_status status = STELE_OK;
  for (uint32_t i = 0; i < started && status == STELE_OK; i++)
    if (packers[i].status != STELE_OK)
      status = base_fail(sink, packers[i].status, "%s", packers[i].sink.text);
  free(packers);
  return status;
}

static const fe_weight *find_weight(const fe_model *model, const char *name) {
  for (uint32_t i = 0; i < model->weight_count; i++)
    if (strcmp(model->weights[i].name, name) == 0) return &model->weights[i];
  return NULL;
}

/* True when weight i is a rope table, whose rows are computed here. */
static bool fill_rope(const artifact_source *source, uint32_t i, uint8_t *out) {
  const stele_program *program = source->program;
  for (uint32_t r = 0; r < program->ropes.count && r < source->model->rope_count; r++) {
    if (stele_program_ropes(program, r)->weight != (int32_t)i) continue;
    const stele_program_weight *weight = stele_program_weights(program, i);
    for (uint64_t row = 0; row < weight->rows; row++)
      artifact_rope_row(&source->model->ropes[r], row,
                        (float *)(void *)out + row * weight->columns);
    return true;
  }
  return false;
}

static stele_status start(const artifact_source *source, const stele_program_weight *to,
                          const char *name, stele_sink *sink, packing *out) {
  stele_target_traits traits;
  size_t decoded;
  const fe_weight *from = find_weight(source->model, name);
  if (!from)
    return base_fail(sink, STELE_NOT_FOUND, "'%s': no tensor '%s', which the program reads",
                     source->model->path, name);
  bool decode = from->scheme != to->scheme;
  if (from->rows != to->rows || from->columns != to->columns ||
      !weights_row_bytes(from->scheme, from->columns, &out->row_bytes) ||
      (decode && (to->scheme != STELE_F32 || !weights_row_bytes(STELE_F32, to->columns, &decoded) ||
                  decoded * to->rows > to->bytes)))
    return base_fail(sink, STELE_MISMATCH,
                     "tensor '%s' has %llu x %llu numbers, the program expects %llu x %llu", name,
                     (unsigned long long)from->rows, (unsigned long long)from->columns,
                     (unsigned long long)to->rows, (unsigned long long)to->columns);
  source->target->traits(source->target_self, &traits);
  uint64_t align = base_max(traits.row_align, 1);
  out->rows = to->rows / base_max(to->experts, 1);
  out->matrix_bytes = to->bytes / base_max(to->experts, 1);
  out->piece = base_align(base_max(PIECE_BYTES / base_max(out->row_bytes, 1), 1), align);
  out->source = source;
  out->from = from;
  out->to = to;
  return STELE_OK;
}

stele_status artifact_pack_weight(const artifact_source *source, uint32_t i, stele_sink *sink,
                                  uint8_t *out) {
  if (fill_rope(source, i, out)) return STELE_OK;
  const stele_program_weight *to = stele_program_weights(source->program, i);
  packing p = {.out = out};
  BASE_TRY(start(source, to, stele_program_strings(source->program, to->name), sink, &p));
  stele_status status = run_packers(&p, source->threads, sink);
  for (uint32_t part = 0; part < p.from->part_count; part++)
    artifact_forget(p.from->parts[part]->data, p.from->parts[part]->bytes);
  return status;
}
