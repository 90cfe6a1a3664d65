// Graphs: making, appending, asking. Append is the only way in, and it runs the op's rule: a graph
// that exists is valid. Node and operand list are one allocation, since most nodes have one or two
// operands and programs have thousands of nodes.
#include "ir/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ir/internal.h"

// ops.def's column letters.
enum {
  V = -1,
  E = TT_TRAIT_ELEMENTWISE,
  C = TT_TRAIT_COMMUTATIVE,
  S = TT_TRAIT_SIDE_EFFECT,
  L = TT_TRAIT_COLLECTIVE,
  T = TT_TRAIT_TYPED,
};

const tt_op_info_t tt_op_infos[TT_OP_COUNT] = {
#define OP(name, text, operands, results, regions, traits, infer) \
  {text, operands, results, regions, traits},
#include "ir/ops.def"
#undef OP
};

const char *const tt_attr_names[TT_ATTR_COUNT] = {
#define ATTR(name, text, kind) text,
#include "ir/attrs.def"
#undef ATTR
};

const uint8_t tt_attr_kinds[TT_ATTR_COUNT] = {
#define ATTR(name, text, kind) TT_ATTR_KIND_##kind,
#include "ir/attrs.def"
#undef ATTR
};

// The one message for it, whatever part of a program did not fit.
tt_status_t tt__no_memory(void) {
  return TT_ERROR(OUT_OF_MEMORY, "out of host memory for a program");
}

// Doubles; the old array stays in the arena until the graph dies, so pointers into it stay readable
// but stale. Together the old ones are smaller than the new one.
bool tt__arena_grow(tt_arena_t *arena, void **array, uint32_t *capacity, uint32_t count,
                    uint32_t wanted, size_t element_size) {
  if (wanted <= *capacity) return true;
  uint32_t grown = *capacity ? *capacity : 8;
  while (grown < wanted) {
    if (grown > UINT32_MAX / 2) return false;
    grown *= 2;
  }
  void *fresh = tt_arena_alloc(arena, grown * element_size);
  if (!fresh) return false;
  if (count) memcpy(fresh, *array, count * element_size);
  *array = fresh;
  *capacity = grown;
  return true;
}

tt_status_t tt_graph_create(const char *name, tt_graph_t **out_graph) {
  *out_graph = NULL;
  tt_graph_t *g = tt_alloc_zeroed(sizeof *g);
  if (!g) return tt__no_memory();
  tt_arena_init(&g->arena, 2048);
  if (!name) name = "main";
  g->name = tt_arena_string(&g->arena, name, strlen(name));
  g->main = tt_arena_zeroed(&g->arena, sizeof *g->main);
  g->locations = tt_arena_zeroed(&g->arena, sizeof *g->locations);
  if (!g->name || !g->main || !g->locations) {
    tt_graph_destroy(g);
    return tt__no_memory();
  }
  g->location_count = g->location_capacity = 1;
  g->replica_count = g->partition_count = 1;
  *out_graph = g;
  return TT_OK_STATUS;
}

void tt_graph_destroy(tt_graph_t *graph) {
  if (!graph) return;
  tt_arena_deinit(&graph->arena);
  tt_free(graph);
}

tt_status_t tt_graph_block(tt_graph_t *graph, tt_block_t *parent, tt_block_t **out_block) {
  tt_block_t *block = tt_arena_zeroed(&graph->arena, sizeof *block);
  *out_block = block;
  if (!block) return tt__no_memory();
  block->parent = parent;
  return TT_OK_STATUS;
}

