// Kernels for nodes: registers, leaves and instructions of a tile program under construction.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"
#include "softtpu/tile_build.h"

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

uint16_t tt__tile_immediate(tt__build_t *b, const void *data, size_t bytes) {
  tt__leaf_t leaf = {.kind = TT__LEAF_SPLAT, .size_log2 = (uint8_t)tt__size_log2(bytes)};
  memcpy(leaf.value, data, bytes);
  return new_leaf(b, &leaf, bytes);
}

// --- values ------------------------------------------------------------------------------------

// Rounds from `raw` where that is there: one rounding, not two.
uint16_t tt__tile_stored(tt__build_t *b, entry_t *e) {
  if (e->stored != TT__NO_REG) return e->stored;
  uint32_t half = tt__half_index(e->dtype);
  uint16_t from = e->raw != TT__NO_REG ? e->raw : e->wide;
  if (half == TT__HALF_COUNT)
    e->stored = from;
  else
    e->stored = emit1(b, b->k->narrow[half], tt_dtype_size(e->dtype), from);
  return e->stored;
}

uint16_t tt__tile_wide(tt__build_t *b, entry_t *e) {
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

entry_t *tt__tile_memory(tt__build_t *b, entry_t *e, tt_value_t v, const tt__view_t *view) {
  const tt_type_t *type = tt_graph_type(b->p->graph, v);
  size_t bytes = tt_dtype_size(type->dtype);
  tt__leaf_t leaf = {.kind = TT__LEAF_MEMORY, .size_log2 = (uint8_t)tt__size_log2(bytes)};
  leaf.read = read_of(b, tt__plan_root(b->p, v));
  leaf_strides(b, type, view, &leaf);
  e->stored = new_leaf(b, &leaf, bytes);
  return e;
}

// Counted in s64 and converted: a view of a counter is a counter with another offset and step.
entry_t *tt__tile_counter(tt__build_t *b, entry_t *e, const tt_node_t *n, const tt__view_t *view) {
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
  for (uint32_t i = 0; i < n->operand_count; i++) regs[i] = tt__tile_stored(b, operands[i]);
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
  uint16_t regs[2] = {tt__tile_wide(b, operands[swap]), tt__tile_wide(b, operands[!swap])};
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
    set_result(e, emit1(b, b->k->to_pred[from], 1, tt__tile_wide(b, x)), true);
    return true;
  }
  // More than 24 bits into a small float: two roundings are not one.
  if (to_half && (from == TT__LANE_F64 || (from >= TT__LANE_U32 && from <= TT__LANE_S64)))
    return false;
  uint16_t wide = tt__tile_wide(b, x);
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
  uint16_t regs[3] = {tt__tile_stored(b, operands[0]), tt__tile_wide(b, operands[1]),
                      tt__tile_wide(b, operands[2])};
  // Choosing among equals needs no vector.
  size_t bytes = tt__lane_bytes(lane);
  set_result(e, emit(b, b->k->select[tt__size_log2(bytes)], NULL, bytes, regs, 3), true);
  return true;
}

static bool emit_clamp(tt__build_t *b, entry_t *e, entry_t **operands) {
  tt__lane_t lane = tt__lane_of(e->dtype);
  if (lane >= TT__LANE_C64) return false;
  size_t bytes = tt__lane_bytes(lane);
  uint16_t regs[2] = {tt__tile_wide(b, operands[1]), tt__tile_wide(b, operands[0])};
  regs[0] = emit(b, b->k->op[TT_OP_MAXIMUM][lane], NULL, bytes, regs, 2);
  regs[1] = tt__tile_wide(b, operands[2]);
  set_result(e, emit(b, b->k->op[TT_OP_MINIMUM][lane], NULL, bytes, regs, 2), true);
  return true;
}

// i1 has an algebra of its own.
static bool emit_pred(tt__build_t *b, entry_t *e, tt_op_t op, entry_t **operands) {
  if (op == TT_OP_ADD) op = TT_OP_OR;
  if (op == TT_OP_MULTIPLY) op = TT_OP_AND;
  uint16_t regs[2] = {tt__tile_wide(b, operands[0]), 0};
  if (op == TT_OP_NOT) {
    uint8_t one = 1;
    regs[1] = tt__tile_immediate(b, &one, 1);
    op = TT_OP_XOR;
  } else if (op == TT_OP_AND || op == TT_OP_OR || op == TT_OP_XOR || op == TT_OP_MAXIMUM ||
             op == TT_OP_MINIMUM) {
    regs[1] = tt__tile_wide(b, operands[1]);
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
  for (uint32_t i = 0; i < n->operand_count; i++) regs[i] = tt__tile_wide(b, operands[i]);
  tt__lane_t out = tt__lane_of(e->dtype);
  if (is_heavy(op)) b->cost += lane == TT__LANE_F32 ? 500 : 5000;
  set_result(e, emit(b, b->k->op[op][lane], NULL, tt__lane_bytes(out), regs, n->operand_count),
             is_exact(op));
  return true;
}

void tt__tile_emit(tt__build_t *b, entry_t *e, const tt_node_t *n, entry_t **operands) {
  if (!emit_fast(b, e, n, operands)) emit_generic(b, e, n, operands);
}
