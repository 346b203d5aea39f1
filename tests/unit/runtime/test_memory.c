/* Memory: none is asked for after a session was created, by whatever way; when any of the ways
 * fails while it is created, the error says so and all that was had is given back.
 *
 * The functions that get memory are defined here, before libc's, and count. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "testing.h"

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static atomic_long calls;               /* that got memory */
static atomic_long live, live_mappings; /* had and not given back, while watching */
static atomic_long heap_fails_in = -1, map_fails_in = -1, thread_fails_in = -1;

static bool fails_now(atomic_long *in) {
  return atomic_load(in) >= 0 && atomic_fetch_sub(in, 1) == 0;
}

static void *got(void *memory) {
  atomic_fetch_add(&calls, 1);
  if (memory) atomic_fetch_add(&live, 1);
  return memory;
}

void *malloc(size_t n) { return fails_now(&heap_fails_in) ? NULL : got(__libc_malloc(n)); }
void *calloc(size_t n, size_t size) {
  return fails_now(&heap_fails_in) ? NULL : got(__libc_calloc(n, size));
}
void *realloc(void *old, size_t n) {
  if (fails_now(&heap_fails_in)) return NULL;
  if (old) atomic_fetch_sub(&live, 1);
  return got(__libc_realloc(old, n));
}
void *memalign(size_t to, size_t n) { return got(__libc_memalign(to, n)); }
void *aligned_alloc(size_t to, size_t n) { return got(__libc_memalign(to, n)); }
int posix_memalign(void **out, size_t to, size_t n) {
  *out = got(__libc_memalign(to, n));
  return *out ? 0 : ENOMEM;
}
void free(void *memory) {
  if (memory) atomic_fetch_sub(&live, 1);
  __libc_free(memory);
}
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
  if (fails_now(&map_fails_in)) return errno = ENOMEM, MAP_FAILED;
  atomic_fetch_add(&calls, 1);
  atomic_fetch_add(&live_mappings, 1);
  return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}
int munmap(void *at, size_t n) {
  atomic_fetch_sub(&live_mappings, 1);
  return (int)syscall(SYS_munmap, at, n);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *data) {
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (fails_now(&thread_fails_in)) return EAGAIN;
  *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, run, data);
}

static void steps_allocate_nothing(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 8; i++) {
    fake_config config = fake_default();
    config.rope_rule = i / 4 ? STELE_ROPE_DYNAMIC : STELE_ROPE_FIXED;
    config.rope_original = 8;
    config.rope_factor = 2;
    stele_model *model = open_fake(&config);
    stele_session *s = create_session(model, 4, 1 + i % 2, i / 2 % 2);
    static float out[97 * 64];
    static int32_t ids[64];
    int32_t tokens[4];
    const uint32_t lanes[] = {2, 0, 1};
    fill_ids(ids, 64, 3, 97);
    long before = atomic_load(&calls);
    const void *heap_end = sbrk(0);
    stele_status status = stele_session_feed(s, 0, ids, 40, STELE_OUTPUT_ALL, out, NULL);
    status |= stele_session_feed(s, 1, ids, 33, STELE_OUTPUT_HIDDEN, out, NULL);
    status |= stele_session_feed(s, 2, ids, 1, STELE_OUTPUT_TOKEN, tokens, NULL);
    for (int k = 0; k < 10; k++) {
      status |= stele_session_step(s, lanes, ids, 3, STELE_OUTPUT_TOKEN, tokens, NULL);
      status |= stele_session_step(s, lanes, ids, 2, STELE_OUTPUT_LAST, out, NULL);
    }
    stele_generate_options options = {.struct_bytes = sizeof options, .lane = 3};
    status |= stele_generate(s, ids, 20, &options, ids, 40, NULL, NULL);
    stele_session_reset(s, 3);
    status |= stele_generate(s, ids, 20, &options, ids, 40, NULL, NULL);
    assert_int_equal(atomic_load(&calls) - before, 0);
    assert_ptr_equal(sbrk(0), heap_end);
    assert_int_equal(status, STELE_OK);
    stele_session_destroy(s);
    stele_model_close(model);
  }
}

static long calls_at_first_id;
static bool note_first_id(void *data, int32_t id) {
  (void)id;
  if (!*(bool *)data) calls_at_first_id = atomic_load(&calls);
  return *(bool *)data = true;
}

/* With guesses, memory is had before the first id and given back at the end; when it can't be had
 * nothing is fed. */
