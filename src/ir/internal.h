// What the files of ir/ (and the passes of opt/) share about the inside of a graph.
#ifndef TT_IR_INTERNAL_H_
#define TT_IR_INTERNAL_H_

#include "ir/build.h"

// Room for `wanted` elements in an array that lives in the arena, by doubling. The old array stays
// where it is: pointers into it keep reading the same immutable contents. False without memory.
bool tt__arena_grow(tt_arena_t *arena, void **array, uint32_t *capacity, uint32_t count,
                    uint32_t wanted, size_t element_size) TT_MUST_USE;
tt_status_t tt__no_memory(void) TT_MUST_USE;

// Appends an existing node to a block's list and makes the block its parent.
tt_status_t tt__block_push(tt_graph_t *graph, tt_block_t *block, tt_node_t *node) TT_MUST_USE;
// Whether a graph may hold the type: an element type, at most TT_MAX_RANK dimensions, none
// negative, a size in bytes that fits.
tt_status_t tt__type_check(const tt_type_t *type) TT_MUST_USE;

// One run of an op's rule. The rule reads node, checks it, and fills types[0, count). It allocates
// nothing but result dims, so that a verifier can run it over a scratch arena.
typedef struct tt__infer_s {
  tt_arena_t *arena;  // for the results' dims
  const tt_graph_t *graph;
  const tt_node_t *node;
  const tt_type_t *given;  // what the maker asked for; NULL: nothing
  uint32_t given_count;
  tt_type_t *types;
  uint32_t count;
  tt_type_t few[4];
} tt__infer_t;

// Every rule of ops.def is declared here once for each op that names it, which C allows.
typedef tt_status_t (*tt__infer_fn_t)(tt__infer_t *c);
#define OP(name, text, operands, results, regions, traits, infer) \
  tt_status_t tt__infer_##infer(tt__infer_t *c) TT_MUST_USE;
#include "ir/ops.def"
#undef OP

// Runs the rule of c->node->op and checks its answer against c->given.
tt_status_t tt__infer(tt__infer_t *c) TT_MUST_USE;

// Ops under chlo's name: neighbours in ops.def.
static inline bool tt__op_is_chlo(uint32_t op) { return op >= TT_OP_ERF && op <= TT_OP_TOP_K; }

// Operand i's type; the arity has been checked where ops.def fixes it.
static inline const tt_type_t *tt__operand(const tt__infer_t *c, uint32_t i) {
  return &c->graph->values[c->node->operands[i]].type;
}
// An element of a list attribute whose absence means `otherwise` everywhere.
static inline int64_t tt__at(const int64_t *list, uint32_t i, int64_t otherwise) {
  return list ? list[i] : otherwise;
}
// "op (op_c3): detail; operands (types)". `id` is the constraint's number, NULL for none.
tt_status_t tt__infer_fail(const tt__infer_t *c, const char *id, const char *format,
                           ...) TT_MUST_USE TT_PRINTF(3, 4);
#define TT__REQUIRE(c, cond, id, ...)                                                \
  do {                                                                               \
    if (__builtin_expect(!(cond), 0)) return tt__infer_fail((c), (id), __VA_ARGS__); \
  } while (0)

// Room for `count` result types, which the rule then fills.
tt_status_t tt__infer_results(tt__infer_t *c, uint32_t count) TT_MUST_USE;
// Result i gets the type, its dims copied (tt__infer_dims) or shared with a value's
// (tt__infer_like).
tt_status_t tt__infer_dims(tt__infer_t *c, uint32_t i, tt_dtype_t dtype, uint32_t rank,
                           const int64_t *dims) TT_MUST_USE;
static inline void tt__infer_like(tt__infer_t *c, uint32_t i, tt_dtype_t dtype,
                                  const tt_type_t *shape) {
  c->types[i] = (tt_type_t){dtype, shape->rank, shape->dims};
}
// Takes all of the maker's types as they are.
tt_status_t tt__infer_given(tt__infer_t *c) TT_MUST_USE;
// The list attribute, which must be there with `count` elements.
tt_status_t tt__infer_list(const tt__infer_t *c, tt_attr_key_t key, uint32_t count,
                           const int64_t **out_list) TT_MUST_USE;
// The same, or NULL where it is absent.
tt_status_t tt__infer_optional(const tt__infer_t *c, tt_attr_key_t key, uint32_t count,
                               const int64_t **out_list) TT_MUST_USE;
// Dimensions in [0, rank), none twice.
tt_status_t tt__infer_dimensions(const tt__infer_t *c, const char *id, const int64_t *list,
                                 uint32_t count, uint32_t rank) TT_MUST_USE;
// Region r takes `arg_count` scalars of the given dtypes and returns `return_count` scalars of the
// given dtypes.
tt_status_t tt__infer_scalar_region(const tt__infer_t *c, uint32_t r, const char *id,
                                    const tt_dtype_t *args, uint32_t arg_count,
                                    const tt_dtype_t *returns, uint32_t return_count) TT_MUST_USE;

// Sliding windows: output size of one dimension; -1 where the numbers make no sense. floor((padded
// and dilated size - dilated window) / stride) + 1, 0 where the window does not fit.
int64_t tt__window_output(int64_t size, int64_t window, int64_t stride, int64_t low, int64_t high,
                          int64_t base_dilation, int64_t window_dilation);

// One element in memory (at most 16 bytes) from a number, converted exactly once; integers
// saturate.
void tt__element_double(tt_dtype_t dtype, double value, void *out);
void tt__element_int(tt_dtype_t dtype, int64_t value, void *out);
// The identity of ADD, MULTIPLY, MAXIMUM, MINIMUM, AND, OR, XOR; false for another op or where the
// type has none.
bool tt__element_identity(tt_op_t op, tt_dtype_t dtype, void *out) TT_MUST_USE;
// The largest or smallest value, infinities where there are any; false for complex numbers.
bool tt__element_extreme(tt_dtype_t dtype, bool highest, void *out) TT_MUST_USE;

// build_reduce.c: a region of two scalars joined by `op`.
tt_block_t *tt__one_op_body(tt_build_t *b, tt_op_t op, tt_dtype_t dtype);

#endif  // TT_IR_INTERNAL_H_
