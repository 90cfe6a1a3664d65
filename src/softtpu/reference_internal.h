// What the files of the reference executor share. One kernel evaluates one node on one device.
#ifndef TT_SOFTTPU_REFERENCE_INTERNAL_H_
#define TT_SOFTTPU_REFERENCE_INTERNAL_H_

#include "ir/graph.h"
#include "softtpu/element.h"
#include "softtpu/reference.h"

enum { TT__REF_MAX_RANK = 64, TT__REF_CHUNK = 256 };

// The execution of one graph. Values of nodes are owned by the block run that computes them,
// block arguments and captures are borrowed.
typedef struct tt__ref_state_s {
  const tt_graph_t *graph;
  uint32_t device_count;
  void ***values;  // [device][value]
  // Values that die with a node: dead_head[first result of the node] starts a list chained by
  // dead_next, ending in TT_NO_VALUE. NULL: values live until their block ends.
  tt_value_t *dead_head, *dead_next;
  uint64_t rng_counter;  // numbers drawn by `rng` so far
} tt__ref_state_t;

// One node on one device: what a kernel gets. Operands and results are dense row-major arrays in
// their types; results are allocated and do not overlap operands.
typedef struct tt__ref_call_s {
  tt__ref_state_t *state;
  uint32_t device;
  const tt_graph_t *graph;
  const tt_node_t *node;
  const void *const *operands;
  void *const *results;
} tt__ref_call_t;

static inline const tt_type_t *tt__ref_in(const tt__ref_call_t *call, uint32_t i) {
  return tt_graph_type(call->graph, call->node->operands[i]);
}
static inline const tt_type_t *tt__ref_out(const tt__ref_call_t *call, uint32_t i) {
  return tt_graph_type(call->graph, call->node->first_result + i);
}

// Whether this device knows the custom call's target.
bool tt__ref_custom_call_known(const tt_graph_t *graph, const tt_node_t *node);

typedef tt_status_t (*tt__ref_kernel_t)(const tt__ref_call_t *call);
typedef tt_status_t (*tt__ref_group_kernel_t)(tt__ref_state_t *state, const bool *active,
                                              const tt_node_t *node,
                                              const void *const *const *operands,
                                              void *const *const *results);

// KERNEL(op, function suffix): nodes evaluated one device at a time. Everything elementwise that is
// not named here goes to tt__ref_elementwise.
#define TT__REF_KERNELS(KERNEL)                      \
  KERNEL(SELECT, elementwise)                        \
  KERNEL(CLAMP, elementwise)                         \
  KERNEL(TOP_K, top_k)                               \
  KERNEL(OPTIMIZATION_BARRIER, identity)             \
  KERNEL(BITCAST_CONVERT, bitcast_convert)           \
  KERNEL(CONSTANT, constant)                         \
  KERNEL(IOTA, iota)                                 \
  KERNEL(BROADCAST_IN_DIM, broadcast_in_dim)         \
  KERNEL(RESHAPE, identity)                          \
  KERNEL(TRANSPOSE, transpose)                       \
  KERNEL(REVERSE, reverse)                           \
  KERNEL(SLICE, slice)                               \
  KERNEL(DYNAMIC_SLICE, dynamic_slice)               \
  KERNEL(DYNAMIC_UPDATE_SLICE, dynamic_update_slice) \
  KERNEL(PAD, pad)                                   \
  KERNEL(CONCATENATE, concatenate)                   \
  KERNEL(GATHER, gather)                             \
  KERNEL(DYNAMIC_GATHER, gather)                     \
  KERNEL(SCATTER, scatter)                           \
  KERNEL(SELECT_AND_SCATTER, select_and_scatter)     \
  KERNEL(SORT, sort)                                 \
  KERNEL(DOT_GENERAL, dot_general)                   \
  KERNEL(CONVOLUTION, convolution)                   \
  KERNEL(REDUCE, reduce)                             \
  KERNEL(REDUCE_WINDOW, reduce_window)               \
  KERNEL(BATCH_NORM_INFERENCE, batch_norm_inference) \
  KERNEL(BATCH_NORM_TRAINING, batch_norm_training)   \
  KERNEL(BATCH_NORM_GRAD, batch_norm_grad)           \
  KERNEL(MAP, map)                                   \
  KERNEL(CHOLESKY, cholesky)                         \
  KERNEL(TRIANGULAR_SOLVE, triangular_solve)         \
  KERNEL(FFT, fft)                                   \
  KERNEL(RNG_BIT_GENERATOR, rng_bit_generator)       \
  KERNEL(RNG, rng)                                   \
  KERNEL(GET_DIMENSION_SIZE, get_dimension_size)     \
  KERNEL(CUSTOM_CALL, custom_call)                   \
  KERNEL(PARTITION_ID, device_id)                    \
  KERNEL(REPLICA_ID, device_id)

