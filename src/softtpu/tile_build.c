// Builds tile programs: walks from the wanted values back through elementwise nodes and views to
// values in memory, then assigns registers.
#include "softtpu/tile_build.h"

#include <string.h>

#include "base/alloc.h"
#include "softtpu/element.h"
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

// --- views of operands -------------------------------------------------------------------------

// A stretched dimension is always read at 0.
static void view_broadcast(const tt__build_t *b, const tt_node_t *n, const tt__view_t *v,
                           tt__view_t *out) {
  const tt_type_t *x = tt_graph_type(b->p->graph, n->operands[0]);
  uint32_t count;
  const int64_t *dims = tt_node_ints(n, TT_ATTR_BROADCAST_DIMENSIONS, &count);
  out->rank = x->rank;
  for (uint32_t k = 0; k < x->rank; k++) {
    if (x->dims[k] == 1) continue;
    out->offset[k] = v->offset[dims[k]];
    memcpy(out->coef[k], v->coef[dims[k]], sizeof out->coef[k]);
  }
}

static void view_transpose(const tt_node_t *n, const tt__view_t *v, tt__view_t *out) {
  uint32_t count;
  const int64_t *permutation = tt_node_ints(n, TT_ATTR_PERMUTATION, &count);
  for (uint32_t k = 0; k < v->rank; k++) {
    out->offset[permutation[k]] = v->offset[k];
    memcpy(out->coef[permutation[k]], v->coef[k], sizeof out->coef[k]);
  }
}

// start + stride * i, applied to offset and coefficients.
static void view_slice(const tt_node_t *n, const tt__view_t *v, tt__view_t *out) {
  uint32_t count;
  const int64_t *starts = tt_node_ints(n, TT_ATTR_START_INDICES, &count);
  const int64_t *strides = tt_node_ints(n, TT_ATTR_STRIDES, &count);
  for (uint32_t k = 0; k < v->rank; k++) {
    int64_t stride = strides ? strides[k] : 1;
    out->offset[k] = v->offset[k] * stride + starts[k];
    for (uint32_t d = 0; d < TT__TILE_DIMS; d++) out->coef[k][d] = v->coef[k][d] * stride;
  }
}

static void view_reverse(const tt__build_t *b, const tt_node_t *n, const tt__view_t *v,
                         tt__view_t *out) {
  const tt_type_t *x = tt_graph_type(b->p->graph, n->operands[0]);
  uint32_t count;
  const int64_t *dims = tt_node_ints(n, TT_ATTR_DIMENSIONS, &count);
  *out = *v;
  for (uint32_t i = 0; i < count; i++) {
    int64_t k = dims[i];
    out->offset[k] = x->dims[k] - 1 - v->offset[k];
    for (uint32_t d = 0; d < TT__TILE_DIMS; d++) out->coef[k][d] = -v->coef[k][d];
  }
}

// Cuts iteration dimension d so that its inner part has `inner` points; the build starts again.
static void request_split(tt__build_t *b, uint32_t d, int64_t inner) {
  b->split_dim = (int32_t)d;
  b->split_inner = inner;
}

