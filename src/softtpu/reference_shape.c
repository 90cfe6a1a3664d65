// Data movement: every op is one or two strided copies. The trick of each op is in its strides: 0
// repeats (broadcast), negative ones turn around (reverse), exchanged ones transpose, larger ones
// leave holes (pad) or skip (slice).
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

void tt__ref_strides(const tt_type_t *type, int64_t *out_strides) {
  int64_t stride = 1;
  for (uint32_t d = type->rank; d-- > 0;) {
    out_strides[d] = stride;
    stride *= type->dims[d];
  }
}

// Doubles what is there until it is full; `element` may be in `to`.
void tt__ref_fill(size_t size, int64_t count, void *to, const void *element) {
  if (count <= 0) return;
  memmove(to, element, size);
  size_t done = size, total = size * (size_t)count;
  while (done < total) {
    size_t n = done < total - done ? done : total - done;
    memcpy((char *)to + done, to, n);
    done += n;
  }
}

// memcpy of a constant size is one move and needs no alignment.
static void copy_line(size_t size, int64_t count, char *to, int64_t to_step, const char *from,
                      int64_t from_step) {
#define LINE(type)                                                                                 \
  for (int64_t i = 0; i < count; i++) {                                                            \
    memcpy(to + i * to_step * (int64_t)sizeof(type), from + i * from_step * (int64_t)sizeof(type), \
           sizeof(type));                                                                          \
  }                                                                                                \
  return;
  if (to_step == 1 && from_step == 1) {
    memcpy(to, from, size * (size_t)count);
    return;
  }
  switch (size) {
    case 1:
      LINE(uint8_t)
    case 2:
      LINE(uint16_t)
    case 4:
      LINE(uint32_t)
    case 8:
      LINE(uint64_t)
    default:
      LINE(tt_complex_t)
  }
#undef LINE
}

void tt__ref_copy(size_t size, uint32_t rank, const int64_t *dims, void *to,
                  const int64_t *to_strides, const void *from, const int64_t *from_strides) {
  for (uint32_t d = 0; d < rank; d++) {
    if (dims[d] == 0) return;
  }
  if (rank == 0) {
    memcpy(to, from, size);
    return;
  }
  int64_t index[TT__REF_MAX_RANK] = {0};
  uint32_t outer = rank - 1;
  do {
    int64_t to_at = 0, from_at = 0;
    for (uint32_t d = 0; d < outer; d++) {
      to_at += index[d] * to_strides[d];
      from_at += index[d] * from_strides[d];
    }
    copy_line(size, dims[outer], (char *)to + to_at * (int64_t)size, to_strides[outer],
              (const char *)from + from_at * (int64_t)size, from_strides[outer]);
  } while (tt__ref_next(outer, dims, index));
}

tt_status_t tt__ref_constant(const tt__ref_call_t *call) {
  const tt_attr_t *value = tt_node_attr(call->node, TT_ATTR_VALUE);
  const tt_type_t *type = tt__ref_out(call, 0);
  TT_CHECK(value);
  size_t size = tt_dtype_size(type->dtype), bytes = tt_type_bytes(type);
  if (value->count == bytes) {
    if (bytes) memcpy(call->results[0], value->u.bytes, bytes);
  } else {
    TT_CHECK(value->count == size);
    tt__ref_fill(size, tt_type_elements(type), call->results[0], value->u.bytes);
  }
  return TT_OK_STATUS;
}

// One line of numbers, repeated along all other dimensions.
tt_status_t tt__ref_iota(const tt__ref_call_t *call) {
  const tt_type_t *type = tt__ref_out(call, 0);
  int64_t dimension = tt_node_int(call->node, TT_ATTR_IOTA_DIMENSION, 0);
  int64_t strides[TT__REF_MAX_RANK] = {0}, from[TT__REF_MAX_RANK] = {0};
  int64_t length = type->dims[dimension];
  size_t size = tt_dtype_size(type->dtype);
  char *line = (char *)tt_alloc(size * (size_t)length + 1);
  if (!line) return tt__ref_no_memory(call->node);
  for (int64_t i = 0; i < length; i++) {
    tt_element_convert(TT_S64, &i, 1, type->dtype, line + (size_t)i * size);
  }
  tt__ref_strides(type, strides);
  from[dimension] = 1;
  tt__ref_copy(size, type->rank, type->dims, call->results[0], strides, line, from);
  tt_free(line);
  return TT_OK_STATUS;
}

