// Indexing along one dimension: gather and scatter (an index an element), index_select, index_add
// and their kin (an index a slice).
#include "aten/index.h"

// The size of self along `dim`, where a 0-d tensor counts as one element.
static int64_t size_along(const tt_tensor_t *t, int64_t dim) { return t->rank ? t->sizes[dim] : 1; }

static bool is_empty(const tt_tensor_t *t) { return tt__product(t->sizes, t->rank) == 0; }

// gather(self, dim, index, sparse_grad)
TT_LOWER0(gather) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const int64_t dim = tt_lower_dim(L, 1, self->rank);
  const tt_value_t x = tt__at_least_1d(b, tt_lower_tensor(L, 0));
  const tt_value_t raw = tt__at_least_1d(b, tt_lower_tensor(L, 2));
  if (is_empty(tt_lower_meta(L, 2))) {
    const tt_out_meta_t *out = &L->outs[0];
    tt_lower_return(L, 0, tt_emit_splat(b, (tt_dtype_t)out->dtype, out->rank, out->sizes, 0));
    return;
  }
  const tt_value_t index =
      tt__index_ready(L, raw, dim, size_along(self, dim), false, TT_INVALID_ARGUMENT);
  tt_lower_return(L, 0, tt__reshape_out(L, 0, tt_emit_take_along(b, x, index, dim)));
}

// How to combine many updates of one place.
typedef enum reduce_e { SUM, PROD, MEAN, AMAX, AMIN, REDUCE_COUNT } reduce_t;
static const tt_op_t reduce_ops[] = {TT_OP_ADD, TT_OP_MULTIPLY, TT_OP_ADD, TT_OP_MAXIMUM,
                                     TT_OP_MINIMUM};

static reduce_t reduce_named(const tt_arg_t *name) {
  static const char *const names[][2] = {
      {"sum", "add"}, {"prod", "multiply"}, {"mean", "mean"}, {"amax", "amax"}, {"amin", "amin"}};
  for (int i = 0; i < REDUCE_COUNT; i++) {
    if (tt__string_is(name, names[i][0]) || tt__string_is(name, names[i][1])) return (reduce_t)i;
  }
  return REDUCE_COUNT;
}

static tt_value_t identity_like(tt_build_t *b, reduce_t r, tt_value_t like) {
  const tt_dtype_t d = tt_build_dtype(b, like);
  if (r == AMAX) return tt__fill_like(b, like, tt_emit_lowest(b, d));
  if (r == AMIN) return tt__fill_like(b, like, tt_emit_highest(b, d));
  return tt_emit_splat_like(b, like, r == PROD ? 1 : 0);
}

// Puts along or puts slices: the two shapes that every reducing form below comes in.
typedef tt_value_t (*put_fn_t)(tt_build_t *b, tt_value_t x, tt_value_t index, tt_value_t updates,
                               int64_t dim, tt_op_t op);

static tt_value_t reduce_into(tt_build_t *b, put_fn_t put, tt_value_t x, tt_value_t index,
                              tt_value_t updates, int64_t dim, reduce_t r, bool include_self) {
  tt_value_t start = x;
  if (!include_self) {
    start = put(b, x, index, identity_like(b, r, updates), dim, TT_OP_COUNT);
  }
  const tt_value_t sum = put(b, start, index, updates, dim, reduce_ops[r]);
  // The mean of booleans is their sum, "or": every count is true.
  if (r != MEAN || tt_build_dtype(b, x) == TT_I1) return sum;
  const tt_value_t before = tt_emit_splat_like(b, x, include_self ? 1 : 0);
  tt_value_t n = put(b, before, index, tt_emit_splat_like(b, updates, 1), dim, TT_OP_ADD);
  n = tt__max(b, n, tt__num(b, n, 1));
  return tt_dtype_is_int(tt_build_dtype(b, x)) ? tt__floor_div(b, sum, n) : tt__div(b, sum, n);
}

// Index and updates cut to index's shape: PyTorch lets src be larger.
static bool scatter_operands(tt_lower_t *L, uint32_t src, tt_dtype_t d, int64_t dim,
                             tt_value_t *out_index, tt_value_t *out_updates) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0), *index = tt_lower_meta(L, 2);
  static const int64_t zeros[TT_MAX_RANK] = {0};
  const tt_value_t raw = tt__at_least_1d(b, tt_lower_tensor(L, 2));
  *out_index = tt__index_ready(L, raw, dim, size_along(self, dim), false, TT_INVALID_ARGUMENT);
  const tt_type_t *shape = tt_build_type(b, raw);
  if (!tt_lower_is_tensor(L, src)) {
    *out_updates = tt__fill_like(b, raw, tt_lower_scalar(L, src, d));
    return true;
  }
  const tt_value_t updates = tt__at_least_1d(b, tt_lower_tensor_as(L, src, d));
  if (tt_build_type(b, updates)->rank != shape->rank) {
    tt_lower_unsupported(L, "index of rank %u with src of another rank", index->rank);
    return false;
  }
  *out_updates = tt_emit_slice(b, updates, zeros, shape->dims, NULL);
  return true;
}

