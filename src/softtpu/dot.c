// dot_general as a batched matrix product. Operands are seen through transposes, broadcasts and
// reshapes as strides; what strides cannot say is packed once, elementwise producers included.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/dot_matmul.h"
#include "softtpu/tile.h"

// One operand: strides over memory, or a tile program that packs it densely.
typedef struct side_s {
  tt__tile_t *pack;  // NULL: plain
  uint32_t read;
  int64_t offset, batch_stride, row_stride, col_stride;
  size_t scratch;  // where the packed operand lies
} side_t;

typedef struct dot_s {
  side_t a, b;
  tt_dtype_t in, out;
  int64_t batch, m, n, k;
} dot_t;

static tt_matrix_t side_matrix(const tt__step_t *s, const tt__run_t *run, const side_t *side,
                               const dot_t *d, int64_t rows, int64_t cols, char *const *in) {
  tt_matrix_t m = {.batch = d->batch,
                   .rows = rows,
                   .cols = cols,
                   .batch_stride = side->batch_stride,
                   .row_stride = side->row_stride,
                   .col_stride = side->col_stride};
  if (side->pack) {
    char *to = tt__at(run, s->scratch) + side->scratch;
    tt__tile_run(side->pack, run, in, &to);
    m.data = to;
  } else {
    m.data = in[side->read] + side->offset * (int64_t)tt_dtype_size(d->in);
  }
  return m;
}

static tt_status_t run_dot(const tt__step_t *s, const tt__run_t *run) {
  const dot_t *d = s->data;
  char *in[TT__TILE_LEAVES * 2];
  for (uint32_t r = 0; r < s->read_count; r++) in[r] = tt__at(run, s->in[r]);
  tt_matrix_t a = side_matrix(s, run, &d->a, d, d->m, d->k, in);
  tt_matrix_t b = side_matrix(s, run, &d->b, d, d->k, d->n, in);
  tt_matrix_t out = {tt__at(run, s->out[0]), d->batch, d->m, d->n, d->m * d->n, d->n, 1};
  return tt__dot_matmul(run, d->in, d->out, &a, &b, &out);
}

// --- planning ----------------------------------------------------------------------------------

// Dimensions that play one part: batch, free or contracting, in the order in which they count.
typedef struct group_s {
  int64_t dims[TT__TILE_RANK];
  uint32_t count;
} group_t;

static group_t group_of(const int64_t *dims, uint32_t count) {
  group_t g = {.count = count};
  if (count) memcpy(g.dims, dims, sizeof *dims * count);
  return g;
}

// What is left, ascending.
static group_t free_dims(const tt_type_t *x, const group_t *batch, const group_t *contract) {
  group_t g = {.count = 0};
  for (int64_t k = 0; k < x->rank; k++)
    if (!tt_ints_has((tt_ints_t){batch->dims, batch->count}, k) &&
        !tt_ints_has((tt_ints_t){contract->dims, contract->count}, k))
      g.dims[g.count++] = k;
  return g;
}

static int64_t extent(const tt_type_t *x, const group_t *g) {
  int64_t n = 1;
  for (uint32_t i = 0; i < g->count; i++) n *= x->dims[g->dims[i]];
  return n;
}

// One stride over a group's base dimensions [first, last), if there is one: each dimension
// continues the one inside it.
static bool merged_stride(const tt__tile_spec_t *s, uint32_t first, uint32_t last, int64_t *out) {
  *out = 0;
  int64_t inner = 1;
  bool any = false;
  for (uint32_t d = last; d-- > first;) {
    if (s->extents[d] == 1) continue;
    if (!any) *out = s->plain_strides[d];
    if (any && s->plain_strides[d] != *out * inner) return false;
    any = true;
    inner *= s->extents[d];
  }
  return true;
}

// Appends a group's dimensions to the space and the view.
static void add_group(const tt_type_t *x, const group_t *g, tt__tile_spec_t *s,
                      tt__tile_root_t *root) {
  for (uint32_t i = 0; i < g->count; i++) {
    if (x->dims[g->dims[i]] == 1) continue;
    root->view.coef[g->dims[i]][s->rank] = 1;
    s->extents[s->rank++] = x->dims[g->dims[i]];
  }
}

// A program that writes the operand densely, its last group (flipped: the one before) innermost.
static tt_status_t build_pack(tt__planner_t *p, tt_value_t v, const group_t groups[3], bool flipped,
                              tt__tile_spec_t *spec, tt__tile_t **out) {
  const tt_type_t *x = tt_graph_type(p->graph, v);
  tt__tile_root_t root = {.value = v};
  root.view.rank = x->rank;
  spec->rank = 0;
  spec->roots = &root;
  add_group(x, &groups[0], spec, &root);
  add_group(x, &groups[flipped ? 2 : 1], spec, &root);
  add_group(x, &groups[flipped ? 1 : 2], spec, &root);
  if (spec->rank == 0) spec->extents[spec->rank++] = 1;
  int64_t stride = 1;
  for (uint32_t d = spec->rank; d-- > 0; stride *= spec->extents[d]) root.strides[d] = stride;
  return tt__plan_tile(p, spec, v, out);
}

