/* Opening artefacts: good ones, foreign ones, damaged ones in every way; variants by features;
 * weights in the file and beside it; two models in one process. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/model.h"
#include "testing.h"

/* Opens, expecting failure, and returns the message. */
static const char *fails(const char *path, stele_status expected) {
  static stele_sink why;
  stele_model *model = NULL;
  why.text[0] = 0;
  stele_status status = stele_model_open(path, NULL, &why, &model);
  if (status != expected) fail_msg("status %d, %d expected: %s", status, expected, why.text);
  assert_null(model);
  assert_contains(why.text, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
  return why.text;
}

static const char *fails_as_bytes(const void *bytes, size_t size, stele_status expected) {
  const char *path = fake_path("damaged.so");
  assert_int_equal(fake_write_bytes(path, bytes, size), 0);
  return fails(path, expected);
}

static void opens_and_describes(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  uint64_t bytes = 0;
  const uint8_t *weights = stele_model_weights(model, &bytes);
  uint32_t third;
  assert_int_equal(bytes, 97 * 4);
  memcpy(&third, weights + 12, 4);
  assert_int_equal(third, fake_weight(config.seed, 3));
  assert_int_equal((uintptr_t)weights % STELE_ARTIFACT_ALIGN, 0);
  assert_int_equal(stele_model_artifact(model)->capacity, 64);
  assert_string_equal(stele_model_variant(model)->name, "first");
  assert_ok(stele_model_verify(model, sink));
  stele_model_close(model);
  stele_model_close(NULL);
}

static void files_that_are_no_artefacts(void **state) {
  (void)state;
  char nothing[100] = {0};
  stele_sink sink = {0};
  stele_model *model = NULL;
  fails("/nonexistent/model.so", STELE_NOT_FOUND);
  assert_int_equal(stele_model_open(fake_path(""), NULL, &sink, &model), STELE_IO);
  assert_contains(sink.text, "not a regular file");
  assert_contains(fails_as_bytes("", 0, STELE_BAD_FORMAT), "is not an artefact");
  assert_contains(fails_as_bytes(nothing, 100, STELE_BAD_FORMAT), "is not an artefact");
  assert_int_equal(stele_model_open(NULL, NULL, &sink, &model), STELE_INVALID_ARGUMENT);
  const stele_model_options empty = {0};
  assert_int_equal(stele_model_open("x", &empty, &sink, &model), STELE_INVALID_ARGUMENT);
}

static void other_versions_and_machines(void **state) {
  (void)state;
  fake_config config = fake_default();
  size_t size;
  uint8_t *bytes = fake_bytes(&config, &size);
  stele_trailer good = fake_trailer(bytes, size), t = good;
  t.abi = 7;
  fake_set_trailer(bytes, size, t);
  const char *why = fails_as_bytes(bytes, size, STELE_MISMATCH);
  assert_contains(why, "version 7");
  assert_contains(why, "version 1");
  t = good;
  t.machine = good.machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
  fake_set_trailer(bytes, size, t);
  why = fails_as_bytes(bytes, size, STELE_MISMATCH);
  assert_contains(why, model_machine_name(t.machine));
  assert_contains(why, model_machine_name(good.machine));
#ifdef __x86_64__
  assert_contains(why, "is for aarch64 (183), this machine is x86-64 (62)");
#endif
  uint16_t machine = EM_RISCV; /* the ELF part's own word */
  memcpy(bytes + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
  fake_set_trailer(bytes, size, good);
  fake_seal(bytes, size);
  assert_contains(fails_as_bytes(bytes, size, STELE_MISMATCH), "riscv");
  free(bytes);
}

static void stripped_of_weights(void **state) {
  (void)state;
  fake_config config = fake_default();
  size_t size;
  uint8_t *bytes = fake_bytes(&config, &size);
  stele_trailer t = fake_trailer(bytes, size);
  /* what strip leaves: the code alone */
  assert_contains(fails_as_bytes(bytes, (size_t)t.code_bytes, STELE_BAD_FORMAT),
                  "stripped of its weights");
  /* the trailer is there, the weights are not */
  size_t less = (size_t)t.weights_offset + sizeof t;
  memcpy(bytes + t.weights_offset, &t, sizeof t);
  assert_contains(fails_as_bytes(bytes, less, STELE_BAD_FORMAT), "stripped of its weights");
  assert_contains(fails_as_bytes(bytes, less, STELE_BAD_FORMAT), "388 bytes");
  free(bytes);
}

static void truncated_everywhere(void **state) {
  (void)state;
  fake_config config = fake_default();
  size_t size;
  stele_trailer t;
  stele_sink sink;
  uint8_t *bytes = fake_bytes(&config, &size);
  for (size_t cut = 0; cut < size; cut += cut < size - 600 && cut > 200 ? 97 : 1) {
    uint8_t *copy = malloc(cut + 1); /* exact, so that a sanitizer sees a read behind it */
    memcpy(copy, bytes, cut);
    uint8_t *exact = realloc(copy, cut ? cut : 1);
    assert_int_not_equal(model_check_file(exact, cut, "m", model_host_machine(), &sink, &t), 0);
    free(exact);
  }
  assert_int_equal(model_check_file(bytes, size, "m", model_host_machine(), &sink, &t), 0);
  free(bytes);
}

/* Any one bit of the trailer, of the ELF header and of the code is noticed before loading. */
static void flipped_bits(void **state) {
  (void)state;
  fake_config config = fake_default();
  size_t size;
  stele_trailer t;
  stele_sink sink;
  uint8_t *bytes = fake_bytes(&config, &size);
  size_t code = (size_t)fake_trailer(bytes, size).code_bytes;
  for (size_t at = 0; at < size; at++) {
    bool header = at < sizeof(Elf64_Ehdr), trailer = at >= size - sizeof t;
    if (!header && !trailer && (at >= code || at % 509)) continue;
    for (unsigned bit = 0; bit < 8; bit++) {
      bytes[at] ^= (uint8_t)(1u << bit);
      stele_status status = model_check_file(bytes, size, "m", model_host_machine(), &sink, &t);
      if (status == STELE_OK) fail_msg("bit %u of byte %zu went unnoticed", bit, at);
      bytes[at] ^= (uint8_t)(1u << bit);
    }
  }
  free(bytes);
}

/* Headers that lie although every hash is right. */
static void lying_headers(void **state) {
  (void)state;
  static const struct {
    size_t offset, bytes;
    uint64_t value;
    const char *says;
  } lies[] = {
      {0, 1, 'X', "not ELF"},
      {EI_CLASS, 1, ELFCLASS32, "64-bit"},
      {EI_DATA, 1, ELFDATA2MSB, "little-endian"},
      {offsetof(Elf64_Ehdr, e_type), 2, ET_EXEC, "not a shared object"},
      {offsetof(Elf64_Ehdr, e_phentsize), 2, 55, "program headers"},
      {offsetof(Elf64_Ehdr, e_phnum), 2, 65535, "program headers"},
      {offsetof(Elf64_Ehdr, e_phnum), 2, 0, "no segment"},
      {offsetof(Elf64_Ehdr, e_phoff), 8, UINT64_MAX - 8, "program headers"},
      {sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_offset), 8, UINT64_MAX - 8, "segment"},
      {sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz), 8, UINT64_MAX - 8, "segment"},
  };
  fake_config config = fake_default();
  size_t size;
  uint8_t *bytes = fake_bytes(&config, &size), *copy = malloc(size);
  for (size_t i = 0; i < COUNT(lies); i++) {
    memcpy(copy, bytes, size);
    memcpy(copy + lies[i].offset, &lies[i].value, lies[i].bytes);
    fake_seal(copy, size);
    assert_contains(fails_as_bytes(copy, size, STELE_BAD_FORMAT), lies[i].says);
  }
  free(copy);
  free(bytes);
}

