// Attributes and keywords, turned into flat keys.
#include <stdlib.h>

#include "ir/parse.h"

// The ": i64" of an attribute. In a short form a tensor type may follow the last keyword: not ours.
static void skip_scalar_type(tt__parser_t *ps) {
  const char *start = ps->p;
  if (!tt__parse_take(ps, ":")) return;
  tt_slice_t word = tt__parse_identifier(ps);
  if (word.size == 0 || tt_slice_is(word, "tensor")) ps->p = start;
}

tt_status_t tt__parse_add(tt__parser_t *ps, tt__reading_t *r, tt_attr_t a) {
  for (uint32_t i = 0; i < r->attr_count; i++) {
    if (r->attrs[i].key == a.key) {
      return tt__parse_fail(ps, NULL, "attribute %s is given twice", tt_attr_names[a.key]);
    }
  }
  if (r->attr_count == TT__MOST_ATTRS) return tt__parse_fail(ps, NULL, "too many attributes");
  r->attrs[r->attr_count++] = a;
  return TT_OK_STATUS;
}

tt_status_t tt__parse_add_int(tt__parser_t *ps, tt__reading_t *r, tt_attr_key_t key,
                              int64_t value) {
  return tt__parse_add(ps, r, tt_attr_int(key, value));
}

// Empty lists are the default and stay away, as the emitter leaves them away.
tt_status_t tt__parse_add_ints(tt__parser_t *ps, tt__reading_t *r, tt_attr_key_t key,
                               const int64_t *list, uint32_t count) {
  bool needed = key == TT_ATTR_DIMENSIONS || key == TT_ATTR_PERMUTATION ||
                key == TT_ATTR_BROADCAST_DIMENSIONS || key == TT_ATTR_SLICE_SIZES;
  if (count == 0 && !needed) return TT_OK_STATUS;
  return tt__parse_add(ps, r, tt_attr_ints(key, list, count));
}

// "[1, 2]", "[[1, 2], [3, 4]]" flattened, or "array<i64: 1, 2>" after its '<'; true and false
// count.
static tt_status_t int_list(tt__parser_t *ps, char close, int64_t **out, uint32_t *out_count) {
  uint32_t capacity = 0, depth = 0;
  *out = NULL;
  *out_count = 0;
  for (;;) {
    char ch = tt__parse_peek(ps);
    if (ch == close && depth == 0) break;
    if (ch == '[') {
      depth++;
      ps->p++;
    } else if (ch == ']' && depth > 0) {
      depth--;
      ps->p++;
    } else if (ch == ',') {
      ps->p++;
    } else {
      int64_t value = 0;
      if (tt__parse_word(ps, "true")) {
        value = 1;
      } else if (!tt__parse_word(ps, "false")) {
        TT_RETURN_IF_ERROR(tt__parse_int(ps, &value));
      }
      if (!tt__parse_grow(ps, (void **)out, &capacity, *out_count, sizeof **out)) {
        return tt__no_memory();
      }
      (*out)[(*out_count)++] = value;
      // "1 : i64" inside a list of attributes
      skip_scalar_type(ps);
    }
  }
  ps->p++;
  return TT_OK_STATUS;
}

// Dense integers of any width as int64, splats written out.
static tt_status_t dense_ints(tt__parser_t *ps, int64_t **out, uint32_t *out_count,
                              int64_t *out_columns) {
  tt_type_t type;
  const void *bytes;
  size_t size;
  const char *start = ps->p;
  TT_RETURN_IF_ERROR(tt__parse_dense(ps, &type, &bytes, &size));
  int64_t n = tt_type_elements(&type);
  size_t one = tt_dtype_size(type.dtype);
  if (tt_dtype_is_float(type.dtype) || one > 8 || n > 1 << 20) {
    return tt__parse_fail(ps, start, "expected a list of integers");
  }
  int64_t *list = TT_ARENA_ARRAY(&ps->scratch, int64_t, n);
  if (!list) return tt__no_memory();
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = 0;
    memcpy(&bits, (const char *)bytes + (size == one ? 0 : (size_t)i * one), one);
    list[i] = (int64_t)(bits << (64 - 8 * one)) >> (64 - 8 * one);
  }
  *out = list;
  *out_count = (uint32_t)n;
  *out_columns = type.rank ? type.dims[type.rank - 1] : 1;
  return TT_OK_STATUS;
}

