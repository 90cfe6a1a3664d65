// Dead code, in one backward sweep: `used` marks values somebody needs, and a node that is neither
// used nor has an effect goes. Keeps: order, and main's arguments.
#include "base/alloc.h"
#include "ir/internal.h"
#include "opt/opt.h"

// Also where the effect is inside a region: a loop that only prints must run.
static bool has_effect(const tt_node_t *node) {
  if (tt_op_infos[node->op].traits & TT_TRAIT_SIDE_EFFECT) {
    // A custom call says itself whether it has one.
    return node->op != TT_OP_CUSTOM_CALL || tt_node_int(node, TT_ATTR_HAS_SIDE_EFFECT, 0);
  }
  for (uint32_t r = 0; r < node->region_count; r++) {
    const tt_block_t *b = node->regions[r];
    for (uint32_t i = 0; i < b->node_count; i++) {
      if (has_effect(b->nodes[i])) return true;
    }
  }
  return false;
}

static bool is_used(const tt_node_t *node, const uint8_t *used) {
  for (uint32_t i = 0; i < node->result_count; i++) {
    if (used[node->first_result + i]) return true;
  }
  return false;
}

// Backwards, so that a user is seen before what it uses; a node's regions are swept when it is
// reached, since what they use of the values around them is defined above it. Survivors gather at
// the list's end and move to its front when the sweep is over.
static void sweep(tt_block_t *block, uint8_t *used) {
  for (uint32_t i = 0; i < block->return_count; i++) used[block->returns[i]] = 1;
  uint32_t kept = block->node_count;
  for (uint32_t i = block->node_count; i-- > 0;) {
    tt_node_t *node = block->nodes[i];
    if (!is_used(node, used) && !has_effect(node)) continue;
    for (uint32_t r = 0; r < node->region_count; r++) sweep(node->regions[r], used);
    for (uint32_t k = 0; k < node->operand_count; k++) used[node->operands[k]] = 1;
    block->nodes[--kept] = node;
  }
  uint32_t count = block->node_count - kept;
  for (uint32_t i = 0; kept && i < count; i++) block->nodes[i] = block->nodes[kept + i];
  block->node_count = count;
}

tt_status_t tt_dce(tt_graph_t *graph) {
  uint8_t few[512] = {0}, *used = few;
  if (graph->value_count > sizeof few) used = tt_alloc_zeroed(graph->value_count);
  if (!used) return tt__no_memory();
  sweep(graph->main, used);
  if (used != few) tt_free(used);
  return TT_OK_STATUS;
}
