// Builds tile programs: walks from the wanted values back through elementwise nodes and views to
// values in memory, then assigns registers.
#include "softtpu/tile_build.h"

#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"
#include "softtpu/tile.h"

static bool same_view(const tt__view_t *a, const tt__view_t *b) {
  if (a->rank != b->rank) return false;
  if (memcmp(a->offset, b->offset, sizeof *a->offset * a->rank) != 0) return false;
  return memcmp(a->coef, b->coef, sizeof *a->coef * a->rank) == 0;
}

// Views are compared by address: one object a different view.
static const tt__view_t *intern(tt__build_t *b, const tt__view_t *view) {
  for (uint32_t i = 0; i < b->view_count; i++)
    if (same_view(b->views[i], view)) return b->views[i];
  if (b->view_count == VIEWS) {
    b->full = true;
    return NULL;
  }
  tt__view_t *copy = tt_arena_copy(&b->p->scratch, view, sizeof *view);
  if (!copy) b->failed = true;
  if (copy) b->views[b->view_count++] = copy;
  return copy;
}

// A root's view over base dimensions, over the parts they are split into.
static void expand(const tt__build_t *b, const tt__view_t *base, tt__view_t *out) {
  memset(out, 0, sizeof *out);
  out->rank = base->rank;
  for (uint32_t k = 0; k < base->rank; k++) {
    out->offset[k] = base->offset[k];
    for (uint32_t d = 0; d < b->rank; d++)
      out->coef[k][d] = base->coef[k][b->base_dim[d]] * b->scale[d];
  }
}

static entry_t *find(tt__build_t *b, tt_value_t v, const tt__view_t *view) {
  for (uint32_t i = b->heads[v % HEADS]; i != 0; i = b->entries[i - 1].next) {
    entry_t *e = &b->entries[i - 1];
    if (e->value == v && e->view == view) return e;
  }
  return NULL;
}

static entry_t *new_entry(tt__build_t *b, tt_value_t v, const tt__view_t *view) {
  if (b->entry_count == ENTRIES) {
    b->full = true;
    return NULL;
  }
  entry_t *e = &b->entries[b->entry_count++];
  *e = (entry_t){.value = v,
                 .view = view,
                 .dtype = tt_graph_type(b->p->graph, v)->dtype,
                 .wide = TT__NO_REG,
                 .stored = TT__NO_REG,
                 .raw = TT__NO_REG,
                 .next = b->heads[v % HEADS]};
  b->heads[v % HEADS] = b->entry_count;
  return e;
}

// Nothing more need be built: the result will not be used.
static bool stuck(const tt__build_t *b) {
  return b->failed || b->full || b->split_dim >= 0 || b->blocker != TT_NO_VALUE;
}

static entry_t *get(tt__build_t *b, tt_value_t v, const tt__view_t *view, bool root);

// A view op: the operand seen through it. NULL where something is in the way.
static entry_t *get_through(tt__build_t *b, const tt_node_t *n, const tt__view_t *view) {
  tt__view_t inner;
  if (!tt__tile_view(b, n, view, &inner)) {
    if (b->split_dim < 0) b->blocker = n->first_result;
    return NULL;
  }
  const tt__view_t *interned = intern(b, &inner);
  return interned ? get(b, n->operands[0], interned, false) : NULL;
}

static bool is_view(const tt_node_t *n) {
  return n->op == TT_OP_BROADCAST_IN_DIM || n->op == TT_OP_TRANSPOSE || n->op == TT_OP_SLICE ||
         n->op == TT_OP_REVERSE || n->op == TT_OP_RESHAPE;
}

// Computes the value here, operands first.
static entry_t *get_node(tt__build_t *b, const tt_node_t *n, tt_value_t v, const tt__view_t *view) {
  if (is_view(n)) return get_through(b, n, view);
  entry_t *operands[3] = {NULL};
  for (uint32_t i = 0; i < n->operand_count; i++) {
    const tt_type_t *type = tt_graph_type(b->p->graph, n->operands[i]);
    const tt__view_t *seen = view;
    if (type->rank != view->rank) {  // a scalar predicate or bound
      tt__view_t scalar;
      memset(&scalar, 0, sizeof scalar);
      seen = intern(b, &scalar);
    }
    operands[i] = seen ? get(b, n->operands[i], seen, false) : NULL;
    if (!operands[i]) return NULL;
  }
  entry_t *e = new_entry(b, v, view);
  if (!e) return NULL;
  if (n->op == TT_OP_CONSTANT) {
    const tt_attr_t *value = tt_node_attr(n, TT_ATTR_VALUE);
    e->stored = tt__tile_immediate(b, value->u.bytes, tt_dtype_size(e->dtype));
  } else if (n->op == TT_OP_IOTA) {
    tt__tile_counter(b, e, n, view);
  } else if (n->op == TT_OP_BITCAST_CONVERT) {
    e->stored = tt__tile_stored(b, operands[0]);
  } else {
    tt__tile_emit(b, e, n, operands);
  }
  return stuck(b) ? NULL : e;
}

