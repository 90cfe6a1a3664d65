// Graph -> StableHLO text. Common ops in their short form, all others in MLIR's generic form.
#include "ir/print.h"

#include <stdio.h>

#include "base/alloc.h"

// How a value is written: %arg3, %7, %7#1.
typedef struct name_s {
  uint32_t number;
  uint16_t index;
  enum { UNNAMED, ARGUMENT, SINGLE, MULTI } kind;
} name_t;

// Names are given while printing, in text order: the same graph prints the same whatever numbers
// its values have.
typedef struct printer_s {
  tt_text_t t;
  const tt_graph_t *graph;
  name_t *names;
  uint32_t next;
  int depth;
} printer_t;

static void str(printer_t *p, const char *s) { tt_text_str(&p->t, s); }
static void type(printer_t *p, tt_value_t v) { tt__print_type(&p->t, tt_graph_type(p->graph, v)); }

static void value(printer_t *p, tt_value_t v) {
  name_t n = p->names[v];
  str(p, n.kind == ARGUMENT ? "%arg" : "%");
  tt_text_int(&p->t, n.number);
  if (n.kind == MULTI) {
    tt_text_put(&p->t, "#", 1);
    tt_text_int(&p->t, n.index);
  }
}

static void values(printer_t *p, const tt_value_t *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i) str(p, ", ");
    value(p, list[i]);
  }
}

static void types(printer_t *p, const tt_value_t *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i) str(p, ", ");
    type(p, list[i]);
  }
}

static void indent(printer_t *p) {
  for (int i = 0; i < p->depth; i++) str(p, "  ");
}

// " : (operand types) -> result types"
static void signature(printer_t *p, const tt_node_t *node) {
  str(p, " : (");
  types(p, node->operands, node->operand_count);
  str(p, node->result_count == 1 ? ") -> " : ") -> (");
  for (uint32_t i = 0; i < node->result_count; i++) {
    if (i) str(p, ", ");
    type(p, node->first_result + i);
  }
  if (node->result_count != 1) str(p, ")");
}

// An absent list is written out with its default: short forms have no way to leave it away.
static void list_of(printer_t *p, const tt_node_t *node, tt_attr_key_t key, uint32_t rank,
                    int64_t otherwise) {
  uint32_t n;
  const int64_t *list = tt_node_ints(node, key, &n);
  str(p, "[");
  for (uint32_t i = 0; i < (list ? n : rank); i++) {
    if (i) str(p, ", ");
    tt_text_int(&p->t, tt__at(list, i, otherwise));
  }
  str(p, "]");
}

static void block(printer_t *p, const tt_block_t *b);

// In braces, its arguments as the block header ^bb0.
static void region(printer_t *p, const tt_block_t *b) {
  str(p, "{\n");
  if (b->arg_count) {
    indent(p);
    str(p, "^bb0(");
    for (uint32_t i = 0; i < b->arg_count; i++) {
      if (i) str(p, ", ");
      p->names[b->args[i]] = (name_t){p->next++, 0, SINGLE};
      value(p, b->args[i]);
      str(p, ": ");
      type(p, b->args[i]);
    }
    str(p, "):\n");
  }
  p->depth++;
  block(p, b);
  indent(p);
  str(p, "stablehlo.return");
  if (b->return_count) {
    str(p, " ");
    values(p, b->returns, b->return_count);
    str(p, " : ");
    types(p, b->returns, b->return_count);
  }
  str(p, "\n");
  p->depth--;
  indent(p);
  str(p, "}");
}

// MLIR's generic form, for ops without a short one: name, operands, properties, regions, signature.
static void generic(printer_t *p, const tt_node_t *node) {
  str(p, "\"stablehlo.");
  str(p, tt_op_infos[node->op].text);
  str(p, "\"(");
  values(p, node->operands, node->operand_count);
  str(p, ") ");
  const tt_type_t *first = node->operand_count ? tt_graph_type(p->graph, node->operands[0]) : NULL;
  tt__print_properties(&p->t, node, first);
  for (uint32_t i = 0; i < node->region_count; i++) {
    str(p, i ? ", " : "(");
    region(p, node->regions[i]);
  }
  str(p, node->region_count ? ")" : "");
  signature(p, node);
}