// Products read either way: the operand keeps the order of its memory where that spares
// transposing it.
static tt_status_t pack_side(tt__planner_t *p, tt_value_t v, const group_t groups[3],
                             tt__tile_spec_t *spec, side_t *side) {
  const tt_type_t *x = tt_graph_type(p->graph, v);
  int64_t rows = extent(x, &groups[1]), cols = extent(x, &groups[2]);
  side->batch_stride = rows * cols;
  side->row_stride = cols;
  side->col_stride = 1;
  TT_RETURN_IF_ERROR(build_pack(p, v, groups, false, spec, &side->pack));
  if (p->restart || side->pack->block_dim < 0) return TT_OK_STATUS;
  tt__tile_t *flipped;
  TT_RETURN_IF_ERROR(build_pack(p, v, groups, true, spec, &flipped));
  if (p->restart || flipped->block_dim >= 0) return TT_OK_STATUS;
  side->pack = flipped;
  side->row_stride = 1;
  side->col_stride = rows;
  return TT_OK_STATUS;
}

// Built into a register first, only to learn whether the operand is memory with three strides.
static tt_status_t plan_side(tt__planner_t *p, tt_value_t v, const group_t groups[3],
                             tt__tile_spec_t *reads, side_t *side, size_t *scratch) {
  const tt_type_t *x = tt_graph_type(p->graph, v);
  uint16_t reg;
  bool splat;
  tt__tile_root_t root = {.value = v, .into_register = true};
  root.view.rank = x->rank;
  tt__tile_spec_t spec = {.roots = &root,
                          .root_count = 1,
                          .out_regs = &reg,
                          .out_splats = &splat,
                          .reads = reads->reads,
                          .read_count = reads->read_count,
                          .read_capacity = reads->read_capacity};
  uint32_t ends[4] = {0};
  for (int g = 0; g < 3; g++) {
    add_group(x, &groups[g], &spec, &root);
    ends[g + 1] = spec.rank;
  }
  if (spec.rank == 0) spec.extents[spec.rank++] = 1;
  tt__tile_t *tile;
  tt_status_t status = tt__plan_tile(p, &spec, v, &tile);
  bool plain = !status && !p->restart && spec.plain &&
               merged_stride(&spec, ends[0], ends[1], &side->batch_stride) &&
               merged_stride(&spec, ends[1], ends[2], &side->row_stride) &&
               merged_stride(&spec, ends[2], ends[3], &side->col_stride);
  if (plain) {
    side->read = spec.plain_read;
    side->offset = spec.plain_offset;
  } else if (!status && !p->restart) {
    status = pack_side(p, v, groups, &spec, side);
    side->scratch = *scratch;
    *scratch += tt_align_up(tt_type_bytes(x), 64);
  }
  reads->reads = spec.reads;
  reads->read_count = spec.read_count;
  reads->read_capacity = spec.read_capacity;
  return status;
}

bool tt__dot_fits(const tt__planner_t *p, const tt_node_t *n) {
  if (n->op != TT_OP_DOT_GENERAL) return false;
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  const tt_type_t *y = tt_graph_type(p->graph, n->operands[1]);
  tt__view_t view;
  uint32_t rank;
  int64_t extents[TT__TILE_DIMS];
  return x->dtype == y->dtype &&
         tt__dot_types(x->dtype, tt_graph_type(p->graph, n->first_result)->dtype) &&
         tt__tile_identity(x, &rank, extents, &view) && tt__tile_identity(y, &rank, extents, &view);
}

static tt_status_t plan_sides(tt__planner_t *p, const tt_node_t *n, dot_t *d,
                              tt__tile_spec_t *reads, size_t *scratch) {
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  const tt_type_t *y = tt_graph_type(p->graph, n->operands[1]);
  uint32_t count;
  const int64_t *dims = tt_node_ints(n, TT_ATTR_LHS_BATCHING_DIMENSIONS, &count);
  group_t x_batch = group_of(dims, count);
  dims = tt_node_ints(n, TT_ATTR_RHS_BATCHING_DIMENSIONS, &count);
  group_t y_batch = group_of(dims, count);
  dims = tt_node_ints(n, TT_ATTR_LHS_CONTRACTING_DIMENSIONS, &count);
  group_t x_contract = group_of(dims, count);
  dims = tt_node_ints(n, TT_ATTR_RHS_CONTRACTING_DIMENSIONS, &count);
  group_t y_contract = group_of(dims, count);
  group_t rows = free_dims(x, &x_batch, &x_contract), cols = free_dims(y, &y_batch, &y_contract);
  d->in = x->dtype;
  d->out = tt_graph_type(p->graph, n->first_result)->dtype;
  d->batch = extent(x, &x_batch);
  d->m = extent(x, &rows);
  d->n = extent(y, &cols);
  d->k = extent(x, &x_contract);
  const group_t left[3] = {x_batch, rows, x_contract}, right[3] = {y_batch, y_contract, cols};
  TT_RETURN_IF_ERROR(plan_side(p, n->operands[0], left, reads, &d->a, scratch));
  if (p->restart) return TT_OK_STATUS;
  return plan_side(p, n->operands[1], right, reads, &d->b, scratch);
}

tt_status_t tt__dot_step(tt__planner_t *p, const tt_node_t *n, tt__step_t **out_step) {
  if (!tt__dot_fits(p, n)) return TT_OK_STATUS;
  dot_t *d = tt_arena_zeroed(p->arena, sizeof *d);
  if (!d) return tt__plan_no_memory();
  tt__tile_spec_t reads = {.rank = 0};
  size_t scratch = 0;
  tt_status_t status = plan_sides(p, n, d, &reads, &scratch);
  if (!status && !p->restart)
    status = tt__plan_data_step(p, run_dot, "dot", n, reads.reads, reads.read_count, d, out_step);
  if (!status && !p->restart) {
    (*out_step)->scratch_bytes = scratch;
    (*out_step)->cost = tt__dot_cost(d->in, d->batch, d->m, d->n, d->k);
  }
  tt_free(reads.reads);
  return status;
}
