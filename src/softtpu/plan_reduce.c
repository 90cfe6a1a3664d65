// Reductions with one-op bodies, their operand computed on the way in. Points are visited with the
// kept dimensions outermost; partial results of fixed ranges are combined in order, so that results
// do not depend on the number of threads.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plan_fold.h"
#include "softtpu/plan_rows.h"
#include "softtpu/reference_internal.h"
#include "softtpu/tile.h"

enum {
  ACC_BLOCK = 1024,      // accumulators a unit of work has on its stack
  SPLIT_POINTS = 65536,  // points of one output's partial result
  MAX_SPLITS = 64,
  NARROW = 16,  // kept rows below this are read with a stride instead
};

// The iteration space is [outer, reduced, inner]: inner is 1 where rows are reduced.
typedef struct reduce_s {
  tt__tile_t *tile;
  uint16_t reg;
  bool splat;
  uint32_t init;  // which read
  int64_t outer, reduced, inner;
  int64_t splits, split;  // parts of the reduced range, points of it in one
  tt__fold_t fold;
} reduce_t;

typedef struct job_s {
  const reduce_t *r;
  char *in[TT__TILE_LEAVES + 1];
  char *out, *partials;
  char init[16];
} job_t;

static void fill(size_t bytes, int64_t n, char *to, const char *value) {
  tt__load(tt__kernels(), tt__size_log2(bytes), n, to, value, 0);
}

// Evaluates up to `n` points from `at`; fewer where a row of the tile program ends.
static const char *points(tt__exec_t *x, const reduce_t *r, int64_t at, int64_t *n,
                          char *expanded) {
  const tt__tile_t *t = r->tile;
  if (*n > t->step) *n = t->step;
  if (t->row && *n > t->row - at % t->row) *n = t->row - at % t->row;
  if (r->splat) {
    if (*n > ACC_BLOCK) *n = ACC_BLOCK;
    return expanded;
  }
  tt__tile_at(x, at, *n);
  return x->regs[r->reg];
}

// The initial value goes into the result once, by way of the first part.
static const char *start_value(const job_t *job, int64_t split) {
  return split == 0 || job->r->fold.idempotent ? job->init : job->r->fold.identity;
}

// Outputs [k, k + count) of the split; whole rows together where they are short.
static void reduce_rows(tt__exec_t *x, const job_t *job, int64_t k, int64_t count, int64_t split,
                        char *acc, char *expanded) {
  const reduce_t *r = job->r;
  const tt__tile_t *t = r->tile;
  int64_t from = split * r->split, to = from + r->split < r->reduced ? from + r->split : r->reduced;
  fill(r->fold.acc_bytes, count, acc, start_value(job, split));
  int64_t rows = r->splits == 1 && r->reduced ? t->step / r->reduced : 0;
  if (rows > 1 && (!t->row || t->row % r->reduced == 0) && !r->splat) {
    for (int64_t i = 0; i < count;) {
      int64_t n = (count - i < rows ? count - i : rows) * r->reduced;
      const char *src = points(x, r, (k + i) * r->reduced, &n, expanded);
      r->fold.row(n / r->reduced, r->reduced, acc + (size_t)i * r->fold.acc_bytes, src);
      i += n / r->reduced;
    }
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    for (int64_t at = from; at < to;) {
      int64_t n = to - at;
      const char *src = points(x, r, (k + i) * r->reduced + at, &n, expanded);
      r->fold.row(1, n, acc + (size_t)i * r->fold.acc_bytes, src);
      at += n;
    }
  }
}