// The linear position in the result is a sum over iteration dimensions; each must land inside one
// dimension of the operand. False where it does not, perhaps with a split requested.
static bool view_reshape(tt__build_t *b, const tt_node_t *n, const tt__view_t *v, tt__view_t *out) {
  const tt_type_t *x = tt_graph_type(b->p->graph, n->operands[0]);
  const tt_type_t *r = tt_graph_type(b->p->graph, n->first_result);
  out->rank = x->rank;
  if (tt_type_elements(r) == 0) return true;  // nothing is ever read
  int64_t linear[TT__TILE_DIMS] = {0}, offset = 0, stride = 1, strides[TT__TILE_RANK];
  for (uint32_t k = r->rank; k-- > 0; stride *= r->dims[k]) {
    offset += v->offset[k] * stride;
    for (uint32_t d = 0; d < b->rank; d++) linear[d] += v->coef[k][d] * stride;
  }
  stride = 1;
  for (uint32_t k = x->rank; k-- > 0; stride *= x->dims[k]) strides[k] = stride;
  int64_t reach[TT__TILE_RANK];
  for (uint32_t k = 0; k < x->rank; k++) {
    out->offset[k] = offset / strides[k] % x->dims[k];
    reach[k] = out->offset[k];
  }
  for (uint32_t d = 0; d < b->rank; d++) {
    int64_t c = linear[d];
    if (c == 0 || b->extents[d] == 1) continue;
    if (c < 0) return false;
    uint32_t k = 0;
    while (k < x->rank && (strides[k] > c || x->dims[k] == 1)) k++;
    if (k == x->rank || c % strides[k] != 0) return false;
    if (c / strides[k] * (b->extents[d] - 1) >= x->dims[k]) {
      int64_t room = strides[k] * x->dims[k];
      if (room % c == 0 && room / c > 1 && b->extents[d] % (room / c) == 0 &&
          b->rank < TT__TILE_DIMS)
        request_split(b, d, room / c);
      return false;
    }
    out->coef[k][d] += c / strides[k];
    reach[k] += c / strides[k] * (b->extents[d] - 1);
  }
  for (uint32_t k = 0; k < x->rank; k++)
    if (reach[k] >= x->dims[k]) return false;
  return true;
}

// --- registers ---------------------------------------------------------------------------------

// When registers run out, 0 and b->full: the build goes on harmlessly and is thrown away at its
// end.
static uint16_t new_reg(tt__build_t *b, size_t bytes, reg_kind_t kind, bool splat) {
  if (b->reg_count == TT__TILE_REGS) {
    b->full = true;
    return 0;
  }
  b->regs[b->reg_count] = (reg_t){
      .bytes = (uint8_t)bytes, .kind = (uint8_t)kind, .splat = splat, .last = -1, .def = -1};
  return (uint16_t)b->reg_count++;
}

// A spare one where the list is full, for the same reason.
static tt__instr_t *new_instr(tt__build_t *b) {
  static _Thread_local tt__instr_t spare;
  if (b->instr_count == TT__TILE_INSTRS) {
    b->full = true;
    return &spare;
  }
  tt__instr_t *in = &b->instrs[b->instr_count++];
  memset(in, 0, sizeof *in);
  return in;
}

// dst = fn(a, b, c); operands that are one element make scalars, all of them one element a
// one-element result.
static uint16_t emit(tt__build_t *b, tt__map_fn_t fn, const tt__ref_lane_t *lane, size_t bytes,
                     const uint16_t *operands, uint32_t count) {
  uint8_t mode = 0;
  for (uint32_t i = 0; i < count; i++)
    if (b->regs[operands[i]].splat) mode |= (uint8_t)(1u << i);
  bool splat = count > 0 && mode == (1u << count) - 1;
  uint16_t dst = new_reg(b, bytes, REG_SLOT, splat);
  tt__instr_t *in = new_instr(b);
  in->fn = fn;
  in->lane = lane;
  in->dst = dst;
  in->a = operands[0];
  in->b = count > 1 ? operands[1] : operands[0];
  in->c = count > 2 ? operands[2] : operands[0];
  in->operand_count = (uint8_t)count;
  in->mode = splat ? 0 : mode;
  return dst;
}
static uint16_t emit1(tt__build_t *b, tt__map_fn_t fn, size_t bytes, uint16_t x) {
  return emit(b, fn, NULL, bytes, &x, 1);
}

