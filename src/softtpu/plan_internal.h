// What the planner's files share: steps, buffers, the value table. Nothing here outlives a plan.
//
// Planning is four passes over the cloned graph, regions of control flow included:
// - cluster (cluster.c) decides for each value whether it lives in memory or inside a tile;
// - program order (plan.c) gives one list of steps a block, each with a time: liveness falls out;
// - assign (buffer.c) gives each value in memory a buffer: an output's, a dead operand's or a new
//   one of the arena's;
// - pack (buffer.c) gives the arena's buffers offsets.
#ifndef TT_SOFTTPU_PLAN_INTERNAL_H_
#define TT_SOFTTPU_PLAN_INTERNAL_H_

#include "base/arena.h"
#include "base/pool.h"
#include "ir/graph.h"
#include "softtpu/plan.h"

typedef struct tt__step_s tt__step_t;
typedef struct tt__tile_s tt__tile_t;

#define TT__NO_BUFFER UINT32_MAX
#define TT__NO_STEP UINT32_MAX

// Base pointers of a run: [0] the arena, [1] NULL (absolute addresses of constants), inputs,
// outputs.
enum { TT__BASE_ARENA = 0, TT__BASE_NONE = 1, TT__BASE_INPUT = 2 };

// A place in memory that is known when planning but for its base. Constants use base NONE with
// their address as the offset.
typedef struct tt__ref_s {
  uint32_t base;
  uint64_t offset;
} tt__ref_t;

// One piece of memory and its tenants over time: values whose lives do not overlap follow one
// another in it. Times are those of steps.
typedef struct tt__buffer_s {
  size_t bytes;
  uint32_t begin, end;  // times between which an arena buffer is somebody's
  uint32_t busy;        // last time at which the present content is needed
  tt_value_t occupant;  // whose content that is
  bool fixed;           // not the arena's: ref is final
  bool writable;        // outputs, donated inputs, the arena
  bool lent;            // an output's own memory that holds something before: it must stay
  tt__ref_t ref;
} tt__buffer_t;

// One run's state, on the running thread's stack; read-only while steps run.
typedef struct tt__run_s {
  const tt_plan_t *plan;
  tt_pool_t *pool;
  char **bases;
} tt__run_t;

// Runs a step to its end, with the pool's help or without.
typedef tt_status_t (*tt__step_fn_t)(const tt__step_t *step, const tt__run_t *run);

// The steps of one block in order.
typedef struct tt__seq_s {
  tt__step_t **steps;
  uint32_t count;
} tt__seq_t;

// One kernel. `reads` and `writes` are values in memory; after assignment `in` and `out` are their
// buffers' places.
struct tt__step_s {
  tt__step_fn_t run;
  const char *kind;       // for listings
  const tt_node_t *node;  // NULL: a tile program or a copy
  void *data;             // the kind's own, in the plan's arena
  uint32_t read_count, write_count, region_count;
  tt_value_t *reads, *writes;
  tt__ref_t *in, *out;
  // inplace[r * write_count + w]: write w may take the memory of read r where r dies here
  bool *inplace;
  size_t scratch_bytes;  // arena memory for the duration of the step
  tt__ref_t scratch;
  uint32_t scratch_buffer;
  tt__seq_t *regions;
  uint32_t position;        // of its last node in its block
  uint32_t time, time_end;  // they differ where there are regions
  uint32_t visit;           // ordering's mark
  // Member of a chain that runs band by band (plan_rows.c): its rows (0: none) and times.
  int64_t chain_rows;
  uint32_t chain_begin, chain_end;
  uint64_t cost;  // nanoseconds, roughly
};

typedef enum tt__role_e {
  TT__ROLE_NONE,    // not reached
  TT__ROLE_MEMORY,  // arguments and results of steps that are one node
  TT__ROLE_ALIAS,   // shares its operand's memory: reshape, bitcast of equal size
  TT__ROLE_MEMBER,  // computed inside a tile program, in memory where `stored`
  TT__ROLE_INLINE,  // recomputed by each reader: views, constants, iota, cheap arithmetic
} tt__role_t;