// chlo's own short forms, which our parser and MLIR's read.
static void chlo(printer_t *p, const tt_node_t *node) {
  str(p, "chlo.");
  str(p, tt_op_infos[node->op].text);
  if (node->op == TT_OP_TOP_K) {
    str(p, "(");
    value(p, node->operands[0]);
    str(p, ", k = ");
    tt_text_int(&p->t, tt_node_int(node, TT_ATTR_K, 0));
    str(p, ") : ");
    type(p, node->operands[0]);
    str(p, " -> (");
    type(p, node->first_result);
    str(p, ", ");
    type(p, node->first_result + 1);
    str(p, ")");
    return;
  }
  str(p, " ");
  values(p, node->operands, node->operand_count);
  str(p, " : ");
  types(p, node->operands, node->operand_count);
  str(p, " -> ");
  type(p, node->first_result);
}

// One type where it says all: complex's operand types follow from its result's.
static void elementwise(printer_t *p, const tt_node_t *node) {
  str(p, " ");
  values(p, node->operands, node->operand_count);
  bool same = tt_type_equal(tt_graph_type(p->graph, node->operands[0]),
                            tt_graph_type(p->graph, node->first_result));
  if (same || node->op == TT_OP_COMPLEX) {
    str(p, " : ");
    type(p, node->first_result);
  } else {
    signature(p, node);
  }
}

static void compare(printer_t *p, const tt_node_t *node) {
  int64_t how = tt_node_int(node, TT_ATTR_COMPARE_TYPE, TT_COMPARE_DEFAULT);
  str(p, " ");
  str(p, tt__print_compare(tt_node_int(node, TT_ATTR_COMPARISON_DIRECTION, 0)));
  str(p, ", ");
  values(p, node->operands, 2);
  if (how != TT_COMPARE_DEFAULT) {
    str(p, ", ");
    str(p, tt__print_compare_type(how));
  }
  signature(p, node);
}

static void slice(printer_t *p, const tt_node_t *node) {
  uint32_t n, strided;
  const int64_t *starts = tt_node_ints(node, TT_ATTR_START_INDICES, &n);
  const int64_t *limits = tt_node_ints(node, TT_ATTR_LIMIT_INDICES, &n);
  const int64_t *strides = tt_node_ints(node, TT_ATTR_STRIDES, &strided);
  str(p, " ");
  value(p, node->operands[0]);
  str(p, " [");
  for (uint32_t i = 0; i < n; i++) {
    if (i) str(p, ", ");
    tt_text_int(&p->t, starts[i]);
    str(p, ":");
    tt_text_int(&p->t, limits[i]);
    if (tt__at(strides, i, 1) != 1) {
      str(p, ":");
      tt_text_int(&p->t, strides[i]);
    }
  }
  str(p, "]");
  signature(p, node);
}

static void pad(printer_t *p, const tt_node_t *node) {
  uint32_t rank = tt_graph_type(p->graph, node->operands[0])->rank;
  str(p, " ");
  values(p, node->operands, 2);
  str(p, ", low = ");
  list_of(p, node, TT_ATTR_EDGE_PADDING_LOW, rank, 0);
  str(p, ", high = ");
  list_of(p, node, TT_ATTR_EDGE_PADDING_HIGH, rank, 0);
  str(p, ", interior = ");
  list_of(p, node, TT_ATTR_INTERIOR_PADDING, rank, 0);
  signature(p, node);
}

