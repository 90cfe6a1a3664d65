// Indexing by lists of tensors (index, index_put) and by flat position (take, put_,
// masked_scatter). Boolean masks were turned into integer indices before they get here.
#include "aten/index.h"

tt_value_t tt__at_least_1d(tt_build_t *b, tt_value_t x) {
  static const int64_t one[] = {1};
  return tt__rank(b, x) == 0 ? tt_emit_reshape(b, x, 1, one) : x;
}

tt_value_t tt__fill_like(tt_build_t *b, tt_value_t like, tt_value_t scalar) {
  const tt_type_t *t = tt_build_type(b, like);
  return tt_emit_broadcast_to(b, scalar, t->rank, t->dims);
}

static tt_value_t integer_scalar(tt_build_t *b, tt_dtype_t dtype, int64_t value) {
  return tt_emit_splat_int(b, dtype, 0, NULL, value);
}

tt_value_t tt__index_ready(tt_lower_t *L, tt_value_t index, int64_t dim, int64_t size, bool wrap,
                           tt_code_t code) {
  tt_build_t *b = L->b;
  if (!tt_dtype_is_int(tt_build_dtype(b, index))) {
    tt_lower_unsupported(L, "indices of type %s", tt_dtype_text(tt_build_dtype(b, index)));
    return index;
  }
  // Narrow types cannot hold the size; wide ones must be compared before they are narrowed.
  if (tt_dtype_size(tt_build_dtype(b, index)) < 4) index = tt_emit_convert(b, index, TT_S32);
  const tt_dtype_t d = tt_build_dtype(b, index);
  const tt_value_t end = integer_scalar(b, d, size);
  const tt_value_t begin = integer_scalar(b, d, wrap ? -size : 0);
  const tt_value_t inside = tt__and(b, tt__ge(b, index, begin), tt__lt(b, index, end));
  const uint32_t rank = tt__rank(b, index);
  int64_t dims[TT_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) dims[i] = i;
  tt_lower_check(L, rank ? tt_emit_reduce(b, TT_OP_AND, inside, dims, rank, false) : inside, code,
                 "index is out of bounds for dimension %lld with size %lld", (long long)dim,
                 (long long)size);
  if (wrap) {
    index =
        tt_emit_select(b, tt__lt(b, index, integer_scalar(b, d, 0)), tt__add(b, index, end), index);
  }
  return size <= INT32_MAX ? tt_emit_convert(b, index, TT_S32) : index;
}

// --- lists of index tensors ----------------------------------------------------------------------
typedef struct advanced_s {
  uint32_t count;             // indexed dimensions
  int64_t dims[TT_MAX_RANK];  // ... of self
  uint32_t rank;              // of the broadcast index tensors
  int64_t sizes[TT_MAX_RANK];
  uint32_t at;       // where those dimensions stand in the result
  tt_value_t start;  // [sizes..., count]
  uint32_t result_rank;
  int64_t result[TT_MAX_RANK];
  int64_t window[TT_MAX_RANK];  // dimensions of the result that are not the index's
  uint32_t window_count;
} advanced_t;

