// What the files of the printer share: the parts that write into a text.
#ifndef TT_IR_PRINT_H_
#define TT_IR_PRINT_H_

#include "base/text.h"
#include "ir/internal.h"

// "tensor<2x3xf32>"
void tt__print_type(tt_text_t *t, const tt_type_t *type);

// "dense<...>" of a constant's bytes.
void tt__print_dense(tt_text_t *t, const tt_type_t *type, const void *bytes, size_t size);
// The attributes of the generic form: "<{a = 1 : i64, ...}> ", nothing where there are none.
void tt__print_properties(tt_text_t *t, const tt_node_t *node, const tt_type_t *first_operand);
// Names of enums, "INVALID" for numbers that are none. Static texts.
const char *tt__print_compare(int64_t direction);
const char *tt__print_compare_type(int64_t type);
const char *tt__print_precision(int64_t precision);

#endif  // TT_IR_PRINT_H_