static void lying_trailers(void **state) {
  (void)state;
  fake_config config = fake_default();
  size_t size;
  uint8_t *bytes = fake_bytes(&config, &size);
  const stele_trailer good = fake_trailer(bytes, size);
  stele_trailer t = good;
#define LIES(field, value, says)    \
  t = good;                         \
  t.field = value;                  \
  fake_set_trailer(bytes, size, t); \
  assert_contains(fails_as_bytes(bytes, size, STELE_BAD_FORMAT), says)
  LIES(code_bytes, UINT64_MAX, "cut short");
  LIES(code_bytes, 10, "damaged");
  LIES(code_bytes, size, "cut short");
  LIES(weights_offset, good.weights_offset + 8, "multiple of 4096");
  LIES(weights_offset, (uint64_t)1 << 63, "stripped");
  LIES(weights_bytes, UINT64_MAX, "stripped");
  LIES(weights_bytes, good.weights_bytes + 1, "stripped");
  LIES(weights_bytes, good.weights_bytes - 1, "does not describe itself");
  LIES(weights_offset, 0, "place of weights");
  t.code_bytes = 64;
  fake_set_trailer(bytes, size, t);
  assert_contains(fails_as_bytes(bytes, size, STELE_BAD_FORMAT), "at most 4223 were expected");
#undef LIES
  free(bytes);
}

