// reduce_window and select_and_scatter: operands are padded first (with the initial value), then
// each position of the window is one strided slice of all outputs.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// The window over a padded operand. All arrays have `rank` entries.
typedef struct window_s {
  uint32_t rank;
  int64_t size[TT__REF_MAX_RANK], stride[TT__REF_MAX_RANK], dilation[TT__REF_MAX_RANK];
  int64_t low[TT__REF_MAX_RANK], high[TT__REF_MAX_RANK], holes[TT__REF_MAX_RANK];
  int64_t padded[TT__REF_MAX_RANK];
  int64_t padded_strides[TT__REF_MAX_RANK], out_strides[TT__REF_MAX_RANK];
  int64_t padded_count;
} window_t;

// `windowed` is the shape of one value a window.
static void window_init(const tt_node_t *node, const tt_type_t *in, const tt_type_t *windowed,
                        window_t *w) {
  w->rank = in->rank;
  for (uint32_t d = 0; d < in->rank; d++) {
    w->size[d] = tt_node_entry(node, TT_ATTR_WINDOW_DIMENSIONS, d, 1);
    w->stride[d] = tt_node_entry(node, TT_ATTR_WINDOW_STRIDES, d, 1);
    w->dilation[d] = tt_node_entry(node, TT_ATTR_WINDOW_DILATIONS, d, 1);
    w->low[d] = tt_node_entry(node, TT_ATTR_PADDING, 2 * d, 0);
    w->high[d] = tt_node_entry(node, TT_ATTR_PADDING, 2 * d + 1, 0);
    w->holes[d] = tt_node_entry(node, TT_ATTR_BASE_DILATIONS, d, 1) - 1;
    int64_t holes = in->dims[d] > 1 ? (in->dims[d] - 1) * w->holes[d] : 0;
    w->padded[d] = in->dims[d] + holes + w->low[d] + w->high[d];
  }
  tt_type_t padded = {in->dtype, in->rank, w->padded};
  tt__ref_strides(&padded, w->padded_strides);
  tt__ref_strides(windowed, w->out_strides);
  w->padded_count = tt_type_elements(&padded);
}

// The operand with its padding and holes written out; caller frees. NULL: no memory.
static void *window_pad(const window_t *w, const tt_type_t *in, const void *data,
                        const void *value) {
  size_t size = tt_dtype_size(in->dtype);
  void *padded = tt_alloc(size * (size_t)w->padded_count + 1);
  if (padded) {
    tt__ref_pad_data(size, w->rank, in->dims, w->low, w->high, w->holes, data, value, padded);
  }
  return padded;
}

// The slice of `padded` at window position `at`: one element an output.
static void window_row(const window_t *w, size_t size, const tt_type_t *windowed, const int64_t *at,
                       const void *padded, void *row) {
  int64_t start = 0, steps[TT__REF_MAX_RANK];
  for (uint32_t d = 0; d < w->rank; d++) {
    start += at[d] * w->dilation[d] * w->padded_strides[d];
    steps[d] = w->stride[d] * w->padded_strides[d];
  }
  tt__ref_copy(size, w->rank, windowed->dims, row, w->out_strides,
               (const char *)padded + (size_t)start * size, steps);
}

// Buffers of reduce_window, [count].
typedef struct work_s {
  uint32_t count;
  void **padded, **rows;
} work_t;

static void work_deinit(work_t *work) {
  for (uint32_t i = 0; work->padded && i < 2 * work->count; i++) tt_free(work->padded[i]);
  tt_free(work->padded);
}

static tt_status_t work_init(const tt__ref_call_t *call, const window_t *w, int64_t lanes,
                             work_t *work) {
  work->count = call->node->operand_count / 2u;
  work->padded = (void **)tt_alloc_zeroed(sizeof(void *) * 2 * work->count);
  if (!work->padded) return tt__ref_no_memory(call->node);
  work->rows = work->padded + work->count;
  for (uint32_t i = 0; i < work->count; i++) {
    const tt_type_t *in = tt__ref_in(call, i);
    work->padded[i] = window_pad(w, in, call->operands[i], call->operands[work->count + i]);
    work->rows[i] = tt_alloc(tt_dtype_size(in->dtype) * (size_t)lanes + 1);
    if (!work->padded[i] || !work->rows[i]) return tt__ref_no_memory(call->node);
  }
  return TT_OK_STATUS;
}

// All outputs take their element at one window position, then at the next: row-major order of the
// window for each output.
static tt_status_t fold_windows(const tt__ref_call_t *call, const window_t *w, int64_t lanes,
                                work_t *work) {
  tt__ref_fold_t *fold = NULL;
  TT_RETURN_IF_ERROR(tt__ref_fold_create(call, call->node->regions[0], work->count,
                                         call->operands + work->count, lanes, &fold));
  int64_t at[TT__REF_MAX_RANK] = {0};
  tt_status_t status = TT_OK_STATUS;
  do {
    for (uint32_t i = 0; i < work->count; i++) {
      window_row(w, tt_dtype_size(tt__ref_in(call, i)->dtype), tt__ref_out(call, 0), at,
                 work->padded[i], work->rows[i]);
    }
    status = tt__ref_fold_row(fold, (const void *const *)work->rows);
  } while (!status && tt__ref_next(w->rank, w->size, at));
  if (!status) tt__ref_fold_finish(fold, call->results);
  tt__ref_fold_destroy(fold);
  return status;
}

