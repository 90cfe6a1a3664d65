#include "aten/view.h"

#include <string.h>

enum { MAX_DIMS = TT_MAX_RANK };

// A view without its trivial dimensions: sizes > 1 and strides > 0, by descending stride.
typedef struct core_s {
  uint32_t rank;
  int64_t sizes[MAX_DIMS], strides[MAX_DIMS];
  uint32_t axes[MAX_DIMS];  // the view's dimension each one stands for
  int64_t offset;
  int64_t needed;  // elements from the storage's start to the view's last one, inclusive
} core_t;

// A box in an array of shape `dims`: what a slice takes or an update fills.
typedef struct box_s {
  uint32_t rank;
  int64_t dims[MAX_DIMS], starts[MAX_DIMS], counts[MAX_DIMS], steps[MAX_DIMS];
  bool dense;  // all steps are 1
} box_t;

static int64_t product(const int64_t *sizes, uint32_t rank) {
  int64_t n = 1;
  for (uint32_t i = 0; i < rank; i++) {
    if (sizes[i] == 0) return 0;
    n *= sizes[i];
  }
  return n;
}

static core_t make_core(const tt_view_t *view) {
  core_t c = {.offset = view->offset, .needed = view->offset + 1};
  for (uint32_t a = 0; a < view->rank; a++) {
    int64_t size = view->sizes[a], stride = view->strides[a];
    if (size <= 1 || stride == 0) continue;
    c.needed += (size - 1) * stride;
    uint32_t at = c.rank++;
    for (; at > 0 && c.strides[at - 1] < stride; at--) {
      c.sizes[at] = c.sizes[at - 1];
      c.strides[at] = c.strides[at - 1];
      c.axes[at] = c.axes[at - 1];
    }
    c.sizes[at] = size, c.strides[at] = stride, c.axes[at] = a;
  }
  return c;
}

// Finds the box of `dims` (row-major) that holds exactly the core's elements, in the core's order.
static bool match_box(const core_t *c, uint32_t rank, const int64_t *dims, box_t *box) {
  box->rank = rank;
  box->dense = true;
  if (c->offset >= product(dims, rank)) return false;
  int64_t stride = 1, rest = c->offset;
  uint32_t next = c->rank;  // core dimensions are used up from the innermost on
  for (uint32_t d = rank; d-- > 0;) {
    box->dims[d] = dims[d];
    box->starts[d] = rest % dims[d];
    box->counts[d] = box->steps[d] = 1;
    rest /= dims[d];
    if (next > 0 && dims[d] > 1 && c->strides[next - 1] < stride * dims[d]) {
      int64_t step = c->strides[next - 1] / stride;
      box->counts[d] = c->sizes[next - 1];
      box->steps[d] = step;
      if (c->strides[next - 1] % stride != 0) return false;
      if (box->starts[d] + (box->counts[d] - 1) * step >= dims[d]) return false;
      box->dense &= step == 1;
      next--;
    }
    stride *= dims[d];
  }
  return next == 0;
}

// A factorisation of the flat memory that follows the core's strides: [n/s0, s0/s1, ..., sk]. A
// stride that does not divide the one before falls back on a stride of the base's own dims.
static bool chain_dims(const core_t *c, int64_t elements, uint32_t base_rank,
                       const int64_t *base_dims, uint32_t *out_rank, int64_t *out_dims) {
  uint32_t rank = 0;
  int64_t upper = elements;
  for (uint32_t i = 0; i < c->rank; i++) {
    int64_t s = c->strides[i];
    if (upper % s != 0) {
      int64_t best = 1, stride = 1;
      for (uint32_t d = base_rank; d-- > 0; stride *= base_dims[d]) {
        if (s % stride == 0 && upper % stride == 0) best = stride;
      }
      s = best;
    }
    if (s == upper) continue;
    if (rank + 2 > MAX_DIMS) return false;
    out_dims[rank++] = upper / s;
    upper = s;
  }
  if (upper > 1 || rank == 0) out_dims[rank++] = upper;
  *out_rank = rank;
  return true;
}

static tt_value_t flat(tt_build_t *b, tt_value_t v) {
  int64_t n = tt_type_elements(tt_build_type(b, v));
  return tt_emit_reshape(b, v, 1, &n);
}

