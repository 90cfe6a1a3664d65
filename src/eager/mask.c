// Boolean masks: nonzero, masked_select, and masks among the indices of index and index_put.
#include <string.h>

#include "eager/host.h"

static void next_position(const tt_tensor_t *t, int64_t *at) {
  for (uint32_t d = t->rank; d-- > 0;) {
    if (++at[d] < t->sizes[d]) return;
    at[d] = 0;
  }
}

// Positions of the elements that are not zero: [rank][count], tt_free *out_positions.
static tt_status_t find_nonzero(const tt_tensor_t *t, int64_t **out_positions, int64_t *out_count) {
  uint8_t *mask;
  int64_t n = tt__elements(t), count = 0, at[TT_MAX_RANK] = {0};
  *out_positions = NULL;
  TT_RETURN_IF_ERROR(tt__host_read(t, TT_I1, (void **)&mask));
  for (int64_t i = 0; i < n; i++) count += mask[i] != 0;
  *out_count = count;
  int64_t *out = *out_positions = tt_alloc((size_t)count * t->rank * sizeof(int64_t));
  for (int64_t i = 0, k = 0; out && i < n; i++, next_position(t, at)) {
    if (!mask[i]) continue;
    for (uint32_t d = 0; d < t->rank; d++) out[(int64_t)d * count + k] = at[d];
    k++;
  }
  tt_free(mask);
  return out ? TT_OK_STATUS : tt__no_host_memory();
}

// nonzero(self) -> [count, rank], laid out as [rank, count].
tt_status_t tt__host_nonzero(const tt_call_t *call, tt_outs_t *outs) {
  const tt_tensor_t *self = tt__tensor_arg(call, 0);
  int64_t *positions, count;
  if (!self) return tt__host_unsupported(call, "no tensor");
  TT_RETURN_IF_ERROR(find_nonzero(self, &positions, &count));
  int64_t sizes[2] = {count, self->rank}, strides[2] = {1, count};
  tt__host_result_t r = {TT_S64, TT_S64, 2, sizes, strides};
  tt_status_t s = tt__host_give(call, &r, positions, outs);
  tt_free(positions);
  return s;
}

// Index tensors made from masks, kept until the call that uses them is done.
typedef struct indices_s {
  tt_tensor_t tensors[TT_MAX_RANK];
  int64_t counts[TT_MAX_RANK];  // sizes of the vectors made here
  tt_storage_t *owned[TT_MAX_RANK];
  uint32_t count, owned_count;
} indices_t;

static void drop_indices(indices_t *x) {
  for (uint32_t i = 0; i < x->owned_count; i++) tt_storage_release(x->owned[i]);
}

static tt_status_t add_vector(indices_t *x, int device, const int64_t *data, int64_t count) {
  static const int64_t one = 1;
  tt_storage_t *storage;
  if (x->count == TT_MAX_RANK) return TT_ERROR(INDEX, "too many indices");
  TT_RETURN_IF_ERROR(tt_storage_create(device, (size_t)count * sizeof *data, &storage));
  x->owned[x->owned_count++] = storage;
  x->counts[x->count] = count;
  tt_tensor_t *t = &x->tensors[x->count];
  *t = (tt_tensor_t){.storage = storage,
                     .sizes = &x->counts[x->count],
                     .strides = &one,
                     .rank = 1,
                     .dtype = TT_S64};
  x->count++;
  return tt_eager_upload(t, data);
}

static bool is_mask(const tt_tensor_t *t) {
  return t->rank != TT_NO_TENSOR && (t->dtype == TT_I1 || t->dtype == TT_U8);
}

// A mask of rank k takes the place of k indices.
static tt_status_t expand_mask(indices_t *x, const tt_tensor_t *self, const tt_tensor_t *mask,
                               uint32_t place) {
  for (uint32_t d = 0; d < mask->rank; d++) {
    uint32_t dim = x->count + d;
    if (dim >= self->rank) {
      return TT_ERROR(INDEX, "too many indices for tensor of dimension %u", self->rank);
    }
    if (mask->sizes[d] != self->sizes[dim]) {
      return TT_ERROR(INDEX,
                      "The shape of the mask at index %u does not match the shape of the "
                      "indexed tensor: size %lld against %lld of dimension %u",
                      place, (long long)mask->sizes[d], (long long)self->sizes[dim], dim);
    }
  }
  int64_t *positions, count;
  TT_RETURN_IF_ERROR(find_nonzero(mask, &positions, &count));
  tt_status_t s = TT_OK_STATUS;
  for (uint32_t d = 0; !s && d < mask->rank; d++) {
    s = add_vector(x, tt_storage_device(self->storage), positions + (int64_t)d * count, count);
  }
  tt_free(positions);
  return s;
}

static tt_status_t expand_indices(const tt_call_t *call, indices_t *x) {
  const tt_arg_t *list = &call->args[1];
  for (uint32_t i = 0; i < list->count; i++) {
    const tt_tensor_t *t = &list->u.tensors[i];
    if (is_mask(t) && t->rank > 0) {
      TT_RETURN_IF_ERROR(expand_mask(x, call->args[0].u.tensor, t, i));
    } else if (is_mask(t)) {
      return tt__host_unsupported(call, "a mask of rank 0");
    } else {
      if (x->count == TT_MAX_RANK) return TT_ERROR(INDEX, "too many indices");
      x->tensors[x->count++] = *t;
    }
  }
  return TT_OK_STATUS;
}

