// Runs tile programs.
#include "softtpu/tile.h"

#include <string.h>

#include "softtpu/reference_internal.h"

// The multi-index of a point.
static void locate(const tt__tile_t *t, int64_t at, int64_t *index) {
  for (uint32_t d = t->rank; d-- > 1;) {
    index[d] = at % t->extents[d];
    at /= t->extents[d];
  }
  index[0] = at;
}

// Puts the cursor on a point. Tiles mostly follow one another, and then it is there.
static void move_to(tt__exec_t *x, int64_t at) {
  if (x->at != at) locate(x->tile, at, x->index);
  x->at = at;
}

// Past n points, without dividing where those lie in one row and the next.
static void move_on(tt__exec_t *x, int64_t n) {
  const tt__tile_t *t = x->tile;
  x->at += n;
  for (uint32_t d = t->rank - 1; d > 0; d--) {
    int64_t extent = t->extents[d];
    x->index[d] += n;
    if (x->index[d] < extent) return;
    n = x->index[d] < 2 * extent ? 1 : x->index[d] / extent;
    x->index[d] -= n * extent;
  }
  x->index[0] += n;
}

// In elements.
static int64_t place(const tt__tile_t *t, const int64_t *index, const int64_t *strides) {
  int64_t sum = 0;
  for (uint32_t d = 0; d < t->rank; d++) sum += index[d] * strides[d];
  return sum;
}

// A walk over points in order, run by run: a run is some rows from their starts, or one row's part.
typedef struct walk_s {
  const tt__tile_t *tile;
  const int64_t *strides;
  int64_t index[TT__TILE_DIMS];
  int64_t where;    // in elements, of the run's first point
  int64_t left;     // points, the run's included
  int64_t rows, n;  // the run: so many rows of n points
} walk_t;

// From a row to the one below it, in elements.
static int64_t above(const tt__tile_t *t, const int64_t *strides) {
  return t->rank > 1 ? strides[t->rank - 2] : 0;
}

static void take_run(walk_t *w) {
  const tt__tile_t *t = w->tile;
  uint32_t last = t->rank - 1;
  w->n = t->extents[last] - w->index[last];
  w->rows = 1;
  if (w->n > w->left) w->n = w->left;
  if (last == 0 || w->n < t->extents[last]) return;
  w->rows = t->extents[last - 1] - w->index[last - 1];
  if (w->rows > w->left / w->n) w->rows = w->left / w->n;
}

// n points from the cursor on.
static walk_t walk_from(const tt__exec_t *x, const int64_t *strides, int64_t n) {
  walk_t w = {.tile = x->tile, .strides = strides, .left = n};
  memcpy(w.index, x->index, sizeof *w.index * x->tile->rank);
  w.where = place(x->tile, w.index, strides);
  take_run(&w);
  return w;
}

// The next run begins at a row's start.
static void walk_on(walk_t *w) {
  const tt__tile_t *t = w->tile;
  w->left -= w->rows * w->n;
  if (w->left == 0) return;
  uint32_t d = t->rank - 1;
  w->where -= w->index[d] * w->strides[d];
  w->index[d] = 0;
  int64_t steps = w->rows;
  while (d-- > 0) {
    w->where += steps * w->strides[d];
    w->index[d] += steps;
    if (w->index[d] < t->extents[d] || d == 0) break;
    w->where -= t->extents[d] * w->strides[d];
    w->index[d] = 0;
    steps = 1;
  }
  take_run(w);
}

// `rows` rows of n points along the last dimension, row_stride apart, one after another into `to`.
static void load_rows(const tt__exec_t *x, const tt__leaf_t *leaf, const char *base, int64_t where,
                      int64_t rows, int64_t n, int64_t row_stride, char *to) {
  int64_t stride = leaf->strides[x->tile->rank - 1];
  if (leaf->kind == TT__LEAF_MEMORY) {
    const char *from = base + where * ((int64_t)1 << leaf->size_log2);
    x->kernels->rows[leaf->size_log2](rows, n, to, n, from, row_stride, stride);
    return;
  }
  for (int64_t r = 0; r < rows; r++)
    x->kernels->count(n, (int64_t *)(void *)to + r * n, leaf->offset + where + r * row_stride,
                      stride);
}

// Fills the leaf's register with n points from the cursor on; where they lie together in memory,
// or are one element, the register is that memory.
static void load_leaf(tt__exec_t *x, const tt__leaf_t *leaf, uint32_t i, int64_t n) {
  const tt__tile_t *t = x->tile;
  int64_t where = place(t, x->index, leaf->strides);
  char *slot = x->regs[leaf->reg];
  bool together = t->row && leaf->strides[t->rank - 1] == 1 && t->slots[leaf->reg] >= 0;
  if ((together || leaf->row) && leaf->kind == TT__LEAF_MEMORY) {
    x->regs[leaf->reg] = x->leaf_base[i] + where * ((int64_t)1 << leaf->size_log2);
    return;
  }
  walk_t w = walk_from(x, leaf->strides, leaf->row ? 1 : n);
  for (char *to = slot; w.left > 0; walk_on(&w)) {
    load_rows(x, leaf, x->leaf_base[i], w.where, w.rows, w.n, above(t, leaf->strides), to);
    to += (w.rows * w.n) << leaf->size_log2;
  }
}

