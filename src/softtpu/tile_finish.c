// The second half of building a tile program: dimensions merged, instructions ordered, registers
// placed in slots.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/tile_build.h"

// Whether everything steps through dimensions d and d + 1 as through one.
static bool mergeable(const tt__build_t *b, uint32_t d) {
  int64_t inner = b->extents[d + 1];
  for (uint32_t i = 0; i < b->leaf_count; i++) {
    const int64_t *s = b->leaves[i].strides;
    if (b->leaves[i].kind != TT__LEAF_SPLAT && s[d] != s[d + 1] * inner) return false;
  }
  for (uint32_t i = 0; i < b->store_count; i++) {
    const int64_t *s = b->stores[i].strides;
    if (s[d] != s[d + 1] * inner) return false;
  }
  return true;
}

static void drop(int64_t *strides, uint32_t d, uint32_t rank) {
  for (uint32_t k = d; k + 1 < rank; k++) strides[k] = strides[k + 1];
}

// Longer rows mean fewer and longer kernel calls; mostly one dimension is left.
static void merge_dims(tt__build_t *b) {
  for (uint32_t d = b->rank - 1; d-- > 0;) {
    if (!mergeable(b, d)) continue;
    b->extents[d + 1] *= b->extents[d];
    drop(b->extents, d, b->rank);
    for (uint32_t i = 0; i < b->leaf_count; i++) drop(b->leaves[i].strides, d, b->rank);
    for (uint32_t i = 0; i < b->store_count; i++) drop(b->stores[i].strides, d, b->rank);
    b->rank--;
  }
}

static bool is_flat(const tt__build_t *b, const int64_t *strides) {
  int64_t dense = 1;
  for (uint32_t d = b->rank; d-- > 0; dense *= b->extents[d])
    if (b->extents[d] > 1 && strides[d] != dense) return false;
  return true;
}

// Rows pay where they are long, or where leaves that are not flat cost more calls to load than
// there are instructions.
static bool wants_rows(const tt__build_t *b) {
  int64_t last = b->extents[b->rank - 1];
  uint32_t loads = 0;
  bool stores_flat = true;
  for (uint32_t i = 0; i < b->leaf_count; i++) loads += !b->leaves[i].flat && !b->leaves[i].splat;
  for (uint32_t i = 0; i < b->store_count; i++) stores_flat &= b->stores[i].flat;
  if (last >= 256) return loads > 0 || !stores_flat;
  return last >= 64 && 2 * loads > b->instr_count;
}

// Whether a register holds one element of a row once its leaf is loaded or its instruction run.
static bool is_one(const tt__build_t *b, const tt__instr_t *in) {
  const uint16_t operands[3] = {in->a, in->b, in->c};
  for (uint32_t k = 0; k < in->operand_count; k++)
    if (!b->regs[operands[k]].splat && !b->regs[operands[k]].row) return false;
  return !b->regs[in->dst].splat;
}

// Where tiles end with their rows, what does not change along one is one element. False, and none
// is, where that is so of a root that a caller reads from its register, which has all points.
static bool find_row_values(tt__build_t *b) {
  for (uint32_t i = 0; i < b->leaf_count; i++) {
    tt__leaf_t *l = &b->leaves[i];
    l->row = !l->splat && l->strides[b->rank - 1] == 0;
    b->regs[l->reg].row = l->row;
  }
  for (uint32_t i = 0; i < b->instr_count; i++)
    b->regs[b->instrs[i].dst].row = is_one(b, &b->instrs[i]);
  bool fine = true;
  for (uint32_t r = 0; r < b->reg_count; r++)
    fine &= !(b->regs[r].row && b->regs[r].last == INT32_MAX);
  if (fine) return true;
  for (uint32_t r = 0; r < b->reg_count; r++) b->regs[r].row = false;
  for (uint32_t i = 0; i < b->leaf_count; i++) b->leaves[i].row = false;
  return false;
}