tt_status_t tt__type_check(const tt_type_t *type) {
  if (type->dtype >= TT_DTYPE_COUNT) return TT_ERROR(TYPE, "a tensor type has no element type");
  if (type->rank > TT_MAX_RANK) {
    return TT_ERROR(INVALID_ARGUMENT, "a tensor of rank %u; at most %d is supported", type->rank,
                    TT_MAX_RANK);
  }
  // A zero anywhere makes the tensor empty: then the other dimensions may be as large as they like.
  int64_t bytes = (int64_t)tt_dtype_size(type->dtype);
  bool empty = false;
  for (uint32_t i = 0; i < type->rank; i++) {
    if (type->dims[i] < 0) {
      return TT_ERROR(INVALID_ARGUMENT, "dimension %u of a tensor is negative (%lld)", i,
                      (long long)type->dims[i]);
    }
    empty |= type->dims[i] == 0;
  }
  for (uint32_t i = 0; i < type->rank && !empty; i++) {
    if (__builtin_mul_overflow(bytes, type->dims[i], &bytes)) {
      return TT_ERROR(INVALID_ARGUMENT, "a tensor's size in bytes overflows 64 bits");
    }
  }
  return TT_OK_STATUS;
}

// Room for `count` more values.
static tt_status_t reserve_values(tt_graph_t *graph, uint32_t count) {
  uint32_t wanted;
  if (__builtin_add_overflow(graph->value_count, count, &wanted) || wanted == TT_NO_VALUE ||
      !tt__arena_grow(&graph->arena, (void **)&graph->values, &graph->value_capacity,
                      graph->value_count, wanted, sizeof *graph->values)) {
    return tt__no_memory();
  }
  return TT_OK_STATUS;
}

// Argument lists grow by doubling; their capacity is the count rounded up to a power of two.
static tt_status_t grow_arguments(tt_graph_t *graph, tt_block_t *block) {
  uint32_t n = block->arg_count;
  if (n != 0 && (n < 8 || (n & (n - 1)) != 0)) return TT_OK_STATUS;
  uint32_t wanted = n ? n * 2 : 8;
  tt_value_t *args = TT_ARENA_ARRAY(&graph->arena, tt_value_t, wanted);
  int32_t *donations = graph->donations;
  if (block == graph->main) {
    donations = tt_arena_zeroed(&graph->arena, wanted * sizeof *donations);
    if (donations && n) memcpy(donations, graph->donations, n * sizeof *donations);
  }
  if (!args || (block == graph->main && !donations)) return tt__no_memory();
  if (n) memcpy(args, block->args, n * sizeof *args);
  block->args = args;
  graph->donations = donations;
  return TT_OK_STATUS;
}

// Room first, then the value: a failure leaves the block without half an argument.
tt_status_t tt_graph_argument(tt_graph_t *graph, tt_block_t *block, tt_type_t type,
                              tt_value_t *out_value) {
  *out_value = TT_NO_VALUE;
  TT_RETURN_IF_ERROR(tt__type_check(&type));
  TT_RETURN_IF_ERROR(reserve_values(graph, 1));
  TT_RETURN_IF_ERROR(grow_arguments(graph, block));
  int64_t *dims = tt_arena_copy(&graph->arena, type.dims, type.rank * sizeof *dims);
  if (!dims) return tt__no_memory();
  tt_value_t v = graph->value_count++;
  graph->values[v] =
      (tt_value_info_t){{type.dtype, type.rank, dims}, NULL, block, block->arg_count};
  block->args[block->arg_count++] = v;
  *out_value = v;
  return TT_OK_STATUS;
}

// The payload into the arena; false without memory.
static bool copy_attr(tt_arena_t *arena, const tt_attr_t *from, tt_attr_t *to) {
  *to = *from;
  switch (from->kind) {
    case TT_ATTR_KIND_INTS:
      return (to->u.ints = tt_arena_copy(arena, from->u.ints, from->count * sizeof(int64_t)));
    case TT_ATTR_KIND_STRING:
      return (to->u.string = tt_arena_string(arena, from->u.string, from->count));
    case TT_ATTR_KIND_BYTES:
      return (to->u.bytes = tt_arena_copy(arena, from->u.bytes, from->count));
    default:
      return true;
  }
}

