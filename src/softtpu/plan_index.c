// gather and scatter: windows of an operand at run-time indices.
#include <string.h>

#include "softtpu/element.h"
#include "softtpu/reference_internal.h"
#include "softtpu/tile.h"

enum { RANK = TT__TILE_RANK };

// "Windowed" is the tensor of windows: gather's result, scatter's updates.
typedef struct index_s {
  uint32_t batch_rank, window_rank, component_count;
  int64_t batches;
  int64_t batch_dims[RANK], batch_index[RANK], batch_windowed[RANK], batch_operand[RANK];
  int64_t window_dims[RANK], window_operand[RANK], window_windowed[RANK];
  int64_t component_operand[RANK], component_limit[RANK], component_index[RANK];
  tt_dtype_t dtype, index_dtype;
  uint32_t size_log2;
  size_t bytes;  // of the operand
  // scatter: what combines, NULL: replace
  tt__map_fn_t combine;
  uint32_t half;
  int64_t window_elements;
} index_t;

// Where one batch's window lies, and its indices.
typedef struct cursor_s {
  const index_t *x;
  int64_t at[RANK], index, windowed, operand;
} cursor_t;

// For a thread that starts in the middle.
static cursor_t cursor_at(const index_t *x, int64_t linear) {
  cursor_t c = {.x = x};
  for (uint32_t d = x->batch_rank; d-- > 0; linear /= x->batch_dims[d]) {
    c.at[d] = linear % x->batch_dims[d];
    c.index += c.at[d] * x->batch_index[d];
    c.windowed += c.at[d] * x->batch_windowed[d];
    c.operand += c.at[d] * x->batch_operand[d];
  }
  return c;
}

// The next batch in row-major order, by additions only.
static void cursor_next(cursor_t *c) {
  const index_t *x = c->x;
  for (uint32_t d = x->batch_rank; d-- > 0;) {
    c->index += x->batch_index[d];
    c->windowed += x->batch_windowed[d];
    c->operand += x->batch_operand[d];
    if (++c->at[d] < x->batch_dims[d]) return;
    c->index -= x->batch_dims[d] * x->batch_index[d];
    c->windowed -= x->batch_dims[d] * x->batch_windowed[d];
    c->operand -= x->batch_dims[d] * x->batch_operand[d];
    c->at[d] = 0;
  }
}

static inline int64_t read_index(const index_t *x, const void *data, int64_t at) {
  if (x->index_dtype == TT_S64) return ((const int64_t *)data)[at];
  if (x->index_dtype == TT_S32) return ((const int32_t *)data)[at];
  return tt_element_index(x->index_dtype, data, at);
}

// The window's place in the operand. Gather moves it inside; false: scatter leaves it out.
static bool locate(const cursor_t *c, const void *indices, bool clamp, int64_t *where) {
  const index_t *x = c->x;
  *where = c->operand;
  for (uint32_t k = 0; k < x->component_count; k++) {
    int64_t i = read_index(x, indices, c->index + x->component_index[k]);
    if (i < 0 || i > x->component_limit[k]) {
      if (!clamp) return false;
      i = i < 0 ? 0 : x->component_limit[k];
    }
    *where += i * x->component_operand[k];
  }
  return true;
}

// A line between strided places, by the kernel that suits the side that is dense.
static void copy_run(uint32_t log2, int64_t n, char *to, int64_t to_stride, const char *from,
                     int64_t from_stride) {
  const tt__kernels_t *k = tt__kernels();
  if (n == 1 || (to_stride == 1 && from_stride == 1)) {
    memcpy(to, from, (size_t)n << log2);
  } else if (to_stride == 1) {
    tt__load(k, log2, n, to, from, from_stride);
  } else if (from_stride == 1) {
    k->store[log2](n, to, from, to_stride);
  } else {
    k->rows[log2](n, 1, to, to_stride, from, from_stride, 0);
  }
}

