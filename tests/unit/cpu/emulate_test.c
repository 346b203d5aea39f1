/* The instructions that tests emulate where the processor lacks them, against what their
 * definitions say: the same tests run on a processor that has them, so each checks the other. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <pthread.h>
#include "random.h"

#include "base/base.h"
#include "emulate.h"
#include "stele/artifact.h"

/* A test framework handles the signal too, so each test begins with this. */
static void begin(void **state) {
  (void)state;
  emulate_install();
}

static void fill(void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) ((uint8_t *)bytes)[i] = (uint8_t)random_bits();
}

/* ---- AVX-VNNI -------------------------------------------------------------------------- */

typedef struct ymm {
  _Alignas(32) int32_t lane[8];
} ymm;

enum { BUSD, BUSDS, WSSD, WSSDS, OPS };

/* What the definition says of one lane. */
static int32_t expected_lane(int op, int32_t sum, uint32_t a, uint32_t b) {
  int64_t total = sum;
  if (op == BUSD || op == BUSDS)
    for (int i = 0; i < 32; i += 8) total += (int64_t)(a >> i & 255) * (int8_t)(b >> i & 255);
  else
    for (int i = 0; i < 32; i += 16)
      total += (int64_t)(int16_t)(a >> i & 65535) * (int16_t)(b >> i & 65535);
  if (op == BUSD || op == WSSD) return (int32_t)(uint32_t)(uint64_t)total;
  return total > INT32_MAX ? INT32_MAX : total < INT32_MIN ? INT32_MIN : (int32_t)total;
}

static void expect_lanes(int op, const ymm *found, const ymm *sum, const ymm *a, const ymm *b,
                         int lanes) {
  for (int i = 0; i < 8; i++)
    assert_int_equal(
        found->lane[i],
        i >= lanes ? 0
                   : expected_lane(op, sum->lane[i], (uint32_t)a->lane[i], (uint32_t)b->lane[i]));
}

/* sum in register 3, a in 11, b in 14: numbers that need each of VEX's further bits. */
#define REGISTERS(name, width)                                                                \
  static void name##_##width(ymm *sum, const ymm *a, const ymm *b) {                          \
    __asm__ volatile(                                                                         \
        "vmovdqu (%0), %%ymm3\n vmovdqu (%1), %%ymm11\n"                                      \
        "vmovdqu (%2), %%ymm14\n %{vex%} " #name " %%" #width "14, %%" #width "11, %%" #width \
        "3\n vmovdqu %%ymm3, (%0)"                                                            \
        :                                                                                     \
        : "r"(sum), "r"(a), "r"(b)                                                            \
        : "xmm3", "xmm11", "xmm14", "memory");                                                \
  }
REGISTERS(vpdpbusd, ymm)
REGISTERS(vpdpbusds, ymm)
REGISTERS(vpdpwssd, ymm)
REGISTERS(vpdpwssds, ymm)
REGISTERS(vpdpbusd, xmm)
REGISTERS(vpdpbusds, xmm)
REGISTERS(vpdpwssd, xmm)
REGISTERS(vpdpwssds, xmm)

static void test_products(void **state) {
  begin(state);
  static void (*const wide[OPS])(ymm *, const ymm *, const ymm *) = {vpdpbusd_ymm, vpdpbusds_ymm,
                                                                     vpdpwssd_ymm, vpdpwssds_ymm};
  static void (*const narrow[OPS])(ymm *, const ymm *, const ymm *) = {vpdpbusd_xmm, vpdpbusds_xmm,
                                                                       vpdpwssd_xmm, vpdpwssds_xmm};
  for (int round = 0; round < 200; round++)
    for (int op = 0; op < OPS; op++) {
      ymm sum, a, b, found;
      fill(&sum, sizeof sum), fill(&a, sizeof a), fill(&b, sizeof b);
      if (round % 2) sum.lane[0] = INT32_MAX - 5, sum.lane[1] = INT32_MIN + 5; /* they saturate */
      found = sum;
      wide[op](&found, &a, &b);
      expect_lanes(op, &found, &sum, &a, &b, 8);
      found = sum;
      narrow[op](&found, &a, &b);
      expect_lanes(op, &found, &sum, &a, &b, 4);
    }
}