// The three ways in which integers are listed: [..], array<..> and dense<..>. `out_columns` is the
// last dimension's size of a dense one, 0 for the others.
static tt_status_t any_ints(tt__parser_t *ps, int64_t **out, uint32_t *out_count,
                            int64_t *out_columns) {
  *out_columns = 0;
  if (tt__parse_take(ps, "[")) return int_list(ps, ']', out, out_count);
  if (!tt__parse_word(ps, "array")) return dense_ints(ps, out, out_count, out_columns);
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "<"));
  (void)tt__parse_identifier(ps);
  if (tt__parse_take(ps, ":")) return int_list(ps, '>', out, out_count);
  *out = NULL;
  *out_count = 0;
  return tt__parse_need(ps, ">");
}

// In the order of the enums of graph.h.
const char *const tt__parse_directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT", NULL};
const char *const tt__parse_compare_types[] = {"NOTYPE", "FLOAT",    "TOTALORDER",
                                               "SIGNED", "UNSIGNED", NULL};
static const char *const precisions[] = {"DEFAULT", "HIGH", "HIGHEST", NULL};
static const char *const transposes[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE",
                                         "ADJOINT", NULL};
static const char *const ffts[] = {"FFT", "IFFT", "RFFT", "IRFFT", NULL};
static const char *const algorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX", NULL};
static const char *const distributions[] = {"UNIFORM", "NORMAL", NULL};

// Bare in short forms, wrapped as #stablehlo<kind NAME> in generic ones.
tt_status_t tt__parse_enum(tt__parser_t *ps, const char *what, const char *const *names,
                           int64_t *out) {
  tt__parse_space(ps);
  const char *start = ps->p;
  bool wrapped = tt__parse_take(ps, "#stablehlo<");
  if (wrapped) (void)tt__parse_identifier(ps);
  tt_slice_t word = tt__parse_identifier(ps);
  for (int64_t i = 0; names[i]; i++) {
    if (!tt_slice_is(word, names[i])) continue;
    *out = i;
    return wrapped ? tt__parse_need(ps, ">") : TT_OK_STATUS;
  }
  return tt__parse_fail(ps, start, "'%.*s' is no %s", (int)(word.size > 40 ? 40 : word.size),
                        word.at, what);
}

static tt_status_t precision_list(tt__parser_t *ps, tt__reading_t *r) {
  int64_t list[2];
  uint32_t n = 0;
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "["));
  while (!tt__parse_take(ps, "]")) {
    if (n == 2) return tt__parse_fail(ps, NULL, "more than two precisions");
    if (n) TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
    TT_RETURN_IF_ERROR(tt__parse_enum(ps, "precision", precisions, &list[n++]));
  }
  int64_t *copy = tt_arena_copy(&ps->scratch, list, n * sizeof *list);
  if (!copy) return tt__no_memory();
  return tt__parse_add_ints(ps, r, TT_ATTR_PRECISION_CONFIG, copy, n);
}

// TT_ATTR_COUNT: not an attribute that means anything here.
static tt_attr_key_t key_of(tt_slice_t name) {
  for (uint32_t k = 0; k < TT_ATTR_COUNT; k++) {
    if (tt_slice_is(name, tt_attr_names[k])) return (tt_attr_key_t)k;
  }
  return TT_ATTR_COUNT;
}

// The value of attribute `name`, after its '='.
static tt_status_t attribute_value(tt__parser_t *ps, tt__reading_t *r, tt_slice_t name) TT_MUST_USE;

// "#stablehlo.gather<offset_dims = [1], ...>" and its kin: fields under their own names. The names
// of dot's fields match, too; `channel_handle` has fields of its own.
static tt_status_t structure(tt__parser_t *ps, tt__reading_t *r) {
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "#stablehlo."));
  (void)tt__parse_identifier(ps);
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "<"));
  while (!tt__parse_take(ps, ">")) {
    if (tt__parse_take(ps, ",")) continue;
    tt_slice_t name = tt__parse_identifier(ps);
    TT_RETURN_IF_ERROR(tt__parse_need(ps, "="));
    if (tt_slice_is(name, "handle")) name = (tt_slice_t){"channel_id", 10};
    if (tt_slice_is(name, "type")) name = (tt_slice_t){"channel_type", 12};
    TT_RETURN_IF_ERROR(attribute_value(ps, r, name));
  }
  return TT_OK_STATUS;
}

