// One walk in program order: a node's operands are replaced first, then the rule sees it, so a
// chain of rewrites along a data flow needs one round. Values are never renumbered; `map` says who
// stands for whom, and nodes that are replaced simply are not put back.
#include "opt/rewrite.h"

#include <string.h>

#include "base/alloc.h"

// Room for the values that have come up since; they stand for themselves and have no uses yet.
static bool reserve(tt__rewrite_t *rw) {
  uint32_t n = rw->graph->value_count;
  if (n <= rw->count) return true;
  if (!tt_grow((void **)&rw->map, &rw->map_capacity, n, sizeof *rw->map) ||
      !tt_grow((void **)&rw->uses, &rw->uses_capacity, n, sizeof *rw->uses)) {
    return false;
  }
  for (uint32_t v = rw->count; v < n; v++) rw->map[v] = v;
  memset(rw->uses + rw->count, 0, (n - rw->count) * sizeof *rw->uses);
  rw->count = n;
  return true;
}

static void count_node(tt__rewrite_t *rw, const tt_node_t *node);

static void count_block(tt__rewrite_t *rw, const tt_block_t *block) {
  for (uint32_t i = 0; i < block->node_count; i++) count_node(rw, block->nodes[i]);
  for (uint32_t i = 0; i < block->return_count; i++) rw->uses[block->returns[i]]++;
}

static void count_node(tt__rewrite_t *rw, const tt_node_t *node) {
  for (uint32_t i = 0; i < node->operand_count; i++) rw->uses[node->operands[i]]++;
  for (uint32_t i = 0; i < node->region_count; i++) count_block(rw, node->regions[i]);
}

static tt_status_t walk_block(tt__rewrite_t *rw, tt_block_t *block);

// Use counts follow: what replaces the node brings its own uses, the node's operands lose one each,
// and the replacement inherits the uses of the result.
static tt_status_t walk_node(tt__rewrite_t *rw, tt_block_t *block, tt_node_t *node) {
  tt_value_t few[8] = {0}, *out = few;
  for (uint32_t i = 0; i < node->operand_count; i++) {
    node->operands[i] = rw->map[node->operands[i]];
  }
  for (uint32_t i = 0; i < node->region_count; i++) {
    TT_RETURN_IF_ERROR(walk_block(rw, node->regions[i]));
  }
  if (node->result_count > 8)
    out = TT_ARENA_ARRAY(&rw->graph->arena, tt_value_t, node->result_count);
  if (!out) return tt__no_memory();
  uint32_t before = block->node_count;
  rw->build.block = block;
  bool replaced = rw->fn(rw, node, out);
  TT_RETURN_IF_ERROR(tt_build_finish(&rw->build));
  if (!replaced) return tt__block_push(rw->graph, block, node);
  rw->changed = true;
  if (!reserve(rw)) return tt__no_memory();
  for (uint32_t i = before; i < block->node_count; i++) count_node(rw, block->nodes[i]);
  for (uint32_t i = 0; i < node->operand_count; i++) rw->uses[node->operands[i]]--;
  for (uint32_t i = 0; i < node->result_count; i++) {
    rw->map[node->first_result + i] = out[i];
    rw->uses[out[i]] += rw->uses[node->first_result + i];
  }
  return TT_OK_STATUS;
}

// Pulls the nodes out and puts those that stay, and what replaces the others, back.
static tt_status_t walk_block(tt__rewrite_t *rw, tt_block_t *block) {
  uint32_t count = block->node_count;
  tt_node_t **nodes = tt_arena_copy(&rw->graph->arena, block->nodes, count * sizeof *nodes);
  if (!nodes) return tt__no_memory();
  block->node_count = 0;
  for (uint32_t i = 0; i < count; i++) TT_RETURN_IF_ERROR(walk_node(rw, block, nodes[i]));
  for (uint32_t i = 0; i < block->return_count; i++) {
    block->returns[i] = rw->map[block->returns[i]];
  }
  return TT_OK_STATUS;
}

tt_status_t tt__rewrite_run(tt_graph_t *graph, tt__rewrite_fn_t fn, bool *out_changed) {
  tt__rewrite_t rw = {.graph = graph, .build = tt_build_on(graph, graph->main), .fn = fn};
  tt_status_t s = reserve(&rw) ? TT_OK_STATUS : tt__no_memory();
  if (!s) {
    count_block(&rw, graph->main);
    s = walk_block(&rw, graph->main);
  }
  *out_changed = rw.changed;
  tt_free(rw.map);
  tt_free(rw.uses);
  return s;
}

// Looks through broadcasts and reshapes, which repeat or reorder equal elements.
const void *tt__rewrite_splat(const tt__rewrite_t *rw, tt_value_t v) {
  const tt_node_t *node = tt__rewrite_def(rw, v);
  while (node && (node->op == TT_OP_BROADCAST_IN_DIM || node->op == TT_OP_RESHAPE)) {
    node = tt__rewrite_def(rw, node->operands[0]);
  }
  if (!node || node->op != TT_OP_CONSTANT) return NULL;
  const tt_attr_t *value = tt_node_attr(node, TT_ATTR_VALUE);
  return value->count == tt_dtype_size(tt__rewrite_type(rw, v)->dtype) ? value->u.bytes : NULL;
}

tt_value_t tt__rewrite_scalar(const tt__rewrite_t *rw, tt_value_t v) {
  const tt_node_t *node = tt__rewrite_def(rw, v);
  while (node && (node->op == TT_OP_BROADCAST_IN_DIM || node->op == TT_OP_RESHAPE) &&
         tt__rewrite_type(rw, v)->rank != 0) {
    v = node->operands[0];
    node = tt__rewrite_def(rw, v);
  }
  return tt__rewrite_type(rw, v)->rank == 0 ? v : TT_NO_VALUE;
}
