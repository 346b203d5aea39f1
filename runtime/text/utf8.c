/* Reading UTF-8 byte by byte after Table 3-7 of the Unicode standard: the lead byte gives the
 * length and the range of the second byte; all others are 80..BF. */
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

static const char replacement[] = "\xEF\xBF\xBD";

/* Length that a lead byte asks for and the range of the byte after it; 0: not a lead byte. */
static size_t lead(uint8_t byte, uint8_t *low, uint8_t *high) {
  *low = 0x80;
  *high = 0xBF;
  if (byte < 0x80) return 1;
  if (byte < 0xC2) return 0;
  if (byte < 0xE0) return 2;
  if (byte < 0xF0) {
    if (byte == 0xE0) *low = 0xA0;
    if (byte == 0xED) *high = 0x9F;
    return 3;
  }
  if (byte > 0xF4) return 0;
  if (byte == 0xF0) *low = 0x90;
  if (byte == 0xF4) *high = 0x8F;
  return 4;
}

size_t text_utf8_scan(const uint8_t *text, size_t bytes, int32_t *out_code, bool *out_cut) {
  uint8_t low, high;
  size_t length = lead(text[0], &low, &high);
  *out_cut = false;
  *out_code = length == 1 ? text[0] : TEXT_ILL_FORMED;
  if (length <= 1) return 1;
  int32_t code = text[0] & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; i++) {
    if (i == bytes) {
      *out_cut = true;
      return i;
    }
    if (text[i] < low || text[i] > high) return i;
    low = 0x80;
    high = 0xBF;
    code = (code << 6) | (text[i] & 0x3F);
  }
  *out_code = code;
  return length;
}

size_t text_utf8_valid(const uint8_t *text, size_t bytes) {
  size_t at = 0;
  while (at < bytes) {
    uint64_t word;
    if (bytes - at >= 8 && (memcpy(&word, text + at, 8), !(word & 0x8080808080808080u))) {
      at += 8;
      continue;
    }
    int32_t code;
    bool cut;
    size_t length = text_utf8_scan(text + at, bytes - at, &code, &cut);
    if (code == TEXT_ILL_FORMED) break;
    at += length;
  }
  return at;
}

size_t text_utf8_encode(int32_t code, uint8_t out[4]) {
  utf8proc_ssize_t length = utf8proc_encode_char(code, out);
  return length > 0 ? (size_t)length : 0;
}

void text_utf8_append(base_buffer *out, int32_t code) {
  uint8_t bytes[4];
  base_buffer_append(out, bytes, text_utf8_encode(code, bytes));
}

size_t text_utf8_lossy(base_buffer *out, const uint8_t *text, size_t bytes, bool last) {
  while (bytes) {
    size_t valid = text_utf8_valid(text, bytes);
    base_buffer_append(out, text, valid);
    text += valid;
    bytes -= valid;
    if (!bytes) break;
    int32_t code;
    bool cut;
    size_t length = text_utf8_scan(text, bytes, &code, &cut);
    if (cut && !last) return bytes;
    base_buffer_append(out, replacement, 3);
    text += length;
    bytes -= length;
  }
  return 0;
}

void text_utf8_each(base_buffer *out, size_t count) {
  for (size_t i = 0; i < count; i++) base_buffer_append(out, replacement, 3);
}

void text_utf8_repair(base_buffer *out, const uint8_t *text, size_t bytes) {
  while (bytes) {
    size_t valid = text_utf8_valid(text, bytes);
    base_buffer_append(out, text, valid);
    text += valid;
    bytes -= valid;
    if (!bytes) break;
    int32_t code;
    bool cut;
    size_t length = text_utf8_scan(text, bytes, &code, &cut);
    text_utf8_each(out, length);
    text += length;
    bytes -= length;
  }
}

bool text_is_space(int32_t code) {
  if (code < 0x80) return (code >= 9 && code <= 13) || code == ' ';
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool text_is_word(int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      break;
  }
  /* Joiners, and the letters in circles and squares that are Alphabetic although symbols. */
  return code == 0x200C || code == 0x200D || (code >= 0x24B6 && code <= 0x24E9) ||
         (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
         (code >= 0x1F170 && code <= 0x1F189);
}

size_t text_utf8_back(const uint8_t *text, size_t end) {
  do end--;
  while (end && (text[end] & 0xC0) == 0x80);
  return end;
}
