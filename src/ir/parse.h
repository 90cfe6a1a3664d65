// What the files of the parser share. It reads straight from the text: no token list, no tree.
#ifndef TT_IR_PARSE_H_
#define TT_IR_PARSE_H_

#include "base/text.h"
#include "ir/internal.h"

// A name in scope. `many` holds the values where there is not exactly one. Names form a stack:
// leaving a region pops its own.
typedef struct tt__name_s {
  tt_slice_t text;
  uint32_t hash, next;  // next: the older entry of the bucket
  tt_value_t one;
  uint32_t count;
  const tt_value_t *many;
} tt__name_t;

// A function that the survey found; its text is read at every call.
typedef struct tt__function_s {
  tt_slice_t name;
  const char *signature;  // at the '('
} tt__function_t;

// MOST_ATTRS is above what any op has, MOST_DEPTH above what programs nest; both keep hostile texts
// from our stack.
enum { TT__BUCKETS = 4096, TT__MOST_ATTRS = 48, TT__MOST_DEPTH = 128 };

// Recursive descent over [text, end), p being the next character. Thread-compatible. After the
// first failure nothing but destroying the graph is done.
typedef struct tt__parser_s {
  const char *text, *p, *end;
  tt_graph_t *graph;
  tt_block_t *block;
  tt_arena_t scratch;  // lists and bytes that an append copies
  tt__name_t *names;
  uint32_t name_count, name_capacity;
  uint32_t name_floor;  // names below belong to a caller and cannot be seen
  uint32_t *buckets;    // newest entry + 1
  tt__function_t *functions;
  uint32_t function_count, function_capacity;
  uint32_t depth, calls;
} tt__parser_t;

// One op while it is read: collected here in any order, then appended. All lists are in scratch.
typedef struct tt__reading_s {
  tt_op_t op;
  const char *start;
  tt_slice_t name;    // as written, with its dialect
  tt_slice_t callee;  // call, composite: @symbol
  tt_value_t *operands;
  uint32_t operand_count, operand_capacity;
  tt_attr_t attrs[TT__MOST_ATTRS];
  uint32_t attr_count;
  tt_block_t **regions;
  uint32_t region_count, region_capacity;
  tt_type_t *operand_types, *types;
  uint32_t operand_type_count, type_count, type_capacity;
  bool functional;  // the types were written (a) -> b
  bool has_types;
  uint32_t location;
} tt__reading_t;

// parse_lex.c. Blanks and // comments may stand before anything that is taken. Errors say
// line:column of `at` (NULL: of the next token).
tt_status_t tt__parse_fail(tt__parser_t *ps, const char *at, const char *format, ...) TT_MUST_USE
    TT_PRINTF(3, 4);
int tt__parse_hex(char ch);                            // a hexadecimal digit, -1: none
void tt__parse_space(tt__parser_t *ps);                // skips blanks and comments
char tt__parse_peek(tt__parser_t *ps);                 // next character, '\0' at the end
bool tt__parse_take(tt__parser_t *ps, const char *s);  // consumes punctuation `s` if it is next
bool tt__parse_word(tt__parser_t *ps, const char *s);  // consumes the identifier `s` if it is next
tt_status_t tt__parse_need(tt__parser_t *ps, const char *s) TT_MUST_USE;
tt_slice_t tt__parse_identifier(tt__parser_t *ps);  // size 0: none is next
tt_status_t tt__parse_string(tt__parser_t *ps, tt_slice_t *out) TT_MUST_USE;  // unescaped
tt_status_t tt__parse_symbol(tt__parser_t *ps, tt_slice_t *out) TT_MUST_USE;  // @name
tt_status_t tt__parse_int(tt__parser_t *ps, int64_t *out) TT_MUST_USE;
tt_status_t tt__parse_type(tt__parser_t *ps, tt_type_t *out) TT_MUST_USE;  // dims in scratch
// Skips one value of any kind, up to the ',' or bracket that ends it.
tt_status_t tt__parse_skip(tt__parser_t *ps) TT_MUST_USE;
tt_status_t tt__parse_location(tt__parser_t *ps, uint32_t *out) TT_MUST_USE;  // optional loc(...)

// parse_dense.c: "dense<...> : type" whose "dense" is next. Bytes as tt_attr_t's BYTES has them.
tt_status_t tt__parse_dense(tt__parser_t *ps, tt_type_t *out_type, const void **out_bytes,
                            size_t *out_size) TT_MUST_USE;

// parse_attr.c: into r->attrs, which refuses a key's second attribute and what is too many.
tt_status_t tt__parse_add(tt__parser_t *ps, tt__reading_t *r, tt_attr_t a) TT_MUST_USE;
tt_status_t tt__parse_add_int(tt__parser_t *ps, tt__reading_t *r, tt_attr_key_t key,
                              int64_t value) TT_MUST_USE;
tt_status_t tt__parse_add_ints(tt__parser_t *ps, tt__reading_t *r, tt_attr_key_t key,
                               const int64_t *list, uint32_t count) TT_MUST_USE;
// "{a = 1, b}" or "<{...}>" whose bracket is next.
tt_status_t tt__parse_dictionary(tt__parser_t *ps, tt__reading_t *r) TT_MUST_USE;
// The value of keyword `name`, after its '='.
tt_status_t tt__parse_keyword(tt__parser_t *ps, tt__reading_t *r, tt_slice_t name) TT_MUST_USE;
// The number of the name in `names`, which end with NULL; an error names `what`.
tt_status_t tt__parse_enum(tt__parser_t *ps, const char *what, const char *const *names,
                           int64_t *out) TT_MUST_USE;
extern const char *const tt__parse_directions[];
extern const char *const tt__parse_compare_types[];

// parse_op.c: one statement of a block. *out_done: it was the return.
tt_status_t tt__parse_statement(tt__parser_t *ps, tt_value_t **out_returns,
                                uint32_t *out_return_count, bool *out_done) TT_MUST_USE;

// parse.c
tt_status_t tt__parse_bind(tt__parser_t *ps, tt_slice_t name, const tt_value_t *values,
                           uint32_t count) TT_MUST_USE;
tt_status_t tt__parse_value_name(tt__parser_t *ps, tt_slice_t *out) TT_MUST_USE;  // after '%'
tt_status_t tt__parse_value(tt__parser_t *ps, tt_value_t *out) TT_MUST_USE;       // %name[#i]
// "{ ^bb0(args): statements }" into a new block of the current one.
tt_status_t tt__parse_region(tt__parser_t *ps, tt_block_t **out) TT_MUST_USE;
// The same for a region whose arguments were read before its '{' (reduce, while).
tt_status_t tt__parse_region_with(tt__parser_t *ps, const tt_slice_t *names, const tt_type_t *types,
                                  uint32_t count, tt_block_t **out) TT_MUST_USE;
// Reads function `name` into `block` (the current one: inlining) with its arguments bound to
// `args`.
tt_status_t tt__parse_call(tt__parser_t *ps, tt_slice_t name, tt_block_t *block,
                           const tt_value_t *args, uint32_t arg_count, tt_value_t **out_values,
                           uint32_t *out_count) TT_MUST_USE;
bool tt__parse_grow(tt__parser_t *ps, void **array, uint32_t *capacity, uint32_t count,
                    size_t element_size) TT_MUST_USE;

#endif  // TT_IR_PARSE_H_
