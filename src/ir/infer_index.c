// Rules of gather, scatter, sort and their kin.
#include <string.h>

#include "ir/internal.h"

static bool ascending(tt_ints_t l) {
  for (uint32_t i = 1; i < l.count; i++) {
    if (l.at[i - 1] >= l.at[i]) return false;
  }
  return true;
}

// What gather and scatter have in common: how start indices point into an operand, and which of
// the operand's dimensions the window keeps.
typedef struct pointing_s {
  tt_ints_t window, dropped, batching, index_batching, map;
  int64_t vector_dim;
  uint32_t batch_rank;  // dimensions of the indices without vector_dim
} pointing_t;

// Ids are gather's; scatter's specification states the same constraints under other numbers. c1:
// kept and dropped dimensions make up the rank; c2, c3: where index vectors lie and how long they
// are; c4 to c18: lists are sorted, unique, in range and disjoint.
static tt_status_t check_pointing(const tt__infer_t *c, pointing_t *p, const tt_type_t *x,
                                  const tt_type_t *indices) {
  p->vector_dim = tt_node_int(c->node, TT_ATTR_INDEX_VECTOR_DIM, 0);
  TT__REQUIRE(c, tt_dtype_is_int(indices->dtype), NULL, "the indices are no integers");
  TT__REQUIRE(c, p->vector_dim >= 0 && p->vector_dim <= (int64_t)indices->rank, "c2",
              "index_vector_dim %lld is outside [0, %u]", (long long)p->vector_dim, indices->rank);
  bool implicit = p->vector_dim == (int64_t)indices->rank;
  int64_t width = implicit ? 1 : indices->dims[p->vector_dim];
  p->batch_rank = indices->rank - !implicit;
  TT__REQUIRE(c, p->map.count == width, "c3", "%u mapped dimensions, index vectors of %lld",
              p->map.count, (long long)width);
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c8", p->dropped.at, p->dropped.count, x->rank));
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c10", p->batching.at, p->batching.count, x->rank));
  TT_RETURN_IF_ERROR(
      tt__infer_dimensions(c, "c14", p->index_batching.at, p->index_batching.count, indices->rank));
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c18", p->map.at, p->map.count, x->rank));
  TT__REQUIRE(c, ascending(p->window), "c4", "window dimensions are not ascending");
  TT__REQUIRE(c, ascending(p->dropped), "c7", "collapsed dimensions are not ascending");
  TT__REQUIRE(c, ascending(p->batching), "c9", "batching dimensions are not ascending");
  TT__REQUIRE(c, p->batching.count == p->index_batching.count, "c16",
              "operand and indices have different numbers of batching dimensions");
  for (uint32_t i = 0; i < p->batching.count; i++) {
    int64_t d = p->batching.at[i], e = p->index_batching.at[i];
    TT__REQUIRE(c, !tt_ints_has(p->dropped, d), "c6", "dimension %lld is collapsed and batching",
                (long long)d);
    TT__REQUIRE(c, !tt_ints_has(p->map, d), "c13", "dimension %lld is indexed and batching",
                (long long)d);
    TT__REQUIRE(c, e != p->vector_dim, "c15", "index_vector_dim is a batching dimension");
    TT__REQUIRE(c, x->dims[d] == indices->dims[e], "c17", "batching dimensions differ in size");
  }
  uint32_t kept = x->rank - p->dropped.count - p->batching.count;
  TT__REQUIRE(c, p->dropped.count + p->batching.count <= x->rank && p->window.count == kept, "c1",
              "%u window dimensions for %u kept ones", p->window.count, kept);
  return tt__infer_dimensions(c, "c5", p->window.at, p->window.count,
                              p->window.count + p->batch_rank);
}

// Puts the indices' batch dimensions where no window dimension is.
static void place_batch(const pointing_t *p, const tt_type_t *indices, int64_t *dims) {
  uint32_t from = 0, rank = p->batch_rank + p->window.count;
  for (uint32_t i = 0; i < rank; i++) {
    if (tt_ints_has(p->window, i)) continue;
    if ((int64_t)from == p->vector_dim) from++;
    dims[i] = indices->dims[from++];
  }
}

