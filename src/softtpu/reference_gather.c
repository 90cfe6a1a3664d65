// gather and scatter: the index arithmetic of the specification, one window at a time.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// How index vectors map to positions: gather's names, scatter's are in brackets.
typedef struct indexing_s {
  tt_ints_t window_dims;  // offset_dims [update_window_dims]: of the result [updates]
  tt_ints_t collapsed;    // collapsed_slice_dims [inserted_window_dims]
  tt_ints_t operand_batching, index_batching;
  tt_ints_t index_map;  // start_index_map [scatter_dims_to_operand_dims]
  int64_t index_vector_dim;
  const tt_type_t *operand, *indices, *windowed;
  const void *index_data;
  int64_t index_strides[TT__REF_MAX_RANK], operand_strides[TT__REF_MAX_RANK];
  int64_t windowed_strides[TT__REF_MAX_RANK];
  // The batch dimensions of `windowed` (all but window_dims), in order.
  uint32_t batch_rank;
  int64_t batch_dims[TT__REF_MAX_RANK], batch_strides[TT__REF_MAX_RANK];
  // The window: one entry a dimension of window_dims.
  uint32_t window_rank;
  int64_t window_sizes[TT__REF_MAX_RANK], window_operand_strides[TT__REF_MAX_RANK];
  int64_t window_strides[TT__REF_MAX_RANK];
  int64_t sizes[TT__REF_MAX_RANK];  // the window's extent in each operand dimension
} indexing_t;

// `sizes` has been filled.
static void indexing_init(indexing_t *x) {
  tt__ref_strides(x->indices, x->index_strides);
  tt__ref_strides(x->operand, x->operand_strides);
  tt__ref_strides(x->windowed, x->windowed_strides);
  x->batch_rank = x->window_rank = 0;
  for (uint32_t d = 0; d < x->windowed->rank; d++) {
    if (tt_ints_has(x->window_dims, d)) continue;
    x->batch_dims[x->batch_rank] = x->windowed->dims[d];
    x->batch_strides[x->batch_rank++] = x->windowed_strides[d];
  }
  for (uint32_t d = 0; d < x->operand->rank; d++) {
    if (tt_ints_has(x->collapsed, d) || tt_ints_has(x->operand_batching, d)) continue;
    uint32_t w = x->window_rank++;
    x->window_sizes[w] = x->sizes[d];
    x->window_operand_strides[w] = x->operand_strides[d];
    x->window_strides[w] = x->windowed_strides[x->window_dims.at[w]];
  }
}

// The start of the window of batch index `batch` in each operand dimension, not clamped.
static void window_start(const indexing_t *x, const int64_t *batch, int64_t *start) {
  int64_t base = 0;
  for (uint32_t b = 0, d = 0; b < x->batch_rank; b++, d++) {
    if ((int64_t)d == x->index_vector_dim) d++;
    base += batch[b] * x->index_strides[d];
  }
  int64_t step =
      x->index_vector_dim < (int64_t)x->indices->rank ? x->index_strides[x->index_vector_dim] : 0;
  memset(start, 0, sizeof(int64_t) * x->operand->rank);
  for (uint32_t i = 0; i < x->index_map.count; i++) {
    start[x->index_map.at[i]] =
        tt_element_index(x->indices->dtype, x->index_data, base + (int64_t)i * step);
  }
  for (uint32_t i = 0; i < x->operand_batching.count; i++) {
    int64_t d = x->index_batching.at[i];
    start[x->operand_batching.at[i]] = batch[d > x->index_vector_dim ? d - 1 : d];
  }
}

static int64_t dot_index(uint32_t rank, const int64_t *index, const int64_t *strides) {
  int64_t at = 0;
  for (uint32_t d = 0; d < rank; d++) at += index[d] * strides[d];
  return at;
}

static bool is_empty(uint32_t rank, const int64_t *dims) {
  for (uint32_t d = 0; d < rank; d++) {
    if (dims[d] == 0) return true;
  }
  return false;
}

