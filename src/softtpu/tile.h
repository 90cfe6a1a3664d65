// Tile programs: elementwise arithmetic over an iteration space, run as one vector kernel an
// instruction over tiles that stay in the first-level cache.
#ifndef TT_SOFTTPU_TILE_H_
#define TT_SOFTTPU_TILE_H_

#include "softtpu/kernels/kernels.h"
#include "softtpu/plan_internal.h"

// Limits of one program. A build that passes one is given up, and the planner makes clusters
// smaller or puts a value in memory. They bound a run's stack: registers and bases are pointers on
// it.
enum {
  TT__TILE_DIMS = 10,  // of an iteration space, size-1 dims dropped
  TT__TILE_RANK = 16,  // of a value seen through a view
  TT__TILE_REGS = 448,
  TT__TILE_LEAVES = 96,
  TT__TILE_STORES = 48,
  TT__TILE_INSTRS = 320,
  TT__TILE_SCRATCH = 49152,  // bytes of slots a thread
};
#define TT__NO_REG UINT16_MAX

// Where iteration point x finds a value's element: index[k] = offset[k] + sum_d coef[k][d] * x[d].
// Every movement of data (transpose, slice, reverse, broadcast, most reshapes) maps such a view to
// one of its operand, so chains of them cost nothing.
typedef struct tt__view_s {
  uint32_t rank;
  int64_t offset[TT__TILE_RANK];
  int64_t coef[TT__TILE_RANK][TT__TILE_DIMS];
} tt__view_t;

typedef enum tt__leaf_kind_e { TT__LEAF_MEMORY, TT__LEAF_IOTA, TT__LEAF_SPLAT } tt__leaf_kind_t;

// What a program reads: memory through strides, a counter, or an immediate.
typedef struct tt__leaf_s {
  uint8_t kind, size_log2;
  bool flat;   // element x is at offset + x in row-major order of the iteration space
  bool splat;  // the same element everywhere
  bool row;    // the same element along a row; only where the program has rows
  uint16_t reg;
  uint32_t read;   // which of the step's reads
  int32_t last;    // the last instruction that reads it; INT32_MAX: stored at a tile's end
  int64_t offset;  // in elements
  int64_t strides[TT__TILE_DIMS];
  _Alignas(16) char value[16];  // SPLAT
} tt__leaf_t;

// One vector kernel over the points of a tile. `mode` has a bit for each operand that is one
// element (kernels.h).
typedef struct tt__instr_s {
  tt__map_fn_t fn;  // NULL: `lane` by the reference executor's function
  const struct tt__ref_lane_s *lane;
  uint16_t dst, a, b, c;
  uint8_t mode, operand_count;
} tt__instr_t;

// What it writes: a register to one of the step's outputs.
typedef struct tt__tile_store_s {
  uint16_t reg;
  uint8_t size_log2;
  bool flat;    // dense and in order: the register may be the output's own memory
  bool direct;  // and is
  bool splat;   // the register holds one element, of all points or of a row's
  uint32_t write;
  int32_t def;  // the instruction that writes it; INT32_MAX: copied at a tile's end
  int64_t offset;
  int64_t strides[TT__TILE_DIMS];
} tt__tile_store_t;

// Immutable, in the plan's arena. Points are numbered in row-major order of `extents`. Registers
// are either a slot of scratch or memory itself; slots are shared by registers that are not alive
// together.
struct tt__tile_s {
  uint32_t rank;
  int64_t extents[TT__TILE_DIMS];
  int64_t total;      // points
  int64_t step;       // points a tile
  int64_t row;        // a tile ends where a row of so many points does; 0: anywhere
  int32_t block_dim;  // >= 0: tiles are blocks of this dimension and the last one,
  int64_t block;      // so many points along each
  bool cursor;        // something is not flat: an execution keeps the multi-index of its place
  uint32_t leaf_count, instr_count, once_count, row_count, store_count, reg_count;
  tt__leaf_t *leaves;
  // The first once_count run once, on one element; the next row_count so in each tile, since their
  // operands are the same along a row.
  tt__instr_t *instrs;
  tt__tile_store_t *stores;
  int32_t *slots;       // byte offset of a register's slot, -1: none
  uint64_t point_cost;  // picoseconds
};

// One thread's execution.
typedef struct tt__exec_s {
  const tt__tile_t *tile;
  const tt__kernels_t *kernels;
  int64_t at;  // the point that `index` belongs to, -1: none
  int64_t index[TT__TILE_DIMS];
  char *regs[TT__TILE_REGS];
  char *leaf_base[TT__TILE_LEAVES];
  char *store_base[TT__TILE_STORES];
} tt__exec_t;

// `slots`: TT__TILE_SCRATCH bytes, 64-byte aligned. in/out: base pointers by read and write number.
// Runs the instructions on single elements, whose registers stay valid for all tiles.
void tt__tile_begin(tt__exec_t *x, const tt__tile_t *tile, char *const *in, char *const *out,
                    char *slots);
