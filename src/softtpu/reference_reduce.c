// reduce and map. The operand is copied so that what is folded together lies together: rows that
// all lanes take one element of, or, for few lanes, one long line for each.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// A reduction's geometry: the operand's dimensions split in kept and reduced ones, and the order
// [reduced..., kept...] or [kept..., reduced...] that the operand is copied to first.
typedef struct split_s {
  uint32_t rank, order[TT__REF_MAX_RANK];
  int64_t lanes, length;  // elements kept, elements folded into each
  bool lines;             // kept dimensions outermost
} split_t;

// Both orders visit the reduced elements of a lane in row-major order.
static void split_dims(const tt__ref_call_t *call, split_t *split) {
  const tt_type_t *in = tt__ref_in(call, 0);
  bool reduced[TT__REF_MAX_RANK] = {false};
  uint32_t count, at = 0;
  const int64_t *dims = tt_node_ints(call->node, TT_ATTR_DIMENSIONS, &count);
  split->rank = in->rank;
  split->lanes = split->length = 1;
  for (uint32_t i = 0; i < count; i++) reduced[dims[i]] = true;
  for (uint32_t d = 0; d < in->rank; d++) {
    *(reduced[d] ? &split->length : &split->lanes) *= in->dims[d];
  }
  split->lines = split->lanes < 16 && split->length > 16;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t d = 0; d < in->rank; d++) {
      if (reduced[d] == ((pass == 0) != split->lines)) split->order[at++] = d;
    }
  }
}

static tt_dtype_t body_dtype(const tt__ref_call_t *call, uint32_t i) {
  return tt_graph_type(call->graph, call->node->regions[0]->args[i])->dtype;
}

// The body may work in a wider type than the input's: elements are promoted first.
static void *promote(const tt__ref_call_t *call, uint32_t i, void *data) {
  tt_dtype_t from = tt__ref_in(call, i)->dtype, to = body_dtype(call, i);
  if (from == to || !data) return data;
  int64_t count = tt_type_elements(tt__ref_in(call, i));
  void *copy = tt_alloc(tt_dtype_size(to) * (size_t)count + 1);
  if (copy) tt_element_convert(from, data, count, to, copy);
  tt_free(data);
  return copy;
}

// The operand in the split's order, dense, in the body's type.
static void *reorder(const tt__ref_call_t *call, uint32_t operand, const split_t *split) {
  const tt_type_t *in = tt__ref_in(call, operand);
  int64_t strides[TT__REF_MAX_RANK], dims[TT__REF_MAX_RANK], from[TT__REF_MAX_RANK];
  int64_t to[TT__REF_MAX_RANK];
  void *copy = tt_alloc(tt_type_bytes(in) + 1);
  if (!copy) return NULL;
  tt__ref_strides(in, strides);
  for (uint32_t d = 0; d < split->rank; d++) {
    dims[d] = in->dims[split->order[d]];
    from[d] = strides[split->order[d]];
  }
  tt_type_t type = {in->dtype, split->rank, dims};
  tt__ref_strides(&type, to);
  tt__ref_copy(tt_dtype_size(in->dtype), split->rank, dims, copy, to, call->operands[operand],
               from);
  return promote(call, operand, copy);
}

// What a reduction holds while it runs, all [count].
typedef struct work_s {
  uint32_t count;
  void **copies;  // owned
  const void **rows;
  void **results;
  tt_element_t *init_values;
  const void **inits;  // into init_values
} work_t;

// One table cut in four; work_deinit frees what there is.
static tt_status_t work_init(const tt__ref_call_t *call, const split_t *split, work_t *work) {
  size_t count = work->count = call->node->operand_count / 2u;
  work->copies = (void **)tt_alloc_zeroed(sizeof(void *) * 4 * count);
  work->init_values = (tt_element_t *)tt_alloc_zeroed(sizeof(tt_element_t) * count);
  if (!work->copies || !work->init_values) return tt__ref_no_memory(call->node);
  work->rows = (const void **)work->copies + count;
  work->results = work->copies + 2 * count;
  work->inits = (const void **)work->copies + 3 * count;
  for (uint32_t i = 0; i < count; i++) {
    work->copies[i] = reorder(call, i, split);
    if (!work->copies[i]) return tt__ref_no_memory(call->node);
    work->inits[i] = &work->init_values[i];
    tt_element_convert(tt__ref_in(call, work->count + i)->dtype, call->operands[count + i], 1,
                       body_dtype(call, i), &work->init_values[i]);
  }
  return TT_OK_STATUS;
}

static void work_deinit(work_t *work) {
  for (uint32_t i = 0; work->copies && i < work->count; i++) tt_free(work->copies[i]);
  tt_free(work->copies);
  tt_free(work->init_values);
}

// All lanes at once.
static tt_status_t fold_rows(const tt__ref_call_t *call, const split_t *split, work_t *work) {
  tt__ref_fold_t *fold = NULL;
  TT_RETURN_IF_ERROR(tt__ref_fold_create(call, call->node->regions[0], work->count, work->inits,
                                         split->lanes, &fold));
  tt_status_t status = TT_OK_STATUS;
  for (int64_t r = 0; !status && split->lanes && r < split->length; r++) {
    for (uint32_t i = 0; i < work->count; i++) {
      size_t size = tt_dtype_size(body_dtype(call, i));
      work->rows[i] = (char *)work->copies[i] + (size_t)(r * split->lanes) * size;
    }
    status = tt__ref_fold_row(fold, work->rows);
  }
  if (!status) tt__ref_fold_finish(fold, call->results);
  tt__ref_fold_destroy(fold);
  return status;
}

// Lane by lane.
static tt_status_t fold_lines(const tt__ref_call_t *call, const split_t *split, work_t *work) {
  for (int64_t lane = 0; lane < split->lanes; lane++) {
    tt__ref_fold_t *fold = NULL;
    TT_RETURN_IF_ERROR(
        tt__ref_fold_create(call, call->node->regions[0], work->count, work->inits, 1, &fold));
    for (uint32_t i = 0; i < work->count; i++) {
      size_t size = tt_dtype_size(body_dtype(call, i));
      work->rows[i] = (char *)work->copies[i] + (size_t)(lane * split->length) * size;
      size_t out_size = tt_dtype_size(tt__ref_out(call, i)->dtype);
      work->results[i] = (char *)call->results[i] + (size_t)lane * out_size;
    }
    tt_status_t status = tt__ref_fold_line(fold, work->rows, split->length);
    if (!status) tt__ref_fold_finish(fold, work->results);
    tt__ref_fold_destroy(fold);
    TT_RETURN_IF_ERROR(status);
  }
  return TT_OK_STATUS;
}

tt_status_t tt__ref_reduce(const tt__ref_call_t *call) {
  split_t split;
  work_t work = {0};
  split_dims(call, &split);
  tt_status_t status = work_init(call, &split, &work);
  if (!status) {
    status = split.lines ? fold_lines(call, &split, &work) : fold_rows(call, &split, &work);
  }
  work_deinit(&work);
  return status;
}

tt_status_t tt__ref_map(const tt__ref_call_t *call) {
  tt__ref_region_t *region = NULL;
  TT_RETURN_IF_ERROR(tt__ref_region_create(call, call->node->regions[0], &region));
  tt_status_t status = tt__ref_region_run(region, tt_type_elements(tt__ref_out(call, 0)),
                                          call->operands, call->results);
  tt__ref_region_destroy(region);
  return status;
}
