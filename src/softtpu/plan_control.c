// Control flow: sub-plans over shared buffers.
#include <string.h>

#include "softtpu/element.h"
#include "softtpu/plan_internal.h"

static void copy_if_moved(char *to, const char *from, size_t bytes) {
  if (to != from) memcpy(to, from, bytes);
}

// The carried values live in the results' buffers from the first copy on.
static tt_status_t run_while(const tt__step_t *s, const tt__run_t *run) {
  const tt_graph_t *graph = run->plan->graph;
  for (uint32_t w = 0; w < s->write_count; w++)
    copy_if_moved(tt__at(run, s->out[w]), tt__at(run, s->in[w]),
                  tt_type_bytes(tt_graph_type(graph, s->writes[w])));
  for (;;) {
    TT_RETURN_IF_ERROR(tt__plan_run_seq(&s->regions[0], run));
    if (*tt__at(run, s->scratch) == 0) return TT_OK_STATUS;
    TT_RETURN_IF_ERROR(tt__plan_run_seq(&s->regions[1], run));
  }
}

// `if` has its true branch first; an index out of range of `case` takes the last.
static tt_status_t run_branch(const tt__step_t *s, const tt__run_t *run) {
  const void *at = tt__at(run, s->in[0]);
  int64_t which = s->region_count - 1;
  if (s->node->op == TT_OP_IF) {
    which = *(const uint8_t *)at ? 0 : 1;
  } else {
    int64_t index = tt_element_index(tt_graph_type(run->plan->graph, s->reads[0])->dtype, at, 0);
    if (index >= 0 && index < which) which = index;
  }
  return tt__plan_run_seq(&s->regions[which], run);
}

// order_block fills the regions. A loop's results may take over its operands' memory one by one;
// its scratch is the condition's answer.
tt_status_t tt__plan_control_step(tt__planner_t *p, const tt_node_t *n, tt__step_t **out_step) {
  bool loop = n->op == TT_OP_WHILE;
  if (!loop && n->op != TT_OP_IF && n->op != TT_OP_CASE) return TT_OK_STATUS;
  TT_RETURN_IF_ERROR(tt__plan_plain_step(p, loop ? run_while : run_branch,
                                         loop ? "while" : "branch", n, out_step));
  tt__step_t *s = *out_step;
  s->regions = tt_arena_zeroed(p->arena, sizeof *s->regions * n->region_count);
  if (!s->regions) return tt__plan_no_memory();
  s->region_count = n->region_count;
  if (loop) s->scratch_bytes = 1;
  for (uint32_t w = 0; loop && w < s->write_count; w++) s->inplace[w * s->write_count + w] = true;
  return TT_OK_STATUS;
}
