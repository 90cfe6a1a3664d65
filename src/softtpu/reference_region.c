// Regions over scalars, applied to whole arrays: each node runs once for all lanes where the body
// is elementwise, else the block runs once a lane.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// A value of the body: `data` has a chunk of elements of `dtype`.
typedef struct slot_s {
  tt_value_t value;
  tt_dtype_t dtype;
  char *data;  // owned unless an argument
} slot_t;

typedef struct step_s {
  tt__ref_lane_t lane;
  uint32_t in[3], out;  // slots
} step_t;

struct tt__ref_region_s {
  tt__ref_call_t call;
  const tt_block_t *block;
  bool lanewise;
  slot_t *slots;
  uint32_t slot_count;
  step_t *steps;
  uint32_t step_count;
  uint32_t *returns;  // slots
};

static bool is_scalar(const tt_graph_t *graph, tt_value_t value) {
  const tt_type_t *type = tt_graph_type(graph, value);
  return type->rank == 0 && type->dtype != TT_DTYPE_NONE;
}

// Scalars and elementwise nodes only: then a node can run for a chunk of lanes at a time.
static bool is_lanewise(const tt_graph_t *graph, const tt_block_t *block) {
  for (uint32_t i = 0; i < block->arg_count; i++) {
    if (!is_scalar(graph, block->args[i])) return false;
  }
  for (uint32_t i = 0; i < block->node_count; i++) {
    const tt_node_t *node = block->nodes[i];
    if (node->result_count != 1 || !is_scalar(graph, node->first_result)) return false;
    if (node->op != TT_OP_CONSTANT && !tt__ref_lane_can(node)) return false;
  }
  return true;
}

static uint32_t find_slot(const tt__ref_region_t *region, tt_value_t value) {
  for (uint32_t i = 0; i < region->slot_count; i++) {
    if (region->slots[i].value == value) return i;
  }
  return UINT32_MAX;
}

// Arguments come first and borrow the caller's arrays, chunk by chunk.
static tt_status_t add_slot(tt__ref_region_t *region, tt_value_t value, bool owned,
                            uint32_t *out_slot) {
  slot_t *slot = &region->slots[region->slot_count];
  slot->value = value;
  slot->dtype = tt_graph_type(region->call.graph, value)->dtype;
  slot->data = NULL;
  if (owned) {
    slot->data = (char *)tt_alloc(TT__REF_CHUNK * tt_dtype_size(slot->dtype));
    if (!slot->data) return tt__ref_no_memory(region->call.node);
  }
  *out_slot = region->slot_count++;
  return TT_OK_STATUS;
}

// The slot of a value used in the body; a capture becomes one filled with its scalar.
static tt_status_t use_slot(tt__ref_region_t *region, tt_value_t value, uint32_t *out_slot) {
  *out_slot = find_slot(region, value);
  if (*out_slot != UINT32_MAX) return TT_OK_STATUS;
  const void *captured = region->call.state->values[region->call.device][value];
  if (!captured) {
    return TT_ERROR(INTERNAL, "internal: %s: a value its region captures was not provided",
                    tt_op_infos[region->call.node->op].text);
  }
  TT_RETURN_IF_ERROR(add_slot(region, value, true, out_slot));
  slot_t *slot = &region->slots[*out_slot];
  tt__ref_fill(tt_dtype_size(slot->dtype), TT__REF_CHUNK, slot->data, captured);
  return TT_OK_STATUS;
}

// Constants are filled in once; other nodes become a step.
static tt_status_t compile_node(tt__ref_region_t *region, const tt_node_t *node) {
  uint32_t out = 0;
  TT_RETURN_IF_ERROR(add_slot(region, node->first_result, true, &out));
  if (node->op == TT_OP_CONSTANT) {
    const tt_attr_t *value = tt_node_attr(node, TT_ATTR_VALUE);
    TT_CHECK(value);
    tt__ref_fill(tt_dtype_size(region->slots[out].dtype), TT__REF_CHUNK, region->slots[out].data,
                 value->u.bytes);
    return TT_OK_STATUS;
  }
  step_t *step = &region->steps[region->step_count++];
  step->out = out;
  for (uint32_t i = 0; i < node->operand_count; i++) {
    TT_RETURN_IF_ERROR(use_slot(region, node->operands[i], &step->in[i]));
  }
  return tt__ref_lane_prepare(region->call.graph, node, &step->lane);
}