static void guesses_allocate_at_the_start(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.period = 7;
  stele_model *model = open_fake(&config);
  stele_session *s = create_session(model, 1, 2, STELE_CACHE_DYNAMIC);
  int32_t prompt[20], ids[45];
  bool begun = false;
  stele_generate_options options = {.struct_bytes = sizeof options,
                                    .on_token = note_first_id,
                                    .on_token_data = &begun,
                                    .prompt_lookup_num_tokens = 7};
  stele_generate_result r;
  fill_ids(prompt, 20, 3, 97);
  long had = atomic_load(&live), mapped = atomic_load(&live_mappings);
  assert_ok(stele_generate(s, prompt, 20, &options, ids, 45, sink, &r));
  assert_int_equal(atomic_load(&calls), calls_at_first_id);
  assert_true(r.accepted_tokens > 10);
  assert_int_equal(atomic_load(&live), had);
  assert_int_equal(atomic_load(&live_mappings), mapped);
  stele_session_reset(s, 0);
  for (int i = 0; i < 3; i++) {
    stele_sink why = {0};
    atomic_store(i < 2 ? &heap_fails_in : &map_fails_in, i < 2 ? i : 0);
    stele_status status = stele_generate(s, prompt, 20, &options, ids, 45, &why, &r);
    atomic_store(&heap_fails_in, -1);
    atomic_store(&map_fails_in, -1);
    assert_int_equal(status, STELE_OUT_OF_MEMORY);
    assert_true(why.text[0]);
    assert_int_equal(stele_session_length(s, 0), 0);
    assert_int_equal(atomic_load(&live), had);
    assert_int_equal(atomic_load(&live_mappings), mapped);
  }
  stele_session_destroy(s);
  stele_model_close(model);
}

/* Lets the n-th call fail, for n from 0 until creating succeeds. Returns that n. */
static long fail_each(const stele_model *model, atomic_long *fails_in, uint32_t implementation) {
  const stele_session_options options = {.struct_bytes = sizeof options,
                                         .lanes = 2,
                                         .threads = 3,
                                         .cache_implementation = implementation};
  for (long n = 0;; n++) {
    stele_session *s = NULL;
    stele_sink why = {0};
    long had = atomic_load(&live), mapped = atomic_load(&live_mappings);
    atomic_store(fails_in, n);
    stele_status status = stele_session_create(model, &options, &why, &s);
    atomic_store(fails_in, -1);
    if (status == STELE_OK) {
      stele_session_destroy(s);
      assert_int_equal(atomic_load(&live), had);
      assert_int_equal(atomic_load(&live_mappings), mapped);
      return n;
    }
    assert_int_equal(status, STELE_OUT_OF_MEMORY);
    assert_true(why.text[0]);
    assert_null(s);
    assert_int_equal(atomic_load(&live), had);
    assert_int_equal(atomic_load(&live_mappings), mapped);
  }
}

static void creating_a_session_fails_cleanly(void **state) {
  (void)state;
  fake_config config = fake_default();
  config.rope_rule = STELE_ROPE_LONG;
  config.rope_original = 8;
  stele_model *model = open_fake(&config);
  for (uint32_t implementation = 0; implementation < 2; implementation++) {
    assert_true(fail_each(model, &heap_fails_in, implementation) > 20);
    assert_int_equal(fail_each(model, &map_fails_in, implementation), 4);
    assert_int_equal(fail_each(model, &thread_fails_in, implementation), 2);
  }
  stele_model_close(model);
}

static void opening_a_model_fails_cleanly(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config); /* what the loader keeps is there after this */
  stele_model_close(model);
  for (long n = 0;; n++) {
    stele_sink why = {0};
    model = NULL;
    long mapped = atomic_load(&live_mappings);
    atomic_store(&heap_fails_in, n);
    stele_status status = stele_model_open(fake_path("model.so"), NULL, &why, &model);
    atomic_store(&heap_fails_in, -1);
    stele_model_close(model);
    assert_int_equal(atomic_load(&live_mappings), mapped);
    if (status == STELE_OK) break;
    assert_null(model);
    assert_true(why.text[0] || status == STELE_OUT_OF_MEMORY);
  }
}

/* ---- an allocator of the user's ----------------------------------------------------------- */

typedef struct own {
  long calls, live, fails_in;
} own;

static void *own_allocate(void *data, size_t bytes) {
  own *o = data;
  if (o->fails_in >= 0 && o->fails_in-- == 0) return NULL;
  o->calls++;
  o->live++;
  return memset(__libc_malloc(bytes), 0xaa, bytes);
}

static void own_release(void *data, void *memory) {
  ((own *)data)->live--;
  __libc_free(memory);
}

static void an_allocator_of_ones_own(void **state) {
  (void)state;
  fake_config config = fake_default();
  stele_model *model = open_fake(&config);
  for (long n = 0;; n++) {
    own o = {.fails_in = n};
    const stele_session_options options = {.struct_bytes = sizeof options,
                                           .threads = 2,
                                           .allocate = own_allocate,
                                           .release = own_release,
                                           .allocate_data = &o};
    stele_session *s = NULL;
    int32_t ids[10], token;
    stele_status status = stele_session_create(model, &options, NULL, &s);
    if (status == STELE_OK) {
      fill_ids(ids, 10, 3, 97);
      assert_ok(stele_session_feed(s, 0, ids, 10, STELE_OUTPUT_TOKEN, &token, sink));
      assert_int_equal(token, fake_next(&config, ids, 10));
      stele_session_destroy(s);
    }
    assert_int_equal(o.live, 0);
    if (status == STELE_OK) break;
    assert_int_equal(status, STELE_OUT_OF_MEMORY);
  }
  stele_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_allocate_nothing),
      cmocka_unit_test(guesses_allocate_at_the_start),
      cmocka_unit_test(creating_a_session_fails_cleanly),
      cmocka_unit_test(opening_a_model_fails_cleanly),
      cmocka_unit_test(an_allocator_of_ones_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