static void lying_artefacts(void **state) {
  (void)state;
  for (uint32_t lie = FAKE_HONEST + 1; lie < FAKE_LIE_COUNT; lie++) {
    fake_config config = fake_default();
    config.lie = lie;
    const char *path = fake_path("liar.so");
    assert_int_equal(fake_write(path, &config), 0);
    bool version = lie == FAKE_LIE_ABI || lie == FAKE_LIE_SILENT;
    fails(path, version ? STELE_MISMATCH : STELE_BAD_FORMAT);
  }
}

static void damaged_weights(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = NULL;
  stele_sink why = {0};
  size_t size;
  uint8_t *bytes = fake_bytes(&config, &size);
  bytes[fake_trailer(bytes, size).weights_offset + 17] ^= 4;
  const char *path = fake_path("weights.so");
  assert_int_equal(fake_write_bytes(path, bytes, size), 0);
  assert_ok(stele_model_open(path, NULL, sink, &model));
  assert_int_equal(stele_model_verify(model, &why), STELE_MISMATCH);
  assert_contains(why.text, "weights of");
  stele_model_close(model);
  free(bytes);
}

static uint8_t *read_file(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  uint8_t *bytes = malloc(4096);
  *out_size = fread(bytes, 1, 4096, file);
  fclose(file);
  return bytes;
}

static void weights_beside(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = NULL;
  stele_sink why = {0};
  char weights[256];
  strcpy(config.weights_file, "beside.weights");
  model = open_fake(&config);
  assert_ok(stele_model_verify(model, sink));
  uint32_t first;
  memcpy(&first, stele_model_weights(model, NULL), 4);
  assert_int_equal(first, fake_weight(config.seed, 0));
  stele_model_close(model);
  strcpy(weights, fake_path("beside.weights"));
  size_t size, begin;
  uint8_t *kept = read_file(weights, &size), *wrong = malloc(size);
  begin = size - sizeof(stele_trailer);
  memcpy(wrong, kept, size);
  wrong[0] ^= 1; /* a damaged weight shows only where all are read */
  assert_int_equal(fake_write_bytes(weights, wrong, size), 0);
  assert_ok(stele_model_open(fake_path("model.so"), NULL, sink, &model));
  assert_int_equal(stele_model_verify(model, &why), STELE_MISMATCH);
  assert_contains(why.text, "weights of 'beside.weights'");
  stele_model_close(model);
  wrong[begin + offsetof(stele_trailer, weights_hash)] ^= 1;
  assert_int_equal(fake_write_bytes(weights, wrong, size), 0);
  assert_contains(fails(fake_path("model.so"), STELE_MISMATCH), "weights of another artefact");
  assert_int_equal(fake_write_bytes(weights, kept, 100), 0);
  assert_contains(fails(fake_path("model.so"), STELE_MISMATCH), "100 bytes");
  free(wrong);
  free(kept);
  unlink(weights);
  assert_contains(fails(fake_path("model.so"), STELE_NOT_FOUND), "beside.weights");
}

static void variants_by_features(void **state) {
  (void)state;
  fake_config config = fake_default();
  uint64_t machine = stele_machine_features();
  config.variant_count = 2;
  config.features[0] = STELE_FEATURE_AVX2 | (uint64_t)1 << 40; /* nobody has that */
  stele_model *model = open_fake(&config);
  assert_string_equal(stele_model_variant(model)->name, "second");
  stele_model_close(model);
  config.features[1] = (uint64_t)1 << 40;
  assert_int_equal(fake_write(fake_path("model.so"), &config), 0);
  assert_contains(fails(fake_path("model.so"), STELE_UNSUPPORTED), "does not know");
  if (!(machine & STELE_FEATURE_AVX2)) return;
  config.variant_count = 1;
  config.features[0] = STELE_FEATURE_AVX2;
  model = open_fake(&config);
  stele_model_close(model);
  model = NULL;
  stele_sink why = {0};
  const stele_model_options options = {.struct_bytes = sizeof options,
                                       .disable_features = STELE_FEATURE_AVX2};
  assert_int_equal(stele_model_open(fake_path("model.so"), &options, &why, &model),
                   STELE_UNSUPPORTED);
  assert_contains(why.text, "needs avx2");
  assert_contains(why.text, "first");
  setenv("STELE_DISABLE_FEATURES", "avx512_vnni,avx2", 1);
  assert_contains(fails(fake_path("model.so"), STELE_UNSUPPORTED), "needs avx2");
  setenv("STELE_DISABLE_FEATURES", "avx,amx,", 1);
  assert_ok(stele_model_open(fake_path("model.so"), NULL, sink, &model));
  stele_model_close(model);
  unsetenv("STELE_DISABLE_FEATURES");
  config.features[0] = STELE_FEATURE_AVX2 | STELE_FEATURE_AVX512 | STELE_FEATURE_VNNI;
  if ((machine & config.features[0]) == config.features[0]) return;
  assert_int_equal(fake_write(fake_path("model.so"), &config), 0);
  assert_contains(fails(fake_path("model.so"), STELE_UNSUPPORTED), "avx512_vnni");
}