// Nodes whose devices act together: control flow and collectives.
#define TT__REF_GROUP_KERNELS(KERNEL)            \
  KERNEL(IF, case)                               \
  KERNEL(CASE, case)                             \
  KERNEL(WHILE, while)                           \
  KERNEL(COMPOSITE, composite)                   \
  KERNEL(ALL_REDUCE, all_reduce)                 \
  KERNEL(ALL_GATHER, all_gather)                 \
  KERNEL(REDUCE_SCATTER, reduce_scatter)         \
  KERNEL(ALL_TO_ALL, all_to_all)                 \
  KERNEL(COLLECTIVE_PERMUTE, collective_permute) \
  KERNEL(COLLECTIVE_BROADCAST, collective_broadcast)

#define KERNEL(op, name) tt_status_t tt__ref_##name(const tt__ref_call_t *call) TT_MUST_USE;
TT__REF_KERNELS(KERNEL)
#undef KERNEL
#define KERNEL(op, name)                                                                        \
  tt_status_t tt__ref_##name(tt__ref_state_t *state, const bool *active, const tt_node_t *node, \
                             const void *const *const *operands, void *const *const *results)   \
      TT_MUST_USE;
TT__REF_GROUP_KERNELS(KERNEL)
#undef KERNEL

// ---- reference.c

// Evaluates `block` on the active devices: args[device][argument], and copies what it returns to
// outs[device][index] (outs may be read by the block only through args that do not overlap them).
tt_status_t tt__ref_block(tt__ref_state_t *state, const bool *active, const tt_block_t *block,
                          const void *const *const *args, void *const *const *outs) TT_MUST_USE;
static inline size_t tt__ref_bytes(const tt_graph_t *graph, tt_value_t value) {
  return tt_type_bytes(tt_graph_type(graph, value));
}
// "op: message" with the operands' types appended.
tt_status_t tt__ref_unimplemented(const tt_graph_t *graph, const tt_node_t *node,
                                  const char *what) TT_MUST_USE;
tt_status_t tt__ref_no_memory(const tt_node_t *node) TT_MUST_USE;

// ---- reference_elementwise.c

typedef double (*tt__ref_real1_t)(double);
typedef double (*tt__ref_real2_t)(double, double);
typedef uint64_t (*tt__ref_int1_t)(uint64_t, unsigned bits);
typedef uint64_t (*tt__ref_int2_t)(uint64_t, uint64_t, unsigned bits);
typedef tt_complex_t (*tt__ref_complex1_t)(tt_complex_t);
typedef tt_complex_t (*tt__ref_complex2_t)(tt_complex_t, tt_complex_t);

// One elementwise node made ready to run over many elements ("lanes").
typedef struct tt__ref_lane_s tt__ref_lane_t;
struct tt__ref_lane_s {
  // On wide arrays; `out` may be one of `in`. NULL: a conversion.
  void (*apply)(const tt__ref_lane_t *lane, int64_t count, const void *const *in, void *out);
  union {
    tt__ref_real1_t real1;
    tt__ref_real2_t real2;
    tt__ref_int1_t int1;
    tt__ref_int2_t int2;
    tt__ref_complex1_t complex1;
    tt__ref_complex2_t complex2;
  } fn;
  tt_dtype_t in[3], out;
  uint8_t operand_count;
  bool total_order;
  unsigned bits;
  int64_t parameter[2];  // compare: direction; reduce_precision: exponent and mantissa bits
};

