// Control flow and calls: devices move together, those that take another path wait.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// A region without arguments, its returns straight into the node's results.
static tt_status_t run_branch(tt__ref_state_t *state, const bool *active, const tt_block_t *block,
                              void *const *const *results) {
  TT_CHECK(block->arg_count == 0);
  return tt__ref_block(state, active, block, NULL, results);
}

// Which region a device takes: `if` has the true branch first, an index out of range of `case`
// takes the last.
static uint32_t branch_index(const tt_node_t *node, const void *operand) {
  if (node->op == TT_OP_IF) return *(const uint8_t *)operand ? 0 : 1;
  int32_t index;
  memcpy(&index, operand, sizeof index);
  uint32_t last = (uint32_t)node->region_count - 1;
  return index < 0 || (uint32_t)index > last ? last : (uint32_t)index;
}

// Branches one after another, each for the devices that take it.
tt_status_t tt__ref_case(tt__ref_state_t *state, const bool *active, const tt_node_t *node,
                         const void *const *const *operands, void *const *const *results) {
  bool *taking = (bool *)tt_alloc(state->device_count);
  if (!taking) return tt__ref_no_memory(node);
  tt_status_t status = TT_OK_STATUS;
  for (uint32_t r = 0; !status && r < node->region_count; r++) {
    bool any = false;
    for (uint32_t d = 0; d < state->device_count; d++) {
      taking[d] = active[d] && branch_index(node, operands[d][0]) == r;
      any |= taking[d];
    }
    if (any) status = run_branch(state, taking, node->regions[r], results);
  }
  tt_free(taking);
  return status;
}

tt_status_t tt__ref_composite(tt__ref_state_t *state, const bool *active, const tt_node_t *node,
                              const void *const *const *operands, void *const *const *results) {
  if (node->region_count != 1) {
    return tt__ref_unimplemented(state->graph, node, "a composite without its decomposition");
  }
  return tt__ref_block(state, active, node->regions[0], operands, results);
}

// The carried values live in `results`; the body writes a second set, which is copied back: it
// reads its arguments until its end.
typedef struct loop_s {
  uint32_t device_count, value_count;
  bool *going;
  uint8_t *predicates;
  void **next;              // [device * value_count + value], owned
  void *const **next_rows;  // [device] into `next`
  void **predicate_slots;   // [device]
  void *const **predicate_rows;
} loop_t;

static void loop_deinit(loop_t *loop) {
  for (size_t i = 0; loop->next && i < (size_t)loop->device_count * loop->value_count; i++) {
    tt_free(loop->next[i]);
  }
  tt_free(loop->next);
  tt_free(loop->going);
  tt_free(loop->predicates);
  tt_free(loop->next_rows);
  tt_free(loop->predicate_slots);
  tt_free(loop->predicate_rows);
}

static tt_status_t loop_init(loop_t *loop, const tt__ref_state_t *state, const bool *active,
                             const tt_node_t *node) {
  size_t devices = state->device_count, values = node->operand_count;
  loop->device_count = state->device_count;
  loop->value_count = node->operand_count;
  loop->going = (bool *)tt_alloc(devices);
  loop->predicates = (uint8_t *)tt_alloc_zeroed(devices);
  loop->next = (void **)tt_alloc_zeroed(sizeof(void *) * (devices * values + 1));
  loop->next_rows = (void *const **)tt_alloc(sizeof(void **) * devices);
  loop->predicate_slots = (void **)tt_alloc(sizeof(void *) * devices);
  loop->predicate_rows = (void *const **)tt_alloc(sizeof(void **) * devices);
  if (!loop->going || !loop->predicates || !loop->next || !loop->next_rows ||
      !loop->predicate_slots || !loop->predicate_rows) {
    return tt__ref_no_memory(node);
  }
  memcpy(loop->going, active, devices);
  for (size_t d = 0; d < devices; d++) {
    loop->next_rows[d] = loop->next + d * values;
    loop->predicate_slots[d] = &loop->predicates[d];
    loop->predicate_rows[d] = &loop->predicate_slots[d];
    for (size_t i = 0; active[d] && i < values; i++) {
      void *buffer = tt_alloc(tt__ref_bytes(state->graph, node->operands[i]) + 1);
      if (!buffer) return tt__ref_no_memory(node);
      loop->next[d * values + i] = buffer;
    }
  }
  return TT_OK_STATUS;
}