// Small floats combine in f32 and round at every update, as the body says they do.
static void combine_run(const index_t *x, int64_t n, char *to, int64_t to_stride, const char *from,
                        int64_t from_stride) {
  const tt__kernels_t *k = tt__kernels();
  _Alignas(64) char raw[256 * 16], old[256 * 16], add[256 * 16];
  int64_t size = (int64_t)1 << x->size_log2;
  for (int64_t at = 0; at < n; at += 256) {
    int64_t m = n - at < 256 ? n - at : 256;
    char *dst = to + at * to_stride * size;
    const char *src = from + at * from_stride * size;
    if (from_stride != 1 && m > 1) {
      tt__load(k, x->size_log2, m, add, src, from_stride);
      src = add;
    }
    if (to_stride == 1 && x->half == TT__HALF_COUNT) {
      x->combine(m, dst, dst, src, src, 0);
      continue;
    }
    tt__load(k, x->size_log2, m, raw, dst, to_stride);
    if (x->half == TT__HALF_COUNT) {
      x->combine(m, raw, raw, src, src, 0);
    } else {
      _Alignas(64) char wide[256 * 4];
      k->widen[x->half](m, old, raw, raw, raw, 0);
      k->widen[x->half](m, wide, src, src, src, 0);
      x->combine(m, old, old, wide, wide, 0);
      k->narrow[x->half](m, raw, old, old, old, 0);
    }
    k->store[x->size_log2](m, dst, raw, to_stride);
  }
}

// Calls for each run of the window's last dimension.
static void each_run(const index_t *x, char *operand, char *windowed, bool gather) {
  int64_t size = (int64_t)1 << x->size_log2;
  if (x->window_rank == 0) {
    if (gather)
      memcpy(windowed, operand, (size_t)size);
    else if (!x->combine)
      memcpy(operand, windowed, (size_t)size);
    else
      combine_run(x, 1, operand, 1, windowed, 1);
    return;
  }
  uint32_t last = x->window_rank - 1;
  int64_t at[RANK] = {0}, n = x->window_dims[last];
  int64_t so = x->window_operand[last], sw = x->window_windowed[last];
  for (;;) {
    if (gather)
      copy_run(x->size_log2, n, windowed, sw, operand, so);
    else if (!x->combine)
      copy_run(x->size_log2, n, operand, so, windowed, sw);
    else
      combine_run(x, n, operand, so, windowed, sw);
    uint32_t d = last;
    for (;;) {
      if (d-- == 0) return;
      operand += x->window_operand[d] * size;
      windowed += x->window_windowed[d] * size;
      if (++at[d] < x->window_dims[d]) break;
      operand -= x->window_dims[d] * x->window_operand[d] * size;
      windowed -= x->window_dims[d] * x->window_windowed[d] * size;
      at[d] = 0;
    }
  }
}

typedef struct job_s {
  const index_t *x;
  char *operand, *windowed;
  const void *indices;
} job_t;

static void gather_range(void *context, int64_t begin, int64_t end) {
  const job_t *job = context;
  const index_t *x = job->x;
  cursor_t c = cursor_at(x, begin);
  int64_t size = (int64_t)1 << x->size_log2, where;
  for (int64_t b = begin; b < end; b++, cursor_next(&c)) {
    locate(&c, job->indices, true, &where);
    each_run(x, job->operand + where * size, job->windowed + c.windowed * size, true);
  }
}

static tt_status_t run_gather(const tt__step_t *s, const tt__run_t *run) {
  const index_t *x = s->data;
  job_t job = {x, tt__at(run, s->in[0]), tt__at(run, s->out[0]), tt__at(run, s->in[1])};
  if (x->window_elements > 0) tt__plan_parallel(run, x->batches, s->cost, gather_range, &job);
  return TT_OK_STATUS;
}