// Equal leaves share a register: a value that is read twice is loaded once.
static uint16_t new_leaf(tt__build_t *b, const tt__leaf_t *leaf, size_t bytes) {
  for (uint32_t i = 0; i < b->leaf_count; i++) {
    const tt__leaf_t *l = &b->leaves[i];
    if (l->kind != leaf->kind || l->size_log2 != leaf->size_log2 || l->read != leaf->read ||
        l->offset != leaf->offset || memcmp(l->strides, leaf->strides, sizeof l->strides) != 0 ||
        memcmp(l->value, leaf->value, sizeof l->value) != 0)
      continue;
    return l->reg;
  }
  if (b->leaf_count == TT__TILE_LEAVES) {
    b->full = true;
    return 0;
  }
  tt__leaf_t *l = &b->leaves[b->leaf_count++];
  *l = *leaf;
  l->splat = leaf->kind != TT__LEAF_IOTA;
  for (uint32_t d = 0; d < b->rank; d++)
    if (l->strides[d] != 0 && b->extents[d] > 1) l->splat = false;
  // One point in all: everything is dense, nothing is a special case.
  if (b->total <= 1 && leaf->kind == TT__LEAF_MEMORY) l->splat = false;
  l->reg = new_reg(b, bytes, REG_LEAF, l->splat);
  return l->reg;
}

// An immediate.
static uint16_t splat_bytes(tt__build_t *b, const void *data, size_t bytes) {
  tt__leaf_t leaf = {.kind = TT__LEAF_SPLAT, .size_log2 = (uint8_t)tt__size_log2(bytes)};
  memcpy(leaf.value, data, bytes);
  return new_leaf(b, &leaf, bytes);
}

// --- values ------------------------------------------------------------------------------------

// The value as its type is stored. Rounds from `raw` where that is there: one rounding, not two.
static uint16_t get_stored(tt__build_t *b, entry_t *e) {
  if (e->stored != TT__NO_REG) return e->stored;
  uint32_t half = tt__half_index(e->dtype);
  uint16_t from = e->raw != TT__NO_REG ? e->raw : e->wide;
  if (half == TT__HALF_COUNT)
    e->stored = from;
  else
    e->stored = emit1(b, b->k->narrow[half], tt_dtype_size(e->dtype), from);
  return e->stored;
}

// The value as its lane computes it, rounded to its type.
static uint16_t get_wide(tt__build_t *b, entry_t *e) {
  if (e->wide != TT__NO_REG) return e->wide;
  uint32_t half = tt__half_index(e->dtype);
  if (half == TT__HALF_COUNT)
    e->wide = e->raw != TT__NO_REG ? e->raw : e->stored;
  else if (e->stored != TT__NO_REG)
    e->wide = emit1(b, b->k->widen[half], 4, e->stored);
  else
    e->wide = emit1(b, b->k->round[half], 4, e->raw);
  return e->wide;
}

// The number of a value in memory among the step's reads.
static uint32_t read_of(tt__build_t *b, tt_value_t root) {
  tt__tile_spec_t *s = b->spec;
  for (uint32_t i = 0; i < s->read_count; i++)
    if (s->reads[i] == root) return i;
  if (!tt_grow((void **)&s->reads, &s->read_capacity, s->read_count + 1, sizeof *s->reads)) {
    b->failed = true;
    return 0;
  }
  s->reads[s->read_count] = root;
  return s->read_count++;
}

// The view composed with the value's row-major layout.
static void leaf_strides(const tt__build_t *b, const tt_type_t *type, const tt__view_t *v,
                         tt__leaf_t *leaf) {
  int64_t stride = 1;
  for (uint32_t k = type->rank; k-- > 0; stride *= type->dims[k]) {
    leaf->offset += v->offset[k] * stride;
    for (uint32_t d = 0; d < b->rank; d++)
      if (b->extents[d] > 1) leaf->strides[d] += v->coef[k][d] * stride;
  }
}

