// Value and place of the largest or smallest element along one dimension.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/element.h"
#include "softtpu/plan_fold.h"
#include "softtpu/plan_probe.h"

// Columns whose best values and places a unit of work keeps on its stack.
enum { LINE = 1024 };

typedef struct arg_s {
  tt__tile_t *tile;
  uint16_t reg;
  int64_t outer, reduced, inner;
  tt_dtype_t dtype, index;
  tt__lane_t lane;
  bool largest;
  bool (*row)(int64_t n, const void *src, void *best, int64_t *at);
  void (*column)(int64_t n, const void *src, void *best, int64_t *at, int64_t row);
} arg_t;

typedef struct job_s {
  const arg_t *a;
  char *in[TT__TILE_LEAVES];
  char *value, *index;
} job_t;

// Evaluates up to `n` points from `at`; fewer where a row of the tile program ends.
static const char *points(tt__exec_t *x, const arg_t *a, int64_t at, int64_t *n) {
  const tt__tile_t *t = a->tile;
  if (*n > t->step) *n = t->step;
  if (t->row && *n > t->row - at % t->row) *n = t->row - at % t->row;
  tt__tile_at(x, at, *n);
  return x->regs[a->reg];
}

// Winners leave as they are: no arithmetic, so narrowing is exact.
static void put(const job_t *job, int64_t at, int64_t n, const char *best, const int64_t *places) {
  const arg_t *a = job->a;
  char *to = job->value + (size_t)at * tt_dtype_size(a->dtype);
  uint32_t half = tt__half_index(a->dtype);
  if (half == TT__HALF_COUNT)
    memcpy(to, best, (size_t)n * tt_dtype_size(a->dtype));
  else
    tt__kernels()->narrow[half](n, to, best, best, best, 0);
  tt_element_store(a->index, places, n, job->index + (size_t)at * tt_dtype_size(a->index));
}

// One reduced row, tile by tile; the first element starts as the best.
static void run_row(tt__exec_t *x, const job_t *job, int64_t k) {
  const arg_t *a = job->a;
  size_t bytes = tt__lane_bytes(a->lane);
  _Alignas(16) char best[16];
  int64_t place = 0;
  for (int64_t j = 0; j < a->reduced;) {
    int64_t n = a->reduced - j, at;
    const char *src = points(x, a, k * a->reduced + j, &n);
    if (j == 0) memcpy(best, src, bytes);
    if (a->row(n, src, best, &at)) place = j + at;
    j += n;
  }
  put(job, k, 1, best, &place);
}

// Rows come one after another; each column keeps its best so far.
static void run_columns(tt__exec_t *x, const job_t *job, int64_t k, int64_t c, int64_t count) {
  const arg_t *a = job->a;
  size_t bytes = tt__lane_bytes(a->lane);
  _Alignas(64) char best[LINE * 8];
  int64_t places[LINE];
  memset(places, 0, sizeof *places * (size_t)count);
  for (int64_t j = 0; j < a->reduced; j++) {
    for (int64_t i = 0; i < count;) {
      int64_t n = count - i;
      const char *src = points(x, a, (k * a->reduced + j) * a->inner + c + i, &n);
      if (j == 0)
        memcpy(best + (size_t)i * bytes, src, (size_t)n * bytes);
      else
        a->column(n, src, best + (size_t)i * bytes, places + i, j);
      i += n;
    }
  }
  put(job, k * a->inner + c, count, best, places);
}

static void run_range(void *context, int64_t begin, int64_t end) {
  const job_t *job = context;
  const arg_t *a = job->a;
  _Alignas(64) char slots[TT__TILE_SCRATCH];
  tt__exec_t x;
  tt__tile_begin(&x, a->tile, (char *const *)job->in, NULL, slots);
  int64_t blocks = (a->inner + LINE - 1) / LINE;
  for (int64_t u = begin; u < end; u++) {
    int64_t c = u % blocks * LINE;
    if (a->inner == 1)
      run_row(&x, job, u);
    else
      run_columns(&x, job, u / blocks, c, a->inner - c < LINE ? a->inner - c : LINE);
  }
}

static tt_status_t run_arg(const tt__step_t *s, const tt__run_t *run) {
  const arg_t *a = s->data;
  job_t job = {.a = a, .value = tt__at(run, s->out[0]), .index = tt__at(run, s->out[1])};
  for (uint32_t r = 0; r < s->read_count; r++) job.in[r] = tt__at(run, s->in[r]);
  tt__plan_parallel(run, a->outer * ((a->inner + LINE - 1) / LINE), s->cost, run_range, &job);
  return TT_OK_STATUS;
}

// --- planning ----------------------------------------------------------------------------------

