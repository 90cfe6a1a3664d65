// A StableHLO program as SSA: values, nodes, blocks. One graph holds one function, main; calls are
// inlined by the parser. Everything lives in the graph's arena and dies with it.
#ifndef TT_IR_GRAPH_H_
#define TT_IR_GRAPH_H_

#include "base/arena.h"
#include "base/dtype.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// ORDER of ops.def; chlo's ops are neighbours in it (ERF to TOP_K).
typedef enum tt_op_e {
#define OP(name, text, operands, results, regions, traits, infer) TT_OP_##name,
#include "ir/ops.def"
#undef OP
  TT_OP_COUNT,
} tt_op_t;

typedef enum tt_attr_key_e {
#define ATTR(name, text, kind) TT_ATTR_##name,
#include "ir/attrs.def"
#undef ATTR
  TT_ATTR_COUNT,
} tt_attr_key_t;

// What an attribute holds; the kind follows from the key (tt_attr_kinds).
typedef enum tt_attr_kind_e {
  TT_ATTR_KIND_INT,
  TT_ATTR_KIND_INTS,
  TT_ATTR_KIND_FLOAT,
  TT_ATTR_KIND_STRING,
  TT_ATTR_KIND_BYTES,
} tt_attr_kind_t;

// Column "traits" of ops.def, where each is explained.
typedef enum tt_trait_e {
  TT_TRAIT_ELEMENTWISE = 1,
  TT_TRAIT_COMMUTATIVE = 2,
  TT_TRAIT_SIDE_EFFECT = 4,
  TT_TRAIT_COLLECTIVE = 8,
  TT_TRAIT_TYPED = 16,
} tt_trait_t;

// Attribute values, numbered as StableHLO lists them; parser and printer name them by number.
typedef enum tt_compare_e { TT_EQ, TT_NE, TT_GE, TT_GT, TT_LE, TT_LT } tt_compare_t;
// DEFAULT: derived from the element type. TOTALORDER is the IEEE total order.
typedef enum tt_compare_type_e {
  TT_COMPARE_DEFAULT,
  TT_COMPARE_FLOAT,
  TT_COMPARE_TOTALORDER,
  TT_COMPARE_SIGNED,
  TT_COMPARE_UNSIGNED,
} tt_compare_type_t;
typedef enum tt_precision_e {
  TT_PRECISION_DEFAULT,
  TT_PRECISION_HIGH,
  TT_PRECISION_HIGHEST
} tt_precision_t;
typedef enum tt_transpose_e { TT_NO_TRANSPOSE = 1, TT_TRANSPOSE, TT_ADJOINT } tt_transpose_t;
typedef enum tt_fft_e { TT_FFT, TT_IFFT, TT_RFFT, TT_IRFFT } tt_fft_t;
typedef enum tt_rng_algorithm_e {
  TT_RNG_DEFAULT,
  TT_RNG_THREE_FRY,
  TT_RNG_PHILOX
} tt_rng_algorithm_t;

// No tensor has more dimensions; append and argument refuse it, so fixed arrays are safe.
#define TT_MAX_RANK 64

// A ranked tensor type. Dims are static; a scalar has rank 0. Borrowed from its graph's arena.
typedef struct tt_type_s {
  tt_dtype_t dtype;
  uint32_t rank;
  const int64_t *dims;
} tt_type_t;

typedef uint32_t tt_value_t;  // index into tt_graph_t.values
#define TT_NO_VALUE UINT32_MAX

// One attribute. `count` 0 for single numbers. Payloads of a node are the graph's and never change,
// so that passes may share them between nodes.
typedef struct tt_attr_s {
  uint16_t key;    // tt_attr_key_t
  uint16_t kind;   // tt_attr_kind_t
  uint32_t count;  // INTS: length; BYTES, STRING: size in bytes
  union {
    int64_t i;
    double f;
    const int64_t *ints;
    const char *string;
    const void *bytes;
  } u;
} tt_attr_t;