// scatter.src, .value, .reduce, .value_reduce, scatter_add: (self, dim, index, src[, reduce]).
TT_LOWER(scatter) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const int64_t dim = tt_lower_dim(L, 1, self->rank);
  const tt_dtype_t out = (tt_dtype_t)self->dtype, d = param ? tt_lower_opmath(out) : out;
  tt_value_t index, updates;
  tt_op_t op = param == TT__ADD ? TT_OP_ADD : TT_OP_COUNT;
  if (param == TT__BY_NAME) op = reduce_ops[reduce_named(tt_lower_arg(L, 4)) % REDUCE_COUNT];
  if (is_empty(tt_lower_meta(L, 2))) {
    tt_lower_return(L, 0, tt_lower_tensor(L, 0));
    return;
  }
  if (!scatter_operands(L, 3, d, dim, &index, &updates)) return;
  const tt_value_t x = tt__at_least_1d(b, tt_lower_tensor_as(L, 0, d));
  const tt_value_t r = tt_emit_put_along(b, x, index, updates, dim, op);
  tt_lower_return(L, 0, tt__reshape_out(L, 0, r));
}

// scatter_reduce.two(self, dim, index, src, reduce, include_self)
TT_LOWER0(scatter_reduce) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const int64_t dim = tt_lower_dim(L, 1, self->rank);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)self->dtype);
  const reduce_t how = reduce_named(tt_lower_arg(L, 4));
  tt_value_t index, updates;
  if (how == REDUCE_COUNT) {
    tt_lower_unsupported(L, "this reduction");
    return;
  }
  if (is_empty(tt_lower_meta(L, 2))) {
    tt_lower_return(L, 0, tt_lower_tensor(L, 0));
    return;
  }
  if (!scatter_operands(L, 3, d, dim, &index, &updates)) return;
  const tt_value_t x = tt__at_least_1d(b, tt_lower_tensor_as(L, 0, d));
  const tt_value_t r =
      reduce_into(b, tt_emit_put_along, x, index, updates, dim, how, tt_lower_int(L, 5, 1) != 0);
  tt_lower_return(L, 0, tt__reshape_out(L, 0, r));
}

// index_select(self, dim, index)
TT_LOWER0(index_select) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const tt_out_meta_t *out = &L->outs[0];
  const int64_t dim = tt_lower_dim(L, 1, self->rank);
  if (tt_lower_meta(L, 2)->rank > 1) {
    TT__FAIL(L, INDEX, "index_select(): Index is supposed to be a vector");
    return;
  }
  const tt_value_t raw = tt__at_least_1d(b, tt_lower_tensor(L, 2));
  if (tt__product(out->sizes, out->rank) == 0) {
    tt_lower_return(L, 0, tt_emit_splat(b, (tt_dtype_t)out->dtype, out->rank, out->sizes, 0));
    return;
  }
  const tt_value_t index = tt__index_ready(L, raw, dim, size_along(self, dim), false, TT_INDEX);
  const tt_value_t x = tt__at_least_1d(b, tt_lower_tensor(L, 0));
  tt_lower_return(L, 0, tt__reshape_out(L, 0, tt_emit_take(b, x, index, dim)));
}

// index and source of index_add, index_copy, index_reduce: (self, dim, index, source, ...).
static void slice_operands(tt_lower_t *L, tt_dtype_t d, int64_t dim, tt_value_t *out_index,
                           tt_value_t *out_source) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const tt_value_t raw = tt__at_least_1d(b, tt_lower_tensor(L, 2));
  int64_t dims[TT_MAX_RANK] = {1};
  *out_index = tt__index_ready(L, raw, dim, size_along(self, dim), false, TT_INDEX);
  for (uint32_t i = 0; i < self->rank; i++) dims[i] = self->sizes[i];
  dims[dim] = tt__dim(b, raw, 0);
  *out_source = tt_emit_reshape(b, tt_lower_tensor_as(L, 3, d), self->rank ? self->rank : 1, dims);
}