static const char *constant_element(const tt__planner_t *p, tt_value_t v) {
  const tt_node_t *n = p->graph->values[v].node;
  if (!n || n->op != TT_OP_CONSTANT) return NULL;
  return tt_node_attr(n, TT_ATTR_VALUE)->u.bytes;
}

// Initial values that lose to every element, so that the first element may take their place.
static bool loses(const tt__planner_t *p, const tt_node_t *n, int64_t length, bool largest) {
  const char *value = constant_element(p, n->operands[2]),
             *index = constant_element(p, n->operands[3]);
  tt_dtype_t d = tt_graph_type(p->graph, n->operands[2])->dtype;
  tt_dtype_t di = tt_graph_type(p->graph, n->operands[3])->dtype;
  if (!value || !index || tt_element_index(di, index, 0) < length - 1) return false;
  tt_element_t e;
  tt_element_load(d, value, 1, &e);
  unsigned bits = tt_dtype_infos[d].bits;
  switch (tt_element_wide(d)) {
    case TT_WIDE_REAL: {
      double infinity = __builtin_inf(), edge;
      tt_element_store(d, &infinity, 1, &edge);
      tt_element_load(d, &edge, 1, &infinity);
      return e.real == (largest ? -infinity : infinity);
    }
    case TT_WIDE_SIGNED:
      return e.i == (largest ? INT64_MIN >> (64 - bits) : INT64_MAX >> (64 - bits));
    case TT_WIDE_UNSIGNED:
      return e.u == (largest ? 0 : UINT64_MAX >> (64 - bits));
    case TT_WIDE_COMPLEX:
      return false;
  }
  return false;
}

// Whether v counts along the reduced dimension, so that it need not be read.
static bool is_place(const tt__planner_t *p, tt_value_t v, int64_t dim) {
  const tt_node_t *n = p->graph->values[v].node;
  return n && n->op == TT_OP_IOTA && tt_node_int(n, TT_ATTR_IOTA_DIMENSION, -1) == dim;
}

// The last answer is remembered: roles ask for each operand, and probing runs the body.
bool tt__plan_arg_fits(tt__planner_t *p, const tt_node_t *n, bool *out_largest) {
  if (n->op != TT_OP_REDUCE || n->operand_count != 4) return false;
  uint32_t count;
  const int64_t *dims = tt_node_ints(n, TT_ATTR_DIMENSIONS, &count);
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  tt__view_t view;
  uint32_t rank;
  int64_t extents[TT__TILE_DIMS];
  if (count != 1 || !is_place(p, n->operands[1], dims[0]) ||
      tt__lane_of(x->dtype) >= TT__LANE_C64 || tt_type_elements(x) == 0 ||
      !tt__tile_identity(x, &rank, extents, &view))
    return false;
  if (p->probed != n) {
    tt_status_release(tt__probe_arg_reduce(p, n, &p->probed_matches, &p->probed_largest));
    p->probed = n;
  }
  *out_largest = p->probed_largest;
  return p->probed_matches && loses(p, n, x->dims[dims[0]], *out_largest);
}

tt_status_t tt__plan_arg_step(tt__planner_t *p, const tt_node_t *n, tt__step_t **out_step) {
  bool largest;
  if (!tt__plan_arg_fits(p, n, &largest)) return TT_OK_STATUS;
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  arg_t *a = tt_arena_zeroed(p->arena, sizeof *a);
  if (!a) return tt__plan_no_memory();
  bool splat;
  tt__tile_root_t root = {.value = n->operands[0], .into_register = true};
  tt__tile_spec_t spec = {
      .roots = &root, .root_count = 1, .out_regs = &a->reg, .out_splats = &splat};
  int64_t shape[3];
  tt__plan_reduce_space(x, n, shape, &spec, &root);
  a->outer = shape[0];
  a->reduced = shape[1];
  a->inner = shape[2];
  a->dtype = x->dtype;
  a->index = tt_graph_type(p->graph, n->first_result + 1)->dtype;
  a->lane = tt__lane_of(x->dtype);
  a->row = tt__kernels()->arg_row[largest][a->lane];
  a->column = tt__kernels()->arg_column[largest][a->lane];
  tt_status_t status = tt__plan_tile(p, &spec, n->operands[0], &a->tile);
  // The same element everywhere: rare enough for the reference executor.
  if (!status && a->tile && !splat)
    status = tt__plan_step(p, run_arg, "arg", n, spec.read_count, 2, out_step);
  if (*out_step) {
    tt__step_t *s = *out_step;
    tt__plan_set_reads(s, spec.reads);
    s->writes[0] = n->first_result;
    s->writes[1] = n->first_result + 1;
    s->data = a;
    s->cost = (uint64_t)tt_type_elements(x) * (a->tile->point_cost + 200) / 1000;
  }
  tt_free(spec.reads);
  return status;
}