/* A processor may have AMX and a system may refuse it: then the next variant runs, or the error
 * says so. A system without AMX refuses it too, so what the processor has is pretended. */
static void variants_by_permission(void **state) {
  (void)state;
  const uint64_t amx = STELE_FEATURE_AVX2 | STELE_FEATURE_AMX;
  stele_variant variants[] = {{.name = "tiles", .features = amx},
                              {.name = "vectors", .features = STELE_FEATURE_AVX2}};
  stele_artifact artifact = {.variants = variants, .variant_count = 2};
  const stele_variant *chosen = NULL;
  bool refused = !base_enable_features(STELE_FEATURE_AMX);
  assert_ok(model_choose_variant(&artifact, amx, "a.so", sink, &chosen));
  assert_string_equal(chosen->name, refused ? "vectors" : "tiles");
  assert_ok(model_choose_variant(&artifact, STELE_FEATURE_AVX2, "a.so", sink, &chosen));
  assert_string_equal(chosen->name, "vectors");
  artifact.variant_count = 1;
  stele_sink why = {0};
  assert_int_equal(
      model_choose_variant(&artifact, refused ? amx : STELE_FEATURE_AVX2, "a.so", &why, &chosen),
      STELE_UNSUPPORTED);
  assert_contains(why.text, "'a.so' needs amx");
}

/* The kernel's list of flags is another reading of the same processor. */
static void features_agree_with_the_system(void **state) {
  (void)state;
  static const struct {
    uint64_t bit;
    const char *flag;
  } flags[] = {{STELE_FEATURE_AVX2, " avx2 "},
               {STELE_FEATURE_AVX512, " avx512vl "},
               {STELE_FEATURE_VNNI, " avx512_vnni "},
               {STELE_FEATURE_AVX_VNNI, " avx_vnni "},
               {STELE_FEATURE_AMX, " amx_int8 "}};
  char line[8192];
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, "flags", 5) == 0) {
      line[strcspn(line, "\n")] = ' ';
      for (size_t i = 0; i < COUNT(flags); i++)
        assert_int_equal(strstr(line, flags[i].flag) != NULL,
                         (stele_machine_features() & flags[i].bit) != 0);
      break;
    }
  if (file) fclose(file);
}

static int32_t next_of(stele_model *model, const int32_t *ids, uint32_t count) {
  stele_session *s = create_session(model, 1, 1, STELE_CACHE_DYNAMIC);
  int32_t token;
  assert_ok(stele_session_feed(s, 0, ids, count, STELE_OUTPUT_TOKEN, &token, sink));
  stele_session_destroy(s);
  return token;
}

static void two_models_never_meet(void **state) {
  (void)state;
  fake_config one = fake_default(), two = fake_default();
  two.seed = 2;
  two.capacity = 65;
  int32_t ids[9];
  fill_ids(ids, 9, 4, 97);
  stele_model *a = open_fake(&one);
  stele_model *b = open_fake(&two); /* the same path, another file: as after a new compile */
  stele_model *c = NULL;
  assert_int_equal(stele_model_artifact(a)->capacity, 64);
  assert_int_equal(stele_model_artifact(b)->capacity, 65);
  assert_ok(stele_model_open(fake_path("model.so"), NULL, sink, &c)); /* the same file again */
  assert_ptr_equal(stele_model_artifact(b), stele_model_artifact(c));
  for (int i = 0; i < 2; i++) {
    assert_int_equal(next_of(a, ids, 9), fake_next(&one, ids, 9));
    assert_int_equal(next_of(b, ids, 9), fake_next(&two, ids, 9));
    assert_int_equal(next_of(c, ids, 9), fake_next(&two, ids, 9));
  }
  stele_model_close(b);
  assert_int_equal(next_of(c, ids, 9), fake_next(&two, ids, 9));
  stele_model_close(a);
  stele_model_close(c);
}

