/* The byte-level alphabet: GPT-2 writes each byte as a printable character, so that a vocabulary
 * is readable text. Printable Latin-1 stands for itself, the other bytes follow from U+0100 on
 * (bytes_to_unicode in openai/gpt-2, src/encoder.py). */
#include "text/builder.h"
#include "text/utf8.h"

const char text_gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static bool stands_for_itself(int32_t code) {
  return (code >= 0x21 && code <= 0x7E) || (code >= 0xA1 && code <= 0xFF && code != 0xAD);
}

int text_byte_of(int32_t code) {
  if (stands_for_itself(code)) return code;
  if (code >= 0x100 && code <= 0x120) return code - 0x100;        /* 00..20 */
  if (code >= 0x121 && code <= 0x142) return code - 0x121 + 0x7F; /* 7F..A0 */
  return code == 0x143 ? 0xAD : -1;
}

bool text_byte_level(const uint8_t *text, size_t bytes, uint8_t *out, size_t *out_bytes) {
  size_t count = 0;
  for (size_t at = 0; at < bytes;) {
    int32_t code;
    bool cut;
    at += text_utf8_scan(text + at, bytes - at, &code, &cut);
    int byte = text_byte_of(code);
    if (byte < 0) return false;
    out[count++] = (uint8_t)byte;
  }
  *out_bytes = count;
  return true;
}