// index_add(self, dim, index, source, alpha); index_copy without alpha.
TT_LOWER(index_add) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const int64_t dim = tt_lower_dim(L, 1, self->rank);
  const tt_dtype_t out = (tt_dtype_t)self->dtype, d = param == TT__ADD ? tt_lower_opmath(out) : out;
  tt_value_t index, source;
  if (is_empty(tt_lower_meta(L, 2)) || is_empty(self)) {
    tt_lower_return(L, 0, tt_lower_tensor(L, 0));
    return;
  }
  slice_operands(L, d, dim, &index, &source);
  if (param == TT__ADD && !tt_lower_scalar_is(L, 4, 1)) {
    const tt_value_t alpha = tt_lower_scalar(L, 4, d);
    source = d == TT_I1 ? tt__and(b, source, alpha) : tt__mul(b, source, alpha);
  }
  const tt_value_t x = tt__at_least_1d(b, tt_lower_tensor_as(L, 0, d));
  const tt_value_t r =
      tt_emit_put(b, x, index, source, dim, param == TT__ADD ? TT_OP_ADD : TT_OP_COUNT);
  tt_lower_return(L, 0, tt__reshape_out(L, 0, r));
}

// index_reduce(self, dim, index, source, reduce, include_self)
TT_LOWER0(index_reduce) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const int64_t dim = tt_lower_dim(L, 1, self->rank);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)self->dtype);
  const reduce_t how = reduce_named(tt_lower_arg(L, 4));
  tt_value_t index, source;
  if (how == REDUCE_COUNT) {
    tt_lower_unsupported(L, "this reduction");
    return;
  }
  if (is_empty(tt_lower_meta(L, 2)) || is_empty(self)) {
    tt_lower_return(L, 0, tt_lower_tensor(L, 0));
    return;
  }
  slice_operands(L, d, dim, &index, &source);
  const tt_value_t x = tt__at_least_1d(b, tt_lower_tensor_as(L, 0, d));
  const tt_value_t r =
      reduce_into(b, tt_emit_put, x, index, source, dim, how, tt_lower_int(L, 5, 1) != 0);
  tt_lower_return(L, 0, tt__reshape_out(L, 0, r));
}

static bool fill_arguments_fit(tt_lower_t *L) {
  const tt_tensor_t *index = tt_lower_meta(L, 2);
  if ((tt_dtype_t)index->dtype != TT_S64) {
    TT__FAIL(L, INDEX, "index_fill_(): Expected dtype int64 for index.");
  } else if (index->rank > 1) {
    TT__FAIL(L, INVALID_ARGUMENT, "Index has to be a vector/scalar");
  } else if (tt_lower_is_tensor(L, 3) && tt_lower_meta(L, 3)->rank > 0) {
    TT__FAIL(L, INVALID_ARGUMENT,
             "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %u "
             "dimension(s).",
             tt_lower_meta(L, 3)->rank);
  } else {
    return true;
  }
  return false;
}

// index_fill.int_Scalar, .int_Tensor: (self, dim, index, value)
TT_LOWER0(index_fill) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const int64_t dim = tt_lower_dim(L, 1, self->rank);
  const tt_dtype_t d = (tt_dtype_t)self->dtype;
  if (!fill_arguments_fit(L)) return;
  if (is_empty(tt_lower_meta(L, 2)) || is_empty(self)) {
    tt_lower_return(L, 0, tt_lower_tensor(L, 0));
    return;
  }
  const tt_value_t raw = tt__at_least_1d(b, tt_lower_tensor(L, 2));
  const tt_value_t index = tt__index_ready(L, raw, dim, size_along(self, dim), true, TT_INDEX);
  const int64_t size[] = {size_along(self, dim)};
  // Where any index names the slice, the value: cheaper than writing slices.
  const tt_value_t count[] = {tt_emit_splat(b, TT_I1, 1, size, 0),
                              tt_emit_splat(b, TT_I1, 1, (int64_t[]){tt__dim(b, raw, 0)}, 1)};
  const tt_value_t hit = tt_emit_put(b, count[0], index, count[1], 0, TT_OP_COUNT);
  const tt_value_t x = tt__at_least_1d(b, tt_lower_tensor(L, 0));
  const uint32_t rank = self->rank ? self->rank : 1;
  const tt_value_t value = tt_emit_reshape(b, tt_lower_operand(L, 3, d), 0, NULL);
  const tt_value_t r =
      tt_emit_select(b,
                     tt_emit_broadcast_to(b, tt__along(b, hit, rank, (uint32_t)dim), rank,
                                          tt_build_type(b, x)->dims),
                     tt__fill_like(b, x, value), x);
  tt_lower_return(L, 0, tt__reshape_out(L, 0, r));
}
