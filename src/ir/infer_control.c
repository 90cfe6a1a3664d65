// Rules of control flow, extension points and collectives.
#include <string.h>

#include "ir/internal.h"

// All regions take nothing (c1) and return the same types (c2), which are the op's results (c3).
static tt_status_t infer_branches(tt__infer_t *c) {
  const tt_block_t *first = c->node->regions[0];
  TT_RETURN_IF_ERROR(tt__infer_results(c, first->return_count));
  for (uint32_t r = 0; r < c->node->region_count; r++) {
    const tt_block_t *branch = c->node->regions[r];
    TT__REQUIRE(c, branch->arg_count == 0, "c1", "branch %u takes arguments", r);
    TT__REQUIRE(c, branch->return_count == c->count, "c2", "branches return %u and %u values",
                c->count, branch->return_count);
    for (uint32_t i = 0; i < c->count; i++) {
      const tt_type_t *t = tt_graph_type(c->graph, branch->returns[i]);
      TT__REQUIRE(c, tt_type_equal(t, tt_graph_type(c->graph, first->returns[i])), "c2",
                  "branches return different types at %u", i);
    }
  }
  for (uint32_t i = 0; i < c->count; i++) {
    c->types[i] = *tt_graph_type(c->graph, first->returns[i]);
    TT__REQUIRE(c, !c->given || (i < c->given_count && tt_type_equal(&c->given[i], &c->types[i])),
                "c3", "result %u is not of the branches' type", i);
  }
  TT__REQUIRE(c, !c->given || c->given_count == c->count, "c3", "%u results are written, %u given",
              c->given_count, c->count);
  return TT_OK_STATUS;
}

// Branches see the values around them and take no arguments.
tt_status_t tt__infer_if(tt__infer_t *c) {
  const tt_type_t *pred = tt__operand(c, 0);
  TT__REQUIRE(c, pred->rank == 0 && pred->dtype == TT_I1, NULL, "the predicate is no scalar i1");
  return infer_branches(c);
}

// An index out of range takes the last branch.
tt_status_t tt__infer_case(tt__infer_t *c) {
  const tt_type_t *index = tt__operand(c, 0);
  TT__REQUIRE(c, index->rank == 0 && index->dtype == TT_S32, NULL, "the index is no scalar i32");
  TT__REQUIRE(c, c->node->region_count >= 1, "c1", "there is no branch");
  return infer_branches(c);
}

// Operands, arguments of both regions and the body's results all have the same types (c1 for the
// condition, c2 for the body, c3 for the results).
tt_status_t tt__infer_while(tt__infer_t *c) {
  const tt_block_t *cond = c->node->regions[0], *body = c->node->regions[1];
  uint32_t n = c->node->operand_count;
  TT__REQUIRE(c, cond->arg_count == n && body->arg_count == n, "c1",
              "regions take %u and %u arguments for %u operands", cond->arg_count, body->arg_count,
              n);
  TT__REQUIRE(c, cond->return_count == 1, "c1", "the condition returns %u values",
              cond->return_count);
  const tt_type_t *pred = tt_graph_type(c->graph, cond->returns[0]);
  TT__REQUIRE(c, pred->rank == 0 && pred->dtype == TT_I1, "c1", "the condition is no scalar i1");
  TT__REQUIRE(c, body->return_count == n, "c2", "the body returns %u values for %u operands",
              body->return_count, n);
  for (uint32_t i = 0; i < n; i++) {
    const tt_type_t *x = tt__operand(c, i);
    TT__REQUIRE(c, tt_type_equal(x, tt_graph_type(c->graph, cond->args[i])), "c1",
                "argument %u of the condition has another type", i);
    TT__REQUIRE(c, tt_type_equal(x, tt_graph_type(c->graph, body->args[i])), "c2",
                "argument %u of the body has another type", i);
    TT__REQUIRE(c, tt_type_equal(x, tt_graph_type(c->graph, body->returns[i])), "c2",
                "value %u that the body returns has another type", i);
  }
  return tt__infer_same_types(c);
}

// Values of a graph are tensors; the two ops are in the table so that the message names them.
tt_status_t tt__infer_tuple(tt__infer_t *c) {
  return TT_ERROR(UNIMPLEMENTED, "%s: tuple types are not supported",
                  tt_op_infos[c->node->op].text);
}

tt_status_t tt__infer_get_tuple_element(tt__infer_t *c) { return tt__infer_tuple(c); }

// Only its target knows its types.
tt_status_t tt__infer_custom_call(tt__infer_t *c) {
  TT__REQUIRE(c, tt_node_attr(c->node, TT_ATTR_CALL_TARGET_NAME), NULL,
              "call_target_name is missing");
  return tt__infer_given(c);
}

// Means what its decomposition means, which is its region.
tt_status_t tt__infer_composite(tt__infer_t *c) {
  const tt_block_t *body = c->node->regions[0];
  uint32_t n = c->node->operand_count;
  TT__REQUIRE(c, tt_node_attr(c->node, TT_ATTR_NAME), "c1", "name is missing");
  TT__REQUIRE(c, body->arg_count == n && body->return_count == c->given_count, "c3",
              "the decomposition does not fit operands and results");
  for (uint32_t i = 0; i < n; i++) {
    TT__REQUIRE(c, tt_type_equal(tt__operand(c, i), tt_graph_type(c->graph, body->args[i])), "c3",
                "argument %u of the decomposition has another type", i);
  }
  for (uint32_t i = 0; i < c->given_count; i++) {
    TT__REQUIRE(c, tt_type_equal(&c->given[i], tt_graph_type(c->graph, body->returns[i])), "c4",
                "value %u of the decomposition has another type", i);
  }
  return tt__infer_given(c);
}

