// Concatenation, padding, and slices at run-time places: tile programs that write boxes of the
// result, producers computed on the way.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/element.h"
#include "softtpu/reference_internal.h"
#include "softtpu/tile.h"

// Operands of a concatenation, and base pointers that a run has on its stack.
enum { PARTS = 64, READS = 256 };

// One operand's way into the result: element i of the operand goes to offset + sum i_k * strides_k.
typedef struct part_s {
  tt__tile_t *tile;
} part_t;

typedef struct move_s {
  uint32_t count;
  part_t *parts;
  size_t bytes;  // of the result
  uint32_t size_log2;
  uint32_t value_read;  // pad: the filler
  // dynamic slices: start k clamps to [0, limits[k]] and moves strides[k] elements
  uint32_t rank, first_start;
  tt_dtype_t start_type[TT__TILE_RANK];
  int64_t limits[TT__TILE_RANK], strides[TT__TILE_RANK];
} move_t;

static void load_reads(const tt__step_t *s, const tt__run_t *run, char **in) {
  for (uint32_t r = 0; r < s->read_count; r++) in[r] = tt__at(run, s->in[r]);
}

static tt_status_t run_concat(const tt__step_t *s, const tt__run_t *run) {
  const move_t *m = s->data;
  char *in[READS], *out = tt__at(run, s->out[0]);
  load_reads(s, run, in);
  for (uint32_t i = 0; i < m->count; i++) tt__tile_run(m->parts[i].tile, run, in, &out);
  return TT_OK_STATUS;
}

static tt_status_t run_pad(const tt__step_t *s, const tt__run_t *run) {
  const move_t *m = s->data;
  char *in[READS], *out = tt__at(run, s->out[0]);
  load_reads(s, run, in);
  tt__load(tt__kernels(), m->size_log2, (int64_t)(m->bytes >> m->size_log2), out, in[m->value_read],
           0);
  if (m->count) tt__tile_run(m->parts[0].tile, run, in, &out);
  return TT_OK_STATUS;
}

// In bytes; starts are clamped as StableHLO has it, so that the box lies inside.
static int64_t start_offset(const move_t *m, char *const *in) {
  int64_t offset = 0;
  for (uint32_t k = 0; k < m->rank; k++) {
    int64_t start = tt_element_index(m->start_type[k], in[m->first_start + k], 0);
    start = start < 0 ? 0 : start > m->limits[k] ? m->limits[k] : start;
    offset += start * m->strides[k];
  }
  return offset * ((int64_t)1 << m->size_log2);
}

static tt_status_t run_dynamic_slice(const tt__step_t *s, const tt__run_t *run) {
  const move_t *m = s->data;
  char *in[READS], *out = tt__at(run, s->out[0]);
  load_reads(s, run, in);
  char *from = in[0] + start_offset(m, in);
  tt__tile_run(m->parts[0].tile, run, &from, &out);
  return TT_OK_STATUS;
}

static tt_status_t run_dynamic_update(const tt__step_t *s, const tt__run_t *run) {
  const move_t *m = s->data;
  char *in[READS], *out = tt__at(run, s->out[0]);
  load_reads(s, run, in);
  int64_t offset = start_offset(m, in);
  if (out != in[0]) memcpy(out, in[0], m->bytes);
  out += offset;
  if (m->count) tt__tile_run(m->parts[0].tile, run, in, &out);
  return TT_OK_STATUS;
}

// --- planning ----------------------------------------------------------------------------------

// The value's number among the step's reads; *ok false: no memory.
static uint32_t add_read(tt__tile_spec_t *s, tt_value_t v, bool *ok) {
  for (uint32_t i = 0; i < s->read_count; i++)
    if (s->reads[i] == v) return i;
  *ok &= tt_grow((void **)&s->reads, &s->read_capacity, s->read_count + 1, sizeof *s->reads);
  if (*ok) s->reads[s->read_count] = v;
  return s->read_count++;
}