// Columns [c, c + count) of outer position k.
static void reduce_columns(tt__exec_t *x, const job_t *job, int64_t k, int64_t c, int64_t count,
                           int64_t split, char *acc, char *expanded) {
  const reduce_t *r = job->r;
  const tt__tile_t *t = r->tile;
  int64_t from = split * r->split, to = from + r->split < r->reduced ? from + r->split : r->reduced;
  fill(r->fold.acc_bytes, count, acc, start_value(job, split));
  int64_t rows = count == r->inner && !r->splat ? t->step / count : 0;
  bool whole = rows > 1 && (!t->row || t->row % r->inner == 0);
  for (int64_t j = from; j < to;) {
    int64_t at = (k * r->reduced + j) * r->inner + c;
    if (whole) {
      int64_t n = (to - j < rows ? to - j : rows) * count;
      const char *src = points(x, r, at, &n, expanded);
      for (int64_t i = 0; i < n; i += count)
        r->fold.column(count, acc, src + (size_t)i * r->fold.lane_bytes);
      j += n / count;
      continue;
    }
    for (int64_t i = 0; i < count;) {
      int64_t n = count - i;
      const char *src = points(x, r, at + i, &n, expanded);
      r->fold.column(n, acc + (size_t)i * r->fold.acc_bytes, src);
      i += n;
    }
    j++;
  }
}

// Units of work across the columns of one outer position.
static int64_t column_blocks(const reduce_t *r) { return (r->inner + ACC_BLOCK - 1) / ACC_BLOCK; }

// An operand that is one element everywhere has no tile to evaluate; it is written out once.
static void begin(const job_t *job, tt__exec_t *x, char *slots, char *expanded) {
  char *const *in = (char *const *)job->in;
  tt__tile_begin(x, job->r->tile, in, NULL, slots);
  if (job->r->splat) fill(job->r->fold.lane_bytes, ACC_BLOCK, expanded, x->regs[job->r->reg]);
}

// Units of work in row mode: outputs of split 0, then of split 1, ...
static void run_rows(void *context, int64_t from, int64_t to) {
  const job_t *job = context;
  const reduce_t *r = job->r;
  _Alignas(64) char slots[TT__TILE_SCRATCH], acc[ACC_BLOCK * 16], expanded[ACC_BLOCK * 16];
  tt__exec_t x;
  begin(job, &x, slots, expanded);
  for (int64_t u = from; u < to;) {
    int64_t split = u / r->outer, k = u % r->outer;
    int64_t n = to - u < r->outer - k ? to - u : r->outer - k;
    if (n > ACC_BLOCK) n = ACC_BLOCK;
    char *where = r->splits > 1 ? job->partials + (size_t)u * r->fold.acc_bytes : acc;
    reduce_rows(&x, job, k, n, split, where, expanded);
    if (r->splits == 1)
      tt__fold_finish(&r->fold, acc, n, job->out + (size_t)k * tt_dtype_size(r->fold.dtype));
    u += n;
  }
}

// Units of work in column mode: column blocks of outer positions of split 0, then of split 1, ...
static void run_columns(void *context, int64_t from, int64_t to) {
  const job_t *job = context;
  const reduce_t *r = job->r;
  _Alignas(64) char slots[TT__TILE_SCRATCH], acc[ACC_BLOCK * 16], expanded[ACC_BLOCK * 16];
  tt__exec_t x;
  begin(job, &x, slots, expanded);
  int64_t blocks = column_blocks(r);
  for (int64_t u = from; u < to; u++) {
    int64_t block = u % blocks, k = u / blocks % r->outer, split = u / blocks / r->outer;
    int64_t c = block * ACC_BLOCK, n = r->inner - c < ACC_BLOCK ? r->inner - c : ACC_BLOCK;
    int64_t at = k * r->inner + c;
    char *where = acc;
    if (r->splits > 1)
      where = job->partials + (size_t)(split * r->outer * r->inner + at) * r->fold.acc_bytes;
    reduce_columns(&x, job, k, c, n, split, where, expanded);
    if (r->splits == 1)
      tt__fold_finish(&r->fold, acc, n, job->out + (size_t)at * tt_dtype_size(r->fold.dtype));
  }
}