// An instruction reads such registers as one element; a store repeats it.
static void use_row_values(tt__build_t *b) {
  for (uint32_t i = 0; i < b->instr_count; i++) {
    tt__instr_t *in = &b->instrs[i];
    if (b->regs[in->dst].splat) continue;
    const uint16_t operands[3] = {in->a, in->b, in->c};
    for (uint32_t k = 0; k < in->operand_count; k++)
      if (b->regs[operands[k]].row) in->mode |= (uint8_t)(1u << k);
    if (b->regs[in->dst].row) in->mode = 0;
  }
  for (uint32_t i = 0; i < b->store_count; i++) b->stores[i].splat |= b->regs[b->stores[i].reg].row;
}

// Instructions on single elements first, of all points and then of rows; then who reads and writes
// what, when. The parts keep their order, in which operands come before users.
static void order(tt__build_t *b, tt__tile_t *t) {
  tt__instr_t sorted[TT__TILE_INSTRS];
  uint32_t count = 0;
  for (int pass = 0; pass < 3; pass++) {
    for (uint32_t i = 0; i < b->instr_count; i++) {
      const reg_t *dst = &b->regs[b->instrs[i].dst];
      if ((dst->splat ? 0 : dst->row ? 1 : 2) == pass) sorted[count++] = b->instrs[i];
    }
    if (pass == 0) t->once_count = count;
    if (pass == 1) t->row_count = count - t->once_count;
  }
  memcpy(b->instrs, sorted, sizeof *sorted * count);
  for (uint32_t i = 0; i < count; i++) {
    const tt__instr_t *in = &b->instrs[i];
    const uint16_t used[3] = {in->a, in->b, in->c};
    b->regs[in->dst].def = (int32_t)i;
    for (int k = 0; k < 3; k++)
      if (b->regs[used[k]].last < (int32_t)i) b->regs[used[k]].last = (int32_t)i;
  }
}

// A dimension along which a leaf is dense that is not the last: tiles become square blocks. Not for
// small spaces, nor where the whole is a few columns wide.
static int32_t find_block_dim(const tt__build_t *b) {
  uint32_t last = b->rank - 1;
  if (b->store_count == 0 || b->rank < 2 || b->extents[last] < 16 || b->total < 4096) return -1;
  for (uint32_t i = 0; i < b->store_count; i++)
    if (b->stores[i].splat) return -1;
  for (uint32_t i = 0; i < b->leaf_count; i++) {
    const tt__leaf_t *l = &b->leaves[i];
    if (l->kind != TT__LEAF_MEMORY || l->strides[last] == 0 || l->strides[last] == 1) continue;
    for (uint32_t d = 0; d < last; d++)
      if (l->strides[d] == 1 && b->extents[d] >= 16) return (int32_t)d;
  }
  return -1;
}

typedef struct slot_s {
  uint8_t bytes;
  bool free;
} slot_t;

// Which slot each register has; a slot is as wide as the registers it serves. A linear scan over
// the instructions: a register takes a free slot where it is defined and gives it back after its
// last use, so an instruction never writes over its own operands.
static uint32_t assign_slots(tt__build_t *b, const bool *direct, uint32_t once, slot_t *slots,
                             int32_t *slot_of) {
  uint32_t count = 0;
  for (uint32_t r = 0; r < b->reg_count; r++) slot_of[r] = -1;
  // Leaves that are loaded live from a tile's start.
  for (int32_t i = (int32_t)once - 1; i < (int32_t)b->instr_count; i++) {
    for (uint32_t r = 0; r < b->reg_count; r++) {
      const reg_t *reg = &b->regs[r];
      bool starts =
          i == (int32_t)once - 1 ? reg->kind == REG_LEAF : reg->def == i && reg->kind == REG_SLOT;
      if (!starts || reg->splat || reg->row || direct[r]) continue;
      uint32_t s = 0;
      while (s < count && !(slots[s].free && slots[s].bytes == reg->bytes)) s++;
      if (s == count) slots[count++] = (slot_t){reg->bytes, false};
      slots[s].free = false;
      slot_of[r] = (int32_t)s;
    }
    for (uint32_t r = 0; r < b->reg_count; r++)
      if (slot_of[r] >= 0 && i >= (int32_t)once &&
          (b->regs[r].last == i || (b->regs[r].def == i && b->regs[r].last < i)))
        slots[slot_of[r]].free = true;
  }
  return count;
}

