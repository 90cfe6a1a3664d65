// The emitter that lowerings use: every call appends one node (or a few) to a block and returns its
// value. The first failure sticks: later calls return TT_NO_VALUE and change nothing, so a lowering
// is written straight down and the status is looked at once, at its end.
#ifndef TT_IR_BUILD_H_
#define TT_IR_BUILD_H_

#include "ir/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// Thread-compatible. Borrows the graph and writes into it; needs no end but tt_build_finish.
typedef struct tt_build_s {
  tt_graph_t *graph;
  tt_block_t *block;
  tt_status_t status;  // owned; the first failure
} tt_build_t;

// Ready to append to `block`, with no failure.
static inline tt_build_t tt_build_on(tt_graph_t *graph, tt_block_t *block) {
  tt_build_t b = {graph, block, TT_OK_STATUS};
  return b;
}
// Hands the status to the caller, who releases it, and clears it: the build may go on.
tt_status_t tt_build_finish(tt_build_t *b) TT_MUST_USE;
// Records a failure unless one is there; consumes `status`.
void tt_build_fail(tt_build_t *b, tt_status_t status);

// Borrowed from the graph. Never NULL: a failed build answers with a valid scalar f32 type, so that
// a lowering may look at shapes without asking whether all went well so far.
const tt_type_t *tt_build_type(const tt_build_t *b, tt_value_t v);
static inline tt_dtype_t tt_build_dtype(const tt_build_t *b, tt_value_t v) {
  return tt_build_type(b, v)->dtype;
}
// A type with dims copied to the graph's arena.
tt_type_t tt_build_make_type(tt_build_t *b, tt_dtype_t dtype, uint32_t rank, const int64_t *dims);

// Any op, given as a spec; its first result. Everything in the spec is copied.
tt_value_t tt_emit(tt_build_t *b, const tt_node_spec_t *spec);

// Elementwise. Binary operands may differ in shape as NumPy broadcasting allows (also rank 0 with
// anything): the emitter inserts broadcast_in_dim. Dtypes must agree. A predicate or a bound of
// rank 0 stays a scalar, which select and clamp take.
tt_value_t tt_emit_unary(tt_build_t *b, tt_op_t op, tt_value_t x);
tt_value_t tt_emit_binary(tt_build_t *b, tt_op_t op, tt_value_t x, tt_value_t y);
tt_value_t tt_emit_compare(tt_build_t *b, tt_compare_t how, tt_value_t x, tt_value_t y);
tt_value_t tt_emit_select(tt_build_t *b, tt_value_t pred, tt_value_t yes, tt_value_t no);
tt_value_t tt_emit_clamp(tt_build_t *b, tt_value_t low, tt_value_t x, tt_value_t high);
// Identity when the dtype is already right. Complex -> real takes the real part; anything -> i1 is
// "not equal to zero"; float -> integer truncates as C does; f8E4M3FN saturates.
tt_value_t tt_emit_convert(tt_build_t *b, tt_value_t x, tt_dtype_t dtype);
// The same bits as another type; `dims` as bitcast_convert's rule wants them.
tt_value_t tt_emit_bitcast(tt_build_t *b, tt_value_t x, tt_dtype_t dtype, uint32_t rank,
                           const int64_t *dims);

// Constants. `splat` gives rank 0 when rank == 0; the number is converted to dtype exactly once.
tt_value_t tt_emit_splat(tt_build_t *b, tt_dtype_t dtype, uint32_t rank, const int64_t *dims,
                         double value);
tt_value_t tt_emit_splat_int(tt_build_t *b, tt_dtype_t dtype, uint32_t rank, const int64_t *dims,
                             int64_t value);
tt_value_t tt_emit_scalar(tt_build_t *b, tt_dtype_t dtype, double value);      // rank 0
tt_value_t tt_emit_splat_like(tt_build_t *b, tt_value_t like, double value);   // like's type
tt_value_t tt_emit_constant(tt_build_t *b, tt_type_t type, const void *data);  // dense row-major
// Smallest and largest finite or infinite value of the dtype, rank 0 (min of i1 is false).
tt_value_t tt_emit_lowest(tt_build_t *b, tt_dtype_t dtype);
tt_value_t tt_emit_highest(tt_build_t *b, tt_dtype_t dtype);
tt_value_t tt_emit_iota(tt_build_t *b, tt_dtype_t dtype, uint32_t rank, const int64_t *dims,
                        int64_t dimension);