// `rows` rows of n points, one after another in `from`, to rows row_stride apart.
static void store_rows(const tt__exec_t *x, const tt__tile_store_t *s, char *to, const char *from,
                       int64_t rows, int64_t n, int64_t row_stride) {
  int64_t size = (int64_t)1 << s->size_log2, stride = s->strides[x->tile->rank - 1];
  tt__rows_fn_t copy = x->kernels->rows[s->size_log2];
  if (stride == 1) {
    copy(rows, n, to, row_stride, from, s->splat ? 0 : n, !s->splat);
    return;
  }
  for (int64_t r = 0; r < rows; r++) {
    char *row = to + r * row_stride * size;
    if (s->splat)
      copy(n, 1, row, stride, from, 0, 0);
    else
      x->kernels->store[s->size_log2](n, row, from + r * n * size, stride);
  }
}

// n points of a register, from `at`, where the cursor is, to their places.
static void store_points(tt__exec_t *x, const tt__tile_store_t *s, uint32_t i, int64_t at,
                         int64_t n) {
  const tt__tile_t *t = x->tile;
  const char *from = x->regs[s->reg];
  char *base = x->store_base[i];
  if (s->flat) {
    store_rows(x, s, base + (at << s->size_log2), from, 1, n, 0);
    return;
  }
  for (walk_t w = walk_from(x, s->strides, n); w.left > 0; walk_on(&w)) {
    store_rows(x, s, base + w.where * ((int64_t)1 << s->size_log2), from, w.rows, w.n,
               above(t, s->strides));
    if (!s->splat) from += (w.rows * w.n) << s->size_log2;
  }
}

// The reference executor's function takes typed arrays and the same bits for scalars.
static inline void run_instr(tt__exec_t *x, const tt__instr_t *in, int64_t n) {
  char **r = x->regs;
  if (in->fn) {
    in->fn(n, r[in->dst], r[in->a], r[in->b], r[in->c], in->mode);
  } else {
    const void *const operands[3] = {r[in->a], r[in->b], r[in->c]};
    tt__ref_lane_run(in->lane, n, operands, in->mode, r[in->dst]);
  }
}

// Registers without a slot get the first bytes for the time being; tt__tile_at points them to
// memory.
void tt__tile_begin(tt__exec_t *x, const tt__tile_t *t, char *const *in, char *const *out,
                    char *slots) {
  x->tile = t;
  x->kernels = tt__kernels();
  x->at = -1;
  for (uint32_t r = 0; r < t->reg_count; r++)
    x->regs[r] = slots + (t->slots[r] < 0 ? 0 : t->slots[r]);
  for (uint32_t i = 0; i < t->leaf_count; i++) {
    const tt__leaf_t *leaf = &t->leaves[i];
    if (leaf->kind == TT__LEAF_SPLAT) {
      x->regs[leaf->reg] = (char *)(uintptr_t)leaf->value;
    } else if (leaf->kind == TT__LEAF_MEMORY) {
      x->leaf_base[i] = in[leaf->read] + leaf->offset * ((int64_t)1 << leaf->size_log2);
      if (leaf->splat) x->regs[leaf->reg] = x->leaf_base[i];
    }
  }
  for (uint32_t i = 0; i < t->store_count; i++)
    x->store_base[i] =
        out[t->stores[i].write] + t->stores[i].offset * ((int64_t)1 << t->stores[i].size_log2);
  for (uint32_t i = 0; i < t->once_count; i++) run_instr(x, &t->instrs[i], 1);
}

// Direct stores first: their registers are the output's memory, which instructions then fill.
void tt__tile_at(tt__exec_t *x, int64_t at, int64_t n) {
  const tt__tile_t *t = x->tile;
  if (t->cursor) move_to(x, at);
  for (uint32_t i = 0; i < t->store_count; i++) {
    const tt__tile_store_t *s = &t->stores[i];
    if (s->direct) x->regs[s->reg] = x->store_base[i] + (at << s->size_log2);
  }
  for (uint32_t i = 0; i < t->leaf_count; i++) {
    const tt__leaf_t *leaf = &t->leaves[i];
    if (leaf->splat) continue;
    if (leaf->flat)
      x->regs[leaf->reg] = x->leaf_base[i] + (at << leaf->size_log2);
    else
      load_leaf(x, leaf, i, n);
  }
  uint32_t next = t->once_count, points = next + t->row_count;
  for (; next < points; next++) run_instr(x, &t->instrs[next], 1);
  for (; next < t->instr_count; next++) run_instr(x, &t->instrs[next], n);
  for (uint32_t i = 0; i < t->store_count; i++)
    if (!t->stores[i].direct) store_points(x, &t->stores[i], i, at, n);
  if (t->cursor) move_on(x, n);
}

// --- blocks ------------------------------------------------------------------------------------