// NumPy's rule: the index tensors broadcast to one shape, which stands where the first of them does
// when they are neighbours, else in front. False where there is none, or too many.
static bool advanced_shape(const tt_lower_t *L, uint32_t arg, const tt_tensor_t *self,
                           advanced_t *a) {
  const tt_arg_t *list = tt_lower_arg(L, arg);
  bool adjacent = true;
  memset(a, 0, sizeof *a);
  for (uint32_t i = 0; i < list->count; i++) {
    const tt_tensor_t *t = &list->u.tensors[i];
    if (t->rank == TT_NO_TENSOR) continue;
    if (a->count && a->dims[a->count - 1] != i - 1) adjacent = false;
    a->dims[a->count++] = i;
    if (t->rank > a->rank) a->rank = t->rank;
  }
  if (a->count == 0 || list->count > self->rank) return false;
  for (uint32_t k = 0; k < a->rank; k++) a->sizes[k] = 1;
  for (uint32_t i = 0; i < a->count; i++) {
    const tt_tensor_t *t = &list->u.tensors[a->dims[i]];
    for (uint32_t k = 0; k < t->rank; k++) {
      int64_t *size = &a->sizes[a->rank - t->rank + k];
      if (t->sizes[k] != 1) *size = t->sizes[k];
    }
  }
  a->at = adjacent ? (uint32_t)a->dims[0] : 0;
  uint32_t next = 0;
  for (uint32_t i = 0, out = 0; i <= self->rank; i++) {
    if (out == a->at) {
      for (uint32_t k = 0; k < a->rank; k++) a->result[out++] = a->sizes[k];
      if (a->rank == 0 && i == self->rank) break;
    }
    if (i == self->rank) break;
    if (next < a->count && a->dims[next] == i) {
      next++;
      continue;
    }
    a->window[a->window_count++] = out;
    a->result[out++] = self->sizes[i];
    a->result_rank = out;
  }
  a->result_rank = self->rank - a->count + a->rank;
  return true;
}

// Reads the list into `a`; false where the program is decided without indexing.
static bool advanced_read(tt_lower_t *L, uint32_t arg, const tt_tensor_t *self, advanced_t *a) {
  tt_build_t *b = L->b;
  tt_value_t parts[TT_MAX_RANK];
  int64_t column[TT_MAX_RANK + 1];
  bool wide = false;
  if (!advanced_shape(L, arg, self, a)) {
    tt_lower_unsupported(L, "this list of indices");
    return false;
  }
  for (uint32_t k = 0; k < a->rank; k++) column[k] = a->sizes[k];
  column[a->rank] = 1;
  for (uint32_t i = 0; i < a->count; i++) {
    const uint32_t dim = (uint32_t)a->dims[i];
    const tt_value_t v = tt_lower_list_tensor(L, arg, dim);
    parts[i] = tt__index_ready(L, v, dim, self->sizes[dim], true, TT_INDEX);
    parts[i] = tt_emit_broadcast_to(b, parts[i], a->rank, a->sizes);
    parts[i] = tt_emit_reshape(b, parts[i], a->rank + 1, column);
    wide = wide || self->sizes[dim] > INT32_MAX;
  }
  for (uint32_t i = 0; wide && i < a->count; i++) parts[i] = tt_emit_convert(b, parts[i], TT_S64);
  a->start = a->count == 1 ? parts[0] : tt_emit_concat(b, parts, a->count, a->rank);
  return true;
}

// index.Tensor(self, indices), _unsafe_index.Tensor
TT_LOWER0(index) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const tt_out_meta_t *out = &L->outs[0];
  int64_t slice[TT_MAX_RANK];
  advanced_t a;
  if (!advanced_read(L, 1, self, &a)) return;
  if (tt__product(out->sizes, out->rank) == 0) {
    tt_lower_return(L, 0, tt_emit_splat(b, (tt_dtype_t)out->dtype, out->rank, out->sizes, 0));
    return;
  }
  if (tt__product(self->sizes, self->rank) == 0) {
    TT__FAIL(L, INDEX, "index is out of bounds for dimension with size 0");
    return;
  }
  for (uint32_t i = 0; i < self->rank; i++) slice[i] = self->sizes[i];
  for (uint32_t i = 0; i < a.count; i++) slice[a.dims[i]] = 1;
  tt__attrs_t attrs = {.count = 0};
  tt__attr_ints(&attrs, TT_ATTR_OFFSET_DIMS, a.window, a.window_count);
  tt__attr_ints(&attrs, TT_ATTR_COLLAPSED_SLICE_DIMS, a.dims, a.count);
  tt__attr_ints(&attrs, TT_ATTR_START_INDEX_MAP, a.dims, a.count);
  tt__attr_int(&attrs, TT_ATTR_INDEX_VECTOR_DIM, a.rank);
  tt__attr_ints(&attrs, TT_ATTR_SLICE_SIZES, slice, self->rank);
  const tt_value_t operands[] = {tt_lower_tensor(L, 0), a.start};
  const tt_node_spec_t spec = {.op = TT_OP_GATHER,
                               .operands = operands,
                               .operand_count = 2,
                               .attrs = attrs.items,
                               .attr_count = attrs.count};
  tt_lower_return(L, 0, tt_emit(b, &spec));
}