tt_status_t tt__ref_broadcast_in_dim(const tt__ref_call_t *call) {
  const tt_type_t *in = tt__ref_in(call, 0), *out = tt__ref_out(call, 0);
  int64_t in_strides[TT__REF_MAX_RANK], out_strides[TT__REF_MAX_RANK];
  int64_t from[TT__REF_MAX_RANK] = {0};
  uint32_t count;
  const int64_t *dims = tt_node_ints(call->node, TT_ATTR_BROADCAST_DIMENSIONS, &count);
  tt__ref_strides(in, in_strides);
  tt__ref_strides(out, out_strides);
  for (uint32_t d = 0; d < count; d++) {
    if (in->dims[d] != 1) from[dims[d]] = in_strides[d];
  }
  tt__ref_copy(tt_dtype_size(in->dtype), out->rank, out->dims, call->results[0], out_strides,
               call->operands[0], from);
  return TT_OK_STATUS;
}

tt_status_t tt__ref_transpose(const tt__ref_call_t *call) {
  const tt_type_t *in = tt__ref_in(call, 0), *out = tt__ref_out(call, 0);
  int64_t in_strides[TT__REF_MAX_RANK], out_strides[TT__REF_MAX_RANK], from[TT__REF_MAX_RANK];
  uint32_t count;
  const int64_t *permutation = tt_node_ints(call->node, TT_ATTR_PERMUTATION, &count);
  tt__ref_strides(in, in_strides);
  tt__ref_strides(out, out_strides);
  for (uint32_t d = 0; d < count; d++) from[d] = in_strides[permutation[d]];
  tt__ref_copy(tt_dtype_size(in->dtype), out->rank, out->dims, call->results[0], out_strides,
               call->operands[0], from);
  return TT_OK_STATUS;
}

tt_status_t tt__ref_reverse(const tt__ref_call_t *call) {
  const tt_type_t *type = tt__ref_out(call, 0);
  int64_t strides[TT__REF_MAX_RANK], from[TT__REF_MAX_RANK], start = 0;
  uint32_t count;
  const int64_t *dims = tt_node_ints(call->node, TT_ATTR_DIMENSIONS, &count);
  if (tt_type_elements(type) == 0) return TT_OK_STATUS;
  tt__ref_strides(type, strides);
  memcpy(from, strides, sizeof(int64_t) * type->rank);
  for (uint32_t i = 0; i < count; i++) {
    start += (type->dims[dims[i]] - 1) * strides[dims[i]];
    from[dims[i]] = -strides[dims[i]];
  }
  size_t size = tt_dtype_size(type->dtype);
  tt__ref_copy(size, type->rank, type->dims, call->results[0], strides,
               (const char *)call->operands[0] + (size_t)start * size, from);
  return TT_OK_STATUS;
}

tt_status_t tt__ref_slice(const tt__ref_call_t *call) {
  const tt_type_t *in = tt__ref_in(call, 0), *out = tt__ref_out(call, 0);
  int64_t in_strides[TT__REF_MAX_RANK], out_strides[TT__REF_MAX_RANK], from[TT__REF_MAX_RANK];
  int64_t start = 0;
  uint32_t count;
  const int64_t *starts = tt_node_ints(call->node, TT_ATTR_START_INDICES, &count);
  const int64_t *steps = tt_node_ints(call->node, TT_ATTR_STRIDES, &count);
  tt__ref_strides(in, in_strides);
  tt__ref_strides(out, out_strides);
  for (uint32_t d = 0; d < in->rank; d++) {
    start += starts[d] * in_strides[d];
    from[d] = (count ? steps[d] : 1) * in_strides[d];
  }
  size_t size = tt_dtype_size(in->dtype);
  tt__ref_copy(size, out->rank, out->dims, call->results[0], out_strides,
               (const char *)call->operands[0] + (size_t)start * size, from);
  return TT_OK_STATUS;
}