// A block in row-major order of the slot, [rows][columns].
static void load_block(tt__exec_t *x, const tt__leaf_t *leaf, uint32_t i, int64_t where,
                       int64_t rows, int64_t columns) {
  const tt__tile_t *t = x->tile;
  char *slot = x->regs[leaf->reg];
  int64_t size = (int64_t)1 << leaf->size_log2;
  int64_t down = leaf->strides[t->block_dim], right = leaf->strides[t->rank - 1];
  if (leaf->kind == TT__LEAF_MEMORY && down == 1 && right != 1) {
    // Columns lie together in memory: read those, write with a stride inside the slot.
    const char *from = x->leaf_base[i] + where * size;
    for (int64_t c = 0; c < columns; c++)
      x->kernels->store[leaf->size_log2](rows, slot + c * size, from + c * right * size, columns);
    return;
  }
  load_rows(x, leaf, x->leaf_base[i], where, rows, columns, down, slot);
}

static void store_block(tt__exec_t *x, const tt__tile_store_t *s, uint32_t i, const int64_t *index,
                        int64_t rows, int64_t columns) {
  const tt__tile_t *t = x->tile;
  char *to = x->store_base[i] + place(t, index, s->strides) * ((int64_t)1 << s->size_log2);
  store_rows(x, s, to, x->regs[s->reg], rows, columns, s->strides[t->block_dim]);
}

// Transposes read columns and write rows: a square block uses whole cache lines of both.
static void run_block(tt__exec_t *x, const int64_t *index, int64_t rows, int64_t columns) {
  const tt__tile_t *t = x->tile;
  for (uint32_t i = 0; i < t->leaf_count; i++) {
    const tt__leaf_t *leaf = &t->leaves[i];
    if (!leaf->splat) load_block(x, leaf, i, place(t, index, leaf->strides), rows, columns);
  }
  for (uint32_t i = t->once_count; i < t->instr_count; i++)
    run_instr(x, &t->instrs[i], rows * columns);
  for (uint32_t i = 0; i < t->store_count; i++)
    store_block(x, &t->stores[i], i, index, rows, columns);
}

// How many points of dimension d one unit of work covers.
static int64_t unit(const tt__tile_t *t, uint32_t d) {
  return d == (uint32_t)t->block_dim || d == t->rank - 1 ? t->block : 1;
}

typedef struct job_s {
  const tt__tile_t *tile;
  char *const *in, *const *out;
} job_t;

static void run_blocks(void *context, int64_t begin, int64_t end) {
  const job_t *job = context;
  const tt__tile_t *t = job->tile;
  _Alignas(64) char slots[TT__TILE_SCRATCH];
  tt__exec_t x;
  tt__tile_begin(&x, t, job->in, job->out, slots);
  int64_t index[TT__TILE_DIMS], counts[TT__TILE_DIMS];
  for (uint32_t d = 0; d < t->rank; d++) counts[d] = (t->extents[d] + unit(t, d) - 1) / unit(t, d);
  for (int64_t at = begin; at < end; at++) {
    int64_t left = at, rows = 1, columns = 1;
    for (uint32_t d = t->rank; d-- > 0;) {
      index[d] = left % counts[d] * unit(t, d);
      left /= counts[d];
      int64_t room = t->extents[d] - index[d];
      if (d == (uint32_t)t->block_dim) rows = room < t->block ? room : t->block;
      if (d == t->rank - 1) columns = room < t->block ? room : t->block;
    }
    run_block(&x, index, rows, columns);
  }
}

// A tile ends at the latest where its row does.
void tt__tile_range(const tt__tile_t *t, char *const *in, char *const *out, int64_t from,
                    int64_t to) {
  _Alignas(64) char slots[TT__TILE_SCRATCH];
  tt__exec_t x;
  tt__tile_begin(&x, t, in, out, slots);
  for (int64_t at = from; at < to;) {
    int64_t n = to - at < t->step ? to - at : t->step;
    if (t->row && n > t->row - at % t->row) n = t->row - at % t->row;
    tt__tile_at(&x, at, n);
    at += n;
  }
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
  const job_t *job = context;
  const tt__tile_t *t = job->tile;
  int64_t last = end * t->step < t->total ? end * t->step : t->total;
  tt__tile_range(t, job->in, job->out, begin * t->step, last);
}

// Units of work are tiles, or blocks where the program is blocked.
void tt__tile_run(const tt__tile_t *t, const tt__run_t *run, char *const *in, char *const *out) {
  if (t->total == 0) return;
  job_t job = {t, in, out};
  uint64_t cost = (uint64_t)t->total * t->point_cost / 1000;
  if (t->block_dim < 0) {
    if (t->total <= t->step && !t->row)
      run_tiles(&job, 0, 1);
    else
      tt__plan_parallel(run, (t->total + t->step - 1) / t->step, cost, run_tiles, &job);
    return;
  }
  int64_t units = 1;
  for (uint32_t d = 0; d < t->rank; d++) units *= (t->extents[d] + unit(t, d) - 1) / unit(t, d);
  tt__plan_parallel(run, units, cost, run_blocks, &job);
}