static entry_t *memory_entry(tt__build_t *b, entry_t *e, tt_value_t v, const tt__view_t *view) {
  const tt_type_t *type = tt_graph_type(b->p->graph, v);
  size_t bytes = tt_dtype_size(type->dtype);
  tt__leaf_t leaf = {.kind = TT__LEAF_MEMORY, .size_log2 = (uint8_t)tt__size_log2(bytes)};
  leaf.read = read_of(b, tt__plan_root(b->p, v));
  leaf_strides(b, type, view, &leaf);
  e->stored = new_leaf(b, &leaf, bytes);
  return e;
}

// Counted in s64 and converted: a view of a counter is a counter with another offset and step.
static entry_t *iota_entry(tt__build_t *b, entry_t *e, const tt_node_t *n, const tt__view_t *view) {
  int64_t k = tt_node_int(n, TT_ATTR_IOTA_DIMENSION, 0);
  tt__leaf_t leaf = {.kind = TT__LEAF_IOTA, .size_log2 = 3};
  leaf.offset = view->offset[k];
  for (uint32_t d = 0; d < b->rank; d++)
    if (b->extents[d] > 1) leaf.strides[d] = view->coef[k][d];
  uint16_t counted = new_leaf(b, &leaf, 8);
  tt__lane_t lane = tt__lane_of(e->dtype);
  uint16_t reg = lane == TT__LANE_S64 || lane == TT__LANE_U64
                     ? counted
                     : emit1(b, b->k->convert[TT__LANE_S64][lane], tt__lane_bytes(lane), counted);
  if (tt__half_index(e->dtype) != TT__HALF_COUNT)
    e->raw = reg;
  else
    e->stored = e->wide = reg;
  return e;
}

// A lane's result; for small floats it may still have to be rounded to the type.
static void set_result(entry_t *e, uint16_t reg, bool rounded) {
  if (tt__half_index(e->dtype) == TT__HALF_COUNT)
    e->stored = e->wide = reg;
  else if (rounded)
    e->wide = reg;
  else
    e->raw = reg;
}

// The reference executor's function over tiles: any op, any type.
static void emit_generic(tt__build_t *b, entry_t *e, const tt_node_t *n, entry_t **operands) {
  tt__ref_lane_t *lane = tt_arena_alloc(b->p->arena, sizeof *lane);
  if (!lane) {
    b->failed = true;
    return;
  }
  tt_status_t status = tt__ref_lane_prepare(b->p->graph, n, lane);
  if (status) {
    tt_status_release(status);
    b->failed = true;
    return;
  }
  uint16_t regs[3];
  for (uint32_t i = 0; i < n->operand_count; i++) regs[i] = get_stored(b, operands[i]);
  e->stored = emit(b, NULL, lane, tt_dtype_size(e->dtype), regs, n->operand_count);
  b->cost += 20000;
}

// The emit_... below return false where no kernel serves; nothing has been emitted then that harms.
static bool emit_compare(tt__build_t *b, entry_t *e, const tt_node_t *n, entry_t **operands) {
  tt__lane_t lane = tt__lane_of(operands[0]->dtype);
  if (lane >= TT__LANE_C64) return false;
  if (tt_node_int(n, TT_ATTR_COMPARE_TYPE, 0) == TT_COMPARE_TOTALORDER) return false;
  int64_t how = tt_node_int(n, TT_ATTR_COMPARISON_DIRECTION, TT_EQ);
  bool swap = how == TT_GT || how == TT_GE;
  if (swap) how = how == TT_GT ? TT_LT : TT_LE;
  uint16_t regs[2] = {get_wide(b, operands[swap]), get_wide(b, operands[!swap])};
  set_result(e, emit(b, b->k->compare[how][lane], NULL, 1, regs, 2), true);
  return true;
}