// The linear offset of a window of `window` dims in `type`, its start clamped to stay inside;
// start indices are the scalars operands[first...].
static int64_t clamped_start(const tt__ref_call_t *call, uint32_t first, const tt_type_t *type,
                             const int64_t *window, const int64_t *strides) {
  int64_t start = 0;
  for (uint32_t d = 0; d < type->rank; d++) {
    int64_t at = tt_element_index(tt__ref_in(call, first + d)->dtype, call->operands[first + d], 0);
    int64_t last = type->dims[d] - window[d];
    at = at < 0 ? 0 : at > last ? last : at;
    start += at * strides[d];
  }
  return start;
}

tt_status_t tt__ref_dynamic_slice(const tt__ref_call_t *call) {
  const tt_type_t *in = tt__ref_in(call, 0), *out = tt__ref_out(call, 0);
  int64_t in_strides[TT__REF_MAX_RANK], out_strides[TT__REF_MAX_RANK];
  tt__ref_strides(in, in_strides);
  tt__ref_strides(out, out_strides);
  int64_t start = clamped_start(call, 1, in, out->dims, in_strides);
  size_t size = tt_dtype_size(in->dtype);
  tt__ref_copy(size, out->rank, out->dims, call->results[0], out_strides,
               (const char *)call->operands[0] + (size_t)start * size, in_strides);
  return TT_OK_STATUS;
}

tt_status_t tt__ref_dynamic_update_slice(const tt__ref_call_t *call) {
  const tt_type_t *type = tt__ref_out(call, 0), *update = tt__ref_in(call, 1);
  int64_t strides[TT__REF_MAX_RANK], update_strides[TT__REF_MAX_RANK];
  tt__ref_strides(type, strides);
  tt__ref_strides(update, update_strides);
  int64_t start = clamped_start(call, 2, type, update->dims, strides);
  size_t size = tt_dtype_size(type->dtype);
  memcpy(call->results[0], call->operands[0], tt_type_bytes(type));
  tt__ref_copy(size, update->rank, update->dims, (char *)call->results[0] + (size_t)start * size,
               strides, call->operands[1], update_strides);
  return TT_OK_STATUS;
}

// The elements of one dimension that survive: from[begin, end) goes to low + i * (interior + 1).
static void padded_range(int64_t dim, int64_t low, int64_t interior, int64_t padded,
                         int64_t *out_begin, int64_t *out_end) {
  int64_t step = interior + 1, begin = low < 0 ? (-low + step - 1) / step : 0;
  int64_t room = padded - low, end = room <= 0 ? 0 : (room + step - 1) / step;
  *out_begin = begin;
  *out_end = end < dim ? end : dim;
}

void tt__ref_pad_data(size_t size, uint32_t rank, const int64_t *dims, const int64_t *low,
                      const int64_t *high, const int64_t *interior, const void *from,
                      const void *value, void *to) {
  int64_t padded[TT__REF_MAX_RANK], counts[TT__REF_MAX_RANK];
  int64_t to_steps[TT__REF_MAX_RANK], from_steps[TT__REF_MAX_RANK];
  int64_t to_start = 0, from_start = 0, to_stride = 1, from_stride = 1;
  for (uint32_t d = rank; d-- > 0;) {
    int64_t holes = dims[d] > 1 ? (dims[d] - 1) * interior[d] : 0, begin, end;
    padded[d] = dims[d] + low[d] + high[d] + holes;
    padded_range(dims[d], low[d], interior[d], padded[d], &begin, &end);
    counts[d] = end > begin ? end - begin : 0;
    to_start += (low[d] + begin * (interior[d] + 1)) * to_stride;
    from_start += begin * from_stride;
    to_steps[d] = (interior[d] + 1) * to_stride;
    from_steps[d] = from_stride;
    to_stride *= padded[d];
    from_stride *= dims[d];
  }
  tt__ref_fill(size, to_stride, to, value);
  for (uint32_t d = 0; d < rank; d++) {
    if (counts[d] == 0) return;
  }
  tt__ref_copy(size, rank, counts, (char *)to + to_start * (int64_t)size, to_steps,
               (const char *)from + from_start * (int64_t)size, from_steps);
}

