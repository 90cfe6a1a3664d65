// Collectives: all devices are here, so each result is computed from the others' operands.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// How replica_groups name devices (the specification's process groups).
typedef enum naming_e {
  CROSS_REPLICA,
  CROSS_PARTITION,
  CROSS_REPLICA_AND_PARTITION,
  FLATTENED_IDS,
} naming_t;

typedef struct group_s {
  uint32_t *devices;  // [device_count], the first `count` are the group in its order
  uint32_t count;     // 0: the device is in no group
  uint32_t position;  // of the asking device
} group_t;

static uint32_t partition_count(const tt__ref_state_t *state) {
  return state->graph->partition_count > 1 ? state->graph->partition_count : 1;
}

// The specification's table: reductions and gathers by channel_id and use_global_device_ids, the
// others by channel_id alone.
static naming_t node_naming(const tt_node_t *node) {
  bool channel = tt_node_int(node, TT_ATTR_CHANNEL_ID, 0) > 0;
  switch (node->op) {
    case TT_OP_ALL_REDUCE:
    case TT_OP_ALL_GATHER:
    case TT_OP_REDUCE_SCATTER:
      if (tt_node_int(node, TT_ATTR_USE_GLOBAL_DEVICE_IDS, 0)) return FLATTENED_IDS;
      return channel ? CROSS_REPLICA_AND_PARTITION : CROSS_REPLICA;
    default:
      return channel ? CROSS_PARTITION : CROSS_REPLICA;
  }
}

// What a device is called in replica_groups.
static uint32_t device_name(const tt__ref_state_t *state, naming_t naming, uint32_t device) {
  uint32_t partitions = partition_count(state);
  if (naming == FLATTENED_IDS) return device;
  return naming == CROSS_PARTITION ? device % partitions : device / partitions;
}

// Whether two devices may share a group: all but one coordinate agree.
static bool devices_meet(const tt__ref_state_t *state, naming_t naming, uint32_t a, uint32_t b) {
  uint32_t partitions = partition_count(state);
  if (naming == CROSS_REPLICA) return a % partitions == b % partitions;
  if (naming == CROSS_PARTITION) return a / partitions == b / partitions;
  return true;
}

// Adds the devices called `name` that meet `device`, in device order.
static void group_add(const tt__ref_state_t *state, naming_t naming, uint32_t device, int64_t name,
                      uint32_t only_partition, group_t *group) {
  uint32_t partitions = partition_count(state);
  for (uint32_t d = 0; d < state->device_count; d++) {
    if ((int64_t)device_name(state, naming, d) != name) continue;
    if (!devices_meet(state, naming, device, d)) continue;
    if (only_partition != UINT32_MAX && d % partitions != only_partition) continue;
    if (d == device) group->position = group->count;
    group->devices[group->count++] = d;
  }
}

// The group in the order that the specification gives it: by partition first where replicas of all
// partitions meet.
static void group_fill(const tt__ref_state_t *state, naming_t naming, uint32_t device,
                       const int64_t *names, uint32_t count, group_t *group) {
  if (naming != CROSS_REPLICA_AND_PARTITION) {
    for (uint32_t i = 0; i < count; i++) {
      group_add(state, naming, device, names[i], UINT32_MAX, group);
    }
    return;
  }
  for (uint32_t p = 0; p < partition_count(state); p++) {
    for (uint32_t i = 0; i < count; i++) group_add(state, naming, device, names[i], p, group);
  }
}

// The group of `device`; without replica_groups all devices that meet are one.
static void group_find(const tt__ref_state_t *state, const tt_node_t *node, uint32_t device,
                       group_t *group) {
  naming_t naming = node_naming(node);
  uint32_t count;
  const int64_t *names = tt_node_ints(node, TT_ATTR_REPLICA_GROUPS, &count);
  uint32_t columns = (uint32_t)tt_node_int(node, TT_ATTR_REPLICA_GROUP_SIZE, count);
  group->count = group->position = 0;
  if (count == 0) {
    for (uint32_t d = 0; d < state->device_count; d++) {
      if (!devices_meet(state, naming, device, d)) continue;
      if (d == device) group->position = group->count;
      group->devices[group->count++] = d;
    }
    return;
  }
  for (uint32_t row = 0; columns && row < count / columns; row++) {
    for (uint32_t i = 0; i < columns; i++) {
      if (names[row * columns + i] == (int64_t)device_name(state, naming, device)) {
        group_fill(state, naming, device, names + row * columns, columns, group);
        return;
      }
    }
  }
}

// Computes one device's results.
typedef tt_status_t (*device_fn_t)(tt__ref_state_t *state, const tt_node_t *node, uint32_t device,
                                   const group_t *group, const void *const *const *operands,
                                   void *const *results);