// Copies the attributes, sorted by key: an insertion sort, for lists of a handful.
static tt_status_t copy_attrs(tt_graph_t *graph, const tt_node_spec_t *spec, tt_node_t *node) {
  uint32_t n = spec->attr_count;
  node->attrs = NULL;
  node->attr_count = (uint16_t)n;
  if (n == 0) return TT_OK_STATUS;
  tt_attr_t *attrs = TT_ARENA_ARRAY(&graph->arena, tt_attr_t, n);
  if (!attrs) return tt__no_memory();
  for (uint32_t i = 0; i < n; i++) {
    const tt_attr_t *from = &spec->attrs[i];
    TT_CHECK(from->key < TT_ATTR_COUNT && from->kind == tt_attr_kinds[from->key]);
    uint32_t at = i;
    for (; at > 0 && attrs[at - 1].key > from->key; at--) attrs[at] = attrs[at - 1];
    if (!copy_attr(&graph->arena, from, &attrs[at])) return tt__no_memory();
    if (at > 0 && attrs[at - 1].key == from->key) {
      return TT_ERROR(INVALID_ARGUMENT, "%s: attribute %s is given twice",
                      tt_op_infos[spec->op].text, tt_attr_names[from->key]);
    }
  }
  node->attrs = attrs;
  return TT_OK_STATUS;
}

// What can be said without the op's rule. Wrong counts may come from a text and are the user's; a
// value that does not exist cannot.
static tt_status_t check_arity(const tt_graph_t *graph, const tt_node_spec_t *spec) {
  TT_CHECK(spec->op < TT_OP_COUNT);
  const tt_op_info_t *info = &tt_op_infos[spec->op];
  if (info->operands >= 0 && spec->operand_count != (uint32_t)info->operands) {
    return TT_ERROR(INVALID_ARGUMENT, "%s takes %d operands, got %u", info->text, info->operands,
                    spec->operand_count);
  }
  if (info->regions >= 0 && spec->region_count != (uint32_t)info->regions) {
    return TT_ERROR(INVALID_ARGUMENT, "%s takes %d regions, got %u", info->text, info->regions,
                    spec->region_count);
  }
  if (spec->operand_count > UINT16_MAX || spec->type_count > UINT16_MAX ||
      spec->region_count > UINT16_MAX) {
    return TT_ERROR(INVALID_ARGUMENT, "%s has more than 65535 operands, results or regions",
                    info->text);
  }
  for (uint32_t i = 0; i < spec->operand_count; i++) {
    TT_CHECK(spec->operands[i] < graph->value_count);
  }
  return TT_OK_STATUS;
}

tt_status_t tt__block_push(tt_graph_t *graph, tt_block_t *block, tt_node_t *node) {
  if (!tt__arena_grow(&graph->arena, (void **)&block->nodes, &block->node_capacity,
                      block->node_count, block->node_count + 1, sizeof *block->nodes)) {
    return tt__no_memory();
  }
  node->parent = block;
  block->nodes[block->node_count++] = node;
  return TT_OK_STATUS;
}

// The node, its operands and its regions are one allocation. Nothing is published before everything
// has succeeded: a failed append leaves the block and the values as they were, and only arena
// memory is spent.
tt_status_t tt_graph_append(tt_graph_t *graph, tt_block_t *block, const tt_node_spec_t *spec,
                            tt_value_t *out_first) {
  if (out_first) *out_first = TT_NO_VALUE;
  TT_RETURN_IF_ERROR(check_arity(graph, spec));
  size_t operand_bytes = spec->operand_count * sizeof(tt_value_t);
  size_t head = sizeof(tt_node_t) + tt_align_up(operand_bytes, 8);
  char *memory = tt_arena_alloc(&graph->arena, head + spec->region_count * sizeof(tt_block_t *));
  if (!memory) return tt__no_memory();
  tt_node_t *node = (tt_node_t *)(void *)memory;
  memset(node, 0, sizeof *node);
  node->op = (uint16_t)spec->op;
  node->operand_count = (uint16_t)spec->operand_count;
  node->region_count = (uint16_t)spec->region_count;
  node->operands = (tt_value_t *)(void *)(memory + sizeof(tt_node_t));
  node->regions = (tt_block_t **)(void *)(memory + head);
  node->parent = block;
  if (operand_bytes) memcpy(node->operands, spec->operands, operand_bytes);
  for (uint32_t i = 0; i < spec->region_count; i++) node->regions[i] = spec->regions[i];
  TT_RETURN_IF_ERROR(copy_attrs(graph, spec, node));

  tt__infer_t c = {.arena = &graph->arena, .graph = graph, .node = node};
  c.given = spec->types;
  c.given_count = spec->types ? spec->type_count : 0;
  TT_RETURN_IF_ERROR(tt__infer(&c));
  TT_RETURN_IF_ERROR(reserve_values(graph, c.count));
  TT_RETURN_IF_ERROR(tt__block_push(graph, block, node));
  node->result_count = (uint16_t)c.count;
  node->first_result = graph->value_count;
  for (uint32_t i = 0; i < c.count; i++) {
    graph->values[graph->value_count++] = (tt_value_info_t){c.types[i], node, block, i};
  }
  if (out_first) *out_first = node->first_result;
  return TT_OK_STATUS;
}