static tt_value_t zeros(tt_build_t *b, tt_dtype_t dtype, uint32_t rank, const int64_t *dims) {
  return tt_emit_splat_int(b, dtype, rank, dims, 0);
}

// A rank-1 value cut or padded with zeros to `elements`.
static tt_value_t resized(tt_build_t *b, tt_value_t v, int64_t elements) {
  v = flat(b, v);
  if (b->status) return TT_NO_VALUE;
  int64_t n = tt_build_type(b, v)->dims[0], low = 0, high = elements - n;
  if (high == 0) return v;
  if (high < 0) return tt_emit_slice_dim(b, v, 0, 0, elements, 1);
  if (n == 0) return zeros(b, tt_build_dtype(b, v), 1, &elements);
  return tt_emit_pad(b, v, zeros(b, tt_build_dtype(b, v), 0, NULL), &low, &high, NULL);
}

// --- dtypes --------------------------------------------------------------------------------------

// [..., n] of complex -> [..., 2n] of real.
static tt_value_t split_complex(tt_build_t *b, tt_value_t v) {
  const tt_type_t *t = tt_build_type(b, v);
  int64_t dims[MAX_DIMS + 1];
  memcpy(dims, t->dims, t->rank * sizeof *dims);
  dims[t->rank] = 1;
  tt_value_t parts[2] = {tt_emit_unary(b, TT_OP_REAL, v), tt_emit_unary(b, TT_OP_IMAG, v)};
  for (int i = 0; i < 2; i++) parts[i] = tt_emit_reshape(b, parts[i], t->rank + 1, dims);
  tt_value_t pairs = tt_emit_concat(b, parts, 2, t->rank);
  dims[t->rank - 1] *= 2;
  return tt_emit_reshape(b, pairs, t->rank, dims);
}

// [..., 2n] of real -> [..., n] of complex.
static tt_value_t join_complex(tt_build_t *b, tt_value_t v) {
  int64_t last = (int64_t)tt_build_type(b, v)->rank - 1;
  int64_t n = last < 0 ? 0 : tt_build_type(b, v)->dims[last];
  tt_value_t re = tt_emit_slice_dim(b, v, last, 0, n, 2);
  tt_value_t im = tt_emit_slice_dim(b, v, last, 1, n, 2);
  return tt_emit_binary(b, TT_OP_COMPLEX, re, im);
}

// [..., n] -> [..., n * from/to bytes], neither complex nor i1; the last dimension divides.
static tt_value_t rebit(tt_build_t *b, tt_value_t v, tt_dtype_t dtype) {
  const tt_type_t *t = tt_build_type(b, v);
  int64_t from = (int64_t)tt_dtype_size(t->dtype), to = (int64_t)tt_dtype_size(dtype);
  uint32_t rank = t->rank;
  int64_t dims[MAX_DIMS + 1];
  memcpy(dims, t->dims, rank * sizeof *dims);
  if (from == to) return t->dtype == dtype ? v : tt_emit_bitcast(b, v, dtype, rank, dims);
  if (from > to) {
    dims[rank] = from / to;
    v = tt_emit_bitcast(b, v, dtype, rank + 1, dims);
    dims[rank - 1] *= from / to;
    return tt_emit_reshape(b, v, rank, dims);
  }
  dims[rank - 1] /= to / from;
  dims[rank] = to / from;
  v = tt_emit_reshape(b, v, rank + 1, dims);
  return tt_emit_bitcast(b, v, dtype, rank, dims);
}

