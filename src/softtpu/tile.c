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

// Steps to the start of the next row of the last dimension.
static void next_row(const tt__tile_t *t, const int64_t *strides, int64_t *index, int64_t *where) {
  uint32_t d = t->rank - 1;
  *where -= index[d] * strides[d];
  index[d] = 0;
  while (d-- > 0) {
    *where += strides[d];
    if (++index[d] < t->extents[d] || d == 0) return;
    *where -= t->extents[d] * strides[d];
    index[d] = 0;
  }
}

// n points along the last dimension, by the cheapest kernel for the stride.
static void load_run(const tt__exec_t *x, const tt__leaf_t *leaf, const char *base, int64_t where,
                     int64_t n, char *to) {
  int64_t stride = leaf->strides[x->tile->rank - 1];
  if (leaf->kind == TT__LEAF_IOTA) {
    x->kernels->count(n, (int64_t *)(void *)to, leaf->offset + where, stride);
    return;
  }
  const char *from = base + where * ((int64_t)1 << leaf->size_log2);
  if (stride == 1) {
    memcpy(to, from, (size_t)n << leaf->size_log2);
  } else if (stride == 0) {
    x->kernels->fill[leaf->size_log2](n, to, from);
  } else {
    x->kernels->load[leaf->size_log2](n, to, from, stride);
  }
}

// Fills the leaf's register with n points from the cursor on; where they lie together in memory,
// or are one element, the register is that memory.
static void load_leaf(tt__exec_t *x, const tt__leaf_t *leaf, uint32_t i, int64_t n) {
  const tt__tile_t *t = x->tile;
  int64_t where = place(t, x->index, leaf->strides), last = t->extents[t->rank - 1];
  char *slot = x->regs[leaf->reg];
  bool together = t->row && leaf->strides[t->rank - 1] == 1 && t->slots[leaf->reg] >= 0;
  if ((together || leaf->row) && leaf->kind == TT__LEAF_MEMORY) {
    x->regs[leaf->reg] = x->leaf_base[i] + where * ((int64_t)1 << leaf->size_log2);
    return;
  }
  if (leaf->row) n = 1;
  int64_t index[TT__TILE_DIMS];
  memcpy(index, x->index, sizeof *index * t->rank);
  for (char *to = slot; n > 0;) {
    int64_t run = last - index[t->rank - 1];
    if (run > n) run = n;
    load_run(x, leaf, x->leaf_base[i], where, run, to);
    to += run << leaf->size_log2;
    n -= run;
    if (n > 0) next_row(t, leaf->strides, index, &where);
  }
}

static void store_run(const tt__exec_t *x, const tt__tile_store_t *s, char *to, const char *from,
                      int64_t n, int64_t stride) {
  if (stride == 1) {
    memcpy(to, from, (size_t)n << s->size_log2);
  } else {
    x->kernels->store[s->size_log2](n, to, from, stride);
  }
}

// n points of a register, from `at`, where the cursor is, to their places.
static void store_points(tt__exec_t *x, const tt__tile_store_t *s, uint32_t i, int64_t at,
                         int64_t n) {
  const tt__tile_t *t = x->tile;
  const char *from = x->regs[s->reg];
  char *base = x->store_base[i];
  if (s->flat) {
    char *to = base + (at << s->size_log2);
    if (s->splat)
      x->kernels->fill[s->size_log2](n, to, from);
    else
      memcpy(to, from, (size_t)n << s->size_log2);
    return;
  }
  int64_t index[TT__TILE_DIMS];
  memcpy(index, x->index, sizeof *index * t->rank);
  int64_t where = place(t, index, s->strides), last = t->extents[t->rank - 1];
  while (n > 0) {
    int64_t run = last - index[t->rank - 1];
    if (run > n) run = n;
    char *to = base + where * ((int64_t)1 << s->size_log2);
    if (s->splat) {
      for (int64_t k = 0; k < run; k++)
        memcpy(to + (k * s->strides[t->rank - 1]) * ((int64_t)1 << s->size_log2), from,
               (size_t)1 << s->size_log2);
    } else {
      store_run(x, s, to, from, run, s->strides[t->rank - 1]);
      from += run << s->size_log2;
    }
    n -= run;
    if (n > 0) next_row(t, s->strides, index, &where);
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
  for (int64_t r = 0; r < rows; r++)
    load_run(x, leaf, x->leaf_base[i], where + r * down, columns, slot + r * columns * size);
}

static void store_block(tt__exec_t *x, const tt__tile_store_t *s, uint32_t i, const int64_t *index,
                        int64_t rows, int64_t columns) {
  const tt__tile_t *t = x->tile;
  int64_t size = (int64_t)1 << s->size_log2;
  int64_t down = s->strides[t->block_dim], right = s->strides[t->rank - 1];
  char *to = x->store_base[i] + place(t, index, s->strides) * size;
  const char *from = x->regs[s->reg];
  for (int64_t r = 0; r < rows; r++)
    store_run(x, s, to + r * down * size, from + r * columns * size, columns, right);
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
