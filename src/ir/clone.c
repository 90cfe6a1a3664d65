// Copies and hashes of whole graphs.
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "ir/internal.h"

// The copy is made block by block in the original's order. Values keep their numbers, so operands
// and returns are copied as they are; only pointers (nodes, blocks, payloads) are new.
typedef struct clone_s {
  const tt_graph_t *from;
  tt_graph_t *to;
} clone_t;

static tt_status_t clone_block(clone_t *c, const tt_block_t *from, tt_block_t *to);

// Fills values[v] of the copy, its type copied.
static tt_status_t clone_value(clone_t *c, tt_value_t v, tt_node_t *node, tt_block_t *block) {
  const tt_value_info_t *info = &c->from->values[v];
  int64_t *dims = tt_arena_copy(&c->to->arena, info->type.dims, info->type.rank * sizeof(int64_t));
  if (!dims) return tt__no_memory();
  c->to->values[v] =
      (tt_value_info_t){{info->type.dtype, info->type.rank, dims}, node, block, info->index};
  return TT_OK_STATUS;
}

// `copy` is the payload's new place, or just something that is not NULL.
static tt_status_t clone_attrs(clone_t *c, const tt_node_t *from, tt_node_t *to) {
  tt_attr_t *attrs =
      tt_arena_copy(&c->to->arena, from->attrs, from->attr_count * sizeof(tt_attr_t));
  if (!attrs) return tt__no_memory();
  for (uint32_t i = 0; i < from->attr_count; i++) {
    tt_attr_t *a = &attrs[i];
    void *copy = a;
    if (a->kind == TT_ATTR_KIND_INTS) {
      a->u.ints = copy = tt_arena_copy(&c->to->arena, a->u.ints, a->count * sizeof(int64_t));
    } else if (a->kind == TT_ATTR_KIND_STRING) {
      a->u.string = copy = tt_arena_string(&c->to->arena, a->u.string, a->count);
    } else if (a->kind == TT_ATTR_KIND_BYTES) {
      a->u.bytes = copy = tt_arena_copy(&c->to->arena, a->u.bytes, a->count);
    }
    if (!copy) return tt__no_memory();
  }
  to->attrs = attrs;
  return TT_OK_STATUS;
}

// Regions before results, as the definitions go; numbers of values stay, so operands need no map.
static tt_status_t clone_node(clone_t *c, const tt_node_t *from, tt_block_t *block,
                              tt_node_t **out_node) {
  tt_arena_t *arena = &c->to->arena;
  tt_node_t *node = tt_arena_copy(arena, from, sizeof *from);
  if (!node) return tt__no_memory();
  node->parent = block;
  node->operands = tt_arena_copy(arena, from->operands, from->operand_count * sizeof(tt_value_t));
  node->regions = TT_ARENA_ARRAY(arena, tt_block_t *, from->region_count);
  if (!node->operands || !node->regions) return tt__no_memory();
  TT_RETURN_IF_ERROR(clone_attrs(c, from, node));
  for (uint32_t r = 0; r < from->region_count; r++) {
    TT_RETURN_IF_ERROR(tt_graph_block(c->to, block, &node->regions[r]));
    TT_RETURN_IF_ERROR(clone_block(c, from->regions[r], node->regions[r]));
  }
  for (uint32_t i = 0; i < from->result_count; i++) {
    TT_RETURN_IF_ERROR(clone_value(c, from->first_result + i, node, block));
  }
  *out_node = node;
  return TT_OK_STATUS;
}

static tt_status_t clone_block(clone_t *c, const tt_block_t *from, tt_block_t *to) {
  tt_arena_t *arena = &c->to->arena;
  uint32_t arg_space = 8;  // argument lists have a power of two of room (graph.c)
  while (arg_space < from->arg_count) arg_space *= 2;
  to->args = TT_ARENA_ARRAY(arena, tt_value_t, arg_space);
  to->nodes = TT_ARENA_ARRAY(arena, tt_node_t *, from->node_count);
  to->returns = tt_arena_copy(arena, from->returns, from->return_count * sizeof(tt_value_t));
  if (!to->args || !to->nodes || !to->returns) return tt__no_memory();
  if (from->arg_count) memcpy(to->args, from->args, from->arg_count * sizeof(tt_value_t));
  to->arg_count = from->arg_count;
  to->return_count = from->return_count;
  to->node_count = to->node_capacity = from->node_count;
  for (uint32_t i = 0; i < from->arg_count; i++) {
    TT_RETURN_IF_ERROR(clone_value(c, from->args[i], NULL, to));
  }
  for (uint32_t i = 0; i < from->node_count; i++) {
    TT_RETURN_IF_ERROR(clone_node(c, from->nodes[i], to, &to->nodes[i]));
  }
  return TT_OK_STATUS;
}

