// Steps that are one node: the reference executor's kernel where there is no faster one.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plan_internal.h"
#include "softtpu/reference_internal.h"

// Operands and results for which a step needs no allocation.
enum { STACK_VALUES = 32 };

// An environment a call: regions need tables, and a step may run on several threads at once.
static tt_status_t call_reference(const tt__step_t *s, const tt__run_t *run, const void **operands,
                                  void **results) {
  for (uint32_t i = 0; i < s->node->operand_count; i++) operands[i] = tt__at(run, s->in[i]);
  for (uint32_t i = 0; i < s->write_count; i++) results[i] = tt__at(run, s->out[i]);
  const tt_graph_t *graph = run->plan->graph;
  if (s->node->region_count == 0) return tt_reference_node(graph, s->node, NULL, operands, results);
  tt_reference_env_t *env;
  TT_RETURN_IF_ERROR(tt_reference_env_create(graph, &env));
  for (uint32_t i = s->node->operand_count; i < s->read_count; i++)
    env->values[s->reads[i]] = tt__at(run, s->in[i]);
  tt_status_t status = tt_reference_node(graph, s->node, env, operands, results);
  tt_reference_env_destroy(env);
  return status;
}

static tt_status_t run_reference(const tt__step_t *s, const tt__run_t *run) {
  uint32_t count = s->read_count + s->write_count + 1;
  void *stack[STACK_VALUES], **room = stack;
  if (count > STACK_VALUES) room = tt_alloc(sizeof *room * count);
  if (!room) return tt__plan_no_memory();
  tt_status_t status = call_reference(s, run, (const void **)room, room + s->read_count);
  if (room != stack) tt_free(room);
  return status;
}

tt_status_t tt__plan_plain_step(tt__planner_t *p, tt__step_fn_t run, const char *kind,
                                const tt_node_t *n, tt__step_t **out_step) {
  uint32_t captured = n->region_count ? tt_reference_captures(p->graph, n, NULL, 0) : 0;
  TT_RETURN_IF_ERROR(
      tt__plan_step(p, run, kind, n, n->operand_count + captured, n->result_count, out_step));
  tt__step_t *s = *out_step;
  for (uint32_t i = 0; i < n->operand_count; i++) s->reads[i] = n->operands[i];
  if (captured) {  // so far counted once a use
    captured = tt_reference_captures(p->graph, n, s->reads + n->operand_count, captured);
    s->read_count = n->operand_count + captured;
  }
  for (uint32_t r = 0; r < n->result_count; r++) s->writes[r] = n->first_result + r;
  return TT_OK_STATUS;
}

// 20 ns an element read or written.
static uint64_t reference_cost(const tt__planner_t *p, const tt_node_t *n) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < n->operand_count; i++)
    count += (uint64_t)tt_type_elements(tt_graph_type(p->graph, n->operands[i]));
  for (uint32_t r = 0; r < n->result_count; r++)
    count += (uint64_t)tt_type_elements(tt_graph_type(p->graph, n->first_result + r));
  return count * 20;
}

// Families do not overlap but for reductions, where the first that fits wins.
typedef tt_status_t (*maker_t)(tt__planner_t *, const tt_node_t *, tt__step_t **);

tt_status_t tt__plan_node_step(tt__planner_t *p, const tt_node_t *n, tt__step_t **out_step) {
  static const maker_t makers[] = {tt__plan_control_step, tt__plan_reduce_step, tt__dot_step,
                                   tt__conv_step,         tt__plan_move_step,   tt__plan_index_step,
                                   tt__plan_window_step,  tt__plan_sort_step,   tt__plan_arg_step};
  *out_step = NULL;
  if (n->op == TT_OP_CUSTOM_CALL && !tt__ref_custom_call_known(p->graph, n)) {
    const tt_attr_t *name = tt_node_attr(n, TT_ATTR_CALL_TARGET_NAME);
    return TT_ERROR(UNIMPLEMENTED, "custom_call: no target named \"%.*s\" on this device",
                    name ? (int)name->count : 0, name ? name->u.string : "");
  }
  for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
    TT_RETURN_IF_ERROR(makers[i](p, n, out_step));
    if (*out_step || p->restart) return TT_OK_STATUS;
  }
  TT_RETURN_IF_ERROR(tt__plan_plain_step(p, run_reference, "reference", n, out_step));
  (*out_step)->cost = reference_cost(p, n);
  return TT_OK_STATUS;
}

bool tt__plan_soft_operand(tt__planner_t *p, const tt_node_t *n, uint32_t i) {
  bool largest;
  return (i < 2 && tt__plan_arg_fits(p, n, &largest)) || (i == 0 && tt__plan_reduce_fits(p, n)) ||
         tt__dot_fits(p, n) || tt__conv_fits(p, n) || tt__plan_move_soft(p, n, i);
}
