// The executor's skeleton: dispatch, lifetimes of values, blocks. A run interprets main node by
// node for all devices at once; a value is allocated when its node runs and freed after its last
// use, which an analysis beforehand has found.
#include "softtpu/reference.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

static const tt__ref_kernel_t kernels[TT_OP_COUNT] = {
#define KERNEL(op, name) [TT_OP_##op] = tt__ref_##name,
    TT__REF_KERNELS(KERNEL)
#undef KERNEL
};

static const tt__ref_group_kernel_t group_kernels[TT_OP_COUNT] = {
#define KERNEL(op, name) [TT_OP_##op] = tt__ref_##name,
    TT__REF_GROUP_KERNELS(KERNEL)
#undef KERNEL
};

// As many operand types as fit 256 characters.
tt_status_t tt__ref_unimplemented(const tt_graph_t *graph, const tt_node_t *node,
                                  const char *what) {
  char text[256] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < node->operand_count && used + 80 < sizeof text; i++) {
    if (i) used += (size_t)snprintf(text + used, sizeof text - used, ", ");
    int n = tt_type_format(tt_graph_type(graph, node->operands[i]), text + used, 72);
    used += n < 72 ? (size_t)n : 71;
  }
  return TT_ERROR(UNIMPLEMENTED, "%s: %s (operands: %s)", tt_op_infos[node->op].text, what, text);
}

tt_status_t tt__ref_no_memory(const tt_node_t *node) {
  return TT_ERROR(OUT_OF_MEMORY, "%s: out of host memory", tt_op_infos[node->op].text);
}

// ---- which values die where

// The node of `path` (nodes around the current one, outermost first) that sits in `block`.
static const tt_node_t *path_node(const tt_node_t *const *path, uint32_t depth,
                                  const tt_block_t *block) {
  for (uint32_t i = 0; i < depth; i++) {
    if (path[i]->parent == block) return path[i];
  }
  return NULL;
}

// Regions inside regions; the parser does not go deeper either.
enum { MAX_DEPTH = 128 };

// Last uses, found in program order: the last one written wins. A use inside a region counts as a
// use by the node of the value's own block that holds the region, since a loop may come back to it.
typedef struct walk_s {
  const tt_graph_t *graph;
  const tt_node_t **last_use;  // [value]
  const tt_node_t *path[MAX_DEPTH];
} walk_t;

static void walk_use(walk_t *walk, uint32_t depth, tt_value_t value) {
  const tt_node_t *node = path_node(walk->path, depth, walk->graph->values[value].block);
  if (node) walk->last_use[value] = node;
}

static tt_status_t walk_block(walk_t *walk, uint32_t depth, const tt_block_t *block) {
  if (depth >= MAX_DEPTH) {
    return TT_ERROR(UNIMPLEMENTED, "regions nested deeper than %d", (int)MAX_DEPTH);
  }
  for (uint32_t i = 0; i < block->node_count; i++) {
    const tt_node_t *node = block->nodes[i];
    walk->path[depth] = node;
    for (uint32_t r = 0; r < node->result_count; r++) {
      walk->last_use[node->first_result + r] = node;
    }
    for (uint32_t o = 0; o < node->operand_count; o++) walk_use(walk, depth + 1, node->operands[o]);
    for (uint32_t r = 0; r < node->region_count; r++) {
      TT_RETURN_IF_ERROR(walk_block(walk, depth + 1, node->regions[r]));
    }
  }
  for (uint32_t i = 0; i < block->return_count; i++) {
    if (walk->graph->values[block->returns[i]].block == block) {
      walk->last_use[block->returns[i]] = NULL;  // lives until the block ends
    } else {
      walk_use(walk, depth, block->returns[i]);
    }
  }
  return TT_OK_STATUS;
}

// Fills dead_head and dead_next from the last uses.
static void chain_dead(tt__ref_state_t *state, const tt_node_t *const *last_use) {
  uint32_t count = state->graph->value_count;
  memset(state->dead_head, 0xff, sizeof(tt_value_t) * count);
  for (tt_value_t v = 0; v < count; v++) {
    const tt_node_t *node = last_use[v];
    if (!node || node->result_count == 0 || !state->graph->values[v].node) continue;
    state->dead_next[v] = state->dead_head[node->first_result];
    state->dead_head[node->first_result] = v;
  }
}

