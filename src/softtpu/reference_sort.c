// sort and top_k: a stable merge sort of positions.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// Whether element a of the current line goes before element b.
typedef struct order_s order_t;
struct order_s {
  tt_status_t (*before)(order_t *order, int64_t a, int64_t b, bool *out_before);
  // sort: the comparator and the line's data, one an operand
  tt__ref_region_t *region;
  uint32_t count;
  char **lines;
  const size_t *sizes;
  const void **args;
  // top_k: keys that ascend
  const uint64_t *keys;
};

// The right one is taken only where it goes strictly before: stable.
static tt_status_t merge(order_t *order, const int64_t *from, int64_t begin, int64_t middle,
                         int64_t end, int64_t *to) {
  int64_t left = begin, right = middle;
  for (int64_t at = begin; at < end; at++) {
    bool take_right = left == middle;
    if (!take_right && right < end) {
      TT_RETURN_IF_ERROR(order->before(order, from[right], from[left], &take_right));
    }
    to[at] = take_right ? from[right++] : from[left++];
  }
  return TT_OK_STATUS;
}

// Sorts the positions 0..count-1 into one of the two buffers, *out_sorted.
static tt_status_t sort_positions(order_t *order, int64_t count, int64_t *a, int64_t *b,
                                  int64_t **out_sorted) {
  for (int64_t i = 0; i < count; i++) a[i] = i;
  for (int64_t width = 1; width < count; width *= 2) {
    for (int64_t begin = 0; begin < count; begin += 2 * width) {
      int64_t middle = begin + width < count ? begin + width : count;
      int64_t end = middle + width < count ? middle + width : count;
      TT_RETURN_IF_ERROR(merge(order, a, begin, middle, end, b));
    }
    int64_t *swap = a;
    a = b;
    b = swap;
  }
  *out_sorted = a;
  return TT_OK_STATUS;
}

// The comparator's arguments alternate: a's and b's element of each operand.
static tt_status_t before_by_region(order_t *order, int64_t a, int64_t b, bool *out_before) {
  uint8_t result = 0;
  void *outs[1] = {&result};
  for (uint32_t i = 0; i < order->count; i++) {
    order->args[2 * i] = order->lines[i] + (size_t)a * order->sizes[i];
    order->args[2 * i + 1] = order->lines[i] + (size_t)b * order->sizes[i];
  }
  TT_RETURN_IF_ERROR(tt__ref_region_run(order->region, 1, order->args, outs));
  *out_before = result != 0;
  return TT_OK_STATUS;
}

// The lines of a sort: element i of line (index of the other dimensions) at base + i * stride.
typedef struct sort_s {
  order_t order;
  int64_t length, stride;
  uint32_t outer_rank;
  int64_t outer_dims[TT__REF_MAX_RANK], outer_strides[TT__REF_MAX_RANK];
  size_t *sizes;
  int64_t *positions;  // [2 * length]
} sort_t;

// Positions are sorted, then all operands are laid out by them: the body compares, nothing is moved
// but once.
static tt_status_t sort_line(const tt__ref_call_t *call, sort_t *s, int64_t base) {
  order_t *order = &s->order;
  for (uint32_t i = 0; i < order->count; i++) {
    size_t size = s->sizes[i];
    const int64_t one = 1;
    tt__ref_copy(size, 1, &s->length, order->lines[i], &one,
                 (const char *)call->operands[i] + (size_t)base * size, &s->stride);
  }
  int64_t *sorted = NULL;
  TT_RETURN_IF_ERROR(
      sort_positions(order, s->length, s->positions, s->positions + s->length, &sorted));
  for (uint32_t i = 0; i < order->count; i++) {
    size_t size = s->sizes[i];
    char *to = (char *)call->results[i] + (size_t)base * size;
    for (int64_t k = 0; k < s->length; k++) {
      memcpy(to + (size_t)(k * s->stride) * size, order->lines[i] + (size_t)sorted[k] * size, size);
    }
  }
  return TT_OK_STATUS;
}

