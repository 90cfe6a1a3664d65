// Window reductions of one op: running totals in one pass, pooling a row of results at a time.
#include <string.h>

#include "softtpu/plan_fold.h"
#include "softtpu/reference_internal.h"

enum { LINE = 1024, RANK = TT__TILE_RANK };

typedef struct window_s {
  tt__fold_t fold;
  uint32_t rank;
  int64_t in[RANK], out[RANK], size[RANK], stride[RANK], dilation[RANK], low[RANK],
      in_strides[RANK];
  int64_t taps, rows, columns;  // taps: of all dimensions but the last
  // Running totals: [outer, length, inner], from the front or from the back.
  bool scan, backward;
  int64_t outer, length, inner;
} window_t;

typedef struct job_s {
  const window_t *w;
  const char *in;
  char *out;
  char init[16];
} job_t;

static void start(const window_t *w, int64_t n, char *acc, const char *init) {
  tt__load(tt__kernels(), tt__size_log2(w->fold.acc_bytes), n, acc, init, 0);
}

// --- running totals ----------------------------------------------------------------------------

// n columns side by side: each row adds to the accumulators, whose rounding is the row's result.
static void scan_line(const job_t *job, int64_t outer, int64_t column, int64_t n) {
  const window_t *w = job->w;
  _Alignas(64) char acc[LINE * 16], line[LINE * 16];
  int64_t size = (int64_t)tt_dtype_size(w->fold.dtype);
  start(w, n, acc, job->init);
  for (int64_t i = 0; i < w->length; i++) {
    int64_t row = w->backward ? w->length - 1 - i : i;
    int64_t at = ((outer * w->length + row) * w->inner + column) * size;
    w->fold.column(n, acc, tt__fold_lanes(&w->fold, n, job->in + at, 1, line));
    tt__fold_finish(&w->fold, acc, n, job->out + at);
  }
}

// A single f32 column without the detour over kernels: the sum is one chain of additions.
static void scan_floats(const job_t *job, int64_t outer) {
  const window_t *w = job->w;
  const float *in = (const float *)(const void *)job->in + outer * w->length;
  float *out = (float *)(void *)job->out + outer * w->length;
  double sum;
  memcpy(&sum, job->init, sizeof sum);
  int64_t step = w->backward ? -1 : 1, at = w->backward ? w->length - 1 : 0;
  for (int64_t i = 0; i < w->length; i++, at += step) {
    sum += (double)in[at];
    out[at] = (float)sum;
  }
}

static bool sums_floats(const window_t *w) {
  return w->inner == 1 && w->fold.dtype == TT_F32 && w->fold.acc_lane == TT__LANE_F64 &&
         w->fold.row == tt__kernels()->fold_row[TT__FOLD_SUM][TT__LANE_F32];
}

static void scan_range(void *context, int64_t begin, int64_t end) {
  const job_t *job = context;
  const window_t *w = job->w;
  int64_t blocks = (w->inner + LINE - 1) / LINE;
  for (int64_t u = begin; u < end; u++) {
    int64_t column = u % blocks * LINE, n = w->inner - column < LINE ? w->inner - column : LINE;
    if (sums_floats(w))
      scan_floats(job, u);
    else
      scan_line(job, u / blocks, column, n);
  }
}

// --- pooling -----------------------------------------------------------------------------------

// Columns [j, j + n) of a row of results, all taps of the last dimension, from one row of inputs.
static void pool_row(const window_t *w, const char *row, int64_t j, int64_t n, char *acc,
                     char *line) {
  uint32_t d = w->rank - 1;
  int64_t size = (int64_t)tt_dtype_size(w->fold.dtype), s = w->stride[d];
  for (int64_t k = 0; k < w->size[d]; k++) {
    int64_t first = j * s + k * w->dilation[d] - w->low[d];
    int64_t low = first >= 0 ? 0 : (-first + s - 1) / s;
    int64_t high = w->in[d] - first <= 0 ? 0 : (w->in[d] - 1 - first) / s + 1;
    if (high > n) high = n;
    if (high <= low) continue;
    const char *src = tt__fold_lanes(&w->fold, high - low, row + (first + low * s) * size, s, line);
    w->fold.column(high - low, acc + (size_t)low * w->fold.acc_bytes, src);
  }
}

// The row of inputs that a tap of the outer dimensions sees, or NULL in the padding.
static const char *input_row(const job_t *job, const int64_t *at, int64_t tap) {
  const window_t *w = job->w;
  int64_t offset = 0;
  for (uint32_t d = w->rank - 1; d-- > 0; tap /= w->size[d]) {
    int64_t i = at[d] * w->stride[d] + tap % w->size[d] * w->dilation[d] - w->low[d];
    if (i < 0 || i >= w->in[d]) return NULL;
    offset += i * w->in_strides[d];
  }
  return job->in + offset * (int64_t)tt_dtype_size(w->fold.dtype);
}