// Shapes. Each is the identity, emitting nothing, where the result equals the operand.
tt_value_t tt_emit_reshape(tt_build_t *b, tt_value_t x, uint32_t rank, const int64_t *dims);
tt_value_t tt_emit_transpose(tt_build_t *b, tt_value_t x, const int64_t *permutation);
// NumPy/PyTorch expand: aligns trailing dimensions, size-1 dimensions stretch.
tt_value_t tt_emit_broadcast_to(tt_build_t *b, tt_value_t x, uint32_t rank, const int64_t *dims);
tt_value_t tt_emit_broadcast_in_dim(tt_build_t *b, tt_value_t x, uint32_t rank, const int64_t *dims,
                                    const int64_t *broadcast_dimensions);
tt_value_t tt_emit_slice(tt_build_t *b, tt_value_t x, const int64_t *starts, const int64_t *limits,
                         const int64_t *strides);  // strides NULL: 1
// One dimension only: [start, limit) by step.
tt_value_t tt_emit_slice_dim(tt_build_t *b, tt_value_t x, int64_t dim, int64_t start, int64_t limit,
                             int64_t step);
tt_value_t tt_emit_pad(tt_build_t *b, tt_value_t x, tt_value_t value, const int64_t *low,
                       const int64_t *high, const int64_t *interior);  // interior NULL: 0
tt_value_t tt_emit_concat(tt_build_t *b, const tt_value_t *xs, uint32_t count, int64_t dimension);
tt_value_t tt_emit_reverse(tt_build_t *b, tt_value_t x, const int64_t *dims, uint32_t count);
tt_value_t tt_emit_dynamic_slice(tt_build_t *b, tt_value_t x, const tt_value_t *starts,
                                 const int64_t *sizes);
tt_value_t tt_emit_dynamic_update_slice(tt_build_t *b, tt_value_t x, tt_value_t update,
                                        const tt_value_t *starts);

// Reductions over `dims` (any order, none twice, not negative) with a one-op body; `op` ADD,
// MULTIPLY, MAXIMUM, MINIMUM, AND, OR. The identity is supplied. keepdim keeps reduced dimensions
// as size 1. No dims: x itself.
tt_value_t tt_emit_reduce(tt_build_t *b, tt_op_t op, tt_value_t x, const int64_t *dims,
                          uint32_t dim_count, bool keepdim);
// The value and the index (dtype `index_dtype`) of the first largest (or smallest) element along
// dim; NaN counts as the extreme, as PyTorch has it.
void tt_emit_arg_reduce(tt_build_t *b, bool largest, tt_value_t x, int64_t dim,
                        tt_dtype_t index_dtype, bool keepdim, tt_value_t *out_value,
                        tt_value_t *out_index);
// A window over all dimensions of its operand; lists are borrowed for the call.
typedef struct tt_window_s {
  const int64_t *sizes, *strides, *base_dilations, *window_dilations;  // NULL: 1
  const int64_t *padding;                                              // 2 * rank, NULL: 0
} tt_window_t;
// One-op body; the identity of `op` is the initial value.
tt_value_t tt_emit_reduce_window(tt_build_t *b, tt_op_t op, tt_value_t x,
                                 const tt_window_t *window);

// x[..., m, k] * y[..., k, n] given as dimension numbers; result dtype `dtype` (accumulation is f32
// or wider inside). The result has the batch dimensions, then x's free ones, then y's. f32 and
// wider ask for full precision.
typedef struct tt_dot_s {
  const int64_t *lhs_batch, *rhs_batch, *lhs_contract, *rhs_contract;
  uint32_t batch_count, contract_count;
} tt_dot_t;
tt_value_t tt_emit_dot(tt_build_t *b, tt_value_t x, tt_value_t y, const tt_dot_t *dot,
                       tt_dtype_t dtype);