bool tt__has_masks(const tt_call_t *call) {
  if (call->arg_count < 2 || call->args[1].kind != TT_ARG_TENSORS) return false;
  for (uint32_t i = 0; i < call->args[1].count; i++) {
    if (is_mask(&call->args[1].u.tensors[i])) return true;
  }
  return false;
}

// x[mask] = one value needs no positions: a masked_fill over the mask seen in x's shape. False
// where the call is of another kind.
static bool fill_by_mask(const tt_call_t *call, tt_outs_t *outs, tt_status_t *out_status) {
  const tt_arg_t *list = &call->args[1];
  const tt_tensor_t *self = tt__tensor_arg(call, 0), *value = tt__tensor_arg(call, 2);
  bool accumulate = tt__int_arg(call, 3, 0) != 0;
  int64_t sizes[TT_MAX_RANK], strides[TT_MAX_RANK];
  if (!self || !value || accumulate || tt__elements(value) != 1 || list->count == 0) return false;
  for (uint32_t i = 0; i + 1 < list->count; i++) {
    if (list->u.tensors[i].rank != TT_NO_TENSOR) return false;
  }
  tt_tensor_t mask = list->u.tensors[list->count - 1];
  uint32_t first = list->count - 1;
  if (!is_mask(&mask) || first + mask.rank > self->rank) return false;
  for (uint32_t d = 0; d < self->rank; d++) {
    bool inside = d >= first && d < first + mask.rank;
    sizes[d] = inside ? mask.sizes[d - first] : 1;
    strides[d] = inside ? mask.strides[d - first] : 0;
    if (inside && sizes[d] != self->sizes[d]) return false;
  }
  mask.sizes = sizes, mask.strides = strides, mask.rank = self->rank, mask.dtype = TT_I1;
  tt_tensor_t one = *value;
  one.rank = 0;
  tt_arg_t args[3] = {call->args[0],
                      {.kind = TT_ARG_TENSOR, .u.tensor = &mask},
                      {.kind = TT_ARG_TENSOR, .u.tensor = &one}};
  *out_status =
      tt__host_run("masked_fill.Tensor", (tt_variant_t)call->variant, call, args, 3, outs);
  return true;
}

tt_status_t tt__call_with_masks(const tt_call_t *call, tt_outs_t *outs) {
  tt_status_t s;
  if (call->arg_count > 2 && fill_by_mask(call, outs, &s)) return s;
  indices_t x = {.count = 0};
  tt_arg_t args[8];
  s = call->arg_count <= 8 ? expand_indices(call, &x) : tt__host_unsupported(call, "arguments");
  if (!s) {
    memcpy(args, call->args, call->arg_count * sizeof *args);
    args[1].count = x.count;
    args[1].u.tensors = x.tensors;
    tt_call_t plain = *call;
    plain.args = args;
    s = tt__record(&plain, outs);
  }
  drop_indices(&x);
  return s;
}

// Views both tensors in their common broadcast shape.
static bool broadcast(const tt_tensor_t *t, uint32_t rank, const int64_t *sizes, int64_t *strides,
                      tt_tensor_t *out) {
  *out = *t;
  for (uint32_t i = 0; i < rank; i++) {
    bool has = i + t->rank >= rank;
    int64_t size = has ? t->sizes[i + t->rank - rank] : 1;
    if (size != sizes[i] && size != 1) return false;
    strides[i] = size == 1 ? 0 : t->strides[i + t->rank - rank];
  }
  out->rank = rank;
  out->sizes = sizes;
  out->strides = strides;
  return true;
}

// masked_select(self, mask)
tt_status_t tt__host_masked_select(const tt_call_t *call, tt_outs_t *outs) {
  const tt_tensor_t *self = tt__tensor_arg(call, 0), *mask = tt__tensor_arg(call, 1);
  int64_t sizes[TT_MAX_RANK], strides[2][TT_MAX_RANK];
  if (!self || !mask) return tt__host_unsupported(call, "no tensors");
  if (mask->dtype != TT_I1) {
    return TT_ERROR(INVALID_ARGUMENT, "masked_select: expected BoolTensor for mask");
  }
  uint32_t rank = self->rank > mask->rank ? self->rank : mask->rank;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t a = i + self->rank >= rank ? self->sizes[i + self->rank - rank] : 1;
    int64_t b = i + mask->rank >= rank ? mask->sizes[i + mask->rank - rank] : 1;
    sizes[i] = a == 1 ? b : a;
  }
  tt_tensor_t wide_self, wide_mask;
  if (!broadcast(self, rank, sizes, strides[0], &wide_self) ||
      !broadcast(mask, rank, sizes, strides[1], &wide_mask)) {
    return TT_ERROR(INVALID_ARGUMENT,
                    "masked_select: the shapes of self and mask do not broadcast");
  }
  if (rank == 0) {  // a vector of one: index needs a dimension
    static const int64_t one = 1;
    wide_self.rank = wide_mask.rank = 1;
    wide_self.sizes = wide_mask.sizes = wide_self.strides = wide_mask.strides = &one;
  }
  tt_arg_t args[2] = {{.kind = TT_ARG_TENSOR, .u.tensor = &wide_self},
                      {.kind = TT_ARG_TENSORS, .count = 1, .u.tensors = &wide_mask}};
  tt_call_t plain = {0, TT_FUNCTIONAL, 2, call->device, args};
  indices_t x = {.count = 0};
  tt_status_t s = expand_indices(&plain, &x);
  args[1].count = x.count;
  args[1].u.tensors = x.tensors;
  if (!s) s = tt__host_run("index.Tensor", TT_FUNCTIONAL, call, args, 2, outs);
  drop_indices(&x);
  return s;
}