static void dot_general(printer_t *p, const tt_node_t *node) {
  uint32_t n;
  const int64_t *precision = tt_node_ints(node, TT_ATTR_PRECISION_CONFIG, &n);
  str(p, " ");
  values(p, node->operands, 2);
  if (tt_node_attr(node, TT_ATTR_LHS_BATCHING_DIMENSIONS)) {
    str(p, ", batching_dims = ");
    list_of(p, node, TT_ATTR_LHS_BATCHING_DIMENSIONS, 0, 0);
    str(p, " x ");
    list_of(p, node, TT_ATTR_RHS_BATCHING_DIMENSIONS, 0, 0);
  }
  str(p, ", contracting_dims = ");
  list_of(p, node, TT_ATTR_LHS_CONTRACTING_DIMENSIONS, 0, 0);
  str(p, " x ");
  list_of(p, node, TT_ATTR_RHS_CONTRACTING_DIMENSIONS, 0, 0);
  for (uint32_t i = 0; i < (precision ? n : 0); i++) {
    str(p, i ? ", " : ", precision = [");
    str(p, tt__print_precision(precision[i]));
    if (i + 1 == n) str(p, "]");
  }
  signature(p, node);
}

static void with_list(printer_t *p, const tt_node_t *node, const char *label, tt_attr_key_t key) {
  str(p, " ");
  values(p, node->operands, node->operand_count);
  str(p, label);
  list_of(p, node, key, 0, 0);
}

// The short forms; false: this op has none here.
static bool shorthand(printer_t *p, const tt_node_t *node) {
  const tt_op_info_t *info = &tt_op_infos[node->op];
  size_t mark = p->t.size;
  const tt_attr_t *a;
  str(p, "stablehlo.");
  str(p, info->text);
  switch ((tt_op_t)node->op) {
    case TT_OP_CONSTANT:
      a = tt_node_attr(node, TT_ATTR_VALUE);
      str(p, " ");
      tt__print_dense(&p->t, tt_graph_type(p->graph, node->first_result), a->u.bytes, a->count);
      str(p, " : ");
      type(p, node->first_result);
      return true;
    case TT_OP_IOTA:
      str(p, " dim = ");
      tt_text_int(&p->t, tt_node_int(node, TT_ATTR_IOTA_DIMENSION, 0));
      str(p, " : ");
      type(p, node->first_result);
      return true;
    case TT_OP_CONVERT:
    case TT_OP_BITCAST_CONVERT:
    case TT_OP_RESHAPE:
    case TT_OP_DYNAMIC_UPDATE_SLICE:
      str(p, " ");
      values(p, node->operands, node->operand_count);
      break;
    case TT_OP_BROADCAST_IN_DIM:
      with_list(p, node, ", dims = ", TT_ATTR_BROADCAST_DIMENSIONS);
      break;
    case TT_OP_TRANSPOSE:
      with_list(p, node, ", dims = ", TT_ATTR_PERMUTATION);
      break;
    case TT_OP_DYNAMIC_SLICE:
      with_list(p, node, ", sizes = ", TT_ATTR_SLICE_SIZES);
      break;
    case TT_OP_REVERSE:
      with_list(p, node, ", dims = ", TT_ATTR_DIMENSIONS);
      str(p, " : ");
      type(p, node->first_result);
      return true;
    case TT_OP_CONCATENATE:
      str(p, " ");
      values(p, node->operands, node->operand_count);
      str(p, ", dim = ");
      tt_text_int(&p->t, tt_node_int(node, TT_ATTR_DIMENSION, 0));
      break;
    case TT_OP_SELECT:
      str(p, " ");
      values(p, node->operands, 3);
      str(p, " : ");
      type(p, node->operands[0]);
      str(p, ", ");
      type(p, node->first_result);
      return true;
    case TT_OP_SLICE:
      slice(p, node);
      return true;
    case TT_OP_PAD:
      pad(p, node);
      return true;
    case TT_OP_DOT_GENERAL:
      dot_general(p, node);
      return true;
    case TT_OP_COMPARE:
      compare(p, node);
      return true;
    default:
      if ((info->traits & TT_TRAIT_ELEMENTWISE) && node->attr_count == 0) {
        elementwise(p, node);
        return true;
      }
      if (!p->t.failed) p->t.size = mark;
      return false;
  }
  signature(p, node);
  return true;
}