// Partial results are combined in the order of the splits, by the caller.
static tt_status_t run_reduce(const tt__step_t *s, const tt__run_t *run) {
  const reduce_t *r = s->data;
  job_t job = {.r = r, .out = tt__at(run, s->out[0])};
  for (uint32_t i = 0; i < s->read_count; i++) job.in[i] = tt__at(run, s->in[i]);
  tt__fold_init(&r->fold, job.in[r->init], job.init);
  if (r->splits > 1) job.partials = tt__at(run, s->scratch);
  int64_t outputs = r->outer * r->inner;
  if (outputs == 0) return TT_OK_STATUS;
  if (r->inner == 1)
    tt__plan_parallel(run, r->outer * r->splits, s->cost, run_rows, &job);
  else
    tt__plan_parallel(run, r->outer * column_blocks(r) * r->splits, s->cost, run_columns, &job);
  if (r->splits == 1) return TT_OK_STATUS;
  for (int64_t i = 1; i < r->splits; i++)
    r->fold.combine(outputs, job.partials,
                    job.partials + (size_t)(i * outputs) * r->fold.acc_bytes);
  tt__fold_finish(&r->fold, job.partials, outputs, job.out);
  return TT_OK_STATUS;
}

int64_t tt__plan_reduce_rows(const tt__step_t *s) {
  if (s->run != run_reduce) return 0;
  const reduce_t *r = s->data;
  return r->inner == 1 && r->splits == 1 && r->reduced > 0 ? r->outer : 0;
}

const tt__tile_t *tt__plan_reduce_tile(const tt__step_t *s) {
  return ((const reduce_t *)s->data)->tile;
}

// One split: a unit of work is an output, so a band of rows is a range of units.
void tt__plan_reduce_band(const tt__step_t *s, const tt__run_t *run, int64_t from, int64_t to) {
  const reduce_t *r = s->data;
  job_t job = {.r = r, .out = tt__at(run, s->out[0])};
  for (uint32_t i = 0; i < s->read_count; i++) job.in[i] = tt__at(run, s->in[i]);
  tt__fold_init(&r->fold, job.in[r->init], job.init);
  run_rows(&job, from, to);
}

// --- planning ----------------------------------------------------------------------------------

// Base dimensions in visiting order, as dimensions of the operand: kept ones, reduced ones, then
// the kept ones that are innermost in memory, which make columns where they are wide enough.
static uint32_t visit_order(const tt_type_t *x, tt_ints_t dims, int64_t *shape, uint32_t *order) {
  int64_t inner = 1;
  uint32_t first_inner = x->rank;
  while (first_inner > 0 && !tt_ints_has(dims, first_inner - 1)) inner *= x->dims[--first_inner];
  shape[0] = shape[1] = 1;
  for (uint32_t k = 0; k < x->rank; k++) {
    if (tt_ints_has(dims, k))
      shape[1] *= x->dims[k];
    else
      shape[0] *= x->dims[k];
  }
  bool rows = inner < NARROW || shape[1] < 2;
  if (rows) first_inner = x->rank;
  shape[2] = rows ? 1 : inner;
  if (!rows) shape[0] /= inner;
  uint32_t n = 0;
  for (uint32_t k = 0; k < first_inner; k++)
    if (!tt_ints_has(dims, k)) order[n++] = k;
  for (uint32_t k = 0; k < x->rank; k++)
    if (tt_ints_has(dims, k)) order[n++] = k;
  for (uint32_t k = first_inner; k < x->rank; k++) order[n++] = k;
  return n;
}

// Rows of very few outputs are cut in parts that threads can share. By the shapes alone, so that
// the order of additions is the same on every machine.
static void choose_splits(reduce_t *r) {
  int64_t units = r->inner == 1 ? r->outer : r->outer * column_blocks(r);
  r->splits = 1;
  r->split = r->reduced;
  if (units >= 32) return;
  int64_t split = SPLIT_POINTS / (r->inner < ACC_BLOCK ? r->inner : ACC_BLOCK);
  if (split < (r->reduced + MAX_SPLITS - 1) / MAX_SPLITS)
    split = (r->reduced + MAX_SPLITS - 1) / MAX_SPLITS;
  if (r->reduced < 2 * split) return;
  r->split = split;
  r->splits = (r->reduced + split - 1) / split;
}