// What planning knows of one value of the graph, by its number; dies with the planner.
typedef struct tt__value_s {
  uint8_t role;
  bool stored;    // must be in memory
  bool forced;    // in memory because a tile program could not be built through it
  bool reusable;  // memory may be taken over after the last use
  bool spread;    // a chain's member reads more of it than its own rows: nothing goes over it
  bool via;       // some reader sees it through a view or a copy of its expression
  uint32_t uses;
  uint32_t stage, cluster;
  uint32_t weight;   // arithmetic that an inline copy costs
  uint32_t tail;     // the part of it after what is in memory anyway
  uint32_t readers;  // operands of nodes that it is
  int64_t demand;    // elements that all readers together ask for
  tt__step_t *step;  // that writes it
  uint32_t buffer;
  uint32_t last;    // time of the last use
  uint32_t target;  // 1 + which of its block's returns it is, 0: none
} tt__value_t;

// Immutable once made. Steps, tile programs and tables live in the arena, constants in the graph.
struct tt_plan_s {
  tt_arena_t arena;  // everything of the plan's
  tt_graph_t *graph;
  bool reference;
  tt__seq_t main;
  uint32_t kernel_count, base_count;
  size_t arena_bytes;
  int32_t *aliases;  // one an output
  bool *written;     // one an input
  uint64_t cost;
  uint32_t input_count, output_count;
};

// State of one planning; on the stack of plan_graph.
typedef struct tt__planner_s {
  tt_plan_t *plan;
  tt_graph_t *graph;
  tt_arena_t *arena;   // the plan's
  tt_arena_t scratch;  // dies with the planner
  tt__value_t *values;
  tt__buffer_t *buffers;
  uint32_t buffer_count, buffer_capacity;
  uint32_t time;
  uint32_t cluster_count, cluster_limit;  // ids given out; members a cluster may have
  // A step's maker found that a value must be in memory first (TT_NO_VALUE: that programs must be
  // smaller): the block is clustered again.
  bool restart;
  const tt_node_t *probed;  // the last reduction looked at, and what it is (plan_arg.c)
  bool probed_matches, probed_largest;
  tt_value_t blocker;
} tt__planner_t;

static inline char *tt__at(const tt__run_t *run, tt__ref_t ref) {
  return run->bases[ref.base] + ref.offset;
}

static inline void tt__plan_set_reads(tt__step_t *s, const tt_value_t *reads) {
  for (uint32_t i = 0; i < s->read_count; i++) s->reads[i] = reads[i];
}

// --- plan.c ---
// The one message for it, wherever planning stopped.
tt_status_t tt__plan_no_memory(void) TT_MUST_USE TT_NEVER_NULL;
// A step with room for its reads and writes, all in the plan's arena and zeroed. `kind` is static.
tt_status_t tt__plan_step(tt__planner_t *p, tt__step_fn_t run, const char *kind,
                          const tt_node_t *node, uint32_t reads, uint32_t writes,
                          tt__step_t **out_step) TT_MUST_USE;
// The same for a step with one result, its reads and its data.
tt_status_t tt__plan_data_step(tt__planner_t *p, tt__step_fn_t run, const char *kind,
                               const tt_node_t *node, const tt_value_t *reads, uint32_t read_count,
                               void *data, tt__step_t **out_step) TT_MUST_USE;
// Splits [0, count) over the pool where the step's work (nanoseconds of one core) is worth it.
// Callers cut their work into units by shapes alone, so that results do not depend on how the units
// are handed out.
void tt__plan_parallel(const tt__run_t *run, int64_t count, uint64_t nanoseconds, tt_pool_fn_t fn,
                       void *context);
tt_status_t tt__plan_run_seq(const tt__seq_t *seq, const tt__run_t *run) TT_MUST_USE;
// The value whose memory `v` lives in: follows aliases. Two values with one root have the same
// bytes.
tt_value_t tt__plan_root(const tt__planner_t *p, tt_value_t v);