// "[b, f, 0, 1]": fills where the two letters and the spatial dimensions are.
static tt_status_t layout(tt__parser_t *ps, tt__reading_t *r, const char *letters,
                          tt_attr_key_t first, tt_attr_key_t second, tt_attr_key_t space) {
  const char *start = ps->p;
  int64_t at[2] = {-1, -1}, spatial[TT_MAX_RANK];
  uint32_t n = 0;
  for (uint32_t i = 0; i < TT_MAX_RANK; i++) spatial[i] = -1;
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "["));
  for (int64_t i = 0; !tt__parse_take(ps, "]"); i++) {
    if (i) TT_RETURN_IF_ERROR(tt__parse_need(ps, ","));
    char ch = tt__parse_peek(ps);
    if (ch == letters[0] || ch == letters[1]) {
      at[ch == letters[1]] = i;
      ps->p++;
      continue;
    }
    int64_t d;
    TT_RETURN_IF_ERROR(tt__parse_int(ps, &d));
    if (d < 0 || d >= TT_MAX_RANK - 2 || spatial[d] != -1) {
      return tt__parse_fail(ps, start, "spatial dimension %lld", (long long)d);
    }
    spatial[d] = i;
    n++;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (spatial[i] < 0) return tt__parse_fail(ps, start, "spatial dimension %u is missing", i);
  }
  int64_t *copy = tt_arena_copy(&ps->scratch, spatial, n * sizeof *spatial);
  if (!copy) return tt__no_memory();
  TT_RETURN_IF_ERROR(tt__parse_add_int(ps, r, first, at[0]));
  TT_RETURN_IF_ERROR(tt__parse_add_int(ps, r, second, at[1]));
  return tt__parse_add(ps, r, tt_attr_ints(space, copy, n));
}

static tt_status_t conv_layouts(tt__parser_t *ps, tt__reading_t *r) {
  TT_RETURN_IF_ERROR(layout(ps, r, "bf", TT_ATTR_INPUT_BATCH_DIMENSION,
                            TT_ATTR_INPUT_FEATURE_DIMENSION, TT_ATTR_INPUT_SPATIAL_DIMENSIONS));
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "x"));
  TT_RETURN_IF_ERROR(layout(ps, r, "oi", TT_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION,
                            TT_ATTR_KERNEL_INPUT_FEATURE_DIMENSION,
                            TT_ATTR_KERNEL_SPATIAL_DIMENSIONS));
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "->"));
  return layout(ps, r, "bf", TT_ATTR_OUTPUT_BATCH_DIMENSION, TT_ATTR_OUTPUT_FEATURE_DIMENSION,
                TT_ATTR_OUTPUT_SPATIAL_DIMENSIONS);
}

// A convolution's in brackets, all other structures by fields.
static tt_status_t dimension_numbers(tt__parser_t *ps, tt__reading_t *r) {
  const char *start = ps->p;
  if (tt__parse_take(ps, "#stablehlo.conv<")) {
    if (tt__parse_peek(ps) == '[') {
      TT_RETURN_IF_ERROR(conv_layouts(ps, r));
      return tt__parse_need(ps, ">");
    }
    ps->p = start;
  }
  return structure(ps, r);
}

// An integer, boolean or enum, whatever its key wants; " : i64" may follow.
static tt_status_t int_value(tt__parser_t *ps, tt_attr_key_t key, int64_t *out) {
  switch (key) {
    case TT_ATTR_COMPARISON_DIRECTION:
      return tt__parse_enum(ps, "comparison direction", tt__parse_directions, out);
    case TT_ATTR_COMPARE_TYPE:
      return tt__parse_enum(ps, "comparison type", tt__parse_compare_types, out);
    case TT_ATTR_TRANSPOSE_A:
      return tt__parse_enum(ps, "transpose", transposes, out);
    case TT_ATTR_FFT_TYPE:
      return tt__parse_enum(ps, "FFT type", ffts, out);
    case TT_ATTR_RNG_ALGORITHM:
      return tt__parse_enum(ps, "generator", algorithms, out);
    case TT_ATTR_RNG_DISTRIBUTION:
      return tt__parse_enum(ps, "distribution", distributions, out);
    default:
      break;
  }
  *out = 1;
  if (tt__parse_word(ps, "true") || tt__parse_word(ps, "unit")) return TT_OK_STATUS;
  *out = 0;
  if (tt__parse_word(ps, "false")) return TT_OK_STATUS;
  TT_RETURN_IF_ERROR(tt__parse_int(ps, out));
  skip_scalar_type(ps);
  return TT_OK_STATUS;
}

// Copied first: strtod would read past the end of a text without a final zero.
static tt_status_t float_value(tt__parser_t *ps, double *out) {
  tt__parse_space(ps);
  char text[64];
  size_t n = 0;
  const char *start = ps->p;
  while (ps->p < ps->end && n + 1 < sizeof text && strchr("0123456789+-.eE", *ps->p) && *ps->p) {
    text[n++] = *ps->p++;
  }
  text[n] = '\0';
  char *stop;
  *out = strtod(text, &stop);
  if (n == 0 || *stop) return tt__parse_fail(ps, start, "expected a number");
  skip_scalar_type(ps);
  return TT_OK_STATUS;
}