/* b in memory, at the address that `operand` makes of base %3 (in rbx, or in r12) and index %4 (in
 * rsi, or in r9). */
#define IN_MEMORY(name, base_register, index_register, operand)                                 \
  static void name(ymm *sum, const ymm *a, const uint8_t *base, uint64_t index) {               \
    register const uint8_t *at __asm__(base_register) = base;                                   \
    register uint64_t times __asm__(index_register) = index;                                    \
    __asm__ volatile("vmovdqu (%0), %%ymm12\n vmovdqu (%1), %%ymm2\n %{vex%} vpdpbusd " operand \
                     ", %%ymm2, %%ymm12\n vmovdqu %%ymm12, (%0)"                                \
                     :                                                                          \
                     : "r"(sum), "r"(a), "r"(at), "r"(times)                                    \
                     : "xmm2", "xmm12", "memory");                                              \
  }
IN_MEMORY(at_base, "rbx", "rsi", "(%2)")
IN_MEMORY(at_disp8, "rbx", "rsi", "-8(%2)")
IN_MEMORY(at_disp32, "rbx", "rsi", "0x1234(%2)")
IN_MEMORY(at_index, "rbx", "rsi", "(%2,%3)")
IN_MEMORY(at_scaled, "rbx", "rsi", "16(%2,%3,4)")
IN_MEMORY(at_r12, "r12", "r9", "(%2)")
IN_MEMORY(at_r13, "r13", "r9", "(%2)")
IN_MEMORY(at_r12_index, "r12", "r9", "-0x800(%2,%3,8)")
IN_MEMORY(at_no_base, "rbx", "rsi", "0(,%3,2)")

static const ymm near_code = {{1, -2, 3, -4, 5, -6, 7, 0x7f80ff01}};
static void at_rip(ymm *sum, const ymm *a) {
  __asm__ volatile(
      "vmovdqu (%0), %%ymm12\n vmovdqu (%1), %%ymm2\n %{vex%} vpdpbusd %2, %%ymm2, %%ymm12\n"
      "vmovdqu %%ymm12, (%0)"
      :
      : "r"(sum), "r"(a), "m"(near_code)
      : "xmm2", "xmm12", "memory");
}

static void test_addresses(void **state) {
  begin(state);
  static uint8_t memory[8192];
  static const struct {
    void (*run)(ymm *, const ymm *, const uint8_t *, uint64_t);
    uint64_t scale;
    int64_t displacement;
    bool base;
  } forms[] = {
      {at_base, 0, 0, true},  {at_disp8, 0, -8, true},         {at_disp32, 0, 0x1234, true},
      {at_index, 1, 0, true}, {at_scaled, 4, 16, true},        {at_r12, 0, 0, true},
      {at_r13, 0, 0, true},   {at_r12_index, 8, -0x800, true}, {at_no_base, 2, 0, false}};
  fill(memory, sizeof memory);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    const uint8_t *base = memory + 2048;
    uint64_t index = forms[i].base ? 48 : (uint64_t)(uintptr_t)base / 2;
    uintptr_t at = (forms[i].base ? (uintptr_t)base : 0) + index * forms[i].scale +
                   (uintptr_t)forms[i].displacement;
    ymm sum, a, b, found;
    fill(&sum, sizeof sum), fill(&a, sizeof a), memcpy(&b, (const uint8_t *)at, sizeof b);
    found = sum;
    forms[i].run(&found, &a, base, index);
    expect_lanes(BUSD, &found, &sum, &a, &b, 8);
  }
  ymm sum = {{0}}, a, found = {{0}};
  fill(&a, sizeof a);
  at_rip(&found, &a);
  expect_lanes(BUSD, &found, &sum, &a, &near_code, 8);
}

/* ---- AMX ------------------------------------------------------------------------------- */

typedef struct configuration {
  _Alignas(64) uint8_t palette;
  uint8_t start_row, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} configuration;
_Static_assert(sizeof(configuration) == 64, "as the instruction reads it");