// From the attribute, or from dynamic_gather's third operand.
static void gather_sizes(const tt__ref_call_t *call, indexing_t *x) {
  if (call->node->op == TT_OP_DYNAMIC_GATHER) {
    for (uint32_t d = 0; d < x->operand->rank; d++) {
      x->sizes[d] = tt_element_index(tt__ref_in(call, 2)->dtype, call->operands[2], d);
    }
    return;
  }
  uint32_t count;
  const int64_t *sizes = tt_node_ints(call->node, TT_ATTR_SLICE_SIZES, &count);
  for (uint32_t d = 0; d < count; d++) x->sizes[d] = sizes[d];
}

// Starts are clamped so that every window lies inside, as the specification says.
tt_status_t tt__ref_gather(const tt__ref_call_t *call) {
  const tt_node_t *node = call->node;
  indexing_t x = {
      .window_dims = tt_node_list(node, TT_ATTR_OFFSET_DIMS),
      .collapsed = tt_node_list(node, TT_ATTR_COLLAPSED_SLICE_DIMS),
      .operand_batching = tt_node_list(node, TT_ATTR_OPERAND_BATCHING_DIMS),
      .index_batching = tt_node_list(node, TT_ATTR_START_INDICES_BATCHING_DIMS),
      .index_map = tt_node_list(node, TT_ATTR_START_INDEX_MAP),
      .index_vector_dim = tt_node_int(node, TT_ATTR_INDEX_VECTOR_DIM, 0),
      .operand = tt__ref_in(call, 0),
      .indices = tt__ref_in(call, 1),
      .windowed = tt__ref_out(call, 0),
      .index_data = call->operands[1],
  };
  gather_sizes(call, &x);
  indexing_init(&x);
  if (tt_type_elements(x.windowed) == 0) return TT_OK_STATUS;
  size_t size = tt_dtype_size(x.operand->dtype);
  int64_t batch[TT__REF_MAX_RANK] = {0}, start[TT__REF_MAX_RANK];
  do {
    window_start(&x, batch, start);
    for (uint32_t d = 0; d < x.operand->rank; d++) {
      int64_t last = x.operand->dims[d] - x.sizes[d];
      start[d] = start[d] < 0 ? 0 : start[d] > last ? last : start[d];
    }
    int64_t from = dot_index(x.operand->rank, start, x.operand_strides);
    int64_t to = dot_index(x.batch_rank, batch, x.batch_strides);
    tt__ref_copy(size, x.window_rank, x.window_sizes, (char *)call->results[0] + (size_t)to * size,
                 x.window_strides, (const char *)call->operands[0] + (size_t)from * size,
                 x.window_operand_strides);
  } while (tt__ref_next(x.batch_rank, x.batch_dims, batch));
  return TT_OK_STATUS;
}

// ---- scatter

typedef struct scatter_s {
  indexing_t x;
  uint32_t count;  // inputs
  tt__ref_region_t *region;
  void **args, **outs;  // [2 * count], [count]
} scatter_t;

// One line of a window: `lanes` neighbours in results and updates, combined at once.
static tt_status_t scatter_line(const tt__ref_call_t *call, scatter_t *s, int64_t to, int64_t from,
                                int64_t lanes) {
  for (uint32_t i = 0; i < s->count; i++) {
    size_t size = tt_dtype_size(tt__ref_out(call, i)->dtype);
    const void *updates = call->operands[s->count + 1 + i];
    s->outs[i] = s->args[i] = (char *)call->results[i] + (size_t)to * size;
    s->args[s->count + i] = (char *)(uintptr_t)updates + (size_t)from * size;
  }
  return tt__ref_region_run(s->region, lanes, (const void *const *)s->args, s->outs);
}

