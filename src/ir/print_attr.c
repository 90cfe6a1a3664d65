// Attributes as MLIR spells them. Our keys are flat; dimension numbers are gathered up again here.
#include <stdio.h>

#include "ir/print.h"

#define NAME_AT(names, i) ((uint64_t)(i) < sizeof(names) / sizeof *(names) ? (names)[i] : "INVALID")

const char *tt__print_compare(int64_t direction) {
  static const char *const names[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  return NAME_AT(names, direction);
}

const char *tt__print_compare_type(int64_t type) {
  static const char *const names[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
  return NAME_AT(names, type);
}

const char *tt__print_precision(int64_t precision) {
  static const char *const names[] = {"DEFAULT", "HIGH", "HIGHEST"};
  return NAME_AT(names, precision);
}

static void put_enum(tt_text_t *t, const char *kind, const char *value) {
  tt_text_str(t, "#stablehlo<");
  tt_text_str(t, kind);
  tt_text_put(t, " ", 1);
  tt_text_str(t, value);
  tt_text_put(t, ">", 1);
}

static void put_typed(tt_text_t *t, int64_t value, const char *type) {
  tt_text_int(t, value);
  tt_text_str(t, type);
}

static void put_array(tt_text_t *t, const tt_attr_t *a) {
  tt_text_str(t, "array<i64");
  if (a->count) tt_text_str(t, ": ");
  tt_text_ints(t, a->u.ints, a->count);
  tt_text_put(t, ">", 1);
}

static void put_bools(tt_text_t *t, const tt_attr_t *a) {
  tt_text_str(t, "array<i1");
  for (uint32_t i = 0; i < a->count; i++) {
    tt_text_str(t, i ? ", " : ": ");
    tt_text_str(t, a->u.ints[i] ? "true" : "false");
  }
  tt_text_put(t, ">", 1);
}

// Nested lists are dense tensors in the generic form.
static void put_matrix(tt_text_t *t, const tt_attr_t *a, int64_t columns) {
  if (columns < 1) columns = 1;
  int64_t dims[] = {a->count / columns, columns};
  const tt_type_t type = {TT_S64, 2, dims};
  // One number would read as a splat, which it then is.
  tt__print_dense(t, &type, a->u.ints, a->count * sizeof(int64_t));
  tt_text_str(t, " : ");
  tt__print_type(t, &type);
}

// "name = [..]" of a list key, nothing where absent or empty.
static void put_field(tt_text_t *t, const tt_node_t *node, tt_attr_key_t key, bool *first) {
  uint32_t n;
  const int64_t *list = tt_node_ints(node, key, &n);
  if (n == 0) return;
  if (!*first) tt_text_put(t, ", ", 2);
  *first = false;
  tt_text_str(t, tt_attr_names[key]);
  tt_text_str(t, " = [");
  tt_text_ints(t, list, n);
  tt_text_put(t, "]", 1);
}

// gather's and scatter's structure; the five lists correspond, name by name.
static void put_pointing(tt_text_t *t, const tt_node_t *node) {
  static const tt_attr_key_t gather[] = {
      TT_ATTR_OFFSET_DIMS, TT_ATTR_COLLAPSED_SLICE_DIMS, TT_ATTR_OPERAND_BATCHING_DIMS,
      TT_ATTR_START_INDICES_BATCHING_DIMS, TT_ATTR_START_INDEX_MAP};
  static const tt_attr_key_t scatter[] = {
      TT_ATTR_UPDATE_WINDOW_DIMS, TT_ATTR_INSERTED_WINDOW_DIMS, TT_ATTR_INPUT_BATCHING_DIMS,
      TT_ATTR_SCATTER_INDICES_BATCHING_DIMS, TT_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS};
  bool scatters = node->op == TT_OP_SCATTER, first = true;
  tt_text_str(t, scatters ? "scatter_dimension_numbers = #stablehlo.scatter<"
                          : "dimension_numbers = #stablehlo.gather<");
  for (int i = 0; i < 5; i++) put_field(t, node, scatters ? scatter[i] : gather[i], &first);
  if (!first) tt_text_put(t, ", ", 2);
  tt_text_str(t, "index_vector_dim = ");
  tt_text_int(t, tt_node_int(node, TT_ATTR_INDEX_VECTOR_DIM, 0));
  tt_text_put(t, ">", 1);
}

// "[b, f, 0, 1]": what each dimension of one of the convolution's tensors is.
static void put_layout(tt_text_t *t, const tt_node_t *node, const char *letters,
                       tt_attr_key_t batch, tt_attr_key_t feature, tt_attr_key_t spatial) {
  uint32_t n;
  const int64_t *space = tt_node_ints(node, spatial, &n);
  tt_text_put(t, "[", 1);
  for (int64_t i = 0; i < n + 2; i++) {
    if (i) tt_text_put(t, ", ", 2);
    if (tt_node_int(node, batch, -1) == i) tt_text_put(t, &letters[0], 1);
    if (tt_node_int(node, feature, -1) == i) tt_text_put(t, &letters[1], 1);
    for (uint32_t k = 0; k < n; k++) {
      if (space[k] == i) tt_text_int(t, k);
    }
  }
  tt_text_put(t, "]", 1);
}

static void put_conv(tt_text_t *t, const tt_node_t *node) {
  tt_text_str(t, "dimension_numbers = #stablehlo.conv<");
  put_layout(t, node, "bf", TT_ATTR_INPUT_BATCH_DIMENSION, TT_ATTR_INPUT_FEATURE_DIMENSION,
             TT_ATTR_INPUT_SPATIAL_DIMENSIONS);
  tt_text_put(t, "x", 1);
  put_layout(t, node, "oi", TT_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION,
             TT_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, TT_ATTR_KERNEL_SPATIAL_DIMENSIONS);
  tt_text_str(t, "->");
  put_layout(t, node, "bf", TT_ATTR_OUTPUT_BATCH_DIMENSION, TT_ATTR_OUTPUT_FEATURE_DIMENSION,
             TT_ATTR_OUTPUT_SPATIAL_DIMENSIONS);
  tt_text_put(t, ">", 1);
}

// Keys whose structure the node prints under another name, once.
typedef enum group_e { PLAIN, SKIP, POINTING, CONV, CHANNEL } group_t;

// Of each structure one key, which its op always has, prints all of it and the others nothing.
static group_t group_of(const tt_node_t *node, tt_attr_key_t key) {
  switch (key) {
    case TT_ATTR_OFFSET_DIMS:
    case TT_ATTR_COLLAPSED_SLICE_DIMS:
    case TT_ATTR_OPERAND_BATCHING_DIMS:
    case TT_ATTR_START_INDICES_BATCHING_DIMS:
    case TT_ATTR_START_INDEX_MAP:
    case TT_ATTR_UPDATE_WINDOW_DIMS:
    case TT_ATTR_INSERTED_WINDOW_DIMS:
    case TT_ATTR_INPUT_BATCHING_DIMS:
    case TT_ATTR_SCATTER_INDICES_BATCHING_DIMS:
    case TT_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS:
    case TT_ATTR_INPUT_FEATURE_DIMENSION:
    case TT_ATTR_INPUT_SPATIAL_DIMENSIONS:
    case TT_ATTR_KERNEL_INPUT_FEATURE_DIMENSION:
    case TT_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION:
    case TT_ATTR_KERNEL_SPATIAL_DIMENSIONS:
    case TT_ATTR_OUTPUT_BATCH_DIMENSION:
    case TT_ATTR_OUTPUT_FEATURE_DIMENSION:
    case TT_ATTR_OUTPUT_SPATIAL_DIMENSIONS:
    case TT_ATTR_CHANNEL_TYPE:
    case TT_ATTR_REPLICA_GROUP_SIZE:
      return SKIP;
    case TT_ATTR_INDEX_VECTOR_DIM:
      return POINTING;
    case TT_ATTR_INPUT_BATCH_DIMENSION:
      return CONV;
    case TT_ATTR_CHANNEL_ID:
      return CHANNEL;
    case TT_ATTR_USE_GLOBAL_DEVICE_IDS:
      return tt_node_int(node, key, 0) ? PLAIN : SKIP;
    default:
      return PLAIN;
  }
}

static void put_precisions(tt_text_t *t, const tt_attr_t *a) {
  tt_text_put(t, "[", 1);
  for (uint32_t i = 0; i < a->count; i++) {
    if (i) tt_text_put(t, ", ", 2);
    put_enum(t, "precision", tt__print_precision(a->u.ints[i]));
  }
  tt_text_put(t, "]", 1);
}

// By key: enums by name, flags as booleans, else the integer type that StableHLO declares.
static void put_int(tt_text_t *t, const tt_attr_t *a) {
  static const char *const transposes[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE",
                                           "ADJOINT"};
  static const char *const ffts[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  static const char *const algorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
  static const char *const distributions[] = {"UNIFORM", "NORMAL"};
  switch (a->key) {
    case TT_ATTR_COMPARISON_DIRECTION:
      put_enum(t, "comparison_direction", tt__print_compare(a->u.i));
      return;
    case TT_ATTR_COMPARE_TYPE:
      put_enum(t, "comparison_type", tt__print_compare_type(a->u.i));
      return;
    case TT_ATTR_TRANSPOSE_A:
      put_enum(t, "transpose", NAME_AT(transposes, a->u.i));
      return;
    case TT_ATTR_FFT_TYPE:
      put_enum(t, "fft_type", NAME_AT(ffts, a->u.i));
      return;
    case TT_ATTR_RNG_ALGORITHM:
      put_enum(t, "rng_algorithm", NAME_AT(algorithms, a->u.i));
      return;
    case TT_ATTR_RNG_DISTRIBUTION:
      put_enum(t, "rng_distribution", NAME_AT(distributions, a->u.i));
      return;
    case TT_ATTR_IS_STABLE:
    case TT_ATTR_INDICES_ARE_SORTED:
    case TT_ATTR_UNIQUE_INDICES:
    case TT_ATTR_LOWER:
    case TT_ATTR_LEFT_SIDE:
    case TT_ATTR_UNIT_DIAGONAL:
    case TT_ATTR_HAS_SIDE_EFFECT:
      tt_text_str(t, a->u.i ? "true" : "false");
      return;
    case TT_ATTR_EXPONENT_BITS:
    case TT_ATTR_MANTISSA_BITS:
    case TT_ATTR_API_VERSION:
    case TT_ATTR_VERSION:
    case TT_ATTR_INDEX:
      put_typed(t, a->u.i, " : i32");
      return;
    default:
      put_typed(t, a->u.i, " : i64");
  }
}

// Bytes are a constant's, which prints them itself.
static void put_value(tt_text_t *t, const tt_node_t *node, const tt_attr_t *a) {
  char number[40];
  switch ((tt_attr_kind_t)a->kind) {
    case TT_ATTR_KIND_INT:
      put_int(t, a);
      return;
    case TT_ATTR_KIND_FLOAT:
      snprintf(number, sizeof number, "%.9e : f32", a->u.f);
      tt_text_str(t, number);
      return;
    case TT_ATTR_KIND_STRING:
      tt_text_quoted(t, a->u.string, a->count);
      return;
    case TT_ATTR_KIND_INTS:
      if (a->key == TT_ATTR_PADDING || a->key == TT_ATTR_SOURCE_TARGET_PAIRS) {
        put_matrix(t, a, 2);
      } else if (a->key == TT_ATTR_REPLICA_GROUPS) {
        put_matrix(t, a, tt_node_int(node, TT_ATTR_REPLICA_GROUP_SIZE, a->count));
      } else if (a->key == TT_ATTR_WINDOW_REVERSAL) {
        put_bools(t, a);
      } else if (a->key == TT_ATTR_PRECISION_CONFIG) {
        put_precisions(t, a);
      } else {
        put_array(t, a);
      }
      return;
    case TT_ATTR_KIND_BYTES:
      return;
  }
}

static void put_channel(tt_text_t *t, const tt_node_t *node) {
  tt_text_str(t, "channel_handle = #stablehlo.channel_handle<handle = ");
  tt_text_int(t, tt_node_int(node, TT_ATTR_CHANNEL_ID, 0));
  tt_text_str(t, ", type = ");
  tt_text_int(t, tt_node_int(node, TT_ATTR_CHANNEL_TYPE, 0));
  tt_text_put(t, ">", 1);
}

void tt__print_properties(tt_text_t *t, const tt_node_t *node, const tt_type_t *first_operand) {
  bool any = false;
  for (uint32_t i = 0; i < node->attr_count; i++) {
    const tt_attr_t *a = &node->attrs[i];
    group_t group = group_of(node, a->key);
    if (group == SKIP) continue;
    tt_text_str(t, any ? ", " : "<{");
    any = true;
    if (group == POINTING) {
      put_pointing(t, node);
    } else if (group == CONV) {
      put_conv(t, node);
    } else if (group == CHANNEL) {
      put_channel(t, node);
    } else if (a->key == TT_ATTR_USE_GLOBAL_DEVICE_IDS) {
      tt_text_str(t, tt_attr_names[a->key]);
    } else {
      tt_text_str(t, tt_attr_names[a->key]);
      tt_text_str(t, " = ");
      put_value(t, node, a);
    }
  }
  // A map always acts on all dimensions, and the written form insists on the list.
  if (node->op == TT_OP_MAP && !tt_node_attr(node, TT_ATTR_DIMENSIONS)) {
    tt_text_str(t, any ? ", dimensions = array<i64" : "<{dimensions = array<i64");
    any = true;
    for (uint32_t i = 0; first_operand && i < first_operand->rank; i++) {
      tt_text_str(t, i ? ", " : ": ");
      tt_text_int(t, i);
    }
    tt_text_put(t, ">", 1);
  }
  if (any) tt_text_str(t, "}> ");
}