static void pool_range(void *context, int64_t begin, int64_t end) {
  const job_t *job = context;
  const window_t *w = job->w;
  _Alignas(64) char acc[LINE * 16], line[LINE * 16];
  size_t size = tt_dtype_size(w->fold.dtype);
  for (int64_t r = begin; r < end; r++) {
    int64_t at[RANK], left = r;
    for (uint32_t d = w->rank - 1; d-- > 0; left /= w->out[d]) at[d] = left % w->out[d];
    for (int64_t j = 0; j < w->columns; j += LINE) {
      int64_t n = w->columns - j < LINE ? w->columns - j : LINE;
      start(w, n, acc, job->init);
      for (int64_t tap = 0; tap < w->taps; tap++) {
        const char *row = input_row(job, at, tap);
        if (row) pool_row(w, row, j, n, acc, line);
      }
      tt__fold_finish(&w->fold, acc, n, job->out + (size_t)(r * w->columns + j) * size);
    }
  }
}

static tt_status_t run_window(const tt__step_t *s, const tt__run_t *run) {
  const window_t *w = s->data;
  job_t job = {.w = w, .in = tt__at(run, s->in[0]), .out = tt__at(run, s->out[0])};
  tt__fold_init(&w->fold, tt__at(run, s->in[1]), job.init);
  if (w->scan)
    tt__plan_parallel(run, w->outer * ((w->inner + LINE - 1) / LINE), s->cost, scan_range, &job);
  else if (w->columns > 0)
    tt__plan_parallel(run, w->rows, s->cost, pool_range, &job);
  return TT_OK_STATUS;
}

// --- planning ----------------------------------------------------------------------------------

// A running total: along one dimension the window is as long as the input and padded on one side by
// all but one, elsewhere it is one element.
static void find_scan(window_t *w, const int64_t *high) {
  uint32_t along = w->rank;
  for (uint32_t d = 0; d < w->rank; d++) {
    if (w->stride[d] != 1 || w->dilation[d] != 1) return;
    if (w->size[d] == 1 && w->low[d] == 0 && high[d] == 0) continue;
    bool front = w->low[d] == w->in[d] - 1 && high[d] == 0;
    bool back = w->low[d] == 0 && high[d] == w->in[d] - 1;
    if (along < w->rank || w->size[d] != w->in[d] || (!front && !back)) return;
    along = d;
    w->backward = !front;
  }
  if (along == w->rank) return;
  w->scan = true;
  w->outer = w->inner = 1;
  w->length = w->in[along];
  for (uint32_t d = 0; d < along; d++) w->outer *= w->in[d];
  for (uint32_t d = along + 1; d < w->rank; d++) w->inner *= w->in[d];
}

// No step for what has no kernel: several operands, dilated operands, bodies that are not one op.
tt_status_t tt__plan_window_step(tt__planner_t *p, const tt_node_t *n, tt__step_t **out_step) {
  if (n->op != TT_OP_REDUCE_WINDOW || n->operand_count != 2) return TT_OK_STATUS;
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  const tt_type_t *y = tt_graph_type(p->graph, n->first_result);
  window_t *w = tt_arena_zeroed(p->arena, sizeof *w);
  if (!w) return tt__plan_no_memory();
  if (x->dtype != y->dtype || x->rank > RANK || x->rank == 0 ||
      !tt__fold_choose(tt__ref_region_single(n->regions[0]), x->dtype, &w->fold))
    return TT_OK_STATUS;
  int64_t high[RANK], step = 1;
  w->rank = x->rank;
  w->taps = w->rows = 1;
  for (uint32_t d = x->rank; d-- > 0; step *= x->dims[d]) {
    if (tt_node_entry(n, TT_ATTR_BASE_DILATIONS, d, 1) != 1) return TT_OK_STATUS;
    w->in[d] = x->dims[d];
    w->out[d] = y->dims[d];
    w->size[d] = tt_node_entry(n, TT_ATTR_WINDOW_DIMENSIONS, d, 1);
    w->stride[d] = tt_node_entry(n, TT_ATTR_WINDOW_STRIDES, d, 1);
    w->dilation[d] = tt_node_entry(n, TT_ATTR_WINDOW_DILATIONS, d, 1);
    w->low[d] = tt_node_entry(n, TT_ATTR_PADDING, 2 * d, 0);
    high[d] = tt_node_entry(n, TT_ATTR_PADDING, 2 * d + 1, 0);
    w->in_strides[d] = step;
    if (d + 1 == x->rank) continue;
    w->taps *= w->size[d];
    w->rows *= y->dims[d];
  }
  w->columns = y->dims[y->rank - 1];
  find_scan(w, high);
  TT_RETURN_IF_ERROR(tt__plan_plain_step(p, run_window, w->scan ? "scan" : "window", n, out_step));
  int64_t work = tt_type_elements(y) * (w->scan ? 2 : w->taps * w->size[w->rank - 1]);
  (*out_step)->data = w;
  (*out_step)->cost = (uint64_t)work;
  return TT_OK_STATUS;
}