// The last dimension goes as one line where it is dense on both sides.
static tt_status_t scatter_window(const tt__ref_call_t *call, scatter_t *s, int64_t to,
                                  int64_t from) {
  const indexing_t *x = &s->x;
  if (is_empty(x->window_rank, x->window_sizes)) return TT_OK_STATUS;
  uint32_t outer = x->window_rank;
  int64_t lanes = 1, at[TT__REF_MAX_RANK] = {0};
  if (outer && x->window_strides[outer - 1] == 1 && x->window_operand_strides[outer - 1] == 1) {
    lanes = x->window_sizes[--outer];
  }
  do {
    TT_RETURN_IF_ERROR(scatter_line(call, s, to + dot_index(outer, at, x->window_operand_strides),
                                    from + dot_index(outer, at, x->window_strides), lanes));
  } while (tt__ref_next(outer, x->window_sizes, at));
  return TT_OK_STATUS;
}

// Windows in row-major order of the update's batch dimensions. A window that does not lie wholly
// inside the operand is skipped, which is what XLA does.
static tt_status_t scatter_all(const tt__ref_call_t *call, scatter_t *s) {
  const indexing_t *x = &s->x;
  int64_t batch[TT__REF_MAX_RANK] = {0}, start[TT__REF_MAX_RANK];
  if (tt_type_elements(x->windowed) == 0) return TT_OK_STATUS;
  do {
    window_start(x, batch, start);
    bool inside = true;
    for (uint32_t d = 0; d < x->operand->rank; d++) {
      inside &= start[d] >= 0 && start[d] <= x->operand->dims[d] - x->sizes[d];
    }
    if (!inside) continue;
    TT_RETURN_IF_ERROR(scatter_window(call, s,
                                      dot_index(x->operand->rank, start, x->operand_strides),
                                      dot_index(x->batch_rank, batch, x->batch_strides)));
  } while (tt__ref_next(x->batch_rank, x->batch_dims, batch));
  return TT_OK_STATUS;
}

// The window's extent in each operand dimension: the updates' where it has one, else 1.
static void scatter_sizes(indexing_t *x) {
  uint32_t w = 0;
  for (uint32_t d = 0; d < x->operand->rank; d++) {
    bool inserted = tt_ints_has(x->collapsed, d) || tt_ints_has(x->operand_batching, d);
    x->sizes[d] = inserted ? 1 : x->windowed->dims[x->window_dims.at[w++]];
  }
}

tt_status_t tt__ref_scatter(const tt__ref_call_t *call) {
  const tt_node_t *node = call->node;
  scatter_t s = {.count = (node->operand_count - 1u) / 2u};
  s.x = (indexing_t){
      .window_dims = tt_node_list(node, TT_ATTR_UPDATE_WINDOW_DIMS),
      .collapsed = tt_node_list(node, TT_ATTR_INSERTED_WINDOW_DIMS),
      .operand_batching = tt_node_list(node, TT_ATTR_INPUT_BATCHING_DIMS),
      .index_batching = tt_node_list(node, TT_ATTR_SCATTER_INDICES_BATCHING_DIMS),
      .index_map = tt_node_list(node, TT_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS),
      .index_vector_dim = tt_node_int(node, TT_ATTR_INDEX_VECTOR_DIM, 0),
      .operand = tt__ref_in(call, 0),
      .indices = tt__ref_in(call, s.count),
      .windowed = tt__ref_in(call, s.count + 1),
      .index_data = call->operands[s.count],
  };
  scatter_sizes(&s.x);
  indexing_init(&s.x);
  for (uint32_t i = 0; i < s.count; i++) {
    size_t bytes = tt_type_bytes(tt__ref_out(call, i));
    if (bytes) memcpy(call->results[i], call->operands[i], bytes);
  }
  s.args = (void **)tt_alloc(sizeof(void *) * 3 * s.count);
  if (!s.args) return tt__ref_no_memory(node);
  s.outs = s.args + 2 * (size_t)s.count;
  tt_status_t status = tt__ref_region_create(call, node->regions[0], &s.region);
  if (!status) status = scatter_all(call, &s);
  tt__ref_region_destroy(s.region);
  tt_free(s.args);
  return status;
}
