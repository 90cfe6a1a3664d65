// The graph's grammar, checked: every rule holds, every use sees its definition.
#include <string.h>

#include "base/alloc.h"
#include "ir/internal.h"

typedef struct verifier_s {
  const tt_graph_t *graph;
  tt_arena_t scratch;
  uint8_t *visible;  // one a value: defined above in this block or one around it
  uint32_t depth;
} verifier_t;

static tt_status_t verify_block(verifier_t *v, const tt_block_t *block, const tt_block_t *parent);

// A value comes up once, where the value table says it does.
static tt_status_t define(verifier_t *v, tt_value_t value, const tt_node_t *node,
                          const tt_block_t *block, uint32_t index) {
  TT_CHECK(value < v->graph->value_count);
  const tt_value_info_t *info = &v->graph->values[value];
  if (info->node != node || info->block != block || info->index != index) {
    return TT_ERROR(INTERNAL, "internal: value %u does not know its definition; please report",
                    value);
  }
  if (v->visible[value]) {
    return TT_ERROR(INTERNAL, "internal: value %u is defined twice; please report", value);
  }
  v->visible[value] = 1;
  return tt__type_check(&info->type);
}

static tt_status_t check_uses(const verifier_t *v, const char *what, const tt_value_t *uses,
                              uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (uses[i] < v->graph->value_count && v->visible[uses[i]]) continue;
    return TT_ERROR(INTERNAL, "internal: %s uses value %u before its definition; please report",
                    what, uses[i]);
  }
  return TT_OK_STATUS;
}

// Runs the op's rule again with the types it once gave as those written: they must still agree. The
// scratch arena is emptied for every node.
static tt_status_t verify_rule(verifier_t *v, const tt_node_t *node) {
  tt_type_t few[4], *types = few;
  tt_arena_reset(&v->scratch);
  if (node->result_count > 4) types = TT_ARENA_ARRAY(&v->scratch, tt_type_t, node->result_count);
  if (!types) return tt__no_memory();
  for (uint32_t i = 0; i < node->result_count; i++) {
    types[i] = v->graph->values[node->first_result + i].type;
  }
  tt__infer_t c = {.arena = &v->scratch,
                   .graph = v->graph,
                   .node = node,
                   .given = types,
                   .given_count = node->result_count};
  return tt__infer(&c);
}

// Results become visible after the regions, which may not use them.
static tt_status_t verify_node(verifier_t *v, const tt_node_t *node, const tt_block_t *block) {
  TT_CHECK(node->op < TT_OP_COUNT && node->parent == block);
  const tt_op_info_t *info = &tt_op_infos[node->op];
  TT_CHECK(info->operands < 0 || node->operand_count == (uint32_t)info->operands);
  TT_CHECK(info->results < 0 || node->result_count == (uint32_t)info->results);
  TT_CHECK(info->regions < 0 || node->region_count == (uint32_t)info->regions);
  for (uint32_t i = 0; i < node->attr_count; i++) {
    const tt_attr_t *a = &node->attrs[i];
    TT_CHECK(a->key < TT_ATTR_COUNT && a->kind == tt_attr_kinds[a->key]);
    TT_CHECK(i == 0 || node->attrs[i - 1].key < a->key);
  }
  TT_RETURN_IF_ERROR(check_uses(v, info->text, node->operands, node->operand_count));
  for (uint32_t r = 0; r < node->region_count; r++) {
    TT_RETURN_IF_ERROR(verify_block(v, node->regions[r], block));
  }
  TT_RETURN_IF_ERROR(verify_rule(v, node));
  for (uint32_t i = 0; i < node->result_count; i++) {
    TT_RETURN_IF_ERROR(define(v, node->first_result + i, node, block, i));
  }
  return TT_OK_STATUS;
}

// `visible` marks the values defined so far in this block and those around it: a use before its
// definition, or of another region's value, finds no mark.
static tt_status_t verify_block(verifier_t *v, const tt_block_t *block, const tt_block_t *parent) {
  TT_CHECK(block->parent == parent);
  if (++v->depth > 1000) return TT_ERROR(INTERNAL, "internal: regions are nested too deeply");
  for (uint32_t i = 0; i < block->arg_count; i++) {
    TT_RETURN_IF_ERROR(define(v, block->args[i], NULL, block, i));
  }
  for (uint32_t i = 0; i < block->node_count; i++) {
    TT_RETURN_IF_ERROR(verify_node(v, block->nodes[i], block));
  }
  TT_RETURN_IF_ERROR(check_uses(v, "a return", block->returns, block->return_count));
  if (parent) {  // what a region defines cannot be seen outside
    for (uint32_t i = 0; i < block->arg_count; i++) v->visible[block->args[i]] = 0;
    for (uint32_t i = 0; i < block->node_count; i++) {
      const tt_node_t *node = block->nodes[i];
      memset(v->visible + node->first_result, 0, node->result_count);
    }
  }
  v->depth--;
  return TT_OK_STATUS;
}

// An argument that shares an output's memory must have its type, and no other may share it, too.
static tt_status_t verify_donations(const tt_graph_t *g) {
  for (uint32_t i = 0; i < g->main->arg_count; i++) {
    int32_t d = g->donations[i];
    if (d <= 0) continue;
    if ((uint32_t)d > g->main->return_count) {
      return TT_ERROR(INVALID_ARGUMENT, "argument %u aliases output %d of %u", i, d - 1,
                      g->main->return_count);
    }
    if (!tt_type_equal(tt_graph_type(g, g->main->args[i]),
                       tt_graph_type(g, g->main->returns[d - 1]))) {
      return TT_ERROR(INVALID_ARGUMENT, "argument %u aliases output %d of another type", i, d - 1);
    }
    for (uint32_t k = 0; k < i; k++) {
      if (g->donations[k] != d) continue;
      return TT_ERROR(INVALID_ARGUMENT, "arguments %u and %u alias output %d", k, i, d - 1);
    }
  }
  return TT_OK_STATUS;
}

tt_status_t tt_graph_verify(const tt_graph_t *graph) {
  verifier_t v = {.graph = graph};
  v.visible = tt_alloc_zeroed(graph->value_count);
  if (!v.visible) return tt__no_memory();
  tt_arena_init(&v.scratch, 4096);
  tt_status_t s = verify_block(&v, graph->main, NULL);
  if (!s) s = verify_donations(graph);
  tt_arena_deinit(&v.scratch);
  tt_free(v.visible);
  return s;
}