// Same type: the operand itself. Integers of one width differ in name only.
static bool emit_convert(tt__build_t *b, entry_t *e, entry_t *x) {
  tt__lane_t from = tt__lane_of(x->dtype), to = tt__lane_of(e->dtype);
  if (from >= TT__LANE_C64 || to >= TT__LANE_C64) return false;
  bool to_half = tt__half_index(e->dtype) != TT__HALF_COUNT;
  if (e->dtype == x->dtype) {
    e->stored = x->stored;
    e->wide = x->wide;
    e->raw = x->raw;
    return true;
  }
  if (e->dtype == TT_I1) {
    set_result(e, emit1(b, b->k->to_pred[from], 1, get_wide(b, x)), true);
    return true;
  }
  // More than 24 bits into a small float: two roundings are not one.
  if (to_half && (from == TT__LANE_F64 || (from >= TT__LANE_U32 && from <= TT__LANE_S64)))
    return false;
  uint16_t wide = get_wide(b, x);
  tt__map_fn_t fn = b->k->convert[from][to];
  bool both_int = from <= TT__LANE_S64 && to <= TT__LANE_S64;
  if (from == to || (both_int && tt__lane_bytes(from) == tt__lane_bytes(to)))
    set_result(e, wide, false);
  else if (fn)
    set_result(e, emit1(b, fn, tt__lane_bytes(to), wide), false);
  else
    return false;
  return true;
}

static bool emit_select(tt__build_t *b, entry_t *e, entry_t **operands) {
  tt__lane_t lane = tt__lane_of(e->dtype);
  if (lane == TT__LANE_COUNT) return false;
  uint16_t regs[3] = {get_stored(b, operands[0]), get_wide(b, operands[1]),
                      get_wide(b, operands[2])};
  // Choosing among equals needs no vector.
  size_t bytes = tt__lane_bytes(lane);
  set_result(e, emit(b, b->k->select[tt__size_log2(bytes)], NULL, bytes, regs, 3), true);
  return true;
}

static bool emit_clamp(tt__build_t *b, entry_t *e, entry_t **operands) {
  tt__lane_t lane = tt__lane_of(e->dtype);
  if (lane >= TT__LANE_C64) return false;
  size_t bytes = tt__lane_bytes(lane);
  uint16_t regs[2] = {get_wide(b, operands[1]), get_wide(b, operands[0])};
  regs[0] = emit(b, b->k->op[TT_OP_MAXIMUM][lane], NULL, bytes, regs, 2);
  regs[1] = get_wide(b, operands[2]);
  set_result(e, emit(b, b->k->op[TT_OP_MINIMUM][lane], NULL, bytes, regs, 2), true);
  return true;
}

// i1 has an algebra of its own.
static bool emit_pred(tt__build_t *b, entry_t *e, tt_op_t op, entry_t **operands) {
  if (op == TT_OP_ADD) op = TT_OP_OR;
  if (op == TT_OP_MULTIPLY) op = TT_OP_AND;
  uint16_t regs[2] = {get_wide(b, operands[0]), 0};
  if (op == TT_OP_NOT) {
    uint8_t one = 1;
    regs[1] = splat_bytes(b, &one, 1);
    op = TT_OP_XOR;
  } else if (op == TT_OP_AND || op == TT_OP_OR || op == TT_OP_XOR || op == TT_OP_MAXIMUM ||
             op == TT_OP_MINIMUM) {
    regs[1] = get_wide(b, operands[1]);
  } else {
    return false;
  }
  set_result(e, emit(b, b->k->op[op][TT__LANE_U8], NULL, 1, regs, 2), true);
  return true;
}

// Ops whose result is always representable where their operands were.
static bool is_exact(tt_op_t op) {
  switch (op) {
    case TT_OP_ABS:
    case TT_OP_NEGATE:
    case TT_OP_MAXIMUM:
    case TT_OP_MINIMUM:
    case TT_OP_CEIL:
    case TT_OP_FLOOR:
    case TT_OP_SIGN:
    case TT_OP_ROUND_NEAREST_EVEN:
      return true;
    default:
      return false;
  }
}