// Values that no block defines any more stay zero in the copy; nobody refers to them.
static tt_status_t clone_into(const tt_graph_t *from, tt_graph_t *to) {
  tt_arena_t *arena = &to->arena;
  to->values = tt_arena_zeroed(arena, from->value_count * sizeof(tt_value_info_t));
  to->locations = TT_ARENA_ARRAY(arena, const char *, from->location_count);
  if (!to->values || !to->locations) return tt__no_memory();
  to->value_count = to->value_capacity = from->value_count;
  to->location_count = to->location_capacity = from->location_count;
  for (uint32_t i = 0; i < from->location_count; i++) {
    const char *text = from->locations[i];
    to->locations[i] = text ? tt_arena_string(arena, text, strlen(text)) : NULL;
    if (text && !to->locations[i]) return tt__no_memory();
  }
  to->replica_count = from->replica_count;
  to->partition_count = from->partition_count;
  clone_t c = {from, to};
  TT_RETURN_IF_ERROR(clone_block(&c, from->main, to->main));
  uint32_t space = 8;
  while (space < from->main->arg_count) space *= 2;
  to->donations = tt_arena_zeroed(arena, space * sizeof *to->donations);
  if (!to->donations) return tt__no_memory();
  if (from->main->arg_count) {
    memcpy(to->donations, from->donations, from->main->arg_count * sizeof *to->donations);
  }
  return TT_OK_STATUS;
}

tt_status_t tt_graph_clone(const tt_graph_t *graph, tt_graph_t **out_graph) {
  TT_RETURN_IF_ERROR(tt_graph_create(graph->name, out_graph));
  tt_status_t s = clone_into(graph, *out_graph);
  if (s) {
    tt_graph_destroy(*out_graph);
    *out_graph = NULL;
  }
  return s;
}

// Hashing renumbers values in the order of their definition, so that numbers which a pass or a
// region left unused do not matter.
typedef struct hasher_s {
  const tt_graph_t *graph;
  uint32_t *numbers;
  uint32_t next;
  uint64_t hash;
} hasher_t;

static void hash_word(hasher_t *h, uint64_t word) { h->hash = tt_hash_word(h->hash, word); }

static void hash_type(hasher_t *h, const tt_type_t *type) {
  hash_word(h, (uint64_t)type->rank << 8 | type->dtype);
  for (uint32_t i = 0; i < type->rank; i++) hash_word(h, (uint64_t)type->dims[i]);
}

// Attributes are sorted by key in every graph, so their order says nothing about how they were
// given.
static void hash_attr(hasher_t *h, const tt_attr_t *a) {
  hash_word(h, (uint64_t)a->count << 16 | a->key);
  switch (a->kind) {
    case TT_ATTR_KIND_INTS:
      h->hash = tt_hash_bytes(h->hash, a->u.ints, a->count * sizeof(int64_t));
      break;
    case TT_ATTR_KIND_STRING:
    case TT_ATTR_KIND_BYTES:
      h->hash = tt_hash_bytes(h->hash, a->u.bytes, a->count);
      break;
    default:
      hash_word(h, (uint64_t)a->u.i);
  }
}

static void hash_block(hasher_t *h, const tt_block_t *block);

// Results are numbered after the regions: a region cannot use its own node's results.
static void hash_node(hasher_t *h, const tt_node_t *node) {
  hash_word(h, (uint64_t)node->op | (uint64_t)node->operand_count << 16 |
                   (uint64_t)node->result_count << 32 | (uint64_t)node->region_count << 48);
  for (uint32_t i = 0; i < node->operand_count; i++) hash_word(h, h->numbers[node->operands[i]]);
  for (uint32_t i = 0; i < node->attr_count; i++) hash_attr(h, &node->attrs[i]);
  for (uint32_t i = 0; i < node->region_count; i++) hash_block(h, node->regions[i]);
  for (uint32_t i = 0; i < node->result_count; i++) {
    hash_type(h, &h->graph->values[node->first_result + i].type);
    h->numbers[node->first_result + i] = h->next++;
  }
}

static void hash_block(hasher_t *h, const tt_block_t *block) {
  hash_word(h, (uint64_t)block->arg_count << 32 | block->node_count);
  for (uint32_t i = 0; i < block->arg_count; i++) {
    hash_type(h, &h->graph->values[block->args[i]].type);
    h->numbers[block->args[i]] = h->next++;
  }
  for (uint32_t i = 0; i < block->node_count; i++) hash_node(h, block->nodes[i]);
  hash_word(h, block->return_count);
  for (uint32_t i = 0; i < block->return_count; i++) hash_word(h, h->numbers[block->returns[i]]);
}

// Donations belong to the meaning, they decide which memory is written; names and locations do not.
uint64_t tt_graph_hash(const tt_graph_t *graph) {
  static _Atomic uint64_t unique;
  uint32_t few[256];
  uint32_t *numbers = few;
  if (graph->value_count > 256) numbers = tt_alloc(graph->value_count * sizeof *numbers);
  // Without memory: a hash that equals no other, so a cache misses instead of answering wrongly.
  if (!numbers) return tt_hash_word(TT_HASH_SEED, ~atomic_fetch_add(&unique, 1));
  hasher_t h = {graph, numbers, 0, TT_HASH_SEED};
  hash_word(&h, (uint64_t)graph->replica_count << 32 | graph->partition_count);
  hash_block(&h, graph->main);
  if (graph->main->arg_count) {
    h.hash = tt_hash_bytes(h.hash, graph->donations, graph->main->arg_count * sizeof(int32_t));
  }
  if (numbers != few) tt_free(numbers);
  return h.hash;
}