// A scatter whose body is `op` over (old, new), TT_OP_COUNT for "new".
static tt_value_t scatter(tt_build_t *b, tt_value_t self, tt_value_t start, tt_value_t updates,
                          const tt__attrs_t *attrs, tt_op_t op) {
  const tt_type_t scalar = {tt_build_dtype(b, self), 0, NULL}, types[] = {scalar, scalar};
  tt_value_t args[2];
  tt_block_t *body = tt_emit_region_begin(b, types, 2, args);
  const tt_value_t result = op == TT_OP_COUNT ? args[1] : tt_emit_binary(b, op, args[0], args[1]);
  tt_emit_region_end(b, body, &result, 1);
  const tt_value_t operands[] = {self, start, updates};
  const tt_node_spec_t spec = {.op = TT_OP_SCATTER,
                               .operands = operands,
                               .operand_count = 3,
                               .attrs = attrs->items,
                               .attr_count = attrs->count,
                               .regions = &body,
                               .region_count = 1};
  return tt_emit(b, &spec);
}

// index_put(self, indices, values, accumulate), _index_put_impl_, _unsafe_index_put
TT_LOWER0(index_put) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const bool accumulate = tt_lower_int(L, 3, 0) != 0;
  const tt_dtype_t out = (tt_dtype_t)self->dtype, d = accumulate ? tt_lower_opmath(out) : out;
  const tt_dtype_t given = (tt_dtype_t)tt_lower_meta(L, 2)->dtype;
  advanced_t a;
  if (given != out) {
    TT__FAIL(L, INVALID_ARGUMENT,
             "Index put requires the source and destination dtypes match, got %s for the "
             "destination and %s for the source.",
             tt_dtype_text(out), tt_dtype_text(given));
    return;
  }
  const tt_value_t old = tt_lower_tensor_as(L, 0, d), values = tt_lower_tensor_as(L, 2, d);
  if (!advanced_read(L, 1, self, &a)) return;
  if (tt__product(a.result, a.result_rank) == 0) {
    tt_lower_return(L, 0, old);
    return;
  }
  tt__attrs_t attrs = {.count = 0};
  tt__attr_ints(&attrs, TT_ATTR_UPDATE_WINDOW_DIMS, a.window, a.window_count);
  tt__attr_ints(&attrs, TT_ATTR_INSERTED_WINDOW_DIMS, a.dims, a.count);
  tt__attr_ints(&attrs, TT_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, a.dims, a.count);
  tt__attr_int(&attrs, TT_ATTR_INDEX_VECTOR_DIM, a.rank);
  // PyTorch also takes values with leading dimensions of size 1 beyond the result's.
  tt_value_t updates = values;
  const tt_type_t *t = tt_build_type(b, values);
  if (t->rank > a.result_rank) {
    updates = tt_emit_reshape(b, values, a.result_rank, t->dims + (t->rank - a.result_rank));
  }
  updates = tt_emit_broadcast_to(b, updates, a.result_rank, a.result);
  tt_lower_return(L, 0,
                  scatter(b, old, a.start, updates, &attrs, accumulate ? TT_OP_ADD : TT_OP_COUNT));
}

// --- flat positions ------------------------------------------------------------------------------