// Slots for every argument, result and use (a use may be a capture).
static tt_status_t compile(tt__ref_region_t *region) {
  const tt_block_t *block = region->block;
  size_t slots = (size_t)block->arg_count + block->return_count;
  for (uint32_t i = 0; i < block->node_count; i++) slots += 1u + block->nodes[i]->operand_count;
  region->slots = (slot_t *)tt_alloc_zeroed(sizeof(slot_t) * (slots + 1));
  region->steps = (step_t *)tt_alloc_zeroed(sizeof(step_t) * ((size_t)block->node_count + 1));
  region->returns = (uint32_t *)tt_alloc(sizeof(uint32_t) * ((size_t)block->return_count + 1));
  if (!region->slots || !region->steps || !region->returns) {
    return tt__ref_no_memory(region->call.node);
  }
  uint32_t slot;
  for (uint32_t i = 0; i < block->arg_count; i++) {
    TT_RETURN_IF_ERROR(add_slot(region, block->args[i], false, &slot));
  }
  for (uint32_t i = 0; i < block->node_count; i++) {
    TT_RETURN_IF_ERROR(compile_node(region, block->nodes[i]));
  }
  for (uint32_t i = 0; i < block->return_count; i++) {
    TT_RETURN_IF_ERROR(use_slot(region, block->returns[i], &region->returns[i]));
  }
  return TT_OK_STATUS;
}

tt_status_t tt__ref_region_create(const tt__ref_call_t *call, const tt_block_t *block,
                                  tt__ref_region_t **out_region) {
  tt__ref_region_t *region = (tt__ref_region_t *)tt_alloc_zeroed(sizeof *region);
  if (!region) return tt__ref_no_memory(call->node);
  region->call = *call;
  region->block = block;
  region->lanewise = is_lanewise(call->graph, block);
  tt_status_t status = region->lanewise ? compile(region) : TT_OK_STATUS;
  if (status) {
    tt__ref_region_destroy(region);
    return status;
  }
  *out_region = region;
  return TT_OK_STATUS;
}

void tt__ref_region_destroy(tt__ref_region_t *region) {
  if (!region) return;
  for (uint32_t i = region->block->arg_count; region->slots && i < region->slot_count; i++) {
    tt_free(region->slots[i].data);
  }
  tt_free(region->slots);
  tt_free(region->steps);
  tt_free(region->returns);
  tt_free(region);
}

// Lanes [at, at + n), n <= TT__REF_CHUNK.
static void run_chunk(tt__ref_region_t *region, int64_t at, int64_t n, const void *const *args) {
  for (uint32_t i = 0; i < region->block->arg_count; i++) {
    slot_t *slot = &region->slots[i];
    slot->data = (char *)(uintptr_t)args[i] + (size_t)at * tt_dtype_size(slot->dtype);
  }
  for (uint32_t i = 0; i < region->step_count; i++) {
    const step_t *step = &region->steps[i];
    const void *in[3] = {NULL, NULL, NULL};
    for (uint32_t o = 0; o < step->lane.operand_count; o++) {
      in[o] = region->slots[step->in[o]].data;
    }
    tt__ref_lane_run(&step->lane, n, in, 0, region->slots[step->out].data);
  }
}

// Returned arguments may be overwritten by an earlier result (outs may equal args), so results
// that are arguments are first taken aside.
static void copy_chunk(tt__ref_region_t *region, int64_t at, int64_t n, void *const *outs,
                       char *spare) {
  size_t used = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < region->block->return_count; i++) {
      const slot_t *slot = &region->slots[region->returns[i]];
      size_t size = tt_dtype_size(slot->dtype), bytes = size * (size_t)n;
      bool is_argument = region->returns[i] < region->block->arg_count;
      void *to = (char *)outs[i] + (size_t)at * size;
      if (pass == 0 && is_argument) memcpy(spare + used, slot->data, bytes);
      if (pass == 1) memcpy(to, is_argument ? spare + used : slot->data, bytes);
      if (is_argument) used += bytes;
    }
    used = 0;
  }
}

// The slow way, for bodies with regions or tensors of their own: the block as a program.
static tt_status_t run_each(tt__ref_region_t *region, int64_t count, const void *const *args,
                            void *const *outs) {
  tt__ref_state_t *state = region->call.state;
  const tt_block_t *block = region->block;
  uint32_t devices = state->device_count, device = region->call.device;
  bool *active = (bool *)tt_alloc_zeroed(devices);
  const void *const **arg_rows = (const void *const **)tt_alloc_zeroed(sizeof(void *) * devices);
  void *const **out_rows = (void *const **)tt_alloc_zeroed(sizeof(void *) * devices);
  size_t width = (size_t)block->arg_count + block->return_count + 1;
  void **row = (void **)tt_alloc(sizeof(void *) * width);
  tt_status_t status = TT_OK_STATUS;
  if (!active || !arg_rows || !out_rows || !row) status = tt__ref_no_memory(region->call.node);
  for (int64_t lane = 0; !status && lane < count; lane++) {
    active[device] = true;
    arg_rows[device] = (const void *const *)row;
    out_rows[device] = row + block->arg_count;
    for (uint32_t i = 0; i < block->arg_count; i++) {
      size_t bytes = tt__ref_bytes(state->graph, block->args[i]);
      row[i] = (char *)(uintptr_t)args[i] + (size_t)lane * bytes;
    }
    for (uint32_t i = 0; i < block->return_count; i++) {
      size_t bytes = tt__ref_bytes(state->graph, block->returns[i]);
      row[block->arg_count + i] = (char *)outs[i] + (size_t)lane * bytes;
    }
    status = tt__ref_block(state, active, block, arg_rows, out_rows);
  }
  tt_free(active);
  tt_free(arg_rows);
  tt_free(out_rows);
  tt_free(row);
  return status;
}