static tt_status_t bytes_value(tt__parser_t *ps, tt__reading_t *r, tt_attr_key_t key) {
  tt_type_t type;
  const void *bytes;
  size_t size;
  TT_RETURN_IF_ERROR(tt__parse_dense(ps, &type, &bytes, &size));
  if (size > UINT32_MAX) return tt__parse_fail(ps, NULL, "the data has more than 4 GiB");
  return tt__parse_add(ps, r, tt_attr_bytes(key, bytes, (uint32_t)size));
}

// Unknown attributes (shardings, frontend attributes) are skipped: none changes what is computed.
static tt_status_t attribute_value(tt__parser_t *ps, tt__reading_t *r, tt_slice_t name) {
  if (tt_slice_is(name, "dimension_numbers") || tt_slice_is(name, "scatter_dimension_numbers") ||
      tt_slice_is(name, "dot_dimension_numbers") || tt_slice_is(name, "channel_handle")) {
    return dimension_numbers(ps, r);
  }
  if (tt_slice_is(name, "decomposition") || tt_slice_is(name, "callee")) {
    return tt__parse_symbol(ps, &r->callee);
  }
  tt_attr_key_t key = key_of(name);
  if (key == TT_ATTR_COUNT) return tt__parse_skip(ps);
  if (key == TT_ATTR_PRECISION_CONFIG) return precision_list(ps, r);
  switch ((tt_attr_kind_t)tt_attr_kinds[key]) {
    case TT_ATTR_KIND_INT: {
      int64_t value;
      TT_RETURN_IF_ERROR(int_value(ps, key, &value));
      return tt__parse_add_int(ps, r, key, value);
    }
    case TT_ATTR_KIND_INTS: {
      int64_t *list, columns;
      uint32_t n;
      TT_RETURN_IF_ERROR(any_ints(ps, &list, &n, &columns));
      if (key == TT_ATTR_REPLICA_GROUPS) {
        if (n == 0) return TT_OK_STATUS;
        TT_RETURN_IF_ERROR(tt__parse_add_int(ps, r, TT_ATTR_REPLICA_GROUP_SIZE, columns));
      }
      return tt__parse_add_ints(ps, r, key, list, n);
    }
    case TT_ATTR_KIND_FLOAT: {
      double value;
      TT_RETURN_IF_ERROR(float_value(ps, &value));
      return tt__parse_add(ps, r, tt_attr_float(key, value));
    }
    case TT_ATTR_KIND_STRING: {
      tt_slice_t s;
      if (tt__parse_peek(ps) != '"') return tt__parse_skip(ps);
      TT_RETURN_IF_ERROR(tt__parse_string(ps, &s));
      return tt__parse_add(ps, r, tt_attr_string(key, s.at, (uint32_t)s.size));
    }
    case TT_ATTR_KIND_BYTES:
      return bytes_value(ps, r, key);
  }
  return TT_OK_STATUS;
}

tt_status_t tt__parse_dictionary(tt__parser_t *ps, tt__reading_t *r) {
  bool properties = tt__parse_take(ps, "<");
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "{"));
  while (!tt__parse_take(ps, "}")) {
    if (tt__parse_take(ps, ",")) continue;
    tt_slice_t name = tt__parse_identifier(ps);
    if (name.size == 0) {
      if (tt__parse_peek(ps) != '"') return tt__parse_fail(ps, NULL, "expected an attribute");
      TT_RETURN_IF_ERROR(tt__parse_string(ps, &name));
    }
    if (tt__parse_take(ps, "=")) {
      TT_RETURN_IF_ERROR(attribute_value(ps, r, name));
    } else if (tt_slice_is(name, "use_global_device_ids")) {
      TT_RETURN_IF_ERROR(tt__parse_add_int(ps, r, TT_ATTR_USE_GLOBAL_DEVICE_IDS, 1));
    }
  }
  return properties ? tt__parse_need(ps, ">") : TT_OK_STATUS;
}

// "[0] x [0]": one list for each operand of a dot product.
static tt_status_t list_pair(tt__parser_t *ps, tt__reading_t *r, tt_attr_key_t lhs,
                             tt_attr_key_t rhs) {
  int64_t *list, columns;
  uint32_t n;
  TT_RETURN_IF_ERROR(any_ints(ps, &list, &n, &columns));
  TT_RETURN_IF_ERROR(tt__parse_add_ints(ps, r, lhs, list, n));
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "x"));
  TT_RETURN_IF_ERROR(any_ints(ps, &list, &n, &columns));
  return tt__parse_add_ints(ps, r, rhs, list, n);
}