// Whether the node is elementwise over types that lanes have, and makes it ready. `out_lane`
// borrows nothing and may be kept with a plan.
bool tt__ref_lane_can(const tt_node_t *node);
tt_status_t tt__ref_lane_prepare(const tt_graph_t *graph, const tt_node_t *node,
                                 tt__ref_lane_t *out_lane) TT_MUST_USE;
// Typed arrays of `count` elements; operand i is one element where bit i of `scalars` is set.
void tt__ref_lane_run(const tt__ref_lane_t *lane, int64_t count, const void *const *operands,
                      unsigned scalars, void *result);
// The functions of one op, NULL where the kind has none (reference_{real,integer,complex}.c).
tt__ref_real1_t tt__ref_real1(tt_op_t op);
tt__ref_real2_t tt__ref_real2(tt_op_t op);
tt__ref_int1_t tt__ref_int1(tt_op_t op, bool is_signed);
tt__ref_int2_t tt__ref_int2(tt_op_t op, bool is_signed);
tt__ref_complex1_t tt__ref_complex1(tt_op_t op);
tt__ref_complex2_t tt__ref_complex2(tt_op_t op);
double tt__ref_next_after(tt_dtype_t dtype, double from, double to);
double tt__ref_reduce_precision(double x, int64_t exponent_bits, int64_t mantissa_bits);
tt_status_t tt__ref_elementwise(const tt__ref_call_t *call) TT_MUST_USE;
double tt__ref_maximum(double x, double y);
double tt__ref_minimum(double x, double y);

// ---- reference_region.c

// A region over scalars, applied to arrays lane by lane.
typedef struct tt__ref_region_s tt__ref_region_t;
tt_status_t tt__ref_region_create(const tt__ref_call_t *call, const tt_block_t *block,
                                  tt__ref_region_t **out_region) TT_MUST_USE;
void tt__ref_region_destroy(tt__ref_region_t *region);  // NULL-safe
// args[i] and outs[i] are typed arrays of `count` elements; outs may equal args.
tt_status_t tt__ref_region_run(tt__ref_region_t *region, int64_t count, const void *const *args,
                               void *const *outs) TT_MUST_USE;
// The op of a body that is one commutative binary op over its two arguments, else TT_OP_COUNT.
tt_op_t tt__ref_region_single(const tt_block_t *block);

// Folds rows of `lanes` elements, one row after another, into accumulators that start as inits.
typedef struct tt__ref_fold_s tt__ref_fold_t;
tt_status_t tt__ref_fold_create(const tt__ref_call_t *call, const tt_block_t *block, uint32_t count,
                                const void *const *inits, int64_t lanes,
                                tt__ref_fold_t **out_fold) TT_MUST_USE;
tt_status_t tt__ref_fold_row(tt__ref_fold_t *fold, const void *const *rows) TT_MUST_USE;
// A row folded into the only lane, element by element.
tt_status_t tt__ref_fold_line(tt__ref_fold_t *fold, const void *const *rows,
                              int64_t length) TT_MUST_USE;
void tt__ref_fold_finish(tt__ref_fold_t *fold, void *const *results);
void tt__ref_fold_destroy(tt__ref_fold_t *fold);  // NULL-safe

// ---- reference_shape.c

void tt__ref_strides(const tt_type_t *type, int64_t *out_strides);  // in elements, row-major
// Steps `index` through `dims` in row-major order; false after the last.
static inline bool tt__ref_next(uint32_t rank, const int64_t *dims, int64_t *index) {
  for (uint32_t d = rank; d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}
// to[sum i_d * to_strides_d] = from[sum i_d * from_strides_d] for all i in dims; strides in
// elements of `size` bytes.
void tt__ref_copy(size_t size, uint32_t rank, const int64_t *dims, void *to,
                  const int64_t *to_strides, const void *from, const int64_t *from_strides);
void tt__ref_fill(size_t size, int64_t count, void *to, const void *element);
// Negative `low` and `high` crop. `from` has dims `dims`, `to` room for the padded shape.
void tt__ref_pad_data(size_t size, uint32_t rank, const int64_t *dims, const int64_t *low,
                      const int64_t *high, const int64_t *interior, const void *from,
                      const void *value, void *to);

#endif  // TT_SOFTTPU_REFERENCE_INTERNAL_H_
