#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"

// After a failure what is written goes to the front of what there is, over and over.
bool tt_text_reserve(tt_text_t *t, size_t more) {
  if (t->failed) {
    t->size = 0;
    if (more <= t->capacity) return true;
  }
  size_t needed = t->size + more, wanted = t->capacity < 2048 ? 4096 : t->capacity * 2;
  if (wanted < needed) wanted = needed;
  if (t->limit && wanted > t->limit) wanted = t->limit;
  char *data = wanted < needed ? NULL : tt_realloc(t->data, wanted);
  if (!data) {
    t->failed = true;
    return false;
  }
  t->data = data;
  t->capacity = wanted;
  return true;
}

void tt_text_format(tt_text_t *t, const char *format, ...) {
  char line[256];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n > 0) tt_text_put(t, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

// By hand: most of a program's text is numbers, and snprintf is slow at them.
void tt_text_int(tt_text_t *t, int64_t value) {
  char digits[24], *p = digits + sizeof digits;
  uint64_t u = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    *--p = (char)('0' + u % 10);
    u /= 10;
  } while (u);
  if (value < 0) *--p = '-';
  tt_text_put(t, p, (size_t)(digits + sizeof digits - p));
}

void tt_text_ints(tt_text_t *t, const int64_t *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i) tt_text_put(t, ", ", 2);
    tt_text_int(t, list[i]);
  }
}

void tt_text_quoted(tt_text_t *t, const char *s, size_t size) {
  tt_text_put(t, "\"", 1);
  for (size_t i = 0; i < size; i++) {
    unsigned char ch = (unsigned char)s[i];
    if (ch == '"' || ch == '\\') {
      const char escaped[] = {'\\', (char)ch};
      tt_text_put(t, escaped, 2);
    } else if (ch < 32 || ch >= 127) {
      tt_text_format(t, "\\%02X", ch);
    } else {
      tt_text_put(t, &s[i], 1);
    }
  }
  tt_text_put(t, "\"", 1);
}