// c21: a window fits the operand, since starts are clamped, not checked; c8: collapsed dimensions
// have at most one element.
static tt_status_t infer_gather(tt__infer_t *c, const int64_t *sizes) {
  const tt_type_t *x = tt__operand(c, 0), *indices = tt__operand(c, 1);
  pointing_t p = {.window = tt_node_list(c->node, TT_ATTR_OFFSET_DIMS),
                  .dropped = tt_node_list(c->node, TT_ATTR_COLLAPSED_SLICE_DIMS),
                  .batching = tt_node_list(c->node, TT_ATTR_OPERAND_BATCHING_DIMS),
                  .index_batching = tt_node_list(c->node, TT_ATTR_START_INDICES_BATCHING_DIMS),
                  .map = tt_node_list(c->node, TT_ATTR_START_INDEX_MAP)};
  int64_t dims[TT_MAX_RANK];
  TT_RETURN_IF_ERROR(check_pointing(c, &p, x, indices));
  uint32_t rank = p.batch_rank + p.window.count, window = 0;
  TT__REQUIRE(c, rank <= TT_MAX_RANK, NULL, "the result's rank %u is too large", rank);
  for (uint32_t i = 0; i < x->rank; i++) {
    bool dropped = tt_ints_has(p.dropped, i) || tt_ints_has(p.batching, i);
    TT__REQUIRE(c, sizes[i] >= 0 && sizes[i] <= x->dims[i], "c21",
                "slice size %lld is outside dimension %u", (long long)sizes[i], i);
    TT__REQUIRE(c, !dropped || sizes[i] <= 1, "c8", "collapsed dimension %u has slice size %lld", i,
                (long long)sizes[i]);
    if (!dropped) dims[p.window.at[window++]] = sizes[i];
  }
  place_batch(&p, indices, dims);
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  return tt__infer_dims(c, 0, x->dtype, rank, dims);
}

// Batch dimensions from the indices, offset dimensions from slice_sizes, merged by offset_dims.
tt_status_t tt__infer_gather(tt__infer_t *c) {
  const int64_t *sizes;
  TT_RETURN_IF_ERROR(tt__infer_list(c, TT_ATTR_SLICE_SIZES, tt__operand(c, 0)->rank, &sizes));
  return infer_gather(c, sizes);
}

// Slice sizes are an operand, so the maker must know the result; what it says is believed but for
// the number of sizes.
tt_status_t tt__infer_dynamic_gather(tt__infer_t *c) {
  TT__REQUIRE(c, c->given_count == 1, NULL, "the result type is missing");
  const tt_type_t *sizes = tt__operand(c, 2);
  TT__REQUIRE(c, sizes->rank == 1 && sizes->dims[0] == (int64_t)tt__operand(c, 0)->rank, "c20",
              "slice sizes are not one for each dimension");
  return tt__infer_given(c);
}

// N inputs, indices, N updates -> N results; the region joins old and new elements. c1: inputs
// agree in shape; c4: updates have the windows' and batches' shape, a window no larger than the
// input.
tt_status_t tt__infer_scatter(tt__infer_t *c) {
  uint32_t operands = c->node->operand_count;
  TT__REQUIRE(c, operands >= 3 && operands % 2 == 1, "c5",
              "%u operands are not inputs, indices and updates", operands);
  uint32_t n = (operands - 1) / 2;
  const tt_type_t *x = tt__operand(c, 0), *indices = tt__operand(c, n);
  pointing_t p = {.window = tt_node_list(c->node, TT_ATTR_UPDATE_WINDOW_DIMS),
                  .dropped = tt_node_list(c->node, TT_ATTR_INSERTED_WINDOW_DIMS),
                  .batching = tt_node_list(c->node, TT_ATTR_INPUT_BATCHING_DIMS),
                  .index_batching = tt_node_list(c->node, TT_ATTR_SCATTER_INDICES_BATCHING_DIMS),
                  .map = tt_node_list(c->node, TT_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS)};
  int64_t dims[TT_MAX_RANK];
  TT_RETURN_IF_ERROR(check_pointing(c, &p, x, indices));
  const tt_type_t *u = tt__operand(c, n + 1);
  TT__REQUIRE(c, u->rank == p.batch_rank + p.window.count, "c4", "updates have rank %u, not %u",
              u->rank, p.batch_rank + p.window.count);
  place_batch(&p, indices, dims);
  uint32_t window = 0;
  for (uint32_t i = 0; i < x->rank; i++) {
    if (tt_ints_has(p.dropped, i) || tt_ints_has(p.batching, i)) continue;
    int64_t d = p.window.at[window++];
    TT__REQUIRE(c, u->dims[d] <= x->dims[i], "c4",
                "window dimension %lld of the updates exceeds "
                "the input's dimension %u",
                (long long)d, i);
    dims[d] = u->dims[d];
  }
  tt_dtype_t few[16] = {0};
  tt_dtype_t *dtypes = few;
  if (2 * n > 16) dtypes = TT_ARENA_ARRAY(c->arena, tt_dtype_t, 2 * n);
  if (!dtypes) return tt__no_memory();
  TT_RETURN_IF_ERROR(tt__infer_results(c, n));
  for (uint32_t k = 0; k < n; k++) {
    const tt_type_t *input = tt__operand(c, k), *update = tt__operand(c, n + 1 + k);
    tt_type_t wanted = {update->dtype, u->rank, dims};
    TT__REQUIRE(c, tt_type_same_shape(input, x), "c1", "inputs have different shapes");
    TT__REQUIRE(c, tt_type_equal(update, &wanted), "c4", "updates have the wrong shape");
    TT__REQUIRE(c, update->dtype == input->dtype, "c6", "element types differ");
    dtypes[k] = dtypes[n + k] = input->dtype;
    tt__infer_like(c, k, input->dtype, input);
  }
  return tt__infer_scalar_region(c, 0, "c24", dtypes, 2 * n, dtypes, n);
}