tt_status_t tt_graph_return(tt_graph_t *graph, tt_block_t *block, const tt_value_t *values,
                            uint32_t count) {
  for (uint32_t i = 0; i < count; i++) TT_CHECK(values[i] < graph->value_count);
  tt_value_t *returns = tt_arena_copy(&graph->arena, values, count * sizeof *values);
  if (!returns) return tt__no_memory();
  block->returns = returns;
  block->return_count = count;
  return TT_OK_STATUS;
}

// Linear, stopping at the first larger key: lists are shorter than a search is worth.
const tt_attr_t *tt_node_attr(const tt_node_t *node, tt_attr_key_t key) {
  for (uint32_t i = 0; i < node->attr_count; i++) {
    if (node->attrs[i].key >= key) return node->attrs[i].key == key ? &node->attrs[i] : NULL;
  }
  return NULL;
}

int64_t tt_node_int(const tt_node_t *node, tt_attr_key_t key, int64_t otherwise) {
  const tt_attr_t *a = tt_node_attr(node, key);
  return a ? a->u.i : otherwise;
}

const int64_t *tt_node_ints(const tt_node_t *node, tt_attr_key_t key, uint32_t *out_count) {
  const tt_attr_t *a = tt_node_attr(node, key);
  *out_count = a ? a->count : 0;
  return a ? a->u.ints : NULL;
}

int64_t tt_type_elements(const tt_type_t *type) {
  int64_t n = 1;
  for (uint32_t i = 0; i < type->rank; i++) {
    if (type->dims[i] == 0) return 0;
    n *= type->dims[i];
  }
  return n;
}

size_t tt_type_bytes(const tt_type_t *type) {
  return (size_t)tt_type_elements(type) * tt_dtype_size(type->dtype);
}

// Types inferred from one another share their dims: the pointers decide most comparisons.
bool tt_type_same_shape(const tt_type_t *a, const tt_type_t *b) {
  if (a->rank != b->rank) return false;
  if (a->dims == b->dims) return true;
  for (uint32_t i = 0; i < a->rank; i++) {
    if (a->dims[i] != b->dims[i]) return false;
  }
  return true;
}

bool tt_type_equal(const tt_type_t *a, const tt_type_t *b) {
  return a->dtype == b->dtype && tt_type_same_shape(a, b);
}

// Cut, not overrun, where the buffer is short.
int tt_type_format(const tt_type_t *type, char *buffer, size_t size) {
  size_t at = 0;
#define APPEND(...) \
  at += (size_t)snprintf(at < size ? buffer + at : NULL, at < size ? size - at : 0, __VA_ARGS__)
  APPEND("tensor<");
  for (uint32_t i = 0; i < type->rank; i++) APPEND("%lldx", (long long)type->dims[i]);
  APPEND("%s>", tt_dtype_text(type->dtype));
#undef APPEND
  return (int)at;
}