static tt_status_t for_devices(tt__ref_state_t *state, const bool *active, const tt_node_t *node,
                               const void *const *const *operands, void *const *const *results,
                               device_fn_t fn) {
  group_t group = {.devices = (uint32_t *)tt_alloc(sizeof(uint32_t) * state->device_count)};
  if (!group.devices) return tt__ref_no_memory(node);
  tt_status_t status = TT_OK_STATUS;
  for (uint32_t d = 0; !status && d < state->device_count; d++) {
    if (!active[d]) continue;
    group_find(state, node, d, &group);
    for (uint32_t i = 0; !status && i < group.count; i++) {
      if (!active[group.devices[i]]) {
        status = TT_ERROR(INVALID_ARGUMENT, "%s: device %u of its group does not reach it",
                          tt_op_infos[node->op].text, group.devices[i]);
      }
    }
    if (!status) status = fn(state, node, d, &group, operands, results[d]);
  }
  tt_free(group.devices);
  return status;
}

static const tt_type_t *operand_type(const tt__ref_state_t *state, const tt_node_t *node,
                                     uint32_t i) {
  return tt_graph_type(state->graph, node->operands[i]);
}

static const tt_type_t *result_type(const tt__ref_state_t *state, const tt_node_t *node,
                                    uint32_t i) {
  return tt_graph_type(state->graph, node->first_result + i);
}

// Copies a box of dims `box` that starts at from_start along dimension d of `from` to to_start
// along dimension e of `to`.
static void copy_box(const int64_t *box, const tt_type_t *from_type, const void *from, int64_t d,
                     int64_t from_start, const tt_type_t *to_type, void *to, int64_t e,
                     int64_t to_start) {
  int64_t from_strides[TT__REF_MAX_RANK], to_strides[TT__REF_MAX_RANK];
  size_t size = tt_dtype_size(from_type->dtype);
  tt__ref_strides(from_type, from_strides);
  tt__ref_strides(to_type, to_strides);
  tt__ref_copy(size, from_type->rank, box, (char *)to + (size_t)(to_start * to_strides[e]) * size,
               to_strides, (const char *)from + (size_t)(from_start * from_strides[d]) * size,
               from_strides);
}

// Shapes were checked without the group's size, which is known only here.
static tt_status_t check_size(const tt_node_t *node, int64_t have, int64_t parts, int64_t want) {
  if (have == parts * want) return TT_OK_STATUS;
  return TT_ERROR(INVALID_ARGUMENT, "%s: a dimension of %lld does not hold %lld parts of %lld",
                  tt_op_infos[node->op].text, (long long)have, (long long)parts, (long long)want);
}

// The group's operands combined in its order into `sum`, of the operand's type: every member adds
// in the same order and gets the same bits. A device in no group keeps its own.
static tt_status_t reduce_group(tt__ref_state_t *state, const tt_node_t *node, uint32_t device,
                                const group_t *group, uint32_t operand,
                                const void *const *const *operands, void *sum) {
  const tt_type_t *type = operand_type(state, node, operand);
  const void *const own[1] = {operands[device][operand]};
  tt__ref_call_t call = {state, device, state->graph, node, own, NULL};
  tt__ref_region_t *region = NULL;
  TT_RETURN_IF_ERROR(tt__ref_region_create(&call, node->regions[0], &region));
  uint32_t first = group->count ? group->devices[0] : device;
  memcpy(sum, operands[first][operand], tt_type_bytes(type));
  tt_status_t status = TT_OK_STATUS;
  for (uint32_t i = 1; !status && i < group->count; i++) {
    const void *args[2] = {sum, operands[group->devices[i]][operand]};
    void *outs[1] = {sum};
    status = tt__ref_region_run(region, tt_type_elements(type), args, outs);
  }
  tt__ref_region_destroy(region);
  return status;
}

static tt_status_t all_reduce_on(tt__ref_state_t *state, const tt_node_t *node, uint32_t device,
                                 const group_t *group, const void *const *const *operands,
                                 void *const *results) {
  for (uint32_t i = 0; i < node->operand_count; i++) {
    TT_RETURN_IF_ERROR(reduce_group(state, node, device, group, i, operands, results[i]));
  }
  return TT_OK_STATUS;
}