// A program over points x of a box of dims `extents`: value element origin[k] + x[k] goes to
// offset + sum x[k] * strides[k].
static tt_status_t plan_box(tt__planner_t *p, tt_value_t v, const int64_t *extents,
                            const int64_t *origin, int64_t offset, const int64_t *strides,
                            tt__tile_spec_t *reads, tt__tile_t **out_tile) {
  const tt_type_t *x = tt_graph_type(p->graph, v);
  tt__tile_root_t root = {.value = v, .offset = offset};
  tt__tile_spec_t spec = *reads;
  spec.roots = &root;
  spec.root_count = 1;
  spec.rank = 0;
  root.view.rank = x->rank;
  for (uint32_t k = 0; k < x->rank; k++) {
    root.view.offset[k] = origin ? origin[k] : 0;
    if (extents[k] == 1) continue;
    root.view.coef[k][spec.rank] = 1;
    root.strides[spec.rank] = strides[k];
    spec.extents[spec.rank++] = extents[k];
  }
  if (spec.rank == 0) spec.extents[spec.rank++] = 1;
  tt_status_t status = tt__plan_tile(p, &spec, v, out_tile);
  reads->reads = spec.reads;
  reads->read_count = spec.read_count;
  reads->read_capacity = spec.read_capacity;
  if (!status && spec.read_count > READS - TT__TILE_RANK) {
    p->restart = true;
    if (p->blocker == TT_NO_VALUE) p->blocker = v;
  }
  return status;
}

static tt_status_t plan_concat(tt__planner_t *p, const tt_node_t *n, move_t *m,
                               tt__tile_spec_t *reads) {
  int64_t strides[TT__TILE_RANK], at = 0;
  int64_t dim = tt_node_int(n, TT_ATTR_DIMENSION, 0);
  tt__ref_strides(tt_graph_type(p->graph, n->first_result), strides);
  for (uint32_t i = 0; i < n->operand_count && !p->restart; i++) {
    const tt_type_t *x = tt_graph_type(p->graph, n->operands[i]);
    if (tt_type_elements(x) > 0)
      TT_RETURN_IF_ERROR(plan_box(p, n->operands[i], x->dims, NULL, at * strides[dim], strides,
                                  reads, &m->parts[m->count++].tile));
    at += x->dims[dim];
  }
  return TT_OK_STATUS;
}

// Negative padding cuts the operand: along each dimension elements [first, last) are seen.
static tt_status_t plan_pad(tt__planner_t *p, const tt_node_t *n, move_t *m,
                            tt__tile_spec_t *reads) {
  const tt_type_t *x = tt_graph_type(p->graph, n->operands[0]);
  const tt_type_t *r = tt_graph_type(p->graph, n->first_result);
  uint32_t count;
  const int64_t *low = tt_node_ints(n, TT_ATTR_EDGE_PADDING_LOW, &count);
  const int64_t *interior = tt_node_ints(n, TT_ATTR_INTERIOR_PADDING, &count);
  int64_t strides[TT__TILE_RANK], extents[TT__TILE_RANK], origin[TT__TILE_RANK], offset = 0;
  tt__ref_strides(r, strides);
  bool ok = true, empty = false;
  m->value_read = add_read(reads, tt__plan_root(p, n->operands[1]), &ok);
  if (!ok) return tt__plan_no_memory();
  for (uint32_t k = 0; k < x->rank; k++) {
    int64_t by = (interior ? interior[k] : 0) + 1;
    int64_t first = low[k] < 0 ? (-low[k] + by - 1) / by : 0;
    int64_t room = r->dims[k] - 1 - low[k];
    int64_t last = room < 0 ? 0 : room / by + 1;
    if (last > x->dims[k]) last = x->dims[k];
    origin[k] = first;
    extents[k] = last - first;
    empty |= extents[k] <= 0;
    offset += (low[k] + first * by) * strides[k];
    strides[k] *= by;
  }
  if (empty) return TT_OK_STATUS;
  return plan_box(p, n->operands[0], extents, origin, offset, strides, reads,
                  &m->parts[m->count++].tile);
}

// Start indices are read as they are when the step runs; they follow the other reads.
static tt_status_t add_starts(tt__planner_t *p, const tt_node_t *n, uint32_t first, move_t *m,
                              const tt_type_t *whole, const tt_type_t *part,
                              tt__tile_spec_t *reads) {
  tt__ref_strides(whole, m->strides);
  m->rank = whole->rank;
  m->first_start = reads->read_count;
  if (!tt_grow((void **)&reads->reads, &reads->read_capacity, reads->read_count + m->rank,
               sizeof *reads->reads))
    return tt__plan_no_memory();
  for (uint32_t k = 0; k < m->rank; k++) {
    m->start_type[k] = tt_graph_type(p->graph, n->operands[first + k])->dtype;
    m->limits[k] = whole->dims[k] - part->dims[k];
    reads->reads[reads->read_count++] = tt__plan_root(p, n->operands[first + k]);
  }
  return TT_OK_STATUS;
}