static void state_destroy(tt__ref_state_t *state) {
  if (!state) return;
  for (uint32_t d = 0; state->values && d < state->device_count; d++) tt_free(state->values[d]);
  tt_free(state->values);
  tt_free(state->dead_head);
  tt_free(state->dead_next);
  tt_free(state);
}

static tt_status_t state_analyse(tt__ref_state_t *state) {
  uint32_t count = state->graph->value_count;
  size_t size = sizeof(tt_value_t) * ((size_t)count + 1);
  state->dead_head = (tt_value_t *)tt_alloc(size);
  state->dead_next = (tt_value_t *)tt_alloc(size);
  walk_t *walk = (walk_t *)tt_alloc_zeroed(sizeof(walk_t));
  const tt_node_t **last_use =
      (const tt_node_t **)tt_alloc_zeroed(sizeof(tt_node_t *) * ((size_t)count + 1));
  tt_status_t status;
  if (!state->dead_head || !state->dead_next || !walk || !last_use) {
    status = TT_ERROR(OUT_OF_MEMORY, "out of host memory for %u values", count);
  } else {
    walk->graph = state->graph;
    walk->last_use = last_use;
    status = walk_block(walk, 0, state->graph->main);
    if (!status) chain_dead(state, last_use);
  }
  tt_free(last_use);
  tt_free(walk);
  return status;
}

static tt_status_t check_ranks(const tt_graph_t *graph) {
  for (uint32_t v = 0; v < graph->value_count; v++) {
    if (graph->values[v].type.rank > TT__REF_MAX_RANK) {
      return TT_ERROR(UNIMPLEMENTED, "a tensor of rank %u; the reference executor takes %d",
                      graph->values[v].type.rank, (int)TT__REF_MAX_RANK);
    }
  }
  return TT_OK_STATUS;
}

static tt_status_t state_create(const tt_graph_t *graph, uint32_t device_count,
                                tt__ref_state_t **out_state) {
  TT_RETURN_IF_ERROR(check_ranks(graph));
  tt__ref_state_t *state = (tt__ref_state_t *)tt_alloc_zeroed(sizeof *state);
  if (!state) return TT_ERROR(OUT_OF_MEMORY, "out of host memory");
  state->graph = graph;
  state->device_count = device_count;
  state->values = (void ***)tt_alloc_zeroed(sizeof(void **) * device_count);
  bool ok = state->values != NULL;
  for (uint32_t d = 0; ok && d < device_count; d++) {
    state->values[d] = (void **)tt_alloc_zeroed(sizeof(void *) * ((size_t)graph->value_count + 1));
    ok = state->values[d] != NULL;
  }
  tt_status_t status = ok ? state_analyse(state) : TT_ERROR(OUT_OF_MEMORY, "out of host memory");
  if (status) {
    state_destroy(state);
    return status;
  }
  *out_state = state;
  return TT_OK_STATUS;
}

// ---- evaluation

// A node's kernel on one device; elementwise nodes share one.
static tt_status_t run_node_on(tt__ref_state_t *state, uint32_t device, const tt_node_t *node,
                               const void *const *operands, void *const *results) {
  tt__ref_call_t call = {state, device, state->graph, node, operands, results};
  tt__ref_kernel_t kernel = kernels[node->op];
  if (!kernel && tt__ref_lane_can(node)) kernel = tt__ref_elementwise;
  if (!kernel) return tt__ref_unimplemented(state->graph, node, "no reference kernel");
  return kernel(&call);
}

// Inactive devices are in another branch or have left the loop: nothing of theirs is touched.
static tt_status_t dispatch(tt__ref_state_t *state, const bool *active, const tt_node_t *node,
                            const void *const *const *operands, void *const *const *results) {
  if (group_kernels[node->op]) {
    return group_kernels[node->op](state, active, node, operands, results);
  }
  for (uint32_t d = 0; d < state->device_count; d++) {
    if (active[d]) TT_RETURN_IF_ERROR(run_node_on(state, d, node, operands[d], results[d]));
  }
  return TT_OK_STATUS;
}

// One byte more, so that empty tensors have an address, too.
static tt_status_t allocate_results(tt__ref_state_t *state, const bool *active,
                                    const tt_node_t *node) {
  for (uint32_t d = 0; d < state->device_count; d++) {
    for (uint32_t r = 0; active[d] && r < node->result_count; r++) {
      tt_value_t value = node->first_result + r;
      state->values[d][value] = tt_alloc(tt__ref_bytes(state->graph, value) + 1);
      if (!state->values[d][value]) return tt__ref_no_memory(node);
    }
  }
  return TT_OK_STATUS;
}

