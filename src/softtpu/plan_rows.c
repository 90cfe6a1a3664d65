// Chains of rows: softmax and normalisations are tile programs and reductions one after another
// over the same rows. Such steps run together, a band of rows at a time, so that what one writes
// the next finds in a cache, and threads meet once.
#include "softtpu/plan_rows.h"

#include <string.h>

#include "softtpu/tile.h"

// A chain is worth its bookkeeping from so many points and rows on; a band is what the first-level
// cache holds.
enum {
  LEAST_POINTS = 16384,
  LEAST_ROWS = 64,
  MOST_MEMBERS = 16,
  BAND_BYTES = 32768,  // of a band's widest member
};

static bool is_tile(const tt__step_t *s) { return strcmp(s->kind, "tile") == 0; }

// Points of the step's own tile program, or -1 where it cannot be a member at all.
static int64_t points_of(const tt__step_t *s) {
  if (is_tile(s)) {
    const tt__tile_t *t = s->data;
    return t->block_dim < 0 && s->scratch_bytes == 0 ? t->total : -1;
  }
  return tt__plan_reduce_rows(s) > 0 ? tt__plan_reduce_tile(s)->total : -1;
}

static const tt__tile_t *tile_of(const tt__step_t *s) {
  return is_tile(s) ? s->data : tt__plan_reduce_tile(s);
}

// Whether row r of the program sees nothing of a value of `elements` but its r-th part: the
// dimensions that make up the row's number step by one part, the others stay inside it.
static bool keeps_rows(const tt__tile_t *t, const tt__leaf_t *l, int64_t rows, int64_t elements) {
  if (elements % rows != 0 || l->splat) return false;
  if (l->flat) return l->offset == 0 && elements == t->total;
  uint32_t k = 0;
  int64_t outer = 1;
  while (k < t->rank && outer < rows) outer *= t->extents[k++];
  if (outer != rows) return false;
  int64_t part = elements / rows, dense = part, reach = l->offset;
  for (uint32_t d = k; d-- > 0; dense *= t->extents[d])
    if (t->extents[d] > 1 && l->strides[d] != dense) return false;
  for (uint32_t d = k; d < t->rank; d++) {
    if (l->strides[d] < 0) return false;
    reach += (t->extents[d] - 1) * l->strides[d];
  }
  return l->offset >= 0 && reach < part;
}

static int64_t elements_of(const tt__planner_t *p, tt_value_t v) {
  return tt_type_elements(tt_graph_type(p->graph, v));
}

// Whether every look at read r of the step keeps to its row.
static bool read_keeps_rows(const tt__planner_t *p, const tt__step_t *s, uint32_t r, int64_t rows) {
  const tt__tile_t *t = tile_of(s);
  bool seen = false;
  for (uint32_t i = 0; i < t->leaf_count; i++) {
    const tt__leaf_t *l = &t->leaves[i];
    if (l->kind != TT__LEAF_MEMORY || l->read != r) continue;
    if (!keeps_rows(t, l, rows, elements_of(p, s->reads[r]))) return false;
    seen = true;
  }
  return seen;
}

// A reduction writes one element a row, in order.
static bool stores_keep_rows(const tt__step_t *s) {
  if (!is_tile(s)) return true;
  const tt__tile_t *t = s->data;
  for (uint32_t i = 0; i < t->store_count; i++)
    if (!t->stores[i].flat || t->stores[i].offset != 0) return false;
  return true;
}

// Whether the step can join steps [first, first + count): what it reads of theirs it reads row by
// row. Reads of older values may go anywhere, since those are complete.
static bool can_join(const tt__planner_t *p, tt__step_t *const *first, uint32_t count,
                     const tt__step_t *s, int64_t rows) {
  int64_t points = points_of(s);
  if (points < rows || points % rows != 0 || !stores_keep_rows(s)) return false;
  if (!is_tile(s) && tt__plan_reduce_rows(s) != rows) return false;
  for (uint32_t r = 0; r < s->read_count; r++) {
    const tt__step_t *maker = p->values[tt__plan_root(p, s->reads[r])].step;
    bool inside = false;
    for (uint32_t i = 0; i < count; i++) inside |= maker == first[i];
    if (inside && !read_keeps_rows(p, s, r, rows)) return false;
  }
  return true;
}