// A composite means its decomposition, so that is what goes out.
static void composite(printer_t *p, const tt_node_t *node) {
  const tt_block_t *body = node->regions[0];
  for (uint32_t i = 0; i < body->arg_count; i++) {
    p->names[body->args[i]] = p->names[node->operands[i]];
  }
  block(p, body);
  for (uint32_t i = 0; i < node->result_count; i++) {
    p->names[node->first_result + i] = p->names[body->returns[i]];
  }
}

// Results get their number before the node is printed and their name after it: its regions number
// on from there and cannot use them.
static void node_line(printer_t *p, const tt_node_t *node) {
  uint32_t number = p->next;
  indent(p);
  if (node->result_count > 0) {
    p->next++;
    str(p, "%");
    tt_text_int(&p->t, number);
    if (node->result_count > 1) {
      str(p, ":");
      tt_text_int(&p->t, node->result_count);
    }
    str(p, " = ");
  }
  if (tt__op_is_chlo(node->op)) {
    chlo(p, node);
  } else if (!shorthand(p, node)) {
    generic(p, node);
  }
  if (node->location) {
    const char *where = p->graph->locations[node->location];
    str(p, " loc(");
    tt_text_quoted(&p->t, where, strlen(where));
    str(p, ")");
  }
  str(p, "\n");
  for (uint32_t i = 0; i < node->result_count; i++) {
    p->names[node->first_result + i] =
        (name_t){number, (uint16_t)i, node->result_count > 1 ? MULTI : SINGLE};
  }
}

static void block(printer_t *p, const tt_block_t *b) {
  for (uint32_t i = 0; i < b->node_count; i++) {
    if (b->nodes[i]->op == TT_OP_COMPOSITE) {
      composite(p, b->nodes[i]);
    } else {
      node_line(p, b->nodes[i]);
    }
  }
}

// Donation is told in JAX's way: an output of its own for an alias, a mere permission otherwise.
static void argument(printer_t *p, uint32_t i) {
  const tt_graph_t *g = p->graph;
  tt_value_t v = g->main->args[i];
  p->names[v] = (name_t){i, 0, ARGUMENT};
  if (i) str(p, ", ");
  value(p, v);
  str(p, ": ");
  type(p, v);
  if (g->donations[i] > 0) {
    str(p, " {tf.aliasing_output = ");
    tt_text_int(&p->t, g->donations[i] - 1);
    str(p, " : i32}");
  } else if (g->donations[i] == TT_DONATE) {
    str(p, " {jax.buffer_donor = true}");
  }
}

// The module's attributes are those that JAX writes.
static void module(printer_t *p) {
  const tt_graph_t *g = p->graph;
  str(p, "module @");
  tt_text_quoted(&p->t, g->name, strlen(g->name));
  str(p, " attributes {mhlo.num_partitions = ");
  tt_text_int(&p->t, g->partition_count);
  str(p, " : i32, mhlo.num_replicas = ");
  tt_text_int(&p->t, g->replica_count);
  str(p, " : i32} {\n  func.func public @main(");
  for (uint32_t i = 0; i < g->main->arg_count; i++) argument(p, i);
  str(p, ") -> (");
  types(p, g->main->returns, g->main->return_count);
  str(p, ") {\n");
  p->depth = 2;
  block(p, g->main);
  str(p, "    return");
  if (g->main->return_count) {
    str(p, " ");
    values(p, g->main->returns, g->main->return_count);
    str(p, " : ");
    types(p, g->main->returns, g->main->return_count);
  }
  str(p, "\n  }\n}\n");
}

// The text ends in NUL, which its size does not count.
tt_status_t tt_graph_print(const tt_graph_t *graph, char **out_text, size_t *out_size) {
  *out_text = NULL;
  *out_size = 0;
  printer_t p = {.graph = graph};
  p.names = tt_alloc_zeroed(graph->value_count * sizeof *p.names);
  if (!p.names) return tt__no_memory();
  module(&p);
  tt_text_put(&p.t, "", 1);
  tt_free(p.names);
  if (p.t.failed) {
    tt_free(p.t.data);
    return tt__no_memory();
  }
  *out_text = p.t.data;
  *out_size = p.t.size - 1;
  return TT_OK_STATUS;
}