tt_status_t tt__ref_reduce_window(const tt__ref_call_t *call) {
  int64_t lanes = tt_type_elements(tt__ref_out(call, 0));
  if (lanes == 0) return TT_OK_STATUS;
  for (uint32_t i = 0; i < call->node->operand_count / 2u; i++) {
    tt_dtype_t body = tt_graph_type(call->graph, call->node->regions[0]->args[i])->dtype;
    if (body != tt__ref_in(call, i)->dtype) {
      return tt__ref_unimplemented(call->graph, call->node, "a body wider than its input");
    }
  }
  window_t w;
  work_t work = {0};
  window_init(call->node, tt__ref_in(call, 0), tt__ref_out(call, 0), &w);
  tt_status_t status = work_init(call, &w, lanes, &work);
  if (!status) status = fold_windows(call, &w, lanes, &work);
  work_deinit(&work);
  return status;
}

// select_and_scatter: per window the chosen element's position in the operand.
typedef struct choice_s {
  window_t w;
  int64_t lanes;
  char *best;          // [lanes] the chosen value
  int64_t *positions;  // [lanes] into the operand, -1: none yet
} choice_t;

// The operand position under window position `at` of output `out`, or -1 in the padding.
static int64_t operand_position(const window_t *w, const tt_type_t *in, const int64_t *at,
                                const int64_t *out) {
  int64_t position = 0;
  for (uint32_t d = 0; d < w->rank; d++) {
    int64_t i = out[d] * w->stride[d] + at[d] - w->low[d];
    if (i < 0 || i >= in->dims[d]) return -1;
    position = position * in->dims[d] + i;
  }
  return position;
}

// Each window keeps its first element, then an element wins where select(kept, it) is false.
static tt_status_t choose_at(const tt__ref_call_t *call, choice_t *c, tt__ref_region_t *select,
                             const int64_t *at) {
  const tt_type_t *in = tt__ref_in(call, 0), *source = tt__ref_in(call, 1);
  size_t size = tt_dtype_size(in->dtype);
  int64_t out[TT__REF_MAX_RANK] = {0}, lane = 0;
  do {
    int64_t position = operand_position(&c->w, in, at, out);
    if (position >= 0) {
      const char *candidate = (const char *)call->operands[0] + (size_t)position * size;
      char *best = c->best + (size_t)lane * size;
      uint8_t keep = 0;
      if (c->positions[lane] >= 0) {
        const void *args[2] = {best, candidate};
        void *outs[1] = {&keep};
        TT_RETURN_IF_ERROR(tt__ref_region_run(select, 1, args, outs));
      }
      if (!keep) {
        memcpy(best, candidate, size);
        c->positions[lane] = position;
      }
    }
    lane++;
  } while (tt__ref_next(source->rank, source->dims, out));
  return TT_OK_STATUS;
}

// In the order of the source; an empty window scatters nothing.
static tt_status_t scatter_choices(const tt__ref_call_t *call, const choice_t *c) {
  const tt_type_t *source = tt__ref_in(call, 1), *out = tt__ref_out(call, 0);
  tt__ref_region_t *scatter = NULL;
  TT_RETURN_IF_ERROR(tt__ref_region_create(call, call->node->regions[1], &scatter));
  size_t size = tt_dtype_size(source->dtype), out_size = tt_dtype_size(out->dtype);
  tt__ref_fill(out_size, tt_type_elements(out), call->results[0], call->operands[2]);
  tt_status_t status = TT_OK_STATUS;
  for (int64_t i = 0; !status && i < c->lanes; i++) {
    if (c->positions[i] < 0) continue;
    char *slot = (char *)call->results[0] + (size_t)c->positions[i] * out_size;
    const void *args[2] = {slot, (const char *)call->operands[1] + (size_t)i * size};
    void *outs[1] = {slot};
    status = tt__ref_region_run(scatter, 1, args, outs);
  }
  tt__ref_region_destroy(scatter);
  return status;
}

static tt_status_t choose(const tt__ref_call_t *call, choice_t *c) {
  tt__ref_region_t *select = NULL;
  TT_RETURN_IF_ERROR(tt__ref_region_create(call, call->node->regions[0], &select));
  int64_t at[TT__REF_MAX_RANK] = {0};
  tt_status_t status = TT_OK_STATUS;
  if (c->lanes) {
    do {
      status = choose_at(call, c, select, at);
    } while (!status && tt__ref_next(c->w.rank, c->w.size, at));
  }
  tt__ref_region_destroy(select);
  return status;
}

tt_status_t tt__ref_select_and_scatter(const tt__ref_call_t *call) {
  const tt_type_t *in = tt__ref_in(call, 0), *source = tt__ref_in(call, 1);
  choice_t c = {.lanes = tt_type_elements(source)};
  window_init(call->node, in, source, &c.w);
  c.best = (char *)tt_alloc(tt_dtype_size(in->dtype) * (size_t)c.lanes + 1);
  c.positions = (int64_t *)tt_alloc(sizeof(int64_t) * ((size_t)c.lanes + 1));
  tt_status_t status = TT_OK_STATUS;
  if (!c.best || !c.positions) {
    status = tt__ref_no_memory(call->node);
  } else {
    for (int64_t i = 0; i < c.lanes; i++) c.positions[i] = -1;
    status = choose(call, &c);
    if (!status) status = scatter_choices(call, &c);
  }
  tt_free(c.best);
  tt_free(c.positions);
  return status;
}