// In the order of the updates: equal places combine the same way however many threads there are.
static tt_status_t run_scatter(const tt__step_t *s, const tt__run_t *run) {
  const index_t *x = s->data;
  char *out = tt__at(run, s->out[0]), *operand = tt__at(run, s->in[0]);
  char *updates = tt__at(run, s->in[2]);
  const void *indices = tt__at(run, s->in[1]);
  if (out != operand) memcpy(out, operand, x->bytes);
  if (x->window_elements == 0 || x->batches == 0) return TT_OK_STATUS;
  cursor_t c = cursor_at(x, 0);
  int64_t size = (int64_t)1 << x->size_log2, where;
  for (int64_t b = 0; b < x->batches; b++, cursor_next(&c))
    if (locate(&c, indices, false, &where))
      each_run(x, out + where * size, updates + c.windowed * size, false);
  return TT_OK_STATUS;
}

// --- planning ----------------------------------------------------------------------------------

typedef struct names_s {
  tt_ints_t window, collapsed, operand_batching, index_batching, map;
  int64_t vector_dim;
} names_t;

// Batch dimensions in the order of the indices' and of the windows' tensor.
static void set_batches(const names_t *d, const tt_type_t *operand, const tt_type_t *indices,
                        const tt_type_t *windowed, index_t *x) {
  int64_t is[RANK], ws[RANK], os[RANK];
  tt__ref_strides(indices, is);
  tt__ref_strides(windowed, ws);
  tt__ref_strides(operand, os);
  uint32_t w = 0;
  x->batches = 1;
  for (uint32_t k = 0; k < indices->rank; k++) {
    if ((int64_t)k == d->vector_dim) continue;
    while (tt_ints_has(d->window, w)) w++;
    uint32_t b = x->batch_rank++;
    x->batch_dims[b] = indices->dims[k];
    x->batch_index[b] = is[k];
    x->batch_windowed[b] = ws[w++];
    for (uint32_t i = 0; i < d->index_batching.count; i++)
      if (d->index_batching.at[i] == (int64_t)k)
        x->batch_operand[b] = os[d->operand_batching.at[i]];
    x->batches *= indices->dims[k];
  }
  x->component_count = d->map.count;
  int64_t step = d->vector_dim < (int64_t)indices->rank ? is[d->vector_dim] : 0;
  for (uint32_t i = 0; i < d->map.count; i++) {
    x->component_operand[i] = os[d->map.at[i]];
    x->component_index[i] = step * i;
  }
}

// Window dimensions, neighbours merged where both sides continue. `sizes` by operand dimension.
static void set_window(const names_t *d, const tt_type_t *operand, const tt_type_t *windowed,
                       index_t *x, int64_t *sizes) {
  int64_t ws[RANK], os[RANK];
  tt__ref_strides(windowed, ws);
  tt__ref_strides(operand, os);
  uint32_t next = 0;
  x->window_elements = 1;
  for (uint32_t k = 0; k < operand->rank; k++) {
    sizes[k] = 1;
    if (tt_ints_has(d->collapsed, k) || tt_ints_has(d->operand_batching, k)) continue;
    int64_t at = d->window.at[next++], n = windowed->dims[at];
    sizes[k] = n;
    x->window_elements *= n;
    if (n == 1) continue;
    uint32_t last = x->window_rank;
    if (last > 0 && x->window_operand[last - 1] == os[k] * n &&
        x->window_windowed[last - 1] == ws[at] * n) {
      x->window_dims[last - 1] *= n;
      x->window_operand[last - 1] = os[k];
      x->window_windowed[last - 1] = ws[at];
      continue;
    }
    x->window_dims[last] = n;
    x->window_operand[last] = os[k];
    x->window_windowed[last] = ws[at];
    x->window_rank++;
  }
  for (uint32_t i = 0; i < d->map.count; i++)
    x->component_limit[i] = operand->dims[d->map.at[i]] - sizes[d->map.at[i]];
}