static void paths_without_a_slash(void **state) {
  (void)state;
  fake_config config = fake_default();
  char folder[4096];
  stele_model *model = NULL;
  assert_int_equal(fake_write(fake_path("plain.so"), &config), 0);
  assert_non_null(getcwd(folder, sizeof folder));
  assert_int_equal(chdir(fake_path("")), 0);
  assert_ok(stele_model_open("plain.so", NULL, sink, &model));
  assert_int_equal(chdir(folder), 0);
  stele_model_close(model);
}

/* 3 GB of weights, most of them a hole: nothing is read, nothing of it is mapped by the loader,
 * and offsets above 2 GB work. */
static void large_weights(void **state) {
  (void)state;
  fake_config config = fake_default();
  size_t size;
  config.weights_bytes = (uint64_t)3 << 30;
  uint64_t weights_bytes = config.weights_bytes;
  config.weights_bytes = 97 * 4;
  uint8_t *bytes = fake_bytes(&config, &size);
  stele_trailer t = fake_trailer(bytes, size);
  ((fake_config *)memmem(bytes, size, FAKE_MARK, sizeof FAKE_MARK))->weights_bytes = weights_bytes;
  t.weights_bytes = weights_bytes;
  fake_set_trailer(bytes, size, t);
  fake_seal(bytes, size);
  t = fake_trailer(bytes, size);
  const char *path = fake_path("large.so");
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  assert_true(fd >= 0);
  if (pwrite(fd, bytes, size - sizeof t, 0) != (ssize_t)(size - sizeof t) ||
      pwrite(fd, &t, sizeof t, (off_t)(t.weights_offset + weights_bytes)) != sizeof t) {
    print_message("no room for a sparse file here\n");
    skip();
  }
  close(fd);
  stele_model *model = NULL;
  int32_t ids[9];
  fill_ids(ids, 9, 4, 97);
  assert_ok(stele_model_open(path, NULL, sink, &model));
  assert_int_equal(next_of(model, ids, 9), fake_next(&config, ids, 9));
  const uint8_t *weights = stele_model_weights(model, NULL);
  assert_int_equal(weights[weights_bytes - 1], 0);
  uint64_t mapped = 0, begin, end;
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "large.so") && sscanf(line, "%lx-%lx", &begin, &end) == 2)
      mapped += end - begin;
  if (maps) fclose(maps);
  assert_true(mapped < weights_bytes + ((uint64_t)1 << 20));
  stele_model_close(model);
  unlink(path);
  free(bytes);
}

static void text_without_a_tokenizer(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  stele_sink why = {0};
  int32_t *ids = NULL, id = 3;
  size_t count = 0;
  char *text = NULL;
  stele_stream *stream = NULL;
  stele_status status = stele_tokenize(model, "x", 1, true, &why, &ids, &count);
  assert_true(status == STELE_NOT_FOUND || status == STELE_UNSUPPORTED);
  assert_contains(why.text, "token ids");
  assert_int_equal(stele_detokenize(model, &id, 1, true, &why, &text, &count), status);
  assert_int_equal(stele_stream_create(model, true, &why, &stream), status);
  stele_stream_destroy(NULL);
  stele_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(opens_and_describes),
      cmocka_unit_test(files_that_are_no_artefacts),
      cmocka_unit_test(other_versions_and_machines),
      cmocka_unit_test(stripped_of_weights),
      cmocka_unit_test(truncated_everywhere),
      cmocka_unit_test(flipped_bits),
      cmocka_unit_test(lying_headers),
      cmocka_unit_test(lying_trailers),
      cmocka_unit_test(lying_artefacts),
      cmocka_unit_test(damaged_weights),
      cmocka_unit_test(weights_beside),
      cmocka_unit_test(variants_by_features),
      cmocka_unit_test(variants_by_permission),
      cmocka_unit_test(features_agree_with_the_system),
      cmocka_unit_test(two_models_never_meet),
      cmocka_unit_test(paths_without_a_slash),
      cmocka_unit_test(large_weights),
      cmocka_unit_test(text_without_a_tokenizer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