// `value`'s memory seen as another dtype: same bytes; the last dimension takes the factor where it
// can, else the result has rank 1, padded with zeros to a whole element.
static tt_value_t as_dtype(tt_build_t *b, tt_value_t value, tt_dtype_t dtype) {
  const tt_type_t *t = tt_build_type(b, value);
  if (t->dtype == dtype) return value;
  if (t->rank == 0 || t->rank == MAX_DIMS) value = flat(b, value);
  t = tt_build_type(b, value);
  if (b->status) return TT_NO_VALUE;
  int64_t from = (int64_t)tt_dtype_size(t->dtype), to = (int64_t)tt_dtype_size(dtype);
  int64_t last = t->dims[t->rank - 1];
  if (last * from % to != 0 || tt_type_elements(t) == 0) {
    int64_t bytes = (tt_type_elements(t) * from + to - 1) / to * to;
    value = resized(b, value, bytes / from);
  }
  if (tt_dtype_is_complex(tt_build_dtype(b, value))) value = split_complex(b, value);
  if (tt_build_dtype(b, value) == TT_I1) value = tt_emit_convert(b, value, TT_U8);
  if (b->status) return TT_NO_VALUE;
  if (dtype == TT_I1) {
    return tt_emit_convert(b, rebit(b, value, TT_U8), TT_I1);
  }
  if (b->status) return TT_NO_VALUE;
  value = rebit(b, value, tt_dtype_real(dtype));
  if (b->status) return TT_NO_VALUE;
  return tt_dtype_is_complex(dtype) ? join_complex(b, value) : value;
}

// --- reading -------------------------------------------------------------------------------------

static tt_value_t slice_box(tt_build_t *b, tt_value_t v, const box_t *box, const core_t *c) {
  int64_t limits[MAX_DIMS];
  for (uint32_t d = 0; d < box->rank; d++) {
    limits[d] = box->starts[d] + (box->counts[d] - 1) * box->steps[d] + 1;
  }
  v = tt_emit_slice(b, v, box->starts, limits, box->steps);
  return tt_emit_reshape(b, v, c->rank, c->sizes);
}

// Positions in the flat memory of the core's elements, in the core's shape.
static tt_value_t positions(tt_build_t *b, const core_t *c) {
  tt_dtype_t dtype = c->needed <= INT32_MAX ? TT_S32 : TT_S64;
  tt_value_t sum = tt_emit_splat_int(b, dtype, c->rank, c->sizes, c->offset);
  for (uint32_t i = 0; i < c->rank; i++) {
    tt_value_t iota = tt_emit_iota(b, dtype, c->rank, c->sizes, i);
    tt_value_t stride = tt_emit_splat_int(b, dtype, 0, NULL, c->strides[i]);
    sum = tt_emit_binary(b, TT_OP_ADD, sum, tt_emit_binary(b, TT_OP_MULTIPLY, iota, stride));
  }
  return sum;
}

// The part of the flat memory that starts at the view's first element and is a whole number of its
// largest strides, as an array shaped by its strides; false where those are no chain of divisors.
static bool window_dims(const core_t *c, core_t *out_core, uint32_t *out_rank, int64_t *out_dims) {
  if (c->rank == 0) return false;
  *out_core = *c;
  out_core->offset = 0;
  int64_t unused = 1;
  return chain_dims(out_core, c->sizes[0] * c->strides[0], 1, &unused, out_rank, out_dims);
}

// Cheapest first: a box of the value as it lies, of a reshape of it, of a reshape of the part that
// the view spans; a gather where the strides fit none of them.
static tt_value_t read_core(tt_build_t *b, tt_value_t base, const core_t *c) {
  const tt_type_t *t = tt_build_type(b, base);
  if (tt_type_elements(t) < c->needed) {
    base = resized(b, base, c->needed);
    t = tt_build_type(b, base);
  }
  box_t box;
  uint32_t rank;
  int64_t dims[MAX_DIMS], elements = tt_type_elements(t);
  if (match_box(c, t->rank, t->dims, &box)) return slice_box(b, base, &box, c);
  if (chain_dims(c, elements, t->rank, t->dims, &rank, dims) && match_box(c, rank, dims, &box)) {
    return slice_box(b, tt_emit_reshape(b, base, rank, dims), &box, c);
  }
  core_t w;
  if (window_dims(c, &w, &rank, dims) && match_box(&w, rank, dims, &box)) {
    int64_t end = c->offset + c->sizes[0] * c->strides[0];
    tt_value_t part = end > elements ? resized(b, base, end) : flat(b, base);
    part = tt_emit_slice_dim(b, part, 0, c->offset, end, 1);
    return slice_box(b, tt_emit_reshape(b, part, rank, dims), &box, &w);
  }
  return tt_emit_take(b, flat(b, base), positions(b, c), 0);
}

