// unique in all its forms, and its neighbours bincount, repeat_interleave and equal.
#include <string.h>

#include "eager/host.h"

// The type that values are compared in on the host: exact for every type that it stands for.
static tt_dtype_t host_type(tt_dtype_t dtype) {
  if (tt_dtype_is_complex(dtype)) return TT_DTYPE_NONE;
  if (tt_dtype_is_float(dtype)) return TT_F64;
  return dtype == TT_U64 ? TT_U64 : TT_S64;
}

// Words whose unsigned order is the values' order. NaN is the largest; -0.0 is 0.0.
static void order_words(tt_dtype_t dtype, uint64_t *words, int64_t count) {
  const uint64_t top = UINT64_C(1) << 63;
  for (int64_t i = 0; i < count; i++) {
    double d;
    if (dtype == TT_S64) {
      words[i] ^= top;
    } else if (dtype == TT_F64) {
      memcpy(&d, &words[i], 8);
      if (d != d)
        words[i] = UINT64_MAX;
      else if (d == 0)
        words[i] = top;
      else
        words[i] = words[i] & top ? ~words[i] : words[i] | top;
    }
  }
}

// A table of `count` rows of `width` words; `order` lists rows.
typedef struct rows_s {
  const uint64_t *words;
  int64_t count, width;
  bool is_float;
  int64_t *order, *scratch;
} rows_t;