/* C of m rows and n numbers, A of m rows and k groups of 4 bytes, B of k rows and n groups. */
typedef struct product {
  uint32_t m, n, k;
  uint8_t a[16][64], b[16][64];
  int32_t c[16][16];
} product;

static void configure(const product *p) {
  configuration c = {.palette = 1};
  c.rows[0] = c.rows[1] = (uint8_t)p->m;
  c.rows[6] = (uint8_t)p->k;
  c.bytes[0] = c.bytes[6] = (uint16_t)(p->n * 4);
  c.bytes[1] = (uint16_t)(p->k * 4);
  __asm__ volatile("ldtilecfg %0" : : "m"(c) : "memory");
}

/* c += a b by the instruction, and out = c */
#define MULTIPLY(name)                                              \
  static void name(const product *p, int32_t (*out)[16]) {          \
    uint64_t stride = 64;                                           \
    configure(p);                                                   \
    __asm__ volatile(                                               \
        "tileloadd (%0,%3), %%tmm0\n tileloaddt1 (%1,%3), %%tmm1\n" \
        "tileloadd (%2,%3), %%tmm6\n " #name                        \
        " %%tmm6, %%tmm1, %%tmm0\n"                                 \
        "tilestored %%tmm0, (%4,%3)\n tilerelease"                  \
        :                                                           \
        : "r"(p->c), "r"(p->a), "r"(p->b), "r"(stride), "r"(out)    \
        : "memory");                                                \
  }
MULTIPLY(tdpbssd)
MULTIPLY(tdpbsud)
MULTIPLY(tdpbusd)
MULTIPLY(tdpbuud)
MULTIPLY(tdpbf16ps)

static void make_product(product *p) {
  p->m = 1 + random_bits() % 16, p->n = 1 + random_bits() % 16, p->k = 1 + random_bits() % 16;
  if (random_bits() % 4 == 0) p->m = p->n = p->k = 16;
  fill(p->a, sizeof p->a), fill(p->b, sizeof p->b), fill(p->c, sizeof p->c);
}

static int32_t byte_of(uint8_t b, bool is_signed) { return is_signed ? (int8_t)b : b; }

static void test_tiles_of_bytes(void **state) {
  begin(state);
  static const struct {
    void (*run)(const product *, int32_t (*)[16]);
    bool a_signed, b_signed;
  } forms[] = {{tdpbssd, true, true},
               {tdpbsud, true, false},
               {tdpbusd, false, true},
               {tdpbuud, false, false}};
  for (int round = 0; round < 100; round++)
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
      product p;
      int32_t found[16][16];
      make_product(&p);
      memset(found, 0x55, sizeof found);
      forms[f].run(&p, found);
      for (uint32_t m = 0; m < 16; m++)
        for (uint32_t n = 0; n < 16; n++) {
          uint32_t sum = (uint32_t)p.c[m][n];
          for (uint32_t k = 0; k < p.k * 4; k++)
            sum += (uint32_t)(byte_of(p.a[m][k], forms[f].a_signed) *
                              byte_of(p.b[k / 4][n * 4 + k % 4], forms[f].b_signed));
          assert_int_equal(found[m][n], m < p.m && n < p.n ? (int32_t)sum : 0x55555555);
        }
    }
}

/* Small whole numbers, whose sums are exact in any order. */
static void test_tiles_of_bf16(void **state) {
  begin(state);
  for (int round = 0; round < 50; round++) {
    product p;
    int32_t found[16][16];
    make_product(&p);
    for (int i = 0; i < 16 * 32; i++) {
      uint16_t a = base_f32_to_bf16((float)(int)(random_bits() % 31) - 15);
      uint16_t b = base_f32_to_bf16((float)(int)(random_bits() % 31) - 15);
      memcpy(&p.a[i / 32][i % 32 * 2], &a, 2);
      memcpy(&p.b[i / 32][i % 32 * 2], &b, 2);
    }
    for (int i = 0; i < 256; i++) {
      float c = (float)(int)(random_bits() % 1000);
      memcpy(&p.c[i / 16][i % 16], &c, 4);
    }
    tdpbf16ps(&p, found);
    for (uint32_t m = 0; m < p.m; m++)
      for (uint32_t n = 0; n < p.n; n++) {
        float sum, result;
        memcpy(&sum, &p.c[m][n], 4);
        memcpy(&result, &found[m][n], 4);
        for (uint32_t k = 0; k < p.k * 2; k++) {
          uint16_t a, b;
          memcpy(&a, &p.a[m][k * 2], 2);
          memcpy(&b, &p.b[k / 2][n * 4 + k % 2 * 2], 2);
          sum += base_bf16_to_f32(a) * base_bf16_to_f32(b);
        }
        assert_true(sum == result);
      }
  }
}