// Evaluates a node into freshly made values of the active devices.
static tt_status_t run_node(tt__ref_state_t *state, const bool *active, const tt_node_t *node) {
  size_t per_device = (size_t)node->operand_count + node->result_count;
  size_t slots = state->device_count * (per_device + 2) + 1;
  void **table = (void **)tt_alloc_zeroed(sizeof(void *) * slots);
  if (!table) return tt__ref_no_memory(node);
  const void *const **operands = (const void *const **)table;
  void *const **results = (void *const **)table + state->device_count;
  void **next = table + 2 * (size_t)state->device_count;
  tt_status_t status = allocate_results(state, active, node);
  for (uint32_t d = 0; d < state->device_count; d++) {
    operands[d] = (const void *const *)next;
    for (uint32_t i = 0; i < node->operand_count; i++) {
      *next++ = state->values[d][node->operands[i]];
    }
    results[d] = next;
    for (uint32_t i = 0; i < node->result_count; i++) {
      *next++ = state->values[d][node->first_result + i];
    }
  }
  if (!status) status = dispatch(state, active, node, operands, results);
  tt_free(table);
  return status;
}

static void free_value(tt__ref_state_t *state, tt_value_t value) {
  for (uint32_t d = 0; d < state->device_count; d++) {
    tt_free(state->values[d][value]);
    state->values[d][value] = NULL;
  }
}

// A node without results starts no chain: what it uses last lives until the block ends.
static void free_dead(tt__ref_state_t *state, const tt_node_t *node) {
  if (!state->dead_head || node->result_count == 0) return;
  tt_value_t value = state->dead_head[node->first_result];
  for (; value != TT_NO_VALUE; value = state->dead_next[value]) free_value(state, value);
}

static tt_status_t copy_returns(tt__ref_state_t *state, const bool *active, const tt_block_t *block,
                                void *const *const *outs) {
  for (uint32_t d = 0; d < state->device_count; d++) {
    for (uint32_t i = 0; active[d] && i < block->return_count; i++) {
      const void *from = state->values[d][block->returns[i]];
      TT_CHECK(from);
      memcpy(outs[d][i], from, tt__ref_bytes(state->graph, block->returns[i]));
    }
  }
  return TT_OK_STATUS;
}

// A block is entered by one set of devices at a time and never recursively, so its values' slots
// are free when it starts; those of inactive devices stay NULL.
tt_status_t tt__ref_block(tt__ref_state_t *state, const bool *active, const tt_block_t *block,
                          const void *const *const *args, void *const *const *outs) {
  for (uint32_t d = 0; d < state->device_count; d++) {
    for (uint32_t i = 0; active[d] && i < block->arg_count; i++) {
      state->values[d][block->args[i]] = (void *)(uintptr_t)args[d][i];
    }
  }
  tt_status_t status = TT_OK_STATUS;
  for (uint32_t i = 0; !status && i < block->node_count; i++) {
    status = run_node(state, active, block->nodes[i]);
    if (!status) free_dead(state, block->nodes[i]);
  }
  if (!status) status = copy_returns(state, active, block, outs);
  for (uint32_t i = 0; i < block->node_count; i++) {
    for (uint32_t r = 0; r < block->nodes[i]->result_count; r++) {
      free_value(state, block->nodes[i]->first_result + r);
    }
  }
  for (uint32_t d = 0; d < state->device_count; d++) {
    for (uint32_t i = 0; active[d] && i < block->arg_count; i++) {
      state->values[d][block->args[i]] = NULL;
    }
  }
  return status;
}

// ---- the public calls

tt_status_t tt_reference_run_replicas(const tt_graph_t *graph, uint32_t device_count,
                                      const void *const *const *inputs,
                                      void *const *const *outputs) {
  uint32_t expected = graph->replica_count * graph->partition_count;
  if (device_count == 0 || (expected > 1 && expected != device_count)) {
    return TT_ERROR(INVALID_ARGUMENT, "program of %u replicas x %u partitions run on %u devices",
                    graph->replica_count, graph->partition_count, device_count);
  }
  tt__ref_state_t *state = NULL;
  TT_RETURN_IF_ERROR(state_create(graph, device_count, &state));
  bool *active = (bool *)tt_alloc(device_count);
  tt_status_t status;
  if (!active) {
    status = TT_ERROR(OUT_OF_MEMORY, "out of host memory");
  } else {
    memset(active, 1, device_count);
    status = tt__ref_block(state, active, graph->main, inputs, outputs);
  }
  tt_free(active);
  state_destroy(state);
  return status;
}