static tt_status_t sort_init(const tt__ref_call_t *call, sort_t *s) {
  const tt_type_t *type = tt__ref_in(call, 0);
  int64_t strides[TT__REF_MAX_RANK], dimension = tt_node_int(call->node, TT_ATTR_DIMENSION, -1);
  if (dimension < 0) dimension += type->rank;
  tt__ref_strides(type, strides);
  s->length = type->dims[dimension];
  s->stride = strides[dimension];
  for (uint32_t d = 0; d < type->rank; d++) {
    if ((int64_t)d == dimension) continue;
    s->outer_dims[s->outer_rank] = type->dims[d];
    s->outer_strides[s->outer_rank++] = strides[d];
  }
  uint32_t count = s->order.count = call->node->operand_count;
  s->order.before = before_by_region;
  s->order.lines = (char **)tt_alloc_zeroed(sizeof(char *) * count);
  s->order.args = (const void **)tt_alloc(sizeof(void *) * 2 * count);
  s->sizes = (size_t *)tt_alloc(sizeof(size_t) * count);
  s->positions = (int64_t *)tt_alloc(sizeof(int64_t) * 2 * ((size_t)s->length + 1));
  if (!s->order.lines || !s->order.args || !s->sizes || !s->positions) {
    return tt__ref_no_memory(call->node);
  }
  s->order.sizes = s->sizes;
  for (uint32_t i = 0; i < count; i++) {
    s->sizes[i] = tt_dtype_size(tt__ref_in(call, i)->dtype);
    s->order.lines[i] = (char *)tt_alloc(s->sizes[i] * (size_t)s->length + 1);
    if (!s->order.lines[i]) return tt__ref_no_memory(call->node);
  }
  return tt__ref_region_create(call, call->node->regions[0], &s->order.region);
}

static void sort_deinit(sort_t *s) {
  for (uint32_t i = 0; s->order.lines && i < s->order.count; i++) tt_free(s->order.lines[i]);
  tt_free(s->order.lines);
  tt_free(s->order.args);
  tt_free(s->sizes);
  tt_free(s->positions);
  tt__ref_region_destroy(s->order.region);
}

tt_status_t tt__ref_sort(const tt__ref_call_t *call) {
  if (tt_type_elements(tt__ref_in(call, 0)) == 0) return TT_OK_STATUS;
  if (tt__ref_in(call, 0)->rank == 0) return tt__ref_identity(call);
  sort_t s = {0};
  tt_status_t status = sort_init(call, &s);
  int64_t index[TT__REF_MAX_RANK] = {0};
  if (!status) {
    do {
      int64_t base = 0;
      for (uint32_t d = 0; d < s.outer_rank; d++) base += index[d] * s.outer_strides[d];
      status = sort_line(call, &s, base);
    } while (!status && tt__ref_next(s.outer_rank, s.outer_dims, index));
  }
  sort_deinit(&s);
  return status;
}

static tt_status_t before_by_key(order_t *order, int64_t a, int64_t b, bool *out_before) {
  *out_before = order->keys[a] < order->keys[b];
  return TT_OK_STATUS;
}

// Turns wide values into unsigned keys in descending order; floats by the total order, so NaN is
// the largest.
static void descending_keys(tt_dtype_t dtype, int64_t count, uint64_t *keys) {
  const uint64_t top = UINT64_C(1) << 63;
  for (int64_t i = 0; i < count; i++) {
    uint64_t bits = keys[i];
    if (tt_dtype_is_float(dtype)) bits = bits & top ? ~bits : bits | top;
    if (tt_dtype_is_signed_int(dtype)) bits ^= top;
    keys[i] = ~bits;
  }
}

// Keys and both position buffers are one allocation.
tt_status_t tt__ref_top_k(const tt__ref_call_t *call) {
  const tt_type_t *in = tt__ref_in(call, 0);
  tt_dtype_t index_dtype = tt__ref_out(call, 1)->dtype;
  if (tt_dtype_is_complex(in->dtype)) {
    return tt__ref_unimplemented(call->graph, call->node, "not defined for this element type");
  }
  int64_t length = in->dims[in->rank - 1], k = tt_node_int(call->node, TT_ATTR_K, 0);
  int64_t rows = length ? tt_type_elements(in) / length : 0;
  size_t size = tt_dtype_size(in->dtype), index_size = tt_dtype_size(index_dtype);
  uint64_t *keys = (uint64_t *)tt_alloc(sizeof(uint64_t) * 3 * ((size_t)length + 1));
  if (!keys) return tt__ref_no_memory(call->node);
  int64_t *positions = (int64_t *)keys + length + 1, *sorted = NULL;
  order_t order = {.before = before_by_key, .keys = keys};
  tt_status_t status = TT_OK_STATUS;
  for (int64_t row = 0; !status && row < rows; row++) {
    const char *from = (const char *)call->operands[0] + (size_t)(row * length) * size;
    char *values = (char *)call->results[0] + (size_t)(row * k) * size;
    char *indices = (char *)call->results[1] + (size_t)(row * k) * index_size;
    tt_element_load(in->dtype, from, length, keys);
    descending_keys(in->dtype, length, keys);
    status = sort_positions(&order, length, positions, positions + length, &sorted);
    for (int64_t i = 0; !status && i < k; i++) {
      memcpy(values + (size_t)i * size, from + (size_t)sorted[i] * size, size);
      tt_element_store(index_dtype, &sorted[i], 1, indices + (size_t)i * index_size);
    }
  }
  tt_free(keys);
  return status;
}
