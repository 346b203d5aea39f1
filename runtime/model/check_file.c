/* The bytes of an artefact, checked before any of its code is mapped for running. A damaged or
 * foreign file must end in a message here and never in the dynamic loader: the trailer (magic,
 * version, its own hash, processor), then the sizes it promises against the file's, then the code's
 * hash, then the ELF header and program headers within the code's bytes.
 *
 * Format: artifact.h for the trailer; System V ABI, chapter 4 (object files) and 5 (program
 * loading) for ELF. */
#include <elf.h>
#include <inttypes.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "model/model.h"

#define TRAILER_BYTES sizeof(stele_trailer)
#define SEARCH_BYTES ((size_t)64 << 20) /* how far a file without a trailer is searched */

uint32_t model_host_machine(void) {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__riscv)
  return EM_RISCV;
#else
  return EM_NONE;
#endif
}

const char *model_machine_name(uint32_t machine) {
  switch (machine) {
    case EM_386:
      return "x86";
    case EM_X86_64:
      return "x86-64";
    case EM_ARM:
      return "arm";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "riscv";
    case EM_PPC64:
      return "powerpc64";
    case EM_S390:
      return "s390";
    default:
      return "an unknown processor";
  }
}

/* `strip` and truncated copies both take the end of the file away; the name of the query function
 * tells them from a file that never was an artefact. */
static stele_status no_trailer(const uint8_t *data, size_t size, const char *name,
                               stele_sink *sink) {
  static const char query[] = STELE_ARTIFACT_QUERY;
  bool elf = size >= SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0;
  if (elf && memmem(data, base_min(size, SEARCH_BYTES), query, sizeof query - 1))
    return base_fail(sink, STELE_BAD_FORMAT,
                     "'%s' was stripped of its weights or cut short: it holds the code of an "
                     "artefact, but its last %zu bytes are not an artefact's trailer",
                     name, TRAILER_BYTES);
  return base_fail(sink, STELE_BAD_FORMAT,
                   "'%s' is not an artefact: its last %zu bytes are no trailer", name,
                   TRAILER_BYTES);
}

static stele_status check_trailer(const uint8_t *data, size_t size, const char *name,
                                  uint32_t machine, stele_sink *sink, stele_trailer *out) {
  stele_trailer t;
  if (size < TRAILER_BYTES) return no_trailer(data, size, name, sink);
  memcpy(&t, data + size - TRAILER_BYTES, TRAILER_BYTES);
  if (memcmp(t.magic, STELE_ARTIFACT_MAGIC, sizeof t.magic) != 0)
    return no_trailer(data, size, name, sink);
  if (t.abi != STELE_ARTIFACT_ABI)
    return base_fail(sink, STELE_MISMATCH,
                     "'%s' follows version %" PRIu32
                     " of the artefact format, this library reads version %u: compile it again",
                     name, t.abi, STELE_ARTIFACT_ABI);
  uint64_t hash = XXH3_64bits(&t, offsetof(stele_trailer, self_hash));
  if (hash != t.self_hash)
    return base_fail(sink, STELE_BAD_FORMAT,
                     "the trailer of '%s' is damaged: its hash is %016" PRIx64 ", %016" PRIx64
                     " was expected",
                     name, hash, t.self_hash);
  if (t.machine != machine)
    return base_fail(
        sink, STELE_MISMATCH, "'%s' is for %s (%" PRIu32 "), this machine is %s (%" PRIu32 ")",
        name, model_machine_name(t.machine), t.machine, model_machine_name(machine), machine);
  *out = t;
  return STELE_OK;
}