/* Rows at a stride; a tile that was cleared; nothing is written past a tile's rows and columns. */
static void test_moving(void **state) {
  begin(state);
  static uint8_t from[16 * 100], to[16 * 80];
  const product p = {.m = 3, .n = 5, .k = 1};
  fill(from, sizeof from);
  configure(&p);
  __asm__ volatile("tileloadd 8(%0,%1,4), %%tmm0\n tilestored %%tmm0, (%2,%3,2)"
                   :
                   : "r"(from), "r"((uint64_t)25), "r"(to), "r"((uint64_t)40)
                   : "memory");
  for (int row = 0; row < 16; row++)
    for (int i = 0; i < 80; i++)
      assert_int_equal(to[row * 80 + i], row < 3 && i < 20 ? from[row * 100 + 8 + i] : 0);
  __asm__ volatile("tilezero %%tmm0\n tilestored %%tmm0, (%0,%1)\n tilerelease"
                   :
                   : "r"(to), "r"((uint64_t)80)
                   : "memory");
  for (size_t i = 0; i < sizeof to; i++) assert_int_equal(to[i], 0);
}

/* A thread's tiles are its own. */
static void *other_thread(void *data) {
  int32_t (*out)[16] = data;
  product p = {.m = 16, .n = 16, .k = 16};
  memset(p.a, 1, sizeof p.a), memset(p.b, 1, sizeof p.b);
  tdpbuud(&p, out);
  return NULL;
}
static void test_threads(void **state) {
  begin(state);
  static int32_t mine[16][16], others[16][16];
  product p = {.m = 2, .n = 2, .k = 1};
  pthread_t thread;
  p.c[1][1] = 7;
  configure(&p);
  __asm__ volatile("tileloadd (%0,%1), %%tmm0" : : "r"(p.c), "r"((uint64_t)64) : "memory");
  assert_int_equal(pthread_create(&thread, NULL, other_thread, others), 0);
  pthread_join(thread, NULL);
  __asm__ volatile("tilestored %%tmm0, (%0,%1)\n tilerelease"
                   :
                   : "r"(mine), "r"((uint64_t)64)
                   : "memory");
  assert_int_equal(mine[1][1], 7);
  assert_int_equal(others[15][15], 64);
}

/* ---- what is illegal stays so ---------------------------------------------------------- */

static void undefined(void) { __asm__ volatile("ud2"); }
static void no_configuration(void) { __asm__ volatile("tilerelease\n tilezero %tmm0"); }
static void unequal_sizes(void) {
  const product p = {.m = 3, .n = 5, .k = 2};
  configure(&p);
  __asm__ volatile("tdpbssd %tmm1, %tmm6, %tmm0");
}

static void dies(void (*run)(void)) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    run();
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGILL);
}

static void test_illegal(void **state) {
  begin(state);
  dies(undefined);
  dies(no_configuration);
  dies(unequal_sizes);
}

int main(void) {
  const uint64_t both = STELE_FEATURE_AVX_VNNI | STELE_FEATURE_AMX;
  uint64_t here = base_machine_features();
  if (((emulate_install() | here) & both) != both || !base_enable_features(here & both)) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products),       cmocka_unit_test(test_addresses),
      cmocka_unit_test(test_tiles_of_bytes), cmocka_unit_test(test_tiles_of_bf16),
      cmocka_unit_test(test_moving),         cmocka_unit_test(test_threads),
      cmocka_unit_test(test_illegal),
  };
  return cmocka_run_group_tests_name("emulate", tests, NULL, NULL);
}
