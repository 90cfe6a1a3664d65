// Common subexpressions: a hash table of nodes, filled in program order. Operands are mapped before
// a node is looked up, so one walk also merges what becomes equal by earlier merges. Keeps: the
// meaning bit for bit, for equal nodes compute equal bits. Leaves: nodes without uses.
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "ir/internal.h"
#include "opt/opt.h"

typedef struct entry_s {
  const tt_node_t *node;
  uint64_t hash;
  uint32_t next;  // older entry of the bucket + 1
} entry_t;

// Nodes that may stand for later ones, in a stack with hash chains threaded through it. A region's
// entries are popped when it ends: its values cannot be seen outside, while values around it can be
// seen inside.
typedef struct table_s {
  tt_graph_t *graph;
  tt_value_t *map;  // old value -> the value that stands for it
  entry_t *entries;
  uint32_t count, capacity;
  uint32_t *buckets, bucket_count;  // newest entry + 1
} table_t;

// Regions are not compared, so nodes with one stay. A barrier is there to keep its operands apart.
static bool is_mergeable(const tt_node_t *node) {
  uint8_t traits = tt_op_infos[node->op].traits;
  return node->region_count == 0 && node->result_count > 0 &&
         !(traits & (TT_TRAIT_SIDE_EFFECT | TT_TRAIT_COLLECTIVE)) &&
         node->op != TT_OP_OPTIMIZATION_BARRIER;
}

static uint64_t hash_attr(uint64_t hash, const tt_attr_t *a) {
  hash = tt_hash_word(hash, (uint64_t)a->count << 16 | a->key);
  switch (a->kind) {
    case TT_ATTR_KIND_INTS:
      return tt_hash_bytes(hash, a->u.ints, a->count * sizeof(int64_t));
    case TT_ATTR_KIND_STRING:
    case TT_ATTR_KIND_BYTES:
      return tt_hash_bytes(hash, a->u.bytes, a->count);
    default:
      return tt_hash_word(hash, (uint64_t)a->u.i);
  }
}

// Of what same_node compares: equal nodes have equal hashes.
static uint64_t hash_node(const tt_graph_t *g, const tt_node_t *node) {
  uint64_t hash = tt_hash_word(TT_HASH_SEED, (uint64_t)node->op << 32 | node->operand_count);
  hash = tt_hash_bytes(hash, node->operands, node->operand_count * sizeof(tt_value_t));
  for (uint32_t i = 0; i < node->attr_count; i++) hash = hash_attr(hash, &node->attrs[i]);
  const tt_type_t *t = tt_graph_type(g, node->first_result);
  hash = tt_hash_word(hash, (uint64_t)t->rank << 8 | t->dtype);
  return tt_hash_bytes(hash, t->dims, t->rank * sizeof *t->dims);
}

// Bit for bit: -0.0 and 0.0 are different attributes. A key has one kind, so kinds agree.
static bool same_attr(const tt_attr_t *a, const tt_attr_t *b) {
  if (a->key != b->key || a->count != b->count) return false;
  switch (a->kind) {
    case TT_ATTR_KIND_INTS:
      return memcmp(a->u.ints, b->u.ints, a->count * sizeof(int64_t)) == 0;
    case TT_ATTR_KIND_STRING:
    case TT_ATTR_KIND_BYTES:
      return memcmp(a->u.bytes, b->u.bytes, a->count) == 0;
    default:
      return a->u.i == b->u.i;
  }
}

static bool same_node(const tt_graph_t *g, const tt_node_t *a, const tt_node_t *b) {
  if (a->op != b->op || a->operand_count != b->operand_count || a->attr_count != b->attr_count ||
      a->result_count != b->result_count ||
      memcmp(a->operands, b->operands, a->operand_count * sizeof(tt_value_t)) != 0) {
    return false;
  }
  for (uint32_t i = 0; i < a->attr_count; i++) {
    if (!same_attr(&a->attrs[i], &b->attrs[i])) return false;
  }
  for (uint32_t i = 0; i < a->result_count; i++) {
    if (!tt_type_equal(tt_graph_type(g, a->first_result + i),
                       tt_graph_type(g, b->first_result + i))) {
      return false;
    }
  }
  return true;
}

// The earlier node equal to this one, or NULL: this one is noted.
static tt_status_t find_or_note(table_t *t, const tt_node_t *node, const tt_node_t **out_equal) {
  uint64_t hash = hash_node(t->graph, node);
  uint32_t *bucket = &t->buckets[hash & (t->bucket_count - 1)];
  *out_equal = NULL;
  for (uint32_t i = *bucket; i; i = t->entries[i - 1].next) {
    const entry_t *e = &t->entries[i - 1];
    if (e->hash != hash || !same_node(t->graph, e->node, node)) continue;
    *out_equal = e->node;
    return TT_OK_STATUS;
  }
  if (!tt_grow((void **)&t->entries, &t->capacity, t->count + 1, sizeof *t->entries)) {
    return tt__no_memory();
  }
  t->entries[t->count] = (entry_t){node, hash, *bucket};
  *bucket = ++t->count;
  return TT_OK_STATUS;
}

// Compacts the block's list in place: `kept` never passes the node that is read.
static tt_status_t merge_block(table_t *t, tt_block_t *block) {
  uint32_t mark = t->count, kept = 0;
  for (uint32_t i = 0; i < block->node_count; i++) {
    tt_node_t *node = block->nodes[i];
    const tt_node_t *equal = NULL;
    for (uint32_t k = 0; k < node->operand_count; k++) {
      node->operands[k] = t->map[node->operands[k]];
    }
    for (uint32_t r = 0; r < node->region_count; r++) {
      TT_RETURN_IF_ERROR(merge_block(t, node->regions[r]));
    }
    if (is_mergeable(node)) TT_RETURN_IF_ERROR(find_or_note(t, node, &equal));
    if (!equal) {
      block->nodes[kept++] = node;
      continue;
    }
    for (uint32_t k = 0; k < node->result_count; k++) {
      t->map[node->first_result + k] = equal->first_result + k;
    }
  }
  block->node_count = kept;
  for (uint32_t i = 0; i < block->return_count; i++) {
    block->returns[i] = t->map[block->returns[i]];
  }
  for (; t->count > mark; t->count--) {
    const entry_t *e = &t->entries[t->count - 1];
    t->buckets[e->hash & (t->bucket_count - 1)] = e->next;
  }
  return TT_OK_STATUS;
}

tt_status_t tt_cse(tt_graph_t *graph) {
  if (graph->main->node_count == 0) return TT_OK_STATUS;
  table_t t = {.graph = graph, .bucket_count = 16};
  while (t.bucket_count < graph->main->node_count) t.bucket_count *= 2;
  size_t maps = graph->value_count * sizeof(tt_value_t);
  // One block for both tables.
  char *memory = tt_alloc(maps + t.bucket_count * sizeof *t.buckets);
  if (!memory) return tt__no_memory();
  t.map = (tt_value_t *)(void *)memory;
  t.buckets = (uint32_t *)(void *)(memory + maps);
  memset(t.buckets, 0, t.bucket_count * sizeof *t.buckets);
  for (uint32_t v = 0; v < graph->value_count; v++) t.map[v] = v;
  tt_status_t s = merge_block(&t, graph->main);
  tt_free(t.entries);
  tt_free(memory);
  return s;
}