/* Zero padding may follow each part, up to the alignment. */
static stele_status check_sizes(const stele_trailer *t, uint64_t size, const char *name,
                                stele_sink *sink) {
  uint64_t room = size - TRAILER_BYTES;
  bool inside = t->weights_offset != 0;
  if (t->code_bytes > room || (inside && t->code_bytes > t->weights_offset))
    return base_fail(sink, STELE_BAD_FORMAT,
                     "'%s' is cut short: it should hold %" PRIu64
                     " bytes of code, the file has %" PRIu64 " bytes in all",
                     name, t->code_bytes, size);
  if (inside && t->weights_offset % STELE_ARTIFACT_ALIGN)
    return base_fail(sink, STELE_BAD_FORMAT,
                     "the weights of '%s' begin at byte %" PRIu64 ", a multiple of %u was expected",
                     name, t->weights_offset, STELE_ARTIFACT_ALIGN);
  uint64_t begin = inside ? t->weights_offset : t->code_bytes;
  uint64_t bytes = inside ? t->weights_bytes : 0;
  if (begin > room || bytes > room - begin)
    return base_fail(sink, STELE_BAD_FORMAT,
                     "'%s' was stripped of its weights: they should be %" PRIu64
                     " bytes from byte %" PRIu64 " on, the file has %" PRIu64 " bytes in all",
                     name, bytes, begin, size);
  if (room - begin - bytes >= STELE_ARTIFACT_ALIGN)
    return base_fail(sink, STELE_BAD_FORMAT,
                     "'%s' has %" PRIu64 " bytes, at most %" PRIu64 " were expected", name, size,
                     begin + bytes + TRAILER_BYTES + STELE_ARTIFACT_ALIGN - 1);
  return STELE_OK;
}

static stele_status bad_elf(const char *name, const char *what, stele_sink *sink) {
  return base_fail(sink, STELE_BAD_FORMAT, "the code of '%s' is damaged: %s", name, what);
}

static stele_status check_segments(const uint8_t *data, const Elf64_Ehdr *elf, uint64_t bytes,
                                   const char *name, stele_sink *sink) {
  bool loaded = false;
  for (size_t i = 0; i < elf->e_phnum; i++) {
    Elf64_Phdr segment;
    memcpy(&segment, data + elf->e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_offset > bytes || segment.p_filesz > bytes - segment.p_offset)
      return bad_elf(name, "a segment lies outside of it", sink);
    if (segment.p_type == PT_LOAD) loaded = true;
  }
  return loaded ? STELE_OK : bad_elf(name, "it has no segment to load", sink);
}

static stele_status check_elf(const uint8_t *data, const stele_trailer *t, const char *name,
                              stele_sink *sink) {
  Elf64_Ehdr elf;
  if (t->code_bytes < sizeof elf) return bad_elf(name, "it is shorter than an ELF header", sink);
  memcpy(&elf, data, sizeof elf);
  if (memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) return bad_elf(name, "it is not ELF", sink);
  if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_ident[EI_DATA] != ELFDATA2LSB)
    return bad_elf(name, "it is not 64-bit little-endian ELF", sink);
  if (elf.e_type != ET_DYN) return bad_elf(name, "it is not a shared object", sink);
  if (elf.e_machine != t->machine)
    return base_fail(sink, STELE_MISMATCH, "the code of '%s' is for %s, its trailer says %s", name,
                     model_machine_name(elf.e_machine), model_machine_name(t->machine));
  if (elf.e_phentsize != sizeof(Elf64_Phdr) || elf.e_phoff > t->code_bytes ||
      elf.e_phnum > (t->code_bytes - elf.e_phoff) / sizeof(Elf64_Phdr))
    return bad_elf(name, "its program headers lie outside of it", sink);
  return check_segments(data, &elf, t->code_bytes, name, sink);
}

stele_status model_check_file(const uint8_t *data, size_t size, const char *name, uint32_t machine,
                              stele_sink *sink, stele_trailer *out_trailer) {
  stele_trailer t;
  BASE_TRY(check_trailer(data, size, name, machine, sink, &t));
  BASE_TRY(check_sizes(&t, size, name, sink));
  uint64_t hash = XXH3_64bits(data, (size_t)t.code_bytes);
  if (hash != t.code_hash)
    return base_fail(sink, STELE_BAD_FORMAT,
                     "the code of '%s' is damaged: its hash is %016" PRIx64 ", %016" PRIx64
                     " was expected",
                     name, hash, t.code_hash);
  BASE_TRY(check_elf(data, &t, name, sink));
  *out_trailer = t;
  return STELE_OK;
}