// The value seen through the view, made now or before. `root`: even where it is a stored value.
static entry_t *get(tt__build_t *b, tt_value_t v, const tt__view_t *view, bool root) {
  if (stuck(b)) return NULL;
  entry_t *known = find(b, v, view);
  if (known) return known;
  const tt__value_t *info = &b->p->values[v];
  const tt_node_t *maker = b->p->graph->values[v].node;
  bool immediate = maker && maker->op == TT_OP_CONSTANT && tt__tile_fusible(b->p, maker);
  if (immediate) return get_node(b, maker, v, view);
  bool member = info->role == TT__ROLE_MEMBER && b->cluster != 0 && info->cluster == b->cluster;
  if (root || info->role == TT__ROLE_INLINE || (member && view == b->identity))
    return get_node(b, b->p->graph->values[v].node, v, view);
  if (info->role == TT__ROLE_MEMBER && !info->stored) {
    b->blocker = v;
    return NULL;
  }
  entry_t *e = new_entry(b, v, view);
  return e ? tt__tile_memory(b, e, v, view) : NULL;
}

// The root's strides are by base dimension; a part of a split one steps `scale` times as far.
static void add_store(tt__build_t *b, const tt__tile_root_t *root, uint16_t reg, tt_dtype_t dtype) {
  if (b->store_count == TT__TILE_STORES) {
    b->full = true;
    return;
  }
  tt__tile_store_t *s = &b->stores[b->store_count++];
  memset(s, 0, sizeof *s);
  s->reg = reg;
  s->size_log2 = (uint8_t)tt__size_log2(tt_dtype_size(dtype));
  s->write = root->write;
  s->offset = root->offset;
  s->splat = b->regs[reg].splat;
  for (uint32_t d = 0; d < b->rank; d++)
    if (b->extents[d] > 1) s->strides[d] = root->strides[b->base_dim[d]] * b->scale[d];
}

// Roots of a cluster all have the identity view, the first one's.
static void build_roots(tt__build_t *b) {
  tt__tile_spec_t *s = b->spec;
  for (uint32_t i = 0; i < s->root_count; i++) {
    const tt__tile_root_t *root = &s->roots[i];
    tt__view_t view;
    expand(b, &root->view, &view);
    const tt__view_t *interned = intern(b, &view);
    if (!interned) return;
    if (i == 0) b->identity = interned;
    if (root->member) b->cluster = b->p->values[root->value].cluster;
    entry_t *e = get(b, root->value, interned, root->member);
    if (!e) return;
    if (root->into_register) {
      s->out_regs[i] = tt__tile_wide(b, e);
      s->out_splats[i] = b->regs[s->out_regs[i]].splat;
      b->regs[s->out_regs[i]].last = INT32_MAX;
    } else {
      add_store(b, root, tt__tile_stored(b, e), e->dtype);
    }
  }
}

// From nothing but the iteration space, which splits have refined.
static void start(tt__build_t *b) {
  b->view_count = b->entry_count = b->reg_count = b->instr_count = b->leaf_count = 0;
  b->store_count = 0;
  b->cost = 0;
  b->split_dim = -1;
  b->blocker = TT_NO_VALUE;
  b->cluster = 0;
  b->full = b->failed = false;
  memset(b->heads, 0, sizeof b->heads);
}

static void split(tt__build_t *b) {
  uint32_t d = (uint32_t)b->split_dim;
  for (uint32_t k = b->rank; k > d; k--) {
    b->extents[k] = b->extents[k - 1];
    b->scale[k] = b->scale[k - 1];
    b->base_dim[k] = b->base_dim[k - 1];
  }
  b->extents[d] /= b->split_inner;
  b->extents[d + 1] = b->split_inner;
  b->scale[d] *= b->split_inner;
  b->rank++;
}

// A base dimension's stride exists where the parts it was split into continue each other.
static void look_plain(const tt__build_t *b) {
  tt__tile_spec_t *s = b->spec;
  s->plain = false;
  if (b->instr_count != 0 || b->leaf_count != 1 || s->root_count != 1 || b->store_count != 0)
    return;
  const tt__leaf_t *leaf = &b->leaves[0];
  if (leaf->kind != TT__LEAF_MEMORY) return;
  memset(s->plain_strides, 0, sizeof s->plain_strides);
  for (uint32_t d = b->rank; d-- > 0;) {
    uint32_t base = b->base_dim[d];
    bool innermost = d + 1 == b->rank || b->base_dim[d + 1] != base;
    if (innermost)
      s->plain_strides[base] = leaf->strides[d];
    else if (leaf->strides[d] != s->plain_strides[base] * b->scale[d])
      return;
  }
  s->plain = true;
  s->plain_read = leaf->read;
  s->plain_offset = leaf->offset;
}