// Plain batched matmul over equal leading dimensions: [..., m, k] x [..., k, n].
tt_value_t tt_emit_matmul(tt_build_t *b, tt_value_t x, tt_value_t y, tt_dtype_t dtype);

// NC[spatial] input, OI[spatial] kernel, NC[spatial] output. NULL lists: 1, padding 0.
typedef struct tt_conv_s {
  const int64_t *strides, *padding /* 2 a spatial dim */, *lhs_dilation, *rhs_dilation;
  const int64_t *window_reversal;  // NULL: none
  int64_t feature_groups, batch_groups;
} tt_conv_t;
tt_value_t tt_emit_conv(tt_build_t *b, tt_value_t x, tt_value_t kernel, const tt_conv_t *conv,
                        tt_dtype_t dtype);

// x.take(indices, dim): result dims are x's with `dim` replaced by indices' dims. Indices must be
// in range and not negative (XLA clamps).
tt_value_t tt_emit_take(tt_build_t *b, tt_value_t x, tt_value_t indices, int64_t dim);
// torch.gather: indices has x's rank; out[i..] = x[.., indices[i..], ..] along dim.
tt_value_t tt_emit_take_along(tt_build_t *b, tt_value_t x, tt_value_t indices, int64_t dim);
// x with updates combined in at rows `indices` of dimension `dim`; `op` is ADD, MULTIPLY, MAXIMUM,
// MINIMUM, or TT_OP_COUNT for "replace". The counterpart of tt_emit_take.
tt_value_t tt_emit_put(tt_build_t *b, tt_value_t x, tt_value_t indices, tt_value_t updates,
                       int64_t dim, tt_op_t op);
// torch.scatter: indices and updates have x's rank and each other's shape, which may be smaller
// than x's but along `dim`. The order of updates to one place is the device's.
tt_value_t tt_emit_put_along(tt_build_t *b, tt_value_t x, tt_value_t indices, tt_value_t updates,
                             int64_t dim, tt_op_t op);

// Sorts `xs` (at most 16, of one shape) together along dim by xs[0]; NaN counts as largest. Stable.
void tt_emit_sort(tt_build_t *b, const tt_value_t *xs, uint32_t count, int64_t dim, bool descending,
                  tt_value_t *out_values);

// Regions. begin makes the block and its scalar (or typed) arguments and moves `b` into it; end
// sets the returns and moves `b` back. A NULL region, the answer of a failed build, may be ended,
// too.
tt_block_t *tt_emit_region_begin(tt_build_t *b, const tt_type_t *arg_types, uint32_t arg_count,
                                 tt_value_t *out_args);
void tt_emit_region_end(tt_build_t *b, tt_block_t *region, const tt_value_t *returns,
                        uint32_t count);
// Both regions take `count` arguments of init's types; the condition returns one i1.
void tt_emit_while(tt_build_t *b, const tt_value_t *init, uint32_t count, tt_block_t *condition,
                   tt_block_t *body, tt_value_t *out_values);

// Collectives between replicas, along dimension 0 where a dimension grows or shrinks.
typedef struct tt_replica_groups_s {
  const int64_t *ids;  // count rows of `size` replica ids
  uint32_t count, size;
} tt_replica_groups_t;
tt_value_t tt_emit_all_reduce(tt_build_t *b, tt_op_t op, tt_value_t x,
                              const tt_replica_groups_t *groups);
tt_value_t tt_emit_all_gather(tt_build_t *b, tt_value_t x, const tt_replica_groups_t *groups);
tt_value_t tt_emit_reduce_scatter(tt_build_t *b, tt_op_t op, tt_value_t x,
                                  const tt_replica_groups_t *groups);
tt_value_t tt_emit_all_to_all(tt_build_t *b, tt_value_t x, const tt_replica_groups_t *groups);
// From each group's first replica.
tt_value_t tt_emit_collective_broadcast(tt_build_t *b, tt_value_t x,
                                        const tt_replica_groups_t *groups);

#ifdef __cplusplus
}
#endif
#endif  // TT_IR_BUILD_H_