// --- plan_node.c: a step that is one node ---
// Picks the fastest kernel there is, the reference executor where there is none.
tt_status_t tt__plan_node_step(tt__planner_t *p, const tt_node_t *node,
                               tt__step_t **out_step) TT_MUST_USE;
// A step over all operands, captures of the regions after them, and all results.
tt_status_t tt__plan_plain_step(tt__planner_t *p, tt__step_fn_t run, const char *kind,
                                const tt_node_t *node, tt__step_t **out_step) TT_MUST_USE;
// Each tries a family: *out_step stays NULL where the node is not of it. Where a tile program
// cannot be built through an operand, p->restart is set and the block is clustered again with that
// value in memory.
tt_status_t tt__dot_step(tt__planner_t *p, const tt_node_t *node,
                         tt__step_t **out_step) TT_MUST_USE;
tt_status_t tt__conv_step(tt__planner_t *p, const tt_node_t *node,
                          tt__step_t **out_step) TT_MUST_USE;
tt_status_t tt__plan_control_step(tt__planner_t *p, const tt_node_t *node,
                                  tt__step_t **out_step) TT_MUST_USE;
tt_status_t tt__plan_move_step(tt__planner_t *p, const tt_node_t *node,
                               tt__step_t **out_step) TT_MUST_USE;
tt_status_t tt__plan_index_step(tt__planner_t *p, const tt_node_t *node,
                                tt__step_t **out_step) TT_MUST_USE;
tt_status_t tt__plan_sort_step(tt__planner_t *p, const tt_node_t *node,
                               tt__step_t **out_step) TT_MUST_USE;
tt_status_t tt__plan_window_step(tt__planner_t *p, const tt_node_t *node,
                                 tt__step_t **out_step) TT_MUST_USE;
tt_status_t tt__plan_reduce_step(tt__planner_t *p, const tt_node_t *node,
                                 tt__step_t **out_step) TT_MUST_USE;
tt_status_t tt__plan_arg_step(tt__planner_t *p, const tt_node_t *node,
                              tt__step_t **out_step) TT_MUST_USE;
// Whether the family takes the node, before anything is clustered: steps and roles must agree on
// that.
bool tt__plan_arg_fits(tt__planner_t *p, const tt_node_t *node, bool *out_largest);
bool tt__plan_reduce_fits(const tt__planner_t *p, const tt_node_t *node);
bool tt__plan_move_soft(const tt__planner_t *p, const tt_node_t *node, uint32_t i);
bool tt__conv_fits(const tt__planner_t *p, const tt_node_t *node);
bool tt__dot_fits(const tt__planner_t *p, const tt_node_t *node);
// Whether the node's step computes operand i inside its own tile program.
bool tt__plan_soft_operand(tt__planner_t *p, const tt_node_t *node, uint32_t i);

// --- cluster.c ---
// Gives every value of the block a role and makes the block's steps, in no particular order.
tt_status_t tt__cluster_block(tt__planner_t *p, const tt_block_t *block, tt__step_t ***out_steps,
                              uint32_t *out_count) TT_MUST_USE;

// --- buffer.c ---
tt_status_t tt__buffer_fixed(tt__planner_t *p, size_t bytes, uint32_t base, uint64_t offset,
                             bool writable, uint32_t *out_buffer) TT_MUST_USE;
// Assigns buffers to everything `seq` writes and appends the copies that bring the block's returns
// to `targets` (buffers). `aliases` (main only, else NULL) receives outputs put on donated inputs.
// `targets` changes where an output moves to a donated input's memory.
tt_status_t tt__buffer_assign(tt__planner_t *p, const tt_block_t *block, tt__seq_t *seq,
                              uint32_t *targets, int32_t *aliases) TT_MUST_USE;
// Offsets for arena buffers, then every step's refs.
tt_status_t tt__buffer_pack(tt__planner_t *p) TT_MUST_USE;
// After pack: buffers' numbers become places.
void tt__buffer_resolve(tt__planner_t *p, const tt__seq_t *seq);

#endif  // TT_SOFTTPU_PLAN_INTERNAL_H_