static names_t names_of(const tt_node_t *n, bool gather) {
  return (names_t){
      .window = tt_node_list(n, gather ? TT_ATTR_OFFSET_DIMS : TT_ATTR_UPDATE_WINDOW_DIMS),
      .collapsed =
          tt_node_list(n, gather ? TT_ATTR_COLLAPSED_SLICE_DIMS : TT_ATTR_INSERTED_WINDOW_DIMS),
      .operand_batching =
          tt_node_list(n, gather ? TT_ATTR_OPERAND_BATCHING_DIMS : TT_ATTR_INPUT_BATCHING_DIMS),
      .index_batching = tt_node_list(
          n, gather ? TT_ATTR_START_INDICES_BATCHING_DIMS : TT_ATTR_SCATTER_INDICES_BATCHING_DIMS),
      .map =
          tt_node_list(n, gather ? TT_ATTR_START_INDEX_MAP : TT_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS),
      .vector_dim = tt_node_int(n, TT_ATTR_INDEX_VECTOR_DIM, 0),
  };
}

// What a scatter's body does with one element; false: nothing known.
static bool body_kernel(const tt_node_t *n, index_t *x) {
  const tt_block_t *body = n->regions[0];
  if (body->arg_count != 2 || body->return_count != 1) return false;
  if (body->returns[0] == body->args[1]) return true;
  tt_op_t op = tt__ref_region_single(body);
  if (x->dtype == TT_I1 && op == TT_OP_ADD) op = TT_OP_OR;
  if (x->dtype == TT_I1 && op == TT_OP_MULTIPLY) op = TT_OP_AND;
  tt__lane_t lane = tt__lane_of(x->dtype);
  if (op == TT_OP_COUNT || lane == TT__LANE_COUNT) return false;
  if (x->dtype == TT_F8E4M3FN || x->dtype == TT_F8E5M2) return false;
  x->half = tt__half_index(x->dtype);
  x->combine = tt__kernels()->op[op][lane];
  return x->combine != NULL;
}

// A scatter whose body is no single op, or with several inputs, is left to the reference executor.
tt_status_t tt__plan_index_step(tt__planner_t *p, const tt_node_t *n, tt__step_t **out_step) {
  bool gather = n->op == TT_OP_GATHER;
  if (!gather && (n->op != TT_OP_SCATTER || n->operand_count != 3)) return TT_OK_STATUS;
  const tt_type_t *operand = tt_graph_type(p->graph, n->operands[0]);
  const tt_type_t *indices = tt_graph_type(p->graph, n->operands[1]);
  const tt_type_t *windowed = tt_graph_type(p->graph, gather ? n->first_result : n->operands[2]);
  if (operand->rank > RANK || indices->rank > RANK || windowed->rank > RANK) return TT_OK_STATUS;
  index_t *x = tt_arena_zeroed(p->arena, sizeof *x);
  if (!x) return tt__plan_no_memory();
  x->dtype = operand->dtype;
  x->index_dtype = indices->dtype;
  x->size_log2 = tt__size_log2(tt_dtype_size(operand->dtype));
  x->bytes = tt_type_bytes(operand);
  if (!gather && (windowed->dtype != operand->dtype || !body_kernel(n, x))) return TT_OK_STATUS;
  names_t names = names_of(n, gather);
  int64_t sizes[RANK];
  set_batches(&names, operand, indices, windowed, x);
  set_window(&names, operand, windowed, x, sizes);
  TT_RETURN_IF_ERROR(tt__plan_plain_step(p, gather ? run_gather : run_scatter,
                                         gather ? "gather" : "scatter", n, out_step));
  tt__step_t *s = *out_step;
  s->data = x;
  s->cost =
      (uint64_t)x->batches * (uint64_t)(6 + x->window_elements * (int64_t)(1u << x->size_log2) / 8);
  if (!gather) s->inplace[0] = true;
  return TT_OK_STATUS;
}
