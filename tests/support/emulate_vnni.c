/* VPDPBUSD, VPDPBUSDS, VPDPWSSD, VPDPWSSDS as the Intel SDM's volume 2 defines them: per 32-bit
 * lane, products of four unsigned with four signed bytes, or of two pairs of signed words, are
 * added to the lane; the last letter S saturates the sum. */
#include <string.h>

#include "emulate.h"

enum { BUSD = 0x50, BUSDS, WSSD, WSSDS };

static int64_t products_of_bytes(const uint8_t *a, const int8_t *b) {
  int64_t sum = 0;
  for (int i = 0; i < 4; i++) sum += (int32_t)a[i] * b[i];
  return sum;
}

static int64_t products_of_words(const uint8_t *a, const int8_t *b) {
  int16_t x[2], y[2];
  memcpy(x, a, 4);
  memcpy(y, b, 4);
  return (int64_t)x[0] * y[0] + (int64_t)x[1] * y[1];
}

static int32_t saturated(int64_t sum) {
  return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
}

bool emulate_vnni(uint8_t opcode, uint32_t bytes, int32_t *sum, const void *a, const void *b) {
  if (opcode < BUSD || opcode > WSSDS) return false;
  for (uint32_t i = 0; i < bytes / 4; i++) {
    const uint8_t *x = (const uint8_t *)a + i * 4;
    const int8_t *y = (const int8_t *)b + i * 4;
    int64_t all = sum[i] + (opcode <= BUSDS ? products_of_bytes(x, y) : products_of_words(x, y));
    sum[i] = opcode == BUSDS || opcode == WSSDS ? saturated(all) : (int32_t)(uint32_t)all;
  }
  return true;
}