// For the cost: some ten times a simple op.
static bool is_heavy(tt_op_t op) {
  switch (op) {
    case TT_OP_EXPONENTIAL:
    case TT_OP_LOG:
    case TT_OP_TANH:
    case TT_OP_ERF:
    case TT_OP_LOGISTIC:
    case TT_OP_EXPONENTIAL_MINUS_ONE:
    case TT_OP_LOG_PLUS_ONE:
    case TT_OP_SINE:
    case TT_OP_COSINE:
    case TT_OP_POWER:
    case TT_OP_REMAINDER:
    case TT_OP_RSQRT:
      return true;
    default:
      return false;
  }
}

// By a vector kernel. bf16 and f16 compute in f32: for + - * / and sqrt, f32 has more than twice
// their digits, so the second rounding does no harm.
static bool emit_fast(tt__build_t *b, entry_t *e, const tt_node_t *n, entry_t **operands) {
  tt_op_t op = (tt_op_t)n->op;
  tt_dtype_t in = operands[0]->dtype;
  tt__lane_t lane = tt__lane_of(in);
  if (op == TT_OP_COMPARE) return emit_compare(b, e, n, operands);
  if (op == TT_OP_CONVERT) return emit_convert(b, e, operands[0]);
  if (op == TT_OP_SELECT) return emit_select(b, e, operands);
  if (op == TT_OP_CLAMP) return emit_clamp(b, e, operands);
  if (in == TT_I1) return emit_pred(b, e, op, operands);
  if (op == TT_OP_REAL && !tt_dtype_is_complex(in)) {
    *e = (entry_t){.value = e->value,
                   .view = e->view,
                   .dtype = e->dtype,
                   .next = e->next,
                   .stored = operands[0]->stored,
                   .wide = operands[0]->wide,
                   .raw = operands[0]->raw};
    return true;
  }
  if (op == TT_OP_COMPLEX) lane = tt__lane_of(e->dtype);
  if (lane == TT__LANE_COUNT || !b->k->op[op][lane]) return false;
  // 8-bit floats have no double rounding proof for functions: they go the exact way.
  bool tiny = in == TT_F8E4M3FN || in == TT_F8E5M2;
  if (tiny && !is_exact(op)) return false;
  uint16_t regs[2];
  for (uint32_t i = 0; i < n->operand_count; i++) regs[i] = get_wide(b, operands[i]);
  tt__lane_t out = tt__lane_of(e->dtype);
  if (is_heavy(op)) b->cost += lane == TT__LANE_F32 ? 500 : 5000;
  set_result(e, emit(b, b->k->op[op][lane], NULL, tt__lane_bytes(out), regs, n->operand_count),
             is_exact(op));
  return true;
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
  memset(&inner, 0, sizeof inner);
  inner.rank = view->rank;
  switch (n->op) {
    case TT_OP_BROADCAST_IN_DIM:
      view_broadcast(b, n, view, &inner);
      break;
    case TT_OP_TRANSPOSE:
      view_transpose(n, view, &inner);
      break;
    case TT_OP_SLICE:
      view_slice(n, view, &inner);
      break;
    case TT_OP_REVERSE:
      view_reverse(b, n, view, &inner);
      break;
    default:
      if (!view_reshape(b, n, view, &inner)) {
        if (b->split_dim < 0) b->blocker = n->first_result;
        return NULL;
      }
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
    e->stored = splat_bytes(b, value->u.bytes, tt_dtype_size(e->dtype));
  } else if (n->op == TT_OP_IOTA) {
    iota_entry(b, e, n, view);
  } else if (n->op == TT_OP_BITCAST_CONVERT) {
    e->stored = get_stored(b, operands[0]);
  } else if (!emit_fast(b, e, n, operands)) {
    emit_generic(b, e, n, operands);
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
  return e ? memory_entry(b, e, v, view) : NULL;
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
      s->out_regs[i] = get_wide(b, e);
      s->out_splats[i] = b->regs[s->out_regs[i]].splat;
      b->regs[s->out_regs[i]].last = INT32_MAX;
    } else {
      add_store(b, root, get_stored(b, e), e->dtype);
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