tt_status_t tt__ref_region_run(tt__ref_region_t *region, int64_t count, const void *const *args,
                               void *const *outs) {
  if (!region->lanewise) return run_each(region, count, args, outs);
  // Room for a chunk of every returned argument.
  char small[512], *spare = small;
  int64_t chunk = count < TT__REF_CHUNK ? count : TT__REF_CHUNK;
  size_t room = 16u * (size_t)chunk * region->block->return_count;
  if (room > sizeof small && !(spare = (char *)tt_alloc(room))) {
    return tt__ref_no_memory(region->call.node);
  }
  for (int64_t at = 0; at < count; at += TT__REF_CHUNK) {
    int64_t n = count - at < TT__REF_CHUNK ? count - at : TT__REF_CHUNK;
    run_chunk(region, at, n, args);
    copy_chunk(region, at, n, outs, spare);
  }
  if (spare != small) tt_free(spare);
  return TT_OK_STATUS;
}

tt_op_t tt__ref_region_single(const tt_block_t *block) {
  if (block->arg_count != 2 || block->node_count != 1 || block->return_count != 1) {
    return TT_OP_COUNT;
  }
  const tt_node_t *node = block->nodes[0];
  const unsigned needed = TT_TRAIT_COMMUTATIVE | TT_TRAIT_ELEMENTWISE;
  if ((tt_op_infos[node->op].traits & needed) != needed || node->operand_count != 2 ||
      block->returns[0] != node->first_result) {
    return TT_OP_COUNT;
  }
  const tt_value_t *in = node->operands, *args = block->args;
  bool both = (in[0] == args[0] && in[1] == args[1]) || (in[0] == args[1] && in[1] == args[0]);
  return both ? (tt_op_t)node->op : TT_OP_COUNT;
}

// ---- folds

struct tt__ref_fold_s {
  tt__ref_call_t call;
  const tt_block_t *block;
  uint32_t count;
  int64_t lanes;
  tt__ref_region_t *region;  // NULL: the one-op path
  tt__ref_lane_t lane;       // one-op path: its accumulator stays wide, so it rounds once
  void **accumulators;       // [count] wide (one-op) or in the arguments' types
  void **args;               // [2 * count] scratch
};

static tt_status_t fold_start(tt__ref_fold_t *fold, const void *const *inits) {
  const tt_block_t *block = fold->block;
  bool single = fold->count == 1 && tt__ref_region_single(block) != TT_OP_COUNT;
  if (single) {
    TT_RETURN_IF_ERROR(tt__ref_lane_prepare(fold->call.graph, block->nodes[0], &fold->lane));
  } else {
    TT_RETURN_IF_ERROR(tt__ref_region_create(&fold->call, block, &fold->region));
  }
  for (uint32_t i = 0; i < fold->count; i++) {
    // The accumulator's type is the region's, which may be wider than the input's.
    tt_dtype_t dtype = tt_graph_type(fold->call.graph, block->args[i])->dtype;
    size_t size = single ? tt_element_wide_size(tt_element_wide(dtype)) : tt_dtype_size(dtype);
    fold->accumulators[i] = tt_alloc(size * (size_t)fold->lanes + 1);
    if (!fold->accumulators[i]) return tt__ref_no_memory(fold->call.node);
    tt_element_t init;
    if (single) {
      tt_element_load(dtype, inits[i], 1, &init);
    } else {
      memcpy(&init, inits[i], size);
    }
    tt__ref_fill(size, fold->lanes, fold->accumulators[i], &init);
  }
  return TT_OK_STATUS;
}