static tt_status_t reduce_scatter_on(tt__ref_state_t *state, const tt_node_t *node, uint32_t device,
                                     const group_t *group, const void *const *const *operands,
                                     void *const *results) {
  const tt_type_t *in = operand_type(state, node, 0), *out = result_type(state, node, 0);
  int64_t dimension = tt_node_int(node, TT_ATTR_SCATTER_DIMENSION, 0);
  TT_RETURN_IF_ERROR(check_size(node, in->dims[dimension], group->count, out->dims[dimension]));
  void *sum = tt_alloc(tt_type_bytes(in) + 1);
  if (!sum) return tt__ref_no_memory(node);
  tt_status_t status = reduce_group(state, node, device, group, 0, operands, sum);
  if (!status) {
    copy_box(out->dims, in, sum, dimension, group->position * out->dims[dimension], out, results[0],
             dimension, 0);
  }
  tt_free(sum);
  return status;
}

static tt_status_t all_gather_on(tt__ref_state_t *state, const tt_node_t *node, uint32_t device,
                                 const group_t *group, const void *const *const *operands,
                                 void *const *results) {
  (void)device;
  int64_t dimension = tt_node_int(node, TT_ATTR_ALL_GATHER_DIM, 0);
  for (uint32_t i = 0; i < node->operand_count; i++) {
    const tt_type_t *in = operand_type(state, node, i), *out = result_type(state, node, i);
    TT_RETURN_IF_ERROR(check_size(node, out->dims[dimension], group->count, in->dims[dimension]));
    for (uint32_t g = 0; g < group->count; g++) {
      copy_box(in->dims, in, operands[group->devices[g]][i], dimension, 0, out, results[i],
               dimension, g * in->dims[dimension]);
    }
  }
  return TT_OK_STATUS;
}

static tt_status_t all_to_all_on(tt__ref_state_t *state, const tt_node_t *node, uint32_t device,
                                 const group_t *group, const void *const *const *operands,
                                 void *const *results) {
  (void)device;
  int64_t split = tt_node_int(node, TT_ATTR_SPLIT_DIMENSION, 0);
  int64_t concat = tt_node_int(node, TT_ATTR_CONCAT_DIMENSION, 0);
  int64_t parts = tt_node_int(node, TT_ATTR_SPLIT_COUNT, group->count);
  for (uint32_t i = 0; i < node->operand_count; i++) {
    const tt_type_t *in = operand_type(state, node, i), *out = result_type(state, node, i);
    int64_t box[TT__REF_MAX_RANK];
    memcpy(box, in->dims, sizeof(int64_t) * in->rank);
    box[split] /= parts;
    TT_RETURN_IF_ERROR(check_size(node, in->dims[split], group->count, box[split]));
    for (uint32_t g = 0; g < group->count; g++) {
      copy_box(box, in, operands[group->devices[g]][i], split, group->position * box[split], out,
               results[i], concat, g * box[concat]);
    }
  }
  return TT_OK_STATUS;
}

// Who is nobody's target gets zeros.
static tt_status_t permute_on(tt__ref_state_t *state, const tt_node_t *node, uint32_t device,
                              const group_t *group, const void *const *const *operands,
                              void *const *results) {
  (void)group;
  naming_t naming = node_naming(node);
  uint32_t count;
  const int64_t *pairs = tt_node_ints(node, TT_ATTR_SOURCE_TARGET_PAIRS, &count);
  size_t bytes = tt_type_bytes(operand_type(state, node, 0));
  memset(results[0], 0, bytes);
  for (uint32_t i = 0; i + 1 < count; i += 2) {
    if (pairs[i + 1] != (int64_t)device_name(state, naming, device)) continue;
    for (uint32_t d = 0; d < state->device_count; d++) {
      if ((int64_t)device_name(state, naming, d) == pairs[i] &&
          devices_meet(state, naming, device, d) && operands[d]) {
        memcpy(results[0], operands[d][0], bytes);
      }
    }
  }
  return TT_OK_STATUS;
}

static tt_status_t broadcast_on(tt__ref_state_t *state, const tt_node_t *node, uint32_t device,
                                const group_t *group, const void *const *const *operands,
                                void *const *results) {
  (void)device;
  size_t bytes = tt_type_bytes(operand_type(state, node, 0));
  if (group->count) {
    memcpy(results[0], operands[group->devices[0]][0], bytes);
  } else {
    memset(results[0], 0, bytes);
  }
  return TT_OK_STATUS;
}

#define COLLECTIVE(name, fn)                                                                    \
  tt_status_t tt__ref_##name(tt__ref_state_t *state, const bool *active, const tt_node_t *node, \
                             const void *const *const *operands, void *const *const *results) { \
    return for_devices(state, active, node, operands, results, fn);                             \
  }
COLLECTIVE(all_reduce, all_reduce_on)
COLLECTIVE(all_gather, all_gather_on)
COLLECTIVE(reduce_scatter, reduce_scatter_on)
COLLECTIVE(all_to_all, all_to_all_on)
COLLECTIVE(collective_permute, permute_on)
COLLECTIVE(collective_broadcast, broadcast_on)
