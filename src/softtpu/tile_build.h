// The builder's working state, shared by tile_build.c (the walk), tile_view.c (views), tile_emit.c
// (kernels) and tile_finish.c (rows, order, places).
#ifndef TT_SOFTTPU_TILE_BUILD_H_
#define TT_SOFTTPU_TILE_BUILD_H_

#include "softtpu/tile.h"

// More than the programs of real models need; a build that runs out is given up (b->full).
enum { VIEWS = 64, ENTRIES = 384, HEADS = 64 };

// Written by an instruction, or loaded at a tile's start.
typedef enum reg_kind_e { REG_SLOT, REG_LEAF } reg_kind_t;

// A register while its program is built: def and last are its life.
typedef struct reg_s {
  uint8_t bytes, kind;
  bool splat, row;    // one element: of all points, of a row's
  int32_t def, last;  // instructions
} reg_t;

// One value through one view. Small floats have up to three registers: as stored, as f32, and as an
// f32 not yet rounded to the type.
typedef struct entry_s {
  tt_value_t value;
  const tt__view_t *view;
  tt_dtype_t dtype;
  uint16_t stored, wide, raw;
  uint32_t next;
} entry_t;

// Tens of kilobytes, hence in the planner's scratch and not on the stack. Thread-compatible.
typedef struct tt__build_s {
  tt__planner_t *p;
  tt__tile_spec_t *spec;
  const tt__kernels_t *k;
  // The iteration space: base dimensions, split where reshapes ask for it.
  uint32_t rank, base_dim[TT__TILE_DIMS];
  int64_t extents[TT__TILE_DIMS], scale[TT__TILE_DIMS], total;
  const tt__view_t *views[VIEWS], *identity;
  uint32_t view_count, entry_count, reg_count, instr_count, leaf_count, store_count;
  uint32_t cluster;  // whose members are computed here, 0: none
  uint32_t heads[HEADS];
  entry_t entries[ENTRIES];
  reg_t regs[TT__TILE_REGS];
  tt__instr_t instrs[TT__TILE_INSTRS];
  tt__leaf_t leaves[TT__TILE_LEAVES];
  tt__tile_store_t stores[TT__TILE_STORES];
  bool full, failed;
  int32_t split_dim;
  int64_t split_inner;
  uint64_t cost;  // picoseconds a point, beyond what registers' sizes say
  tt_value_t blocker;
} tt__build_t;

// --- tile_view.c ---
// What the view node `n`, seen through `view`, shows of its operand. False where that is no view,
// perhaps with a split of a dimension requested (b->split_dim).
bool tt__tile_view(tt__build_t *b, const tt_node_t *n, const tt__view_t *view, tt__view_t *out);

// --- tile_emit.c: all set b->full or b->failed where there is no room ---
// The register of an immediate.
uint16_t tt__tile_immediate(tt__build_t *b, const void *data, size_t bytes);
// The entry of a value in memory, of a counter; they return `e`.
entry_t *tt__tile_memory(tt__build_t *b, entry_t *e, tt_value_t v, const tt__view_t *view);
entry_t *tt__tile_counter(tt__build_t *b, entry_t *e, const tt_node_t *n, const tt__view_t *view);
// The value as its type is stored; as its lane computes it, rounded to its type.
uint16_t tt__tile_stored(tt__build_t *b, entry_t *e);
uint16_t tt__tile_wide(tt__build_t *b, entry_t *e);
// The node's instructions: by a vector kernel, else by the reference executor's function.
void tt__tile_emit(tt__build_t *b, entry_t *e, const tt_node_t *n, entry_t **operands);

// --- tile_finish.c ---
// Merges dimensions, orders instructions, gives registers slots. NULL without memory.
tt__tile_t *tt__tile_finish(tt__build_t *b);

#endif  // TT_SOFTTPU_TILE_BUILD_H_