// "{stride = [2, 2], pad = [[1, 1], [1, 1]], ...}"
static tt_status_t conv_window(tt__parser_t *ps, tt__reading_t *r) {
  static const struct {
    const char *name;
    tt_attr_key_t key;
  } fields[] = {{"stride", TT_ATTR_WINDOW_STRIDES},
                {"pad", TT_ATTR_PADDING},
                {"lhs_dilate", TT_ATTR_LHS_DILATION},
                {"rhs_dilate", TT_ATTR_RHS_DILATION},
                {"reverse", TT_ATTR_WINDOW_REVERSAL}};
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "{"));
  while (!tt__parse_take(ps, "}")) {
    if (tt__parse_take(ps, ",")) continue;
    tt_slice_t name = tt__parse_identifier(ps);
    int64_t *list, columns;
    uint32_t n, i = 0;
    while (i < 5 && !tt_slice_is(name, fields[i].name)) i++;
    if (i == 5) return tt__parse_fail(ps, NULL, "unknown field of a window");
    TT_RETURN_IF_ERROR(tt__parse_need(ps, "="));
    TT_RETURN_IF_ERROR(any_ints(ps, &list, &n, &columns));
    TT_RETURN_IF_ERROR(tt__parse_add_ints(ps, r, fields[i].key, list, n));
  }
  return TT_OK_STATUS;
}

// "e5m10"
static tt_status_t float_format(tt__parser_t *ps, tt__reading_t *r) {
  int64_t exponent, mantissa;
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "e"));
  TT_RETURN_IF_ERROR(tt__parse_int(ps, &exponent));
  TT_RETURN_IF_ERROR(tt__parse_need(ps, "m"));
  TT_RETURN_IF_ERROR(tt__parse_int(ps, &mantissa));
  TT_RETURN_IF_ERROR(tt__parse_add_int(ps, r, TT_ATTR_EXPONENT_BITS, exponent));
  return tt__parse_add_int(ps, r, TT_ATTR_MANTISSA_BITS, mantissa);
}

// Short forms have words of their own for some attributes, and one word may mean two, by op.
tt_status_t tt__parse_keyword(tt__parser_t *ps, tt__reading_t *r, tt_slice_t name) {
  static const struct {
    const char *word;
    tt_op_t op;  // TT_OP_COUNT: any
    const char *attribute;
  } words[] = {{"dims", TT_OP_BROADCAST_IN_DIM, "broadcast_dimensions"},
               {"dims", TT_OP_TRANSPOSE, "permutation"},
               {"dims", TT_OP_COUNT, "dimensions"},
               {"dim", TT_OP_IOTA, "iota_dimension"},
               {"dim", TT_OP_COUNT, "dimension"},
               {"sizes", TT_OP_COUNT, "slice_sizes"},
               {"low", TT_OP_COUNT, "edge_padding_low"},
               {"high", TT_OP_COUNT, "edge_padding_high"},
               {"interior", TT_OP_COUNT, "interior_padding"},
               {"precision", TT_OP_COUNT, "precision_config"},
               {"algorithm", TT_OP_RNG_BIT_GENERATOR, "rng_algorithm"},
               {"distribution", TT_OP_COUNT, "rng_distribution"},
               {"type", TT_OP_FFT, "fft_type"},
               {"length", TT_OP_FFT, "fft_length"}};
  if (tt_slice_is(name, "batching_dims")) {
    return list_pair(ps, r, TT_ATTR_LHS_BATCHING_DIMENSIONS, TT_ATTR_RHS_BATCHING_DIMENSIONS);
  }
  if (tt_slice_is(name, "contracting_dims")) {
    return list_pair(ps, r, TT_ATTR_LHS_CONTRACTING_DIMENSIONS, TT_ATTR_RHS_CONTRACTING_DIMENSIONS);
  }
  if (tt_slice_is(name, "dim_numbers")) return conv_layouts(ps, r);
  if (tt_slice_is(name, "window")) return conv_window(ps, r);
  if (tt_slice_is(name, "format")) return float_format(ps, r);
  for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!tt_slice_is(name, words[i].word)) continue;
    if (words[i].op != TT_OP_COUNT && words[i].op != r->op) continue;
    return attribute_value(ps, r, (tt_slice_t){words[i].attribute, strlen(words[i].attribute)});
  }
  return attribute_value(ps, r, name);
}