// The chain that starts at `first`: how many steps, over how many rows.
static uint32_t measure(const tt__planner_t *p, tt__step_t *const *first, uint32_t limit,
                        int64_t *out_rows) {
  int64_t rows = 0;
  uint32_t reductions = 0;
  for (uint32_t i = 0; i < limit && i < MOST_MEMBERS && points_of(first[i]) > 0 && !rows; i++)
    if (!is_tile(first[i])) rows = tt__plan_reduce_rows(first[i]);
  if (rows < LEAST_ROWS) return 0;
  uint32_t count = 0;
  int64_t widest = 0;
  while (count < limit && count < MOST_MEMBERS && can_join(p, first, count, first[count], rows)) {
    reductions += !is_tile(first[count]);
    if (points_of(first[count]) > widest) widest = points_of(first[count]);
    count++;
  }
  *out_rows = rows;
  return reductions > 0 && count > 1 && widest >= LEAST_POINTS ? count : 0;
}

// Values that a member reads across rows must outlive the chain and not be overwritten in it: while
// one band is at its end, another has not begun.
void tt__plan_rows_find(tt__planner_t *p, const tt__seq_t *seq) {
  for (uint32_t i = 0; i < seq->count;) {
    int64_t rows;
    uint32_t n = measure(p, seq->steps + i, seq->count - i, &rows);
    if (n < 2) {
      i++;
      continue;
    }
    tt__step_t **s = seq->steps + i;
    for (uint32_t k = 0; k < n; k++) {
      s[k]->chain_rows = rows;
      s[k]->chain_begin = s[0]->time;
      s[k]->chain_end = s[n - 1]->time;
      for (uint32_t r = 0; r < s[k]->read_count; r++) {
        if (read_keeps_rows(p, s[k], r, rows)) continue;
        tt__value_t *x = &p->values[tt__plan_root(p, s[k]->reads[r])];
        x->spread = true;
        if (x->last < s[k]->chain_end) x->last = s[k]->chain_end;
      }
    }
    i += n;
  }
}

// Members in order over one band, then the next band; threads have bands of their own.
static void run_bands(void *context, int64_t begin, int64_t end) {
  const tt__rows_job_t *job = context;
  const tt__chain_t *c = job->step->data;
  for (int64_t b = begin; b < end; b++) {
    int64_t from = b * c->band, to = from + c->band < c->rows ? from + c->band : c->rows;
    for (uint32_t i = 0; i < c->count; i++) {
      const tt__step_t *s = c->members[i];
      if (!is_tile(s)) {
        tt__plan_reduce_band(s, job->run, from, to);
        continue;
      }
      const tt__tile_t *t = s->data;
      char *in[TT__TILE_LEAVES], *out[TT__TILE_STORES];
      for (uint32_t r = 0; r < s->read_count; r++) in[r] = tt__at(job->run, s->in[r]);
      for (uint32_t w = 0; w < s->write_count; w++) out[w] = tt__at(job->run, s->out[w]);
      tt__tile_range(t, in, out, from * (t->total / c->rows), to * (t->total / c->rows));
    }
  }
}

static tt_status_t run_chain(const tt__step_t *s, const tt__run_t *run) {
  const tt__chain_t *c = s->data;
  tt__rows_job_t job = {s, run};
  tt__plan_parallel(run, (c->rows + c->band - 1) / c->band, s->cost, run_bands, &job);
  return TT_OK_STATUS;
}

static tt_status_t make_chain(tt__planner_t *p, tt__step_t **members, uint32_t n,
                              tt__step_t **out_step) {
  TT_RETURN_IF_ERROR(tt__plan_step(p, run_chain, "rows", NULL, 0, 0, out_step));
  tt__chain_t *c = tt_arena_zeroed(p->arena, sizeof *c);
  if (c) c->members = tt_arena_copy(p->arena, members, sizeof *members * n);
  if (!c || !c->members) return tt__plan_no_memory();
  c->count = n;
  c->rows = members[0]->chain_rows;
  int64_t widest = 1;
  for (uint32_t i = 0; i < n; i++) {
    (*out_step)->cost += members[i]->cost;
    int64_t points = points_of(members[i]) / c->rows;
    if (points > widest) widest = points;
  }
  c->band = BAND_BYTES / (4 * widest);
  if (c->band < 1) c->band = 1;
  (*out_step)->data = c;
  return TT_OK_STATUS;
}

tt_status_t tt__plan_rows_join(tt__planner_t *p, tt__seq_t *seq) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < seq->count;) {
    uint32_t n = 1;
    while (seq->steps[i]->chain_rows && i + n < seq->count && seq->steps[i + n]->chain_rows &&
           seq->steps[i + n]->chain_begin == seq->steps[i]->chain_begin)
      n++;
    tt__step_t *step = seq->steps[i];
    if (n > 1) TT_RETURN_IF_ERROR(make_chain(p, seq->steps + i, n, &step));
    seq->steps[kept++] = step;
    i += n;
  }
  seq->count = kept;
  return TT_OK_STATUS;
}