// From the core's order of dimensions to the view's, its trivial dimensions put back.
static tt_value_t expand_core(tt_build_t *b, tt_value_t v, const core_t *c, const tt_view_t *view) {
  int64_t permutation[MAX_DIMS], kept[MAX_DIMS];
  uint32_t at = 0;
  bool stretched = false;
  for (uint32_t a = 0; a < view->rank; a++) {
    stretched |= view->sizes[a] > 1 && view->strides[a] == 0;
    for (uint32_t i = 0; i < c->rank; i++) {
      if (c->axes[i] == a) kept[at] = a, permutation[at++] = i;
    }
  }
  v = tt_emit_transpose(b, v, permutation);
  if (!stretched) return tt_emit_reshape(b, v, view->rank, view->sizes);
  return tt_emit_broadcast_in_dim(b, v, view->rank, view->sizes, kept);
}

tt_value_t tt_view_read(tt_build_t *b, tt_value_t base, const tt_view_t *view) {
  if (b->status) return TT_NO_VALUE;
  if (base == TT_NO_VALUE || product(view->sizes, view->rank) == 0) {
    return zeros(b, view->dtype, view->rank, view->sizes);
  }
  base = as_dtype(b, base, view->dtype);
  if (b->status) return TT_NO_VALUE;
  core_t c = make_core(view);
  return expand_core(b, read_core(b, base, &c), &c, view);
}

// --- writing -------------------------------------------------------------------------------------

// From the view's shape to the core's; of broadcast dimensions the last element counts.
static tt_value_t reduce_to_core(tt_build_t *b, tt_value_t v, const core_t *c,
                                 const tt_view_t *view) {
  int64_t kept_sizes[MAX_DIMS], permutation[MAX_DIMS];
  uint32_t kept = 0;
  for (uint32_t a = 0; a < view->rank; a++) {
    int64_t n = view->sizes[a];
    if (n <= 1) continue;
    if (view->strides[a] == 0) {
      v = tt_emit_slice_dim(b, v, a, n - 1, n, 1);
      continue;
    }
    for (uint32_t i = 0; i < c->rank; i++) {
      if (c->axes[i] == a) permutation[i] = kept;
    }
    kept_sizes[kept++] = n;
  }
  return tt_emit_transpose(b, tt_emit_reshape(b, v, kept, kept_sizes), permutation);
}

static tt_value_t update_dense(tt_build_t *b, tt_value_t base, tt_value_t update,
                               const box_t *box) {
  tt_value_t starts[MAX_DIMS];
  bool whole = true;
  for (uint32_t d = 0; d < box->rank; d++) {
    whole &= box->counts[d] == box->dims[d];
    starts[d] = tt_emit_splat_int(b, TT_S64, 0, NULL, box->starts[d]);
  }
  return whole ? update : tt_emit_dynamic_update_slice(b, base, update, starts);
}

// Spreads the update over the box's steps and chooses between it and the base element by element.
static tt_value_t update_strided(tt_build_t *b, tt_value_t base, tt_value_t update,
                                 const box_t *box) {
  int64_t high[MAX_DIMS], interior[MAX_DIMS];
  for (uint32_t d = 0; d < box->rank; d++) {
    interior[d] = box->steps[d] - 1;
    high[d] = box->dims[d] - box->starts[d] - (box->counts[d] - 1) * box->steps[d] - 1;
  }
  tt_value_t yes = tt_emit_splat_int(b, TT_I1, box->rank, box->counts, 1);
  tt_value_t mask = tt_emit_pad(b, yes, zeros(b, TT_I1, 0, NULL), box->starts, high, interior);
  tt_value_t zero = zeros(b, tt_build_dtype(b, update), 0, NULL);
  update = tt_emit_pad(b, update, zero, box->starts, high, interior);
  return tt_emit_select(b, mask, update, base);
}

static tt_value_t update_box(tt_build_t *b, tt_value_t base, tt_value_t core, const box_t *box) {
  tt_value_t update = tt_emit_reshape(b, core, box->rank, box->counts);
  base = tt_emit_reshape(b, base, box->rank, box->dims);
  return box->dense ? update_dense(b, base, update, box) : update_strided(b, base, update, box);
}