tt_status_t tt__ref_pad(const tt__ref_call_t *call) {
  const tt_type_t *in = tt__ref_in(call, 0);
  uint32_t count;
  const int64_t *low = tt_node_ints(call->node, TT_ATTR_EDGE_PADDING_LOW, &count);
  const int64_t *high = tt_node_ints(call->node, TT_ATTR_EDGE_PADDING_HIGH, &count);
  static const int64_t zeros[TT__REF_MAX_RANK] = {0};
  const int64_t *interior = tt_node_ints(call->node, TT_ATTR_INTERIOR_PADDING, &count);
  tt__ref_pad_data(tt_dtype_size(in->dtype), in->rank, in->dims, low, high,
                   count ? interior : zeros, call->operands[0], call->operands[1],
                   call->results[0]);
  return TT_OK_STATUS;
}

tt_status_t tt__ref_concatenate(const tt__ref_call_t *call) {
  const tt_type_t *out = tt__ref_out(call, 0);
  int64_t dimension = tt_node_int(call->node, TT_ATTR_DIMENSION, 0);
  int64_t strides[TT__REF_MAX_RANK], in_strides[TT__REF_MAX_RANK], at = 0;
  size_t size = tt_dtype_size(out->dtype);
  tt__ref_strides(out, strides);
  for (uint32_t i = 0; i < call->node->operand_count; i++) {
    const tt_type_t *in = tt__ref_in(call, i);
    tt__ref_strides(in, in_strides);
    tt__ref_copy(size, in->rank, in->dims,
                 (char *)call->results[0] + (size_t)(at * strides[dimension]) * size, strides,
                 call->operands[i], in_strides);
    at += in->dims[dimension];
  }
  return TT_OK_STATUS;
}

// Bits of 4-bit elements, low nibble first, as bitcasts see them.
static void pack(tt_dtype_t dtype, const uint8_t *data, int64_t count, uint8_t *out) {
  if (tt_dtype_infos[dtype].bits != 4) {
    memcpy(out, data, (size_t)count * tt_dtype_size(dtype));
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    uint8_t nibble = data[i] & 15;
    out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] | nibble << 4 : nibble);
  }
}

static void unpack(tt_dtype_t dtype, const uint8_t *bits, int64_t count, uint8_t *out) {
  if (tt_dtype_infos[dtype].bits != 4) {
    memcpy(out, bits, (size_t)count * tt_dtype_size(dtype));
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    int64_t nibble = bits[i / 2] >> (i % 2 * 4) & 15;
    tt_element_store(dtype, &nibble, 1, out + i);
  }
}

tt_status_t tt__ref_bitcast_convert(const tt__ref_call_t *call) {
  const tt_type_t *in = tt__ref_in(call, 0), *out = tt__ref_out(call, 0);
  uint8_t *bits = (uint8_t *)tt_alloc(tt_type_bytes(in) + 1);
  if (!bits) return tt__ref_no_memory(call->node);
  pack(in->dtype, (const uint8_t *)call->operands[0], tt_type_elements(in), bits);
  unpack(out->dtype, bits, tt_type_elements(out), (uint8_t *)call->results[0]);
  tt_free(bits);
  return TT_OK_STATUS;
}