// Groups form a matrix whose elements are device ids, -1 for padding.
static tt_status_t check_groups(const tt__infer_t *c) {
  uint32_t n;
  const int64_t *groups = tt_node_ints(c->node, TT_ATTR_REPLICA_GROUPS, &n);
  int64_t columns = tt_node_int(c->node, TT_ATTR_REPLICA_GROUP_SIZE, n);
  TT__REQUIRE(c, n == 0 || (columns > 0 && n % columns == 0), NULL,
              "%u replica ids do not form groups of %lld", n, (long long)columns);
  for (uint32_t i = 0; i < n; i++) {
    TT__REQUIRE(c, groups[i] >= -1, "c3", "replica id %lld", (long long)groups[i]);
  }
  return TT_OK_STATUS;
}

// Two scalars of the operands' element type to one.
static tt_status_t check_computation(const tt__infer_t *c, const char *id) {
  tt_dtype_t d = c->node->operand_count ? tt__operand(c, 0)->dtype : TT_F32;
  const tt_dtype_t args[2] = {d, d};
  return tt__infer_scalar_region(c, 0, id, args, 2, args, 1);
}

// Each operand is reduced by itself; shapes stay.
tt_status_t tt__infer_all_reduce(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_groups(c));
  TT_RETURN_IF_ERROR(check_computation(c, "c5"));
  return tt__infer_same_types(c);
}

// Result i has operand i's type but for dimension `dim`, which is a multiple of the operand's (of
// the result's, where it `shrinks`). How many times is the group's size, which a graph does not
// know.
static tt_status_t check_scaled(tt__infer_t *c, int64_t dim, bool shrinks) {
  TT__REQUIRE(c, c->given_count == c->node->operand_count, NULL, "%u result types, %u operands",
              c->given_count, c->node->operand_count);
  for (uint32_t i = 0; i < c->given_count; i++) {
    const tt_type_t *x = tt__operand(c, i), *r = &c->given[i];
    TT__REQUIRE(c, dim >= 0 && dim < (int64_t)x->rank, "c1", "dimension %lld is outside rank %u",
                (long long)dim, x->rank);
    TT__REQUIRE(c, x->rank == r->rank && x->dtype == r->dtype, "c6",
                "result %u differs in rank or element type", i);
    for (uint32_t d = 0; d < x->rank; d++) {
      int64_t small = shrinks ? r->dims[d] : x->dims[d], large = shrinks ? x->dims[d] : r->dims[d];
      bool fits = d == (uint64_t)dim ? (small ? large % small == 0 : large == 0) : small == large;
      TT__REQUIRE(c, fits, "c6", "dimension %u of result %u is %lld", d, i, (long long)r->dims[d]);
    }
  }
  return tt__infer_given(c);
}

// The group's size is known at run time only, so the maker gives the result.
tt_status_t tt__infer_all_gather(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_groups(c));
  return check_scaled(c, tt_node_int(c->node, TT_ATTR_ALL_GATHER_DIM, -1), false);
}

// The inverse of all_gather's shapes.
tt_status_t tt__infer_reduce_scatter(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_groups(c));
  TT_RETURN_IF_ERROR(check_computation(c, "c7"));
  return check_scaled(c, tt_node_int(c->node, TT_ATTR_SCATTER_DIMENSION, -1), true);
}

// split_dimension shrinks and concat_dimension grows by split_count.
tt_status_t tt__infer_all_to_all(tt__infer_t *c) {
  int64_t split = tt_node_int(c->node, TT_ATTR_SPLIT_DIMENSION, -1);
  int64_t concat = tt_node_int(c->node, TT_ATTR_CONCAT_DIMENSION, -1);
  int64_t parts = tt_node_int(c->node, TT_ATTR_SPLIT_COUNT, 0), dims[TT_MAX_RANK];
  TT_RETURN_IF_ERROR(check_groups(c));
  TT__REQUIRE(c, parts > 0, "c4", "split_count is %lld", (long long)parts);
  TT_RETURN_IF_ERROR(tt__infer_results(c, c->node->operand_count));
  for (uint32_t i = 0; i < c->count; i++) {
    const tt_type_t *x = tt__operand(c, i);
    TT__REQUIRE(c, split >= 0 && split < (int64_t)x->rank, "c1", "split_dimension %lld",
                (long long)split);
    TT__REQUIRE(c, concat >= 0 && concat < (int64_t)x->rank, "c3", "concat_dimension %lld",
                (long long)concat);
    TT__REQUIRE(c, x->dims[split] % parts == 0, "c2", "dimension %lld is not divisible by %lld",
                (long long)split, (long long)parts);
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[split] /= parts;
    TT__REQUIRE(c, !__builtin_mul_overflow(dims[concat], parts, &dims[concat]), "c9",
                "the result's size overflows");
    TT_RETURN_IF_ERROR(tt__infer_dims(c, i, x->dtype, x->rank, dims));
  }
  return TT_OK_STATUS;
}

// Pairs of source and target.
tt_status_t tt__infer_collective_permute(tt__infer_t *c) {
  uint32_t n;
  (void)tt_node_ints(c->node, TT_ATTR_SOURCE_TARGET_PAIRS, &n);
  TT__REQUIRE(c, n % 2 == 0, "c1", "source_target_pairs has %u elements", n);
  return tt__infer_same_types(c);
}

tt_status_t tt__infer_collective_broadcast(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_groups(c));
  return tt__infer_same_types(c);
}

// One ui32, of partition or replica.
tt_status_t tt__infer_device_id(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  return tt__infer_dims(c, 0, TT_U32, 0, NULL);
}