// Writes into an array that is large enough; the result has its element count.
static tt_value_t write_core(tt_build_t *b, tt_value_t base, tt_value_t core, const core_t *c) {
  const tt_type_t *t = tt_build_type(b, base);
  box_t own, chained;
  uint32_t rank;
  int64_t dims[MAX_DIMS], elements = tt_type_elements(t);
  bool has_own = match_box(c, t->rank, t->dims, &own);
  if (has_own && own.dense) return update_box(b, base, core, &own);
  bool has_chain =
      chain_dims(c, elements, t->rank, t->dims, &rank, dims) && match_box(c, rank, dims, &chained);
  if (has_chain && (chained.dense || !has_own)) return update_box(b, base, core, &chained);
  if (has_own) return update_box(b, base, core, &own);
  core_t w;
  if (window_dims(c, &w, &rank, dims) && match_box(&w, rank, dims, &own)) {
    int64_t end = c->offset + c->sizes[0] * c->strides[0];
    tt_value_t all = end > elements ? resized(b, base, end) : flat(b, base);
    tt_value_t part = tt_emit_slice_dim(b, all, 0, c->offset, end, 1);
    part = flat(b, update_box(b, part, core, &own));
    tt_value_t start = tt_emit_splat_int(b, TT_S64, 0, NULL, c->offset);
    return resized(b, tt_emit_dynamic_update_slice(b, all, part, &start), elements);
  }
  return tt_emit_put(b, flat(b, base), flat(b, positions(b, c)), flat(b, core), 0, TT_OP_COUNT);
}

bool tt_view_covers(const tt_view_t *view, size_t storage_bytes) {
  int64_t n = product(view->sizes, view->rank);
  if (view->offset != 0 || n != (int64_t)(storage_bytes / tt_dtype_size(view->dtype))) return false;
  core_t c = make_core(view);
  int64_t stride = 1;
  for (uint32_t i = c.rank; i-- > 0; stride *= c.sizes[i]) {
    if (c.strides[i] != stride) return false;
  }
  return stride == n || n == 0;
}

// The view's dimensions by descending stride; equal strides stay in order.
static void memory_order(const tt_view_t *view, int64_t *out_axes) {
  for (uint32_t a = 0; a < view->rank; a++) {
    uint32_t at = a;
    for (; at > 0 && view->strides[out_axes[at - 1]] < view->strides[a]; at--) {
      out_axes[at] = out_axes[at - 1];
    }
    out_axes[at] = a;
  }
}

tt_value_t tt_view_write(tt_build_t *b, tt_value_t base, tt_value_t value, const tt_view_t *view,
                         size_t storage_bytes) {
  if (b->status || value == TT_NO_VALUE) return TT_NO_VALUE;
  if (tt_view_covers(view, storage_bytes)) {
    int64_t axes[MAX_DIMS];
    memory_order(view, axes);
    return tt_emit_transpose(b, value, axes);
  }
  tt_dtype_t base_dtype = view->dtype;
  uint32_t base_rank = 1;
  int64_t whole = (int64_t)(storage_bytes / tt_dtype_size(view->dtype));
  const int64_t *base_dims = &whole;
  if (base == TT_NO_VALUE) {
    base = zeros(b, view->dtype, 1, &whole);
  } else {
    const tt_type_t *t = tt_build_type(b, base);
    base_dtype = t->dtype, base_rank = t->rank, base_dims = t->dims;
    int64_t size = (int64_t)tt_dtype_size(base_dtype), have = tt_type_elements(t);
    if (have * size < whole * (int64_t)tt_dtype_size(view->dtype)) {
      // The storage grew since: the value grows with it.
      whole = ((int64_t)storage_bytes + size - 1) / size;
      base = resized(b, base, whole);
      base_rank = 1, base_dims = &whole;
    }
  }
  if (product(view->sizes, view->rank) == 0) return base;
  core_t c = make_core(view);
  value = reduce_to_core(b, value, &c, view);
  base = as_dtype(b, base, view->dtype);
  if (b->status) return TT_NO_VALUE;
  base = as_dtype(b, write_core(b, base, value, &c), base_dtype);
  base = resized(b, base, product(base_dims, base_rank));
  return tt_emit_reshape(b, base, base_rank, base_dims);
}