// Evaluates points [at, at + n), n <= tile->step and within one row where the program has rows, and
// stores them. Not for blocked tiles.
void tt__tile_at(tt__exec_t *x, int64_t at, int64_t n);
// Points [from, to) on the calling thread. Not for blocked tiles.
void tt__tile_range(const tt__tile_t *tile, char *const *in, char *const *out, int64_t from,
                    int64_t to);
// All points of the tile program, in parallel where that pays.
void tt__tile_run(const tt__tile_t *tile, const tt__run_t *run, char *const *in, char *const *out);

// --- tile_build.c: from values to programs ---

// STORE without a blocker means that the program is too large: smaller clusters are needed.
typedef enum tt__built_e {
  TT__BUILT_OK,
  TT__BUILT_STORE,   // out_blocker must be in memory first
  TT__BUILT_FAILED,  // memory
} tt__built_t;

// A value that a program is to compute, and where it goes.
typedef struct tt__tile_root_s {
  tt_value_t value;
  tt__view_t view;     // over the base iteration space
  bool member;         // of the cluster that this program computes, not read from memory
  bool into_register;  // no store: the caller reads out_reg, a `wide` register
  // the store, by base dimension, in elements of the output
  uint32_t write;
  int64_t offset;
  int64_t strides[TT__TILE_DIMS];
} tt__tile_root_t;

// What a program is to do. `reads` grows with tt_grow; the caller frees it.
typedef struct tt__tile_spec_s {
  uint32_t rank;  // base iteration space, no size-1 dims needed
  int64_t extents[TT__TILE_DIMS];
  tt__tile_root_t *roots;
  uint32_t root_count;
  uint16_t *out_regs;  // [root_count] for roots into registers
  bool *out_splats;    // whether such a register is one element only
  // Out, for a single root into a register: whether it is nothing but memory seen through a view,
  // and then which, from where, with which stride along each base dimension.
  bool plain;
  uint32_t plain_read;
  int64_t plain_offset, plain_strides[TT__TILE_DIMS];
  // In and out: the step's reads so far; the builder appends what it needs.
  tt_value_t *reads;
  uint32_t read_count, read_capacity;
} tt__tile_spec_t;

// A program for the roots, in the plan's arena.
tt__built_t tt__tile_build(tt__planner_t *p, tt__tile_spec_t *spec, tt__tile_t **out_tile,
                           tt_value_t *out_blocker);
// The same for a step's maker, over operand `v`: where a value must be in memory first, p->restart
// is set with p->blocker, which is v itself where the program is too large. *out_tile is NULL then.
tt_status_t tt__plan_tile(tt__planner_t *p, tt__tile_spec_t *spec, tt_value_t v,
                          tt__tile_t **out_tile) TT_MUST_USE;
// Whether read r of the program may share memory with write w: same place, read before written.
// Both are flat then, so a tile only overwrites what it has read itself.
bool tt__tile_inplace(const tt__tile_t *tile, uint32_t read, uint32_t write);

// The identity view of a type, its dims of size 1 included, over an iteration space of those dims.
// False where the rank is too high.
bool tt__tile_identity(const tt_type_t *type, uint32_t *out_rank, int64_t *out_extents,
                       tt__view_t *out_view);
// Whether tile programs can compute the node: an elementwise op, a view, a splat or a counter, of
// ranks and types that programs handle.
bool tt__tile_fusible(const tt__planner_t *p, const tt_node_t *node);

// Element sizes are 1, 2, 4, 8 or 16.
static inline uint32_t tt__size_log2(size_t bytes) {
  return bytes <= 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4;
}
// TT__LANE_COUNT: none (4-bit types).
static inline tt__lane_t tt__lane_of(tt_dtype_t d) {
  switch (d) {
    case TT_I1:
    case TT_U8:
      return TT__LANE_U8;
    case TT_S8:
      return TT__LANE_S8;
    case TT_U16:
      return TT__LANE_U16;
    case TT_S16:
      return TT__LANE_S16;
    case TT_U32:
      return TT__LANE_U32;
    case TT_S32:
      return TT__LANE_S32;
    case TT_U64:
      return TT__LANE_U64;
    case TT_S64:
      return TT__LANE_S64;
    case TT_F8E4M3FN:
    case TT_F8E5M2:
    case TT_BF16:
    case TT_F16:
    case TT_F32:
      return TT__LANE_F32;
    case TT_F64:
      return TT__LANE_F64;
    case TT_C64:
      return TT__LANE_C64;
    case TT_C128:
      return TT__LANE_C128;
    default:
      return TT__LANE_COUNT;
  }
}
static inline size_t tt__lane_bytes(tt__lane_t lane) {
  static const uint8_t bytes[TT__LANE_COUNT] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16};
  return bytes[lane];
}
// TT__HALF_COUNT: not a small float.
static inline uint32_t tt__half_index(tt_dtype_t d) {
  return d == TT_BF16       ? TT__HALF_BF16
         : d == TT_F16      ? TT__HALF_F16
         : d == TT_F8E4M3FN ? TT__HALF_E4M3
         : d == TT_F8E5M2   ? TT__HALF_E5M2
                            : TT__HALF_COUNT;
}

#endif  // TT_SOFTTPU_TILE_H_
