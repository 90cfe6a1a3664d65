// Emitters of collectives between the replicas of a program.
#include "ir/build.h"
#include "ir/internal.h"

enum { GROUP_ATTRS = 2 };

// The groups lie as rows of one list: the size of a row is an attribute of its own.
static void group_attrs(const tt_replica_groups_t *g, tt_attr_t *attrs) {
  attrs[0] = tt_attr_ints(TT_ATTR_REPLICA_GROUPS, g->ids, g->count * g->size);
  attrs[1] = tt_attr_int(TT_ATTR_REPLICA_GROUP_SIZE, g->size);
}

tt_value_t tt_emit_all_reduce(tt_build_t *b, tt_op_t op, tt_value_t x,
                              const tt_replica_groups_t *groups) {
  tt_attr_t attrs[GROUP_ATTRS];
  group_attrs(groups, attrs);
  tt_block_t *body = tt__one_op_body(b, op, tt_build_dtype(b, x));
  tt_node_spec_t spec = {.op = TT_OP_ALL_REDUCE,
                         .operands = &x,
                         .operand_count = 1,
                         .attrs = attrs,
                         .attr_count = GROUP_ATTRS,
                         .regions = &body,
                         .region_count = 1};
  return tt_emit(b, &spec);
}

// A collective that leaves `rows` of dimension 0. The result's type does not follow from the
// operands': it is given, and the rules check it (all_gather_c6, and what a group does not divide).
static tt_value_t emit_rows(tt_build_t *b, tt_op_t op, tt_value_t x, int64_t rows,
                            const tt_replica_groups_t *groups, tt_attr_key_t dim,
                            tt_block_t *body) {
  const tt_type_t *t = tt_build_type(b, x);
  int64_t dims[TT_MAX_RANK];
  if (b->status) return TT_NO_VALUE;
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = d == 0 ? rows : t->dims[d];
  tt_type_t type = tt_build_make_type(b, t->dtype, t->rank, dims);
  tt_attr_t attrs[GROUP_ATTRS + 1];
  group_attrs(groups, attrs);
  attrs[GROUP_ATTRS] = tt_attr_int(dim, 0);
  tt_node_spec_t spec = {.op = op,
                         .operands = &x,
                         .operand_count = 1,
                         .attrs = attrs,
                         .attr_count = GROUP_ATTRS + 1,
                         .regions = &body,
                         .region_count = body != NULL,
                         .types = &type,
                         .type_count = 1};
  return tt_emit(b, &spec);
}

// Of dimension 0; a scalar has none, which the rules refuse.
static int64_t rows_of(tt_build_t *b, tt_value_t x) {
  const tt_type_t *t = tt_build_type(b, x);
  return t->rank ? t->dims[0] : 0;
}

tt_value_t tt_emit_all_gather(tt_build_t *b, tt_value_t x, const tt_replica_groups_t *groups) {
  if (b->status) return TT_NO_VALUE;
  return emit_rows(b, TT_OP_ALL_GATHER, x, rows_of(b, x) * groups->size, groups,
                   TT_ATTR_ALL_GATHER_DIM, NULL);
}

tt_value_t tt_emit_reduce_scatter(tt_build_t *b, tt_op_t op, tt_value_t x,
                                  const tt_replica_groups_t *groups) {
  if (b->status) return TT_NO_VALUE;
  tt_block_t *body = tt__one_op_body(b, op, tt_build_dtype(b, x));
  return emit_rows(b, TT_OP_REDUCE_SCATTER, x, rows_of(b, x) / groups->size, groups,
                   TT_ATTR_SCATTER_DIMENSION, body);
}

// Split and concatenated along dimension 0, so the shape stays.
tt_value_t tt_emit_all_to_all(tt_build_t *b, tt_value_t x, const tt_replica_groups_t *groups) {
  tt_attr_t attrs[GROUP_ATTRS + 3];
  group_attrs(groups, attrs);
  attrs[GROUP_ATTRS] = tt_attr_int(TT_ATTR_SPLIT_DIMENSION, 0);
  attrs[GROUP_ATTRS + 1] = tt_attr_int(TT_ATTR_CONCAT_DIMENSION, 0);
  attrs[GROUP_ATTRS + 2] = tt_attr_int(TT_ATTR_SPLIT_COUNT, groups->size);
  tt_node_spec_t spec = {.op = TT_OP_ALL_TO_ALL,
                         .operands = &x,
                         .operand_count = 1,
                         .attrs = attrs,
                         .attr_count = GROUP_ATTRS + 3};
  return tt_emit(b, &spec);
}

tt_value_t tt_emit_collective_broadcast(tt_build_t *b, tt_value_t x,
                                        const tt_replica_groups_t *groups) {
  tt_attr_t attrs[GROUP_ATTRS];
  group_attrs(groups, attrs);
  tt_node_spec_t spec = {.op = TT_OP_COLLECTIVE_BROADCAST,
                         .operands = &x,
                         .operand_count = 1,
                         .attrs = attrs,
                         .attr_count = GROUP_ATTRS};
  return tt_emit(b, &spec);
}