// `width`: bytes of slots a point; `touched`: those and the memory that a point reads and writes,
// all of which share the first-level cache, perhaps with another thread of the core.
static int64_t tile_step(uint64_t width, uint64_t touched, size_t available) {
  int64_t step = (int64_t)(20480 / (touched + 1)) / 64 * 64;
  if (step > 4096) step = 4096;
  if (step < 128) step = 128;
  while (step > 16 && width * (uint64_t)step > available) step -= 16;
  return step;
}

// Registers that are memory (flat leaves, flat stores) need no slot, those of one element a small
// one. Sets step, block and the slots' offsets; block_dim -2 says that blocks do not fit the
// scratch.
static void place_slots(tt__build_t *b, tt__tile_t *t) {
  static const uint32_t align = 64;
  bool direct[TT__TILE_REGS] = {false};
  for (uint32_t i = 0; i < b->leaf_count; i++)
    direct[b->leaves[i].reg] = b->leaves[i].splat || (b->leaves[i].flat && t->block_dim < 0);
  for (uint32_t i = 0; i < b->store_count; i++) {
    tt__tile_store_t *s = &b->stores[i];
    s->direct = s->flat && !s->splat && t->block_dim < 0 && !direct[s->reg];
    if (s->direct) direct[s->reg] = true;
    s->def = s->direct ? b->regs[s->reg].def : INT32_MAX;
    if (!s->direct) b->regs[s->reg].last = INT32_MAX;
  }
  slot_t slots[TT__TILE_REGS];
  int32_t slot_of[TT__TILE_REGS];
  uint32_t count = assign_slots(b, direct, t->once_count, slots, slot_of);
  size_t top = 0;
  for (uint32_t r = 0; r < b->reg_count; r++) {
    t->slots[r] = -1;
    if (!b->regs[r].row && !(b->regs[r].splat && b->regs[r].kind == REG_SLOT)) continue;
    t->slots[r] = (int32_t)top;
    top += 16;
  }
  top = tt_align_up(top, align);
  uint64_t width = 0;
  for (uint32_t s = 0; s < count; s++) width += slots[s].bytes;
  uint64_t touched = width;
  for (uint32_t i = 0; i < b->leaf_count; i++)
    if (!b->leaves[i].splat && !b->leaves[i].row) touched += UINT64_C(1) << b->leaves[i].size_log2;
  for (uint32_t i = 0; i < b->store_count; i++) touched += UINT64_C(1) << b->stores[i].size_log2;
  t->step = tile_step(width, touched, TT__TILE_SCRATCH - top - count * align);
  if (t->block_dim >= 0) {
    size_t room = TT__TILE_SCRATCH - top - count * align;
    t->block = width * 4096 <= room ? 64 : 32;
    t->step = t->block * t->block;
    if (width * 1024 > room) t->block_dim = -2;
  }
  size_t offset[TT__TILE_REGS];
  for (uint32_t s = 0; s < count; s++) {
    offset[s] = top;
    top += tt_align_up(slots[s].bytes * (size_t)t->step, align);
  }
  for (uint32_t r = 0; r < b->reg_count; r++)
    if (slot_of[r] >= 0) t->slots[r] = (int32_t)offset[slot_of[r]];
}

// Long rows are cut in equal parts.
static void fit_step(tt__tile_t *t) {
  if (t->row <= t->step) return;
  int64_t parts = (t->row + t->step - 1) / t->step;
  t->step = (t->row + parts - 1) / parts;
}