// Attributes for a tt_node_spec_t; the payloads are borrowed until append has copied them.
static inline tt_attr_t tt_attr_int(tt_attr_key_t key, int64_t value) {
  tt_attr_t a = {(uint16_t)key, TT_ATTR_KIND_INT, 0, {value}};
  return a;
}
static inline tt_attr_t tt_attr_ints(tt_attr_key_t key, const int64_t *list, uint32_t count) {
  tt_attr_t a = {(uint16_t)key, TT_ATTR_KIND_INTS, count, {0}};
  a.u.ints = list;
  return a;
}
static inline tt_attr_t tt_attr_string(tt_attr_key_t key, const char *text, uint32_t length) {
  tt_attr_t a = {(uint16_t)key, TT_ATTR_KIND_STRING, length, {0}};
  a.u.string = text;
  return a;
}
static inline tt_attr_t tt_attr_bytes(tt_attr_key_t key, const void *bytes, uint32_t size) {
  tt_attr_t a = {(uint16_t)key, TT_ATTR_KIND_BYTES, size, {0}};
  a.u.bytes = bytes;
  return a;
}
static inline tt_attr_t tt_attr_float(tt_attr_key_t key, double value) {
  tt_attr_t a = {(uint16_t)key, TT_ATTR_KIND_FLOAT, 0, {0}};
  a.u.f = value;
  return a;
}

typedef struct tt_block_s tt_block_t;

// One operation. Operands are values that are visible where it stands; results are new. Small
// counts are 16 bits wide: append refuses more.
typedef struct tt_node_s {
  uint16_t op;  // tt_op_t
  uint16_t operand_count, result_count, attr_count, region_count;
  tt_value_t first_result;  // results are consecutive values
  uint32_t location;        // index into tt_graph_t.locations, 0: unknown
  tt_value_t *operands;
  tt_attr_t *attrs;  // sorted by key
  tt_block_t **regions;
  tt_block_t *parent;
} tt_node_t;

// A region's only block: arguments, nodes in execution order, returned values. A region may use
// values of the blocks around it.
struct tt_block_s {
  tt_block_t *parent;  // NULL for main's
  tt_value_t *args;
  uint32_t arg_count;
  tt_node_t **nodes;
  uint32_t node_count, node_capacity;
  tt_value_t *returns;
  uint32_t return_count;
};

// Where a value comes from. Values are never removed: a pass that drops a node leaves its values
// without a definition in any block.
typedef struct tt_value_info_s {
  tt_type_t type;
  tt_node_t *node;    // NULL: a block argument
  tt_block_t *block;  // where it is defined
  uint32_t index;     // result or argument number
} tt_value_info_t;

// How the caller hands over main's argument.
typedef enum tt_donation_e {
  TT_KEEP = 0,     // the buffer stays the caller's
  TT_DONATE = -1,  // the program may reuse its memory for any output (jax.buffer_donor)
  // n > 0: output n - 1 must reuse its memory (tf.aliasing_output = n - 1)
} tt_donation_t;

// Thread-compatible; const functions may run in several threads at once. Arrays that grow leave
// their old copies in the arena, so that pointers taken before an append still read what they read
// then.
typedef struct tt_graph_s {
  tt_arena_t arena;
  tt_block_t *main;
  tt_value_info_t *values;
  uint32_t value_count, value_capacity;
  int32_t *donations;      // tt_donation_t, one an argument of main
  const char *name;        // module name, "main" by default
  const char **locations;  // [0] = NULL
  uint32_t location_count, location_capacity;
  uint32_t replica_count, partition_count;  // 1 unless the module says otherwise
} tt_graph_t;

// Caller destroys. `name` is copied; NULL: "main".
tt_status_t tt_graph_create(const char *name, tt_graph_t **out_graph) TT_MUST_USE;
void tt_graph_destroy(tt_graph_t *graph);  // NULL-safe
// A deep copy, values keep their numbers.
tt_status_t tt_graph_clone(const tt_graph_t *graph, tt_graph_t **out_graph) TT_MUST_USE;

// A new empty region block inside `parent`. It belongs to a node once a spec names it.
tt_status_t tt_graph_block(tt_graph_t *graph, tt_block_t *parent,
                           tt_block_t **out_block) TT_MUST_USE;

// A new argument of `block`. The type's dims are copied.
tt_status_t tt_graph_argument(tt_graph_t *graph, tt_block_t *block, tt_type_t type,
                              tt_value_t *out_value) TT_MUST_USE;

// What append is to make. Everything is borrowed for the call and copied.
typedef struct tt_node_spec_s {
  tt_op_t op;
  const tt_value_t *operands;
  uint32_t operand_count;
  const tt_attr_t *attrs;  // any order; all payloads are copied
  uint32_t attr_count;
  tt_block_t *const *regions;
  uint32_t region_count;
  const tt_type_t *types;  // result types; NULL where the op's rule derives them
  uint32_t type_count;
} tt_node_spec_t;