// Each round either ends or splits a dimension, and a space has at most TT__TILE_DIMS of them.
// Dimensions of size 1 are left out but for a lone one.
tt__built_t tt__tile_build(tt__planner_t *p, tt__tile_spec_t *spec, tt__tile_t **out_tile,
                           tt_value_t *out_blocker) {
  tt__build_t *b = tt_arena_alloc(&p->scratch, sizeof *b);
  *out_tile = NULL;
  if (!b) return TT__BUILT_FAILED;
  b->p = p;
  b->spec = spec;
  b->k = tt__kernels();
  b->rank = 0;
  b->total = 1;
  for (uint32_t d = 0; d < spec->rank; d++) {
    b->total *= spec->extents[d];
    if (spec->extents[d] == 1 && !(b->rank == 0 && d + 1 == spec->rank)) continue;
    b->extents[b->rank] = spec->extents[d];
    b->scale[b->rank] = 1;
    b->base_dim[b->rank++] = d;
  }
  uint32_t reads = spec->read_count;
  for (;;) {
    start(b);
    spec->read_count = reads;
    build_roots(b);
    if (b->failed) return TT__BUILT_FAILED;
    if (b->split_dim < 0) break;
    split(b);
  }
  if (b->blocker != TT_NO_VALUE) {
    *out_blocker = b->blocker;
    return TT__BUILT_STORE;
  }
  if (b->full) {
    *out_blocker = TT_NO_VALUE;
    return TT__BUILT_STORE;
  }
  look_plain(b);
  *out_tile = tt__tile_finish(b);
  return *out_tile ? TT__BUILT_OK : TT__BUILT_FAILED;
}

tt_status_t tt__plan_tile(tt__planner_t *p, tt__tile_spec_t *spec, tt_value_t v,
                          tt__tile_t **out_tile) {
  tt__built_t built = tt__tile_build(p, spec, out_tile, &p->blocker);
  if (built == TT__BUILT_FAILED) return tt__plan_no_memory();
  if (built == TT__BUILT_STORE) {
    p->restart = true;
    if (p->blocker == TT_NO_VALUE) p->blocker = v;
  }
  return TT_OK_STATUS;
}

// Two dimensions of the limit are left for splits.
bool tt__tile_identity(const tt_type_t *type, uint32_t *out_rank, int64_t *out_extents,
                       tt__view_t *out_view) {
  memset(out_view, 0, sizeof *out_view);
  if (type->rank > TT__TILE_RANK) return false;
  out_view->rank = type->rank;
  uint32_t rank = 0;
  for (uint32_t k = 0; k < type->rank; k++) {
    if (type->dims[k] == 1) continue;
    if (rank == TT__TILE_DIMS - 2) return false;
    out_view->coef[k][rank] = 1;
    out_extents[rank++] = type->dims[k];
  }
  if (rank == 0) out_extents[rank++] = 1;
  *out_rank = rank;
  return true;
}

bool tt__tile_fusible(const tt__planner_t *p, const tt_node_t *n) {
  if (n->result_count != 1) return false;
  tt__view_t view;
  int64_t extents[TT__TILE_DIMS];
  uint32_t rank;
  const tt_type_t *type = tt_graph_type(p->graph, n->first_result);
  if (!tt__tile_identity(type, &rank, extents, &view)) return false;
  for (uint32_t i = 0; i < n->operand_count; i++)
    if (!tt__tile_identity(tt_graph_type(p->graph, n->operands[i]), &rank, extents, &view))
      return false;
  if (is_view(n)) return true;
  switch (n->op) {
    case TT_OP_CONSTANT: {
      const tt_attr_t *value = tt_node_attr(n, TT_ATTR_VALUE);
      return value && value->count == tt_dtype_size(type->dtype);
    }
    case TT_OP_IOTA: {
      tt__lane_t lane = tt__lane_of(type->dtype);
      return lane < TT__LANE_C64 && type->rank > 0;
    }
    case TT_OP_BITCAST_CONVERT: {
      tt_dtype_t x = tt_graph_type(p->graph, n->operands[0])->dtype;
      return tt_dtype_infos[x].bits == tt_dtype_infos[type->dtype].bits && x != TT_I1 &&
             type->dtype != TT_I1;
    }
    case TT_OP_SELECT:
    case TT_OP_CLAMP:
      return tt__ref_lane_can(n);
    default:
      break;
  }
  return (tt_op_infos[n->op].traits & TT_TRAIT_ELEMENTWISE) && tt__ref_lane_can(n);
}