bool tt__plan_reduce_fits(const tt__planner_t *p, const tt_node_t *n) {
  if (n->op != TT_OP_REDUCE || n->operand_count != 2) return false;
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  tt_dtype_t dtype = tt_graph_type(p->graph, n->first_result)->dtype;
  tt__fold_t fold;
  tt__view_t view;
  uint32_t rank;
  int64_t extents[TT__TILE_DIMS];
  return x->dtype == dtype && tt__tile_identity(x, &rank, extents, &view) &&
         tt__fold_choose(tt__ref_region_single(n->regions[0]), dtype, &fold);
}

static void describe_space(const tt_type_t *x, const uint32_t *order, uint32_t count,
                           tt__tile_spec_t *spec, tt__tile_root_t *root) {
  root->view.rank = x->rank;
  for (uint32_t i = 0; i < count; i++) {
    if (x->dims[order[i]] == 1) continue;
    root->view.coef[order[i]][spec->rank] = 1;
    spec->extents[spec->rank++] = x->dims[order[i]];
  }
  if (spec->rank == 0) spec->extents[spec->rank++] = 1;
}

void tt__plan_reduce_space(const tt_type_t *x, const tt_node_t *n, int64_t out_shape[3],
                           tt__tile_spec_t *spec, tt__tile_root_t *root) {
  uint32_t order[TT__TILE_RANK];
  tt_ints_t dims = tt_node_list(n, TT_ATTR_DIMENSIONS);
  describe_space(x, order, visit_order(x, dims, out_shape, order), spec, root);
}

static tt_status_t make_step(tt__planner_t *p, const tt_node_t *n, reduce_t *r,
                             const tt__tile_spec_t *spec, tt__step_t **out_step) {
  TT_RETURN_IF_ERROR(tt__plan_step(p, run_reduce, "reduce", n, spec->read_count, 1, out_step));
  tt__step_t *s = *out_step;
  tt__plan_set_reads(s, spec->reads);
  s->writes[0] = n->first_result;
  s->data = r;
  s->cost = (uint64_t)(r->outer * r->reduced * r->inner) * (r->tile->point_cost + 100) / 1000;
  if (r->splits > 1)
    s->scratch_bytes = (size_t)(r->splits * r->outer * r->inner) * r->fold.acc_bytes;
  return TT_OK_STATUS;
}

tt_status_t tt__plan_reduce_step(tt__planner_t *p, const tt_node_t *n, tt__step_t **out_step) {
  if (!tt__plan_reduce_fits(p, n)) return TT_OK_STATUS;
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  reduce_t *r = tt_arena_zeroed(p->arena, sizeof *r);
  if (!r) return tt__plan_no_memory();
  tt__fold_choose(tt__ref_region_single(n->regions[0]), x->dtype, &r->fold);
  int64_t shape[3];
  tt__tile_root_t root = {.value = n->operands[0], .into_register = true};
  tt__tile_spec_t spec = {
      .roots = &root, .root_count = 1, .out_regs = &r->reg, .out_splats = &r->splat};
  tt__plan_reduce_space(x, n, shape, &spec, &root);
  r->outer = shape[0];
  r->reduced = shape[1];
  r->inner = shape[2];
  choose_splits(r);
  if (!tt_grow((void **)&spec.reads, &spec.read_capacity, 4, sizeof *spec.reads))
    return tt__plan_no_memory();
  spec.reads[spec.read_count++] = tt__plan_root(p, n->operands[1]);
  tt_status_t status = tt__plan_tile(p, &spec, n->operands[0], &r->tile);
  if (!status && r->tile) status = make_step(p, n, r, &spec, out_step);
  tt_free(spec.reads);
  return status;
}