// Appends a node; derives result types and checks the op's constraints. An error names the op, the
// constraint id of StableHLO's specification ("dot_general_c9") and the shapes; the block is
// unchanged then. `out_first` may be NULL.
tt_status_t tt_graph_append(tt_graph_t *graph, tt_block_t *block, const tt_node_spec_t *spec,
                            tt_value_t *out_first) TT_MUST_USE;

// Sets what the block returns (main: the program's outputs). Values may repeat and may be
// arguments.
tt_status_t tt_graph_return(tt_graph_t *graph, tt_block_t *block, const tt_value_t *values,
                            uint32_t count) TT_MUST_USE;

// The pointer stays readable until the graph dies, whatever is appended meanwhile.
static inline const tt_type_t *tt_graph_type(const tt_graph_t *graph, tt_value_t value) {
  return &graph->values[value].type;
}

// An absent attribute means StableHLO's default: zeros for padding, ones for strides and dilations,
// false for flags, empty for the lists of dimension numbers.
const tt_attr_t *tt_node_attr(const tt_node_t *node, tt_attr_key_t key);  // NULL: absent
int64_t tt_node_int(const tt_node_t *node, tt_attr_key_t key, int64_t otherwise);
// The list, or NULL and *out_count = 0 where absent.
const int64_t *tt_node_ints(const tt_node_t *node, tt_attr_key_t key, uint32_t *out_count);

// The same as one thing, and whether a value is in it.
typedef struct tt_ints_s {
  const int64_t *at;
  uint32_t count;
} tt_ints_t;
static inline tt_ints_t tt_node_list(const tt_node_t *node, tt_attr_key_t key) {
  tt_ints_t list;
  list.at = tt_node_ints(node, key, &list.count);
  return list;
}
static inline bool tt_ints_has(tt_ints_t list, int64_t value) {
  for (uint32_t i = 0; i < list.count; i++) {
    if (list.at[i] == value) return true;
  }
  return false;
}
// Element i of the list, or `otherwise` where it is absent or shorter.
static inline int64_t tt_node_entry(const tt_node_t *node, tt_attr_key_t key, uint32_t i,
                                    int64_t otherwise) {
  tt_ints_t list = tt_node_list(node, key);
  return i < list.count ? list.at[i] : otherwise;
}

// Cannot overflow: no type gets into a graph whose size in bytes does not fit 63 bits.
int64_t tt_type_elements(const tt_type_t *type);  // product of dims
size_t tt_type_bytes(const tt_type_t *type);
bool tt_type_equal(const tt_type_t *a, const tt_type_t *b);
bool tt_type_same_shape(const tt_type_t *a, const tt_type_t *b);
// Writes "tensor<2x3xf32>"; returns the length as snprintf does.
int tt_type_format(const tt_type_t *type, char *buffer, size_t size);

// A line of ops.def, but for its rule.
typedef struct tt_op_info_s {
  const char *text;
  int8_t operands, results, regions;  // -1: any number
  uint8_t traits;
} tt_op_info_t;
extern const tt_op_info_t tt_op_infos[TT_OP_COUNT];
extern const char *const tt_attr_names[TT_ATTR_COUNT];
extern const uint8_t tt_attr_kinds[TT_ATTR_COUNT];

// Whether every op's rule holds and every use is dominated by its definition (verify.c). A broken
// rule is its maker's mistake, a broken table of values (INTERNAL) is ours.
tt_status_t tt_graph_verify(const tt_graph_t *graph) TT_MUST_USE;

// StableHLO text, in the generic-free pretty form that libtpu, XLA and our parser accept. chlo ops
// keep their name (tt_expand_chlo in opt/ removes them first). Caller frees *out_text with tt_free.
tt_status_t tt_graph_print(const tt_graph_t *graph, char **out_text, size_t *out_size) TT_MUST_USE;

// Parses what tt_graph_print, JAX and XLA print, pretty and generic form. Errors say line:column.
// `text` need not end in zero and may come from anywhere: malformed input fails, in bounded memory.
// Calls are inlined; the function called main, or else the first, becomes the graph's.
tt_status_t tt_graph_parse(const char *text, size_t size, tt_graph_t **out_graph) TT_MUST_USE;

// A hash of the program's meaning: equal graphs (by structure) have equal hashes, whatever their
// name, their locations and their values' numbers. The same in every process, no promise between
// versions.
uint64_t tt_graph_hash(const tt_graph_t *graph);

#ifdef __cplusplus
}
#endif
#endif  // TT_IR_GRAPH_H_