static tt_status_t plan_dynamic(tt__planner_t *p, const tt_node_t *n, move_t *m,
                                tt__tile_spec_t *reads) {
  bool update = n->op == TT_OP_DYNAMIC_UPDATE_SLICE, ok = true;
  const tt_type_t *whole = tt_graph_type(p->graph, n->operands[0]);
  tt_value_t part = update ? n->operands[1] : n->first_result;
  const tt_type_t *box = tt_graph_type(p->graph, part);
  int64_t strides[TT__TILE_RANK];
  add_read(reads, tt__plan_root(p, n->operands[0]), &ok);
  if (!ok) return tt__plan_no_memory();
  tt__ref_strides(update ? whole : box, strides);
  if (tt_type_elements(box) > 0 || !update)
    TT_RETURN_IF_ERROR(plan_box(p, update ? part : n->operands[0], box->dims, NULL, 0, strides,
                                reads, &m->parts[m->count++].tile));
  return add_starts(p, n, update ? 2 : 1, m, whole, box, reads);
}

// An update may go into the operand's memory unless it is computed from it.
static bool reads_first(const move_t *m) {
  for (uint32_t i = 0; i < m->count; i++)
    for (uint32_t k = 0; k < m->parts[i].tile->leaf_count; k++) {
      const tt__leaf_t *l = &m->parts[i].tile->leaves[k];
      if (l->kind == TT__LEAF_MEMORY && l->read == 0) return true;
    }
  return false;
}

static bool fits(const tt__planner_t *p, const tt_node_t *n) {
  if (n->op != TT_OP_CONCATENATE && n->op != TT_OP_PAD && n->op != TT_OP_DYNAMIC_SLICE &&
      n->op != TT_OP_DYNAMIC_UPDATE_SLICE)
    return false;
  if (n->op == TT_OP_CONCATENATE && n->operand_count > PARTS) return false;
  tt__view_t view;
  uint32_t rank;
  int64_t extents[TT__TILE_DIMS];
  return tt__tile_identity(tt_graph_type(p->graph, n->operands[0]), &rank, extents, &view) &&
         tt__tile_identity(tt_graph_type(p->graph, n->first_result), &rank, extents, &view);
}

static tt_status_t finish(tt__planner_t *p, const tt_node_t *n, move_t *m,
                          const tt__tile_spec_t *reads, tt__step_t **out_step) {
  tt__step_fn_t run = n->op == TT_OP_CONCATENATE     ? run_concat
                      : n->op == TT_OP_PAD           ? run_pad
                      : n->op == TT_OP_DYNAMIC_SLICE ? run_dynamic_slice
                                                     : run_dynamic_update;
  TT_RETURN_IF_ERROR(
      tt__plan_data_step(p, run, "move", n, reads->reads, reads->read_count, m, out_step));
  tt__step_t *s = *out_step;
  for (uint32_t i = 0; i < m->count; i++)
    s->cost += (uint64_t)m->parts[i].tile->total * m->parts[i].tile->point_cost / 1000;
  if (n->op == TT_OP_DYNAMIC_UPDATE_SLICE) s->inplace[0] = !reads_first(m);
  return TT_OK_STATUS;
}

tt_status_t tt__plan_move_step(tt__planner_t *p, const tt_node_t *n, tt__step_t **out_step) {
  if (!fits(p, n)) return TT_OK_STATUS;
  move_t *m = tt_arena_zeroed(p->arena, sizeof *m);
  part_t *parts = tt_arena_zeroed(p->arena, sizeof *parts * (n->operand_count + 1u));
  if (!m || !parts) return tt__plan_no_memory();
  const tt_type_t *r = tt_graph_type(p->graph, n->first_result);
  m->parts = parts;
  m->bytes = tt_type_bytes(r);
  m->size_log2 = tt__size_log2(tt_dtype_size(r->dtype));
  tt__tile_spec_t reads = {.rank = 0};
  tt_status_t status = n->op == TT_OP_CONCATENATE ? plan_concat(p, n, m, &reads)
                       : n->op == TT_OP_PAD       ? plan_pad(p, n, m, &reads)
                                                  : plan_dynamic(p, n, m, &reads);
  if (!status && !p->restart) status = finish(p, n, m, &reads, out_step);
  tt_free(reads.reads);
  return status;
}

// Operands that the step's tile programs compute. A dynamic slice's is not: its place is not known.
bool tt__plan_move_soft(const tt__planner_t *p, const tt_node_t *n, uint32_t i) {
  if (!fits(p, n)) return false;
  return n->op == TT_OP_CONCATENATE || (n->op == TT_OP_PAD && i == 0) ||
         (n->op == TT_OP_DYNAMIC_UPDATE_SLICE && i == 1);
}