// Drops the devices whose condition turned false; false when none goes on.
static bool loop_continues(loop_t *loop) {
  bool any = false;
  for (uint32_t d = 0; d < loop->device_count; d++) {
    loop->going[d] = loop->going[d] && loop->predicates[d];
    any |= loop->going[d];
  }
  return any;
}

static tt_status_t loop_run(loop_t *loop, tt__ref_state_t *state, const tt_node_t *node,
                            void *const *const *results) {
  // The body's arguments are the results' buffers, so a turn ends with a copy back.
  const void *const *const *args = (const void *const *const *)results;
  for (;;) {
    TT_RETURN_IF_ERROR(
        tt__ref_block(state, loop->going, node->regions[0], args, loop->predicate_rows));
    if (!loop_continues(loop)) return TT_OK_STATUS;
    TT_RETURN_IF_ERROR(tt__ref_block(state, loop->going, node->regions[1], args, loop->next_rows));
    for (uint32_t d = 0; d < loop->device_count; d++) {
      for (uint32_t i = 0; loop->going[d] && i < loop->value_count; i++) {
        memcpy(results[d][i], loop->next_rows[d][i],
               tt__ref_bytes(state->graph, node->operands[i]));
      }
    }
  }
}

tt_status_t tt__ref_while(tt__ref_state_t *state, const bool *active, const tt_node_t *node,
                          const void *const *const *operands, void *const *const *results) {
  loop_t loop = {0};
  tt_status_t status = loop_init(&loop, state, active, node);
  for (uint32_t d = 0; !status && d < state->device_count; d++) {
    for (uint32_t i = 0; active[d] && i < node->operand_count; i++) {
      memcpy(results[d][i], operands[d][i], tt__ref_bytes(state->graph, node->operands[i]));
    }
  }
  if (!status) status = loop_run(&loop, state, node, results);
  loop_deinit(&loop);
  return status;
}

tt_status_t tt__ref_identity(const tt__ref_call_t *call) {
  for (uint32_t i = 0; i < call->node->operand_count; i++) {
    memcpy(call->results[i], call->operands[i],
           tt__ref_bytes(call->graph, call->node->operands[i]));
  }
  return TT_OK_STATUS;
}

bool tt__ref_custom_call_known(const tt_graph_t *graph, const tt_node_t *node) {
  // Annotations of placement and sharding pass their operand on.
  static const char *const identities[] = {"Sharding", "SPMDFullToShardShape",
                                           "SPMDShardToFullShape", "annotate_device_placement"};
  const tt_attr_t *attr = tt_node_attr(node, TT_ATTR_CALL_TARGET_NAME);
  if (!attr || node->operand_count != 1 || node->result_count != 1 ||
      !tt_type_equal(tt_graph_type(graph, node->operands[0]),
                     tt_graph_type(graph, node->first_result))) {
    return false;
  }
  for (size_t i = 0; i < sizeof identities / sizeof *identities; i++) {
    if (strlen(identities[i]) == attr->count &&
        memcmp(identities[i], attr->u.string, attr->count) == 0) {
      return true;
    }
  }
  return false;
}

// No target but the annotations is known: a plan refuses the others when it is made, a graph run
// directly refuses here.
tt_status_t tt__ref_custom_call(const tt__ref_call_t *call) {
  if (tt__ref_custom_call_known(call->graph, call->node)) return tt__ref_identity(call);
  const tt_attr_t *attr = tt_node_attr(call->node, TT_ATTR_CALL_TARGET_NAME);
  return TT_ERROR(UNIMPLEMENTED, "custom_call: no target named \"%.*s\" on this device",
                  attr ? (int)attr->count : 0, attr ? attr->u.string : "");
}

tt_status_t tt__ref_get_dimension_size(const tt__ref_call_t *call) {
  int64_t dimension = tt_node_int(call->node, TT_ATTR_DIMENSION, 0);
  int32_t size = (int32_t)tt__ref_in(call, 0)->dims[dimension];
  memcpy(call->results[0], &size, sizeof size);
  return TT_OK_STATUS;
}

// Devices are numbered replica by replica (reference.h).
tt_status_t tt__ref_device_id(const tt__ref_call_t *call) {
  uint32_t partitions = call->graph->partition_count > 1 ? call->graph->partition_count : 1;
  uint32_t id =
      call->node->op == TT_OP_REPLICA_ID ? call->device / partitions : call->device % partitions;
  memcpy(call->results[0], &id, sizeof id);
  return TT_OK_STATUS;
}
