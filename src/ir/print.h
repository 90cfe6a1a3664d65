// What the files of the printer share: a growing text and the parts that write into it.
#ifndef TT_IR_PRINT_H_
#define TT_IR_PRINT_H_

#include <string.h>

#include "ir/internal.h"

// A growing text. Appends never fail; `failed` is looked at once, at the end, and the text is
// thrown away then. Thread-compatible.
typedef struct tt__text_s {
  char *data;
  size_t size, capacity;
  bool failed;
} tt__text_t;

// Room for `more` bytes; false: there is none and nothing may be written.
bool tt__text_reserve(tt__text_t *t, size_t more);
static inline void tt__text_put(tt__text_t *t, const char *bytes, size_t size) {
  if (t->size + size > t->capacity && !tt__text_reserve(t, size)) return;
  memcpy(t->data + t->size, bytes, size);
  t->size += size;
}
static inline void tt__text_str(tt__text_t *t, const char *s) { tt__text_put(t, s, strlen(s)); }
void tt__text_int(tt__text_t *t, int64_t value);
// In double quotes, with MLIR's escapes.
void tt__text_quoted(tt__text_t *t, const char *s, size_t size);
// "1, 2, 3"
void tt__text_ints(tt__text_t *t, const int64_t *list, uint32_t count);
void tt__text_type(tt__text_t *t, const tt_type_t *type);

// "dense<...>" of a constant's bytes.
void tt__print_dense(tt__text_t *t, const tt_type_t *type, const void *bytes, size_t size);
// The attributes of the generic form: "<{a = 1 : i64, ...}> ", nothing where there are none.
void tt__print_properties(tt__text_t *t, const tt_node_t *node, const tt_type_t *first_operand);
// Names of enums, "INVALID" for numbers that are none. Static texts.
const char *tt__print_compare(int64_t direction);
const char *tt__print_compare_type(int64_t type);
const char *tt__print_precision(int64_t precision);

#endif  // TT_IR_PRINT_H_
