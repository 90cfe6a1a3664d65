// Text: a piece of somebody's, and one that grows.
#ifndef TT_BASE_TEXT_H_
#define TT_BASE_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"

// Borrowed, not zero-terminated.
typedef struct tt_slice_s {
  const char *at;
  size_t size;
} tt_slice_t;

static inline bool tt_slice_is(tt_slice_t s, const char *text) {
  return strlen(text) == s.size && memcmp(s.at, text, s.size) == 0;
}

// All zero is an empty text; the owner frees `data` (tt_free). Appends never fail: where memory or
// the limit ends, `failed` is set, which is looked at once, at the end, and the text is thrown away
// then. Not zero-terminated unless somebody appends that. Thread-compatible.
typedef struct tt_text_s {
  char *data;
  size_t size, capacity;
  size_t limit;  // the largest size; 0: memory's
  bool failed;
} tt_text_t;

// Room for `more` bytes; false: there is none and nothing may be written.
bool tt_text_reserve(tt_text_t *t, size_t more);
static inline void tt_text_put(tt_text_t *t, const char *bytes, size_t size) {
  if (t->size + size > t->capacity && !tt_text_reserve(t, size)) return;
  memcpy(t->data + t->size, bytes, size);
  t->size += size;
}
static inline void tt_text_str(tt_text_t *t, const char *s) { tt_text_put(t, s, strlen(s)); }
// As printf; what passes 255 bytes is cut.
void tt_text_format(tt_text_t *t, const char *format, ...) TT_PRINTF(2, 3);
void tt_text_int(tt_text_t *t, int64_t value);
// "1, 2, 3"
void tt_text_ints(tt_text_t *t, const int64_t *list, uint32_t count);
// In double quotes, which a backslash escapes, and a backslash; everything but printable ASCII is
// two hexadecimal digits.
void tt_text_quoted(tt_text_t *t, const char *s, size_t size);

#endif  // TT_BASE_TEXT_H_