tt_status_t tt_reference_run(const tt_graph_t *graph, const void *const *inputs,
                             void *const *outputs) {
  tt__ref_state_t *state = NULL;
  TT_RETURN_IF_ERROR(state_create(graph, 1, &state));
  const bool active[1] = {true};
  tt_status_t status = tt__ref_block(state, active, graph->main, &inputs, &outputs);
  state_destroy(state);
  return status;
}

tt_status_t tt_reference_env_create(const tt_graph_t *graph, tt_reference_env_t **out_env) {
  tt__ref_state_t *state = NULL;
  TT_RETURN_IF_ERROR(state_create(graph, 1, &state));
  tt_reference_env_t *env = (tt_reference_env_t *)tt_alloc_zeroed(sizeof *env);
  if (!env) {
    state_destroy(state);
    return TT_ERROR(OUT_OF_MEMORY, "out of host memory");
  }
  env->graph = graph;
  env->state = state;
  env->values = state->values[0];
  *out_env = env;
  return TT_OK_STATUS;
}

void tt_reference_env_destroy(tt_reference_env_t *env) {
  if (!env) return;
  state_destroy(env->state);
  tt_free(env);
}

typedef struct captures_s {
  const tt_graph_t *graph;
  const tt_node_t *node;
  tt_value_t *out;
  uint32_t capacity, count;
} captures_t;

// Whether the block is one of the node's regions or in one.
static bool block_inside(const tt_block_t *block, const tt_node_t *node) {
  for (; block; block = block->parent) {
    for (uint32_t i = 0; i < node->region_count; i++) {
      if (node->regions[i] == block) return true;
    }
  }
  return false;
}

// Values past `capacity` are counted once a use, an upper bound.
static void capture(captures_t *captures, tt_value_t value) {
  if (block_inside(captures->graph->values[value].block, captures->node)) return;
  uint32_t known = captures->count < captures->capacity ? captures->count : captures->capacity;
  for (uint32_t i = 0; i < known; i++) {
    if (captures->out[i] == value) return;
  }
  if (captures->count < captures->capacity) captures->out[captures->count] = value;
  captures->count++;
}

static void capture_block(captures_t *captures, const tt_block_t *block) {
  for (uint32_t i = 0; i < block->node_count; i++) {
    const tt_node_t *node = block->nodes[i];
    for (uint32_t o = 0; o < node->operand_count; o++) capture(captures, node->operands[o]);
    for (uint32_t r = 0; r < node->region_count; r++) capture_block(captures, node->regions[r]);
  }
  for (uint32_t i = 0; i < block->return_count; i++) capture(captures, block->returns[i]);
}

uint32_t tt_reference_captures(const tt_graph_t *graph, const tt_node_t *node,
                               tt_value_t *out_values, uint32_t capacity) {
  captures_t captures = {graph, node, out_values, capacity, 0};
  for (uint32_t i = 0; i < node->region_count; i++) capture_block(&captures, node->regions[i]);
  return captures.count;
}

// Without an environment there is a state on the stack that has no values: nodes without regions
// look at none.
tt_status_t tt_reference_node(const tt_graph_t *graph, const tt_node_t *node,
                              tt_reference_env_t *env, const void *const *operands,
                              void *const *results) {
  const bool active[1] = {true};
  if (node->op == TT_OP_REPLICA_ID || node->op == TT_OP_PARTITION_ID) {
    uint32_t id = !env ? 0 : node->op == TT_OP_REPLICA_ID ? env->replica_id : env->partition_id;
    memcpy(results[0], &id, sizeof id);
    return TT_OK_STATUS;
  }
  if (env) return dispatch(env->state, active, node, &operands, &results);
  if (node->region_count) {
    return TT_ERROR(INVALID_ARGUMENT, "%s: a node with regions needs an environment",
                    tt_op_infos[node->op].text);
  }
  void **no_values = NULL;
  tt__ref_state_t state = {.graph = graph, .device_count = 1, .values = &no_values};
  return dispatch(&state, active, node, &operands, &results);
}