// take(self, index)
TT_LOWER0(take) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const tt_out_meta_t *out = &L->outs[0];
  const int64_t n = tt__product(self->sizes, self->rank);
  if (n == 0) {
    if (tt__product(out->sizes, out->rank) != 0) {
      TT__FAIL(L, INDEX, "take(): tried to take from an empty tensor");
      return;
    }
    tt_lower_return(L, 0, tt_emit_splat(b, (tt_dtype_t)out->dtype, out->rank, out->sizes, 0));
    return;
  }
  const tt_value_t index = tt__index_ready(L, tt_lower_tensor(L, 1), 0, n, true, TT_INDEX);
  tt_lower_return(L, 0, tt_emit_take(b, tt__flatten(b, tt_lower_tensor(L, 0)), index, 0));
}

// put(self, index, source, accumulate)
TT_LOWER0(put) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0), *index = tt_lower_meta(L, 1);
  const int64_t n = tt__product(self->sizes, self->rank);
  const bool accumulate = tt_lower_int(L, 3, 0) != 0;
  const tt_dtype_t out = (tt_dtype_t)self->dtype, d = accumulate ? tt_lower_opmath(out) : out;
  if (tt__product(index->sizes, index->rank) == 0) {
    tt_lower_return(L, 0, tt_lower_tensor(L, 0));
    return;
  }
  if (n == 0) {
    TT__FAIL(L, INDEX, "put_(): cannot put elements into an empty tensor");
    return;
  }
  const tt_value_t at =
      tt__flatten(b, tt__index_ready(L, tt_lower_tensor(L, 1), 0, n, true, TT_INDEX));
  const tt_value_t r = tt_emit_put(b, tt__flatten(b, tt_lower_tensor_as(L, 0, d)), at,
                                   tt__flatten(b, tt_lower_tensor_as(L, 2, d)), 0,
                                   accumulate ? TT_OP_ADD : TT_OP_COUNT);
  tt_lower_return(L, 0, tt_emit_reshape(b, r, self->rank, self->sizes));
}

// masked_scatter(self, mask, source): the k-th true element of the mask takes source's k-th.
TT_LOWER0(masked_scatter) {
  tt_build_t *b = L->b;
  const tt_out_meta_t *out = &L->outs[0];
  const tt_tensor_t *source = tt_lower_meta(L, 2);
  const int64_t n = tt__product(out->sizes, out->rank);
  const int64_t available = tt__product(source->sizes, source->rank);
  const tt_value_t self = tt__to_out(L, 0, tt_lower_tensor(L, 0));
  const tt_value_t mask = tt__to_out(L, 0, tt_lower_tensor_as(L, 1, TT_I1));
  if (n == 0 || available == 0) {
    tt_lower_return(L, 0, self);
    return;
  }
  const tt_dtype_t d = n <= INT32_MAX ? TT_S32 : TT_S64;
  const tt_value_t count = tt__prefix_sum(b, tt_emit_convert(b, tt__flatten(b, mask), d), 0);
  const int64_t last[] = {n - 1}, end[] = {n};
  const tt_value_t total = tt_emit_reshape(b, tt_emit_slice(b, count, last, end, NULL), 0, NULL);
  tt_lower_check(L, tt__cmpc(b, TT_LE, total, (double)available), TT_INVALID_ARGUMENT,
                 "masked_scatter: expected the number of elements of source (%lld) to be at least "
                 "the number of ones in mask",
                 (long long)available);
  tt_value_t at = tt__addc(b, count, -1);
  at = tt_emit_clamp(b, tt__num(b, at, 0), at, tt__num(b, at, (double)(available - 1)));
  const tt_value_t taken =
      tt_emit_take(b, tt__flatten(b, tt_lower_tensor_as(L, 2, (tt_dtype_t)out->dtype)), at, 0);
  tt_lower_return(L, 0, tt_emit_select(b, mask, tt__reshape_out(L, 0, taken), self));
}