// Picoseconds a point: bytes computed, loaded (dearer where a leaf is not flat) and stored.
static uint64_t point_cost(const tt__build_t *b, const tt__tile_t *t) {
  uint64_t cost = b->cost + 20;
  for (uint32_t i = t->once_count + t->row_count; i < b->instr_count; i++)
    cost += 15u * b->regs[b->instrs[i].dst].bytes;
  for (uint32_t i = 0; i < b->leaf_count; i++) {
    const tt__leaf_t *l = &b->leaves[i];
    if (!l->splat && !l->row) cost += (l->flat ? 30u : 90u) << l->size_log2;
  }
  for (uint32_t i = 0; i < b->store_count; i++) cost += 40u << b->stores[i].size_log2;
  return cost;
}

static void find_flat(tt__build_t *b, tt__tile_t *t) {
  for (uint32_t i = 0; i < b->leaf_count; i++) {
    tt__leaf_t *l = &b->leaves[i];
    l->flat = l->kind == TT__LEAF_MEMORY && !l->splat && is_flat(b, l->strides);
    t->cursor |= !l->flat && !l->splat;
  }
  for (uint32_t i = 0; i < b->store_count; i++) {
    b->stores[i].flat = is_flat(b, b->stores[i].strides);
    t->cursor |= !b->stores[i].flat;
  }
}

// Instructions in their order, every register at its place.
static void arrange(tt__build_t *b, tt__tile_t *t) {
  t->block_dim = find_block_dim(b);
  if (t->block_dim < 0 && wants_rows(b) && find_row_values(b)) {
    t->row = b->extents[b->rank - 1];
    use_row_values(b);
  }
  order(b, t);
  place_slots(b, t);
  if (t->block_dim == -2) {
    t->block_dim = -1;
    place_slots(b, t);
  }
  fit_step(t);
  for (uint32_t i = 0; i < b->leaf_count; i++) b->leaves[i].last = b->regs[b->leaves[i].reg].last;
}

// Dimensions merge first, since what is dense depends on it; then registers get slots, which
// decides how many points a tile has.
tt__tile_t *tt__tile_finish(tt__build_t *b) {
  tt_arena_t *arena = b->p->arena;
  tt__tile_t *t = tt_arena_zeroed(arena, sizeof *t);
  if (!t) return NULL;
  t->slots = TT_ARENA_ARRAY(arena, int32_t, b->reg_count + 1);
  if (!t->slots) return NULL;
  merge_dims(b);
  find_flat(b, t);
  arrange(b, t);
  t->rank = b->rank;
  t->total = b->total;
  memcpy(t->extents, b->extents, sizeof t->extents);
  t->instr_count = b->instr_count;
  t->leaf_count = b->leaf_count;
  t->store_count = b->store_count;
  t->reg_count = b->reg_count;
  t->point_cost = point_cost(b, t);
  t->instrs = tt_arena_copy(arena, b->instrs, sizeof *b->instrs * b->instr_count);
  t->leaves = tt_arena_copy(arena, b->leaves, sizeof *b->leaves * b->leaf_count);
  t->stores = tt_arena_copy(arena, b->stores, sizeof *b->stores * b->store_count);
  return t->instrs && t->leaves && t->stores ? t : NULL;
}

bool tt__tile_inplace(const tt__tile_t *t, uint32_t read, uint32_t write) {
  if (t->block_dim >= 0) return false;
  const tt__tile_store_t *s = NULL;
  for (uint32_t i = 0; i < t->store_count; i++)
    if (t->stores[i].write == write) s = &t->stores[i];
  if (!s || !s->flat || s->offset != 0) return false;
  for (uint32_t i = 0; i < t->leaf_count; i++) {
    const tt__leaf_t *l = &t->leaves[i];
    if (l->kind != TT__LEAF_MEMORY || l->read != read) continue;
    if (!l->flat || l->offset != 0 || l->size_log2 != s->size_log2) return false;
    bool before = s->def == INT32_MAX ? l->last < INT32_MAX : l->last <= s->def;
    if (!before && s->reg != l->reg) return false;
  }
  return true;
}