tt_status_t tt__ref_fold_create(const tt__ref_call_t *call, const tt_block_t *block, uint32_t count,
                                const void *const *inits, int64_t lanes,
                                tt__ref_fold_t **out_fold) {
  tt__ref_fold_t *fold = (tt__ref_fold_t *)tt_alloc_zeroed(sizeof *fold);
  if (!fold) return tt__ref_no_memory(call->node);
  fold->call = *call;
  fold->block = block;
  fold->count = count;
  fold->lanes = lanes;
  fold->accumulators = (void **)tt_alloc_zeroed(sizeof(void *) * ((size_t)count + 1));
  fold->args = (void **)tt_alloc_zeroed(sizeof(void *) * (2 * (size_t)count + 1));
  tt_status_t status =
      fold->accumulators && fold->args ? fold_start(fold, inits) : tt__ref_no_memory(call->node);
  if (status) {
    tt__ref_fold_destroy(fold);
    return status;
  }
  *out_fold = fold;
  return TT_OK_STATUS;
}

// accumulator = accumulator op element, in the wide kind: nothing rounds before the end.
static void fold_single(tt__ref_fold_t *fold, const void *row) {
  tt_element_t chunk[TT__REF_CHUNK];
  tt_dtype_t dtype = fold->lane.in[0];
  size_t wide = tt_element_wide_size(tt_element_wide(dtype)), size = tt_dtype_size(dtype);
  for (int64_t at = 0; at < fold->lanes; at += TT__REF_CHUNK) {
    int64_t n = fold->lanes - at < TT__REF_CHUNK ? fold->lanes - at : TT__REF_CHUNK;
    tt_element_load(dtype, (const char *)row + (size_t)at * size, n, chunk);
    char *accumulator = (char *)fold->accumulators[0] + (size_t)at * wide;
    const void *const in[2] = {accumulator, chunk};
    fold->lane.apply(&fold->lane, n, in, accumulator);
  }
}

tt_status_t tt__ref_fold_row(tt__ref_fold_t *fold, const void *const *rows) {
  if (!fold->region) {
    fold_single(fold, rows[0]);
    return TT_OK_STATUS;
  }
  for (uint32_t i = 0; i < fold->count; i++) {
    fold->args[i] = fold->accumulators[i];
    fold->args[fold->count + i] = (void *)(uintptr_t)rows[i];
  }
  return tt__ref_region_run(fold->region, fold->lanes, (const void *const *)fold->args,
                            fold->accumulators);
}

static void fold_single_line(tt__ref_fold_t *fold, const void *row, int64_t length) {
  tt_element_t chunk[TT__REF_CHUNK];
  tt_dtype_t dtype = fold->lane.in[0];
  size_t wide = tt_element_wide_size(tt_element_wide(dtype)), size = tt_dtype_size(dtype);
  for (int64_t at = 0; at < length; at += TT__REF_CHUNK) {
    int64_t n = length - at < TT__REF_CHUNK ? length - at : TT__REF_CHUNK;
    tt_element_load(dtype, (const char *)row + (size_t)at * size, n, chunk);
    for (int64_t i = 0; i < n; i++) {
      const void *const in[2] = {fold->accumulators[0], (const char *)chunk + (size_t)i * wide};
      fold->lane.apply(&fold->lane, 1, in, fold->accumulators[0]);
    }
  }
}

tt_status_t tt__ref_fold_line(tt__ref_fold_t *fold, const void *const *rows, int64_t length) {
  if (!fold->region) {
    fold_single_line(fold, rows[0], length);
    return TT_OK_STATUS;
  }
  for (int64_t at = 0; at < length; at++) {
    for (uint32_t i = 0; i < fold->count; i++) {
      size_t size =
          tt_dtype_size(tt_graph_type(fold->call.graph, fold->block->args[fold->count + i])->dtype);
      fold->args[i] = fold->accumulators[i];
      fold->args[fold->count + i] = (char *)(uintptr_t)rows[i] + (size_t)at * size;
    }
    TT_RETURN_IF_ERROR(
        tt__ref_region_run(fold->region, 1, (const void *const *)fold->args, fold->accumulators));
  }
  return TT_OK_STATUS;
}

void tt__ref_fold_finish(tt__ref_fold_t *fold, void *const *results) {
  for (uint32_t i = 0; i < fold->count; i++) {
    tt_dtype_t dtype = tt_graph_type(fold->call.graph, fold->block->returns[i])->dtype;
    if (fold->region) {
      memcpy(results[i], fold->accumulators[i], tt_dtype_size(dtype) * (size_t)fold->lanes);
    } else {
      tt_element_store(dtype, fold->accumulators[i], fold->lanes, results[i]);
    }
  }
}

void tt__ref_fold_destroy(tt__ref_fold_t *fold) {
  if (!fold) return;
  for (uint32_t i = 0; fold->accumulators && i < fold->count; i++) tt_free(fold->accumulators[i]);
  tt_free(fold->accumulators);
  tt_free(fold->args);
  tt__ref_region_destroy(fold->region);
  tt_free(fold);
}