static int compare_rows(const rows_t *r, int64_t a, int64_t b) {
  const uint64_t *x = r->words + a * r->width, *y = r->words + b * r->width;
  for (int64_t i = 0; i < r->width; i++) {
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

// Rows that compare equal are one value, but no NaN equals another.
static bool same_rows(const rows_t *r, int64_t a, int64_t b) {
  if (compare_rows(r, a, b) != 0) return false;
  const uint64_t *x = r->words + a * r->width;
  for (int64_t i = 0; r->is_float && i < r->width; i++) {
    if (x[i] == UINT64_MAX) return false;
  }
  return true;
}

// Words by radix: eight stable passes, less those where all bytes agree.
static void sort_words(rows_t *r) {
  for (int shift = 0; shift < 64; shift += 8) {
    int64_t starts[256] = {0}, total = 0;
    for (int64_t i = 0; i < r->count; i++) starts[r->words[i] >> shift & 255]++;
    if (starts[r->words[0] >> shift & 255] == r->count) continue;
    for (int i = 0; i < 256; i++) {
      int64_t n = starts[i];
      starts[i] = total;
      total += n;
    }
    for (int64_t i = 0; i < r->count; i++) {
      int64_t row = r->order[i];
      r->scratch[starts[r->words[row] >> shift & 255]++] = row;
    }
    memcpy(r->order, r->scratch, (size_t)r->count * sizeof *r->order);
  }
}

// Rows by merging.
static void sort_rows(rows_t *r) {
  for (int64_t run = 1; run < r->count; run *= 2) {
    for (int64_t at = 0; at < r->count; at += 2 * run) {
      int64_t middle = at + run < r->count ? at + run : r->count;
      int64_t end = at + 2 * run < r->count ? at + 2 * run : r->count;
      int64_t i = at, j = middle;
      for (int64_t k = at; k < end; k++) {
        bool left = i < middle && (j >= end || compare_rows(r, r->order[i], r->order[j]) <= 0);
        r->scratch[k] = r->order[left ? i++ : j++];
      }
    }
    memcpy(r->order, r->scratch, (size_t)r->count * sizeof *r->order);
  }
}

typedef struct groups_s {
  int64_t count;
  int64_t *firsts, *inverse, *counts;  // rows; group of each row; rows of each group
} groups_t;

// Equal neighbours are a group, in sorted order or (unique_consecutive) as they stand. One
// allocation, which `firsts` begins.
static tt_status_t find_groups(rows_t *r, bool sorted, groups_t *out) {
  size_t size = (size_t)(r->count ? r->count : 1) * sizeof(int64_t);
  int64_t *memory = tt_alloc(5 * size);
  if (!memory) return tt__no_host_memory();
  int64_t n = r->count;
  *out = (groups_t){0, memory, memory + n, memory + 2 * n};
  r->order = memory + 3 * n;
  r->scratch = memory + 4 * n;
  for (int64_t i = 0; i < n; i++) r->order[i] = i;
  if (sorted && n > 1) {
    if (r->width == 1)
      sort_words(r);
    else
      sort_rows(r);
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t row = r->order[i];
    if (i == 0 || !same_rows(r, r->order[i - 1], row)) {
      out->firsts[out->count] = row;
      out->counts[out->count++] = 0;
    }
    out->counts[out->count - 1]++;
    out->inverse[row] = out->count - 1;
  }
  return TT_OK_STATUS;
}

// What a form of unique asks for. dim < 0: all elements in one row.
typedef struct unique_s {
  const tt_tensor_t *self;
  int64_t dim;
  bool sorted, inverse, counts, has_counts;
} unique_t;

static tt_status_t give_optional(const tt_call_t *call, bool wanted, uint32_t rank,
                                 const int64_t *sizes, const int64_t *data, tt_outs_t *outs) {
  static const int64_t none = 0;
  tt__host_result_t r = {TT_S64, TT_S64, wanted ? rank : 1, wanted ? sizes : &none, NULL};
  return tt__host_give(call, &r, data, outs);
}

static tt_status_t give_values(const tt_call_t *call, const unique_t *u, const rows_t *r,
                               const uint64_t *values, const groups_t *g, tt_outs_t *outs) {
  const tt_tensor_t *t = u->self;
  tt_dtype_t dtype = (tt_dtype_t)t->dtype;
  uint64_t *kept = tt_alloc((size_t)(g->count * r->width) * 8);
  if (!kept) return tt__no_host_memory();
  for (int64_t i = 0; i < g->count; i++) {
    memcpy(kept + i * r->width, values + g->firsts[i] * r->width, (size_t)r->width * 8);
  }
  tt_status_t s;
  if (u->dim < 0) {
    s = tt__host_give_vector(call, host_type(dtype), dtype, g->count, kept, outs);
  } else {
    // Rows stand first in memory: strides of the moved dimension.
    int64_t sizes[TT_MAX_RANK], strides[TT_MAX_RANK], stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
      sizes[i] = i == u->dim ? g->count : t->sizes[i];
      strides[i] = i == u->dim ? r->width : stride;
      if (i != u->dim) stride *= t->sizes[i];
    }
    tt__host_result_t result = {host_type(dtype), dtype, t->rank, sizes, strides};
    s = tt__host_give(call, &result, kept, outs);
  }
  tt_free(kept);
  return s;
}

// The tensor with `dim` first.
static void move_first(const tt_tensor_t *t, int64_t dim, int64_t *sizes, int64_t *strides,
                       tt_tensor_t *out) {
  *out = *t;
  for (uint32_t i = 0, at = 1; i < t->rank; i++) {
    uint32_t to = i == dim ? 0 : at++;
    sizes[to] = t->sizes[i];
    strides[to] = t->strides[i];
  }
  out->sizes = sizes;
  out->strides = strides;
}

// Rows are compared as words: order_words turns the values' bits into integers of the same order.
static tt_status_t unique(const tt_call_t *call, const unique_t *u, tt_outs_t *outs) {
  tt_dtype_t type = host_type((tt_dtype_t)u->self->dtype);
  if (type == TT_DTYPE_NONE) return tt__host_unsupported(call, "complex values");
  int64_t sizes[TT_MAX_RANK], strides[TT_MAX_RANK], n = tt__elements(u->self);
  tt_tensor_t moved = *u->self;
  rows_t r = {.count = n, .width = 1, .is_float = type == TT_F64};
  if (u->dim >= 0) {
    move_first(u->self, u->dim, sizes, strides, &moved);
    r.count = u->self->sizes[u->dim];
    r.width = r.count ? n / r.count : 0;
    if (r.width == 0) return tt__host_unsupported(call, "no elements");
  }
  uint64_t *values, *words = tt_alloc((size_t)(n ? n : 1) * 8);
  if (!words) return tt__no_host_memory();
  groups_t g = {0};
  tt_status_t s = tt__host_read(&moved, type, (void **)&values);
  if (!s) {
    memcpy(words, values, (size_t)n * 8);
    order_words(type, words, n);
    r.words = words;
    s = find_groups(&r, u->sorted, &g);
    if (!s) s = give_values(call, u, &r, values, &g, outs);
    uint32_t rank = u->dim < 0 ? u->self->rank : 1;
    const int64_t *shape = u->dim < 0 ? u->self->sizes : &r.count;
    if (!s) s = give_optional(call, u->inverse, rank, shape, g.inverse, outs);
    if (!s && u->has_counts) s = give_optional(call, u->counts, 1, &g.count, g.counts, outs);
    tt_free(g.firsts);
    tt_free(values);
  }
  tt_free(words);
  return s;
}

static int64_t wrap_dim(const tt_call_t *call, uint32_t i, uint32_t rank) {
  int64_t dim = tt__int_arg(call, i, 0);
  return dim < 0 ? dim + (int64_t)rank : dim;
}

static tt_status_t check_dim(const tt_call_t *call, const unique_t *u) {
  if (u->dim >= 0 && u->dim < u->self->rank) return TT_OK_STATUS;
  return TT_ERROR(INDEX, "%s: dimension out of range for a tensor of rank %u", tt__call_name(call),
                  u->self->rank);
}

// _unique2(self, sorted, return_inverse, return_counts)
tt_status_t tt__host_unique2(const tt_call_t *call, tt_outs_t *outs) {
  unique_t u = {tt__tensor_arg(call, 0),      -1,  true, tt__int_arg(call, 2, 0) != 0,
                tt__int_arg(call, 3, 0) != 0, true};
  return unique(call, &u, outs);
}

// _unique(self, sorted, return_inverse)
tt_status_t tt__host_unique(const tt_call_t *call, tt_outs_t *outs) {
  unique_t u = {tt__tensor_arg(call, 0), -1, true, tt__int_arg(call, 2, 0) != 0, false, false};
  return unique(call, &u, outs);
}

// unique_consecutive(self, return_inverse, return_counts, dim)
tt_status_t tt__host_unique_consecutive(const tt_call_t *call, tt_outs_t *outs) {
  unique_t u = {tt__tensor_arg(call, 0),      -1,  false, tt__int_arg(call, 1, 0) != 0,
                tt__int_arg(call, 2, 0) != 0, true};
  if (call->arg_count > 3 && call->args[3].kind == TT_ARG_INT) {
    u.dim = wrap_dim(call, 3, u.self->rank);
    TT_RETURN_IF_ERROR(check_dim(call, &u));
  }
  return unique(call, &u, outs);
}

// unique_dim(self, dim, sorted, return_inverse, return_counts)
tt_status_t tt__host_unique_dim(const tt_call_t *call, tt_outs_t *outs) {
  unique_t u = {tt__tensor_arg(call, 0),
                wrap_dim(call, 1, call->args[0].u.tensor->rank),
                true,
                tt__int_arg(call, 3, 0) != 0,
                tt__int_arg(call, 4, 0) != 0,
                true};
  TT_RETURN_IF_ERROR(check_dim(call, &u));
  return unique(call, &u, outs);
}

// unique_dim_consecutive(self, dim, return_inverse, return_counts)
tt_status_t tt__host_unique_dim_consecutive(const tt_call_t *call, tt_outs_t *outs) {
  unique_t u = {tt__tensor_arg(call, 0),
                wrap_dim(call, 1, call->args[0].u.tensor->rank),
                false,
                tt__int_arg(call, 2, 0) != 0,
                tt__int_arg(call, 3, 0) != 0,
                true};
  TT_RETURN_IF_ERROR(check_dim(call, &u));
  return unique(call, &u, outs);
}

// --- neighbours ----------------------------------------------------------------------------------

static tt_status_t count_bins(const tt_call_t *call, const int64_t *values, int64_t n,
                              const double *weights, tt_dtype_t dtype, tt_outs_t *outs) {
  int64_t bins = tt__int_arg(call, 2, 0);
  for (int64_t i = 0; i < n; i++) {
    if (values[i] < 0) {
      return TT_ERROR(INVALID_ARGUMENT, "bincount only supports 1-d non-negative integral inputs.");
    }
    if (values[i] >= bins) bins = values[i] + 1;
  }
  union {
    int64_t i;
    double d;
  } *counts = tt_alloc_zeroed((size_t)bins * 8);
  if (!counts) return tt__no_host_memory();
  for (int64_t i = 0; i < n; i++) {
    if (weights)
      counts[values[i]].d += weights[i];
    else
      counts[values[i]].i++;
  }
  tt_status_t s = tt__host_give_vector(call, weights ? TT_F64 : TT_S64, dtype, bins, counts, outs);
  tt_free(counts);
  return s;
}

// bincount(self, weights, minlength)
tt_status_t tt__host_bincount(const tt_call_t *call, tt_outs_t *outs) {
  const tt_tensor_t *self = tt__tensor_arg(call, 0), *weights = tt__tensor_arg(call, 1);
  int64_t n = tt__elements(self), *values;
  double *w = NULL;
  bool integral = tt_dtype_is_int((tt_dtype_t)self->dtype);
  if (!integral || (self->rank != 1 && n != 0)) {
    return TT_ERROR(INVALID_ARGUMENT, "bincount only supports 1-d non-negative integral inputs.");
  }
  if (tt__int_arg(call, 2, 0) < 0) {
    return TT_ERROR(INVALID_ARGUMENT, "minlength should be >= 0");
  }
  if (weights && (weights->rank != 1 || tt__elements(weights) != n)) {
    return TT_ERROR(INVALID_ARGUMENT, "weights should be 1-d and have the same length as input");
  }
  TT_RETURN_IF_ERROR(tt__host_read(self, TT_S64, (void **)&values));
  tt_status_t s = weights ? tt__host_read(weights, TT_F64, (void **)&w) : TT_OK_STATUS;
  tt_dtype_t dtype = !weights ? TT_S64 : weights->dtype == TT_F32 ? TT_F32 : TT_F64;
  if (!s) s = count_bins(call, values, n, w, dtype, outs);
  tt_free(w);
  tt_free(values);
  return s;
}

// repeat_interleave(repeats, output_size): position i as often as repeats[i] says.
tt_status_t tt__host_repeat_interleave(const tt_call_t *call, tt_outs_t *outs) {
  const tt_tensor_t *repeats = tt__tensor_arg(call, 0);
  int64_t n = tt__elements(repeats), *times, total = 0, at = 0;
  tt_dtype_t dtype = (tt_dtype_t)repeats->dtype;
  if (repeats->rank != 1 || (dtype != TT_S32 && dtype != TT_S64)) {
    return TT_ERROR(INVALID_ARGUMENT,
                    "repeat_interleave only accept 1D vector as repeat of a "
                    "dtype int64 or int32");
  }
  TT_RETURN_IF_ERROR(tt__host_read(repeats, TT_S64, (void **)&times));
  tt_status_t s = TT_OK_STATUS;
  for (int64_t i = 0; i < n; i++) {
    if (times[i] < 0) s = TT_ERROR(INVALID_ARGUMENT, "repeats can not be negative");
    if (s) break;
    total += times[i];
  }
  int64_t *out = s ? NULL : tt_alloc((size_t)total * sizeof *out);
  if (!s && !out) s = tt__no_host_memory();
  for (int64_t i = 0; !s && i < n; i++) {
    for (int64_t k = 0; k < times[i]; k++) out[at++] = i;
  }
  if (!s) s = tt__host_give_vector(call, TT_S64, dtype, total, out, outs);
  tt_free(out);
  tt_free(times);
  return s;
}

// equal(self, other) -> bool
tt_status_t tt__host_equal(const tt_call_t *call, tt_outs_t *outs) {
  const tt_tensor_t *a = tt__tensor_arg(call, 0), *b = tt__tensor_arg(call, 1);
  bool same = a->rank == b->rank;
  for (uint32_t i = 0; same && i < a->rank; i++) same = a->sizes[i] == b->sizes[i];
  if (same && tt__elements(a) > 0) {
    tt_outs_t eq, all;
    TT_RETURN_IF_ERROR(tt__host_run("eq.Tensor", TT_FUNCTIONAL, call, call->args, 2, &eq));
    const tt_out_t *e = &eq.items[0];
    tt_tensor_t t = {.storage = e->storage,
                     .sizes = e->meta->sizes,
                     .strides = e->meta->strides,
                     .rank = e->meta->rank,
                     .dtype = e->meta->dtype};
    tt_arg_t arg = {.kind = TT_ARG_TENSOR, .u.tensor = &t};
    tt_number_t n = {.kind = TT_ARG_BOOL};
    tt_status_t s = tt__host_run("all", TT_FUNCTIONAL, call, &arg, 1, &all);
    if (!s) {
      tt_tensor_t r = {.storage = all.items[0].storage, .dtype = all.items[0].meta->dtype};
      s = tt_eager_item(&r, &n);
      tt_storage_release(r.storage);
      tt_outs_deinit(&all);
    }
    tt_storage_release(t.storage);
    tt_outs_deinit(&eq);
    TT_RETURN_IF_ERROR(s);
    same = n.u.i != 0;
  }
  outs->items[outs->count++] = (tt_out_t){NULL, NULL, same};
  return TT_OK_STATUS;
}