// The source has the shape that a reduce_window with the same window would give.
tt_status_t tt__infer_select_and_scatter(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 0), *source = tt__operand(c, 1), *init = tt__operand(c, 2);
  const int64_t *sizes, *strides, *padding;
  TT__REQUIRE(c, init->rank == 0 && init->dtype == x->dtype && source->dtype == x->dtype, "c3",
              "source and initial value do not match the operand");
  TT__REQUIRE(c, source->rank == x->rank, "c2", "ranks differ");
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_WINDOW_DIMENSIONS, x->rank, &sizes));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_WINDOW_STRIDES, x->rank, &strides));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_PADDING, 2 * x->rank, &padding));
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t size =
        tt__window_output(x->dims[i], tt__at(sizes, i, 1), tt__at(strides, i, 1),
                          tt__at(padding, 2 * i, 0), tt__at(padding, 2 * i + 1, 0), 1, 1);
    TT__REQUIRE(c, size == source->dims[i], "c2", "dimension %u of the source is %lld, not %lld", i,
                (long long)source->dims[i], (long long)size);
  }
  const tt_dtype_t args[2] = {x->dtype, x->dtype}, pred = TT_I1;
  TT_RETURN_IF_ERROR(tt__infer_scalar_region(c, 0, "c9", args, 2, &pred, 1));
  TT_RETURN_IF_ERROR(tt__infer_scalar_region(c, 1, "c10", args, 2, args, 1));
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  tt__infer_like(c, 0, x->dtype, x);
  return TT_OK_STATUS;
}

// The region compares pairs: (x0, y0, x1, y1, ...) -> i1.
tt_status_t tt__infer_sort(tt__infer_t *c) {
  uint32_t n = c->node->operand_count;
  TT__REQUIRE(c, n >= 1, "c1", "there is no operand");
  const tt_type_t *x = tt__operand(c, 0);
  int64_t d = tt_node_int(c->node, TT_ATTR_DIMENSION, -1), rank = x->rank;  // -1: the last one
  TT__REQUIRE(c, (d >= -rank && d < rank) || rank == 0, "c4", "dimension %lld is outside rank %u",
              (long long)d, x->rank);
  tt_dtype_t *args = TT_ARENA_ARRAY(c->arena, tt_dtype_t, 2 * n);
  if (!args) return tt__no_memory();
  TT_RETURN_IF_ERROR(tt__infer_results(c, n));
  for (uint32_t i = 0; i < n; i++) {
    const tt_type_t *t = tt__operand(c, i);
    TT__REQUIRE(c, tt_type_same_shape(t, x), "c3", "operand %u has another shape", i);
    args[2 * i] = args[2 * i + 1] = t->dtype;
    tt__infer_like(c, i, t->dtype, t);
  }
  const tt_dtype_t pred = TT_I1;
  return tt__infer_scalar_region(c, 0, "c5", args, 2 * n, &pred, 1);
}

// Values and their indices along the last dimension.
tt_status_t tt__infer_top_k(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 0);
  int64_t k = tt_node_int(c->node, TT_ATTR_K, -1), dims[TT_MAX_RANK];
  TT__REQUIRE(c, x->rank >= 1, NULL, "a scalar has no last dimension");
  TT__REQUIRE(c, k >= 0 && k <= x->dims[x->rank - 1], NULL, "k is %lld, the last dimension %lld",
              (long long)k, (long long)x->dims[x->rank - 1]);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank - 1] = k;
  TT_RETURN_IF_ERROR(tt__infer_results(c, 2));
  TT_RETURN_IF_ERROR(tt__infer_dims(c, 0, x->dtype, x->rank, dims));
  return tt__infer_dims(c, 1, TT_S32, x->rank, dims);
}
